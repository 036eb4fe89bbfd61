#pragma once
// The broker made durable: takes what hosts and administrators ask, lets coordinator/work decide,
// stores each turn's changes in one transaction, and only then answers. Keeps what jobs are made of
// and what comes out as files in DATA/jobs. Knows no interface.
//
// Belongs to the coordinator's one thread.

#include <kj/async.h>
#include <kj/timer.h>

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "coordinator/jobs/items_file.h"
#include "coordinator/jobs/job_file.h"
#include "coordinator/jobs/options.h"
#include "coordinator/jobs/outputs.h"
#include "coordinator/session/host_records.h"
#include "coordinator/session/journal.h"
#include "coordinator/session/ledger.h"
#include "coordinator/session/live_model.h"
#include "coordinator/session/pool.h"
#include "coordinator/store/host_table.h"
#include "coordinator/store/job_table.h"
#include "coordinator/store/shard_store.h"
#include "coordinator/store/unit_table.h"
#include "schema/message.h"
#include "schema/work.capnp.h"

namespace shoal {

// What the service uses. All of it outlives the service.
struct JobNeeds {
  Store& store;
  kj::Timer& timer;
  const Clock& clock;
  Random& random;
  Pool& pool;
  HostTable& hosts;
  SessionTable& sessions;
  Ledger& ledger;
  Journal& journal;
  const bool& stopping;
  JobOptions options;
  int64_t rows_max = 64;  // Of a step.
  std::filesystem::path folder;
  std::function<Result<std::shared_ptr<const LiveModel>>(const std::string& name)> model;
};

// A task of a job that lives, as units are made of it.
struct LiveTask {
  TaskId id;
  JobId job;
  JobTask spec;
  JobClass job_class;
  std::string group;  // Whose hosts alone may work on it; empty: all may.
  JobClassId class_id;
  std::shared_ptr<const LiveModel> model;
  std::vector<int32_t> stop;
  int64_t context = 1;
  Bytes memory;
  Flops flops_per_item;
  std::shared_ptr<const ItemsFile> items;  // Null while the task whose output they are is not done.
};

// A unit that a device was given, with all that it is told.
struct LentUnit {
  Grant grant;
  Millis until_in;
  std::shared_ptr<const LiveTask> task;
  std::vector<WorkItem> items;
  int64_t sequences = 1;
  int64_t rows_max = 1;
};
struct LeaseReply {
  std::vector<LentUnit> units;
  Message why;  // When there are none.
  Millis ask_again_in;
};

struct RenewReply {
  std::vector<Millis> until_in;  // 0: over.
};

struct SubmitReply {
  rpc::UnitDesk::Outcome outcome = rpc::UnitDesk::Outcome::ACCEPTED;
  Message why;
};

// A job on its way in: what its tasks are made of.
struct NewTask {
  ItemSums sums;  // Of a task with a file.
  std::optional<Digest> items;
};
struct NewJob {
  std::string spec;
  JobFile file;
  std::vector<NewTask> tasks;
  std::vector<std::shared_ptr<const LiveModel>> models;  // By task.
};

struct ShownTask {
  StoredTask row;
  TaskFigures figures;
};
struct ShownJob {
  StoredJob job;
  bool begun = false;  // A unit of it was cut.
  std::vector<ShownTask> tasks;
  std::optional<Millis> left;  // At the rate of the last minutes.
  std::string waits;  // Why nobody works on it though it runs; empty: somebody does or may.
};

struct TaskOutput {
  std::filesystem::path path;
  bool temporary = false;  // To be removed after use.
  std::optional<Digest> digest;
  int64_t items = 0;
};

enum class JobOrder { kPause, kResume, kCancel, kRetry };

class OutputMaker;  // makers.h
class ItemsMaker;

class JobService final : public HostRecords, private kj::TaskSet::ErrorHandler {
 public:
  static Result<std::unique_ptr<JobService>> open(JobNeeds needs);
  ~JobService() noexcept(false);
  KJ_DISALLOW_COPY(JobService);

