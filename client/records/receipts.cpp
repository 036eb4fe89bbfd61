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
    } else if (known == stated.end()) {
      report.agrees = true;
      report.why = {"receipts.unstated", {name}};
    } else if (!same_credit(report.credit_confirmed, report.credit_stated)) {
      report.why = {
          "receipts.differ",
          {name, credit_text(report.credit_confirmed), credit_text(report.credit_stated)}};
    } else {
      report.agrees = true;
      report.why = {"receipts.agree", {name}};
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
  for (const Receipt& receipt : receipts) state.check(receipt);
  if (receipts.size() < kCheckedAtOnce) state.finish();
  return state.reports.size() == state.coordinators.size();
}

const std::vector<ReceiptReport>& ReceiptCheck::reports() const { return state_->reports; }

}  // namespace shoal::client
