// The part of the agent that shows what it is: to coordinators as a report, to user interfaces as a
// snapshot.

#include <algorithm>

#include "base/text.h"
#include "client/agent.h"
#include "client/agent_wire.h"
#include "client/device_wire.h"
#include "client/rules/yield_times.h"
#include "schema/limits.h"

namespace shoal::client {
namespace {

const char* state_name(CoordinatorLink::State state) {
  switch (state) {
    case CoordinatorLink::State::kConnecting: return "connecting";
    case CoordinatorLink::State::kConnected: return "connected";
    case CoordinatorLink::State::kWaiting: return "waiting";
    case CoordinatorLink::State::kRefused: return "refused";
  }
  SHOAL_UNREACHABLE();
}

const char* state_name(StageWork::State state) {
  switch (state) {
    case StageWork::State::kAhead: return "ahead";
    case StageWork::State::kFetching: return "fetching";
    case StageWork::State::kLoading: return "loading";
    case StageWork::State::kReady: return "ready";
    case StageWork::State::kWorking: return "working";
  }
  SHOAL_UNREACHABLE();
}

}  // namespace

// What it is and what it proved. What it may do is for others to say.
void Agent::write_device(LentDevice& device, rpc::DeviceReport::Builder report) {
  write_facts(device.facts(), report.initInfo());
  WorkerProcess* const worker = device.worker();
  auto state = rpc::DeviceReport::State::STARTING;
  std::string reason = worker == nullptr ? "its worker is starting" : worker->reason();
  if (worker != nullptr && worker->state() == WorkerProcess::State::kFailed) {
    state = rpc::DeviceReport::State::FAILED;
  }
  if (device.client() != nullptr) {
    report.setWorkerKey(rpc::kj_bytes(worker->public_key()));
    state = rpc::DeviceReport::State::READY;
  }
  if (device.measurement()) {
    const SelfTestResult& self_test = device.measurement()->self_test;
    write_self_test(self_test, report.initSelfTest());
    write_benchmark(device.measurement()->benchmark, report.initBenchmark());
    if (state == rpc::DeviceReport::State::READY && !self_test.exact) {
      state = rpc::DeviceReport::State::FAILED;
      reason = "its results are not exact: " + self_test.first_failure;
    }
  }
  report.setState(state);
  report.setReason(std::string(cut_utf8(reason, limits::kReasonBytesMax)));
}

void Agent::write_report(rpc::HostSession::ReportParams::Builder report) {
  std::vector<LentDevice*> lent;
  for (const auto& device : devices_) {
    if (device->lent && lent.size() < limits::kDevicesPerHostMax) lent.push_back(device.get());
  }
  auto out = report.initDevices(static_cast<uint32_t>(lent.size()));
  for (uint32_t i = 0; i < out.size(); ++i) {
    LentDevice& device = *lent[i];
    write_device(device, out[i]);
    if (device.resource() == Resource::kGpu) {
      const int64_t left =
          device.facts().memory_bytes - parts_.settings.now().integer("rules.vram_reserve_bytes");
      out[i].getInfo().setMemoryBytes(static_cast<uint64_t>(std::max<int64_t>(left, 0)));
    }
    if (const std::optional<Millis> available = available_for(device)) {
      out[i].setAvailableMs(static_cast<uint64_t>(available->count));
    }
    if (device.may_work && !device.measuring()) continue;
    // Which rule forbids it is the owner's own.
    const Message why{device.present ? "work.owner_needs_device" : "device.missing",
                      device.present ? std::vector<MessageParameter>{}
                                     : std::vector<MessageParameter>{device.facts().name}};
    out[i].setState(rpc::DeviceReport::State::PAUSED);
    out[i].setReason(english(why));
    write_message(why, out[i].initWhy());
  }
}

void Agent::write_connection(CoordinatorLink& link, rpc::Snapshot::Connection::Builder to) {
  to.setUrl(shown_url(link.url()));
  to.setName(coordinator_name(link.url().pin));
  to.setState(state_name(link.state()));
  to.setReason(std::string(cut_utf8(link.reason(), limits::kReasonBytesMax)));
  to.setRetryInMs(static_cast<uint32_t>(link.retry_in().count));
  to.setHostId(host_id_of(link));
  to.setTrusted(link.trusted());
  write_standing(link.standing(), to.initStanding());
  write_card(link.card(), to.initCard());
  const std::vector<JobClass> denied_classes = denied(link);
  auto list = to.initDenied(static_cast<uint32_t>(denied_classes.size()));
  for (uint32_t i = 0; i < list.size(); ++i) write_job_class(denied_classes[i], list[i]);
  const auto last = last_work_.find(link.url().pin);
  to.setLastWorkMs(last == last_work_.end() ? 0 : last->second.count);
  to.setConnectedSinceMs(link.connected_since().count);
  to.setReceiptsStored(parts_.records.receipt_progress(link.url().pin).stored);
}

Bytes Agent::memory_used(const LentDevice& device) const {
  Bytes used;
  for (const StageWork* work : work_.all()) {
    if (work->device == device.facts().id && work->state >= StageWork::State::kReady) {
      used += Bytes{static_cast<int64_t>(work->bytes)};
    }
  }
  return used;
}

void Agent::write_snapshot(rpc::Snapshot::Builder snapshot) {
  snapshot.setRevision(revision_);
  snapshot.setVersion(SHOAL_VERSION);
  snapshot.setHostName(host_name());
  snapshot.setPid(static_cast<uint32_t>(own_pid()));
  snapshot.setStartedAtMs(started_at_.count);
  snapshot.setStateFolder(options_.state_folder);
  snapshot.setRemoteListens(remote_listens_);
  snapshot.setIdleSupported(parts_.sensors.idle_supported());
  snapshot.setLeaveByMs(parts_.state.memory().leave_by.value_or(Millis{0}).count);
  write_verdict(overall_.verdict, overall_.since, snapshot.initOverall());

  auto connections = snapshot.initConnections(static_cast<uint32_t>(links_.size()));
  for (uint32_t i = 0; i < connections.size(); ++i) write_connection(*links_[i], connections[i]);

  auto devices = snapshot.initDevices(static_cast<uint32_t>(devices_.size()));
  for (uint32_t i = 0; i < devices.size(); ++i) {
    LentDevice& device = *devices_[i];
    auto out = devices[i];
    write_device(device, out.initReport());
    const WorkerProcess* const worker = device.worker();
    out.setWorkerPid(worker == nullptr ? 0 : static_cast<uint32_t>(worker->pid()));
    out.setRestarts(device.restarts());
    out.setStages(static_cast<uint32_t>(work_.count(device.facts().id)));
    out.setSteps(device.steps);
    out.setRows(device.rows);
    out.setLent(device.lent);
    out.setResource(wire_resource(device.resource()));
    write_verdict(device.standing.verdict, device.standing.since, out.initVerdict());
    if (!device.may_work) {
      out.getReport().setState(rpc::DeviceReport::State::PAUSED);
      out.getReport().setReason(
          std::string(cut_utf8(english(device.standing.verdict.why), limits::kReasonBytesMax)));
    }
    out.setTemperatureC(known(device.temperature_c));
    out.setWatts(known(device.watts));
    out.setWattsMeasured(device.watts_measured);
    out.setDuty(static_cast<float>(device.duty.duty(parts_.clock.now_monotonic())));
    out.setPaceDuty(static_cast<float>(device.pace().duty));
    write_message(device.pace().why, out.initPaceWhy());
    out.setMemoryUsedBytes(static_cast<uint64_t>(memory_used(device).count));
    write_totals(parts_.records.today(device.facts().id), out.initToday());
  }

  snapshot.setCacheBytes(static_cast<uint64_t>(parts_.cache.used().count));
  snapshot.setCacheBytesMax(static_cast<uint64_t>(parts_.cache.limits().bytes_max.count));
  const std::vector<ShardFetcher::Transfer> running = fetcher_.transfers();
  auto transfers = snapshot.initTransfers(static_cast<uint32_t>(running.size()));
  for (uint32_t i = 0; i < transfers.size(); ++i) {
    transfers[i].setDigest(running[i].digest.hex());
    transfers[i].setBytesDone(running[i].done);
    transfers[i].setBytesTotal(running[i].total);
    transfers[i].setBytesPerSecond(running[i].bytes_per_second);
    transfers[i].setCoordinator(coordinator_name(running[i].coordinator));
  }

  auto resources = snapshot.initResources(kResourceCount);
  for (int i = 0; i < kResourceCount; ++i) {
    const auto resource = static_cast<Resource>(i);
    const ModeChoice mode = mode_of(resource);
    auto out = resources[static_cast<uint32_t>(i)];
    out.setResource(wire_resource(resource));
    out.setMode(wire_mode(mode.mode));
    out.setModeEndsMs(mode.until.value_or(Millis{0}).count);
    const StandingVerdict& standing = verdicts_.of(resource);
    write_verdict(standing.verdict, standing.since, out.initVerdict());
  }

  const std::vector<SensorStatus>& known_sensors = parts_.sensors.sensors();
  auto sensors = snapshot.initSensors(static_cast<uint32_t>(known_sensors.size()));
  for (uint32_t i = 0; i < sensors.size(); ++i) {
    write_sensor(known_sensors[i], parts_.clock.now_monotonic(), sensors[i]);
  }

  const std::vector<const StageWork*> open = work_.all();
  auto work = snapshot.initWork(static_cast<uint32_t>(open.size()));
  for (uint32_t i = 0; i < work.size(); ++i) {
    const StageWork& stage = *open[i];
    work[i].setLeaseId(stage.lease);
    work[i].setSessionId(stage.session);
    work[i].setCoordinator(stage.coordinator_name);
    work[i].setDeviceId(stage.device);
    write_job_class(stage.job_class, work[i].initJobClass());
    work[i].setFirstFragment(stage.first_fragment);
    work[i].setLastFragment(stage.last_fragment);
    work[i].setState(state_name(stage.state));
    work[i].setSinceMs(stage.since.count);
    work[i].setSteps(stage.steps);
    work[i].setRows(stage.rows);
    if (stage.unit == 0) continue;
    auto unit = work[i].initUnit();
    unit.setId(stage.unit);
    unit.setItems(stage.items);
    unit.setItemsDone(stage.items_done);
    // Of a lease that was not spoken of since the start, the end is not known.
    const Millis left = stage.until - parts_.clock.now_monotonic();
    unit.setUntilMs(stage.until.count == 0 ? 0 : (parts_.clock.now_wall() + left).count);
    unit.setEstimateMs(static_cast<uint64_t>(stage.estimate.count));
  }

  std::vector<Message> notices = parts_.records.notices();
  for (const std::string& word : unknown_words_) {
    notices.push_back({"device.word_unknown", {word, selectors()}});
  }
  if (!remote_problem_.empty()) notices.push_back({"remote.not_open", {remote_problem_}});
  for (const auto& [id, runner] : unit_runners_) {
    if (!runner->problem().empty()) notices.push_back(runner->problem());
  }
  auto told = snapshot.initNotices(static_cast<uint32_t>(notices.size()));
  for (uint32_t i = 0; i < told.size(); ++i) write_message(notices[i], told[i]);

  write_totals(parts_.records.today(), snapshot.initToday());
  write_totals(parts_.records.ever(), snapshot.initEver());

  const Settings& settings = parts_.settings.now();
  const Millis stop_bound{settings.integer("yield.stop_ms")};
  const Millis free_bound{settings.integer("yield.free_ms")};
  YieldTimes times;
  for (const YieldTime& time : parts_.records.yields()) times.add(time.stop, time.free);
  // One that hangs is late before it is over.
  const Millis ran = parts_.clock.now_monotonic();
  for (const auto& device : devices_) {
    const std::optional<Millis> since = device->yielding_since();
    if (since && ran - *since > stop_bound) times.add(ran - *since, ran - *since);
  }
  for (const auto& [id, freeing] : freeing_) {
    const Millis took = ran - freeing.began;
    if (freeing.stop && took > free_bound) times.add(*freeing.stop, took);
  }
  const YieldSummary summary = times.summary(stop_bound, free_bound);
  auto yield = snapshot.initYield();
  yield.setCount(summary.count);
  yield.setStopMsP50(static_cast<uint32_t>(summary.stop_p50.count));
  yield.setStopMsP99(static_cast<uint32_t>(summary.stop_p99.count));
  yield.setFreeMsP50(static_cast<uint32_t>(summary.free_p50.count));
  yield.setFreeMsP99(static_cast<uint32_t>(summary.free_p99.count));
  yield.setStopMsBound(static_cast<uint32_t>(stop_bound.count));
  yield.setFreeMsBound(static_cast<uint32_t>(free_bound.count));
  yield.setLate(summary.late);
}

}  // namespace shoal::client
