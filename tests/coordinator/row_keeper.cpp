#include "tests/coordinator/row_keeper.h"

#include <set>

namespace shoal {

void RowKeeper::job(const JobSpec& spec) {
  jobs_[spec.job].spec = spec;
  for (const TaskSpec& task : spec.tasks) {
    tasks_[task.task].task = task.task;
    items_[task.task] = task.items;
  }
}

void RowKeeper::apply(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    std::visit([this](const auto& each) { one(each); }, change);
  }
}

void RowKeeper::fault(const char* what, int64_t id) {
  faults_.push_back(std::string(what) + " " + std::to_string(id));
}

void RowKeeper::one(const UnitCut& change) {
  if (!tasks_.contains(change.task)) return fault("unit of no task", change.unit.value);
  TaskRow& task = tasks_[change.task];
  if (change.first_item != task.items_cut || change.items <= 0) {
    fault("the items of a unit are no continuation", change.unit.value);
  }
  task.items_cut = change.first_item + change.items;
  if (task.items_cut > items_[change.task]) fault("more items than there are", change.unit.value);
  if (!units_.empty() && change.unit <= units_.rbegin()->first) {
    fault("a unit's id is no new one", change.unit.value);
  }
  units_[change.unit].row.cut = change;
}

void RowKeeper::one(const UnitWants& change) { units_.at(change.unit).row.want = change.want; }

void RowKeeper::one(const LeaseGranted& change) {
  if (!leases_.empty() && change.lease <= leases_.rbegin()->first) {
    fault("a lease's id is no new one", change.lease.value);
  }
  if (!units_.contains(change.unit)) fault("a lease on no unit", change.lease.value);
  if (change.until <= change.at) fault("a lease ends as it begins", change.lease.value);
  leases_[change.lease].granted = change;
}

void RowKeeper::one(const LeaseExtended& change) {
  if (!leases_.at(change.lease).live) fault("an ended lease is extended", change.lease.value);
  leases_.at(change.lease).granted.until = change.until;
}

void RowKeeper::one(const LeaseEnded& change) {
  LeaseRow& lease = leases_.at(change.lease);
  if (!lease.live) fault("a lease ends twice", change.lease.value);
  lease.live = false;
  lease.why = change.why;
}

void RowKeeper::one(const ResultReceived& change) {
  LeaseRow& lease = leases_.at(change.lease);
  if (lease.state != ResultState::kNone) fault("a second result", change.lease.value);
  if (lease.live) fault("a result under a lease that still lives", change.lease.value);
  if (lease.granted.unit != change.unit) fault("a result of another unit", change.lease.value);
  if (change.serial == 0) fault("a result without a place", change.lease.value);
  lease.state = change.state;
  lease.digest = change.digest;
  lease.serial = change.serial;
  lease.result_at = change.at;
  KnownHostRow& host = hosts_.at(lease.granted.host);
  host.serial = std::max(host.serial, change.serial);
}

LeaseRow* RowKeeper::result_of(LeaseId id, const char* what) {
  LeaseRow& lease = leases_.at(id);
  if (lease.state != ResultState::kPending && lease.state != ResultState::kSuspect) {
    fault(what, id.value);
    return nullptr;
  }
  return &lease;
}

void RowKeeper::one(const ResultSuspected& change) {
  LeaseRow* const lease = result_of(change.lease, "a result is suspected that is not pending");
  if (lease != nullptr) lease->state = ResultState::kSuspect;
}

void RowKeeper::one(const ResultConfirmed& change) {
  LeaseRow* const lease = result_of(change.lease, "a result is judged twice");
  if (lease == nullptr) return;
  lease->state = ResultState::kConfirmed;
  const UnitState& unit = units_.at(change.unit);
  if (unit.poisoned) fault("a result of a poisoned unit is confirmed", change.lease.value);
  if (unit.row.done && unit.digest != lease->digest) {
    fault("a second digest of a unit is confirmed", change.lease.value);
  }
  if (change.host != lease->granted.host) fault("credit goes to another", change.lease.value);
}

void RowKeeper::one(const ResultRejected& change) {
  LeaseRow* const lease = result_of(change.lease, "a result is judged twice");
  if (lease == nullptr) return;
  lease->state = ResultState::kRejected;
  reasons_[change.lease] = change.reason;
}

