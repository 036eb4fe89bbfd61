#pragma once
// Knows what really happened in a simulated fleet, and holds the broker's changes against it: it
// takes no figure from the broker. What a store would have seen, in a few bytes a unit.

#include <unordered_map>
#include <vector>

#include "coordinator/work/broker.h"

namespace shoal::sim {

// Durations fall into steps, fifty to a decade, so that percentiles cost no memory.
class Durations {
 public:
  void add(Millis duration);
  int64_t count() const { return count_; }
  // In seconds, at most 5 % too little; 0 when there is none.
  double percentile(double share) const;
  const std::vector<int64_t>& steps() const { return steps_; }
  static double step_seconds(size_t step);  // Its lower end.
  static constexpr size_t kStepsPerDecade = 50;

 private:
  std::vector<int64_t> steps_ = std::vector<int64_t>(12 * kStepsPerDecade);
  int64_t count_ = 0;
};

// Device time, in seconds, by what came of it.
struct Spent {
  double useful = 0;  // Of the results that became their units' answers.
  double audit = 0;   // Copies to check, judge or test with known answers.
  double repeat = 0;  // Work done again: lies and the rechecks after them, late and extra results,
                      // and those that the broker did not take.
  double lost = 0;    // Left unfinished: crashes, returns, failures, jobs that ended.

  double all() const { return useful + audit + repeat + lost; }
  friend Spent operator-(const Spent& a, const Spent& b) {
    return {a.useful - b.useful, a.audit - b.audit, a.repeat - b.repeat, a.lost - b.lost};
  }
};

class Truth {
 public:
  // ---- What the world knows.
  void job(const JobSpec& spec);
  // A host finished the unit under this lease, after so long. `lie`: its digest is no right one.
  void computed(LeaseId lease, Millis time, bool lie);
  // It gave up after so long.
  void abandoned(Millis time) { spent_.lost += static_cast<double>(time.count) / 1000; }
  // The broker did not take the result: it was computed in vain.
  void refused(LeaseId lease);
  // Nobody works on this lease any more, without a result.
  void lost(UnitId unit, Millis now, bool silently);
  // Somebody does after all.
  void resumed(UnitId unit) { losses_.erase(unit.value); }
  static Digest right_digest(UnitId unit);

  // ---- What the broker says.
  void apply(const std::vector<Change>& changes, Millis now);

  // ---- What that comes to.
  int64_t units_cut() const { return static_cast<int64_t>(units_.size()) - 1; }
  int64_t units_done() const { return units_done_; }
  int64_t units_poisoned() const { return units_poisoned_; }
  int64_t units_lost() const;     // Neither done nor poisoned. Meaningful when all jobs are over.
  int64_t items_missing() const;  // Of all jobs, or too many; meaningful likewise.
  int64_t counted_twice() const { return counted_twice_; }
  int64_t confirmed_wrong() const { return confirmed_wrong_; }
  int64_t paid_wrong() const { return paid_wrong_; }
  int64_t lies() const { return lies_; }
  int64_t lies_rejected() const { return lies_rejected_; }
  int64_t honest_rejected() const { return honest_rejected_; }
  int64_t honest_quarantined() const { return honest_quarantined_; }
  int64_t convictions() const { return convictions_; }
  int64_t broken_rules() const { return broken_rules_; }
  int64_t results() const { return results_; }
  int64_t pending() const { return pending_; }
  double flops_done() const { return flops_done_; }
  const Spent& spent() const { return spent_; }
  const Durations& repairs() const { return repairs_; }
  const Durations& silent_repairs() const { return silent_repairs_; }
  const Durations& confirmations() const { return confirmations_; }
  void liar(HostId host, bool lies) { liar_[static_cast<size_t>(host.value)] = lies; }
  void hosts(size_t count) {
    liar_.resize(count + 1);
    quarantined_.resize(count + 1);
  }

 private:
  struct Unit {
    uint32_t items = 0;
    uint32_t task = 0;
    bool done = false, poisoned = false;
  };
  struct Lease {
    uint32_t unit = 0;
    uint32_t deciseconds = 0;  // Of computing.
    uint32_t result_minute = 0;
    bool lie = false, received = false, judged = false, refused = false;
    Purpose purpose = Purpose::kWork;
  };
  struct Task {
    int64_t items = 0, cut = 0, done = 0, poisoned = 0;
    double flops_per_item = 0;
    bool over = false;
  };
  struct Loss {
    Millis at;
    bool silently = false;
  };

  void one(const UnitCut& change);
  void one(const UnitWants&) {}
  void one(const LeaseGranted& change);
  void one(const LeaseExtended&) {}
  void one(const LeaseEnded&) {}
  void one(const ResultReceived& change);
  void one(const ResultSuspected&) {}
  void one(const ResultConfirmed& change);
  void one(const ResultRejected& change);
  void one(const UnitDone& change);
  void one(const UnitPoisoned& change);
  void one(const TaskChanged& change);
  void one(const JobChanged&) {}
  void one(const HostChanged& change);

  Millis now_{0};
  std::vector<Unit> units_ = std::vector<Unit>(1);  // By id: the broker counts from 1.
  std::vector<Lease> leases_ = std::vector<Lease>(1);
  std::vector<Task> tasks_ = std::vector<Task>(1);
  std::unordered_map<int64_t, Loss> losses_;
  std::vector<bool> liar_;
  std::vector<Millis> quarantined_;
  int64_t units_done_ = 0, units_poisoned_ = 0, counted_twice_ = 0, confirmed_wrong_ = 0;
  int64_t paid_wrong_ = 0, lies_ = 0, lies_rejected_ = 0, honest_rejected_ = 0;
  int64_t honest_quarantined_ = 0, convictions_ = 0, broken_rules_ = 0, results_ = 0, pending_ = 0;
  double flops_done_ = 0;
  Spent spent_;
  Durations repairs_, silent_repairs_, confirmations_;
};

}  // namespace shoal::sim
