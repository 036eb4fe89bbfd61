#include "coordinator/store/job_table.h"

#include <array>

#include "coordinator/store/columns.h"

namespace shoal {
namespace {

constexpr std::array<std::string_view, 5> kJobStates = {"running", "paused", "done", "cancelled",
                                                        "faulted"};
constexpr std::array<std::string_view, 4> kTaskStates = {"waiting", "running", "done", "stopped"};
constexpr std::array<std::string_view, 3> kKinds = {"generate", "score", "embed"};

ByteSpan bytes_of(const std::optional<Digest>& digest) {
  return digest ? ByteSpan(digest->bytes) : ByteSpan();
}

#define SHOAL_JOB_COLUMNS                                                                   \
  "id, name, spec, state, reason, priority, deadline_at_ms, submitted_at_ms, ended_at_ms, " \
  "credit_parts"

StoredJob job_of(const Query& query) {
  StoredJob job;
  job.id = JobId{query.integer(0)};
  job.name = query.text(1);
  job.spec = query.text(2);
  job.state = value_of<JobState>(kJobStates, query.text(3));
  job.reason = query.text(4);
  job.priority = static_cast<int>(query.integer(5));
  job.deadline = Millis{query.integer(6)};
  job.submitted_at = Millis{query.integer(7)};
  job.ended_at = Millis{query.integer(8)};
  job.credit_parts = query.integer(9);
  return job;
}

Result<std::vector<StoredJob>> all_of(Query query) {
  std::vector<StoredJob> jobs;
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return jobs;
    jobs.push_back(job_of(query));
  }
}

}  // namespace

std::string_view task_kind_name(TaskKind kind) { return word(kKinds, kind); }

Result<void> JobTable::add(StoredJob& job) {
  return store_.transaction([&]() -> Result<void> {
    Query query = store_.query(
        "INSERT INTO job (name, spec, state, reason, priority, deadline_at_ms, submitted_at_ms) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)");
    SHOAL_TRY(query.bind(job.name)
                  .bind(job.spec)
                  .bind(word(kJobStates, job.state))
                  .bind(job.reason)
                  .bind(int64_t{job.priority})
                  .bind(job.deadline.count)
                  .bind(job.submitted_at.count)
                  .run());
    job.id = JobId{store_.last_id()};
    for (StoredTask& task : job.tasks) {
      Query insert = store_.query(
          "INSERT INTO task (job_id, position, name, kind, model, state, item_count, "
          "flops_per_item, memory_bytes, context, unit_item_count_max, unit_target_ms, "
          "items_digest, output_digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, x'')");
      SHOAL_TRY(insert.bind(job.id.value)
                    .bind(task.position)
                    .bind(task.name)
                    .bind(word(kKinds, task.kind))
                    .bind(task.model)
                    .bind(word(kTaskStates, task.state))
                    .bind(task.items)
                    .bind(task.flops_per_item.count)
                    .bind(task.memory.count)
                    .bind(task.context)
                    .bind(task.unit_items_max)
                    .bind(task.unit_target.count)
                    .bind(bytes_of(task.items_digest))
                    .run());
      task.id = TaskId{store_.last_id()};
      task.job = job.id;
    }
    for (StoredTask& task : job.tasks) {
      for (TaskId& after : task.after) {
        after = job.tasks.at(static_cast<size_t>(after.value)).id;
        Query insert = store_.query("INSERT INTO task_edge (task_id, after_task_id) VALUES (?, ?)");
        SHOAL_TRY(insert.bind(task.id.value).bind(after.value).run());
      }
    }
    return {};
  });
}

Result<std::vector<StoredTask>> JobTable::tasks_of(JobId job) {
  std::vector<StoredTask> tasks;
  {
    Query query = store_.query(
        "SELECT id, position, name, kind, model, state, item_count, flops_per_item, memory_bytes, "
        "context, unit_item_count_max, unit_target_ms, items_digest, output_digest FROM task "
        "WHERE job_id = ? ORDER BY position");
    query.bind(job.value);
    while (true) {
      SHOAL_TRY_ASSIGN(some, query.row());
      if (!some) break;
      StoredTask task;
      task.id = TaskId{query.integer(0)};
      task.job = job;
      task.position = query.integer(1);
      task.name = query.text(2);
      task.kind = value_of<TaskKind>(kKinds, query.text(3));
      task.model = query.text(4);
      task.state = value_of<TaskState>(kTaskStates, query.text(5));
      task.items = query.integer(6);
      task.flops_per_item = Flops{query.integer(7)};
      task.memory = Bytes{query.integer(8)};
      task.context = query.integer(9);
      task.unit_items_max = query.integer(10);
      task.unit_target = Millis{query.integer(11)};
      SHOAL_TRY_ASSIGN(items, digest_of_column(query, 12));
      SHOAL_TRY_ASSIGN(output, digest_of_column(query, 13));
      task.items_digest = items;
      task.output_digest = output;
      tasks.push_back(std::move(task));
    }
  }
  for (StoredTask& task : tasks) {
    Query query = store_.query("SELECT after_task_id FROM task_edge WHERE task_id = ?");
    query.bind(task.id.value);
    while (true) {
      SHOAL_TRY_ASSIGN(some, query.row());
      if (!some) break;
      task.after.push_back(TaskId{query.integer(0)});
    }
  }
  return tasks;
}

