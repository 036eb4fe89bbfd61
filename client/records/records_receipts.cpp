#include <bit>
#include <cmath>

#include "client/records/records_state.h"

namespace shoal::client {
namespace {

constexpr int kFoldedAtOnce = 50;
// A single receipt over 10^9 credits is no figure to add to others.
constexpr double kCreditMax = 1e9;

int64_t micro(double credit) { return std::llround(std::min(credit, kCreditMax) * 1e6); }

// The figure of Sums that a verdict counts in.
int64_t Sums::*figure_of(ReceiptVerdict verdict) {
  switch (verdict) {
    case ReceiptVerdict::kPending: return &Sums::pending_micro;
    case ReceiptVerdict::kConfirmed: return &Sums::confirmed_micro;
    case ReceiptVerdict::kRejected: return &Sums::rejected_micro;
  }
  SHOAL_UNREACHABLE();
}

Result<void> check_receipt(const Receipt& receipt) {
  const auto refuse = [](const char* what) {
    return Error{ErrorCode::kInvalid, std::string("receipt: ") + what};
  };
  constexpr uint64_t kMax{INT64_MAX};
  if (receipt.number == 0 || receipt.number > kMax) return refuse("its number is out of range");
  if (receipt.rows > kMax) return refuse("its rows are out of range");
  if (!std::isfinite(receipt.credit) || receipt.credit < 0)
    return refuse("its credit is no credit");
  return {};
}

Digest digest_in(const ByteVector& bytes) {
  const Result<Digest> digest = Digest::from_bytes(bytes);
  return digest.ok() ? digest.value() : Digest();  // A damaged one is found by the seal.
}

// In the order of kReceiptColumns, from column 0 on.
constexpr int kReceiptColumnCount = 13;
Receipt receipt_in(const Query& query) {
  Receipt receipt;
  receipt.number = static_cast<uint64_t>(query.integer(0));
  receipt.host = HostId{query.integer(1)};
  receipt.lease = LeaseId{query.integer(2)};
  receipt.device = query.text(3);
  receipt.job_class = job_class_in(query.text(4), query.text(5), query.integer(6));
  receipt.rows = static_cast<uint64_t>(query.integer(7));
  receipt.credit = query.real(8);
  receipt.verdict = static_cast<ReceiptVerdict>(std::clamp<int64_t>(query.integer(9), 0, 2));
  receipt.reason = query.text(10);
  receipt.at = {query.integer(11)};
  receipt.signature = query.blob(12);
  return receipt;
}
#define SHOAL_RECEIPT_COLUMNS                                                                 \
  "number, receipt.host_id, lease_id, device, job_kind, model, anchored, rows_done, credit, " \
  "verdict, reason, at_ms, signature"

}  // namespace

Digest fold_receipt(const Digest& chain, const Receipt& receipt) {
  DigestBuilder builder;
  builder.update(chain.bytes);
  builder.update(receipt_bytes(receipt));
  builder.update(receipt.signature);
  return builder.finish();
}

Digest fold_seal(const std::string& pin, const FoldedReceipts& folded) {
  ByteWriter to;
  to.text("shoal-folded-1");
  to.u64(pin.size());
  to.text(pin);
  to.u64(folded.through);
  to.u64(folded.count);
  to.u64(folded.genuine);
  to.u64(std::bit_cast<uint64_t>(folded.confirmed));
  to.u64(std::bit_cast<uint64_t>(folded.rejected));
  to.bytes(folded.chain.bytes);
  return digest_of(to.view());
}

Result<void> Records::State::load_coordinators() {
  std::map<std::string, Coordinator> loaded;
  Query query = database->query(
      "SELECT id, pin, name, receipt_key, host_id, through, newest, stored, folded_through, "
      "folded_count, folded_genuine, folded_confirmed, folded_rejected, folded_chain, folded_seal "
      "FROM coordinator");
  while (true) {
    SHOAL_TRY_ASSIGN(more, query.row());
    if (!more) break;
    Coordinator& to = loaded[query.text(1)];
    to.id = query.integer(0);
    to.name = query.text(2);
    const Result<SigningPublicKey> key = SigningPublicKey::from_bytes(query.blob(3));
    if (key.ok()) to.receipt_key = key.value();  // Else no signature will fit, which is said.
    to.host = HostId{query.integer(4)};
    to.progress = {static_cast<uint64_t>(query.integer(5)), static_cast<uint64_t>(query.integer(6)),
                   static_cast<uint64_t>(query.integer(7))};
    to.folded = {.through = static_cast<uint64_t>(query.integer(8)),
                 .count = static_cast<uint64_t>(query.integer(9)),
                 .genuine = static_cast<uint64_t>(query.integer(10)),
                 .confirmed = query.real(11),
                 .rejected = query.real(12),
                 .chain = digest_in(query.blob(13)),
                 .seal = digest_in(query.blob(14))};
  }
  for (auto& [pin, coordinator] : loaded) SHOAL_TRY(load_days(coordinator));
  if (!carried_over.empty()) {
    SHOAL_TRY(database->durable_transaction([&]() -> Result<void> {
      for (const auto& [pin, before] : carried_over) {
        if (loaded.contains(pin)) continue;
        Coordinator again;
        again.name = before.name;
        again.receipt_key = before.receipt_key;
        again.host = before.host;
        SHOAL_TRY(insert_coordinator(pin, again));
        loaded[pin] = std::move(again);
      }
      return {};
    }));
    carried_over.clear();
  }
  coordinators = std::move(loaded);
  return {};
}

Result<void> Records::State::insert_coordinator(const std::string& pin, Coordinator& coordinator) {
  coordinator.folded.seal = fold_seal(pin, coordinator.folded);
  SHOAL_TRY(database
                ->query("INSERT INTO coordinator (pin, name, receipt_key, host_id, folded_chain, "
                        "folded_seal) VALUES (?, ?, ?, ?, ?, ?)")
                .bind(std::string_view(pin))
                .bind(std::string_view(coordinator.name))
                .bind(ByteSpan(coordinator.receipt_key.bytes))
                .bind(coordinator.host.value)
                .bind(ByteSpan(coordinator.folded.chain.bytes))
                .bind(ByteSpan(coordinator.folded.seal.bytes))
                .run());
  coordinator.id = database->last_id();
  return {};
}

Result<void> Records::State::save_coordinator(const Coordinator& c) {
  return database
      ->query(
          "UPDATE coordinator SET name = ?, host_id = ?, through = ?, newest = ?, stored = ?, "
          "folded_through = ?, folded_count = ?, folded_genuine = ?, folded_confirmed = ?, "
          "folded_rejected = ?, folded_chain = ?, folded_seal = ? WHERE id = ?")
      .bind(std::string_view(c.name))
      .bind(c.host.value)
      .bind(static_cast<int64_t>(c.progress.through))
      .bind(static_cast<int64_t>(c.progress.newest))
      .bind(static_cast<int64_t>(c.progress.stored))
      .bind(static_cast<int64_t>(c.folded.through))
      .bind(static_cast<int64_t>(c.folded.count))
      .bind(static_cast<int64_t>(c.folded.genuine))
      .bind(c.folded.confirmed)
      .bind(c.folded.rejected)
      .bind(ByteSpan(c.folded.chain.bytes))
      .bind(ByteSpan(c.folded.seal.bytes))
      .bind(c.id)
      .run();
}

Result<void> Records::know_coordinator(const std::string& pin, const std::string& name,
                                       const SigningPublicKey& receipt_key, HostId host) {
  SHOAL_TRY_ASSIGN(database, state_->readable());
  if (const auto found = state_->coordinators.find(pin); found != state_->coordinators.end()) {
    State::Coordinator& known = found->second;
    if (known.receipt_key != receipt_key) {
      return Error{ErrorCode::kDenied,
                   known.name +
                       " signs receipts with another key than before; those that it gave "
                       "could not be checked with it"};
    }
    if (known.name == name && known.host == host) return {};
    if (known.host == host) {
      State::Coordinator changed = known;
      changed.name = name;
      SHOAL_TRY(database->durable_transaction([&] { return state_->save_coordinator(changed); }));
      known = std::move(changed);
      return {};
    }
    // It knows this computer by another number, so its receipts are counted from 1 again. Those of
    // before are kept under a name of their own.
    const std::string former_name = pin + "#" + std::to_string(known.host.value);
    std::string former_pin = former_name;
    // It may have gone back to an earlier number, and away from it again.
    for (int i = 2; state_->coordinators.contains(former_pin); ++i) {
      former_pin = former_name + "#" + std::to_string(i);
    }
    State::Coordinator former = known;
    former.folded.seal = fold_seal(former_pin, former.folded);
    SHOAL_TRY(database->durable_transaction([&]() -> Result<void> {
      SHOAL_TRY(database->query("UPDATE coordinator SET pin = ? WHERE id = ?")
                    .bind(std::string_view(former_pin))
                    .bind(former.id)
                    .run());
      return state_->save_coordinator(former);
    }));
    state_->coordinators.erase(found);
    state_->coordinators[former_pin] = std::move(former);
  }
  State::Coordinator made;
  made.name = name;
  made.receipt_key = receipt_key;
  made.host = host;
  SHOAL_TRY(database->durable_transaction([&] { return state_->insert_coordinator(pin, made); }));
  state_->coordinators[pin] = std::move(made);
  return {};
}

bool Records::State::is_genuine(const Coordinator& coordinator, const Receipt& receipt) {
  return receipt.host == coordinator.host && receipt_is_genuine(receipt, coordinator.receipt_key);
}

Result<std::string> Records::State::own_device(const std::string& device) {
  if (names.contains(device)) return device;
  Query query = database->query("SELECT 1 FROM name WHERE text = ?");
  query.bind(std::string_view(device));
  SHOAL_TRY_ASSIGN(some, query.row());
  return some ? device : std::string();
}

// A lease's first verdict that is not "pending" is the one that counts, and then what was pending
// for it no longer does.
Result<void> Records::State::count_receipt(Coordinator& coordinator, const Receipt& receipt,
                                           bool genuine, int64_t row,
                                           std::vector<Counted>& counted) {
  if (!genuine) return {};
  struct Earlier {
    int64_t row;
    Counted counted;
  };
  std::vector<Earlier> pending;
  bool judged = false;
  {
    Query query = database->query(
        "SELECT id, verdict, credit, counted_at_ms, device FROM receipt "
        "WHERE coordinator_id = ? AND lease_id = ? AND counted_at_ms IS NOT NULL");
    query.bind(coordinator.id).bind(receipt.lease.value);
    while (true) {
      SHOAL_TRY_ASSIGN(more, query.row());
      if (!more) break;
      if (query.integer(1) != static_cast<int64_t>(ReceiptVerdict::kPending)) {
        judged = true;
        continue;
      }
      Sums less;
      less.pending_micro = -micro(query.real(2));
      pending.push_back({query.integer(0), {{query.integer(3)}, query.text(4), less}});
    }
  }
  if (judged) return {};
  for (Earlier& earlier : pending) {
    SHOAL_TRY_ASSIGN(device, own_device(earlier.counted.device));
    earlier.counted.device = device;
    SHOAL_TRY(database->query("UPDATE receipt SET counted_at_ms = NULL WHERE id = ?")
                  .bind(earlier.row)
                  .run());
    counted.push_back(earlier.counted);
  }
  SHOAL_TRY_ASSIGN(device, own_device(receipt.device));
  // Nothing is credited in the future, whatever the coordinator's clock says.
  Counted one{std::min(sane_wall(receipt.at), now()), device, {}};
  one.sums.*figure_of(receipt.verdict) = micro(receipt.credit);
  counted.push_back(one);
  return database->query("UPDATE receipt SET counted_at_ms = ? WHERE id = ?")
      .bind(one.at.count)
      .bind(row)
      .run();
}

Result<void> Records::State::append_receipt(Coordinator& coordinator, const Receipt& receipt,
                                            bool known_genuine, std::vector<Counted>& counted) {
  SHOAL_TRY(check_receipt(receipt));
  if (receipt.number <= coordinator.folded.through) return {};  // Had, and folded.
  {
    Query query = database->query("SELECT " SHOAL_RECEIPT_COLUMNS
                                  " FROM receipt WHERE coordinator_id = ? AND number = ?");
    query.bind(coordinator.id).bind(static_cast<int64_t>(receipt.number));
    SHOAL_TRY_ASSIGN(had, query.row());
    if (had) {
      const Receipt before = receipt_in(query);
      if (receipt_bytes(before) == receipt_bytes(receipt) && before.signature == receipt.signature)
        return {};
      return Error{ErrorCode::kExists, "receipt " + std::to_string(receipt.number) + " of " +
                                           coordinator.name + " came before with another content"};
    }
  }
  const bool genuine = known_genuine || is_genuine(coordinator, receipt);
  SHOAL_TRY(database
                ->query("INSERT INTO receipt (coordinator_id, number, host_id, lease_id, device, "
                        "job_kind, model, anchored, rows_done, credit, verdict, reason, at_ms, "
                        "signature, genuine) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
                .bind(coordinator.id)
                .bind(static_cast<int64_t>(receipt.number))
                .bind(receipt.host.value)
                .bind(receipt.lease.value)
                .bind(std::string_view(receipt.device))
                .bind(std::string_view(receipt.job_class.kind))
                .bind(std::string_view(receipt.job_class.model))
                .bind(privacy_number(receipt.job_class))
                .bind(static_cast<int64_t>(receipt.rows))
                .bind(receipt.credit)
                .bind(static_cast<int64_t>(receipt.verdict))
                .bind(std::string_view(receipt.reason))
                .bind(receipt.at.count)
                .bind(ByteSpan(receipt.signature))
                .bind(int64_t{genuine ? 1 : 0})
                .run());
  const int64_t row = database->last_id();
  ++coordinator.progress.stored;
  coordinator.progress.newest = std::max(coordinator.progress.newest, receipt.number);
  // A gap that is filled may join many that came earlier.
  while (coordinator.progress.through < coordinator.progress.newest) {
    Query query = database->query("SELECT 1 FROM receipt WHERE coordinator_id = ? AND number = ?");
    query.bind(coordinator.id).bind(static_cast<int64_t>(coordinator.progress.through + 1));
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) break;
    ++coordinator.progress.through;
  }
  return count_receipt(coordinator, receipt, genuine, row, counted);
}

Result<void> Records::append_receipts(const std::string& pin, std::span<const Receipt> receipts) {
  return state_->append_receipts(pin, receipts, /*known_genuine=*/false);
}

Result<void> Records::State::append_receipts(const std::string& pin,
                                             std::span<const Receipt> receipts,
                                             bool known_genuine) {
  if (receipts.size() > kReceiptsPerAppendMax) {
    return Error{ErrorCode::kInvalid, "too many receipts at once"};
  }
  SHOAL_TRY_ASSIGN(ready, readable());
  static_cast<void>(ready);
  const auto found = coordinators.find(pin);
  if (found == coordinators.end()) {
    return Error{ErrorCode::kNotFound, "the key of this coordinator's receipts is not known"};
  }
  Coordinator changed = found->second;
  std::vector<Counted> counted;
  Result<void> done = database->durable_transaction([&]() -> Result<void> {
    for (const Receipt& receipt : receipts) {
      SHOAL_TRY(append_receipt(changed, receipt, known_genuine, counted));
    }
    for (const Counted& one : counted) {
      SHOAL_TRY(add_to_levels(one.at, one.device, one.sums));
    }
    return save_coordinator(changed);
  });
  if (!done.ok()) {
    names.clear();
    // What a peer did wrong says nothing about the file.
    if (done.error().code != ErrorCode::kInvalid && done.error().code != ErrorCode::kExists)
      note_error(done.error());
    return done;
  }
  found->second = std::move(changed);
  for (const Counted& one : counted) count(one.at, one.device, one.sums);
  return {};
}

Result<void> Records::accept_receipts(const std::string& pin, std::span<const Receipt> receipts) {
  SHOAL_TRY_ASSIGN(database, state_->readable());
  static_cast<void>(database);
  const auto found = state_->coordinators.find(pin);
  if (found == state_->coordinators.end()) {
    return Error{ErrorCode::kNotFound, "the key of this coordinator's receipts is not known"};
  }
  uint64_t expected = found->second.progress.newest;
  for (const Receipt& receipt : receipts) {
    ++expected;
    if (receipt.number != expected) {
      return Error{ErrorCode::kInvalid, "receipt " + std::to_string(receipt.number) +
                                            " came where " + std::to_string(expected) + " belongs"};
    }
    if (!State::is_genuine(found->second, receipt)) {
      return Error{ErrorCode::kInvalid,
                   "the signature of receipt " + std::to_string(receipt.number) + " does not fit"};
    }
  }
  return state_->append_receipts(pin, receipts, /*known_genuine=*/true);
}

ReceiptProgress Records::receipt_progress(const std::string& pin) const {
  const auto found = state_->coordinators.find(pin);
  return found == state_->coordinators.end() ? ReceiptProgress() : found->second.progress;
}

Result<std::vector<StoredReceipt>> Records::receipts(uint64_t after_row, size_t count_max) {
  return state_->noted([&]() -> Result<std::vector<StoredReceipt>> {
    SHOAL_TRY_ASSIGN(database, state_->readable());
    Query query = database->query("SELECT " SHOAL_RECEIPT_COLUMNS
                                  ", receipt.id, genuine, coordinator.name FROM receipt "
                                  "JOIN coordinator ON coordinator.id = coordinator_id "
                                  "WHERE receipt.id > ? ORDER BY receipt.id LIMIT ?");
    query.bind(static_cast<int64_t>(std::min<uint64_t>(after_row, uint64_t{INT64_MAX})))
        .bind(static_cast<int64_t>(std::min<size_t>(count_max, size_t{INT64_MAX})));
    std::vector<StoredReceipt> receipts;
    while (true) {
      SHOAL_TRY_ASSIGN(more, query.row());
      if (!more) return receipts;
      receipts.push_back({.row = static_cast<uint64_t>(query.integer(kReceiptColumnCount)),
                          .coordinator = query.text(kReceiptColumnCount + 2),
                          .receipt = receipt_in(query),
                          .genuine = query.integer(kReceiptColumnCount + 1) != 0});
    }
  }());
}

Result<std::vector<Records::KnownCoordinator>> Records::known_coordinators() {
  SHOAL_TRY_ASSIGN(database, state_->readable());
  static_cast<void>(database);
  std::vector<KnownCoordinator> known;
  for (const auto& [pin, c] : state_->coordinators) {
    known.push_back({pin, c.name, c.receipt_key, c.host, c.folded});
  }
  return known;
}

Result<std::vector<Receipt>> Records::receipts_of(const std::string& pin, uint64_t after_number,
                                                  size_t count_max) {
  return state_->noted([&]() -> Result<std::vector<Receipt>> {
    SHOAL_TRY_ASSIGN(database, state_->readable());
    const auto found = state_->coordinators.find(pin);
    std::vector<Receipt> receipts;
    if (found == state_->coordinators.end()) return receipts;
    Query query = database->query("SELECT " SHOAL_RECEIPT_COLUMNS
                                  " FROM receipt WHERE coordinator_id = ? AND number > ? "
                                  "ORDER BY number LIMIT ?");
    query.bind(found->second.id)
        .bind(static_cast<int64_t>(std::min<uint64_t>(after_number, uint64_t{INT64_MAX})))
        .bind(static_cast<int64_t>(std::min<size_t>(count_max, size_t{INT64_MAX})));
    while (true) {
      SHOAL_TRY_ASSIGN(more, query.row());
      if (!more) return receipts;
      receipts.push_back(receipt_in(query));
    }
  }());
}

// Folds the receipt after the last folded one, if it is old enough or there are too many. False:
// there is none to fold.
Result<bool> Records::State::fold_next(Coordinator& coordinator, Millis before,
                                       std::vector<Counted>& counted) {
  FoldedReceipts& folded = coordinator.folded;
  if (folded.through >= coordinator.progress.through) return false;
  Receipt receipt;
  int64_t row = 0;
  std::optional<Millis> counted_at;
  {
    Query query = database->query("SELECT " SHOAL_RECEIPT_COLUMNS
                                  ", id, counted_at_ms FROM receipt "
                                  "WHERE coordinator_id = ? AND number = ?");
    query.bind(coordinator.id).bind(static_cast<int64_t>(folded.through + 1));
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return false;  // Somebody took it away: verification says that it is missing.
    receipt = receipt_in(query);
    row = query.integer(kReceiptColumnCount);
    if (!query.is_null(kReceiptColumnCount + 1))
      counted_at = Millis{query.integer(kReceiptColumnCount + 1)};
  }
  const bool too_many =
      coordinator.progress.stored - folded.count > static_cast<uint64_t>(kReceiptsKept);
  if (receipt.at >= before && !too_many) return false;

  // Checked once more: a row may have been changed since, and this is the last time that it can be.
  const bool genuine = is_genuine(coordinator, receipt);
  double confirmed = 0, rejected = 0;
  if (counted_at && receipt.verdict == ReceiptVerdict::kPending) {
    // After two years no verdict will come.
    SHOAL_TRY_ASSIGN(device, own_device(receipt.device));
    Counted less{*counted_at, device, {}};
    less.sums.pending_micro = -micro(receipt.credit);
    counted.push_back(less);
  } else if (counted_at && genuine) {
    (receipt.verdict == ReceiptVerdict::kConfirmed ? confirmed : rejected) = receipt.credit;
  }
  SHOAL_TRY(database->query("DELETE FROM receipt WHERE id = ?").bind(row).run());
  SHOAL_TRY(database->query("DELETE FROM receipt_proof WHERE coordinator_id = ? AND number = ?")
                .bind(coordinator.id)
                .bind(static_cast<int64_t>(receipt.number))
                .run());
  ++folded.through;
  ++folded.count;
  folded.genuine += genuine ? 1 : 0;
  folded.confirmed += confirmed;
  folded.rejected += rejected;
  folded.chain = fold_receipt(folded.chain, receipt);
  return true;
}

Result<void> Records::State::fold_some() {
  const Millis before{now().count - kReceiptDays * kDay.count};
  for (auto& [pin, coordinator] : coordinators) {
    Coordinator changed = coordinator;
    std::vector<Counted> counted;
    bool any = false;
    Result<void> done = database->transaction([&, &pin = pin]() -> Result<void> {
      for (int i = 0; i < kFoldedAtOnce; ++i) {
        SHOAL_TRY_ASSIGN(folded, fold_next(changed, before, counted));
        if (!folded) break;
        any = true;
      }
      if (!any) return {};
      for (const Counted& one : counted) {
        SHOAL_TRY(add_to_levels(one.at, one.device, one.sums));
      }
      changed.folded.seal = fold_seal(pin, changed.folded);
      return save_coordinator(changed);
    });
    if (!done.ok()) {
      names.clear();
      return done;
    }
    if (!any) continue;
    coordinator = std::move(changed);
    for (const Counted& one : counted) count(one.at, one.device, one.sums);
  }
  return {};
}

}  // namespace shoal::client
