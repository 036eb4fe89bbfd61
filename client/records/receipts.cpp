#include "client/records/receipts.h"

#include <cmath>
#include <cstdio>
#include <set>

namespace shoal::client {
namespace {

constexpr size_t kCheckedAtOnce = 25;

// Whether two sums of the same figures, added in another order, are the same.
bool same_credit(double a, double b) { return std::abs(a - b) <= 1e-6 + 1e-9 * std::abs(b); }

std::string credit_text(double credit) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f", credit);
  return text;
}

Count count_of(uint64_t value) {
  return {static_cast<int64_t>(std::min<uint64_t>(value, uint64_t{INT64_MAX}))};
}

}  // namespace

struct ReceiptCheck::State {
  Records& records;
  std::map<std::string, StatedCredit> stated;
  bool begun = false;
  std::vector<Records::KnownCoordinator> coordinators;
  std::vector<ReceiptReport> reports;

  // Of the coordinator that is checked now, the one after those reported.
  ReceiptReport report;
  uint64_t after = 0;
  uint64_t twice = 0;
  std::set<LeaseId> judged;
  bool folds_fit = true;
  std::optional<std::map<int64_t, Records::StoredDay>> days;  // Empty: to be read.
  std::string wrong_day;                                      // The first that is wrong.
  int64_t whole_day = 0;  // The newest whose proofs have all come.
  uint64_t proved = 0;    // The highest number of a receipt that a proof came for.
  uint64_t not_in_day = 0;

  const Records::KnownCoordinator& current() const { return coordinators[reports.size()]; }

  void begin() {
    const Records::KnownCoordinator& coordinator = current();
    const FoldedReceipts& folded = coordinator.folded;
    report = {.pin = coordinator.pin,
              .coordinator = coordinator.name,
              .count = folded.count,
              .genuine = folded.genuine,
              .credit_confirmed = folded.confirmed};
    folds_fit = folded.through == folded.count && folded.genuine <= folded.count &&
                fold_seal(coordinator.pin, folded) == folded.seal;
    after = folded.through;
    twice = 0;
    judged.clear();
    days.reset();
    wrong_day.clear();
    whole_day = 0;
    not_in_day = 0;
  }

  Result<void> read_days() {
    SHOAL_TRY_ASSIGN(stored, records.days_of(current().pin));
    proved = records.day_wanted(current().pin).after_number;
    days.emplace();
    const LedgerDay* before = nullptr;
    for (Records::StoredDay& one : stored) {
      const int64_t number = one.day.day;
      const bool fits = ledger_day_is_genuine(one.day, current().receipt_key) &&
                        (before == nullptr || one.day.previous_root == before->root);
      if (fits) {
        ++report.days;
        report.newest_day = number;
      } else if (wrong_day.empty()) {
        wrong_day = day_text(number);
      }
      if (one.whole) whole_day = number;
      before = &days->emplace(number, std::move(one)).first->second.day;
    }
    if (wrong_day.empty()) wrong_day = records.day_problem(current().pin);
    return {};
  }

  // Whether the receipt is among those of its day, as far as that is over.
  Result<void> check_day(const Receipt& receipt) {
    // Proofs come in the order of numbers. What came after read_days() is the next check's.
    if (receipt.number > proved) return {};
    SHOAL_TRY_ASSIGN(stored, records.proof_of(current().pin, receipt.number));
    const auto day = stored ? days->find(stored->day) : days->end();
    const bool fits = day != days->end() && receipt_is_in(day->second.day, receipt, stored->proof);
    ++(fits ? report.in_days : not_in_day);
    return {};
  }

  void check(const Receipt& receipt) {
    ++report.count;
    after = receipt.number;
    if (receipt.host != current().host || !receipt_is_genuine(receipt, current().receipt_key)) {
      return;
    }
    ++report.genuine;
    if (receipt.verdict == ReceiptVerdict::kPending) return;
    if (!judged.insert(receipt.lease).second) {
      ++twice;  // The first verdict stands.
    } else if (receipt.verdict == ReceiptVerdict::kConfirmed) {
      report.credit_confirmed += receipt.credit;
    }
  }

  // Says the newest root as well, so that its owner can compare it with what others were told.
  Message with_day(const std::string& code) const {
    if (whole_day == 0) return {code, {report.coordinator}};
    return {code + "_days",
            {report.coordinator, day_text(whole_day), days->at(whole_day).day.root.hex()}};
  }

  void finish() {
    const auto known = stated.find(current().pin);
    uint64_t newest = std::max(after, records.receipt_progress(current().pin).newest);
    if (known != stated.end()) {
      newest = std::max(newest, known->second.newest_receipt);
      report.credit_stated = known->second.confirmed;
    }
    report.missing = newest > report.count ? newest - report.count : 0;
    const std::string& name = report.coordinator;
    if (report.genuine < report.count) {
      report.why = {"receipts.false", {name, count_of(report.count - report.genuine)}};
    } else if (!folds_fit) {
      report.why = {"receipts.changed", {name}};
    } else if (report.missing > 0) {
      report.why = {"receipts.missing", {name, count_of(report.missing)}};
    } else if (twice > 0) {
      report.why = {"receipts.twice", {name, count_of(twice)}};
    } else if (!wrong_day.empty()) {
      report.why = {"receipts.day_false", {name, wrong_day}};
    } else if (not_in_day > 0) {
      report.why = {"receipts.not_in_day", {name, count_of(not_in_day)}};
    } else if (known == stated.end()) {
      report.agrees = true;
      report.why = with_day("receipts.unstated");
    } else if (!same_credit(report.credit_confirmed, report.credit_stated)) {
      report.why = {
          "receipts.differ",
          {name, credit_text(report.credit_confirmed), credit_text(report.credit_stated)}};
    } else {
      report.agrees = true;
      report.why = with_day("receipts.agree");
    }
    reports.push_back(std::move(report));
    if (reports.size() < coordinators.size()) begin();
  }
};

ReceiptCheck::ReceiptCheck(Records& records, std::map<std::string, StatedCredit> stated)
    : state_(std::make_unique<State>(State{records, std::move(stated)})) {}
ReceiptCheck::~ReceiptCheck() = default;

Result<bool> ReceiptCheck::step() {
  State& state = *state_;
  if (!state.begun) {
    SHOAL_TRY_ASSIGN(coordinators, state.records.known_coordinators());
    state.coordinators = std::move(coordinators);
    state.begun = true;
    if (!state.coordinators.empty()) state.begin();
  }
  if (state.reports.size() == state.coordinators.size()) return true;
  SHOAL_TRY_ASSIGN(receipts,
                   state.records.receipts_of(state.current().pin, state.after, kCheckedAtOnce));
  if (!state.days) SHOAL_TRY(state.read_days());
  for (const Receipt& receipt : receipts) {
    state.check(receipt);
    SHOAL_TRY(state.check_day(receipt));
  }
  if (receipts.size() < kCheckedAtOnce) state.finish();
  return state.reports.size() == state.coordinators.size();
}

const std::vector<ReceiptReport>& ReceiptCheck::reports() const { return state_->reports; }

}  // namespace shoal::client