  // Hosts. What the pool knows of a host's devices is looked up there.
  // Without an address or an owner those that were told before stay.
  void host_known(HostId host, bool trusted, bool banned, std::optional<uint64_t> address_block,
                  std::optional<OwnerId> owner = {});
  void devices_changed(HostId host);
  void host_gone(HostId host);

  // What stages of sessions were found to be counts for units as well.
  HostRecord record_of(HostId host) const override;
  void stage_checked(HostId host, bool right) override;
  bool units_wait() const override { return broker_.units_wait(); }

  // What hosts ask. Each answer comes after the commit of all that it depends on; a failed promise
  // says that nothing of it may be relied on, and the same call can be made again.
  // What the device was given and its host never spoke of comes again first: the answer was lost.
  // `again`: so does all that it holds, with keys for its worker of now.
  kj::Promise<LeaseReply> lease(const DevicePlace& place, Millis wanted, uint32_t count_max,
                                bool again);
  kj::Promise<RenewReply> renew(const DevicePlace& host, std::vector<LeaseId> leases);
  // `is_failure`: the unit ended with an error; else it is nobody's.
  kj::Promise<void> give_back(HostId host, LeaseId lease, bool is_failure);
  kj::Promise<SubmitReply> submit(HostId host, LeaseId lease, rpc::UnitOutput::Reader output);

  // What administrators ask.
  const std::filesystem::path& folder() const { return needs_.folder; }
  std::string new_file_name();  // For what an upload writes before it has a name.
  Result<JobId> submit_job(NewJob job);
  kj::Promise<void> change_job(JobId job, JobOrder order);
  Result<ShownJob> show(JobId job);
  Result<std::vector<ShownJob>> list(int64_t ended_max);
  Result<std::vector<EventRow>> events(JobId job);
  // Of `task`; empty: of the last one.
  kj::Promise<TaskOutput> output(JobId job, std::string task);
  bool uses_model(const std::string& name) const;

  // Everything that was decided is stored.
  kj::Promise<void> stored();

  explicit JobService(JobNeeds needs);  // For open() alone.

 private:
  // A lease that holds.
  struct LiveLease {
    UnitId unit;
    TaskId task;
    HostId host;
    DeviceId device;
    int64_t first_item = 0, items = 0;
    bool spoken_of = false;   // Its host named it: it knows that it has it.
    uint64_t told_login = 0;  // Whose device was told of it last, 0: none yet,
    int told = 0;             // and how often that was.
  };
  // A device that is there, and what its units hold of it.
  struct LentDevice {
    DevicePlace place;
    DeviceId id;
    Pool::Hold hold;
    Bytes held;
    std::map<TaskId, std::set<LeaseId>> leases;
    std::map<TaskId, int64_t>
        sequences;  // As first said: another number would load the model anew.
  };
  // A result on its way into the store.
  struct Arrived {
    LeaseWork work;
    TaskId task;
    ByteVector bytes;  // Canonical; empty when nobody will ask for them.
  };
  // A task that is done, and whose output, or what others are to have of it, is not written yet.
  struct Unfinished {
    Millis due, wait;  // It failed: it is tried again then, after so long.
    bool running = false;
    std::unique_ptr<OutputMaker> output;  // What is being written.
    std::unique_ptr<ItemsMaker> items;
  };
  struct RateSample {
    Millis at;
    double flops_left = 0;
  };

  Millis now() const;
  Result<void> restore();
  using LiveTasks = std::vector<std::shared_ptr<const LiveTask>>;
  Result<LiveTasks> tasks_of(const StoredJob& job);
  void take_up_job(const StoredJob& job, const LiveTasks& tasks);
  Result<void> fault_job(StoredJob& job, const Error& why);
  Result<void> add_task_rows(const StoredJob& job, BrokerRows& rows);
  JobSpec broker_spec(const StoredJob& job);
  JobClassId class_id(const JobClass& job_class, const std::string& group);
  std::vector<JobClassId> denied_classes(HostId host) const;
  bool same_owner(HostId a, HostId b) const;
  void take_back_foreign(HostId host);
  DeviceFacts facts_of(const PoolDevice& device, const LentDevice& lent) const;

