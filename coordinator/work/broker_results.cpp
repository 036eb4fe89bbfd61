// Which results count, who checks them, and who is believed.

#include "coordinator/work/broker_core.h"

namespace shoal {
namespace {

constexpr size_t kDrawTries = 16;  // Random devices that are looked at for one copy ...
constexpr size_t kDrawScan = 64;   // ... and then neighbours, when none of them will do.
constexpr size_t kDrawnMax = 4;    // Copies that wait for one device.
constexpr uint64_t kSerialMax = uint64_t{1} << 62;
constexpr uint64_t kSerialReach = 1024;  // Messages overtake no more than so many others.
constexpr size_t kSpotFrom =
    8;  // Pending results of a host, of which one by chance is audited, too.
constexpr Millis kLookAgain{3'600'000};
constexpr Millis kPlaceAgain{60'000};
constexpr int kManyFailures = 3;  // So many times the owners that make poison with others' help.

}  // namespace

// ---- Results arrive ----------------------------------------------------------------------------

// A host says itself in which order it finished its units, so what it says counts only where it
// can be true: nothing comes to stand among what a check has vouched for already, and nothing so
// far ahead that a check of it would vouch for all that is to come.
uint64_t Broker::Core::place_of(const Host& host, uint64_t serial) const {
  const bool possible = serial > host.vouched && serial <= kSerialMax &&
                        serial <= host.serial + kSerialReach && serial + kSerialReach > host.serial;
  return possible ? serial : std::min(host.serial + 1, kSerialMax);
}

// A result under this lease is taken, and paid if it is right. Who gave the unit back has said that
// he will not compute it, and an owner who sends it twice has computed it once.
bool Broker::Core::is_taken(const Copy& copy) const {
  if (!copy.live) {
    if (copy.why == LeaseEndReason::kGivenBack || copy.why == LeaseEndReason::kFailed) return false;
    if (copy.until + rules_.late_max < now_) return false;
  }
  if (copy.drawn()) return true;  // We asked for it.
  const OwnerId owner = owner_of(copy.host);
  for (Slot at = units_[copy.unit].copies; at != kNoSlot; at = copies_[at].next) {
    if (copies_[at].has_result() && owner_of(copies_[at].host) == owner) return false;
  }
  return true;
}

SubmitAnswer Broker::Core::submit(const Submission& submission) {
  const Slot slot = find_copy(submission.name);
  if (slot == kNoSlot) return SubmitAnswer::kUnknown;
  Copy& copy = copies_[slot];
  if (copy.state != ResultState::kNone) return SubmitAnswer::kDuplicate;
  const Slot unit_slot = copy.unit;
  Unit& unit = units_[unit_slot];
  if (unit.state == UnitState::kDropped) return SubmitAnswer::kNotNeeded;
  if (!is_taken(copy)) {
    if (copy.live) end_lease(slot, LeaseEndReason::kCancelled);
    settle_all();
    return SubmitAnswer::kNotNeeded;
  }
  const Slot task = unit.task, host_slot = copy.host;
  Host& host = hosts_[host_slot];
  if (copy.live) end_lease(slot, LeaseEndReason::kSubmitted);

  copy.at = now_;
  copy.digest = submission.digest;
  copy.serial = place_of(host, submission.serial);
  host.serial = std::max(host.serial, copy.serial);
  copy.state =
      quarantined(copy.host) || host.facts.banned ? ResultState::kSuspect : ResultState::kPending;
  changes_.push_back(ResultReceived{copy.id, unit.id, copy.digest, copy.serial, copy.state, now_});
  if (copy.state == ResultState::kPending) link_pending(slot);

  SubmitAnswer answer = SubmitAnswer::kAccepted;
  if (unit.state == UnitState::kDone) {
    const uint64_t serial = copy.serial;
    const Millis came = copy.at;
    const bool vouches = copy.vouches();
    Slot right = unit.copies;
    while (right != kNoSlot && copies_[right].state != ResultState::kConfirmed) {
      right = copies_[right].next;
    }
    SHOAL_CHECK(right != kNoSlot);
    if (copy.purpose != Purpose::kKnown) answer = SubmitAnswer::kExtra;
    const bool equal = copies_[right].digest == copy.digest;
    const bool checked = unit.checked;
    if (equal) {
      confirm(slot);
    } else {
      reject(slot, RejectReason::kWrong);
    }
    forget_if_over(unit_slot);
    // A digest that nobody checked is no reason to blame or to believe anybody.
    if (checked && equal && vouches) vouch(host_slot, serial, came);
    if (checked && !equal) blame(host_slot);
  } else {
    bool alone = true;  // Nobody else's result is there to compare with.
    for (Slot other = unit.copies; other != kNoSlot; other = copies_[other].next) {
      const ResultState state = copies_[other].state;
      alone &= other == slot || (state != ResultState::kPending && state != ResultState::kSuspect);
    }
    if (!alone && unit.want == UnitWant::kNothing && unit.carried) answer = SubmitAnswer::kExtra;
    // Drawn only now, so that nobody can know beforehand which results are looked at.
    const bool lucky = chance_.uniform() >= audit_rate(rules_, host.valid_in_row);
    // Who computed once more what another has computed of itself is looked at like anybody.
    const bool looked_at = unit.carried && (copy.drawn() || unit.want != UnitWant::kNothing);
    if (copy.state == ResultState::kPending && !host.facts.trusted && !lucky && !looked_at) {
      want(unit_slot, UnitWant::kAudit);
    }
    mark(unit_slot);
  }
  if (closing(tasks_[task])) close_out(host_slot);
  settle_all();
  return answer;
}

bool Broker::Core::fail(const LeaseName& name) {
  const Slot slot = find_copy(name);
  if (slot == kNoSlot || !copies_[slot].live) return false;
  const Slot unit = copies_[slot].unit;
  end_lease(slot, LeaseEndReason::kFailed);
  if (units_[unit].state == UnitState::kOpen) {
    if (is_poison(units_[unit])) poison(unit);
  }
  settle_all();
  return true;
}

// Failed on so many owners' devices, and not on one kind alone, whose bug it could be, as long as
// another kind is there that could try; while nobody has a result: then it can be computed.
bool Broker::Core::is_poison(const Unit& unit) const {
  std::vector<OwnerId> owners;
  std::vector<uint32_t> classes;  // Of the devices that are known.
  int failures = 0;
  for (Slot at = unit.copies; at != kNoSlot; at = copies_[at].next) {
    const Copy& copy = copies_[at];
    if (copy.state == ResultState::kPending || copy.state == ResultState::kSuspect) return false;
    if (copy.live || copy.why != LeaseEndReason::kFailed) continue;
    ++failures;
    owners.push_back(owner_of(copy.host));
    if (copy.device != kNoSlot) classes.push_back(devices_[copy.device].facts.device_class);
  }
  const auto distinct = [](auto& list) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return static_cast<int>(list.size());
  };
  const int hosts = distinct(owners), kinds = distinct(classes);
  if (hosts >= rules_.poison_hosts &&
      (kinds >= std::min(rules_.poison_hosts, 2) || !another_could_run(unit, classes))) {
    return true;
  }
  // The other kind does not come, or there is nobody else: often enough is reason enough.
  const int many = kManyFailures * rules_.poison_hosts;
  return hosts >= many || (failures >= many && !another_could_run(unit, {}));
}

// ---- A unit finds its answer -------------------------------------------------------------------

void Broker::Core::want(Slot slot, UnitWant what) {
  Unit& unit = units_[slot];
  if (unit.want == what) return;
  unit.want = what;
  changes_.push_back(UnitWants{unit.id, what});
}

void Broker::Core::set_carried(Slot slot, bool carried) {
  Unit& unit = units_[slot];
  if (unit.carried == carried) return;
  unit.carried = carried;
  tasks_[unit.task].items_carried += carried ? int64_t{unit.items} : -int64_t{unit.items};
}

void Broker::Core::settle_all() {
  while (!dirty_.empty()) {
    const Slot unit = dirty_.back();
    dirty_.pop_back();
    settle(unit);
  }
}

void Broker::Core::settle(Slot slot) {
  Unit& unit = units_[slot];
  if (unit.id.value == 0) return;
  if (unit.state != UnitState::kOpen) return forget_if_over(slot);
  std::vector<Slot> results;
  Slot carrier = kNoSlot;
  bool live = false, drawn_live = false, trusted_live = false, disputed = false, suspects = false;
  int64_t votes = 0;
  for (Slot at = unit.copies; at != kNoSlot; at = copies_[at].next) {
    const Copy& copy = copies_[at];
    live |= copy.live;
    drawn_live |= copy.live && copy.drawn();
    trusted_live |= copy.live && hosts_[copy.host].facts.trusted;
    if (copy.state != ResultState::kPending && copy.state != ResultState::kSuspect) continue;
    const bool trusted = hosts_[copy.host].facts.trusted && copy.state == ResultState::kPending;
    if (trusted) return decide(slot, Digest(copy.digest), true);
    results.push_back(at);
    if (copy.state == ResultState::kSuspect) {
      suspects = true;
      continue;
    }
    ++votes;
    disputed |= carrier != kNoSlot && copies_[carrier].digest != copy.digest;
    carrier = at;
  }
  const bool judge = disputed && trusted_could_run(unit);
  for (size_t i = 0; !judge && i < results.size(); ++i) {
    for (size_t j = i + 1; j < results.size(); ++j) {
      const Copy& a = copies_[results[i]];
      const Copy& b = copies_[results[j]];
      // One owner twice, or two of which neither was drawn and is believed, prove nothing.
      const bool checks = (a.drawn() && a.state == ResultState::kPending) ||
                          (b.drawn() && b.state == ResultState::kPending);
      if (checks && a.digest == b.digest && owner_of(a.host) != owner_of(b.host)) {
        return decide(slot, Digest(a.digest), true);
      }
    }
  }
  if (disputed && !judge && votes >= rules_.votes_max) return poison(slot);

  set_carried(slot, carrier != kNoSlot);
  if (unit.queued && (live || !results.empty())) {
    unit.queued = false;
    --tasks_[unit.task].queued;
  }
  if (carrier == kNoSlot) {
    want(slot, UnitWant::kNothing);
    if (suspects ? drawn_live : live) return;
    if (suspects) return draw(slot);
    return enqueue(slot);
  }
  if (disputed) {
    want(slot, UnitWant::kJudge);
    if (judge ? !trusted_live : !drawn_live) draw(slot);
    return;
  }
  // Of those who disagreed, one is left: he is not proved right by that.
  if (unit.want == UnitWant::kJudge) want(slot, UnitWant::kAudit);
  if (unit.want != UnitWant::kAudit) return;
  if (!drawn_live) draw(slot);
}

void Broker::Core::enqueue(Slot slot) {
  Unit& unit = units_[slot];
  if (unit.queued) return;
  unit.queued = true;
  unit.since = now_;
  tasks_[unit.task].queue.push_back(slot);
  ++tasks_[unit.task].queued;
}

void Broker::Core::decide(Slot slot, const Digest& digest, bool checked) {
  Unit& unit = units_[slot];
  struct Right {
    Slot host;
    uint64_t vouched;
    Millis came;
  };
  std::vector<Right> right;
  std::vector<Slot> wrong;
  LeaseId winner;
  bool by_trusted = false;
  for (Slot at = unit.copies; at != kNoSlot; at = copies_[at].next) {
    const Copy& copy = copies_[at];
    if (copy.state != ResultState::kPending && copy.state != ResultState::kSuspect) continue;
    if (copy.digest == digest) {
      if (!winner || copy.id < winner) winner = copy.id;
      by_trusted |= hosts_[copy.host].facts.trusted;
      if (copy.state == ResultState::kPending) {
        right.push_back({copy.host, copy.vouches() ? copy.serial : 0, copy.at});
      }
      confirm(at);
    } else {
      if (copy.state == ResultState::kPending && checked) wrong.push_back(copy.host);
      reject(at, RejectReason::kWrong);
    }
  }
  SHOAL_CHECK(winner);
  set_carried(slot, false);
  if (unit.queued) --tasks_[unit.task].queued;
  unit.queued = false;
  unit.drawn = kNoSlot;
  unit.state = UnitState::kDone;
  unit.want = UnitWant::kNothing;  // That it is done says so.
  unit.checked = checked;
  const Slot task = unit.task;
  changes_.push_back(UnitDone{unit.id, tasks_[task].spec.task, winner, digest});
  tasks_[task].items_done += unit.items;
  if (by_trusted && rules_.known_units_max > 0) {
    unit.known = true;
    known_.push_back(slot);
    retire_known();
  }
  forget_if_over(slot);
  task_progressed(task);
  if (!checked) return;
  for (const Right& each : right) vouch(each.host, each.vouched, each.came);
  for (const Slot host : wrong) blame(host);
}

void Broker::Core::confirm(Slot slot) {
  Copy& copy = copies_[slot];
  if (copy.state == ResultState::kPending) {
    unlink_pending(slot);
    ++hosts_[copy.host].valid_in_row;
    touch(copy.host);
  }
  copy.state = ResultState::kConfirmed;
  const Unit& unit = units_[copy.unit];
  const Flops flops{static_cast<int64_t>(std::min(unit_flops(unit), 9e18))};
  changes_.push_back(ResultConfirmed{copy.id, unit.id, hosts_[copy.host].facts.host, flops});
}

void Broker::Core::reject(Slot slot, RejectReason reason) {
  Copy& copy = copies_[slot];
  if (copy.state == ResultState::kPending) unlink_pending(slot);
  copy.state = ResultState::kRejected;
  changes_.push_back(
      ResultRejected{copy.id, units_[copy.unit].id, hosts_[copy.host].facts.host, reason});
}

// A check of this host went well: what it had finished before was honest work. It counts as soon as
// nothing of that is being checked itself: who lies now and then may yet be caught by it.
// So does only what had arrived by then: a host could otherwise say later that lies were older.
void Broker::Core::vouch(Slot slot, uint64_t serial, Millis came) {
  Host& known = hosts_[slot];
  if (serial > known.vouched) {
    known.vouched = serial;
    known.vouched_at = came;
  }
  const Slot host = slot;
  confirm_vouched(host);
  if (hosts_[host].oldest != kNoSlot) close_out(host);
}

// Nobody is there who could check it, and has not been for long: the rest of what its host did does
// not wait for it any more.
bool Broker::Core::stands_apart(const Copy& copy) const {
  return units_[copy.unit].homeless && copy.at + rules_.pending_max <= now_;
}

void Broker::Core::confirm_vouched(Slot host) {
  const uint64_t serial = hosts_[host].vouched;
  Slot at = hosts_[host].oldest;
  const Millis came = hosts_[host].vouched_at;
  for (Slot look = at; look != kNoSlot && copies_[look].serial <= serial;
       look = copies_[look].newer) {
    const Unit& unit = units_[copies_[look].unit];
    const bool waits = unit.state == UnitState::kOpen && unit.want != UnitWant::kNothing;
    if (waits && !stands_apart(copies_[look])) return;
  }
  while (at != kNoSlot && copies_[at].serial <= serial) {
    const Slot unit = copies_[at].unit;
    Slot next = copies_[at].newer;
    while (next != kNoSlot && copies_[next].unit == unit) next = copies_[next].newer;
    const bool later = copies_[at].at > came;
    if (later ||
        (units_[unit].state == UnitState::kOpen && units_[unit].want != UnitWant::kNothing)) {
      at = next;
      continue;
    }
    if (units_[unit].state == UnitState::kDropped) {
      confirm(at);
      forget_if_over(unit);
    } else {
      decide(unit, Digest(copies_[at].digest), /*checked=*/false);
    }
    at = next;
  }
}

void Broker::Core::stage_checked(HostId host, bool right) {
  const Slot slot = host_by_id_.find(host.value);
  if (slot == kNoSlot) return;
  if (right) {
    ++hosts_[slot].valid_in_row;
    touch(slot);
  } else {
    blame(slot);
  }
  settle_all();
}

HostChanged Broker::Core::record(HostId host) const {
  const Slot slot = host_by_id_.find(host.value);
  if (slot == kNoSlot) return {.host = host};
  const Host& known = hosts_[slot];
  return {host, known.valid_in_row, known.wrong, known.quarantined_until};
}

// It was wrong, beyond doubt.
void Broker::Core::blame(Slot slot) {
  Host& host = hosts_[slot];
  touch(slot);
  host.valid_in_row = 0;
  if (!quarantined(slot)) {
    ++host.wrong;
    host.quarantined_until = now_ + quarantine_time(rules_, host.wrong);
    at(host.quarantined_until, TimerKind::kRelease, slot);
  }
  distrust(slot);
}

// Nothing of it that is still pending is believed: all of that is computed again, and counts if
// another's result agrees. What it holds is taken back.
void Broker::Core::distrust(Slot slot) {
  Host& host = hosts_[slot];
  while (host.oldest != kNoSlot) {
    const Slot copy = host.oldest;
    unlink_pending(copy);
    const Slot unit = copies_[copy].unit;
    if (units_[unit].state == UnitState::kDropped) {
      reject(copy, RejectReason::kUnproven);
    } else {
      copies_[copy].state = ResultState::kSuspect;
      changes_.push_back(ResultSuspected{copies_[copy].id});
    }
    mark(unit);
  }
  for (const Slot device : host.devices) {
    refresh_active(device);
    while (!devices_[device].live.empty()) {
      end_lease(devices_[device].live.back(), LeaseEndReason::kQuarantined);
    }
  }
}

// Its items are put aside; nobody is blamed for them.
void Broker::Core::poison(Slot slot) {
  Unit& unit = units_[slot];
  std::vector<Slot> hosts;
  set_carried(slot, false);
  if (unit.queued) --tasks_[unit.task].queued;
  unit.queued = false;
  unit.drawn = kNoSlot;
  unit.want = UnitWant::kNothing;
  unit.state = UnitState::kDropped;
  for (Slot copy = unit.copies; copy != kNoSlot; copy = copies_[copy].next) {
    if (copies_[copy].live) end_lease(copy, LeaseEndReason::kCancelled);
    const ResultState state = copies_[copy].state;
    if (state != ResultState::kPending && state != ResultState::kSuspect) continue;
    reject(copy, RejectReason::kUnproven);
    hosts.push_back(copies_[copy].host);
  }
  const Slot task_slot = unit.task;
  Task& task = tasks_[task_slot];
  Job& job = jobs_[task.job];
  changes_.push_back(UnitPoisoned{unit.id, task.spec.task});
  task.items_poisoned += unit.items;
  job.items_poisoned += unit.items;
  ++job.units_poisoned;
  const bool faulted = job.units_poisoned >= rules_.poison_units_min &&
                       static_cast<double>(job.items_poisoned) >
                           rules_.poison_share_max * static_cast<double>(job.items);
  if (faulted) {
    stop_job(task.job, JobState::kFaulted);
  } else {
    forget_if_over(slot);
    task_progressed(task_slot);
  }
  for (const Slot host : hosts) vouch(host, 0, {});
}

// ---- Who runs the next copy --------------------------------------------------------------------

Purpose Broker::Core::next_purpose(const Unit& unit) const {
  if (unit.want == UnitWant::kJudge) return Purpose::kJudge;
  if (unit.want == UnitWant::kAudit) return Purpose::kAudit;
  for (Slot at = unit.copies; at != kNoSlot; at = copies_[at].next) {
    if (copies_[at].state == ResultState::kSuspect) return Purpose::kRecheck;
  }
  return Purpose::kWork;
}

bool Broker::Core::may_run(const Unit& unit, const Device& device, bool judge) const {
  if (device.active_at == kNoSlot) return false;
  if (obstacle(tasks_[unit.task], device) != NoWork::kNone) return false;
  const OwnerId owner = owner_of(device.host);
  for (Slot at = unit.copies; at != kNoSlot; at = copies_[at].next) {
    const Copy& copy = copies_[at];
    const bool failed = !copy.live && copy.why == LeaseEndReason::kFailed;
    if (!copy.live && copy.state == ResultState::kNone && !failed) continue;  // It only lost it.
    if (judge ? copy.host == device.host && (failed || copy.state != ResultState::kNone)
              : owner_of(copy.host) == owner) {
      return false;
    }
  }
  return true;
}

bool Broker::Core::trusted_could_run(const Unit& unit) const {
  const size_t looks = std::min(trusted_.size(), kDrawScan);
  for (size_t i = 0; i < looks; ++i) {
    if (may_run(unit, devices_[trusted_[i]], /*judge=*/true)) return true;
  }
  return false;
}

// Somebody who has not failed at it, with a device of another kind than these, as far as one can
// see.
bool Broker::Core::another_could_run(const Unit& unit, const std::vector<uint32_t>& but) const {
  const size_t looks = std::min(active_.size(), kDrawScan);
  for (size_t i = 0; i < looks; ++i) {
    const Device& device = devices_[active_[i]];
    if (std::ranges::find(but, device.facts.device_class) != but.end()) continue;
    if (may_run(unit, device, /*judge=*/false)) return true;
  }
  return false;
}

// Draws the device that shall run the unit's next copy: by chance, so that nobody can arrange to be
// the one who checks a friend. First an owner, then a device of his: to register many makes nobody
// a likelier checker. Best is one at another address, of another class.
void Broker::Core::draw(Slot slot) {
  Unit& unit = units_[slot];
  if (unit.drawn != kNoSlot) return;
  const bool judge = next_purpose(unit) == Purpose::kJudge && trusted_could_run(unit);
  // The one whose result is to be checked.
  uint64_t block = 0;
  uint32_t device_class = 0;
  bool known_class = false;
  for (Slot at = unit.copies; at != kNoSlot; at = copies_[at].next) {
    if (copies_[at].state == ResultState::kNone) continue;
    block = hosts_[copies_[at].host].facts.address_block;
    known_class = copies_[at].device != kNoSlot;
    if (known_class) device_class = devices_[copies_[at].device].facts.device_class;
  }
  Slot best = kNoSlot;
  int best_score = -1;
  Millis best_time{0};
  double equals = 0;  // The weight of those that are as good as the best.
  // Whether nothing better can come. `weight`: of its owner's lot.
  const auto look = [&](Slot candidate, double weight) {
    const Device& device = devices_[candidate];
    if (device.drawn.size() >= kDrawnMax || !may_run(unit, device, judge)) return false;
    const int other_block = hosts_[device.host].facts.address_block != block ? 2 : 0;
    const int other_class = !known_class || device.facts.device_class != device_class ? 1 : 0;
    const Millis time = expected(unit, device);
    const bool quick = time <= rules_.unit_max;
    const int score = quick ? 1 + other_block + other_class : 0;
    // Of slow ones the least slow; of others each owner's that is equally good is as likely.
    const bool better = score > best_score || (!quick && score == best_score && time < best_time);
    if (better) equals = 0;
    if (better || (quick && score == best_score)) {
      equals += weight;
      if (chance_.uniform() * equals >= weight) return false;
      best = candidate;
      best_score = score;
      best_time = time;
    }
    return score == 4;
  };
  if (jobs_[tasks_[unit.task].job].state == JobState::kPaused) {
    // Nobody is drawn for what nobody shall do now.
  } else if (judge) {
    // Those whom the administrator trusts are his own choice, each of them.
    const size_t start = chance_.below(trusted_.size());
    const size_t looks = std::min(trusted_.size(), kDrawScan);
    for (size_t i = 0; i < looks; ++i) look(trusted_[(start + i) % trusted_.size()], 1);
  } else if (active_.size() <= kDrawScan) {
    for (const Party& party : parties_) {
      for (const Slot candidate : party.devices) {
        look(candidate, 1 / static_cast<double>(party.devices.size()));
      }
    }
  } else {
    const auto look_at = [&](const Party& party) {
      return look(party.devices[chance_.below(party.devices.size())], 1);
    };
    bool found = false;
    for (size_t i = 0; i < kDrawTries && !found; ++i) {
      found = look_at(parties_[chance_.below(parties_.size())]);
    }
    const size_t start = chance_.below(parties_.size());
    for (size_t i = 0; i < kDrawScan && best == kNoSlot; ++i) {
      look_at(parties_[(start + i) % parties_.size()]);
    }
  }
  unit.since = now_;
  unit.homeless = best == kNoSlot;
  if (best != kNoSlot && now_ >= gather_until_) {
    unit.drawn = best;
    devices_[best].drawn.push_back(slot);
    return at(now_ + rules_.claim_max, TimerKind::kClaim, slot, unit.id.value);
  }
  if (unit.unplaced) return;
  unit.unplaced = true;
  if (!unplaced_timed_) at(now_ + kPlaceAgain, TimerKind::kUnplaced, kNoSlot);
  unplaced_timed_ = true;
  unplaced_.push_back(slot);
}

// ---- What is pending, by host ------------------------------------------------------------------

void Broker::Core::link_pending(Slot slot) {
  Copy& copy = copies_[slot];
  Host& host = hosts_[copy.host];
  Slot before = host.newest;  // The newest that was finished no later.
  while (before != kNoSlot && copies_[before].serial > copy.serial) before = copies_[before].older;
  copy.older = before;
  copy.newer = before == kNoSlot ? host.oldest : copies_[before].newer;
  (copy.newer == kNoSlot ? host.newest : copies_[copy.newer].older) = slot;
  (before == kNoSlot ? host.oldest : copies_[before].newer) = slot;
  if (host.age_timed) return;
  host.age_timed = true;
  at(copy.at + rules_.pending_max, TimerKind::kAge, copy.host);
}

void Broker::Core::unlink_pending(Slot slot) {
  Copy& copy = copies_[slot];
  Host& host = hosts_[copy.host];
  (copy.newer == kNoSlot ? host.newest : copies_[copy.newer].older) = copy.older;
  (copy.older == kNoSlot ? host.oldest : copies_[copy.older].newer) = copy.newer;
  copy.older = copy.newer = kNoSlot;
}

// The host has nothing more of a task that has nothing more to give: an audit of its newest result
// of it makes all older ones count. One that is under way will do as well. As the host may guess
// that this one is looked at, another is audited that it cannot guess.
void Broker::Core::close_out(Slot slot) {
  const Host& host = hosts_[slot];
  std::vector<Slot> audited;
  Slot spot = kNoSlot;
  size_t older = 0;
  bool covered = false, looked_at = false;
  for (Slot at = host.newest; at != kNoSlot; at = copies_[at].older) {
    // That only waits.
    if (copies_[at].serial <= host.vouched && copies_[at].at <= host.vouched_at) break;
    const Unit& unit = units_[copies_[at].unit];
    if (unit.state != UnitState::kOpen) continue;
    if (stands_apart(copies_[at])) continue;
    if (unit.want != UnitWant::kNothing) {
      if (copies_[at].vouches() && !covered) return;
      looked_at = true;
      continue;
    }
    if (!closing(tasks_[unit.task])) continue;
    if (covered) {
      if (chance_.below(++older) == 0) spot = copies_[at].unit;
      continue;
    }
    const Slot task = unit.task;
    for (const Slot device : host.devices) {
      for (const Slot copy : devices_[device].live) {
        if (units_[copies_[copy].unit].task == task) return;  // More of it is to come.
      }
    }
    audited.push_back(copies_[at].unit);
    covered = copies_[at].vouches();
  }
  if (spot != kNoSlot && !looked_at && older + 1 >= kSpotFrom) audited.push_back(spot);
  for (const Slot unit : audited) {
    want(unit, UnitWant::kAudit);
    mark(unit);
  }
}

void Broker::Core::look_at_age(Slot slot) {
  Host& host = hosts_[slot];
  host.age_timed = false;
  // Work for jobs that are gone, for which no later check has spoken: it stays unpaid.
  for (Slot at = host.oldest; at != kNoSlot;) {
    const Slot next = copies_[at].newer;
    const Slot unit = copies_[at].unit;
    const Millis limit = copies_[at].at + rules_.pending_max + rules_.pending_max;
    if (units_[unit].state == UnitState::kDropped && limit <= now_) {
      reject(at, RejectReason::kUnproven);
      forget_if_over(unit);
    }
    at = next;
  }
  confirm_vouched(slot);  // What stands apart by now holds nothing up.
  if (host.oldest == kNoSlot) return;
  Millis due = copies_[host.oldest].at + rules_.pending_max;
  if (due <= now_) {
    due = now_ + kLookAgain;
    // One by chance, which the host cannot guess: it vouches for those before it.
    Slot chosen = kNoSlot;
    uint64_t seen = 0;
    bool waits = false;
    for (Slot at = host.oldest; at != kNoSlot; at = copies_[at].newer) {
      const Unit& unit = units_[copies_[at].unit];
      if (unit.state != UnitState::kOpen) continue;
      if (stands_apart(copies_[at])) continue;
      waits |= unit.want != UnitWant::kNothing && copies_[at].vouches();
      const bool can = copies_[at].vouches() || copies_[at].at + rules_.pending_max <= now_;
      if (unit.want != UnitWant::kNothing || !can) continue;
      if (chance_.below(++seen) == 0) chosen = copies_[at].unit;
    }
    if (chosen != kNoSlot && !waits) {
      want(chosen, UnitWant::kAudit);
      mark(chosen);
    }
  }
  host.age_timed = true;
  at(due, TimerKind::kAge, slot);
}

// ---- Forgetting --------------------------------------------------------------------------------

void Broker::Core::retire_known() {
  while (known_.size() > rules_.known_units_max) {
    const Slot unit = known_.front();
    known_.pop_front();
    units_[unit].known = false;
    forget_if_over(unit);
  }
}

void Broker::Core::forget_if_over(Slot slot) {
  const Unit& unit = units_[slot];
  if (unit.id.value == 0 || unit.state == UnitState::kOpen || unit.known) return;
  for (Slot at = unit.copies; at != kNoSlot; at = copies_[at].next) {
    const ResultState state = copies_[at].state;
    if (copies_[at].live || state == ResultState::kPending || state == ResultState::kSuspect)
      return;
  }
  for (Slot at = unit.copies; at != kNoSlot;) {
    const Slot next = copies_[at].next;
    copies_.remove(at);
    at = next;
  }
  const Slot task = unit.task;
  unit_by_id_.remove(unit.id.value);
  units_.remove(slot);
  --tasks_[task].units;
  if (tasks_[task].units == 0) remove_if_over(tasks_[task].job);
}

}  // namespace shoal