Result<std::optional<StoredJob>> JobTable::find(JobId id) {
  std::optional<StoredJob> job;
  {
    Query query = store_.query("SELECT " SHOAL_JOB_COLUMNS " FROM job WHERE id = ?");
    SHOAL_TRY_ASSIGN(some, query.bind(id.value).row());
    if (!some) return job;
    job = job_of(query);
  }
  SHOAL_TRY_ASSIGN(tasks, tasks_of(id));
  job->tasks = std::move(tasks);
  return job;
}

Result<std::vector<StoredJob>> JobTable::live() {
  SHOAL_TRY_ASSIGN(jobs, all_of(store_.query("SELECT " SHOAL_JOB_COLUMNS
                                             " FROM job WHERE ended_at_ms = 0 ORDER BY id")));
  for (StoredJob& job : jobs) {
    SHOAL_TRY_ASSIGN(tasks, tasks_of(job.id));
    job.tasks = std::move(tasks);
  }
  return jobs;
}

Result<std::vector<JobId>> JobTable::without_output() {
  Query query =
      store_.query("SELECT DISTINCT job_id FROM task WHERE state = 'done' AND output_digest = x''");
  std::vector<JobId> jobs;
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return jobs;
    jobs.push_back(JobId{query.integer(0)});
  }
}

Result<std::vector<StoredJob>> JobTable::list(int64_t ended_max) {
  Query query = store_.query("SELECT " SHOAL_JOB_COLUMNS
                             " FROM job WHERE ended_at_ms = 0 OR id IN (SELECT id FROM job WHERE "
                             "ended_at_ms <> 0 ORDER BY id DESC LIMIT ?) ORDER BY id DESC");
  query.bind(ended_max);
  SHOAL_TRY_ASSIGN(jobs, all_of(std::move(query)));
  for (StoredJob& job : jobs) {
    SHOAL_TRY_ASSIGN(tasks, tasks_of(job.id));
    job.tasks = std::move(tasks);
  }
  return jobs;
}

Result<void> JobTable::set_state(JobId id, JobState state, const std::string& reason,
                                 Millis ended_at) {
  Query query = store_.query("UPDATE job SET state = ?, reason = ?, ended_at_ms = ? WHERE id = ?");
  return query.bind(word(kJobStates, state)).bind(reason).bind(ended_at.count).bind(id.value).run();
}

Result<void> JobTable::add_credit(JobId id, int64_t parts) {
  Query query = store_.query("UPDATE job SET credit_parts = credit_parts + ? WHERE id = ?");
  return query.bind(parts).bind(id.value).run();
}

Result<void> JobTable::set_task_state(TaskId id, TaskState state) {
  Query query = store_.query("UPDATE task SET state = ? WHERE id = ?");
  return query.bind(word(kTaskStates, state)).bind(id.value).run();
}

Result<void> JobTable::set_items(TaskId id, const Digest& digest) {
  Query query = store_.query("UPDATE task SET items_digest = ? WHERE id = ?");
  return query.bind(ByteSpan(digest.bytes)).bind(id.value).run();
}

Result<void> JobTable::forget_items(TaskId id) {
  Query query = store_.query("UPDATE task SET items_digest = x'' WHERE id = ?");
  return query.bind(id.value).run();
}

Result<void> JobTable::set_output(TaskId id, const Digest& digest) {
  Query query = store_.query("UPDATE task SET output_digest = ? WHERE id = ?");
  return query.bind(ByteSpan(digest.bytes)).bind(id.value).run();
}

Result<void> JobTable::forget_output(TaskId id) {
  Query query = store_.query("UPDATE task SET output_digest = x'' WHERE id = ?");
  return query.bind(id.value).run();
}

Result<bool> JobTable::has_file(const Digest& digest) {
  Query query = store_.query("SELECT 1 FROM task WHERE items_digest = ?1 OR output_digest = ?1");
  return query.bind(ByteSpan(digest.bytes)).row();
}

}  // namespace shoal
