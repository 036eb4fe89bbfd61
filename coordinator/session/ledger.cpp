#include "coordinator/session/ledger.h"

#include <algorithm>

#include "base/check.h"
#include "coordinator/session/ledger_days.h"

namespace shoal {
namespace {

constexpr int64_t kDaysMax = 100'000;    // Nearly three centuries.
constexpr int64_t kCheckedAtOnce = 500;  // Some 50 ms of signatures; then others have their turn.

const char* verdict_word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPending: return "pending";
    case Verdict::kConfirmed: return "confirmed";
    case Verdict::kRejected: return "rejected";
  }
  SHOAL_UNREACHABLE();
}

ReceiptVerdict verdict_of(const std::string& word) {
  if (word == "confirmed") return ReceiptVerdict::kConfirmed;
  return word == "pending" ? ReceiptVerdict::kPending : ReceiptVerdict::kRejected;
}

// The host's sums after a verdict on so many parts.
LedgerSums sums_with(LedgerSums sums, ReceiptVerdict verdict, int64_t parts, bool was_pending) {
  if (was_pending) sums.pending -= parts;
  switch (verdict) {
    case ReceiptVerdict::kPending: sums.pending += parts; break;
    case ReceiptVerdict::kConfirmed: sums.confirmed += parts; break;
    case ReceiptVerdict::kRejected: sums.rejected += parts; break;
  }
  return sums;
}

double credit(int64_t parts) { return credit_of(CreditParts{parts}); }

}  // namespace

Receipt receipt_from(const JudgedWork& judged) {
  const LedgerRow& work = judged.work;
  Receipt receipt;
  receipt.number = static_cast<uint64_t>(judged.receipt.number);
  receipt.host = judged.receipt.host;
  receipt.lease = work.lease;
  receipt.device = work.device;
  receipt.job_class = {work.kind, work.model, work.privacy == "anchored", work.privacy == "group"};
  receipt.rows = static_cast<uint64_t>(work.rows);
  receipt.credit = credit(work.credit_parts);
  receipt.verdict = verdict_of(judged.receipt.verdict);
  receipt.reason = judged.receipt.reason;
  receipt.at = judged.receipt.at;
  receipt.signature = judged.receipt.signature;
  return receipt;
}

Result<void> Ledger::lease_ended(const LeaseWork& work, const Judgement& judgement) {
  return table_.transaction([&]() -> Result<void> {
    SHOAL_TRY_ASSIGN(known, table_.has(work.lease));
    if (known) return {};
    LedgerRow row;
    row.lease = work.lease;
    row.session = work.session;
    row.unit = work.unit;
    row.host = work.host;
    row.device = work.device;
    row.kind = work.job_class.kind;
    row.model = work.job_class.model;
    row.privacy = privacy_name(work.job_class);
    row.group = work.group;
    row.first_fragment = work.first_fragment;
    row.last_fragment = work.last_fragment;
    row.rows = work.rows;
    row.flops = work.flops;
    row.credit_parts = credit_parts(work.flops).count;
    row.ended_at = clock_.now_wall();
    SHOAL_TRY_ASSIGN(id, table_.add(row));
    row.id = id;
    SHOAL_TRY_ASSIGN(banned, table_.is_banned(work.host));
    return add_receipt(row, banned ? judge({.host_banned = true}) : judgement,
                       /*was_pending=*/false);
  });
}

Result<CreditParts> Ledger::judge_lease(LeaseId lease, const Judgement& judgement) {
  CreditParts worth;
  SHOAL_TRY(table_.transaction([&]() -> Result<void> {
    SHOAL_TRY_ASSIGN(work, table_.find(lease));
    if (!work) return {};
    SHOAL_TRY_ASSIGN(judged, table_.is_judged(work->id));
    if (judged) return {};
    SHOAL_TRY_ASSIGN(banned, table_.is_banned(work->host));
    if (!banned) worth = CreditParts{work->credit_parts};
    return add_receipt(*work, banned ? judge({.host_banned = true}) : judgement,
                       /*was_pending=*/true);
  }));
  return worth;
}

Result<void> Ledger::settle(SessionId session, const std::set<HostId>& distrusted,
                            const std::set<LeaseId>& checked_later) {
  return table_.transaction([&]() -> Result<void> {
    SHOAL_TRY_ASSIGN(pending, table_.pending(session));
    for (const LedgerRow& work : pending) {
      if (checked_later.contains(work.lease)) continue;
      SHOAL_TRY_ASSIGN(banned, table_.is_banned(work.host));
      const Judgement judgement = judge({.host_banned = banned,
                                         .host_distrusted = distrusted.contains(work.host),
                                         .session_over = true});
      SHOAL_TRY(add_receipt(work, judgement, /*was_pending=*/true));
    }
    return {};
  });
}

Result<void> Ledger::settle_former_run() {
  return table_.transaction([&]() -> Result<void> {
    SHOAL_TRY_ASSIGN(leases, table_.unended_leases());
    for (const UnendedLease& lease : leases) {
      const LeaseWork work{
          lease.lease,
          lease.session,
          lease.host,
          lease.device,
          {"generate", lease.model, lease.privacy == "anchored", lease.privacy == "group"},
          lease.first_fragment,
          lease.last_fragment,
          0,
          {},
          {},
          lease.group};
      SHOAL_TRY(lease_ended(work, judge({.forgotten = true})));
    }
    SHOAL_TRY_ASSIGN(sessions, table_.unsettled_sessions());
    for (const SessionId session : sessions) SHOAL_TRY(settle(session, {}));
    return {};
  });
}

