#include "coordinator/work/broker.h"

#include <limits>

#include "coordinator/work/broker_core.h"

namespace shoal {
namespace {

constexpr size_t kFleetLook = 48;  // Owners that are looked at to know how fast others are.
constexpr size_t kFleetShown = 8;  // So many that have shown it are enough.
constexpr int kRestDoublings = 10;

}  // namespace

std::string_view no_work_code(NoWork why) {
  switch (why) {
    case NoWork::kNone: return "";
    case NoWork::kUnknownDevice: return "batch.unknown_device";
    case NoWork::kBanned: return "batch.banned";
    case NoWork::kQuarantined: return "batch.quarantined";
    case NoWork::kNotExact: return "batch.not_exact";
    case NoWork::kEnough: return "batch.enough";
    case NoWork::kNoJobs: return "batch.no_jobs";
    case NoWork::kAllOut: return "batch.all_out";
    case NoWork::kDenied: return "batch.denied";
    case NoWork::kTrustedOnly: return "batch.trusted_only";
    case NoWork::kTooLarge: return "batch.too_large";
    case NoWork::kTooLong: return "batch.too_long";
  }
  SHOAL_UNREACHABLE();
}

std::string_view reject_code(RejectReason reason) {
  switch (reason) {
    case RejectReason::kNone: return "";
    case RejectReason::kWrong: return "batch.wrong_result";
    case RejectReason::kUnproven: return "batch.unproven";
  }
  SHOAL_UNREACHABLE();
}

SubmitAnswer answer_from_rows(const LeaseRow* lease, bool unit_done, bool owner_has_result) {
  if (lease == nullptr) return SubmitAnswer::kUnknown;
  if (lease->state != ResultState::kNone) return SubmitAnswer::kDuplicate;
  const bool declined = !lease->live && (lease->why == LeaseEndReason::kGivenBack ||
                                         lease->why == LeaseEndReason::kFailed);
  if (declined || owner_has_result) return SubmitAnswer::kNotNeeded;
  return unit_done ? SubmitAnswer::kExtra : SubmitAnswer::kNotNeeded;
}

// ---- The door ----------------------------------------------------------------------------------

Broker::Broker(const BrokerRules& rules, Random chance)
    : core_(std::make_unique<Core>(rules, chance)) {}
Broker::~Broker() = default;
Broker::Broker(Broker&&) noexcept = default;
Broker& Broker::operator=(Broker&&) noexcept = default;

Result<void> Broker::restore(const BrokerRows& rows, Millis now) {
  core_->see(now);
  return core_->restore(rows);
}
void Broker::host_known(const HostFacts& facts, Millis now) {
  core_->see(now);
  core_->host_known(facts);
}
void Broker::device_ready(const DeviceFacts& facts, Millis now) {
  core_->see(now);
  core_->device_ready(facts);
}
void Broker::device_gone(DeviceId device, Millis now) {
  core_->see(now);
  core_->device_gone(device);
}
Result<void> Broker::submit_job(const JobSpec& spec, Millis now) {
  core_->see(now);
  return core_->submit_job(spec);
}
Result<void> Broker::reopen_job(const BrokerRows& rows, Millis now) {
  core_->see(now);
  return core_->take_up(rows);
}
bool Broker::knows_job(JobId job) const { return core_->knows_job(job); }
bool Broker::pause_job(JobId job, bool paused, Millis now) {
  core_->see(now);
  return core_->pause_job(job, paused);
}
bool Broker::cancel_job(JobId job, Millis now) {
  core_->see(now);
  return core_->cancel_job(job);
}
bool Broker::fail_job(JobId job, TaskId lost, Millis now) {
  core_->see(now);
  return core_->fail_job(job, lost);
}
void Broker::input_there(TaskId task, Millis now) {
  core_->see(now);
  core_->input_there(task);
}
LeaseAnswer Broker::lease(const LeaseRequest& request, Millis now) {
  core_->see(now);
  return core_->lease(request);
}
Renewal Broker::renew(const LeaseName& name, Millis now) {
  core_->see(now);
  return core_->renew(name);
}
Renewal Broker::held(const LeaseName& name) const { return core_->held(name); }
bool Broker::give_back(const LeaseName& name, Millis now) {
  core_->see(now);
  return core_->give_back(name);
}
bool Broker::fail(const LeaseName& name, Millis now) {
  core_->see(now);
  return core_->fail(name);
}
SubmitAnswer Broker::submit(const Submission& submission, Millis now) {
  core_->see(now);
  return core_->submit(submission);
}
void Broker::stage_checked(HostId host, bool right, Millis now) {
  core_->see(now);
  core_->stage_checked(host, right);
}
HostChanged Broker::record(HostId host) const { return core_->record(host); }
void Broker::tick(Millis now) { core_->tick(now); }
Millis Broker::next_due() const { return core_->next_due(); }
void Broker::outage(Millis from, Millis to) { core_->outage(from, to); }
void Broker::take_changes(std::vector<Change>& into) { core_->take_changes(into); }
std::vector<Change> Broker::take_changes() {
  std::vector<Change> changes;
  core_->take_changes(changes);
  return changes;
}
Progress Broker::progress(JobId job) const { return core_->progress(job); }
size_t Broker::live_units() const { return core_->live_units(); }
bool Broker::units_wait() const { return core_->units_wait(); }
bool Broker::only_another_owner_can(TaskId task) const {
  return core_->only_another_owner_can(task);
}

// Rules come from a settings table, which holds them in bounds: others are our bug.
Broker::Core::Core(const BrokerRules& rules, Random chance) : rules_(rules), chance_(chance) {
  const auto share = [](double value) { return value >= 0 && value <= 1; };
  SHOAL_CHECK(rules.unit_target.count > 0 && rules.unit_max.count > 0 && rules.lease_max.count > 0);
  SHOAL_CHECK(rules.unit_items_max > 0 && rules.unit_items_max <= UINT32_MAX);
  SHOAL_CHECK(rules.lease_factor > 0 && rules.lease_factor < 1e6);
  SHOAL_CHECK(rules.renewals_max >= 0 && rules.renewals_max < UINT16_MAX);
  SHOAL_CHECK(share(rules.speed_weight) && share(rules.audit_floor));
  SHOAL_CHECK(rules.poison_hosts > 0 && rules.quarantine <= rules.quarantine_max);
  SHOAL_CHECK(rules.ask_again_min.count >= 0 && rules.ask_again_min <= rules.ask_again_max);
}

// ---- Hosts and devices -------------------------------------------------------------------------

OwnerId Broker::Core::owner_of(Slot host) const {
  const HostFacts& facts = hosts_[host].facts;
  return facts.owner ? facts.owner : OwnerId{-facts.host.value};
}

void Broker::Core::touch(Slot host) {
  if (hosts_[host].touched) return;
  hosts_[host].touched = true;
  touched_.push_back(host);
}

void Broker::Core::host_known(const HostFacts& facts) {
  SHOAL_CHECK(facts.host.value > 0);
  Slot host = host_by_id_.find(facts.host.value);
  if (host == kNoSlot) {
    host = hosts_.add();
    host_by_id_.add(facts.host.value, host);
  }
  if (facts.owner != hosts_[host].facts.owner) {
    for (const Slot device : hosts_[host].devices) put_party(device, false);
  }
  hosts_[host].facts = facts;
  for (const Slot device : hosts_[host].devices) refresh_active(device);
  if (facts.banned) distrust(host);
  settle_all();
}

void Broker::Core::device_ready(const DeviceFacts& facts) {
  const Slot host = host_by_id_.find(facts.host.value);
  SHOAL_CHECK(host != kNoSlot && facts.device.value > 0);
  Slot slot = device_by_id_.find(facts.device.value);
  if (slot == kNoSlot) {
    slot = devices_.add();
    device_by_id_.add(facts.device.value, slot);
    devices_[slot].ahead_max = 2;
    devices_[slot].host = host;
    hosts_[host].devices.push_back(slot);
  }
  Device& device = devices_[slot];
  SHOAL_CHECK(device.host == host);  // A device never moves to another host.
  const bool sane = facts.flops_per_second >= 1 && facts.flops_per_second < 1e18;
  const double told = sane ? facts.flops_per_second : 1e9;
  if (device.speed == 0 || told != device.facts.flops_per_second) {
    // What its results have shown counts more than what it says.
    device.speed = device.shown > 0 ? std::min(told, 2 * device.shown) : told;
  }
  device.facts = facts;
  device.facts.flops_per_second = told;
  device.ready = true;
  refresh_active(slot);
  settle_all();
}

void Broker::Core::device_gone(DeviceId id) {
  const Slot device = device_by_id_.find(id.value);
  if (device == kNoSlot) return;
  devices_[device].ready = false;
  refresh_active(device);
  for (const Slot slot : devices_[device].live) {
    Copy& copy = copies_[slot];
    const Millis until = now_ + rules_.gone_grace;
    if (copy.until <= until) continue;
    copy.until = until;
    changes_.push_back(LeaseExtended{copy.id, until});
    at(until, TimerKind::kLease, slot, copy.id.value);
  }
  settle_all();
}

void Broker::Core::put_active(std::vector<Slot>& list, Slot Device::*at, Slot device, bool in) {
  Slot& place = devices_[device].*at;
  if ((place != kNoSlot) == in) return;
  if (in) {
    place = static_cast<Slot>(list.size());
    list.push_back(device);
    return;
  }
  list[place] = list.back();
  devices_[list[place]].*at = place;
  list.pop_back();
  devices_[device].*at = kNoSlot;
}

void Broker::Core::put_party(Slot slot, bool in) {
  Slot& place = devices_[slot].party_at;
  if ((place != kNoSlot) == in) return;
  const OwnerId owner = owner_of(devices_[slot].host);
  const auto [found, is_new] = party_of_.try_emplace(owner, parties_.size());
  if (is_new) parties_.push_back({owner, {}});
  const size_t at = found->second;
  std::vector<Slot>& list = parties_[at].devices;
  if (in) {
    place = static_cast<Slot>(list.size());
    list.push_back(slot);
    return;
  }
  list[place] = list.back();
  devices_[list[place]].party_at = place;
  list.pop_back();
  place = kNoSlot;
  if (!list.empty()) return;
  party_of_.erase(found);
  if (at + 1 < parties_.size()) {
    parties_[at] = std::move(parties_.back());
    party_of_[parties_[at].owner] = at;
  }
  parties_.pop_back();
}

void Broker::Core::refresh_active(Slot slot) {
  const Device& device = devices_[slot];
  const Host& host = hosts_[device.host];
  const bool active =
      device.ready && device.facts.exact && !host.facts.banned && !quarantined(device.host);
  put_active(active_, &Device::active_at, slot, active);
  put_party(slot, active);
  put_active(trusted_, &Device::trusted_at, slot, active && host.facts.trusted);
  if (!active) undraw_all(slot);
}

void Broker::Core::undraw(Slot unit) {
  units_[unit].drawn = kNoSlot;
  mark(unit);
}

void Broker::Core::undraw_all(Slot device) {
  for (const Slot unit : devices_[device].drawn) {
    if (units_[unit].drawn == device) undraw(unit);
  }
  devices_[device].drawn.clear();
}

// What the devices of three of four other owners do not exceed, of each owner one by chance. Those
// count that have shown it, if they are enough.
double Broker::Core::fleet_speed(OwnerId but) {
  std::vector<double> all, shown;
  const size_t looks = std::min(parties_.size(), kFleetLook);
  for (size_t i = 0; i < looks; ++i) {
    const bool few = parties_.size() <= kFleetLook;
    const Party& party = parties_[few ? i : chance_.below(parties_.size())];
    if (party.owner == but) continue;
    const Device& device = devices_[party.devices[chance_.below(party.devices.size())]];
    all.push_back(device.speed);
    if (device.shown > 0) shown.push_back(device.speed);
  }
  std::vector<double>& speeds = shown.size() >= kFleetShown ? shown : all;
  if (speeds.empty()) return std::numeric_limits<double>::infinity();
  std::ranges::sort(speeds);
  return speeds[3 * (speeds.size() - 1) / 4];
}

// For what it is cut. What a device says of itself is not believed beyond what others do before it
// has shown a result: a unit once cut stays as long as it is, for whoever must compute it then.
double Broker::Core::believed_speed(const Device& device) {
  if (device.shown > 0) return device.speed;
  return std::min(device.speed, fleet_speed(owner_of(device.host)));
}

// Twice as long each time.
void Broker::Core::rest(Device& device, int times) {
  Millis time = rules_.ask_again_min;
  for (int i = 1; i < std::min(times, kRestDoublings); ++i) time += time;
  device.rest_until = now_ + std::min(time, rules_.ask_again_max);
}

// ---- Time --------------------------------------------------------------------------------------

void Broker::Core::at(Millis due, TimerKind kind, Slot slot, int64_t id) {
  timers_.push({due, id, slot, kind});
}

Millis Broker::Core::next_due() const {
  return timers_.empty() ? Millis{INT64_MAX} : timers_.top().due;
}

void Broker::Core::tick(Millis now) {
  see(now);
  while (!timers_.empty() && timers_.top().due <= now_) {
    const Timer timer = timers_.top();
    timers_.pop();
    fire(timer);
    settle_all();
  }
}

void Broker::Core::fire(const Timer& timer) {
  switch (timer.kind) {
    case TimerKind::kLease: {
      const Copy& copy = copies_[timer.slot];
      if (copy.id.value != timer.id || !copy.live) return;
      if (copy.until > now_) return at(copy.until, TimerKind::kLease, timer.slot, timer.id);
      return end_lease(timer.slot, LeaseEndReason::kExpired);
    }
    case TimerKind::kClaim: {
      Unit& unit = units_[timer.slot];
      if (unit.id.value != timer.id || unit.drawn == kNoSlot) return;
      const Millis due = unit.since + rules_.claim_max;
      if (due > now_) return;  // Drawn again since; that draw has a timer of its own.
      unit.drawn = kNoSlot;
      return mark(timer.slot);
    }
    case TimerKind::kAge: return look_at_age(timer.slot);
    case TimerKind::kRelease:
      for (const Slot device : hosts_[timer.slot].devices) refresh_active(device);
      return;
    case TimerKind::kUnplaced: {
      unplaced_timed_ = false;
      for (size_t i = unplaced_.size(); i > 0; --i) {
        const Slot unit = unplaced_.front();
        unplaced_.pop_front();
        units_[unit].unplaced = false;
        mark(unit);
      }
      return;
    }
  }
}

void Broker::Core::outage(Millis from, Millis to) {
  see(to);
  const Millis lost = to - from;
  if (lost.count <= 0) return;
  for (Slot slot = 0; slot < copies_.size(); ++slot) {
    Copy& copy = copies_[slot];
    if (!copy.live || copy.until < from) continue;
    copy.until += lost;
    changes_.push_back(LeaseExtended{copy.id, copy.until});
  }
  for (Slot slot = 0; slot < units_.size(); ++slot) {
    Unit& unit = units_[slot];
    if (unit.drawn == kNoSlot) continue;
    unit.since += lost;
    at(unit.since + rules_.claim_max, TimerKind::kClaim, slot, unit.id.value);
  }
}

void Broker::Core::take_changes(std::vector<Change>& into) {
  for (const Slot slot : touched_) {
    Host& host = hosts_[slot];
    host.touched = false;
    changes_.push_back(
        HostChanged{host.facts.host, host.valid_in_row, host.wrong, host.quarantined_until});
  }
  touched_.clear();
  into.clear();
  into.swap(changes_);
}

// ---- Restart -----------------------------------------------------------------------------------

Result<void> Broker::Core::restore(const BrokerRows& rows) {
  SHOAL_CHECK(hosts_.live() == 0 && jobs_.live() == 0);
  gather_until_ = now_ + rules_.gather;
  last_unit_ = rows.last_unit.value;
  last_lease_ = rows.last_lease.value;
  SHOAL_TRY(take_up(rows));
  // A ban is stored by others: what a crash kept it from ending is ended now.
  for (Slot host = 0; host < hosts_.size(); ++host) {
    if (hosts_[host].facts.banned) distrust(host);
  }
  settle_all();
  return {};
}

Result<void> Broker::Core::take_up(const BrokerRows& rows) {
  const auto corrupt = [](const char* what, int64_t id) {
    return Error{ErrorCode::kCorrupt, std::string(what) + " " + std::to_string(id)};
  };
  for (const KnownHostRow& row : rows.hosts) {
    if (row.facts.host.value <= 0 || host_by_id_.find(row.facts.host.value) != kNoSlot) {
      return corrupt("stored twice: host", row.facts.host.value);
    }
    host_known(row.facts);
    const Slot slot = host_by_id_.find(row.facts.host.value);
    Host& host = hosts_[slot];
    host.valid_in_row = row.record.valid_in_row;
    host.wrong = row.record.wrong;
    host.quarantined_until = row.record.quarantined_until;
    host.serial = row.serial;
    if (quarantined(slot)) at(host.quarantined_until, TimerKind::kRelease, slot);
  }
  for (const JobRow& row : rows.jobs) {
    SHOAL_TRY(check_job(row.spec));
    jobs_[add_job(row.spec)].state = row.state;
  }
  for (const TaskRow& row : rows.tasks) {
    const Slot slot = task_by_id_.find(row.task.value);
    if (slot == kNoSlot) return corrupt("no job has the stored task", row.task.value);
    Task& task = tasks_[slot];
    task.state = row.state;
    task.items_cut = row.items_cut;
    task.items_done = row.items_done;
    task.items_poisoned = row.items_poisoned;
    if (row.items_cut < 0 || row.items_cut > task.spec.items || row.items_done < 0 ||
        row.items_poisoned < 0 || row.items_done > row.items_cut ||
        row.items_poisoned > row.items_cut - row.items_done || row.units_poisoned < 0 ||
        row.units_poisoned > row.items_poisoned) {
      return corrupt("the stored counts contradict each other: task", row.task.value);
    }
    jobs_[task.job].items_poisoned += row.items_poisoned;
    jobs_[task.job].units_poisoned += row.units_poisoned;
  }
  for (const UnitRow& row : rows.units) {
    const Slot task = task_by_id_.find(row.cut.task.value);
    if (row.cut.unit.value <= 0 || row.cut.unit.value > last_unit_ ||
        unit_by_id_.find(row.cut.unit.value) != kNoSlot) {
      return corrupt("a stored id is impossible: unit", row.cut.unit.value);
    }
    if (task == kNoSlot || row.cut.first_item < 0 || row.cut.items <= 0 ||
        row.cut.items > UINT32_MAX || row.cut.first_item > tasks_[task].items_cut - row.cut.items) {
      return corrupt("no stored task has the unit", row.cut.unit.value);
    }
    const Slot slot = units_.add();
    unit_by_id_.add(row.cut.unit.value, slot);
    Unit& unit = units_[slot];
    unit.id = row.cut.unit;
    unit.first_item = row.cut.first_item;
    unit.items = static_cast<uint32_t>(row.cut.items);
    unit.task = task;
    unit.since = now_;
    unit.want = row.want;
    const JobState job = jobs_[tasks_[task].job].state;
    const bool runs = job == JobState::kRunning || job == JobState::kPaused;
    unit.state = row.done ? UnitState::kDone : runs ? UnitState::kOpen : UnitState::kDropped;
    ++tasks_[task].units;
  }
  std::vector<Slot> pending;
  for (const LeaseRow& row : rows.leases) {
    const Slot unit = unit_by_id_.find(row.granted.unit.value);
    const Slot host = host_by_id_.find(row.granted.host.value);
    if (unit == kNoSlot || host == kNoSlot || row.granted.lease.value <= 0 ||
        row.granted.lease.value > last_lease_) {
      return corrupt("no stored unit or host has the lease", row.granted.lease.value);
    }
    const bool waits = row.state == ResultState::kPending || row.state == ResultState::kSuspect;
    if (find_copy({row.granted.unit, row.granted.lease, row.granted.host}) != kNoSlot ||
        (waits && units_[unit].state == UnitState::kDone)) {
      return corrupt("a stored result is impossible: lease", row.granted.lease.value);
    }
    const Slot slot = copies_.add();
    Copy& copy = copies_[slot];
    copy.id = row.granted.lease;
    copy.at = row.state == ResultState::kNone ? row.granted.at : row.result_at;
    copy.until = row.granted.until;
    copy.serial = row.serial;
    copy.digest = row.digest;
    copy.unit = unit;
    copy.host = host;
    copy.purpose = row.granted.purpose;
    copy.why = row.why;
    copy.state = row.state;
    copy.live = row.live && row.state == ResultState::kNone;
    copy.next = units_[unit].copies;
    units_[unit].copies = slot;
    hosts_[host].serial = std::max(hosts_[host].serial, row.serial);
    if (copy.state == ResultState::kPending) pending.push_back(slot);
    if (!copy.live) continue;
    // The device is known by its id until it comes back.
    Slot device = device_by_id_.find(row.granted.device.value);
    if (device == kNoSlot) {
      device = devices_.add();
      device_by_id_.add(row.granted.device.value, device);
      devices_[device].host = host;
      devices_[device].facts.device = row.granted.device;
      devices_[device].facts.host = row.granted.host;
      devices_[device].ahead_max = 2;
      hosts_[host].devices.push_back(device);
    }
    if (devices_[device].host != host) {
      return corrupt("a stored device has two hosts: lease", row.granted.lease.value);
    }
    copy.device = device;
    devices_[device].live.push_back(slot);
    at(copy.until, TimerKind::kLease, slot, copy.id.value);
  }
  std::ranges::stable_sort(pending, {}, [this](Slot copy) { return copies_[copy].serial; });
  for (const Slot copy : pending) link_pending(copy);

  for (const UnitRow& row : rows.units) {
    if (!row.done) continue;
    bool confirmed = false;
    const Slot unit = unit_by_id_.find(row.cut.unit.value);
    for (Slot at = units_[unit].copies; at != kNoSlot; at = copies_[at].next) {
      confirmed |= copies_[at].state == ResultState::kConfirmed;
    }
    if (!confirmed) return corrupt("no result was confirmed of the done unit", row.cut.unit.value);
  }
  for (Slot slot = 0; slot < units_.size(); ++slot) {
    if (units_[slot].state == UnitState::kOpen) mark(slot);
    if (units_[slot].state != UnitState::kOpen) forget_if_over(slot);
  }
  for (const JobRow& row : rows.jobs) {
    const Slot job = job_by_id_.find(row.spec.job.value);
    if (job != kNoSlot) remove_if_over(job);  // Nothing of it is waited for.
  }
  // What a crash kept from being said is said now: a task may be done, and others may begin.
  for (Slot slot = 0; slot < tasks_.size(); ++slot) {
    Task& task = tasks_[slot];
    if (task.spec.task.value == 0 || task.state != TaskState::kWaiting) continue;
    task.waits_for = 0;
    for (const TaskId before : task.spec.after) {
      task.waits_for += tasks_[task_by_id_.find(before.value)].state != TaskState::kDone;
    }
  }
  for (Slot slot = 0; slot < tasks_.size(); ++slot) {
    if (tasks_[slot].spec.task.value == 0) continue;
    const JobState job = jobs_[tasks_[slot].job].state;
    if (job != JobState::kRunning && job != JobState::kPaused) continue;
    if (tasks_[slot].state == TaskState::kWaiting && tasks_[slot].waits_for == 0) start_task(slot);
  }
  sort_runnable();
  settle_all();
  for (Slot slot = 0; slot < tasks_.size(); ++slot) {
    if (tasks_[slot].state != TaskState::kRunning) continue;
    sweep_if_closing(slot);
    task_progressed(slot);
  }
  settle_all();
  return {};
}

Progress Broker::Core::progress(JobId id) const {
  Progress sum;
  const Slot job = job_by_id_.find(id.value);
  if (job == kNoSlot) return sum;
  for (const Slot slot : jobs_[job].tasks) {
    const Task& task = tasks_[slot];
    sum.items += task.spec.items;
    sum.items_done += task.items_done;
    sum.items_pending += task.items_carried;
    sum.items_poisoned += task.items_poisoned;
    const int64_t settled = task.items_done + task.items_poisoned + task.items_carried;
    sum.items_out += task.items_cut - settled;
    sum.flops_left += static_cast<double>(task.spec.items - settled) *
                      static_cast<double>(task.spec.flops_per_item.count);
  }
  return sum;
}

}  // namespace shoal
