#include "coordinator/jobs/job_service.h"

#include <kj/debug.h>

#include <algorithm>

#include "base/log.h"
#include "coordinator/jobs/makers.h"
#include "coordinator/store/setting_table.h"
#include "schema/limits.h"
#include "schema/require.h"

namespace shoal {
namespace {

constexpr char kClockKey[] = "jobs.clock_ms";  // When something was stored last, as now() has it.
constexpr size_t kResultInTableBytesMax = size_t{64} << 10;
constexpr int64_t kTokensPerAnswerMax = int64_t{4} << 20;
constexpr int kTellings = 2;                // Of a lease to one login, until its host speaks of it.
constexpr uint32_t kUnitsPerAnswerMax = 8;  // A unit's message may have some megabytes.
constexpr kj::Duration kRetry = 2 * kj::SECONDS;
constexpr kj::Duration kTurn = 1 * kj::MILLISECONDS;  // Between pieces of an output.
constexpr kj::Duration kLookAgain = 20 * kj::MILLISECONDS;
constexpr Millis kTickMin{1}, kTickMax{60'000};
constexpr Millis kFinishAgainMin{2'000}, kFinishAgainMax{600'000};
constexpr Millis kSampleEvery{5'000};
constexpr size_t kSamplesMax = 61;
constexpr double kFlopsPerWeightByte = 8;  // Of a step of some sequences side by side.
constexpr double kUnmeasuredFlopsPerSecond = 1e9;
constexpr Flops kItemFlopsMax{int64_t{1} << 53};

kj::Duration duration_of(Millis time) { return time.count * kj::MILLISECONDS; }

// Devices that share hardware and driver share their mistakes.
uint32_t device_class(const DeviceRow& row) {
  const Digest digest = digest_of(as_bytes(row.plane + "\n" + row.name + "\n" + row.driver));
  return load_le<uint32_t>(digest.bytes.data());
}

// What a checked result had to run: the last token that was drawn never was.
int64_t rows_of(const WorkItem& item, rpc::ItemOutput::Reader output) {
  const auto length = static_cast<int64_t>(item.tokens.size());
  if (!output.isTokens()) return length;
  return length + std::max<int64_t>(int64_t{output.getTokens().size()} - 1, 0);
}

ItemShape shape_of(const WorkItem& item, const LiveTask& task) {
  switch (task.spec.kind) {
    case TaskKind::kGenerate: return {item.tokens_max, task.stop};
    case TaskKind::kScore: {
      return {static_cast<uint32_t>(item.tokens.size()) - item.score_from, {}};
    }
    case TaskKind::kEmbed: return {static_cast<uint32_t>(task.model->manifest.width), {}};
  }
  SHOAL_UNREACHABLE();
}

const char* ended_event(JobState state) {
  switch (state) {
    case JobState::kDone: return "job_done";
    case JobState::kCancelled: return "job_cancelled";
    case JobState::kFaulted: return "job_failed";
    case JobState::kPaused: return "job_paused";
    case JobState::kRunning: return "job_runs";
  }
  SHOAL_UNREACHABLE();
}

// What is said of it beside its state.
const char* reason_of(JobState state) {
  switch (state) {
    case JobState::kFaulted: return "too many of its units failed on several hosts";
    case JobState::kPaused: return "paused by its administrator";
    case JobState::kCancelled: return "cancelled by its administrator";
    case JobState::kRunning:
    case JobState::kDone: return "";
  }
  SHOAL_UNREACHABLE();
}

bool is_over(JobState state) {
  return state == JobState::kDone || state == JobState::kCancelled || state == JobState::kFaulted;
}

}  // namespace

// ---- Start -------------------------------------------------------------------------------------

JobService::JobService(JobNeeds needs)
    : needs_(std::move(needs)),
      jobs_(needs_.store),
      units_(needs_.store),
      broker_(needs_.options.rules, Random(needs_.random.next_u64())),
      wall_at_start_(needs_.clock.now_wall()),
      monotonic_at_start_(needs_.clock.now_monotonic()),
      tasks_running_(*this) {}

JobService::~JobService() noexcept(false) {
  // What was decided and told to nobody need not be kept, but it can be.
  if (!backlog_.empty() || scheduled_) flush();
}

void JobService::taskFailed(kj::Exception&& exception) {
  log_error("jobs", "failed", {{"why", rpc::error_of(exception)}});
}

Result<std::unique_ptr<JobService>> JobService::open(JobNeeds needs) {
  SHOAL_TRY(make_folder(needs.folder));
  auto service = std::make_unique<JobService>(std::move(needs));
  SHOAL_TRY(service->restore());
  return service;
}

// The coordinator's own time: the wall clock at the start, never before what was stored, and from
// then on no jump of it counts.
Millis JobService::now() const {
  return wall_at_start_ + (needs_.clock.now_monotonic() - monotonic_at_start_);
}

Result<void> JobService::restore() {
  SettingTable settings(needs_.store);
  SHOAL_TRY_ASSIGN(clock_text, settings.get(kClockKey));
  const Millis last{clock_text ? std::strtoll(clock_text->c_str(), nullptr, 10) : 0};
  wall_at_start_ = std::max(wall_at_start_, last);

  SHOAL_TRY_ASSIGN(jobs, jobs_.live());
  std::set<JobId> live, over;
  for (StoredJob& job : jobs) {
    live.insert(job.id);
    // What one job lacks (its model was removed, a file is damaged) stops no other.
    const Result<LiveTasks> tasks = tasks_of(job);
    if (tasks.ok()) {
      take_up_job(job, tasks.value());
    } else {
      SHOAL_TRY(fault_job(job, tasks.error()));
    }
  }
  BrokerRows rows;
  SHOAL_TRY(units_.load(rows));
  if (rows.leases.empty()) {
    // Nothing waits for a check: nobody need be waited for.
    needs_.options.rules.gather = Millis{0};
    broker_ = Broker(needs_.options.rules, Random(needs_.random.next_u64()));
  }
  SHOAL_TRY_ASSIGN(hosts, needs_.hosts.list(INT64_MAX));
  std::map<HostId, size_t> places;
  for (size_t i = 0; i < rows.hosts.size(); ++i) places[rows.hosts[i].facts.host] = i;
  for (const HostRow& host : hosts) {
    const auto [found, is_new] = places.try_emplace(host.id, rows.hosts.size());
    if (is_new) rows.hosts.emplace_back();
    HostFacts& facts = rows.hosts[found->second].facts;
    facts.host = host.id;
    facts.trusted = host.standing == Standing::kTrusted;
    facts.banned = host.standing == Standing::kBanned || host.account_banned;
    facts.owner = OwnerId{host.account.value};
    hosts_[host.id] = facts;
  }
  // Of jobs that are over, those of which something is still to be judged or to be written.
  std::set<JobId> with_units;
  for (const UnitRow& unit : rows.units) {
    SHOAL_TRY_ASSIGN(id, units_.job_of(unit.cut.unit));
    if (!id) continue;
    with_units.insert(*id);
    if (!live.contains(*id)) over.insert(*id);
  }
  SHOAL_TRY_ASSIGN(without_output, jobs_.without_output());
  for (const JobId id : without_output) {
    if (!live.contains(id)) over.insert(id);
  }
  for (const JobId id : over) {
    SHOAL_TRY_ASSIGN(job, jobs_.find(id));
    if (!job) continue;
    if (const Result<LiveTasks> tasks = tasks_of(*job); tasks.ok()) {
      take_up_job(*job, tasks.value());
    } else {  // Its results are judged without it.
      log_warning("jobs", "ended_job_lacks", {{"job", id}, {"why", tasks.error()}});
    }
    jobs.push_back(std::move(*job));
  }
  for (const StoredJob& job : jobs) {
    if (is_over(job.state) && !with_units.contains(job.id)) continue;
    rows.jobs.push_back({broker_spec(job), job.state});
    SHOAL_TRY(add_task_rows(job, rows));
  }
  std::map<UnitId, UnitCut> cuts;
  for (const UnitRow& unit : rows.units) cuts[unit.cut.unit] = unit.cut;
  for (const LeaseRow& lease : rows.leases) {
    if (!lease.live) continue;
    const UnitCut& cut = cuts.at(lease.granted.unit);
    leases_[lease.granted.lease] = {
        cut.unit, cut.task, lease.granted.host, lease.granted.device, cut.first_item, cut.items};
    device_leases_[{lease.granted.host, lease.granted.device}].insert(lease.granted.lease);
  }
  if (const Result<void> restored = broker_.restore(rows, std::max(last, Millis{1}));
      !restored.ok()) {
    return Error{ErrorCode::kCorrupt, "the stored jobs contradict each other: " +
                                          restored.error().message + "; restore a backup"};
  }
  // Nobody could be heard meanwhile: that costs no host a lease.
  if (last.count > 0) broker_.outage(last, now());
  flush();
  if (broken_) return *broken_;
  remove_strays();
  finish_tasks();
  forget_jobs();
  return {};
}

// Those that are over, unless an output is not written yet, or a result waits to be judged.
void JobService::forget_jobs() {
  std::erase_if(ended_jobs_, [this](JobId job) {
    const auto ids = live_jobs_.find(job);
    if (ids == live_jobs_.end()) return true;
    const bool unfinished =
        std::ranges::any_of(ids->second, [this](TaskId id) { return unfinished_.contains(id); });
    if (unfinished || broker_.knows_job(job)) return false;
    for (const TaskId id : ids->second) tasks_.erase(id);
    live_jobs_.erase(ids);
    rates_.erase(job);
    return true;
  });
}

Result<std::shared_ptr<const LiveTask>> JobService::task_of(const StoredJob& job,
                                                            const StoredTask& row) {
  SHOAL_TRY_ASSIGN(file, read_job_file(job.spec));
  if (row.position < 0 || static_cast<size_t>(row.position) >= file.tasks.size())
    return Error{ErrorCode::kCorrupt, "job " + job.name + " has no such task: " + row.name};
  SHOAL_TRY_ASSIGN(model, needs_.model(row.model));
  LiveTask task;
  task.id = row.id;
  task.job = job.id;
  task.spec = file.tasks[static_cast<size_t>(row.position)];
  task.group = model->group.empty() ? file.group : model->group;
  task.job_class = {std::string(task_kind_name(row.kind)), row.model,
                    task.group.empty() && file.anchored, !task.group.empty()};
  task.class_id = class_id(task.job_class, task.group);
  task.stop = stop_tokens(task.spec, *model);
  task.model = std::move(model);
  task.context = row.context;
  task.memory = row.memory;
  task.flops_per_item = row.flops_per_item;
  if (row.items_digest) {
    SHOAL_TRY_ASSIGN(items, ItemsFile::open(needs_.folder, *row.items_digest));
    task.items = std::make_shared<const ItemsFile>(std::move(items));
  }
  return std::make_shared<const LiveTask>(std::move(task));
}

Result<JobService::LiveTasks> JobService::tasks_of(const StoredJob& job) {
  LiveTasks tasks;
  for (const StoredTask& row : job.tasks) {
    SHOAL_TRY_ASSIGN(task, task_of(job, row));
    tasks.push_back(std::move(task));
  }
  return tasks;
}

void JobService::take_up_job(const StoredJob& job, const LiveTasks& tasks) {
  std::vector<TaskId>& ids = live_jobs_[job.id];
  for (size_t i = 0; i < tasks.size(); ++i) {
    const StoredTask& row = job.tasks[i];
    tasks_[row.id] = tasks[i];
    ids.push_back(row.id);
    // A kill may have come between its output and the items that others are to have of it.
    const bool awaited = !is_over(job.state) && std::ranges::any_of(tasks, [&](const auto& next) {
      return next->items == nullptr && next->spec.input_task == i;
    });
    if (row.state == TaskState::kDone && (!row.output_digest || awaited))
      unfinished_.try_emplace(row.id);
  }
  if (is_over(job.state)) ended_jobs_.insert(job.id);
}

// It can be tried again when what it lacks is there again.
Result<void> JobService::fault_job(StoredJob& job, const Error& why) {
  log_error("jobs", "cannot_go_on", {{"job", job.id}, {"why", why}});
  job.state = JobState::kFaulted;
  job.reason = "it cannot go on: " + why.message;
  job.ended_at = needs_.clock.now_wall();
  SHOAL_TRY(needs_.store.transaction([&]() -> Result<void> {
    for (StoredTask& task : job.tasks) {
      if (task.state == TaskState::kDone) continue;
      task.state = TaskState::kStopped;
      SHOAL_TRY(jobs_.set_task_state(task.id, task.state));
    }
    return jobs_.set_state(job.id, job.state, job.reason, job.ended_at);
  }));
  needs_.journal.note_of_job(ended_event(job.state),
                             "job " + std::to_string(job.id.value) + ": " + why.message, job.id);
  return {};
}

// What the broker gets of its tasks; its job is made of broker_spec().
Result<void> JobService::add_task_rows(const StoredJob& job, BrokerRows& rows) {
  for (const StoredTask& row : job.tasks) {
    SHOAL_TRY_ASSIGN(figures, units_.counts(row.id));
    rows.tasks.push_back(
        {row.id, row.state, figures.cut, figures.done, figures.poisoned, figures.units_poisoned});
  }
  return {};
}

JobSpec JobService::broker_spec(const StoredJob& job) {
  JobSpec spec;
  spec.job = job.id;
  spec.priority = job.priority;
  spec.deadline = job.deadline;
  for (const StoredTask& row : job.tasks) {
    TaskSpec task;
    task.task = row.id;
    task.kind = row.kind;
    // Of a job that lacks something nothing is handed out.
    if (const auto live = tasks_.find(row.id); live != tasks_.end()) {
      task.waits_for_input = live->second->items == nullptr;
      task.job_class = live->second->class_id;
      task.model = live->second->model->id;
      task.trusted_only = live->second->job_class.anchored;
    }
    task.memory = row.memory;
    task.items = row.items;
    task.flops_per_item = row.flops_per_item;
    task.unit_items_max = row.unit_items_max;
    task.unit_target = row.unit_target;
    task.after = row.after;
    spec.tasks.push_back(std::move(task));
  }
  return spec;
}

JobClassId JobService::class_id(const JobClass& job_class, const std::string& group) {
  const auto [found, is_new] =
      classes_.try_emplace(std::pair(digest_of_class(job_class), group),
                           JobClassId{static_cast<int64_t>(classes_.size()) + 1});
  return found->second;
}

// Files that an interrupted upload or task left.
void JobService::remove_strays() {
  std::error_code code;
  std::vector<std::filesystem::path> strays;
  for (const auto& entry : std::filesystem::directory_iterator(needs_.folder, code)) {
    const std::filesystem::path path = entry.path();
    const Result<Digest> digest = Digest::from_hex(path.stem().string());
    if (path.extension() == ".result") {
      const std::string name = path.stem().string();
      const size_t dash = name.find('-');
      const Result<Digest> result = dash == std::string::npos
                                        ? Digest::from_hex("")
                                        : Digest::from_hex(name.substr(dash + 1));
      const UnitId unit{std::strtoll(name.c_str(), nullptr, 10)};
      const Result<bool> known =
          result.ok() ? units_.has_result_file(unit, result.value()) : Result<bool>(false);
      if (known.ok() && !known.value()) strays.push_back(path);
      continue;
    }
    const Result<bool> known = digest.ok() ? jobs_.has_file(digest.value()) : Result<bool>(false);
    if (known.ok() && !known.value()) strays.push_back(path);
  }
  for (const std::filesystem::path& path : strays) std::filesystem::remove(path, code);
}

std::string JobService::new_file_name() { return "new-" + std::to_string(++files_made_); }

// ---- Hosts and devices -------------------------------------------------------------------------

void JobService::host_known(HostId host, bool trusted, bool banned,
                            std::optional<uint64_t> address_block, std::optional<OwnerId> owner) {
  HostFacts& facts = hosts_[host];
  facts.host = host;
  facts.trusted = trusted;
  facts.banned = banned;
  if (address_block) facts.address_block = *address_block;
  if (owner) facts.owner = *owner;
  broker_.host_known(facts, now());
  take_back_foreign(host);
  schedule();
}

bool JobService::same_owner(HostId a, HostId b) const {
  if (a == b) return true;
  const auto first = hosts_.find(a), second = hosts_.find(b);
  return first != hosts_.end() && second != hosts_.end() && first->second.owner &&
         first->second.owner == second->second.owner;
}

std::vector<JobClassId> JobService::denied_classes(HostId host) const {
  std::vector<JobClassId> denied;
  const auto live = needs_.pool.hosts().find(host);
  const std::string own = live == needs_.pool.hosts().end() ? "" : live->second->membership.group;
  for (const auto& [of, id] : classes_) {
    const auto& [digest, group] = of;
    // What is for the hosts of another group is denied as if by its owner.
    if (needs_.pool.denies(host, digest) || (!group.empty() && group != own)) denied.push_back(id);
  }
  return denied;
}

DeviceFacts JobService::facts_of(const PoolDevice& device, const LentDevice& lent) const {
  DeviceFacts facts;
  facts.device = lent.id;
  facts.host = lent.place.host;
  facts.device_class = device_class(device.row);
  // What units hold of it already, another unit may have instead.
  facts.memory = std::max(
      usable_memory(device.row.memory) - needs_.pool.taken(lent.place).bytes + lent.held, Bytes{0});
  double speed = device.row.flops_per_second;
  const double read = device.row.weight_bytes_per_second * kFlopsPerWeightByte;
  if (read > 0 && (speed <= 0 || read < speed)) speed = read;
  facts.flops_per_second = speed > 0 ? speed : kUnmeasuredFlopsPerSecond;
  facts.exact = device.row.exact;
  facts.denied = denied_classes(lent.place.host);
  return facts;
}

JobService::LentDevice* JobService::find_device(DeviceId id) {
  const auto found = devices_.find(id);
  return found == devices_.end() ? nullptr : &found->second;
}
JobService::LentDevice* JobService::find_device(const DevicePlace& place) {
  const auto found = std::ranges::find_if(
      devices_, [&](const auto& entry) { return entry.second.place == place; });
  return found == devices_.end() ? nullptr : &found->second;
}

void JobService::devices_changed(HostId host) {
  const auto& connected = needs_.pool.hosts();
  const auto found = connected.find(host);
  if (found == connected.end() || !hosts_.contains(host)) return;
  const Pool::Host& pool_host = *found->second;
  std::set<DeviceId> ready;
  for (const PoolDevice& device : pool_host.devices) {
    if (device.state != DeviceState::kReady || !device.worker_key) continue;
    const Result<std::optional<DeviceId>> id =
        needs_.hosts.device_id(host, device.row.name_on_host);
    if (!id.ok() || !id.value()) continue;
    const DevicePlace place{host, pool_host.login, device.row.name_on_host};
    LentDevice& lent = devices_[*id.value()];
    if (lent.place != place) {
      lent = LentDevice{};  // Another login: what the former one held is let go with it.
      lent.place = place;
      lent.id = *id.value();
    }
    ready.insert(lent.id);
    broker_.device_ready(facts_of(device, lent), now());
  }
  take_back_foreign(host);
  for (auto it = devices_.begin(); it != devices_.end();) {
    if (it->second.place.host != host || ready.contains(it->first)) {
      ++it;
      continue;
    }
    broker_.device_gone(it->first, now());
    it = devices_.erase(it);
  }
  schedule();
}

// What is for the hosts of another group is not handed to it again, and another host gets it.
// Whether the devices that hold it are announced or not.
void JobService::take_back_foreign(HostId host) {
  const auto connected = needs_.pool.hosts().find(host);
  if (connected == needs_.pool.hosts().end()) return;
  const std::string& group = connected->second->membership.group;
  for (auto held = device_leases_.lower_bound({host, DeviceId{INT64_MIN}});
       held != device_leases_.end() && held->first.first == host; ++held) {
    for (const LeaseId id : held->second) {
      const LiveLease& live = leases_.at(id);
      const auto task = tasks_.find(live.task);
      if (task == tasks_.end() || task->second->group.empty() || task->second->group == group)
        continue;
      broker_.give_back({live.unit, id, host}, now());
    }
  }
}

HostRecord JobService::record_of(HostId host) const {
  const HostChanged record = broker_.record(host);
  return {record.valid_in_row, std::max(record.quarantined_until - now(), Millis{0})};
}

void JobService::stage_checked(HostId host, bool right) {
  broker_.stage_checked(host, right, now());
  schedule();
}

void JobService::host_gone(HostId host) {
  for (auto it = devices_.begin(); it != devices_.end();) {
    if (it->second.place.host != host) {
      ++it;
      continue;
    }
    broker_.device_gone(it->first, now());
    it = devices_.erase(it);
  }
  schedule();
}

// The memory of the largest of its tasks: it works on one at a time. And the right to read the
// shards of all of them.
void JobService::renew_hold(LentDevice& device) {
  Bytes bytes;
  std::set<Digest> shards;
  for (const auto& [id, leases] : device.leases) {
    const auto task = tasks_.find(id);
    if (task == tasks_.end()) continue;
    const LiveModel& model = *task->second->model;
    bytes = std::max(bytes, stage_memory(model.costs, task->second->context * device.sequences[id],
                                         needs_.rows_max));
    for (const ShardRow& shard : model.shards) shards.insert(shard.digest);
  }
  Pool::Hold hold;
  if (!shards.empty()) {
    hold = needs_.pool.hold(device.place, bytes, {shards.begin(), shards.end()});
  }
  device.hold = std::move(hold);  // The former one goes after the new one is there.
  device.held = shards.empty() ? Bytes{0} : bytes;
}

void JobService::hold_for(LentDevice& device, TaskId task, LeaseId lease) {
  std::set<LeaseId>& leases = device.leases[task];
  const bool is_new = leases.empty();
  leases.insert(lease);
  if (!is_new) return;
  const LiveTask& live = *tasks_.at(task);
  const PoolDevice* const known = needs_.pool.find(device.place);
  if (known != nullptr) {
    const Bytes room = facts_of(*known, device).memory;
    int64_t sequences = std::max<int64_t>(needs_.options.sequences_max, 1);
    while (sequences > 1 &&
           stage_memory(live.model->costs, live.context * sequences, needs_.rows_max) > room) {
      sequences /= 2;
    }
    device.sequences[task] = sequences;
  }
  renew_hold(device);
}

void JobService::let_go(LeaseId lease, const LiveLease& live) {
  LentDevice* const device = find_device(live.device);
  if (device == nullptr) return;
  const auto found = device->leases.find(live.task);
  if (found == device->leases.end() || found->second.erase(lease) == 0) return;
  if (!found->second.empty()) return;
  device->leases.erase(found);
  device->sequences.erase(live.task);
  renew_hold(*device);
}

// ---- What hosts ask ----------------------------------------------------------------------------

void JobService::require_store() const {
  if (broken_) {
    rpc::throw_error(
        {ErrorCode::kUnavailable, "the coordinator cannot write its store now; try again later"});
  }
}

kj::Promise<void> JobService::stored() {
  auto pair = kj::newPromiseAndFulfiller<void>();
  waiting_.push_back(kj::mv(pair.fulfiller));
  schedule();
  return kj::mv(pair.promise);
}

Message JobService::why(NoWork why, Millis ask_again) const {
  Message message{std::string(no_work_code(why)), {}};
  if (why == NoWork::kQuarantined) {
    // In wall time, as its owner reads it.
    message.parameters = {WallTime{needs_.clock.now_wall() + (ask_again - now())}};
  }
  return message;
}

// Leases of the device that hold; without `all` those that its host never spoke of, and of them
// only those of which no answer may have come: one that was sent to this login twice has come, or
// ends by itself. To be told of a lease again is no renewal of it.
std::vector<Grant> JobService::held_grants(LentDevice& device, size_t count_max, bool all) {
  std::vector<Grant> grants;
  const auto held = device_leases_.find({device.place.host, device.id});
  if (held == device_leases_.end()) return grants;
  int64_t tokens = 0;  // At most, of a message.
  for (const LeaseId id : held->second) {
    const LiveLease& live = leases_.at(id);
    const auto task = tasks_.find(live.task);
    if (grants.size() >= count_max) break;
    if (task == tasks_.end() || task->second->items == nullptr) continue;
    const bool has_come =
        live.spoken_of || (live.told_login == device.place.login && live.told >= kTellings);
    if (has_come && !all) continue;
    tokens += live.items * task->second->context;
    if (tokens > kTokensPerAnswerMax && !grants.empty()) break;
    const Renewal renewal = broker_.held({live.unit, id, device.place.host});
    if (renewal.answer != RenewAnswer::kRenewed) continue;
    hold_for(device, live.task, id);
    Grant grant{id, live.unit, live.task, live.first_item, live.items, renewal.until, {}, {}};
    const PoolDevice* const known = needs_.pool.find(device.place);
    if (known != nullptr) {
      const double flops =
          static_cast<double>(task->second->flops_per_item.count) * static_cast<double>(live.items);
      grant.expected =
          Millis{static_cast<int64_t>(flops / facts_of(*known, device).flops_per_second * 1000)};
    }
    grants.push_back(grant);
  }
  return grants;
}

void JobService::end_lease(LeaseId lease) {
  const auto live = leases_.find(lease);
  if (live == leases_.end()) return;
  let_go(lease, live->second);
  const auto of_device = device_leases_.find({live->second.host, live->second.device});
  if (of_device != device_leases_.end() && of_device->second.erase(lease) > 0 &&
      of_device->second.empty()) {
    device_leases_.erase(of_device);
  }
  leases_.erase(live);
}

kj::Promise<LeaseReply> JobService::lease(const DevicePlace& place, Millis wanted,
                                          uint32_t count_max, bool again) {
  require_store();
  LeaseReply none;
  none.ask_again_in = needs_.options.rules.ask_again_min;
  if (needs_.stopping) {
    none.why = {"standing.stopping", {}};
    return none;
  }
  LentDevice* const device = find_device(place);
  const PoolDevice* const known = needs_.pool.find(place);
  if (device == nullptr || known == nullptr) {
    none.why = why(NoWork::kUnknownDevice, now());
    return none;
  }
  broker_.device_ready(facts_of(*known, *device), now());
  LeaseRequest request;
  request.device = device->id;
  request.wanted = wanted;
  std::vector<Grant> grants = held_grants(*device, count_max, again);
  request.units_max = static_cast<int>(
      std::min(count_max - static_cast<uint32_t>(grants.size()), kUnitsPerAnswerMax));
  if (known->available_until) {
    const kj::Duration left = *known->available_until - needs_.timer.now();
    request.available = Millis{std::max<int64_t>(left / kj::MILLISECONDS, 0)};
  }
  const LeaseAnswer answer = broker_.lease(request, now());
  for (const Grant& grant : answer.grants) {
    leases_[grant.lease] = {grant.unit, grant.task,       place.host,
                            device->id, grant.first_item, grant.items};
    device_leases_[{place.host, device->id}].insert(grant.lease);
    hold_for(*device, grant.task, grant.lease);
    grants.push_back(grant);
  }
  return stored().then([this, answer, grants, id = device->id] {
    return rpc::require(fill_in(grants, answer, id));
  });
}

Result<LeaseReply> JobService::fill_in(const std::vector<Grant>& grants, const LeaseAnswer& answer,
                                       DeviceId id) {
  LeaseReply reply;
  reply.why = why(answer.why, answer.ask_again);
  reply.ask_again_in = Millis{std::max<int64_t>((answer.ask_again - now()).count, 0)};
  LentDevice* const device = find_device(id);
  for (const Grant& grant : grants) {
    const auto task = tasks_.find(grant.task);
    const auto lease = leases_.find(grant.lease);
    // Cancelled meanwhile, or its device has gone: the host never hears of it.
    if (task == tasks_.end() || device == nullptr || lease == leases_.end()) continue;
    LentUnit unit;
    unit.grant = grant;
    unit.until_in = grant.until - now();
    unit.task = task->second;
    SHOAL_TRY_ASSIGN(items, unit.task->items->read(grant.first_item, grant.items));
    unit.items = std::move(items);
    unit.sequences = std::max<int64_t>(device->sequences[grant.task], 1);
    unit.rows_max = needs_.rows_max;
    LiveLease& live = lease->second;
    if (std::exchange(live.told_login, device->place.login) != device->place.login) live.told = 0;
    ++live.told;
    reply.units.push_back(std::move(unit));
  }
  if (reply.units.empty() && reply.why.empty()) reply.why = why(NoWork::kAllOut, now());
  if (reply.units.empty() && reply.ask_again_in.count == 0)
    reply.ask_again_in = needs_.options.rules.ask_again_min;
  return reply;
}

kj::Promise<RenewReply> JobService::renew(const DevicePlace& host, std::vector<LeaseId> leases) {
  require_store();
  RenewReply reply;
  for (const LeaseId id : leases) {
    const auto live = leases_.find(id);
    if (live == leases_.end() || live->second.host != host.host) {
      reply.until_in.push_back(Millis{0});
      continue;
    }
    live->second.spoken_of = true;
    const Renewal renewal = broker_.renew({live->second.unit, id, host.host}, now());
    if (renewal.answer != RenewAnswer::kRenewed) {
      reply.until_in.push_back(Millis{0});
      continue;
    }
    reply.until_in.push_back(Millis{std::max<int64_t>((renewal.until - now()).count, 1)});
    // A host that came back reads its shards again.
    LentDevice* const device = find_device(live->second.device);
    if (device != nullptr && tasks_.contains(live->second.task))
      hold_for(*device, live->second.task, id);
  }
  return stored().then([reply] { return reply; });
}

kj::Promise<void> JobService::give_back(HostId host, LeaseId lease, bool is_failure) {
  require_store();
  const auto live = leases_.find(lease);
  // Over already: said twice, or too late.
  if (live == leases_.end() || live->second.host != host) return kj::READY_NOW;
  live->second.spoken_of = true;
  const LeaseName name{live->second.unit, lease, host};
  if (is_failure) {
    broker_.fail(name, now());
  } else {
    broker_.give_back(name, now());
  }
  return stored();
}

Result<std::optional<FoundLease>> JobService::look_up(HostId host, LeaseId lease) {
  if (lease.value < kUnitLeasesBegin) return std::optional<FoundLease>();
  SHOAL_TRY_ASSIGN(found, units_.find_lease(lease));
  if (!found || found->row.granted.host != host) return std::optional<FoundLease>();
  return found;
}

// The task of a lease whose job is over, as far as a result of it still says something: its unit
// was confirmed, and it can be compared. Null when it says nothing.
Result<std::shared_ptr<const LiveTask>> JobService::task_of_ended(const FoundLease& found) {
  std::shared_ptr<const LiveTask> none;
  if (answer_from_rows(&found.row, found.unit_done) != SubmitAnswer::kExtra) return none;
  SHOAL_TRY_ASSIGN(id, units_.job_of(found.cut.unit));
  if (!id) return none;
  SHOAL_TRY_ASSIGN(job, jobs_.find(*id));
  if (!job) return none;
  const auto row = std::ranges::find(job->tasks, found.cut.task, &StoredTask::id);
  if (row == job->tasks.end()) return none;
  Result<std::shared_ptr<const LiveTask>> task = task_of(*job, *row);
  return task.ok() ? task : none;  // Its model was removed: nothing to compare it by.
}

kj::Promise<SubmitReply> JobService::submit(HostId host, LeaseId lease,
                                            rpc::UnitOutput::Reader output) {
  using Outcome = rpc::UnitDesk::Outcome;
  require_store();
  std::optional<FoundLease> found;
  LiveLease live;
  if (const auto known = leases_.find(lease);
      known != leases_.end() && known->second.host == host) {
    known->second.spoken_of = true;
    live = known->second;
  } else {
    found = rpc::require(look_up(host, lease));
    if (!found) {
      rpc::throw_error(
          {ErrorCode::kNotFound, "this host has no lease " + std::to_string(lease.value)});
    }
    live = {found->cut.unit,           found->cut.task,       host,
            found->row.granted.device, found->cut.first_item, found->cut.items};
  }
  SubmitReply reply;
  if (found && found->row.state != ResultState::kNone) {
    reply.outcome = Outcome::REPEATED;  // What it said before, it says again.
    return reply;
  }
  std::shared_ptr<const LiveTask> task;
  if (const auto entry = tasks_.find(live.task); entry != tasks_.end()) {
    task = entry->second;
  } else if (found) {
    task = rpc::require(task_of_ended(*found));
  }
  if (task == nullptr || task->items == nullptr) {
    reply.outcome = Outcome::NOT_NEEDED;
    reply.why = {"batch.not_needed", {}};
    return reply;
  }
  const std::vector<WorkItem> items = rpc::require(task->items->read(live.first_item, live.items));
  std::vector<ItemShape> shapes;
  for (const WorkItem& item : items) shapes.push_back(shape_of(item, *task));
  const LeaseName name{live.unit, lease, host};
  Result<ByteVector> bytes = unit_output_bytes(output, unit_kind(task->spec.kind), shapes,
                                               task->model->manifest.vocabulary);
  if (!bytes.ok()) {
    // It is no result at all: as if the unit had failed there.
    broker_.fail(name, now());
    reply.outcome = Outcome::REJECTED;
    reply.why = {"batch.malformed", {bytes.error().message}};
    return stored().then([reply] { return reply; });
  }
  const Digest digest = digest_of(bytes.value());
  LeaseWork work;
  work.lease = lease;
  work.unit = live.unit;
  work.host = host;
  work.device = rpc::require(needs_.hosts.device_name(live.device));
  work.job_class = task->job_class;
  work.group = task->group;
  work.last_fragment = static_cast<int64_t>(task->model->costs.size()) - 1;
  for (uint i = 0; i < items.size(); ++i) work.rows += rows_of(items[i], output.getItems()[i]);
  work.flops = work_flops(task->model->costs, work.rows);

  const SubmitAnswer answer = broker_.submit({name, digest, 0}, now());
  switch (answer) {
    case SubmitAnswer::kAccepted:
      arrived_[lease] = {work, live.task, std::move(bytes).value()};
      break;
    case SubmitAnswer::kExtra:
      // Its unit may be open still, and this the result that it will have.
      arrived_[lease] = {work, live.task, std::move(bytes).value()};
      reply.outcome = Outcome::NOT_NEEDED;
      reply.why = {"batch.late", {}};
      break;
    case SubmitAnswer::kDuplicate: reply.outcome = Outcome::REPEATED; break;
    case SubmitAnswer::kNotNeeded:
      reply.outcome = Outcome::NOT_NEEDED;
      reply.why = {"batch.not_needed", {}};
      break;
    case SubmitAnswer::kUnknown: {
      // The rows must know what this turn decided so far.
      if (scheduled_) flush();
      require_store();
      found = rpc::require(look_up(host, lease));
      if (!found) rpc::throw_error({ErrorCode::kNotFound, "there is no such lease"});
      reply = rpc::require(late_submit(*found, digest, work));
      break;
    }
  }
  return stored().then([reply] { return reply; });
}

// The broker has forgotten the unit: the rows say what is to be said.
Result<SubmitReply> JobService::late_submit(const FoundLease& found, const Digest& digest,
                                            const LeaseWork& work) {
  using Outcome = rpc::UnitDesk::Outcome;
  SubmitReply reply;
  reply.outcome = Outcome::NOT_NEEDED;
  reply.why = {"batch.not_needed", {}};
  SHOAL_TRY_ASSIGN(hosts, units_.hosts_with_results(work.unit));
  const bool owner_has_result =
      std::ranges::any_of(hosts, [&](HostId host) { return same_owner(host, work.host); });
  switch (answer_from_rows(&found.row, found.unit_done, owner_has_result)) {
    case SubmitAnswer::kDuplicate:
      reply.outcome = Outcome::REPEATED;
      reply.why = {};
      return reply;
    case SubmitAnswer::kExtra: break;
    default: return reply;
  }
  if (found.row.granted.until + needs_.options.rules.late_max < now()) return reply;
  const bool agrees = found.unit_digest == digest;
  SHOAL_TRY(needs_.store.transaction([&]() -> Result<void> {
    SHOAL_TRY(units_.add_late_result(work.lease, digest, agrees, now()));
    const Judgement judgement =
        agrees ? Judgement{Verdict::kConfirmed, ""}
               : Judgement{Verdict::kRejected, reject_code(RejectReason::kWrong).data()};
    SHOAL_TRY(needs_.ledger.lease_ended(work, judgement));
    if (!agrees) return {};
    SHOAL_TRY_ASSIGN(job, units_.job_of(work.unit));
    return job ? jobs_.add_credit(*job, credit_parts(work.flops).count) : Result<void>();
  }));
  reply.why = {"batch.late", {}};
  return reply;
}

// ---- The batch ---------------------------------------------------------------------------------

// What the broker decided since, taken into the maps that later events of this turn look into.
void JobService::note_fresh() {
  std::vector<Change> fresh = broker_.take_changes();
  for (Change& change : fresh) {
    if (const auto* ended = std::get_if<LeaseEnded>(&change)) {
      end_lease(ended->lease);
    }
    backlog_.push_back(std::move(change));
  }
}

void JobService::schedule() {
  if (scheduled_) return;
  scheduled_ = true;
  // When all messages that are here have been heard.
  tasks_running_.add(kj::evalLast([this] {
    if (scheduled_) flush();
  }));
}

void JobService::flush() {
  scheduled_ = false;
  note_fresh();
  auto waiting = std::exchange(waiting_, {});
  if (!backlog_.empty()) {
    const Result<void> stored = needs_.store.transaction([this] { return write(backlog_); });
    if (!stored.ok()) {
      if (!broken_) log_error("jobs", "not_stored", {{"why", stored.error()}});
      broken_ = stored.error();
      for (auto& fulfiller : waiting) {
        fulfiller->reject(KJ_EXCEPTION(OVERLOADED, "the coordinator cannot write its store now"));
      }
      tasks_running_.add(needs_.timer.afterDelay(kRetry).then([this] { schedule(); }));
      return;
    }
    if (broken_) log_info("jobs", "stored_again");
    broken_.reset();
    arrived_.clear();
    remove_useless();
    after_commit(std::exchange(backlog_, {}));
  }
  for (auto& fulfiller : waiting) fulfiller->fulfill();
  arm_timer();
}

Result<void> JobService::write(std::span<const Change> changes) {
  useless_.clear();  // Of an attempt that failed.
  std::map<HostId, uint64_t> serials;
  for (const Change& change : changes) {
    if (const auto* received = std::get_if<ResultReceived>(&change)) {
      const auto arrived = arrived_.find(received->lease);
      SHOAL_CHECK(arrived != arrived_.end());
      uint64_t& serial = serials[arrived->second.work.host];
      serial = std::max(serial, received->serial);
    }
  }
  const std::vector<std::pair<HostId, uint64_t>> serial_list(serials.begin(), serials.end());
  SHOAL_TRY(units_.write(changes, serial_list));
  // Of a result that was judged at once, and is not its unit's, nobody will ask for the bytes.
  // Which of the leases with the same result the unit's is does not matter.
  std::set<LeaseId> judged;
  std::map<UnitId, Digest> done_with;
  for (const Change& change : changes) {
    if (const auto* confirmed = std::get_if<ResultConfirmed>(&change))
      judged.insert(confirmed->lease);
    if (const auto* rejected = std::get_if<ResultRejected>(&change)) judged.insert(rejected->lease);
  }
  for (const Change& change : changes) {
    if (const auto* done = std::get_if<UnitDone>(&change)) done_with[done->unit] = done->digest;
  }
  for (const Change& change : changes) {
    if (const auto* received = std::get_if<ResultReceived>(&change)) {
      const ByteVector& bytes = arrived_.at(received->lease).bytes;
      const auto done = done_with.find(received->unit);
      const bool is_answer = done != done_with.end() && done->second == received->digest;
      if (judged.contains(received->lease) && !is_answer) continue;
      const bool in_file = bytes.size() > kResultInTableBytesMax;
      if (in_file) {
        SHOAL_TRY(write_file_durably(result_path(needs_.folder, received->unit, received->digest),
                                     bytes, 0600));
      }
      SHOAL_TRY(units_.add_result(received->unit, received->digest,
                                  static_cast<int64_t>(bytes.size()),
                                  in_file ? ByteSpan() : ByteSpan(bytes)));
    } else if (const auto* done = std::get_if<UnitDone>(&change)) {
      SHOAL_TRY_ASSIGN(removed, units_.remove_other_results(done->unit, done->digest));
      note_useless(removed);
    } else if (const auto* poisoned = std::get_if<UnitPoisoned>(&change)) {
      SHOAL_TRY_ASSIGN(removed, units_.remove_results(poisoned->unit));
      note_useless(removed);
    } else if (const auto* task = std::get_if<TaskChanged>(&change)) {
      SHOAL_TRY(jobs_.set_task_state(task->task, task->state));
    } else if (const auto* job = std::get_if<JobChanged>(&change)) {
      const auto lost = lost_.find(job->job);
      const std::string text = job->state == JobState::kFaulted && lost != lost_.end()
                                   ? lost->second
                                   : reason_of(job->state);
      SHOAL_TRY(jobs_.set_state(job->job, job->state, text,
                                is_over(job->state) ? needs_.clock.now_wall() : Millis{0}));
      if (job->state == JobState::kCancelled || job->state == JobState::kFaulted) {
        SHOAL_TRY_ASSIGN(removed, units_.remove_undone_results(job->job));
        note_useless(removed);
      }
    }
  }
  SHOAL_TRY(write_ledger(changes));
  return SettingTable(needs_.store).set(kClockKey, std::to_string(now().count));
}

// One row a result, with one verdict or two: what is judged in the turn in which it came has one.
Result<void> JobService::write_ledger(std::span<const Change> changes) {
  std::unordered_map<LeaseId, Judgement> judged;
  for (const Change& change : changes) {
    if (const auto* confirmed = std::get_if<ResultConfirmed>(&change)) {
      judged[confirmed->lease] = {Verdict::kConfirmed, ""};
    } else if (const auto* rejected = std::get_if<ResultRejected>(&change)) {
      judged[rejected->lease] = {Verdict::kRejected, reject_code(rejected->reason).data()};
    }
  }
  std::map<JobId, int64_t> credit;
  const auto note_credit = [&](UnitId unit, int64_t parts) -> Result<void> {
    if (parts == 0) return {};
    SHOAL_TRY_ASSIGN(job, units_.job_of(unit));
    if (job) credit[*job] += parts;
    return {};
  };
  std::set<LeaseId> at_once;
  for (const Change& change : changes) {
    if (const auto* received = std::get_if<ResultReceived>(&change)) {
      const LeaseWork& work = arrived_.at(received->lease).work;
      const auto judgement = judged.find(received->lease);
      const bool pending = judgement == judged.end();
      SHOAL_TRY(needs_.ledger.lease_ended(work, pending ? Judgement{} : judgement->second));
      if (pending) continue;
      at_once.insert(received->lease);
      if (judgement->second.verdict == Verdict::kConfirmed)
        SHOAL_TRY(note_credit(work.unit, credit_parts(work.flops).count));
    } else if (const auto* confirmed = std::get_if<ResultConfirmed>(&change)) {
      if (at_once.contains(confirmed->lease)) continue;
      SHOAL_TRY_ASSIGN(parts,
                       needs_.ledger.judge_lease(confirmed->lease, judged.at(confirmed->lease)));
      SHOAL_TRY(note_credit(confirmed->unit, parts.count));
    } else if (const auto* rejected = std::get_if<ResultRejected>(&change)) {
      if (at_once.contains(rejected->lease)) continue;
      SHOAL_TRY(needs_.ledger.judge_lease(rejected->lease, judged.at(rejected->lease)));
    }
  }
  for (const auto& [job, parts] : credit) SHOAL_TRY(jobs_.add_credit(job, parts));
  return {};
}

void JobService::after_commit(std::vector<Change> changes) {
  count(changes);
  for (const Change& change : changes) {
    if (const auto* task = std::get_if<TaskChanged>(&change)) {
      if (task->state == TaskState::kDone) unfinished_.try_emplace(task->task);
    } else if (const auto* poisoned = std::get_if<UnitPoisoned>(&change)) {
      if (const auto live = tasks_.find(poisoned->task); live != tasks_.end()) {
        needs_.journal.note_of_job("unit_quarantined",
                                   live->second->spec.name + ": unit " +
                                       std::to_string(poisoned->unit.value) +
                                       " failed on every host that tried",
                                   live->second->job);
      }
    } else if (const auto* host = std::get_if<HostChanged>(&change)) {
      if (host->quarantined_until > now() && host->valid_in_row == 0) {
        needs_.journal.note_of_host("host_quarantined", "its results were wrong", host->host);
      }
    }
  }
  finish_tasks();
  for (const Change& change : changes) {
    const auto* job = std::get_if<JobChanged>(&change);
    if (job == nullptr) continue;
    needs_.journal.note_of_job(ended_event(job->state), "job " + std::to_string(job->job.value),
                               job->job);
    lost_.erase(job->job);
    if (is_over(job->state)) ended_jobs_.insert(job->job);
  }
  forget_jobs();
  sample_rates();
}

void JobService::arm_timer() {
  const Millis from = now();
  Millis due = broker_.next_due();
  for (const auto& [id, state] : unfinished_) {
    if (!state.running) due = std::min(due, state.due);
  }
  const Millis in = std::clamp(due < from ? Millis{0} : due - from, kTickMin, kTickMax);
  const kj::TimePoint at = needs_.timer.now() + duration_of(in);
  KJ_IF_MAYBE (armed, armed_for_) {
    if (*armed <= at) return;
  }
  armed_for_ = at;
  tasks_running_.add(needs_.timer.atTime(at).then([this, at] {
    KJ_IF_MAYBE (armed, armed_for_) {
      if (*armed != at) return;  // An earlier one came between.
    }
    armed_for_ = nullptr;
    broker_.tick(now());
    finish_tasks();
    forget_jobs();
    schedule();
  }));
}

void JobService::sample_rates() {
  if (sampled_.count != 0 && now() - sampled_ < kSampleEvery) return;
  sampled_ = now();
  for (const auto& [job, tasks] : live_jobs_) {
    std::deque<RateSample>& samples = rates_[job];
    samples.push_back({sampled_, broker_.progress(job).flops_left});
    if (samples.size() > kSamplesMax) samples.pop_front();
  }
}

// ---- Outputs -----------------------------------------------------------------------------------

void JobService::finish_tasks() {
  std::vector<TaskId> due;
  for (const auto& [id, state] : unfinished_) {
    if (!state.running && state.due <= now()) due.push_back(id);
  }
  for (const TaskId id : due) {
    unfinished_.at(id).running = true;
    tasks_running_.add(finish_task(id));
  }
}

// Some of it now, and more when others have had their turn.
kj::Promise<void> JobService::finish_task(TaskId id) {
  Unfinished& state = unfinished_.at(id);
  const Result<bool> more = finish_some(id, state);
  if (more.ok() && more.value()) {
    return needs_.timer.afterDelay(kTurn).then([this, id] { return finish_task(id); });
  }
  if (more.ok()) {
    unfinished_.erase(id);
    forget_jobs();
    return kj::READY_NOW;
  }
  log_error("jobs", "output_not_written", {{"task", id}, {"why", more.error()}});
  if (state.output != nullptr && state.output->lost()) {
    const Result<void> failed = fail_for_lost(id, *state.output->lost());
    if (failed.ok()) {
      unfinished_.erase(id);
      forget_jobs();
      return kj::READY_NOW;
    }
    log_error("jobs", "not_failed", {{"task", id}, {"why", failed.error()}});
  }
  const Millis wait = std::clamp(Millis{state.wait.count * 2}, kFinishAgainMin, kFinishAgainMax);
  state = Unfinished{};
  state.wait = wait;
  state.due = now() + wait;
  arm_timer();
  return kj::READY_NOW;
}

// Those of the task's units whose result should be in a file that is not there.
Result<std::vector<UnitId>> JobService::units_without_file(TaskId task) {
  constexpr int64_t kUnitsAtOnce = 64;
  std::vector<UnitId> found;
  for (int64_t item = 0;;) {
    SHOAL_TRY_ASSIGN(ended, units_.ended_units(task, item, kUnitsAtOnce));
    if (ended.empty()) return found;
    for (const EndedUnit& unit : ended) {
      item = unit.cut.first_item + unit.cut.items;
      if (!unit.done || !unit.bytes.empty()) continue;
      std::error_code failed;
      const auto path = result_path(needs_.folder, unit.cut.unit, unit.digest);
      if (!std::filesystem::exists(path, failed) && !failed) found.push_back(unit.cut.unit);
    }
  }
}

// A result that counted is not there any more: its job has failed, and a retry has its unit
// computed anew, with all others of the task that are lost.
Result<void> JobService::fail_for_lost(TaskId id, UnitId unit) {
  const std::shared_ptr<const LiveTask> task = tasks_.at(id);
  SHOAL_TRY_ASSIGN(job, jobs_.find(task->job));
  if (!job) return {};
  // Where the task's own input is gone as well, it is the folder that is: that may come back.
  const auto row = std::ranges::find(job->tasks, id, &StoredTask::id);
  if (row != job->tasks.end() && row->items_digest) {
    const auto input = items_path(needs_.folder, *row->items_digest);
    std::error_code failed;
    if (!std::filesystem::exists(input, failed))
      return Error{ErrorCode::kIo, input.string() + ": is not there, like the results beside it"};
  }
  SHOAL_TRY_ASSIGN(lost, units_without_file(id));
  if (std::ranges::find(lost, unit) == lost.end()) lost.push_back(unit);  // It is damaged.
  std::string reason = "the result of unit " + std::to_string(unit.value);
  if (lost.size() > 1) reason += " and of " + std::to_string(lost.size() - 1) + " more";
  reason += " of " + task->spec.name +
            " was lost on the coordinator's disk: job retry has it computed again";
  std::vector<LargeResult> removed;
  SHOAL_TRY(needs_.store.transaction([&]() -> Result<void> {
    removed.clear();
    for (const UnitId one : lost) {
      SHOAL_TRY_ASSIGN(results, units_.remove_results(one));
      removed.insert(removed.end(), results.begin(), results.end());
    }
    if (!is_over(job->state)) return {};  // The broker says the rest.
    SHOAL_TRY(jobs_.set_task_state(id, TaskState::kStopped));
    if (job->state != JobState::kDone) return {};
    return jobs_.set_state(job->id, JobState::kFaulted, reason, needs_.clock.now_wall());
  }));
  note_useless(removed);
  remove_useless();
  if (!is_over(job->state)) {
    lost_[job->id] = reason;
    broker_.fail_job(job->id, id, now());
    schedule();
  } else {
    needs_.journal.note_of_job(ended_event(JobState::kFaulted), reason, job->id);
  }
  return {};
}

// True while there is more: its output file first, then the items of each task that goes on from
// it.
Result<bool> JobService::finish_some(TaskId id, Unfinished& state) {
  while (true) {
    if (state.output == nullptr && state.items == nullptr) SHOAL_TRY(begin_next(id, state));
    if (state.output != nullptr) {
      SHOAL_TRY_ASSIGN(more, state.output->go_on());
      if (more) return true;
      SHOAL_TRY(take_output(id, state));
    } else if (state.items != nullptr) {
      SHOAL_TRY_ASSIGN(more, state.items->go_on());
      if (more) return true;
      SHOAL_TRY(take_items(state));
    } else {
      return false;
    }
  }
}

Result<void> JobService::begin_next(TaskId id, Unfinished& state) {
  const auto live = tasks_.find(id);
  if (live == tasks_.end()) return {};
  SHOAL_TRY_ASSIGN(job, jobs_.find(live->second->job));
  if (!job) return {};
  const auto row = std::ranges::find(job->tasks, id, &StoredTask::id);
  SHOAL_CHECK(row != job->tasks.end());
  if (!row->output_digest) {
    SHOAL_TRY_ASSIGN(made, OutputMaker::begin(units_, live->second, needs_.folder,
                                              needs_.folder / new_file_name()));
    state.output = std::move(made);
    return {};
  }
  for (const StoredTask& follower : job->tasks) {
    const auto next = tasks_.find(follower.id);
    if (next == tasks_.end() || next->second->items != nullptr) continue;
    const std::optional<size_t> source = next->second->spec.input_task;
    if (!source || static_cast<int64_t>(*source) != row->position) continue;
    SHOAL_TRY_ASSIGN(made, ItemsMaker::begin(next->second,
                                             needs_.folder / (row->output_digest->hex() + ".jsonl"),
                                             needs_.folder, new_file_name()));
    state.items = std::move(made);
    return {};
  }
  return {};
}

Result<void> JobService::take_output(TaskId id, Unfinished& state) {
  const std::shared_ptr<const LiveTask> task = tasks_.at(id);
  SHOAL_TRY_ASSIGN(digest, state.output->writer().finish());
  // Items that were put aside may be tried again, and then all of it is written anew; so is what
  // was made of such items.
  bool again = false;
  for (std::shared_ptr<const LiveTask> at = task; at != nullptr && !again;) {
    SHOAL_TRY_ASSIGN(figures, this->figures(at->id));
    again = figures.poisoned > 0;
    at = at->spec.input_task ? tasks_.at(live_jobs_.at(at->job).at(*at->spec.input_task)) : nullptr;
  }
  std::vector<LargeResult> removed;
  SHOAL_TRY(needs_.store.transaction([&]() -> Result<void> {
    SHOAL_TRY(jobs_.set_output(id, digest));
    if (again) return {};
    SHOAL_TRY_ASSIGN(results, units_.remove_results(id));
    removed = std::move(results);
    return {};
  }));
  note_useless(removed);
  remove_useless();
  needs_.journal.note_of_job("task_done", task->spec.name + ": " + digest.hex(), task->job);
  state.output = nullptr;
  return {};
}

Result<void> JobService::take_items(Unfinished& state) {
  const std::unique_ptr<ItemsMaker> maker = std::move(state.items);
  SHOAL_TRY_ASSIGN(digest, maker->finish());
  SHOAL_TRY(jobs_.set_items(maker->task().id, digest));
  SHOAL_TRY_ASSIGN(items, ItemsFile::open(needs_.folder, digest));
  LiveTask with_items = maker->task();
  with_items.items = std::make_shared<const ItemsFile>(std::move(items));
  const TaskId id = with_items.id;
  tasks_[id] = std::make_shared<const LiveTask>(std::move(with_items));
  broker_.input_there(id, now());
  return {};
}

// False: the task has its output now, and its results are gone.
kj::Promise<bool> JobService::write_all(OutputMaker& maker, JobId job, TaskId task) {
  const std::optional<StoredJob> now = rpc::require(jobs_.find(job));
  if (!now) return false;
  const auto row = std::ranges::find(now->tasks, task, &StoredTask::id);
  if (row == now->tasks.end() || row->output_digest) return false;
  if (!rpc::require(maker.go_on())) return true;
  return needs_.timer.afterDelay(kTurn).then(
      [this, &maker, job, task] { return write_all(maker, job, task); });
}

// Of a job with millions of units nobody counts them all again and again.
Result<TaskFigures> JobService::figures(TaskId task) {
  auto known = counts_.find(task);
  if (known == counts_.end()) {
    SHOAL_TRY_ASSIGN(counts, units_.counts(task));
    known = counts_.emplace(task, counts).first;
  }
  TaskFigures figures = known->second;
  SHOAL_TRY(units_.look_at_open(task, figures));
  return figures;
}

void JobService::count(std::span<const Change> changes) {
  const auto ended = [this](TaskId task, UnitId unit, int64_t TaskFigures::*items) {
    const auto known = counts_.find(task);
    if (known == counts_.end()) return;
    const Result<int64_t> count = units_.items_of(unit);
    if (!count.ok()) {
      counts_.erase(known);  // It is counted anew.
      return;
    }
    known->second.*items += count.value();
    if (items == &TaskFigures::poisoned) known->second.units_poisoned += 1;
  };
  for (const Change& change : changes) {
    if (const auto* cut = std::get_if<UnitCut>(&change)) {
      if (const auto known = counts_.find(cut->task); known != counts_.end())
        known->second.cut += cut->items;
    } else if (const auto* done = std::get_if<UnitDone>(&change)) {
      ended(done->task, done->unit, &TaskFigures::done);
    } else if (const auto* poisoned = std::get_if<UnitPoisoned>(&change)) {
      ended(poisoned->task, poisoned->unit, &TaskFigures::poisoned);
    }
  }
}

void JobService::note_useless(std::span<const LargeResult> results) {
  for (const LargeResult& result : results)
    useless_.push_back(result_path(needs_.folder, result.unit, result.digest));
}

void JobService::remove_useless() {
  std::error_code ignored;  // The next start removes it.
  for (const std::filesystem::path& path : useless_) std::filesystem::remove(path, ignored);
  useless_.clear();
}

// ---- What administrators ask -------------------------------------------------------------------

Result<JobId> JobService::submit_job(NewJob job) {
  if (broken_) return *broken_;
  StoredJob stored;
  stored.name = job.file.name;
  stored.spec = job.spec;
  stored.priority = job.file.priority;
  stored.deadline = job.file.deadline;
  stored.submitted_at = needs_.clock.now_wall();
  for (size_t i = 0; i < job.file.tasks.size(); ++i) {
    const JobTask& spec = job.file.tasks[i];
    const LiveModel& model = *job.models[i];
    if (!model.group.empty() &&
        (job.file.anchored || (!job.file.group.empty() && job.file.group != model.group))) {
      return Error{ErrorCode::kDenied, "the model " + spec.model + " is for hosts of the group " +
                                           model.group + " alone: name that group, or no level"};
    }
    NewTask& task = job.tasks[i];
    StoredTask row;
    row.position = static_cast<int64_t>(i);
    row.name = spec.name;
    row.model = spec.model;
    row.kind = spec.kind;
    ItemSums sums = task.sums;
    if (spec.input_task) {
      // What it will be made from is not there yet: as many, and at most what the model holds.
      const StoredTask& source = stored.tasks[*spec.input_task];
      sums.count = source.items;
      sums.context_max = std::min<int64_t>(model.manifest.context, limits::kContextMax);
      sums.tokens_max = sums.context_max;
      const int64_t drawn = job.tasks[*spec.input_task].sums.tokens_max + spec.tokens_max;
      sums.rows = sums.count * std::min(drawn, sums.context_max);
      task.sums = sums;
    }
    row.items = sums.count;
    const int64_t rows_per_item =
        sums.count == 0 ? 1 : std::max<int64_t>((sums.rows + sums.count - 1) / sums.count, 1);
    row.flops_per_item =
        std::clamp(work_flops(model.costs, rows_per_item), Flops{1}, kItemFlopsMax);
    row.context = sums.context_max;
    row.memory = stage_memory(model.costs, sums.context_max, needs_.rows_max);
    row.unit_items_max = unit_items_max(spec.kind, sums.tokens_max, model.manifest.width);
    row.unit_target = spec.unit_target;
    row.items_digest = task.items;
    for (const size_t after : spec.after) row.after.push_back(TaskId{static_cast<int64_t>(after)});
    stored.tasks.push_back(std::move(row));
  }
  LiveTasks tasks;
  SHOAL_TRY(needs_.store.transaction([&]() -> Result<void> {
    SHOAL_TRY(jobs_.add(stored));
    SHOAL_TRY_ASSIGN(made, tasks_of(stored));
    tasks = std::move(made);
    return {};
  }));
  take_up_job(stored, tasks);
  for (auto& [host, facts] : hosts_) {
    // Its classes may be new: what owners deny is looked up again.
    if (needs_.pool.hosts().contains(host)) devices_changed(host);
  }
  const Result<void> submitted = broker_.submit_job(broker_spec(stored), now());
  SHOAL_CHECK(submitted.ok());  // The file was checked.
  needs_.journal.note_of_job("job_submitted", stored.name, stored.id);
  schedule();
  return stored.id;
}

kj::Promise<void> JobService::change_job(JobId id, JobOrder order) {
  require_store();
  const std::optional<StoredJob> job = rpc::require(jobs_.find(id));
  if (!job) {
    rpc::throw_error({ErrorCode::kNotFound, "there is no job " + std::to_string(id.value) +
                                                "; shoalctl job list shows them"});
  }
  const auto refuse = [&](const char* what) {
    rpc::throw_error({ErrorCode::kInvalid, "job " + std::to_string(id.value) + " " + what});
  };
  switch (order) {
    case JobOrder::kPause:
      if (is_over(job->state)) refuse("has ended: it cannot be paused");
      broker_.pause_job(id, true, now());
      break;
    case JobOrder::kResume:
      if (is_over(job->state)) refuse("has ended: retry tries what failed of it again");
      broker_.pause_job(id, false, now());
      break;
    case JobOrder::kCancel:
      if (is_over(job->state)) refuse("has ended already");
      broker_.cancel_job(id, now());
      break;
    case JobOrder::kRetry: rpc::require(retry(*job)); break;
  }
  return stored();
}

// The units that were put aside are open again, and all of the job that they kept from being done.
Result<void> JobService::retry(StoredJob job) {
  const std::string name = "job " + std::to_string(job.id.value);
  if (!is_over(job.state) || job.state == JobState::kCancelled) {
    return Error{ErrorCode::kInvalid, job.state == JobState::kCancelled
                                          ? name + " was cancelled: submit it again"
                                          : name + " has not ended yet"};
  }
  if (broker_.knows_job(job.id) || live_jobs_.contains(job.id)) {
    const Millis most = needs_.options.rules.pending_max + needs_.options.rules.pending_max;
    return Error{ErrorCode::kUnavailable,
                 name +
                     " has results that are still being judged, or written: try again later. A "
                     "later check of the same hosts decides, and without one they lapse after " +
                     std::to_string((most.count + 3'599'999) / 3'600'000) + " hours"};
  }
  SHOAL_TRY_ASSIGN(file, read_job_file(job.spec));
  bool any = job.state == JobState::kFaulted;
  BrokerRows rows;
  LiveTasks tasks;
  std::vector<LargeResult> removed;
  std::set<size_t> reopened;  // Places in the job; what goes on from a task comes after it.
  SHOAL_TRY(needs_.store.transaction([&]() -> Result<void> {
    for (size_t i = 0; i < job.tasks.size(); ++i) {
      StoredTask& task = job.tasks[i];
      SHOAL_TRY_ASSIGN(figures, units_.counts(task.id));
      const std::optional<size_t> source = file.tasks.at(i).input_task;
      const bool follows = source && reopened.contains(*source);
      if (task.state == TaskState::kDone && figures.poisoned == 0 && !follows) continue;
      any |= figures.poisoned > 0;
      reopened.insert(i);
      SHOAL_TRY(units_.reopen_poisoned(task.id));
      const std::optional<TaskId> changed =
          follows ? std::optional<TaskId>(job.tasks[*source].id) : std::nullopt;
      SHOAL_TRY_ASSIGN(results, units_.reopen_changed(task.id, changed));
      removed.insert(removed.end(), results.begin(), results.end());
      if (follows) {
        SHOAL_TRY(jobs_.forget_items(task.id));
        task.items_digest.reset();
      }
      SHOAL_TRY(jobs_.forget_output(task.id));
      task.output_digest.reset();
      task.state = TaskState::kWaiting;
      SHOAL_TRY(jobs_.set_task_state(task.id, task.state));
    }
    if (!any) return Error{ErrorCode::kInvalid, name + " has nothing that was put aside"};
    job.state = JobState::kRunning;
    SHOAL_TRY(jobs_.set_state(job.id, job.state, "", Millis{0}));
    SHOAL_TRY_ASSIGN(made, tasks_of(job));
    tasks = std::move(made);
    SHOAL_TRY(add_task_rows(job, rows));
    for (const StoredTask& task : job.tasks) SHOAL_TRY(units_.load_open(task.id, rows));
    return {};
  }));
  note_useless(removed);
  remove_useless();
  for (const StoredTask& task : job.tasks) counts_.erase(task.id);
  take_up_job(job, tasks);
  rows.jobs.push_back({broker_spec(job), job.state});
  needs_.journal.note_of_job("job_retried", job.name, job.id);
  return broker_.reopen_job(rows, now());
}

Result<ShownJob> JobService::shown(StoredJob job) {
  ShownJob out;
  for (const StoredTask& task : job.tasks) {
    SHOAL_TRY_ASSIGN(figures, this->figures(task.id));
    out.begun |= figures.cut > 0;
    out.tasks.push_back({task, figures});
  }
  if (const auto samples = rates_.find(job.id); samples != rates_.end() && !is_over(job.state)) {
    const double left = broker_.progress(job.id).flops_left;
    const RateSample& first = samples->second.front();
    const double done = first.flops_left - left;
    const double passed = static_cast<double>((now() - first.at).count);
    if (done > 0 && passed > 0) out.left = Millis{static_cast<int64_t>(left / done * passed)};
  }
  out.job = std::move(job);
  out.waits = why_waiting(out);
  return out;
}

// Looks for a host that might take what is left of the job's tasks.
std::string JobService::why_waiting(const ShownJob& shown) const {
  if (shown.job.state != JobState::kRunning) return "";
  std::string wanted;
  for (const ShownTask& task : shown.tasks) {
    if (task.figures.leased > 0) return "";
    const auto live = tasks_.find(task.row.id);
    if (live == tasks_.end() || task.row.state == TaskState::kDone) continue;
    const bool anchored = live->second->job_class.anchored;
    const std::string& group = live->second->group;
    wanted = anchored ? "a trusted host" : "a host";
    if (!group.empty()) wanted += " of the group " + group;
    bool connected = false, ready = false;
    for (const auto& [id, host] : needs_.pool.hosts()) {
      if ((anchored && !host->trusted) || (!group.empty() && host->membership.group != group))
        continue;
      connected = true;
      for (const PoolDevice& device : host->devices)
        ready |= device.state == DeviceState::kReady && device.worker_key;
    }
    if (ready) {
      if (!broker_.only_another_owner_can(task.row.id)) return "";
      wanted += " of another owner: what is left was computed by the owners who are here";
    } else {
      wanted += connected ? " whose device is ready; none has one now" : "; none is connected";
    }
  }
  return wanted.empty() ? "" : "it waits for " + wanted;
}

Result<ShownJob> JobService::show(JobId id) {
  SHOAL_TRY_ASSIGN(job, jobs_.find(id));
  if (!job) {
    return Error{ErrorCode::kNotFound,
                 "there is no job " + std::to_string(id.value) + "; shoalctl job list shows them"};
  }
  return shown(std::move(*job));
}

Result<std::vector<ShownJob>> JobService::list(int64_t ended_max) {
  SHOAL_TRY_ASSIGN(jobs, jobs_.list(ended_max));
  std::vector<ShownJob> out;
  for (StoredJob& job : jobs) {
    SHOAL_TRY_ASSIGN(one, shown(std::move(job)));
    out.push_back(std::move(one));
  }
  return out;
}

Result<std::vector<EventRow>> JobService::events(JobId job) {
  return needs_.sessions.events_of_job(job, 200);
}

kj::Promise<TaskOutput> JobService::output(JobId id, std::string name) {
  const std::optional<StoredJob> job = rpc::require(jobs_.find(id));
  if (!job) {
    rpc::throw_error({ErrorCode::kNotFound, "there is no job " + std::to_string(id.value) +
                                                "; shoalctl job list shows them"});
  }
  const auto row = name.empty() ? std::prev(job->tasks.end())
                                : std::ranges::find(job->tasks, name, &StoredTask::name);
  if (row == job->tasks.end()) {
    rpc::throw_error(
        {ErrorCode::kNotFound, "job " + std::to_string(id.value) + " has no task " + name});
  }
  if (const auto state = unfinished_.find(row->id);
      state != unfinished_.end() && state->second.running && !row->output_digest) {
    // It is being written: it has a digest soon.
    return needs_.timer.afterDelay(kLookAgain).then([this, id, name = row->name] {
      return output(id, name);
    });
  }
  TaskOutput output;
  if (row->output_digest) {
    output.path = needs_.folder / (row->output_digest->hex() + ".jsonl");
    output.digest = row->output_digest;
    output.items = row->items;
    return output;
  }
  output.path = needs_.folder / new_file_name();
  output.temporary = true;
  std::unique_ptr<OutputMaker> maker = rpc::require(
      OutputMaker::begin(units_, rpc::require(task_of(*job, *row)), needs_.folder, output.path));
  OutputMaker& making = *maker;
  return write_all(making, id, row->id)
      .then([this, &making, output, id, name = row->name](bool all) mutable {
        if (!all) return this->output(id, name);
        output.items = making.writer().lines();
        rpc::require(making.writer().leave());
        return kj::Promise<TaskOutput>(output);
      })
      .attach(kj::mv(maker));
}

bool JobService::uses_model(const std::string& name) const {
  return std::ranges::any_of(tasks_, [&](const auto& entry) {
    // What waits to be judged of a job that is over needs no model.
    const bool over = ended_jobs_.contains(entry.second->job) && !unfinished_.contains(entry.first);
    return entry.second->job_class.model == name && !over;
  });
}

}  // namespace shoal
