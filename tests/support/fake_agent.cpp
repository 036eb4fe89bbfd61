#include "tests/support/fake_agent.h"

#include <capnp/message.h>
#include <capnp/schema.h>
#include <kj/async-io.h>
#include <kj/debug.h>
#include <kj/function.h>

#include <cmath>
#include <condition_variable>
#include <limits>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/random.h"
#include "client/settings.h"
#include "schema/message.h"
#include "schema/transport.h"

namespace shoal {
namespace {

constexpr int64_t kMinute = 60'000;
constexpr int64_t kHour = 60 * kMinute;
constexpr int64_t kDay = 24 * kHour;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

void set_class(rpc::JobClass::Builder out, const char* model, rpc::Privacy privacy) {
  out.setKind("generate");
  out.setModel(model);
  out.setPrivacy(privacy);
}

void set_totals(rpc::Totals::Builder out, double scale) {
  out.setCreditConfirmed(41.25 * scale);
  out.setCreditPending(1.75 * scale);
  out.setCreditRejected(0.25 * scale);
  out.setRows(static_cast<uint64_t>(18'400 * scale));
  out.setWorkedMs(static_cast<uint64_t>(3.2 * kHour * scale));
  out.setAllowedMs(static_cast<uint64_t>(5.5 * kHour * scale));
  out.setKilowattHours(0.61 * scale);
  out.setCost(0.18 * scale);
  out.setBytesDown(static_cast<uint64_t>(2.1e9 * scale));
  out.setBytesUp(static_cast<uint64_t>(6.4e8 * scale));
}

void set_verdict(rpc::Verdict::Builder out, rpc::Activity activity, const Message& why,
                 const Message& remedy, const char* rule, int64_t since, int64_t changes) {
  out.setActivity(activity);
  write_message(why, out.initWhy());
  write_message(remedy, out.initRemedy());
  out.setRule(rule);
  out.setSinceMs(since);
  out.setChangesAtMs(changes);
}

void set_card(rpc::CoordinatorCard::Builder card, const char* name) {
  card.setName(name);
  card.setOperator(
      "The reading group of the public library. We keep small models running for schools "
      "that cannot pay for a service.");
  auto offers = card.initOffers(3);
  const struct {
    const char* model;
    rpc::Privacy privacy;
    const char* purpose;
    double bytes, credit;
  } kOffers[] = {
      {"qwen3-0.6b", rpc::Privacy::PUBLIC, "Homework help for pupils", 6.4e8, 0.0012},
      {"llama-3.2-3b", rpc::Privacy::ANCHORED, "Summaries of council minutes", 3.4e9, 0.0064},
      {"gemma-2-9b", rpc::Privacy::PUBLIC, "", 9.8e9, 0.018},
  };
  for (uint32_t i = 0; i < 3; ++i) {
    set_class(offers[i].initJobClass(), kOffers[i].model, kOffers[i].privacy);
    offers[i].setPurpose(kOffers[i].purpose);
    offers[i].setSealedBytes(static_cast<uint64_t>(kOffers[i].bytes));
    offers[i].setCreditPerRow(kOffers[i].credit);
  }
}

void set_connection(rpc::Snapshot::Connection::Builder out, const char* url, const char* name,
                    int64_t now) {
  out.setUrl(url);
  out.setName(name);
  out.setState("connected");
  out.setHostId(17);
  out.setConnectedSinceMs(now - 3 * kHour);
  out.setLastWorkMs(now - 40'000);
  out.setReceiptsStored(412);
  auto standing = out.initStanding();
  standing.setNewestReceipt(412);
  standing.setCreditConfirmed(1'288.5);
  standing.setCreditPending(3.25);
  standing.setCreditRejected(0.5);
  if (std::string(name) == "Public library") {
    standing.setCreditRate(0.5);
    standing.setCreditUnit("points");
    standing.setAccount("ann");
    standing.setTeam("reds");
    standing.setGroup("lab");
  }
  auto devices = standing.initDevices(2);
  devices[0].setDeviceId("vulkan:gpu0");
  devices[0].setState("working");
  devices[0].setSinceMs(now - 20 * kMinute);
  devices[1].setDeviceId("cpu");
  devices[1].setState("pooled");
  write_message({"a.newer.code", {std::string("no session needs another device")}},
                devices[1].initWhy());
  devices[1].setSinceMs(now - 2 * kHour);
  set_card(out.initCard(), name);
}

void set_device(rpc::Snapshot::Device::Builder out, const char* id, const char* plane,
                const char* name, double memory, rpc::Resource resource, bool lent) {
  auto report = out.initReport();
  auto info = report.initInfo();
  info.setId(id);
  info.setSelector(std::string(plane) == "cpu" ? "cpu" : "vulkan:0");
  info.setPlane(plane);
  info.setName(name);
  info.setDriver("Mesa 22.3.6");
  info.setMemoryBytes(static_cast<uint64_t>(memory));
  out.setLent(lent);
  out.setResource(resource);
  out.setTemperatureC(static_cast<float>(kUnknown));
  out.setWatts(static_cast<float>(kUnknown));
  out.setPaceDuty(1);
}

void set_measured(rpc::Snapshot::Device::Builder out, double scale, int64_t now) {
  auto report = out.getReport();
  report.setState(rpc::DeviceReport::State::READY);
  auto test = report.initSelfTest();
  test.setExact(true);
  test.setSamples(184);
  auto bench = report.initBenchmark();
  bench.setDecodeRowsPerSecond(2'140 * scale);
  bench.setPrefillRowsPerSecond(38'600 * scale);
  bench.setWeightBytesPerSecond(3.1e11 * scale);
  bench.setFlopsPerSecond(8.4e12 * scale);
  bench.setCopyBytesPerSecond(1.2e10 * scale);
  bench.setMeasuredAtMs(now - 3 * kDay);
}

void set_resources(rpc::Snapshot::Builder snapshot, int64_t now, bool full) {
  auto resources = snapshot.initResources(3);
  for (uint32_t i = 0; i < 3; ++i) {
    resources[i].setResource(static_cast<rpc::Resource>(i));
    resources[i].setMode(rpc::Mode::BY_RULES);
    set_verdict(resources[i].initVerdict(), full ? rpc::Activity::WORKING : rpc::Activity::OFFLINE,
                full ? Message{"working.idle", {}} : Message{"offline.not_attached", {}},
                full ? Message{} : Message{"offline.not_attached.remedy", {}}, "", now - kHour, 0);
  }
}

void write_empty(rpc::Snapshot::Builder snapshot, int64_t now) {
  snapshot.setVersion("0.1.0");
  snapshot.setHostName("willow");
  snapshot.setPid(4242);
  snapshot.setStartedAtMs(now - kMinute);
  snapshot.setStateFolder("/home/ada/.local/state/shoal");
  snapshot.setIdleSupported(true);
  snapshot.setCacheBytesMax(uint64_t{20} << 30);
  set_verdict(snapshot.initOverall(), rpc::Activity::OFFLINE, {"offline.not_attached", {}},
              {"offline.not_attached.remedy", {}}, "", now - kMinute, 0);
  set_resources(snapshot, now, false);
  auto devices = snapshot.initDevices(2);
  set_device(devices[0], "vulkan:gpu0", "vulkan", "AMD Radeon RX 7600", 8.6e9, rpc::Resource::GPU,
             true);
  set_device(devices[1], "cpu", "cpu", "AMD Ryzen 7 5700X, 16 threads", 3.3e10, rpc::Resource::CPU,
             false);
  for (auto device : devices) {
    device.getReport().setState(rpc::DeviceReport::State::STARTING);
    set_verdict(device.initVerdict(), rpc::Activity::OFFLINE, {"offline.not_attached", {}}, {}, "",
                now - kMinute, 0);
  }
}

void write_full(rpc::Snapshot::Builder snapshot, int64_t now) {
  write_empty(snapshot, now);
  snapshot.setStartedAtMs(now - 2 * kDay);
  snapshot.setCacheBytes(uint64_t{7'400'000'000});
  set_verdict(snapshot.initOverall(), rpc::Activity::WORKING,
              {"working.now", {std::string("llama-3.2-3b")}}, {}, "", now - 20 * kMinute,
              now + 5 * kHour);
  set_resources(snapshot, now, true);
  auto cpu = snapshot.getResources()[1];
  cpu.setMode(rpc::Mode::PAUSED);
  cpu.setModeEndsMs(now + 47 * kMinute);
  set_verdict(cpu.initVerdict(), rpc::Activity::PAUSED,
              {"mode.paused_until", {WallTime{Millis{now + 47 * kMinute}}}},
              {"mode.paused.remedy", {}}, "", now - 13 * kMinute, now + 47 * kMinute);

  auto connections = snapshot.initConnections(2);
  set_connection(connections[0], "shoal://library.example:7410/", "Public library", now);
  set_connection(connections[1], "shoal://lab.example:7410/", "University lab", now);
  connections[1].setState("waiting");
  connections[1].setReason("connection refused");
  connections[1].setRetryInMs(42'000);
  connections[1].setTrusted(true);
  set_class(connections[0].initDenied(1)[0], "gemma-2-9b", rpc::Privacy::PUBLIC);

  auto devices = snapshot.initDevices(3);
  set_device(devices[0], "vulkan:gpu0", "vulkan", "AMD Radeon RX 7600", 8.6e9, rpc::Resource::GPU,
             true);
  set_device(devices[1], "vulkan:gpu1", "vulkan", "NVIDIA GeForce GTX 1660", 6.4e9,
             rpc::Resource::GPU, true);
  set_device(devices[2], "cpu", "cpu", "AMD Ryzen 7 5700X, 16 threads", 3.3e10, rpc::Resource::CPU,
             true);
  set_measured(devices[0], 1, now);
  set_verdict(devices[0].initVerdict(), rpc::Activity::WORKING,
              {"working.now", {std::string("llama-3.2-3b")}}, {}, "", now - 20 * kMinute, 0);
  devices[0].setWorkerPid(4301);
  devices[0].setStages(2);
  devices[0].setSteps(5'210);
  devices[0].setRows(18'020);
  devices[0].setTemperatureC(63);
  devices[0].setWatts(92);
  devices[0].setWattsMeasured(true);
  devices[0].setDuty(0.82f);
  devices[0].setPaceDuty(0.9f);
  devices[0].setMemoryUsedBytes(3'900'000'000);
  set_totals(devices[0].initToday(), 0.9);

  devices[1].getReport().setState(rpc::DeviceReport::State::FAILED);
  devices[1].getReport().setReason("its self-test failed: matmul q8_0 gave other bits");
  set_verdict(devices[1].initVerdict(), rpc::Activity::ATTENTION,
              {"attention.device_failed",
               {std::string("NVIDIA GeForce GTX 1660"),
                std::string("its self-test failed: matmul q8_0 gave other bits")}},
              {}, "", now - 2 * kHour, 0);
  devices[1].setRestarts(3);
  devices[1].setTemperatureC(41);
  set_totals(devices[1].initToday(), 0);

  set_measured(devices[2], 0.04, now);
  set_verdict(devices[2].initVerdict(), rpc::Activity::PAUSED,
              {"mode.paused_until", {WallTime{Millis{now + 47 * kMinute}}}},
              {"mode.paused.remedy", {}}, "", now - 13 * kMinute, now + 47 * kMinute);
  devices[2].setWatts(12);
  set_totals(devices[2].initToday(), 0.1);

  auto transfers = snapshot.initTransfers(2);
  for (uint32_t i = 0; i < 2; ++i) {
    transfers[i].setDigest(i == 0 ? "5b0f9f0c41d7ba22" : "a81c77f0be0d1e94");
    transfers[i].setBytesDone(i == 0 ? 61'000'000 : 4'000'000);
    transfers[i].setBytesTotal(118'000'000);
    transfers[i].setBytesPerSecond(i == 0 ? 5.4e6 : 1.1e6);
    transfers[i].setCoordinator("Public library");
  }
  auto work = snapshot.initWork(2);
  for (uint32_t i = 0; i < 2; ++i) {
    work[i].setLeaseId(9'001 + i);
    work[i].setSessionId(311 + i);
    work[i].setCoordinator("Public library");
    work[i].setDeviceId("vulkan:gpu0");
    set_class(work[i].initJobClass(), i == 0 ? "llama-3.2-3b" : "qwen3-0.6b",
              i == 0 ? rpc::Privacy::ANCHORED : rpc::Privacy::PUBLIC);
    work[i].setFirstFragment(i == 0 ? 8 : 0);
    work[i].setLastFragment(i == 0 ? 19 : 29);
    work[i].setState(i == 0 ? "working" : "loading");
    work[i].setSinceMs(now - (i == 0 ? 20 : 1) * kMinute);
    work[i].setSteps(i == 0 ? 5'210 : 0);
    work[i].setRows(i == 0 ? 18'020 : 0);
  }
  set_totals(snapshot.initToday(), 1);
  set_totals(snapshot.initEver(), 260);
  auto yield = snapshot.initYield();
  yield.setCount(214);
  yield.setStopMsP50(38);
  yield.setStopMsP99(310);
  yield.setFreeMsP50(260);
  yield.setFreeMsP99(1'450);
  yield.setStopMsBound(1'000);
  yield.setFreeMsBound(5'000);

  const struct {
    const char* name;
    const char* backend;
    const char* value;
    const char* problem;
  } kSensors[] = {
      {"idle", "mutter", "7 minutes without input", ""},
      {"inhibitors", "session manager", "none", ""},
      {"power", "upower", "on mains", ""},
      {"load", "proc", "12 % by others", ""},
      {"gpu", "hwmon", "63 °C", ""},
      {"network", "networkmanager", "not metered", ""},
      {"programs", "proc", "none of those named", ""},
      {"sleep", "logind", "awake", ""},
      {"memory", "proc", "18 GB free", ""},
      {"disk", "", "", "no file system answers"},
  };
  auto sensors = snapshot.initSensors(std::size(kSensors));
  for (uint32_t i = 0; i < sensors.size(); ++i) {
    sensors[i].setName(kSensors[i].name);
    sensors[i].setBackend(kSensors[i].backend);
    sensors[i].setKnown(kSensors[i].problem[0] == 0);
    sensors[i].setProblem(kSensors[i].problem);
    sensors[i].setAgeMs(1'000 + 100 * i);
    if (kSensors[i].value[0] != 0) write_message({kSensors[i].value, {}}, sensors[i].initValue());
  }
  auto backends = sensors[0].initBackends(3);
  const char* kBackends[] = {"ext-idle-notify", "mutter", "logind"};
  for (uint32_t i = 0; i < 3; ++i) {
    backends[i].setName(kBackends[i]);
    backends[i].setUsable(i > 0);
    backends[i].setProblem(i == 0 ? "the compositor does not offer it" : "");
    if (i > 0) write_message({"7 minutes without input", {}}, backends[i].initValue());
  }
}

struct World {
  explicit World(FakeAgent::Story story) : story(story) {
    auto snapshot = message.initRoot<rpc::Snapshot>();
    now = SystemClock().now_wall().count;
    if (story == FakeAgent::Story::kFull) {
      write_full(snapshot, now);
      log_lines = 240;
    } else {
      write_empty(snapshot, now);
    }
    snapshot.setRevision(revision);
  }

  rpc::Snapshot::Builder snapshot() { return message.getRoot<rpc::Snapshot>(); }
  bool full() const { return story == FakeAgent::Story::kFull; }

  void changed() {
    snapshot().setRevision(++revision);
    auto waiting = kj::mv(waiters);
    waiters = kj::Vector<kj::Own<kj::PromiseFulfiller<void>>>();
    for (auto& waiter : waiting) waiter->fulfill();
  }

  FakeAgent::Story story;
  capnp::MallocMessageBuilder message;
  int64_t now = 0;
  uint64_t revision = 1;
  kj::Vector<kj::Own<kj::PromiseFulfiller<void>>> waiters;
  std::map<std::string, std::string> failures;
  std::map<std::string, SettingValue> settings;
  uint64_t log_lines = 3;
  std::vector<std::string> calls;
  std::mutex calls_mutex;  // The test reads them from its own thread.
  bool busy = false;
};

void write_value(const SettingValue& value, rpc::SettingValue::Builder out) {
  if (const auto* flag = std::get_if<bool>(&value)) {
    out.setFlag(*flag);
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    out.setInteger(*integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    out.setReal(*real);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    out.setText(*text);
  } else {
    const auto& list = std::get<std::vector<std::string>>(value);
    auto texts = out.initList(static_cast<uint32_t>(list.size()));
    for (uint32_t i = 0; i < texts.size(); ++i) texts.set(i, list[i]);
  }
}

SettingValue read_value(rpc::SettingValue::Reader in) {
  switch (in.which()) {
    case rpc::SettingValue::FLAG: return in.getFlag();
    case rpc::SettingValue::INTEGER: return in.getInteger();
    case rpc::SettingValue::REAL: return in.getReal();
    case rpc::SettingValue::TEXT: return std::string(in.getText().cStr());
    case rpc::SettingValue::LIST: break;
  }
  std::vector<std::string> list;
  for (const auto text : in.getList()) list.emplace_back(text.cStr());
  return list;
}

const char* word_of(rpc::Resource resource) {
  static constexpr const char* kWords[] = {"gpu", "cpu", "network"};
  return kWords[static_cast<size_t>(resource)];
}
const char* word_of(rpc::Mode mode) {
  static constexpr const char* kWords[] = {"byRules", "always", "paused"};
  return kWords[static_cast<size_t>(mode)];
}

class FakeServer final : public rpc::Agent::Server {
 public:
  FakeServer(World& world, kj::Timer& timer) : world_(world), timer_(timer) {}

  kj::Promise<void> snapshot(SnapshotContext context) override {
    context.allowCancellation();
    if (world_.busy || context.getParams().getAfterRevision() != world_.revision) {
      if (world_.busy) world_.changed();
      context.getResults().setSnapshot(world_.snapshot());
      return kj::READY_NOW;
    }
    auto pair = kj::newPromiseAndFulfiller<void>();
    world_.waiters.add(kj::mv(pair.fulfiller));
    return pair.promise.then(
        [this, context]() mutable { context.getResults().setSnapshot(world_.snapshot()); });
  }
  kj::Promise<void> benchmark(BenchmarkContext context) override {
    heard("benchmark " + std::string(context.getParams().getDeviceId().cStr()));
    context.allowCancellation();
    return timer_.afterDelay(1 * kj::SECONDS).then([this, context]() mutable {
      for (auto device : world_.snapshot().getDevices()) {
        if (device.getReport().getInfo().getId() != context.getParams().getDeviceId()) continue;
        set_measured(device, 1, world_.now);
        context.getResults().setReport(device.getReport().getBenchmark());
        context.getResults().setSelfTest(device.getReport().getSelfTest());
      }
      world_.changed();
    });
  }
  kj::Promise<void> stop(StopContext) override {
    heard("stop");
    return kj::READY_NOW;
  }
  kj::Promise<void> attach(AttachContext context) override {
    const std::string url = context.getParams().getUrl().cStr();
    heard("attach " + url);
    for (const auto denied : context.getParams().getDenied()) {
      heard(std::string("attach deny ") + denied.getModel().cStr());
    }
    auto old = world_.snapshot().disownConnections();
    auto list = world_.snapshot().initConnections(old.get().size() + 1);
    for (uint32_t i = 0; i < old.get().size(); ++i) list.setWithCaveats(i, old.get()[i]);
    set_connection(list[list.size() - 1], "shoal://library.example:7410/", "Public library",
                   world_.now);
    set_verdict(world_.snapshot().getOverall(), rpc::Activity::WORKING, {"working.idle", {}}, {},
                "", world_.now, 0);
    set_resources(world_.snapshot(), world_.now, true);
    context.getResults().setConnection(list[list.size() - 1]);
    world_.changed();
    return kj::READY_NOW;
  }
  kj::Promise<void> detach(DetachContext context) override {
    const std::string url = context.getParams().getUrl().cStr();
    heard("detach " + url);
    auto old = world_.snapshot().disownConnections();
    std::vector<uint32_t> kept;
    for (uint32_t i = 0; i < old.get().size(); ++i) {
      if (!url.empty() && url != old.get()[i].getUrl().cStr()) kept.push_back(i);
    }
    auto list = world_.snapshot().initConnections(static_cast<uint32_t>(kept.size()));
    for (uint32_t i = 0; i < list.size(); ++i) list.setWithCaveats(i, old.get()[kept[i]]);
    context.getResults().setCount(old.get().size() - list.size());
    world_.changed();
    return kj::READY_NOW;
  }
  kj::Promise<void> previewAttach(PreviewAttachContext context) override {
    heard("previewAttach " + std::string(context.getParams().getUrl().cStr()));
    set_card(context.getResults().initCard(), "Public library");
    return kj::READY_NOW;
  }
  kj::Promise<void> setMode(SetModeContext context) override {
    const auto params = context.getParams();
    heard(std::string("setMode ") + word_of(params.getResource()) + " " +
          word_of(params.getMode()) + " " + std::to_string(params.getForMs()));
    choose(params.getResource(), params.getMode(), static_cast<int64_t>(params.getForMs()));
    return kj::READY_NOW;
  }
  kj::Promise<void> resume(ResumeContext context) override {
    const rpc::Resource resource = context.getParams().getResource();
    heard(std::string("resume ") + word_of(resource));
    choose(resource, rpc::Mode::BY_RULES, 0);
    return kj::READY_NOW;
  }
  kj::Promise<void> setLeaveBy(SetLeaveByContext context) override {
    heard("setLeaveBy " + std::to_string(context.getParams().getAtMs()));
    world_.snapshot().setLeaveByMs(context.getParams().getAtMs());
    world_.changed();
    return kj::READY_NOW;
  }
  kj::Promise<void> settings(SettingsContext context) override {
    heard("settings");
    const auto table = client::settings_table();
    auto out = context.getResults().initSettings(static_cast<uint32_t>(table.size()));
    for (uint32_t i = 0; i < out.size(); ++i) {
      const SettingSpec& spec = table[i];
      out[i].setKey(std::string(spec.key));
      out[i].setHelp(std::string(spec.help));
      const auto set = world_.settings.find(std::string(spec.key));
      write_value(set == world_.settings.end() ? spec.fallback : set->second, out[i].initValue());
      write_value(spec.fallback, out[i].initFallback());
      out[i].setMinimum(spec.min);
      out[i].setMaximum(spec.max);
      auto choices = out[i].initChoices(static_cast<uint32_t>(spec.choices.size()));
      for (uint32_t c = 0; c < choices.size(); ++c) choices.set(c, std::string(spec.choices[c]));
    }
    return kj::READY_NOW;
  }
  kj::Promise<void> changeSettings(ChangeSettingsContext context) override {
    std::map<std::string, SettingValue> changed = world_.settings;
    std::string words = "changeSettings";
    for (const auto change : context.getParams().getChanges()) {
      const std::string key = change.getKey().cStr();
      words += " " + key;
      const SettingSpec* known = nullptr;
      for (const SettingSpec& spec : client::settings_table()) {
        if (spec.key == key) known = &spec;
      }
      SettingValue value = read_value(change.getValue());
      if (known == nullptr || known->fallback.index() != value.index()) {
        rpc::throw_error({ErrorCode::kInvalid, key + ": there is no such setting of this type"});
      }
      if (const auto* number = std::get_if<int64_t>(&value);
          number != nullptr && (static_cast<double>(*number) < known->min ||
                                static_cast<double>(*number) > known->max)) {
        rpc::throw_error({ErrorCode::kInvalid, key + ": out of its limits"});
      }
      changed[key] = std::move(value);
    }
    heard(words);
    world_.settings = std::move(changed);
    world_.changed();
    return kj::READY_NOW;
  }
  kj::Promise<void> trace(TraceContext context) override {
    heard("trace");
    if (!world_.full()) return kj::READY_NOW;
    // Each day: somebody uses the machine from nine to five, and it is too warm for a while.
    const int64_t days = 7;
    auto spans = context.getResults().initSpans(days * 3 * 3);
    uint32_t next = 0;
    for (uint32_t r = 0; r < 3; ++r) {
      for (int64_t day = days - 1; day >= 0; --day) {
        const int64_t start = world_.now - day * kDay - 20 * kHour;
        const struct {
          rpc::Activity activity;
          Message why;
          const char* rule;
          int64_t from, to;
        } kParts[] = {
            {rpc::Activity::WAITING,
             {"rule.owner_active", {Millis{5 * kMinute}}},
             "rules.idle_seconds",
             0,
             8 * kHour},
            {rpc::Activity::WORKING,
             {"working.now", {std::string("llama-3.2-3b")}},
             "",
             8 * kHour,
             14 * kHour + 17 * kMinute * static_cast<int64_t>(r)},
            {r == 1 ? rpc::Activity::PAUSED : rpc::Activity::WAITING,
             r == 1 ? Message{"mode.paused", {}}
                    : Message{"rule.temperature", {Celsius{86}, Celsius{85}}},
             r == 1 ? "" : "rules.gpu_temperature_max",
             14 * kHour + 17 * kMinute * static_cast<int64_t>(r), 20 * kHour},
        };
        for (const auto& part : kParts) {
          auto span = spans[next++];
          span.setResource(static_cast<rpc::Resource>(r));
          set_verdict(span.initVerdict(), part.activity, part.why, {part.why.code + ".remedy", {}},
                      part.rule, start + part.from, 0);
          span.setEndMs(day == 0 && part.to == 20 * kHour ? 0 : start + part.to);
        }
      }
    }
    return kj::READY_NOW;
  }
  kj::Promise<void> whatIf(WhatIfContext context) override {
    std::string words = "whatIf";
    for (const auto change : context.getParams().getChanges())
      words += std::string(" ") + change.getKey().cStr();
    heard(words);
    auto out = context.getResults().initResources(3);
    for (uint32_t i = 0; i < 3; ++i) {
      out[i].setResource(static_cast<rpc::Resource>(i));
      if (!world_.full()) continue;
      out[i].setKnownMs(160 * kHour);
      out[i].setAllowedMs((52 + 9 * i) * kHour);
      out[i].setWouldBeMs((52 + 9 * i + 11 * context.getParams().getChanges().size()) * kHour);
    }
    return kj::READY_NOW;
  }
  kj::Promise<void> statistics(StatisticsContext context) override {
    const auto params = context.getParams();
    heard("statistics " + std::to_string(params.getStepMs()));
    if (!world_.full()) return kj::READY_NOW;
    const int64_t step = std::max<int64_t>(params.getStepMs(), kMinute);
    const int64_t from = std::max(params.getFromMs(), world_.now - 40 * kDay);
    const int64_t count = std::clamp<int64_t>((world_.now - from) / step + 1, 0, 2'000);
    const char* kDevices[] = {"vulkan:gpu0", "cpu"};
    auto rows = context.getResults().initRows(static_cast<uint32_t>(count * 2));
    for (int64_t i = 0; i < count; ++i) {
      for (int d = 0; d < 2; ++d) {
        auto row = rows[static_cast<uint32_t>(i * 2 + d)];
        row.setStartMs(from + i * step);
        row.setDeviceId(kDevices[d]);
        const double wave = 0.6 + 0.4 * std::sin(static_cast<double>(i) * 0.9 + d);
        const double share = static_cast<double>(step) / static_cast<double>(kDay);
        set_totals(row.initTotals(), wave * share * (d == 0 ? 1 : 0.12));
        row.setTemperatureMax(d == 0 ? static_cast<float>(58 + 9 * wave)
                                     : static_cast<float>(kUnknown));
        row.setWattsMean(static_cast<float>((d == 0 ? 88 : 14) * wave));
      }
    }
    return kj::READY_NOW;
  }
  kj::Promise<void> history(HistoryContext context) override {
    heard("history");
    if (!world_.full()) return kj::READY_NOW;
    auto work = context.getResults().initWork(std::min(context.getParams().getCountMax(), 60u));
    for (uint32_t i = 0; i < work.size(); ++i) {
      work[i].setLeaseId(9'000 - i);
      work[i].setSessionId(310 - i / 2);
      work[i].setCoordinator(i % 5 == 4 ? "University lab" : "Public library");
      work[i].setDeviceId(i % 4 == 3 ? "cpu" : "vulkan:gpu0");
      set_class(work[i].initJobClass(), i % 3 == 0 ? "qwen3-0.6b" : "llama-3.2-3b",
                i % 3 == 0 ? rpc::Privacy::PUBLIC : rpc::Privacy::ANCHORED);
      work[i].setFirstFragment(4 + i % 9);
      work[i].setLastFragment(12 + i % 9);
      work[i].setStartedMs(world_.now - (i + 1) * 50 * kMinute);
      work[i].setEndedMs(world_.now - (i + 1) * 50 * kMinute + 31 * kMinute);
      work[i].setSteps(900 + 37 * i);
      work[i].setRows(4'100 + 91 * i);
      write_message({i % 6 == 5 ? "mode.paused" : "work.ended", {}}, work[i].initEnded());
    }
    return kj::READY_NOW;
  }
  kj::Promise<void> receipts(ReceiptsContext context) override {
    heard("receipts");
    if (!world_.full()) return kj::READY_NOW;
    const uint64_t after = context.getParams().getAfterRow();
    const uint64_t left = after >= 40 ? 0 : 40 - after;
    auto list = context.getResults().initReceipts(
        static_cast<uint32_t>(std::min<uint64_t>(left, context.getParams().getCountMax())));
    for (uint32_t i = 0; i < list.size(); ++i) {
      const uint64_t row = after + i + 1;
      list[i].setRow(row);
      list[i].setCoordinator("shoal://library.example:7410/");
      list[i].setGenuine(row != 7);
      auto receipt = list[i].initReceipt();
      receipt.setNumber(row);
      receipt.setHostId(17);
      receipt.setLeaseId(8'900 + row);
      receipt.setDeviceId(row % 4 == 3 ? "cpu" : "vulkan:gpu0");
      set_class(receipt.initJobClass(), "llama-3.2-3b", rpc::Privacy::ANCHORED);
      receipt.setRows(4'100);
      receipt.setCredit(2.5 + 0.1 * static_cast<double>(row % 7));
      receipt.setVerdict(row % 9 == 8   ? rpc::Receipt::Verdict::REJECTED
                         : row % 5 == 0 ? rpc::Receipt::Verdict::PENDING
                                        : rpc::Receipt::Verdict::CONFIRMED);
      if (row % 9 == 8) receipt.setReason("receipt.differs");
      receipt.setAtMs(world_.now - static_cast<int64_t>(40 - row) * kHour);
    }
    return kj::READY_NOW;
  }
  kj::Promise<void> verifyReceipts(VerifyReceiptsContext context) override {
    heard("verifyReceipts");
    if (!world_.full()) return kj::READY_NOW;
    auto report = context.getResults().initReport(2);
    for (uint32_t i = 0; i < 2; ++i) {
      report[i].setCoordinator(i == 0 ? "Public library" : "University lab");
      report[i].setCount(412);
      report[i].setGenuine(i == 0 ? 412 : 410);
      report[i].setMissing(i == 0 ? 0 : 2);
      report[i].setCreditConfirmed(1'288.5);
      report[i].setCreditStated(i == 0 ? 1'288.5 : 1'301.5);
      report[i].setAgrees(i == 0);
      if (i == 1) write_message({"receipt.missing", {Count{2}}}, report[i].initWhy());
    }
    return kj::READY_NOW;
  }
  kj::Promise<void> setConsent(SetConsentContext context) override {
    const auto params = context.getParams();
    heard(std::string("setConsent ") + params.getJobClass().getModel().cStr() +
          (params.getAllowed() ? " allow" : " deny"));
    for (auto connection : world_.snapshot().getConnections()) {
      if (connection.getUrl() != params.getUrl()) continue;
      auto old = connection.disownDenied();
      std::vector<rpc::JobClass::Reader> kept;
      for (const auto denied : old.getReader()) {
        if (denied.getModel() != params.getJobClass().getModel() ||
            denied.getPrivacy() != params.getJobClass().getPrivacy())
          kept.push_back(denied);
      }
      if (!params.getAllowed()) kept.push_back(params.getJobClass());
      auto list = connection.initDenied(static_cast<uint32_t>(kept.size()));
      for (uint32_t i = 0; i < list.size(); ++i) list.setWithCaveats(i, kept[i]);
    }
    world_.changed();
    return kj::READY_NOW;
  }
  kj::Promise<void> setDeviceLent(SetDeviceLentContext context) override {
    const auto params = context.getParams();
    heard(std::string("setDeviceLent ") + params.getDeviceId().cStr() +
          (params.getLent() ? " true" : " false"));
    for (auto device : world_.snapshot().getDevices()) {
      if (device.getReport().getInfo().getId() == params.getDeviceId())
        device.setLent(params.getLent());
    }
    world_.changed();
    return kj::READY_NOW;
  }
  kj::Promise<void> log(LogContext context) override {
    fail_if_told("log");
    const uint64_t newest = world_.log_lines;
    const uint64_t after = context.getParams().getAfterId();
    const uint64_t wanted =
        std::min<uint64_t>(context.getParams().getCountMax(), after >= newest ? 0 : newest - after);
    auto lines = context.getResults().initLines(static_cast<uint32_t>(wanted));
    static constexpr const char* kEvents[][4] = {
        {"info", "host", "stage_opened", "lease=9001 device=vulkan:gpu0 fragments=8-19"},
        {"info", "fetcher", "shard_done", "digest=5b0f9f0c bytes=118000000"},
        {"warning", "link", "lost", "coordinator=\"University lab\" why=\"connection refused\""},
        {"info", "policy", "waits", "resource=gpu rule=rules.idle_seconds"},
        {"error", "worker", "ended", "device=vulkan:gpu1 why=\"signal 9 (Killed)\""},
    };
    for (uint32_t i = 0; i < lines.size(); ++i) {
      const uint64_t id = newest - wanted + i + 1;
      const auto& event = kEvents[id % 5];
      lines[i].setId(id);
      lines[i].setAtMs(world_.now - static_cast<int64_t>(newest - id) * 90'000);
      lines[i].setLevel(event[0]);
      lines[i].setModule(event[1]);
      lines[i].setEvent(event[2]);
      lines[i].setFields(event[3]);
    }
    return kj::READY_NOW;
  }
  kj::Promise<void> bundle(BundleContext context) override {
    heard("bundle");
    context.getResults().setText("Shoal 0.1.0\n[devices]\nvulkan:gpu0\n");
    return kj::READY_NOW;
  }
  kj::Promise<void> testSensor(TestSensorContext context) override {
    heard(std::string("testSensor ") + context.getParams().getName().cStr());
    for (const auto sensor : world_.snapshot().asReader().getSensors()) {
      if (sensor.getName() == context.getParams().getName()) context.getResults().setSensor(sensor);
    }
    return kj::READY_NOW;
  }
  kj::Promise<void> pair(PairContext context) override {
    heard("pair");
    context.getResults().setUrl("shoal+pair://willow:7411/?pin=abc&token=def");
    context.getResults().setExpiresMs(world_.now + 10 * kMinute);
    return kj::READY_NOW;
  }
  kj::Promise<void> pairings(PairingsContext context) override {
    heard("pairings");
    if (!world_.full()) return kj::READY_NOW;
    auto list = context.getResults().initPairings(1);
    list[0].setId(1);
    list[0].setName("Ada's laptop");
    list[0].setPairedMs(world_.now - 20 * kDay);
    list[0].setLastUsedMs(world_.now - kDay);
    return kj::READY_NOW;
  }
  kj::Promise<void> unpair(UnpairContext context) override {
    heard("unpair " + std::to_string(context.getParams().getId()));
    return kj::READY_NOW;
  }

 private:
  // The resource is in this mode from now on, for ever when `for_ms` is 0.
  void choose(rpc::Resource which, rpc::Mode mode, int64_t for_ms) {
    auto resource = world_.snapshot().getResources()[static_cast<uint32_t>(which)];
    const int64_t now = SystemClock().now_wall().count;
    const int64_t ends = for_ms == 0 ? 0 : now + for_ms;
    resource.setMode(mode);
    resource.setModeEndsMs(ends);
    if (mode == rpc::Mode::PAUSED) {
      set_verdict(resource.initVerdict(), rpc::Activity::PAUSED,
                  ends == 0 ? Message{"mode.paused", {}}
                            : Message{"mode.paused_until", {WallTime{Millis{ends}}}},
                  {"mode.paused.remedy", {}}, "", now, ends);
    } else {
      set_verdict(resource.initVerdict(), rpc::Activity::WORKING, {"working.idle", {}}, {}, "", now,
                  0);
    }
    bool all_paused = true;
    for (auto one : world_.snapshot().getResources()) {
      if (one.getResource() != rpc::Resource::NETWORK)
        all_paused = all_paused && one.getMode() == rpc::Mode::PAUSED;
    }
    if (all_paused) {
      world_.snapshot().setOverall(resource.getVerdict());
    } else {
      set_verdict(world_.snapshot().initOverall(), rpc::Activity::WORKING, {"working.idle", {}}, {},
                  "", now, 0);
    }
    world_.changed();
  }

  void fail_if_told(const std::string& method) {
    const auto failure = world_.failures.find(method);
    if (failure != world_.failures.end()) rpc::throw_error({ErrorCode::kDenied, failure->second});
  }
  void heard(const std::string& call) {
    {
      const std::lock_guard<std::mutex> lock(world_.calls_mutex);
      world_.calls.push_back(call);
    }
    fail_if_told(call.substr(0, call.find(' ')));
  }

  World& world_;
  kj::Timer& timer_;
};

}  // namespace

// The server's process, as a thread.
class FakeAgent::Thread {
 public:
  Thread(std::string socket, Story story) : world_(story), socket_(std::move(socket)) { start(); }
  ~Thread() { kill(); }

  void start() {
    stops_ = false;
    bool listens = false;
    thread_ = std::thread([this, &listens] { run(listens); });
    std::unique_lock<std::mutex> lock(mutex_);
    condition_.wait(lock, [&listens] { return listens; });
  }
  void kill() {
    if (!thread_.joinable()) return;
    wake_hung();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stops_ = true;
      wake_loop();
    }
    thread_.join();
  }
  // Returns when the thread stands still: what is asked from now on gets no answer.
  void hang() {
    std::unique_lock<std::mutex> lock(mutex_);
    hung_ = true;
    wake_loop();
    condition_.wait(lock, [this] { return stands_; });
  }
  void wake_hung() {
    const std::lock_guard<std::mutex> lock(mutex_);
    hung_ = false;
    condition_.notify_all();
  }
  // Runs `act` on the thread, and returns when it is done.
  void run_there(kj::Function<void(World&)> act) {
    std::unique_lock<std::mutex> lock(mutex_);
    act_ = &act;
    wake_loop();
    condition_.wait(lock, [this] { return act_ == nullptr; });
  }
  World& world() { return world_; }

 private:
  // REQUIRES: mutex_ is held.
  void wake_loop() {
    if (waker_.get() != nullptr) {
      waker_->fulfill();
      waker_ = nullptr;
    }
  }

  void run(bool& listens) {
    kj::AsyncIoContext io = kj::setupAsyncIo();
    kj::Timer& timer = io.provider->getTimer();
    kj::Own<rpc::Listener> door =
        rpc::listen_unix(io.provider->getNetwork(), timer, socket_,
                         [this, &timer](rpc::Peer) -> capnp::Capability::Client {
                           return kj::heap<FakeServer>(world_, timer);
                         })
            .wait(io.waitScope);
    std::unique_lock<std::mutex> lock(mutex_);
    listens = true;
    condition_.notify_all();
    while (!stops_) {
      if (hung_) {
        stands_ = true;
        condition_.notify_all();
        condition_.wait(lock, [this] { return !hung_; });
        stands_ = false;
      }
      if (stops_) break;
      if (act_ != nullptr) {
        (*act_)(world_);
        act_ = nullptr;
        condition_.notify_all();
        continue;
      }
      auto pair = kj::newPromiseAndCrossThreadFulfiller<void>();
      waker_ = kj::mv(pair.fulfiller);
      lock.unlock();
      pair.promise.wait(io.waitScope);
      lock.lock();
    }
    world_.waiters = kj::Vector<kj::Own<kj::PromiseFulfiller<void>>>();
  }

  World world_;  // The thread's, but for what has a mutex.
  const std::string socket_;
  std::mutex mutex_;  // The test's thread asks, this one answers.
  std::condition_variable condition_;
  kj::Own<kj::CrossThreadPromiseFulfiller<void>> waker_;  // GUARDED_BY(mutex_)
  kj::Function<void(World&)>* act_ = nullptr;             // GUARDED_BY(mutex_)
  bool hung_ = false;                                     // GUARDED_BY(mutex_)
  bool stands_ = false;                                   // GUARDED_BY(mutex_)
  bool stops_ = false;                                    // GUARDED_BY(mutex_)
  std::thread thread_;
};

FakeAgent::FakeAgent(std::string socket, Story story)
    : thread_(std::make_unique<Thread>(std::move(socket), story)) {}
FakeAgent::~FakeAgent() = default;

void FakeAgent::hang() { thread_->hang(); }
void FakeAgent::wake() { thread_->wake_hung(); }
void FakeAgent::kill() { thread_->kill(); }
void FakeAgent::start() { thread_->start(); }

void FakeAgent::set_busy(bool busy) {
  thread_->run_there([busy](World& world) {
    world.busy = busy;
    world.changed();
  });
}

void FakeAgent::change(std::function<void(rpc::Snapshot::Builder)> edit) {
  thread_->run_there([&edit](World& world) {
    edit(world.snapshot());
    world.changed();
  });
}

void FakeAgent::set_log_lines(uint64_t count) {
  thread_->run_there([count](World& world) { world.log_lines = count; });
}

void FakeAgent::fail(const std::string& method, const std::string& why) {
  thread_->run_there([&](World& world) {
    if (why.empty()) {
      world.failures.erase(method);
    } else {
      world.failures[method] = why;
    }
  });
}

std::vector<std::string> FakeAgent::calls() const {
  World& world = thread_->world();
  const std::lock_guard<std::mutex> lock(world.calls_mutex);
  return world.calls;
}

}  // namespace shoal
