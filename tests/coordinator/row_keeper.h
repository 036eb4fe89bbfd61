#pragma once
// Holds what a store would hold of a broker's changes, and says when a change could not be stored:
// an id twice, a result twice, a unit done twice. A broker can be made again from its rows.

#include <map>
#include <string>
#include <vector>

#include "coordinator/work/broker.h"

namespace shoal {

class RowKeeper {
 public:
  struct UnitState {
    UnitRow row;
    bool poisoned = false;
    Digest digest;
  };

  void host(const HostFacts& facts) { hosts_[facts.host].facts = facts; }
  void job(const JobSpec& spec);
  void apply(const std::vector<Change>& changes);
  BrokerRows rows() const;

  // What went wrong, in order; empty when nothing did.
  const std::vector<std::string>& faults() const { return faults_; }

  const std::map<UnitId, UnitState>& units() const { return units_; }
  const std::map<LeaseId, LeaseRow>& leases() const { return leases_; }
  const std::map<JobId, JobRow>& jobs() const { return jobs_; }
  const std::map<TaskId, TaskRow>& tasks() const { return tasks_; }
  const std::map<HostId, KnownHostRow>& hosts() const { return hosts_; }
  RejectReason reason(LeaseId lease) const { return reasons_.at(lease); }
  // All items of the task are in exactly one unit that is done or poisoned.
  bool complete(TaskId task) const;

 private:
  void one(const UnitCut& change);
  void one(const UnitWants& change);
  void one(const LeaseGranted& change);
  void one(const LeaseExtended& change);
  void one(const LeaseEnded& change);
  void one(const ResultReceived& change);
  void one(const ResultSuspected& change);
  void one(const ResultConfirmed& change);
  void one(const ResultRejected& change);
  void one(const UnitDone& change);
  void one(const UnitPoisoned& change);
  void one(const TaskChanged& change);
  void one(const JobChanged& change);
  void one(const HostChanged& change);
  void fault(const char* what, int64_t id);
  LeaseRow* result_of(LeaseId lease, const char* what);

  std::map<HostId, KnownHostRow> hosts_;
  std::map<JobId, JobRow> jobs_;
  std::map<TaskId, TaskRow> tasks_;
  std::map<TaskId, int64_t> items_;
  std::map<UnitId, UnitState> units_;
  std::map<LeaseId, LeaseRow> leases_;
  std::map<LeaseId, RejectReason> reasons_;
  std::vector<std::string> faults_;
};

}  // namespace shoal
