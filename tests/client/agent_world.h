#pragma once
// One client with its folder, and the coordinator that it is attached to: what tests of the agent
// begin with.

#include <capnp/message.h>

#include <QTest>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/host.h"
#include "base/random.h"
#include "client/agent.h"
#include "client/settings.h"
#include "tests/client/fake_coordinator.h"
#include "tests/client/fake_sensors.h"

namespace shoal::client {

// The system's time, moved.
class ShiftedClock final : public Clock {
 public:
  Millis now_monotonic() const override { return system_.now_monotonic() + monotonic_; }
  Millis now_wall() const override { return system_.now_wall() + wall_; }
  void advance(Millis by) {
    monotonic_ += by;
    wall_ += by;
  }
  void advance_wall(Millis by) { wall_ += by; }

 private:
  SystemClock system_;
  Millis monotonic_{0}, wall_{0};
};

// The loop's time, which remembers for how long it was waited.
class WatchedTimer final : public kj::Timer {
 public:
  explicit WatchedTimer(kj::Timer& timer) : timer_(timer) {}

  kj::TimePoint now() const override { return timer_.now(); }
  kj::Promise<void> atTime(kj::TimePoint time) override {
    asked.push_back(time - now());
    return timer_.atTime(time);
  }
  kj::Promise<void> afterDelay(kj::Duration delay) override {
    asked.push_back(delay);
    return timer_.afterDelay(delay);
  }
  int count(kj::Duration least, kj::Duration most) const {
    return static_cast<int>(std::ranges::count_if(
        asked, [&](kj::Duration one) { return one >= least && one <= most; }));
  }

  std::vector<kj::Duration> asked;

