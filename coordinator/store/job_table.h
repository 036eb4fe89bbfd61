#pragma once
// Jobs, their tasks, and which task waits for which. Rows in and out; decides nothing.

#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "coordinator/store/store.h"
#include "coordinator/work/broker.h"

namespace shoal {

struct StoredTask {
  TaskId id;
  JobId job;
  int64_t position = 0;  // In the job file, from 0.
  std::string name, model;
  TaskKind kind = TaskKind::kGenerate;
  TaskState state = TaskState::kWaiting;
  int64_t items = 0;
  Flops flops_per_item;
  Bytes memory;         // For one sequence.
  int64_t context = 0;  // Positions that its longest item needs.
  int64_t unit_items_max = 0;
  Millis unit_target;
  std::optional<Digest> items_digest;   // Empty while the task whose output they are is not done.
  std::optional<Digest> output_digest;  // Empty until it is done.
  std::vector<TaskId> after;
};

struct StoredJob {
  JobId id;
  std::string name;
  std::string spec;  // The job file as it was given.
  JobState state = JobState::kRunning;
  std::string reason;
  int priority = 0;
  Millis deadline, submitted_at, ended_at;  // ended_at is 0 while it lives.
  int64_t credit_parts = 0;                 // Confirmed.
  std::vector<StoredTask> tasks;            // By position.
};

std::string_view task_kind_name(TaskKind kind);

class JobTable {
 public:
  explicit JobTable(Store& store) : store_(store) {}  // The store outlives the table.

  // Fills in the ids of the job and its tasks. `after` of a task counts positions here, not ids,
  // and is replaced by ids.
  Result<void> add(StoredJob& job);
  Result<std::optional<StoredJob>> find(JobId id);
  Result<std::vector<StoredJob>> live();  // Oldest first.
  // Those with a task that is done and has no output file yet.
  Result<std::vector<JobId>> without_output();
  // The live ones and at most so many that ended, newest first.
  Result<std::vector<StoredJob>> list(int64_t ended_max);

  Result<void> set_state(JobId id, JobState state, const std::string& reason, Millis ended_at);
  Result<void> add_credit(JobId id, int64_t parts);
  Result<void> set_task_state(TaskId id, TaskState state);
  Result<void> set_items(TaskId id, const Digest& digest);
  Result<void> forget_items(TaskId id);
  Result<void> set_output(TaskId id, const Digest& digest);
  Result<void> forget_output(TaskId id);
  // Whether a file of this digest belongs to any task.
  Result<bool> has_file(const Digest& digest);

 private:
  Result<std::vector<StoredTask>> tasks_of(JobId job);

  Store& store_;
};

}  // namespace shoal
