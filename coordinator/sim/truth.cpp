#include "coordinator/sim/truth.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace shoal::sim {
namespace {

size_t index(int64_t id) { return static_cast<size_t>(id); }

}  // namespace

void Durations::add(Millis duration) {
  const double ms = static_cast<double>(std::max<int64_t>(duration.count, 1));
  const auto step = static_cast<size_t>(std::log10(ms) * kStepsPerDecade);
  ++steps_[std::min(step, steps_.size() - 1)];
  ++count_;
}

double Durations::step_seconds(size_t step) {
  return std::pow(10, static_cast<double>(step) / kStepsPerDecade) / 1000;
}

double Durations::percentile(double share) const {
  if (count_ == 0) return 0;
  const auto wanted = static_cast<int64_t>(std::ceil(share * static_cast<double>(count_)));
  int64_t seen = 0;
  for (size_t step = 0; step < steps_.size(); ++step) {
    seen += steps_[step];
    if (seen >= std::max<int64_t>(wanted, 1)) return step_seconds(step);
  }
  return step_seconds(steps_.size());
}

Digest Truth::right_digest(UnitId unit) {
  Digest digest;
  std::memcpy(digest.bytes.data(), &unit.value, sizeof unit.value);
  return digest;
}

void Truth::job(const JobSpec& spec) {
  for (const TaskSpec& task : spec.tasks) {
    SHOAL_CHECK(index(task.task.value) == tasks_.size());
    tasks_.push_back(
        {.items = task.items, .flops_per_item = static_cast<double>(task.flops_per_item.count)});
  }
}

void Truth::computed(LeaseId id, Millis time, bool lie) {
  Lease& lease = leases_[index(id.value)];
  lease.deciseconds = static_cast<uint32_t>(time.count / 100);
  lease.lie = lie;
  lies_ += lie;
}

void Truth::refused(LeaseId id) {
  Lease& lease = leases_[index(id.value)];
  if (lease.received || lease.refused) return;
  lease.refused = true;
  spent_.repeat += lease.deciseconds / 10.0;
}

void Truth::lost(UnitId unit, Millis now, bool silently) {
  if (!units_[index(unit.value)].done) losses_.try_emplace(unit.value, Loss{now, silently});
}

void Truth::apply(const std::vector<Change>& changes, Millis now) {
  now_ = now;
  for (const Change& change : changes) {
    std::visit([this](const auto& each) { one(each); }, change);
  }
}

void Truth::one(const UnitCut& change) {
  broken_rules_ += index(change.unit.value) != units_.size();
  Task& task = tasks_[index(change.task.value)];
  // A range that begins anywhere but at the last one's end is counted twice, or never.
  if (change.first_item != task.cut) ++counted_twice_;
  task.cut = change.first_item + change.items;
  if (task.cut > task.items) ++counted_twice_;
  units_.push_back({.items = static_cast<uint32_t>(change.items),
                    .task = static_cast<uint32_t>(change.task.value)});
}

void Truth::one(const LeaseGranted& change) {
  broken_rules_ += index(change.lease.value) != leases_.size();
  leases_.push_back({.unit = static_cast<uint32_t>(change.unit.value), .purpose = change.purpose});
  const auto loss = losses_.find(change.unit.value);
  if (loss == losses_.end()) return;
  const Millis time = change.at - loss->second.at;
  repairs_.add(time);
  if (loss->second.silently) silent_repairs_.add(time);
  losses_.erase(loss);
}

void Truth::one(const ResultReceived& change) {
  Lease& lease = leases_[index(change.lease.value)];
  broken_rules_ += lease.received || index(change.unit.value) != lease.unit;
  lease.received = true;
  losses_.erase(change.unit.value);
  lease.result_minute = static_cast<uint32_t>(change.at.count / 60'000);
  ++results_;
  ++pending_;
}

void Truth::one(const ResultConfirmed& change) {
  Lease& lease = leases_[index(change.lease.value)];
  // Paid twice is counted twice.
  counted_twice_ += lease.judged;
  broken_rules_ += !lease.received;
  lease.judged = true;
  paid_wrong_ += lease.lie;
  --pending_;
  confirmations_.add(now_ - Millis{int64_t{lease.result_minute} * 60'000});
  const double seconds = lease.deciseconds / 10.0;
  const bool check = lease.purpose == Purpose::kAudit || lease.purpose == Purpose::kJudge ||
                     lease.purpose == Purpose::kKnown;
  // The one that becomes its unit's answer is moved to `useful` by UnitDone, which follows.
  (check ? spent_.audit : spent_.repeat) += seconds;
}

void Truth::one(const ResultRejected& change) {
  Lease& lease = leases_[index(change.lease.value)];
  counted_twice_ += lease.judged;
  lease.judged = true;
  --pending_;
  if (lease.lie) {
    ++lies_rejected_;
  } else {
    ++honest_rejected_;
  }
  spent_.repeat += lease.deciseconds / 10.0;
}

void Truth::one(const UnitDone& change) {
  Unit& unit = units_[index(change.unit.value)];
  counted_twice_ += unit.done || unit.poisoned;
  if (!unit.done) ++units_done_;
  unit.done = true;
  losses_.erase(change.unit.value);
  confirmed_wrong_ += change.digest != right_digest(change.unit);
  const Task& task = tasks_[unit.task];
  tasks_[unit.task].done += unit.items;
  flops_done_ += unit.items * task.flops_per_item;
  const Lease& lease = leases_[index(change.lease.value)];
  broken_rules_ += !lease.judged || index(change.unit.value) != lease.unit;
  const double seconds = lease.deciseconds / 10.0;
  const bool check = lease.purpose == Purpose::kAudit || lease.purpose == Purpose::kJudge ||
                     lease.purpose == Purpose::kKnown;
  (check ? spent_.audit : spent_.repeat) -= seconds;
  spent_.useful += seconds;
}

void Truth::one(const UnitPoisoned& change) {
  Unit& unit = units_[index(change.unit.value)];
  counted_twice_ += unit.done || unit.poisoned;
  unit.poisoned = true;
  losses_.erase(change.unit.value);
  tasks_[unit.task].poisoned += unit.items;
  ++units_poisoned_;
}

void Truth::one(const TaskChanged& change) {
  if (change.state == TaskState::kDone) tasks_[index(change.task.value)].over = true;
}

void Truth::one(const HostChanged& change) {
  Millis& known = quarantined_[index(change.host.value)];
  if (change.quarantined_until <= known) return;
  known = change.quarantined_until;
  ++convictions_;
  honest_quarantined_ += !liar_[index(change.host.value)];
}

int64_t Truth::units_lost() const {
  return std::count_if(units_.begin() + 1, units_.end(),
                       [](const Unit& unit) { return !unit.done && !unit.poisoned; });
}

int64_t Truth::items_missing() const {
  int64_t missing = 0;
  for (size_t i = 1; i < tasks_.size(); ++i) {
    const Task& task = tasks_[i];
    missing += std::abs(task.items - task.done - task.poisoned);
  }
  return missing;
}

}  // namespace shoal::sim