void RowKeeper::one(const UnitDone& change) {
  UnitState& unit = units_.at(change.unit);
  if (unit.row.done || unit.poisoned) fault("a unit is done twice", change.unit.value);
  unit.row.done = true;
  unit.digest = change.digest;
  const LeaseRow& lease = leases_.at(change.lease);
  if (lease.state != ResultState::kConfirmed || lease.digest != change.digest) {
    fault("a unit is done by no confirmed result", change.unit.value);
  }
  for (const auto& [id, each] : leases_) {
    if (each.granted.unit == change.unit && each.state == ResultState::kConfirmed &&
        each.digest != change.digest) {
      fault("two digests of a unit are confirmed", change.unit.value);
    }
  }
  tasks_.at(change.task).items_done += unit.row.cut.items;
}

void RowKeeper::one(const UnitPoisoned& change) {
  UnitState& unit = units_.at(change.unit);
  if (unit.row.done || unit.poisoned) fault("a done unit is poisoned", change.unit.value);
  unit.poisoned = true;
  tasks_.at(change.task).items_poisoned += unit.row.cut.items;
  ++tasks_.at(change.task).units_poisoned;
}

void RowKeeper::one(const TaskChanged& change) {
  TaskRow& task = tasks_.at(change.task);
  if (task.state == TaskState::kDone) fault("a done task changes", change.task.value);
  task.state = change.state;
  if (change.state == TaskState::kDone && !complete(change.task)) {
    fault("a task is done that is not complete", change.task.value);
  }
}

void RowKeeper::one(const JobChanged& change) {
  JobRow& job = jobs_.at(change.job);
  if (job.state != JobState::kRunning && job.state != JobState::kPaused) {
    fault("a job that is over changes", change.job.value);
  }
  job.state = change.state;
}

void RowKeeper::one(const HostChanged& change) { hosts_.at(change.host).record = change; }

bool RowKeeper::complete(TaskId task) const {
  int64_t next = 0;
  for (const auto& [id, unit] : units_) {
    if (unit.row.cut.task != task) continue;
    if (unit.row.cut.first_item != next || (!unit.row.done && !unit.poisoned)) return false;
    next += unit.row.cut.items;
  }
  return next == items_.at(task);
}

BrokerRows RowKeeper::rows() const {
  BrokerRows rows;
  std::set<UnitId> kept, with_result;
  for (const auto& [id, lease] : leases_) {
    const bool pending =
        lease.state == ResultState::kPending || lease.state == ResultState::kSuspect;
    if (lease.live || pending) kept.insert(lease.granted.unit);
    if (pending) with_result.insert(lease.granted.unit);
  }
  std::set<JobId> jobs_kept;
  std::set<TaskId> tasks_kept;
  const auto runs = [](JobState state) {
    return state == JobState::kRunning || state == JobState::kPaused;
  };
  for (const auto& [id, job] : jobs_) {
    bool keep = runs(job.state);
    for (const TaskSpec& task : job.spec.tasks) {
      for (const auto& [unit, state] : units_) {
        keep |= state.row.cut.task == task.task && kept.contains(unit);
      }
    }
    if (!keep) continue;
    rows.jobs.push_back(job);
    for (const TaskSpec& task : job.spec.tasks) {
      tasks_kept.insert(task.task);
      rows.tasks.push_back(tasks_.at(task.task));
    }
    jobs_kept.insert(id);
  }
  for (const auto& [id, host] : hosts_) rows.hosts.push_back(host);
  std::set<UnitId> units_given;
  for (const auto& [id, unit] : units_) {
    if (!tasks_kept.contains(unit.row.cut.task)) continue;
    if (!kept.contains(id) && (unit.row.done || unit.poisoned)) continue;
    rows.units.push_back(unit.row);
    units_given.insert(id);
  }
  for (const auto& [id, lease] : leases_) {
    if (units_given.contains(lease.granted.unit)) rows.leases.push_back(lease);
  }
  if (!units_.empty()) rows.last_unit = units_.rbegin()->first;
  if (!leases_.empty()) rows.last_lease = leases_.rbegin()->first;
  return rows;
}

}  // namespace shoal