 private:
  kj::Timer& timer_;
};

// A computer that nobody uses, and of which everything is known.
inline Readings all_is_well() {
  Readings readings;
  readings.idle = Millis{600'000};
  readings.idle_source = "test";
  readings.locked = false;
  readings.inhibitors.emplace();
  readings.on_battery = false;
  readings.power_profile = "balanced";
  readings.other_cpu_load = 0;
  readings.programs.emplace();
  readings.game_mode = false;
  readings.memory_available = Bytes{int64_t{8} << 30};
  readings.gpus.emplace();
  readings.cpu_temperature_c = 40;
  readings.online = true;
  readings.metered = false;
  readings.cache_disk_free = Bytes{int64_t{100} << 30};
  return readings;
}

// One client with its folder, and the coordinator that it is attached to.
struct World {
  explicit World(kj::AsyncIoContext& io, const char* mode = "good",
                 Bytes cache_max = Bytes{64 << 20})
      : io(io),
        coordinator(io),
        timer(io.provider->getTimer()),
        loop{io, timer},
        mode(mode),
        cache_max(cache_max) {
    coordinator.knows_everyone = true;
    coordinator.listen();
  }

  void start() {
    const bool known = std::filesystem::exists(dir / "client.toml");
    settings = std::make_unique<LiveSettings>(
        known ? Settings::load(settings_table(), dir / "client.toml").value()
              : Settings(settings_table()),
        dir / "client.toml", [](const Settings&) -> Result<void> { return {}; });
    QVERIFY(settings
                ->override_with({"coordinators", std::vector<std::string>{rpc::format_attach_url(
                                                     coordinator.url())}})
                .ok());
    QVERIFY(settings->override_with({"cache.bytes_max", cache_max.count}).ok());
    QVERIFY(settings->override_with({"cache.free_bytes_min", int64_t{0}}).ok());
    for (const SettingChange& change : chosen) QVERIFY(settings->override_with(change).ok());
    records = std::make_unique<Records>(records_folder.empty() ? dir.path() : records_folder, clock,
                                        Records::Options{.vfs = records_vfs});
    state = std::make_unique<ClientState>(ClientState::load(dir / "client").value());
    cache = ModelCache::open(dir / "shards", {cache_max, Bytes{0}}, clock).value();
    AgentOptions options;
    options.worker_program = FAKE_WORKER;
    options.worker_arguments =
        worker_arguments ? *worker_arguments : std::vector<std::string>{mode};
    options.start_mode = start_mode;
    options.units_folder = dir / "units";
    agent = std::make_unique<Agent>(AgentParts{loop, clock, random, identity, *state, *settings,
                                               *cache, sensors, *records, ring},
                                    std::move(options));
  }
  void stop() {
    agent->shut_down().promise().wait(io.waitScope);
    agent = nullptr;
    cache = nullptr;
    records = nullptr;
  }

  void wait_ready() {
    coordinator.wait_until([this] {
      return !coordinator.reports.empty() && !coordinator.reports.back().empty() &&
             coordinator.reports.back()[0].state == rpc::DeviceReport::State::READY;
    });
  }
  void wait_for_agent(const std::function<bool(rpc::Snapshot::Reader)>& done) {
    while (true) {
      capnp::MallocMessageBuilder message;
      auto snapshot = message.initRoot<rpc::Snapshot>();
      agent->write_snapshot(snapshot);
      if (done(snapshot.asReader())) return;
      agent->changed_after(agent->revision()).wait(io.waitScope);
    }
  }

  rpc::DeviceReport::State reported_state() const {
    const auto& reports = coordinator.reports;
    return reports.empty() || reports.back().empty() ? rpc::DeviceReport::State::STARTING
                                                     : reports.back()[0].state;
  }
  void wait_state(rpc::DeviceReport::State state) {
    coordinator.wait_until([&] { return reported_state() == state; });
  }
  // What the snapshot says first of all.
  std::string overall_code() {
    capnp::MallocMessageBuilder message;
    auto snapshot = message.initRoot<rpc::Snapshot>();
    agent->write_snapshot(snapshot);
    return snapshot.getOverall().getWhy().getCode().cStr();
  }
  void wait_overall(const std::string& code) {
    wait_for_agent([&](rpc::Snapshot::Reader snapshot) {
      return code == snapshot.getOverall().getWhy().getCode().cStr();
    });
  }
  // What the sensors say from now on.
  void sense(const std::function<void(Readings&)>& edit) {
    edit(sensors.now);
    sensors.tell();
  }

  Digest add_shard(size_t size, uint64_t seed) {
    ByteVector bytes(size);
    Random(seed).fill(bytes);
    const Digest digest = digest_of(bytes);
    coordinator.shards[digest] = std::move(bytes);
    return digest;
  }

  using OpenRequest = capnp::Request<rpc::Host::OpenStageParams, rpc::Host::OpenStageResults>;
  OpenRequest open_request(const std::vector<Digest>& shards, uint32_t silence_ms = 0) {
    OpenRequest request = KJ_ASSERT_NONNULL(coordinator.host).openStageRequest();
    auto lease = request.initLease();
    lease.setLeaseId(1);
    lease.setDeviceId(device);
    lease.setModel("m");
    lease.setSilenceMaxMs(silence_ms);
    auto spec = lease.initSpec();
    spec.setContext(8);
    spec.setSequences(1);
    spec.setRowsMax(8);
    auto list = spec.initShards(static_cast<uint32_t>(shards.size()));
    for (uint32_t i = 0; i < shards.size(); ++i) {
      list[i].setDigest(rpc::kj_bytes(shards[i].bytes));
      list[i].setSealedBytes(coordinator.shards.at(shards[i]).size());
    }
    return request;
  }
  rpc::Stage::Client open(const std::vector<Digest>& shards, uint32_t silence_ms = 0) {
    return open_request(shards, silence_ms).send().wait(io.waitScope).getStage();
  }

  auto step(rpc::Stage::Client& stage) {
    auto request = stage.stepRequest();
    auto input = request.initInput();
    input.initSequences(1);
    input.initPositions(1);
    const std::array<float, 4> row = {1, 2, 3, 4};
    input.setHidden(rpc::kj_bytes(std::as_bytes(std::span(row))));
    return request.send();
  }

  kj::Exception failure(kj::Promise<void> promise) {
    return promise
        .then([]() -> kj::Exception { return KJ_EXCEPTION(FAILED, "it succeeded"); },
              [](kj::Exception&& exception) { return kj::mv(exception); })
        .wait(io.waitScope);
  }
  template <class T>
  kj::Exception failure(kj::Promise<T> promise) {
    return failure(promise.ignoreResult());
  }

  kj::AsyncIoContext& io;
  TempDir dir;
  FakeCoordinator coordinator;
  WatchedTimer timer;
  Loop loop;
  const char* mode;
  Bytes cache_max;
  // To be chosen before start().
  Mode start_mode = Mode::kAlways;
  std::vector<SettingChange> chosen;
  std::filesystem::path records_folder;  // Empty: `dir`.
  const char* records_vfs = nullptr;
  const char* device = "fake";                               // That stages are opened on.
  std::optional<std::vector<std::string>> worker_arguments;  // Instead of the mode.

  ShiftedClock clock;
  Random random{1};
  SigningKey identity = SigningKey::generate();
  std::unique_ptr<ClientState> state;
  std::unique_ptr<ModelCache> cache;
  std::unique_ptr<LiveSettings> settings;
  std::unique_ptr<Records> records;
  FakeSensors sensors;
  LogRing ring{clock, {}};
  std::unique_ptr<Agent> agent;
};

}  // namespace shoal::client
