// The graph of a job, and handing its units out.

#include <map>
#include <tuple>

#include "coordinator/work/broker_core.h"

namespace shoal {
namespace {

constexpr int64_t kItemsMax = int64_t{1} << 40;  // Of a task: sums of them fit.
constexpr int64_t kSlowMax = 4;    // A unit that waited may take so many times the longest time.
constexpr size_t kQueueLook = 8;   // So many waiting units are looked at for one device.
constexpr size_t kCopiesMax = 32;  // Leases of a unit that ended without a result are forgotten.
constexpr int kReturnsMax = 32;    // Units that are given back without a rest.
constexpr int kReturnsOfUnit = 2;  // By one owner: then others are asked first.
constexpr int kFailuresMax = 3;    // In a row without a rest.
constexpr size_t kRedraws = 2;     // So many undrawn copies are drawn again at each request.
constexpr Millis kSlowWait{14'400'000};     // Then anybody may have it.
constexpr Millis kWishMax{31'622'400'000};  // A year.
constexpr double kFarMillis = 1e15;

Millis millis_of(double ms) { return {static_cast<int64_t>(std::min(ms, kFarMillis))}; }

}  // namespace

// ---- The graph ---------------------------------------------------------------------------------

Result<void> Broker::Core::check_job(const JobSpec& spec) const {
  const auto invalid = [](const char* what, int64_t id) {
    return Error{ErrorCode::kInvalid, std::string(what) + " " + std::to_string(id)};
  };
  if (spec.job.value <= 0 || job_by_id_.find(spec.job.value) != kNoSlot) {
    return invalid("the job's number is impossible or taken:", spec.job.value);
  }
  if (spec.tasks.empty()) return invalid("no task has the job", spec.job.value);
  std::map<TaskId, int> waits_for;
  for (const TaskSpec& task : spec.tasks) {
    if (task.task.value <= 0 || task_by_id_.find(task.task.value) != kNoSlot ||
        !waits_for.emplace(task.task, 0).second) {
      return invalid("the task's number is impossible or taken:", task.task.value);
    }
    if (task.items < 0 || task.items > kItemsMax || task.flops_per_item.count <= 0 ||
        task.unit_items_max < 0 || task.unit_target.count < 0) {
      return invalid("the items or their cost are impossible: task", task.task.value);
    }
  }
  std::multimap<TaskId, TaskId> followers;
  for (const TaskSpec& task : spec.tasks) {
    for (const TaskId before : task.after) {
      if (!waits_for.contains(before)) {
        return invalid("waits for a task that is not of its job: task", task.task.value);
      }
      followers.emplace(before, task.task);
      ++waits_for[task.task];
    }
  }
  std::vector<TaskId> ready;
  for (const auto& [task, count] : waits_for) {
    if (count == 0) ready.push_back(task);
  }
  for (size_t i = 0; i < ready.size(); ++i) {
    const auto [first, last] = followers.equal_range(ready[i]);
    for (auto it = first; it != last; ++it) {
      if (--waits_for[it->second] == 0) ready.push_back(it->second);
    }
  }
  if (ready.size() < spec.tasks.size()) {
    return invalid("tasks wait for each other in a circle: job", spec.job.value);
  }
  return {};
}

Slot Broker::Core::add_job(const JobSpec& spec) {
  const Slot slot = jobs_.add();
  job_by_id_.add(spec.job.value, slot);
  Job& job = jobs_[slot];
  job.id = spec.job;
  job.priority = spec.priority;
  job.deadline = spec.deadline;
  for (const TaskSpec& from : spec.tasks) {
    const Slot at = tasks_.add();
    task_by_id_.add(from.task.value, at);
    Task& task = tasks_[at];
    task.spec = from;
    task.job = slot;
    task.waits_for = static_cast<int>(from.after.size());
    job.tasks.push_back(at);
    job.items += from.items;
  }
  for (const Slot at : job.tasks) {
    for (const TaskId before : tasks_[at].spec.after) {
      tasks_[task_by_id_.find(before.value)].followers.push_back(at);
    }
  }
  return slot;
}

Result<void> Broker::Core::submit_job(const JobSpec& spec) {
  SHOAL_TRY(check_job(spec));
  add_job(spec);
  changes_.push_back(JobChanged{spec.job, JobState::kRunning});
  for (const TaskSpec& task : spec.tasks) {
    if (!task.after.empty()) continue;
    const Slot at = task_by_id_.find(task.task.value);
    if (at != kNoSlot) start_task(at);  // A job of no items may be over already.
  }
  return {};
}

void Broker::Core::start_task(Slot slot) {
  Task& task = tasks_[slot];
  task.state = TaskState::kRunning;
  changes_.push_back(TaskChanged{task.spec.task, task.state});
  sort_runnable();
  task_progressed(slot);
}

void Broker::Core::task_progressed(Slot slot) {
  Task& task = tasks_[slot];
  if (task.state != TaskState::kRunning) return;
  if (task.items_done + task.items_poisoned < task.spec.items) return;
  task.state = TaskState::kDone;
  changes_.push_back(TaskChanged{task.spec.task, task.state});
  const Slot job = task.job;
  const bool over = std::ranges::all_of(
      jobs_[job].tasks, [this](Slot each) { return tasks_[each].state == TaskState::kDone; });
  if (over) return job_over(job, JobState::kDone);
  const std::vector<Slot> followers = task.followers;
  for (const Slot next : followers) {
    // The job may be over before the loop is: a task of no items is done as it starts.
    if (jobs_[job].id.value == 0) return;
    if (--tasks_[next].waits_for == 0) start_task(next);
  }
  sort_runnable();
}

void Broker::Core::job_over(Slot slot, JobState state) {
  Job& job = jobs_[slot];
  job.state = state;
  changes_.push_back(JobChanged{job.id, state});
  sort_runnable();
  // Its items may be deleted now: they cannot be sent as known answers any more.
  for (size_t i = known_.size(); i > 0; --i) {
    const Slot unit = known_.front();
    known_.pop_front();
    if (tasks_[units_[unit].task].job != slot) {
      known_.push_back(unit);
      continue;
    }
    units_[unit].known = false;
    forget_if_over(unit);
  }
  if (jobs_[slot].id.value != 0) remove_if_over(slot);
}

void Broker::Core::remove_if_over(Slot slot) {
  const Job& job = jobs_[slot];
  if (job.state == JobState::kRunning || job.state == JobState::kPaused) return;
  for (const Slot task : job.tasks) {
    if (tasks_[task].units > 0) return;
  }
  for (const Slot task : job.tasks) {
    task_by_id_.remove(tasks_[task].spec.task.value);
    tasks_.remove(task);
  }
  job_by_id_.remove(job.id.value);
  jobs_.remove(slot);
}

bool Broker::Core::pause_job(JobId id, bool paused) {
  const Slot slot = job_by_id_.find(id.value);
  if (slot == kNoSlot) return false;
  Job& job = jobs_[slot];
  if (job.state != JobState::kRunning && job.state != JobState::kPaused) return false;
  const JobState state = paused ? JobState::kPaused : JobState::kRunning;
  if (job.state == state) return true;
  job.state = state;
  changes_.push_back(JobChanged{id, state});
  sort_runnable();
  return true;
}

bool Broker::Core::cancel_job(JobId id) {
  const Slot slot = job_by_id_.find(id.value);
  if (slot == kNoSlot) return false;
  const JobState state = jobs_[slot].state;
  if (state != JobState::kRunning && state != JobState::kPaused) return false;
  stop_job(slot, JobState::kCancelled);
  settle_all();
  return true;
}

bool Broker::Core::fail_job(JobId id, TaskId lost) {
  const Slot slot = job_by_id_.find(id.value);
  const Slot task = task_by_id_.find(lost.value);
  if (slot == kNoSlot || task == kNoSlot || tasks_[task].job != slot) return false;
  const JobState state = jobs_[slot].state;
  if (state != JobState::kRunning && state != JobState::kPaused) return false;
  tasks_[task].state = TaskState::kRunning;  // It is not done: it is stopped with the others.
  stop_job(slot, JobState::kFaulted);
  settle_all();
  return true;
}

void Broker::Core::input_there(TaskId id) {
  const Slot task = task_by_id_.find(id.value);
  if (task == kNoSlot) return;
  tasks_[task].spec.waits_for_input = false;
  sort_runnable();
}

// Results that are pending stay so: a later check of their host can still confirm them, for the
// work was done. Nothing else of the job is kept.
void Broker::Core::stop_job(Slot slot, JobState state) {
  std::vector<Slot> hosts;  // Whose results lose a check that others waited for.
  for (const Slot task : jobs_[slot].tasks) {
    if (tasks_[task].state == TaskState::kDone) continue;
    tasks_[task].state = TaskState::kStopped;
    changes_.push_back(TaskChanged{tasks_[task].spec.task, TaskState::kStopped});
  }
  for (Slot at = 0; at < units_.size(); ++at) {
    Unit& unit = units_[at];
    if (unit.id.value == 0 || tasks_[unit.task].job != slot) continue;
    set_carried(at, false);
    if (unit.queued) --tasks_[unit.task].queued;
    unit.queued = false;
    unit.drawn = kNoSlot;
    if (unit.state == UnitState::kOpen) {
      want(at, UnitWant::kNothing);
      unit.state = UnitState::kDropped;
    }
    for (Slot copy = unit.copies; copy != kNoSlot; copy = copies_[copy].next) {
      if (copies_[copy].live) end_lease(copy, LeaseEndReason::kCancelled);
      if (copies_[copy].state == ResultState::kSuspect) reject(copy, RejectReason::kUnproven);
      if (copies_[copy].state == ResultState::kPending) hosts.push_back(copies_[copy].host);
    }
  }
  job_over(slot, state);
  for (Slot at = 0; at < units_.size(); ++at) {
    if (units_[at].id.value != 0 && units_[at].state == UnitState::kDropped) forget_if_over(at);
  }
  // Audits of this job that vouched for results of others are gone.
  for (const Slot task : runnable_) {
    tasks_[task].swept = false;
    sweep_if_closing(task);
  }
  std::ranges::sort(hosts);
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  for (const Slot host : hosts) vouch(host, 0, {});
}

void Broker::Core::sort_runnable() {
  runnable_.clear();
  for (Slot slot = 0; slot < tasks_.size(); ++slot) {
    const Task& task = tasks_[slot];
    if (task.spec.task.value == 0 || task.state != TaskState::kRunning) continue;
    if (task.spec.waits_for_input) continue;
    if (jobs_[task.job].state == JobState::kRunning) runnable_.push_back(slot);
  }
  std::ranges::sort(runnable_, [this](Slot a, Slot b) {
    const Job& left = jobs_[tasks_[a].job];
    const Job& right = jobs_[tasks_[b].job];
    const auto deadline = [](const Job& job) {
      return job.deadline.count == 0 ? INT64_MAX : job.deadline.count;
    };
    const auto key = [&](const Job& job, Slot task) {
      return std::tuple(-int64_t{job.priority}, deadline(job), job.id, tasks_[task].spec.task);
    };
    return key(left, a) < key(right, b);
  });
}

// When the last items of a task are handed out, the hosts that have nothing more of it have the
// last of their results audited, so that what they did becomes confirmed.
void Broker::Core::sweep_if_closing(Slot slot) {
  Task& task = tasks_[slot];
  if (task.swept || !closing(task)) return;
  task.swept = true;
  for (Slot host = 0; host < hosts_.size(); ++host) {
    if (hosts_[host].newest != kNoSlot) close_out(host);
  }
}

// ---- Handing out -------------------------------------------------------------------------------

double Broker::Core::unit_flops(const Unit& unit) const {
  return static_cast<double>(unit.items) *
         static_cast<double>(tasks_[unit.task].spec.flops_per_item.count);
}

Millis Broker::Core::target_of(const Task& task) const {
  return task.spec.unit_target.count > 0 ? task.spec.unit_target : rules_.unit_target;
}

Millis Broker::Core::expected(const Unit& unit, const Device& device) const {
  // After a restart a device may renew before it says how fast it is.
  if (device.speed <= 0) return rules_.unit_target;
  return millis_of(unit_flops(unit) / device.speed * 1000);
}

Millis Broker::Core::held(const Device& device) const {
  Millis sum{0};
  for (const Slot copy : device.live) sum += expected(units_[copies_[copy].unit], device);
  return sum;
}

// What stands between this device and this task, first of all.
NoWork Broker::Core::obstacle(const Task& task, const Device& device) const {
  const auto& denied = device.facts.denied;
  if (std::ranges::find(denied, task.spec.job_class) != denied.end()) return NoWork::kDenied;
  if (task.spec.trusted_only && !hosts_[device.host].facts.trusted) return NoWork::kTrustedOnly;
  if (task.spec.memory > device.facts.memory) return NoWork::kTooLarge;
  return NoWork::kNone;
}

Millis Broker::Core::longest(const Device& device, const LeaseRequest& request) const {
  return request.available - held(device);
}

LeaseAnswer Broker::Core::lease(const LeaseRequest& wish) {
  LeaseRequest request = wish;
  request.available = std::clamp(wish.available, Millis{0}, kWishMax);
  request.wanted = std::clamp(wish.wanted, Millis{0}, kWishMax);
  LeaseAnswer answer;
  const auto refuse = [&](NoWork why, Millis again) {
    answer.why = why;
    answer.ask_again = again;
    return answer;
  };
  const Slot slot = device_by_id_.find(request.device.value);
  if (slot == kNoSlot || !devices_[slot].ready) {
    return refuse(NoWork::kUnknownDevice, now_ + rules_.ask_again_min);
  }
  Device& device = devices_[slot];
  const Host& host = hosts_[device.host];
  if (host.facts.banned) return refuse(NoWork::kBanned, now_ + rules_.ask_again_max);
  if (quarantined(device.host)) return refuse(NoWork::kQuarantined, host.quarantined_until);
  if (device.rest_until > now_) return refuse(NoWork::kEnough, device.rest_until);
  refresh_active(slot);
  if (!device.facts.exact) return refuse(NoWork::kNotExact, now_ + rules_.ask_again_max);

  for (size_t i = std::min(kRedraws, unplaced_.size()); i > 0; --i) {
    const Slot unit = unplaced_.front();
    unplaced_.pop_front();
    units_[unit].unplaced = false;
    mark(unit);
  }
  settle_all();

  NoWork why = NoWork::kNone;
  for (int i = 0; i < request.units_max; ++i) {
    // Something is always given to who holds nothing, however little it wants.
    const bool first = device.live.empty();
    if (device.live.size() >= static_cast<size_t>(std::max(device.ahead_max, 1.0)) ||
        (!first && held(device) >= request.wanted)) {
      why = NoWork::kEnough;
      break;
    }
    if (!grant_drawn(slot, request, answer) && !grant_known(slot, request, answer) &&
        !grant_work(slot, request, answer, why)) {
      break;
    }
  }
  settle_all();
  if (!answer.grants.empty()) return answer;
  if (why == NoWork::kNone) why = NoWork::kEnough;  // It wanted no unit.
  return refuse(why, ask_again(why, device));
}

// Spread, and the later the more devices there are: about a hundred requests a second in all.
Millis Broker::Core::ask_again(NoWork why, const Device& device) {
  const auto least = static_cast<double>(rules_.ask_again_min.count);
  const auto most = static_cast<double>(rules_.ask_again_max.count);
  double wait = std::clamp(10.0 * static_cast<double>(active_.size()), least, most);
  if (why == NoWork::kEnough) {
    wait = std::clamp(static_cast<double>(held(device).count) / 2, least, most);
  }
  return now_ + millis_of(wait * (0.5 + chance_.uniform()));
}

void Broker::Core::grant(Slot unit_slot, Slot device_slot, Purpose purpose, LeaseAnswer& answer) {
  Unit& unit = units_[unit_slot];
  Device& device = devices_[device_slot];
  const Task& task = tasks_[unit.task];
  const Millis time = expected(unit, device);
  const double life = rules_.lease_factor * static_cast<double>((held(device) + time).count);
  forget_lost_copies(unit);
  const Slot slot = copies_.add();
  Copy& copy = copies_[slot];
  copy.id = {++last_lease_};
  copy.at = now_;
  copy.until = now_ + std::min(millis_of(life) + rules_.lease_slack, rules_.lease_max);
  copy.unit = unit_slot;
  copy.host = device.host;
  copy.device = device_slot;
  copy.next = unit.copies;
  copy.purpose = purpose;
  copy.live = true;
  unit.copies = slot;
  device.live.push_back(slot);
  device.last_task = unit.task;
  changes_.push_back(LeaseGranted{copy.id, unit.id, hosts_[device.host].facts.host,
                                  device.facts.device, purpose, copy.at, copy.until});
  at(copy.until, TimerKind::kLease, slot, copy.id.value);
  answer.grants.push_back(
      {copy.id, unit.id, task.spec.task, unit.first_item, unit.items, copy.until, time, purpose});
}

// Who takes a unit and lets it go, again and again, shall cost no memory. What a forgotten lease
// held is answered from its row.
void Broker::Core::forget_lost_copies(Unit& unit) {
  size_t count = 0;
  for (Slot* at = &unit.copies; *at != kNoSlot;) {
    const Copy& copy = copies_[*at];
    const bool lost = !copy.live && !copy.has_result() && copy.why != LeaseEndReason::kFailed;
    const Slot slot = *at;
    if (++count < kCopiesMax || !lost) {
      at = &copies_[slot].next;
      continue;
    }
    *at = copy.next;
    copies_.remove(slot);
  }
}

bool Broker::Core::only_another_owner_can(TaskId id) const {
  const Slot slot = task_by_id_.find(id.value);
  if (slot == kNoSlot || tasks_[slot].items_cut < tasks_[slot].spec.items) return false;
  const auto has_result = [this](const Unit& unit, OwnerId owner) {
    for (Slot at = unit.copies; at != kNoSlot; at = copies_[at].next)
      if (copies_[at].has_result() && owner_of(copies_[at].host) == owner) return true;
    return false;
  };
  constexpr size_t kLooks = 1024;
  bool any = false;
  size_t looks = kLooks;
  for (const Slot queued : tasks_[slot].queue) {
    const Unit& unit = units_[queued];
    if (!unit.queued || unit.task != slot) continue;
    any = true;
    for (const Slot active : active_) {
      const Device& device = devices_[active];
      if (obstacle(tasks_[slot], device) == NoWork::kNone &&
          !has_result(unit, owner_of(device.host)))
        return false;
      if (--looks == 0) return false;
    }
  }
  return any;
}

bool Broker::Core::units_wait() const {
  const auto is_wanted = [this](Slot slot) {
    const Task& task = tasks_[slot];
    return task.queued > 0 || task.items_cut < task.spec.items;
  };
  const auto is_drawn = [this](Slot device) {
    return std::ranges::any_of(devices_[device].drawn,
                               [&](Slot unit) { return units_[unit].drawn == device; });
  };
  return std::ranges::any_of(runnable_, is_wanted) || std::ranges::any_of(active_, is_drawn);
}

bool Broker::Core::grant_drawn(Slot slot, const LeaseRequest& request, LeaseAnswer& answer) {
  Device& device = devices_[slot];
  const Millis room = longest(device, request);
  for (size_t i = 0; i < device.drawn.size();) {
    const Slot unit = device.drawn[i];
    bool holds = units_[unit].drawn == slot;
    // It may have changed since: its owner denies that now, another of his has a result.
    const bool judge =
        next_purpose(units_[unit]) == Purpose::kJudge && hosts_[device.host].facts.trusted;
    const bool paused = holds && jobs_[tasks_[units_[unit].task].job].state == JobState::kPaused;
    if (holds && (paused || !may_run(units_[unit], device, judge))) {
      undraw(unit);
      holds = false;
    }
    if (holds && expected(units_[unit], device) > room) {
      ++i;
      continue;
    }
    device.drawn.erase(device.drawn.begin() + static_cast<ptrdiff_t>(i));
    if (!holds) continue;
    const Purpose purpose = next_purpose(units_[unit]);
    units_[unit].drawn = kNoSlot;
    grant(unit, slot, purpose, answer);
    return true;
  }
  return false;
}

bool Broker::Core::grant_known(Slot slot, const LeaseRequest& request, LeaseAnswer& answer) {
  const Device& device = devices_[slot];
  const Host& host = hosts_[device.host];
  if (known_.empty() || host.facts.trusted) return false;
  const bool newcomer = host.valid_in_row < rules_.newcomer_units;
  if (chance_.uniform() >= (newcomer ? rules_.known_rate_newcomer : rules_.known_rate))
    return false;
  const Slot unit = known_[chance_.below(known_.size())];
  if (!may_run(units_[unit], device, /*judge=*/false)) return false;
  const Millis time = expected(units_[unit], device);
  // One that is about as long as its own would be: others it could tell.
  const Millis target = target_of(tasks_[units_[unit].task]);
  if (time > longest(device, request) || 2 * time.count < target.count ||
      2 * time.count > 3 * target.count) {
    return false;
  }
  grant(unit, slot, Purpose::kKnown, answer);
  return true;
}

bool Broker::Core::grant_work(Slot slot, const LeaseRequest& request, LeaseAnswer& answer,
                              NoWork& why) {
  const Device& device = devices_[slot];
  const Millis room = longest(device, request);
  why = runnable_.empty() ? NoWork::kNoJobs : NoWork::kAllOut;
  const auto try_task = [&](Slot task) {
    if (tasks_[task].items_cut == tasks_[task].spec.items && tasks_[task].queued == 0) return false;
    NoWork here = obstacle(tasks_[task], device);
    Slot unit = kNoSlot;
    if (here == NoWork::kNone) {
      unit = queued_unit(task, slot, room, here);
      if (unit == kNoSlot) unit = cut_unit(task, slot, room, here);
    }
    if (unit == kNoSlot) {
      if (why == NoWork::kAllOut && here != NoWork::kNone) why = here;
      return false;
    }
    why = NoWork::kNone;
    const Purpose purpose = next_purpose(units_[unit]);
    grant(unit, slot, purpose, answer);
    sweep_if_closing(task);
    return true;
  };
  // The model that the device has worked on is loaded: it comes first among equals.
  const auto usual = std::ranges::find(runnable_, device.last_task);
  for (const Slot task : runnable_) {
    if (usual != runnable_.end() && *usual != task &&
        jobs_[tasks_[*usual].job].priority == jobs_[tasks_[task].job].priority &&
        jobs_[tasks_[*usual].job].deadline == jobs_[tasks_[task].job].deadline &&
        try_task(*usual)) {
      return true;
    }
    if (try_task(task)) return true;
  }
  return false;
}

Slot Broker::Core::queued_unit(Slot task_slot, Slot device_slot, Millis room, NoWork& why) {
  Task& task = tasks_[task_slot];
  const Device& device = devices_[device_slot];
  const OwnerId owner = owner_of(device.host);
  // Those that are not for this device go to the back: they shall not hide the others.
  size_t looks = std::min(kQueueLook, task.queue.size());
  while (!task.queue.empty() && task.queued > 0) {
    const Slot slot = task.queue.front();
    Unit& unit = units_[slot];
    bool take = unit.queued && unit.task == task_slot;
    if (take) {
      const bool fresh = unit.since + rules_.claim_max > now_;
      bool failed = false, has_result = false;
      int returns = 0, of_its_kind = 0;
      for (Slot copy = unit.copies; copy != kNoSlot; copy = copies_[copy].next) {
        // Of a job that was tried again: it would not be taken.
        has_result |= copies_[copy].has_result() && owner_of(copies_[copy].host) == owner;
        failed |= copies_[copy].why == LeaseEndReason::kFailed && !copies_[copy].live &&
                  owner_of(copies_[copy].host) == owner;
        returns += copies_[copy].why == LeaseEndReason::kGivenBack && !copies_[copy].live &&
                   owner_of(copies_[copy].host) == owner;
        of_its_kind +=
            copies_[copy].why == LeaseEndReason::kFailed && !copies_[copy].live &&
            copies_[copy].device != kNoSlot &&
            devices_[copies_[copy].device].facts.device_class == device.facts.device_class;
      }
      // Others are asked first, and another kind of device where one kind alone failed.
      failed |= returns >= kReturnsOfUnit;
      failed |= fresh && of_its_kind >= rules_.poison_hosts &&
                another_could_run(unit, {device.facts.device_class});
      const Millis time = expected(unit, device);
      const bool too_long = time > room;
      if (too_long) why = NoWork::kTooLong;
      const Millis slow{rules_.unit_max.count * (fresh ? 1 : kSlowMax)};
      if (too_long || has_result || (fresh && failed) ||
          (unit.since + kSlowWait > now_ && time > slow)) {
        task.queue.pop_front();
        task.queue.push_back(slot);
        if (--looks == 0) break;
        continue;
      }
      unit.queued = false;
      --task.queued;
    }
    task.queue.pop_front();
    if (take) return slot;
    looks = std::min(looks, task.queue.size());
    if (looks == 0) break;
  }
  return kNoSlot;
}

Slot Broker::Core::cut_unit(Slot task_slot, Slot device_slot, Millis room, NoWork& why) {
  Task& task = tasks_[task_slot];
  const Device& device = devices_[device_slot];
  const int64_t left = task.spec.items - task.items_cut;
  if (left == 0) return kNoSlot;
  const double item_flops = static_cast<double>(task.spec.flops_per_item.count);
  const double item_ms = item_flops / device.speed * 1000;
  const double believed_ms = item_flops / believed_speed(device) * 1000;
  const double lease_ms = static_cast<double>(rules_.lease_max.count) / rules_.lease_factor;
  const Millis wished = std::min(target_of(task), room);
  const double target = std::min(static_cast<double>(wished.count), lease_ms);
  int64_t items = std::max<int64_t>(1, static_cast<int64_t>(std::min(target / believed_ms, 1e9)));
  if (item_ms > static_cast<double>(room.count) || item_ms > lease_ms) {
    why = NoWork::kTooLong;
    return kNoSlot;
  }
  items = std::min({items, left, rules_.unit_items_max});
  if (task.spec.unit_items_max > 0) items = std::min(items, task.spec.unit_items_max);
  const Slot slot = units_.add();
  Unit& unit = units_[slot];
  unit.id = {++last_unit_};
  unit.first_item = task.items_cut;
  unit.items = static_cast<uint32_t>(items);
  unit.task = task_slot;
  unit_by_id_.add(unit.id.value, slot);
  ++task.units;
  task.items_cut += items;
  changes_.push_back(UnitCut{unit.id, task.spec.task, unit.first_item, items});
  return slot;
}

Slot Broker::Core::find_copy(const LeaseName& name) const {
  const Slot unit = unit_by_id_.find(name.unit.value);
  if (unit == kNoSlot || !name.lease) return kNoSlot;
  for (Slot copy = units_[unit].copies; copy != kNoSlot; copy = copies_[copy].next) {
    if (copies_[copy].id != name.lease) continue;
    return hosts_[copies_[copy].host].facts.host == name.host ? copy : kNoSlot;
  }
  return kNoSlot;
}

Renewal Broker::Core::held(const LeaseName& name) const {
  const Slot slot = find_copy(name);
  if (slot == kNoSlot) return {RenewAnswer::kUnknown};
  const Copy& copy = copies_[slot];
  const Unit& unit = units_[copy.unit];
  const bool needed = unit.state == UnitState::kOpen || copy.purpose == Purpose::kKnown;
  if (!needed || copy.state != ResultState::kNone) return {RenewAnswer::kNotNeeded};
  if (!copy.live) return {RenewAnswer::kLost};
  return {RenewAnswer::kRenewed, copy.until};
}

Renewal Broker::Core::renew(const LeaseName& name) {
  if (const Renewal now = held(name); now.answer != RenewAnswer::kRenewed) return now;
  Copy& copy = copies_[find_copy(name)];
  if (copy.renewals < rules_.renewals_max) {
    ++copy.renewals;
    const double life =
        rules_.lease_factor * static_cast<double>(held(devices_[copy.device]).count);
    const Millis until = now_ + std::min(millis_of(life) + rules_.lease_slack, rules_.lease_max);
    if (until > copy.until) {
      copy.until = until;
      changes_.push_back(LeaseExtended{copy.id, until});
    }
  }
  return {RenewAnswer::kRenewed, copy.until};
}

bool Broker::Core::give_back(const LeaseName& name) {
  const Slot copy = find_copy(name);
  if (copy == kNoSlot || !copies_[copy].live) return false;
  Device& device = devices_[copies_[copy].device];
  end_lease(copy, LeaseEndReason::kGivenBack);
  if (device.last_return + rules_.ask_again_max < now_) device.returns = 0;
  device.last_return = now_;
  if (++device.returns > kReturnsMax) rest(device, device.returns - kReturnsMax);
  settle_all();
  return true;
}

void Broker::Core::end_lease(Slot slot, LeaseEndReason why) {
  Copy& copy = copies_[slot];
  SHOAL_CHECK(copy.live);
  copy.live = false;
  copy.why = why;
  changes_.push_back(LeaseEnded{copy.id, why, now_});
  Device& device = devices_[copy.device];
  std::erase(device.live, slot);
  if (why == LeaseEndReason::kSubmitted) {
    device.ahead_max = std::min(device.ahead_max + 1, double(rules_.units_ahead_max));
    // What it took includes waiting, pauses and transfers: what counts for the next unit.
    const Millis took = now_ - std::max(copy.at, device.last_result);
    const double told = std::max(device.facts.flops_per_second, 1.0);
    const double speed = unit_flops(units_[copy.unit]) * 1000 /
                         static_cast<double>(std::max<int64_t>(took.count, 1));
    device.speed =
        std::clamp(device.speed + rules_.speed_weight * (std::min(speed, 4 * told) - device.speed),
                   told / 16, told * 2);
    if (rules_.speed_weight > 0) {
      // The first says nearly all; and no telling makes a device much faster than it was seen.
      device.shown += (device.shown > 0 ? rules_.speed_weight : 1) * (speed - device.shown);
      device.speed = std::min(device.speed, 2 * device.shown);
    }
    device.last_result = now_;
    device.failures = device.returns = 0;
    return;
  }
  // It may be slower than it says: what it did not do is not cut for it again.
  const bool let_go = why == LeaseEndReason::kExpired || why == LeaseEndReason::kGivenBack;
  if (let_go && device.shown == 0 && rules_.speed_weight > 0) {
    device.speed = std::max(device.speed / 2, 1.0);
  }
  if (why == LeaseEndReason::kFailed && ++device.failures >= kFailuresMax) {
    rest(device, device.failures - kFailuresMax + 1);
  }
  if (why == LeaseEndReason::kExpired || why == LeaseEndReason::kFailed) {
    device.ahead_max = std::max(device.ahead_max / 2, 1.0);
  }
  mark(copy.unit);
  if (closing(tasks_[units_[copy.unit].task])) close_out(copy.host);
}

}  // namespace shoal