// REQUIRES: in the transaction that made the verdict.
Result<void> Ledger::add_receipt(const LedgerRow& work, const Judgement& judgement,
                                 bool was_pending) {
  SHOAL_TRY_ASSIGN(newest, table_.newest(work.host));
  JudgedWork judged;
  judged.work = work;
  ReceiptRow& row = judged.receipt;
  row.host = work.host;
  row.number = newest.number + 1;
  row.ledger_id = work.id;
  row.verdict = verdict_word(judgement.verdict);
  row.reason = judgement.reason;
  row.at = clock_.now_wall();
  row.sums = sums_with(newest.sums, verdict_of(row.verdict), work.credit_parts, was_pending);
  Receipt receipt = receipt_from(judged);
  sign_receipt(receipt, key_);
  row.signature = std::move(receipt.signature);
  return table_.add_receipt(row);
}

Result<Ledger::Standing> Ledger::standing(HostId host) {
  SHOAL_TRY_ASSIGN(newest, table_.newest(host));
  return Standing{static_cast<uint64_t>(newest.number), credit(newest.sums.confirmed),
                  credit(newest.sums.pending), credit(newest.sums.rejected)};
}

Result<std::vector<Receipt>> Ledger::receipts(HostId host, uint64_t after_number,
                                              uint32_t count_max) {
  const auto after = static_cast<int64_t>(std::min<uint64_t>(after_number, INT64_MAX));
  SHOAL_TRY_ASSIGN(rows, table_.receipts(host, after, count_max));
  std::vector<Receipt> receipts;
  receipts.reserve(rows.size());
  for (const JudgedWork& row : rows) receipts.push_back(receipt_from(row));
  return receipts;
}

Result<bool> LedgerCheck::go_on() {
  if (!days_) {
    SHOAL_TRY_ASSIGN(days, table_.days(0, kDaysMax));
    days_ = std::move(days);
  }
  SHOAL_TRY_ASSIGN(rows, table_.all_receipts(after_id_, kCheckedAtOnce));
  for (const JudgedWork& row : rows) check(row);
  if (!rows.empty()) {
    after_id_ = rows.back().receipt.id;
    return true;
  }
  while (next_day_ < days_->size()) check_day((*days_)[next_day_]);
  report_.hosts = static_cast<int64_t>(hosts_.size());
  report_.pending = static_cast<int64_t>(pending_.size());
  for (const auto& [id, host] : hosts_) {
    report_.sums.confirmed += host.sums.confirmed;
    report_.sums.pending += host.sums.pending;
    report_.sums.rejected += host.sums.rejected;
  }
  SHOAL_TRY_ASSIGN(leases, table_.count());
  if (leases != report_.leases) {
    problem("the ledger has " + std::to_string(leases) + " leases, but receipts speak of " +
            std::to_string(report_.leases));
  }
  return false;
}

void LedgerCheck::check(const JudgedWork& judged) {
  const LedgerRow& work = judged.work;
  const ReceiptRow& row = judged.receipt;
  const ReceiptVerdict verdict = verdict_of(row.verdict);
  Host& host = hosts_[row.host];
  report_.receipts += 1;
  if (row.number != host.number + 1) {
    problem(row, "comes after number " + std::to_string(host.number));
  }
  host.number = row.number;
  if (row.host != work.host) problem(row, "is for work of another host");
  if (work.credit_parts != credit_parts(work.flops).count) {
    problem(row, "has another credit than its FLOPs give");
  }
  const bool was_pending = pending_.erase(row.ledger_id) > 0;
  if (!was_pending) report_.leases += 1;
  if (verdict == ReceiptVerdict::kPending) {
    if (was_pending) problem(row, "makes pending what was pending");
    pending_.insert(row.ledger_id);
  }
  if (row.reason.empty() == (verdict == ReceiptVerdict::kRejected)) {
    problem(row, "has no reason where one belongs, or one where none does");
  }
  host.sums = sums_with(host.sums, verdict, work.credit_parts, was_pending);
  if (host.sums != row.sums) {
    problem(row, "states other sums than those of the receipts up to it");
    host.sums = row.sums;  // Told once.
  }
  const Receipt receipt = receipt_from(judged);
  if (!receipt_is_genuine(receipt, key_)) problem(row, "has a signature that does not fit");
  while (next_day_ < days_->size() && row.id > (*days_)[next_day_].last_receipt_id) {
    check_day((*days_)[next_day_]);
  }
  if (next_day_ < days_->size()) day_so_far_.add(receipt_leaf(receipt));
}

// The day's receipts have all been seen.
void LedgerCheck::check_day(const LedgerDayRow& row) {
  const LedgerDay day = ledger_day_from(row);
  const std::string name = "the day " + day_text(day.day) + " ";
  if (day_so_far_.count() != day.count) {
    problem(name + "states " + std::to_string(day.count) + " receipts, but has " +
            std::to_string(day_so_far_.count()));
  } else if (day_so_far_.root() != day.root) {
    problem(name + "has another root than its receipts give");
  }
  const Digest before = next_day_ == 0 ? Digest() : (*days_)[next_day_ - 1].root;
  if (day.previous_root != before) problem(name + "does not follow the day before it");
  if (!ledger_day_is_genuine(day, key_)) problem(name + "has a signature that does not fit");
  day_so_far_ = MerkleRoot();
  report_.days += 1;
  ++next_day_;
}

void LedgerCheck::problem(const ReceiptRow& receipt, const std::string& what) {
  problem("receipt " + std::to_string(receipt.number) + " of host " +
          std::to_string(receipt.host.value) + " " + what);
}

void LedgerCheck::problem(const std::string& sentence) {
  report_.problem_count += 1;
  if (report_.problems.size() < kProblemsMax) report_.problems.push_back(sentence);
}

}  // namespace shoal
