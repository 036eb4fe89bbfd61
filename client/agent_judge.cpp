// The part of the agent that looks at the rules: now and then, and whenever something happened. It
// asks for verdicts, starts and ends workers by them, tells coordinators and the records.

#include <algorithm>

#include "base/log.h"
#include "client/agent.h"

namespace shoal::client {
namespace {

constexpr Millis kLookAtWork{1'000}, kLookAtRest{5'000}, kLookLeast{50};
// So long without a look means that this process, or the whole computer, was stopped.
constexpr Millis kGap{10'000};
static_assert(kLookAtRest < kGap);
constexpr Millis kGovernEach{2'000}, kFlushEach{60'000}, kTryAgainEach{5'000};
// Whether less memory than this is free again cannot be told from what others do meanwhile.
constexpr Bytes kSeenFree{int64_t{32} << 20};
constexpr Millis kGpuAnswers{4'000};                 // A sensor's answer may be so late.
constexpr kj::Duration kSleepMax = 4 * kj::SECONDS;  // logind waits for five.

// What a coordinator is told when the owner needs a device: not which of his rules, as that tells
// of him.
const Message& told_when_paused() {
  static const Message kTold{"work.owner_needs_device", {}};
  return kTold;
}

Verdict verdict(Activity activity, std::string code, std::vector<MessageParameter> parameters = {},
                std::string remedy = "") {
  Verdict verdict;
  verdict.activity = activity;
  verdict.why = {std::move(code), std::move(parameters)};
  if (!remedy.empty()) verdict.remedy = {std::move(remedy), {}};
  return verdict;
}

}  // namespace

rpc::Task<void> Agent::keep_judging() {
  // Not inside the constructor: the links are not all there yet.
  co_await kj::evalLater([] {});
  while (true) {
    // Before the look: what it makes happen is looked at as well.
    kj::Promise<void> next = judge_wanted_.wait();
    judge();
    if (options_.looks) {
      next = next.exclusiveJoin(parts_.loop.timer.afterDelay(next_look().count * kj::MILLISECONDS));
    }
    co_await kj::mv(next);
  }
}

bool Agent::at_work() const {
  return !freeing_.empty() || !fetcher_.transfers().empty() ||
         std::ranges::any_of(devices_, [this](const auto& device) {
           return work_.count(device->facts().id) > 0 || device->measuring() ||
                  device->measures_now() || device->yielding();
         });
}

Millis Agent::next_look() {
  const Millis now = parts_.clock.now_wall();
  Millis wait = until_whole(parts_.clock.now_monotonic(), at_work() ? kLookAtWork : kLookAtRest);
  const auto consider = [&](const std::optional<Millis>& at) {
    if (at && *at > now) wait = std::min(wait, std::max(*at - now, kLookLeast));
  };
  for (int i = 0; i < kResourceCount; ++i) {
    consider(mode_of(static_cast<Resource>(i)).until);
    consider(verdicts_.of(static_cast<Resource>(i)).verdict.changes_at);
  }
  for (const auto& device : devices_) consider(verdicts_.of_device(device->facts().id).changes_at);
  consider(parts_.state.memory().leave_by);
  return wait;
}

void Agent::notice_gap() {
  const Millis monotonic = parts_.clock.now_monotonic(), wall = parts_.clock.now_wall();
  const Millis stopped = monotonic - judged_at_;
  const Millis slept = (wall - judged_wall_) - stopped;
  judged_at_ = monotonic;
  judged_wall_ = wall;
  const bool woke = sleeping_ && !parts_.sensors.readings().sleeping;
  // A sleep that the system announced counts in a pause, also when this look comes before the word
  // that it is over; a clock that was set does not.
  if (sleeping_ && slept > Millis{0}) {
    for (Millis& ends : mode_ends_) ends -= slept;
  }
  if (stopped < kGap && slept < kGap && !woke) return;
  log_info("agent", "woke", {{"stopped_ms", stopped}, {"slept_ms", slept}});
  governed_at_ = counted_at_ = monotonic;  // Nothing was used meanwhile.
  for (const auto& device : devices_) {
    device->energy_meter.restart();
    (void)device->own_load.take_busy(monotonic);
  }
  finder_->look_now();
  for (auto& link : links_) link->look_now();
  for (const auto& [id, runner] : unit_runners_) runner->woke();
}

void Agent::judge() {
  if (shutting_down_) return;
  notice_gap();
  const Millis now = parts_.clock.now_wall();
  forget_ended_modes(now);
  judge_resources(now);
  for (const auto& device : devices_) {
    const Verdict& network = verdicts_.of(Resource::kNetwork).verdict;
    device->may_work = device->lent && device->present && network.allowed() &&
                       !parts_.records.disk_is_full() &&
                       verdicts_.of_device(device->facts().id).allowed();
  }
  // First the coordinators, so that the end of a stage is orderly; the same turn of the loop sends
  // both.
  tell_coordinators_if_other();
  bool other = false;
  for (const auto& device : devices_) {
    act_on(*device);
    other |= update(device->standing, shown_verdict(*device), now);
  }
  look_at_freeing();
  other |= update(overall_, overall(overall_input()), now);

  const bool sleeping = parts_.sensors.readings().sleeping;
  if (sleeping && !sleeping_) {
    sleep_ = go_to_sleep().promise().eagerlyEvaluate([](kj::Exception&& exception) {
      log_warning("agent", "sleep_not_prepared", {{"cause", exception.getDescription().cStr()}});
    });
  }
  sleeping_ = sleeping;
  govern_and_count();
  if (other || figures_changed_) changed();
}

void Agent::judge_resources(Millis now) {
  const Settings& settings = parts_.settings.now();
  const Readings& readings = parts_.sensors.readings();
  PolicyInput input{.settings = settings, .readings = readings};
  for (int i = 0; i < kResourceCount; ++i) input.modes[i] = mode_of(static_cast<Resource>(i));
  input.spent = parts_.records.spent();
  input.leave_by = parts_.state.memory().leave_by;
  input.now = now;
  input.local = local_time(now);
  input.texts = &rule_texts_;

  std::vector<Verdicts::Device> asked;
  const std::vector<const StageWork*> stages = work_.all();
  for (const auto& device : devices_) {
    device->note_loading(std::ranges::any_of(stages, [&device](const StageWork* work) {
      return work->device == device->facts().id && work->state == StageWork::State::kLoading;
    }));
    asked.push_back({device->facts().id, device->resource(), gpu_of(*device),
                     device->own_load.load(parts_.clock.now_monotonic()),
                     device->lent && device->present});
  }
  if (verdicts_.judge(std::move(input), asked)) figures_changed();
  for (int i = 0; i < kResourceCount; ++i) {
    const auto resource = static_cast<Resource>(i);
    parts_.records.note_verdict(resource, verdicts_.of(resource).verdict);
  }
  const Verdict& network = verdicts_.of(Resource::kNetwork).verdict;
  if (network.allowed()) {
    fetcher_.allow();
  } else {
    fetcher_.forbid("the owner of this host does not let it fetch now");
  }
}

void Agent::act_on(LentDevice& device) {
  const std::string& id = device.facts().id;
  const bool is_used = work_.count(id) > 0;
  const bool counts = is_used || device.measures_now();
  if (device.measuring()) {
    if (const std::optional<Message> why = forbids_measuring(device)) {
      device.fail_errands({ErrorCode::kUnavailable, english(*why)});
    }
  }
  if (!device.may_work && device.worker() != nullptr && !device.yielding() && is_used) {
    const GpuReading* const gpu = gpu_of(device);
    const Bytes ours = memory_used(device);
    if (gpu != nullptr && gpu->memory_used && ours >= kSeenFree) {
      freeing_[id] = {*gpu->memory_used, ours, parts_.clock.now_monotonic(), {}};
    }
  }
  if (!device.may_work && is_used) {
    work_.end([&id](const StageWork& work) { return work.device == id; }, shown_verdict(device).why,
              told_when_paused());
  }
  allow_units(device);
  // A session is not disturbed for it; units were stopped for it just now, and lose nothing.
  const bool renews = device.worker() != nullptr && device.outdated() && work_.count(id) == 0 &&
                      !device.measuring();
  device.want(device.may_work && !renews,
              parts_.settings.now().integer("yield.stop_ms") * kj::MILLISECONDS, counts && !renews);
}

// Sessions go first: units do not share a device with a stage of one.
void Agent::allow_units(LentDevice& device) {
  using Allowance = UnitRunner::Allowance;
  const std::string& id = device.facts().id;
  const auto known = unit_runners_.find(id);
  if (known == unit_runners_.end() && !device.lent) return;
  std::unique_ptr<UnitRunner>& runner = unit_runners_[id];
  if (runner == nullptr) {
    runner = std::make_unique<UnitRunner>(parts_.loop.timer, parts_.clock, parts_.cache, fetcher_,
                                          static_cast<HostServer::Needs&>(*this),
                                          static_cast<UnitRunner::Needs&>(*this),
                                          UnitStore(options_.units_folder), id);
  }
  if (!device.may_work || work_.stages(id) > 0) {
    runner->allow(Allowance::kNo);
  } else {
    // A worker that must be another, for settings that changed, would else never be without work.
    const bool soon = device.client() == nullptr || device.measuring() || device.outdated();
    runner->allow(soon ? Allowance::kSoon : Allowance::kYes);
  }
  runner->look();
}

// Other programs take and free memory too, so half of ours is enough to be seen.
void Agent::look_at_freeing() {
  const Millis bound{parts_.settings.now().integer("yield.free_ms")};
  for (auto it = freeing_.begin(); it != freeing_.end();) {
    const Freeing& freeing = it->second;
    LentDevice* const device = find(it->first);
    const GpuReading* const gpu = device == nullptr ? nullptr : gpu_of(*device);
    const Millis took = parts_.clock.now_monotonic() - freeing.began;
    // A new worker takes memory anew.
    const bool known = gpu != nullptr && gpu->memory_used && device->worker() == nullptr;
    const bool free =
        known && *gpu->memory_used + Bytes{freeing.ours.count / 2} <= freeing.used_before;
    if (!freeing.stop || (known && !free && took <= bound + kGpuAnswers)) {
      ++it;
      continue;
    }
    parts_.records.note_yield({parts_.clock.now_wall(), it->first, *freeing.stop,
                               known ? std::max(took, *freeing.stop) : *freeing.stop});
    it = freeing_.erase(it);
    figures_changed();
  }
}

bool Agent::owner_is_away(Resource resource) const {
  const Settings& settings = parts_.settings.now();
  const Readings& readings = parts_.sensors.readings();
  if (mode_of(resource).mode == Mode::kAlways || readings.locked == true ||
      settings.flag(resource == Resource::kGpu ? "rules.gpu_when_in_use"
                                               : "rules.cpu_when_in_use")) {
    return true;
  }
  return readings.idle && *readings.idle >= Millis{settings.integer("rules.idle_seconds") * 1'000};
}

std::optional<Message> Agent::forbids_measuring(const LentDevice& device) const {
  // These come first of all rules, so no other hides them.
  const Verdict& rules = verdicts_.of_device(device.facts().id);
  const bool is_hard = rules.activity == Activity::kPaused || rules.why.code == "rule.sleeping" ||
                       rules.rule == "rules.gpu_temperature_max" ||
                       rules.rule == "rules.cpu_temperature_max" ||
                       rules.rule == "rules.memory_free_bytes_min";
  if (!rules.allowed() && is_hard) return rules.why;
  if (device.owner_was_away && !owner_is_away(device.resource())) {
    return Message{"work.owner_needs_device", {}};
  }
  return {};
}

// What a person is told of it. Says why it may not work also where another rule than those of
// decide() forbids.
Verdict Agent::shown_verdict(LentDevice& device) const {
  const DeviceFacts& facts = device.facts();
  if (!device.lent) {
    return verdict(Activity::kWaiting, "device.not_lent", {}, "device.not_lent.remedy");
  }
  if (!device.present) {
    if (!finder_->problem().empty()) {
      return verdict(Activity::kWaiting, "device.not_listed", {finder_->problem()});
    }
    if (finder_->looking()) return verdict(Activity::kWaiting, "device.looking");
    return verdict(Activity::kWaiting, "device.missing", {facts.name}, "device.missing.remedy");
  }
  if (parts_.records.disk_is_full()) {
    const Message& problem = parts_.records.problem();
    return verdict(Activity::kAttention, problem.code, problem.parameters);
  }
  const Verdict& rules = verdicts_.of_device(facts.id);
  if (!rules.allowed()) return rules;
  const Verdict& network = verdicts_.of(Resource::kNetwork).verdict;
  if (!network.allowed()) return network;

  const WorkerProcess* const worker = device.worker();
  if (worker != nullptr && worker->state() == WorkerProcess::State::kFailed) {
    return verdict(Activity::kAttention, "attention.device_failed", {facts.name, worker->reason()});
  }
  if (worker == nullptr || device.yielding() || worker->state() != WorkerProcess::State::kReady) {
    return verdict(Activity::kWaiting, "device.starting", {facts.name});
  }
  if (device.measurement() && !device.measurement()->self_test.exact) {
    return verdict(Activity::kAttention, "attention.device_not_exact", {facts.name});
  }
  return rules;
}

OverallInput Agent::overall_input() {
  OverallInput input;
  for (const auto& device : devices_) {
    if (!device->lent) continue;
    input.lent.push_back(
        {device->facts().name, device->standing.verdict, work_.count(device->facts().id) > 0});
  }
  for (const auto& link : links_) {
    using State = OverallInput::Link::State;
    static_assert(static_cast<int>(State::kRefused) ==
                  static_cast<int>(CoordinatorLink::State::kRefused));
    OverallInput::Link shown{coordinator_name(link->url().pin),
                             static_cast<State>(link->state()),
                             link->reason(),
                             link->retry_in(),
                             {}};
    for (const HostStanding::Device& device : link->standing().devices) {
      if (!device.why.empty()) shown.no_work = device.why;
    }
    input.links.push_back(std::move(shown));
  }
  input.network = verdicts_.of(Resource::kNetwork).verdict;
  if (parts_.records.disk_is_full()) input.disk_problem = parts_.records.problem();
  input.consents_lost = parts_.records.consents_lost();
  input.looking = finder_->looking();
  input.list_problem = finder_->problem();
  return input;
}

std::optional<Millis> Agent::available_for(const LentDevice& device) const {
  std::optional<Millis> end = parts_.state.memory().leave_by;
  for (const Verdict* verdict :
       {&verdicts_.of_device(device.facts().id), &verdicts_.of(Resource::kNetwork).verdict}) {
    if (verdict->allowed() && verdict->changes_at && (!end || *verdict->changes_at < *end)) {
      end = verdict->changes_at;
    }
  }
  if (!end) return {};
  return std::max(*end - parts_.clock.now_wall(), Millis{1});
}

void Agent::tell_coordinators_if_other() {
  std::string text;
  for (const auto& device : devices_) {
    if (!device->lent) continue;
    const std::optional<Millis> available = available_for(*device);
    const int64_t ends =
        available ? (parts_.clock.now_wall() + *available).count / 60'000 : int64_t{0};
    text += device->facts().id + " " + std::to_string(device->may_work) + " " +
            std::to_string(device->present) + " " + std::to_string(device->measuring()) + " " +
            std::to_string(
                device->worker() == nullptr ? -1 : static_cast<int>(device->worker()->state())) +
            (device->worker() == nullptr ? "" : device->worker()->reason()) + " " +
            std::to_string(device->worker() == nullptr ? 0 : device->worker()->pid()) + " " +
            std::to_string(ends) + "\n";
  }
  text += std::to_string(parts_.settings.now().integer("rules.vram_reserve_bytes"));
  if (text == told_) return;
  told_ = std::move(text);
  for (auto& link : links_) link->devices_changed();
}

rpc::Task<void> Agent::go_to_sleep() {
  log_info("agent", "goes_to_sleep");
  auto waiting = kj::heapArrayBuilder<kj::Promise<void>>(devices_.size() + links_.size());
  for (const auto& device : devices_) waiting.add(device->gone());
  for (auto& link : links_) waiting.add(link->reported());
  kj::Promise<void> all = kj::joinPromises(waiting.finish());
  kj::Promise<void> ready = all.exclusiveJoin(parts_.loop.timer.afterDelay(kSleepMax));
  co_await kj::mv(ready);
  for (const auto& [id, runner] : unit_runners_) runner->save();
  parts_.records.flush();
  parts_.sensors.release_sleep();
}

const GpuReading* Agent::gpu_of(const LentDevice& device) const {
  const std::optional<std::vector<GpuReading>>& gpus = parts_.sensors.readings().gpus;
  if (!gpus || device.resource() != Resource::kGpu) return nullptr;
  std::vector<DeviceFacts> here;
  for (const auto& other : devices_) {
    if (other->present && other->resource() == Resource::kGpu) here.push_back(other->facts());
  }
  return reading_of(device.facts(), here, *gpus);
}

void Agent::govern_and_count() {
  const Millis now = parts_.clock.now_monotonic();
  const Readings& readings = parts_.sensors.readings();
  const Settings& settings = parts_.settings.now();
  const bool governs = now - governed_at_ >= kGovernEach;
  const Millis elapsed = now - counted_at_;
  const bool counts = elapsed >= Millis{1'000} || !options_.looks;
  const LocalTime local = local_time(parts_.clock.now_wall());
  const double price = rule_texts_.tariff.price_at(local.weekday, local.minute_of_day);
  double own_gpu_load = 0;

  for (const auto& device : devices_) {
    const bool is_cpu = device->resource() == Resource::kCpu;
    const GpuReading* const gpu = gpu_of(*device);
    EnergyReading energy;
    EnergySlice slice;
    if (device->resource() == Resource::kGpu) {
      own_gpu_load = std::max(own_gpu_load, device->own_load.load(now));
    }
    if (is_cpu) {
      device->temperature_c = readings.cpu_temperature_c;
      energy.joules = readings.cpu_joules;
    } else if (gpu != nullptr) {
      device->temperature_c = gpu->temperature_c;
      energy = {gpu->joules, gpu->watts};
    } else {
      device->temperature_c = {};
    }
    if (counts) {
      // Also of a device without a worker: what it draws then is what it draws at rest. Steps on
      // their way, loading and measuring are work as well.
      slice =
          device->energy_meter.add(energy, elapsed, device->own_load.take_busy(now),
                                   settings.real(is_cpu ? "energy.cpu_watts" : "energy.gpu_watts"));
      if (device->worker() == nullptr) {
        device->watts.reset();
        device->whole_watts.reset();
        device->watts_measured = false;
      }
    }
    if (counts && device->worker() != nullptr) {
      const Millis busy{static_cast<int64_t>(std::exchange(device->busy_micros, 0) / 1'000)};
      if (elapsed.count > 0) {
        device->watts = slice.joules * 1000.0 / static_cast<double>(elapsed.count);
      }
      device->watts_measured = slice.measured();
      device->whole_watts = slice.whole_watts;
      Usage& usage = device->usage;
      usage.worked_ms = busy.count;
      usage.allowed_ms = device->may_work ? elapsed.count : 0;
      usage.joules = slice.joules;
      usage.cost = cost_of(slice.kilowatt_hours(), price);
      usage.temperature_c = device->temperature_c;
      // A guess of the owner's is no measurement to make means of.
      if (slice.measured()) usage.watts = device->watts;
      usage.lasted_ms = elapsed.count;
      if (usage.steps > 0) figures_changed();
      parts_.records.add(device->facts().id, std::exchange(usage, Usage{}));
    }
    if (governs && device->worker() != nullptr) {
      device->govern(GovernorTargets::of(settings), now - governed_at_);
    }
  }
  if (counts) {
    Usage bytes;
    bytes.bytes_down = std::exchange(bytes_down_, 0) + fetcher_.take_received().count;
    bytes.bytes_up = std::exchange(bytes_up_, 0);
    if (bytes.bytes_down + bytes.bytes_up > 0) {
      figures_changed();
      parts_.records.add("", bytes);
    }
    if (!fetcher_.transfers().empty()) figures_changed();
    counted_at_ = now;
  }
  if (governs) governed_at_ = now;
  if (parts_.records.disk_is_full() && now - flushed_at_ >= kTryAgainEach) {
    // What waits for room also says whether there is some again.
    flushed_at_ = now;
    parts_.records.flush();
    remember_last_work();
  } else if (now - flushed_at_ >= kFlushEach) {
    flushed_at_ = now;
    parts_.records.note_conditions(readings, own_gpu_load);
    parts_.records.flush();
    remember_last_work();
  }
}

}  // namespace shoal::client
