#pragma once
// Units, the leases on them, what came back, and what the broker thinks of hosts: its changes as
// rows, and the rows from which it begins again. Decides nothing.

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "coordinator/store/store.h"
#include "coordinator/work/broker.h"

namespace shoal {

// The ids of units' leases begin here: the ledger knows them beside those of stages.
constexpr int64_t kUnitLeasesBegin = int64_t{1} << 40;

// A lease with its unit, as the rows have them.
struct FoundLease {
  LeaseRow row;
  UnitCut cut;
  bool unit_done = false;
  Digest unit_digest;  // Of a done one.
};

// A result whose bytes were in a file.
struct LargeResult {
  UnitId unit;
  Digest digest;
};

struct TaskFigures {  // In items.
  int64_t cut = 0, done = 0, poisoned = 0, pending = 0, leased = 0;
  int64_t units_poisoned = 0;
};

// A unit of a task that is done or poisoned, with the bytes of its result.
struct EndedUnit {
  UnitCut cut;
  bool done = false;
  Digest digest;
  ByteVector bytes;  // Empty when they are in a file.
};

class UnitTable {
 public:
  explicit UnitTable(Store& store) : store_(store) {}  // The store outlives the table.

  // Those of the changes that concern units, leases, results and hosts. What happens to one row is
  // written once. REQUIRES: inside a transaction. `serials`: the greatest of each host's results.
  Result<void> write(std::span<const Change> changes,
                     std::span<const std::pair<HostId, uint64_t>> serials);

  // The bytes of a result; `bytes` is empty when they are in a file. Nothing when they are known.
  Result<void> add_result(UnitId unit, const Digest& digest, int64_t size, ByteSpan bytes);
  // What is removed here and was in a file is told: the file is of no use any more.
  using Removed = Result<std::vector<LargeResult>>;
  Removed remove_other_results(UnitId unit, const Digest& digest);  // All of the unit's but this.
  Removed remove_results(UnitId unit);
  Removed remove_results(TaskId task);
  Removed remove_undone_results(JobId job);  // Those of its units that are not done.
  Result<bool> has_result_file(UnitId unit, const Digest& digest);

  Result<std::optional<JobId>> job_of(UnitId unit);
  Result<std::optional<FoundLease>> find_lease(LeaseId id);
  Result<std::vector<HostId>> hosts_with_results(UnitId unit);
  Result<TaskFigures> figures(TaskId task);
  // The parts of it: counts over all of its units; and what is pending and leased of open ones,
  // which are few, put in.
  Result<TaskFigures> counts(TaskId task);
  Result<void> look_at_open(TaskId task, TaskFigures& figures);
  Result<int64_t> items_of(UnitId unit);
  // In order of their items, at most so many, those with items from `first_item` on.
  Result<std::vector<EndedUnit>> ended_units(TaskId task, int64_t first_item, int64_t count_max);
  // A first result for a unit that is done already.
  Result<void> add_late_result(LeaseId lease, const Digest& digest, bool agrees, Millis at);
  // Poisoned units are open again, and who failed at one may try it again.
  Result<void> reopen_poisoned(TaskId task);
  // Open again is also what is made of items that will be others: those of open units of `source`,
  // the task that they come from, if there is one; and what has no bytes any more. Who computed
  // that before may do so again, and is paid again.
  Removed reopen_changed(TaskId task, std::optional<TaskId> source);

  // Those that are open, and of their leases those that were confirmed for what they ask.
  Result<void> load_open(TaskId task, BrokerRows& rows);
  // Hosts without their facts; no jobs, no tasks.
  Result<void> load(BrokerRows& rows);

 private:
  Result<void> insert_lease(const LeaseRow& lease);

  Store& store_;
};

}  // namespace shoal