  LentDevice* find_device(const DevicePlace& place);
  LentDevice* find_device(DeviceId id);
  void hold_for(LentDevice& device, TaskId task, LeaseId lease);
  void let_go(LeaseId lease, const LiveLease& live);
  void renew_hold(LentDevice& device);
  std::vector<Grant> held_grants(LentDevice& device, size_t count_max, bool all);
  void end_lease(LeaseId lease);
  Result<LeaseReply> fill_in(const std::vector<Grant>& grants, const LeaseAnswer& answer,
                             DeviceId device);
  Message why(NoWork why, Millis ask_again) const;
  Result<std::optional<FoundLease>> look_up(HostId host, LeaseId lease);
  Result<std::shared_ptr<const LiveTask>> task_of_ended(const FoundLease& found);
  Result<SubmitReply> late_submit(const FoundLease& found, const Digest& digest,
                                  const LeaseWork& work);

  // The batch.
  void note_fresh();
  void schedule();
  void flush();
  Result<void> write(std::span<const Change> changes);
  Result<void> write_ledger(std::span<const Change> changes);
  void after_commit(std::vector<Change> changes);
  void arm_timer();
  void require_store() const;
  void taskFailed(kj::Exception&& exception) override;

  void finish_tasks();
  kj::Promise<void> finish_task(TaskId id);
  Result<bool> finish_some(TaskId id, Unfinished& state);
  Result<void> begin_next(TaskId id, Unfinished& state);
  Result<void> take_output(TaskId id, Unfinished& state);
  Result<void> take_items(Unfinished& state);
  kj::Promise<bool> write_all(OutputMaker& maker, JobId job, TaskId task);
  Result<std::vector<UnitId>> units_without_file(TaskId task);
  Result<void> fail_for_lost(TaskId id, UnitId unit);
  Result<TaskFigures> figures(TaskId task);
  void count(std::span<const Change> changes);
  void note_useless(std::span<const LargeResult> results);
  void remove_useless();
  void forget_jobs();
  Result<std::shared_ptr<const LiveTask>> task_of(const StoredJob& job, const StoredTask& row);
  Result<void> retry(StoredJob job);
  Result<ShownJob> shown(StoredJob job);
  std::string why_waiting(const ShownJob& shown) const;
  void sample_rates();
  void remove_strays();

  JobNeeds needs_;
  JobTable jobs_;
  UnitTable units_;
  Broker broker_;
  Millis wall_at_start_, monotonic_at_start_;

  std::map<TaskId, std::shared_ptr<const LiveTask>> tasks_;  // Of jobs that live.
  std::map<JobId, std::vector<TaskId>> live_jobs_;
  std::set<JobId> ended_jobs_;  // Of these, those that are over and not forgotten yet.
  std::unordered_map<LeaseId, LiveLease> leases_;                           // Those that hold.
  std::map<std::pair<HostId, DeviceId>, std::set<LeaseId>> device_leases_;  // The same.
  std::map<DeviceId, LentDevice> devices_;
  // By the class and the group whose hosts alone may work on it; empty: all may.
  std::map<std::pair<Digest, std::string>, JobClassId> classes_;
  std::map<HostId, HostFacts> hosts_;
  std::map<JobId, std::deque<RateSample>> rates_;
  Millis sampled_;
  std::map<JobId, std::string>
      lost_;  // What jobs failed for that is not stored yet, if not poison.

  std::vector<Change> backlog_;  // Decided, and not stored.
  std::unordered_map<LeaseId, Arrived> arrived_;
  std::map<TaskId, Unfinished> unfinished_;
  std::map<TaskId, TaskFigures> counts_;        // Of tasks that were asked for, kept as units end.
  std::vector<std::filesystem::path> useless_;  // Files to remove when the next commit is done.
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting_;
  bool scheduled_ = false;
  std::optional<Error> broken_;  // Why the last commit failed, until one succeeds.
  uint64_t files_made_ = 0;
  kj::Maybe<kj::TimePoint> armed_for_;  // When the broker is looked at, if nothing comes before.
  kj::TaskSet tasks_running_;           // Last: they use the others.
};

}  // namespace shoal
