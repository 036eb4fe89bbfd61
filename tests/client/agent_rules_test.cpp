// Goal: the owner's rules, choices and the state of the computer decide what the client does, at
// once and for good; what it says of that is true; and coordinators learn no more of the owner than
// they must. Method: the whole agent with sensors that say what a test wants, fake workers as real
// processes, and a fake coordinator over real TLS.

#include <QTest>
#include <csignal>
#include <fstream>

#include "tests/client/agent_world.h"
#include "tests/coordinator/faulty_vfs.h"

using namespace shoal;
using namespace shoal::client;

namespace {

using State = rpc::DeviceReport::State;

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

const JobClass kClass{"generate", "m", false};

}  // namespace

class AgentRulesTest : public QObject {
  Q_OBJECT

 public:
  ~AgentRulesTest() noexcept override {}  // kj's own may throw, Qt's may not.

 private:
  kj::AsyncIoContext io_ = kj::setupAsyncIo();

  struct RuledWorld : World {
    explicit RuledWorld(kj::AsyncIoContext& io, const char* mode = "good") : World(io, mode) {
      start_mode = Mode::kByRules;
      sensors.now = all_is_well();
    }
    using Opening = kj::Promise<capnp::Response<rpc::Host::OpenStageResults>>;
    using Stepping = kj::Promise<capnp::Response<rpc::Stage::StepResults>>;
  };

 private Q_SLOTS:
  void initTestCase() { ignore_broken_pipes(); }

  void the_owner_gets_the_device_back_and_lends_it_again() {
    RuledWorld world(io_);
    const Digest shard = world.add_shard(1'000, 1);
    world.start();
    world.wait_ready();
    world.wait_overall("working.idle");
    rpc::Stage::Client stage = world.open({shard});
    int64_t pid = 0;
    world.wait_for_agent([&](rpc::Snapshot::Reader snapshot) {
      pid = snapshot.getDevices()[0].getWorkerPid();
      return std::string("working.now") == snapshot.getOverall().getWhy().getCode().cStr();
    });
    QVERIFY(pid != 0);

    world.sense([](Readings& now) { now.idle = Millis{1'000}; });
    world.wait_state(State::PAUSED);
    // The coordinator learns that, not why: it is the owner's.
    QCOMPARE(world.coordinator.reports.back()[0].why, std::string("work.owner_needs_device"));
    QVERIFY(!has(world.coordinator.reports.back()[0].reason, "1 s"));
    const kj::Exception lost = world.failure(RuledWorld::Stepping(world.step(stage)));
    QVERIFY(lost.getType() == kj::Exception::Type::DISCONNECTED);
    QVERIFY2(has(lost.getDescription().cStr(), "The owner needs this device"),
             lost.getDescription().cStr());
    world.wait_for_agent([](rpc::Snapshot::Reader snapshot) {
      return snapshot.getDevices()[0].getWorkerPid() == 0;
    });
    QVERIFY(kill(static_cast<pid_t>(pid), 0) != 0);  // Gone, and all that it held.
    world.wait_overall("rule.owner_active");
    QCOMPARE(world.records->yields().size(), size_t(1));
    QVERIFY(world.records->yields()[0].stop <= Millis{1'000});
    const auto history = world.records->history(10).value();
    QCOMPARE(history.size(), size_t(1));
    QCOMPARE(history[0].why.code, std::string("rule.owner_active"));  // Here it may be said.
    QCOMPARE(
        rpc::error_of(world.failure(RuledWorld::Opening(world.open_request({shard}).send()))).code,
        ErrorCode::kUnavailable);

    world.sense([](Readings& now) { now.idle = Millis{600'000}; });
    world.wait_ready();
    rpc::Stage::Client again = world.open({shard});
    (void)world.step(again).wait(io_.waitScope);
    world.stop();
  }

  void what_is_not_known_forbids() {
    RuledWorld world(io_);
    world.sensors.now = Readings{};
    world.start();
    world.wait_state(State::PAUSED);
    world.wait_overall("rule.owner_unknown");
    capnp::MallocMessageBuilder message;
    auto snapshot = message.initRoot<rpc::Snapshot>();
    world.agent->write_snapshot(snapshot);
    QVERIFY(!snapshot.getIdleSupported());
    QCOMPARE(snapshot.getDevices()[0].getWorkerPid(), 0u);  // Never started.
    // The remedy for a machine without anybody: mode always.
    QVERIFY(world.agent->set_mode(Resource::kCpu, Mode::kAlways, Millis{0}).ok());
    world.wait_ready();
    world.stop();
  }

  // Killed a while before the bound: a driver needs a moment to end what was killed.
  void a_worker_that_does_not_go_is_ended_within_the_bound() {
    RuledWorld world(io_, "stubborn");
    world.chosen = {{"yield.stop_ms", int64_t{400}}};
    const Digest shard = world.add_shard(1'000, 1);
    world.start();
    world.wait_ready();
    rpc::Stage::Client stage = world.open({shard});
    world.sense([](Readings& now) { now.idle = Millis{0}; });
    world.wait_for_agent(
        [](rpc::Snapshot::Reader snapshot) { return snapshot.getYield().getCount() == 1; });
    const YieldTime time = world.records->yields().at(0);
    QVERIFY(time.stop >= Millis{250});  // It was given its time, by whichever clock.
    QVERIFY(time.free >= time.stop);
    world.stop();
  }

  void a_yield_that_hangs_is_late_before_it_is_over() {
    RuledWorld world(io_, "stubborn");
    world.chosen = {{"yield.stop_ms", int64_t{60'000}}};
    const Digest shard = world.add_shard(1'000, 1);
    world.start();
    world.wait_ready();
    rpc::Stage::Client stage = world.open({shard});
    world.sense([](Readings& now) { now.idle = Millis{0}; });
    world.wait_state(State::PAUSED);
    const auto counts = [&world] {
      capnp::MallocMessageBuilder message;
      auto snapshot = message.initRoot<rpc::Snapshot>();
      world.agent->write_snapshot(snapshot);
      const auto yield = snapshot.asReader().getYield();
      return std::pair(yield.getCount(), yield.getLate());
    };
    QCOMPARE(counts(), std::pair(0u, 0u));
    world.clock.advance(Millis{61'000});
    QCOMPARE(counts(), std::pair(1u, 1u));
    QVERIFY(world.records->yields().empty());
    world.stop();
  }

  void a_worker_that_had_nothing_to_do_is_no_yield() {
    RuledWorld world(io_);
    world.start();
    world.wait_ready();
    world.sense([](Readings& now) { now.idle = Millis{0}; });
    world.wait_for_agent([](rpc::Snapshot::Reader snapshot) {
      return snapshot.getDevices()[0].getWorkerPid() == 0;
    });
    QVERIFY(world.records->yields().empty());
    world.stop();
  }

  void memory_is_free_when_a_sensor_sees_it() {
    RuledWorld world(io_, "gpu");
    world.device = "vulkan:00-ab";
    GpuReading gpu;
    gpu.uuid = "00ab";
    gpu.load = 0;
    gpu.memory_total = Bytes{int64_t{8} << 30};
    gpu.memory_used = Bytes{int64_t{1} << 30};
    world.sensors.now.gpus = {gpu};
    const Digest shard = world.add_shard(33 << 20, 1);
    const auto give_back = [&] {
      rpc::Stage::Client stage = world.open({shard});
      world.sense([](Readings& now) { now.idle = Millis{0}; });
      world.wait_for_agent([](rpc::Snapshot::Reader snapshot) {
        return snapshot.getDevices()[0].getWorkerPid() == 0;
      });
    };
    world.start();
    world.wait_ready();
    give_back();
    QVERIFY(world.records->yields().empty());  // Still held, as far as anybody can see.
    world.clock.advance(Millis{2'000});
    world.sense([](Readings& now) { now.gpus->front().memory_used = Bytes{1'000 << 20}; });
    world.wait_for_agent(
        [](rpc::Snapshot::Reader snapshot) { return snapshot.getYield().getCount() == 1; });
    QVERIFY(world.records->yields()[0].free >= Millis{2'000});
    QVERIFY(world.records->yields()[0].stop < Millis{2'000});

    // Where it never falls, that is late, and known in the end.
    world.sense([](Readings& now) { now.idle = Millis{600'000}; });
    world.wait_ready();
    give_back();
    QCOMPARE(world.records->yields().size(), size_t(1));
    world.clock.advance(Millis{9'500});
    world.agent->judge();
    QCOMPARE(world.records->yields().size(), size_t(2));
    QVERIFY(world.records->yields()[1].free > Millis{9'000});
    world.stop();
  }

  void a_pause_ends_by_itself_and_survives_a_restart() {
    RuledWorld world(io_);
    world.start();
    world.wait_ready();
    QVERIFY(world.agent->set_mode(Resource::kCpu, Mode::kPaused, Millis{900'000}).ok());
    world.wait_state(State::PAUSED);
    world.wait_overall("mode.paused_until");
    world.stop();

    world.coordinator.reports.clear();
    world.start();
    world.wait_state(State::PAUSED);
    world.wait_overall("mode.paused_until");
    // Somebody sets the clock a year ahead: a pause is as long as it was chosen.
    world.clock.advance_wall(Millis{365 * int64_t{86'400'000}});
    world.agent->judge();
    QCOMPARE(world.reported_state(), State::PAUSED);
    world.clock.advance_wall(Millis{-365 * int64_t{86'400'000}});
    world.clock.advance(Millis{890'000});
    world.agent->judge();
    QCOMPARE(world.reported_state(), State::PAUSED);
    world.clock.advance(Millis{11'000});
    world.agent->judge();
    world.wait_ready();
    QVERIFY(!world.state->memory().passing[1]);
    // One that ended while nothing ran is over at the start.
    QVERIFY(world.agent->set_mode(Resource::kCpu, Mode::kPaused, Millis{60'000}).ok());
    world.stop();
    world.clock.advance_wall(Millis{61'000});
    world.coordinator.reports.clear();
    world.start();
    world.wait_ready();
    // A clock that is set back by a year stretches none.
    QVERIFY(world.agent->set_mode(Resource::kCpu, Mode::kPaused, Millis{60'000}).ok());
    world.wait_state(State::PAUSED);
    world.clock.advance_wall(Millis{-365 * int64_t{86'400'000}});
    world.agent->judge();
    world.clock.advance(Millis{50'000});
    world.agent->judge();
    QCOMPARE(world.reported_state(), State::PAUSED);
    world.clock.advance(Millis{11'000});
    world.agent->judge();
    world.wait_ready();
    QVERIFY(!world.agent->set_mode(Resource::kCpu, Mode::kPaused, Millis{-1}).ok());
    QVERIFY(!world.agent->set_mode(Resource::kCpu, Mode::kPaused, Millis{INT64_MAX}).ok());
    world.stop();
  }

  // After a restart the clock on the wall is all there is; the length that was chosen bounds it.
  void a_clock_set_back_while_nothing_ran_stretches_no_pause() {
    RuledWorld world(io_);
    world.start();
    world.wait_ready();
    QVERIFY(world.agent->set_mode(Resource::kCpu, Mode::kPaused, Millis{60'000}).ok());
    world.wait_state(State::PAUSED);
    world.stop();
    world.clock.advance_wall(Millis{-365 * int64_t{86'400'000}});
    world.coordinator.reports.clear();
    world.start();
    world.wait_state(State::PAUSED);
    world.clock.advance(Millis{50'000});
    world.agent->judge();
    QCOMPARE(world.reported_state(), State::PAUSED);
    world.clock.advance(Millis{11'000});
    world.agent->judge();
    world.wait_ready();
    world.stop();
  }

  // Method: after it wakes, the agent looks once before and once after the system's word.
  void a_sleep_counts_in_a_pause_whatever_comes_first_after_it() {
    RuledWorld world(io_);
    world.start();
    world.wait_ready();
    QVERIFY(world.agent->set_mode(Resource::kCpu, Mode::kPaused, Millis{7'200'000}).ok());
    for (const bool looks_first : {true, false}) {
      const auto until = world.agent->mode_of(Resource::kCpu).until;
      world.sense([](Readings& now) { now.sleeping = true; });
      world.agent->judge();
      world.clock.advance_wall(Millis{1'800'000});
      if (looks_first) world.agent->judge();
      world.sense([](Readings& now) { now.sleeping = false; });
      world.agent->judge();
      QCOMPARE(world.agent->mode_of(Resource::kCpu).until->count, until->count);
    }
    world.clock.advance(Millis{3'500'000});
    QVERIFY(world.agent->mode_of(Resource::kCpu).mode == Mode::kPaused);
    world.clock.advance(Millis{101'000});
    QVERIFY(world.agent->mode_of(Resource::kCpu).mode != Mode::kPaused);
    world.stop();
  }

  void what_passes_gives_way_to_what_was_before() {
    RuledWorld world(io_);
    world.start_mode = Mode::kAlways;
    world.start();
    const auto mode = [&world] { return world.agent->mode_of(Resource::kCpu).mode; };
    const auto set = [&world](Mode wanted, int64_t for_ms) {
      QVERIFY(world.agent->set_mode(Resource::kCpu, wanted, Millis{for_ms}).ok());
    };
    const auto resume = [&world] { QVERIFY(world.agent->resume(Resource::kCpu).ok()); };
    // Before the owner chose: what the client was started with.
    set(Mode::kPaused, 0);
    QVERIFY(mode() == Mode::kPaused);
    resume();
    QVERIFY(mode() == Mode::kAlways);
    resume();
    QVERIFY(mode() == Mode::kAlways);
    // What the owner chose to last, whether the pause is ended or ends.
    set(Mode::kByRules, 0);
    set(Mode::kAlways, 60'000);
    QVERIFY(mode() == Mode::kAlways);
    set(Mode::kPaused, 60'000);
    QVERIFY(mode() == Mode::kPaused);
    world.clock.advance(Millis{60'001});
    world.agent->judge();
    QVERIFY(mode() == Mode::kByRules);
    set(Mode::kAlways, 0);
    set(Mode::kPaused, 0);
    set(Mode::kByRules, 0);  // Said in a pause, it is meant as it is said.
    QVERIFY(mode() == Mode::kByRules);
    world.stop();
  }

  void who_was_started_paused_can_resume() {
    RuledWorld world(io_);
    world.start_mode = Mode::kPaused;
    world.start();
    QVERIFY(world.agent->resume(Resource::kCpu).ok());
    QVERIFY(world.agent->mode_of(Resource::kCpu).mode == Mode::kByRules);
    world.stop();
  }

  void the_start_mode_is_what_was_not_chosen() {
    RuledWorld world(io_);
    world.start_mode = Mode::kPaused;
    world.start();
    world.wait_state(State::PAUSED);
    QVERIFY(world.agent->set_mode(Resource::kCpu, Mode::kByRules, Millis{0}).ok());
    // The network was not chosen yet.
    world.wait_overall("mode.paused");
    QVERIFY(world.agent->set_mode(Resource::kNetwork, Mode::kByRules, Millis{0}).ok());
    world.wait_ready();
    world.stop();
  }

  void a_time_to_leave_by_is_told_and_kept() {
    RuledWorld world(io_);
    world.start();
    world.wait_ready();
    QVERIFY(!world.agent->set_leave_by(world.clock.now_wall() - Millis{1}).ok());
    const Millis at = world.clock.now_wall() + Millis{3'600'000};
    QVERIFY(world.agent->set_leave_by(at).ok());
    world.coordinator.wait_until(
        [&] { return world.coordinator.reports.back()[0].available_ms != 0; });
    const uint64_t left = world.coordinator.reports.back()[0].available_ms;
    QVERIFY(left > 3'590'000 && left <= 3'600'000);
    world.clock.advance_wall(Millis{3'600'001});
    world.agent->judge();
    world.wait_state(State::PAUSED);
    world.wait_overall("rule.leave_by");
    QVERIFY(world.agent->set_leave_by({}).ok());
    world.wait_ready();
    world.stop();
  }

  void settings_act_at_once() {
    RuledWorld world(io_);
    world.sensors.now.idle = Millis{0};
    world.start();
    world.wait_state(State::PAUSED);
    QVERIFY(!world.agent
                 ->change_settings(
                     {{"rules.cpu_when_in_use", true}, {"rules.idle_seconds", int64_t{1}}})
                 .ok());
    world.agent->judge();
    QCOMPARE(world.reported_state(), State::PAUSED);  // None of them.
    QVERIFY(world.agent->change_settings({{"rules.cpu_when_in_use", true}}).ok());
    world.wait_ready();
    QVERIFY(world.agent
                ->change_settings({{"rules.exclusive_programs", std::vector<std::string>{"game"}},
                                   {"rules.idle_source", std::string("logind")}})
                .ok());
    QCOMPARE(world.sensors.wishes.idle_source, std::string("logind"));
    QCOMPARE(world.sensors.wishes.exclusive_programs, std::vector<std::string>{"game"});
    world.stop();
  }

  void a_device_is_switched_off_and_on() {
    RuledWorld world(io_);
    world.start();
    world.wait_ready();
    QVERIFY(!world.agent->set_device_lent("other", true).ok());
    QVERIFY(world.agent->set_device_lent("fake", false).ok());
    world.coordinator.wait_until([&] { return world.coordinator.reports.back().empty(); });
    world.wait_overall("attention.no_device");
    QCOMPARE(world.settings->now().list("compute.devices"), std::vector<std::string>{"none"});
    world.wait_for_agent([](rpc::Snapshot::Reader snapshot) {
      const auto device = snapshot.getDevices()[0];
      return !device.getLent() && device.getWorkerPid() == 0;
    });
    world.stop();
    world.start();  // For good.
    world.wait_overall("attention.no_device");
    QVERIFY(world.agent->set_device_lent("fake", true).ok());
    world.wait_ready();
    world.stop();
  }

  void consent_is_told_and_held() {
    RuledWorld world(io_);
    const Digest shard = world.add_shard(1'000, 1);
    world.coordinator.offers = {kClass, {"generate", "other", true}};
    world.start();
    world.wait_ready();
    world.coordinator.wait_until([&] { return !world.coordinator.consents.empty(); });
    QVERIFY(world.coordinator.consents.back().empty());
    auto request = world.open_request({shard});
    write_job_class(kClass, request.getLease().initJobClass());
    rpc::Stage::Client stage = request.send().wait(io_.waitScope).getStage();

    const std::string url = shown_url(world.coordinator.url());
    QVERIFY(!world.agent->set_consent("shoal://elsewhere:1", kClass, false).ok());
    QVERIFY(world.agent->set_consent(url, kClass, false).ok());
    world.coordinator.wait_until([&] { return world.coordinator.consents.back().size() == 1; });
    QVERIFY(world.coordinator.consents.back()[0] == kClass);
    QVERIFY(world.failure(RuledWorld::Stepping(world.step(stage))).getType() ==
            kj::Exception::Type::DISCONNECTED);
    auto denied = world.open_request({shard});
    write_job_class(kClass, denied.getLease().initJobClass());
    const Error error = rpc::error_of(world.failure(RuledWorld::Opening(denied.send())));
    QCOMPARE(error.code, ErrorCode::kDenied);
    QVERIFY2(has(error.message, "does not allow"), error.message.c_str());

    // Those that were not judged are denied with the setting.
    QVERIFY(world.agent->change_settings({{"consent.new_classes", std::string("deny")}}).ok());
    world.coordinator.wait_until([&] { return world.coordinator.consents.back().size() == 2; });
    world.stop();
    world.coordinator.consents.clear();
    world.start();  // And after a restart.
    world.coordinator.wait_until([&] { return !world.coordinator.consents.empty(); });
    QCOMPARE(world.coordinator.consents.back().size(), size_t(2));
    world.stop();
  }

  void receipts_come_and_another_key_is_refused() {
    RuledWorld world(io_);
    for (int i = 0; i < 40; ++i) world.coordinator.add_receipt(2);  // More than one call's.
    world.start();
    world.wait_for_agent([](rpc::Snapshot::Reader snapshot) {
      return snapshot.getConnections().size() == 1 &&
             snapshot.getConnections()[0].getReceiptsStored() == 40;
    });
    const std::string pin = world.coordinator.url().pin;
    QCOMPARE(world.records->ever().confirmed_micro, int64_t{80'000'000});
    world.coordinator.add_receipt(1);
    world.wait_for_agent([](rpc::Snapshot::Reader snapshot) {
      return snapshot.getConnections()[0].getReceiptsStored() == 41;
    });
    // What somebody else signed is not stored, and does not count.
    world.coordinator.add_receipt(100);
    world.coordinator.receipts.back().signature[0] ^= std::byte{1};
    world.wait_for_agent([](rpc::Snapshot::Reader snapshot) {
      return snapshot.getConnections()[0].getStanding().getNewestReceipt() == 42;
    });
    const int pings = world.coordinator.pings;
    world.coordinator.wait_until([&] { return world.coordinator.pings >= pings + 2; });
    QCOMPARE(world.records->receipt_progress(pin).stored, uint64_t{41});
    QCOMPARE(world.records->ever().confirmed_micro, int64_t{81'000'000});
    world.stop();

    world.coordinator.receipt_key = SigningKey::generate();
    world.start();
    world.wait_overall("attention.refused");
    world.stop();
  }

  void before_a_sleep_everything_stops_and_after_it_comes_back() {
    RuledWorld world(io_);
    const Digest shard = world.add_shard(1'000, 1);
    world.start();
    world.wait_ready();
    rpc::Stage::Client stage = world.open({shard});
    auto released = kj::newPromiseAndFulfiller<void>();
    world.sensors.released = kj::mv(released.fulfiller);
    world.sense([](Readings& now) { now.sleeping = true; });
    world.wait_state(State::PAUSED);
    world.wait_for_agent([](rpc::Snapshot::Reader snapshot) {
      return snapshot.getDevices()[0].getWorkerPid() == 0;
    });
    released.promise.wait(io_.waitScope);
    QCOMPARE(world.sensors.sleeps_released, 1);
    QVERIFY(world.failure(RuledWorld::Stepping(world.step(stage))).getType() ==
            kj::Exception::Type::DISCONNECTED);
    world.clock.advance_wall(Millis{3'600'000});
    world.sense([](Readings& now) { now.sleeping = false; });
    world.wait_ready();
    QCOMPARE(world.sensors.sleeps_released, 1);
    world.stop();
  }

  void a_paused_network_takes_no_work_and_fetches_nothing() {
    RuledWorld world(io_);
    const Digest shard = world.add_shard(1'000, 1);
    world.start();
    world.wait_ready();
    QVERIFY(world.agent->set_mode(Resource::kNetwork, Mode::kPaused, Millis{0}).ok());
    world.wait_state(State::PAUSED);
    world.wait_overall("mode.paused");
    auto request = KJ_ASSERT_NONNULL(world.coordinator.host).fetchShardsRequest();
    auto list = request.initShards(1);
    list[0].setDigest(rpc::kj_bytes(shard.bytes));
    list[0].setSealedBytes(1'000);
    const Error error =
        rpc::error_of(world.failure(kj::Promise<void>(request.send().ignoreResult())));
    QCOMPARE(error.code, ErrorCode::kUnavailable);
    QVERIFY(!world.cache->has(shard));
    world.stop();
  }

  void a_list_that_cannot_be_had_is_a_state() {
    RuledWorld world(io_, "unlisted");
    world.start();
    world.coordinator.wait_until([&] { return !world.coordinator.reports.empty(); });
    QVERIFY(world.coordinator.reports.back().empty());
    world.wait_overall("device.not_listed");
    world.stop();
  }

  void it_measures_when_asked_whatever_the_rules_say() {
    RuledWorld world(io_);
    world.sensors.now.idle = Millis{0};
    world.start();
    world.wait_state(State::PAUSED);
    const Measurement measured = world.agent->measure("fake").promise().wait(io_.waitScope);
    QCOMPARE(measured.benchmark.decode_rows_per_second, 42.0);
    QCOMPARE(world.reported_state(), State::PAUSED);
    world.wait_for_agent([](rpc::Snapshot::Reader snapshot) {
      return snapshot.getDevices()[0].getWorkerPid() == 0;
    });
    QVERIFY(rpc::error_of(world.failure(world.agent->measure("other").promise())).code ==
            ErrorCode::kNotFound);
    world.stop();
  }

  void a_measurement_yields_all_the_same() {
    RuledWorld world(io_);
    world.start();
    world.wait_ready();
    world.stop();
    world.mode = "endless";
    world.coordinator.reports.clear();
    world.start();
    world.wait_ready();
    const auto expect_failure = [&](const std::function<void()>& act, const char* part) {
      kj::Promise<Measurement> measuring = world.agent->measure("fake").promise();
      act();
      const Error error = rpc::error_of(world.failure(kj::mv(measuring)));
      QCOMPARE(error.code, ErrorCode::kUnavailable);
      QVERIFY2(has(error.message, part), error.message.c_str());
    };
    expect_failure([&] { world.sense([](Readings& now) { now.idle = Millis{0}; }); }, "owner");
    world.wait_state(State::PAUSED);
    world.wait_for_agent([](rpc::Snapshot::Reader snapshot) {
      return snapshot.getDevices()[0].getWorkerPid() == 0;
    });
    world.sense([](Readings& now) { now.idle = Millis{600'000}; });
    world.wait_ready();
    expect_failure([&] { world.sense([](Readings& now) { now.cpu_temperature_c = 120; }); }, "120");
    // And none begins.
    expect_failure([] {}, "120");
    world.wait_state(State::PAUSED);
    world.sense([](Readings& now) { now.cpu_temperature_c = 40; });
    world.wait_ready();
    expect_failure([&] { world.sense([](Readings& now) { now.sleeping = true; }); }, "sleep");
    world.wait_state(State::PAUSED);
    world.sense([](Readings& now) { now.sleeping = false; });
    world.wait_ready();
    expect_failure(
        [&] { QVERIFY(world.agent->set_mode(Resource::kCpu, Mode::kPaused, Millis{0}).ok()); },
        "pause");
    // An owner who is here anyway does not come back.
    QVERIFY(world.agent->set_mode(Resource::kCpu, Mode::kByRules, Millis{0}).ok());
    world.sense([](Readings& now) { now.idle = Millis{0}; });
    kj::Promise<Measurement> measuring = world.agent->measure("fake").promise();
    world.sense([](Readings& now) { now.idle = Millis{1'000}; });
    world.wait_overall("rule.owner_active");
    QVERIFY(!measuring.poll(io_.waitScope));
    world.stop();
    // The end of the client ends it.
    const Error error = rpc::error_of(world.failure(kj::mv(measuring)));
    QCOMPARE(error.code, ErrorCode::kUnavailable);
  }

  // One that is measured answers no stage: coordinators must know, and know when it is over.
  void coordinators_hear_of_a_measurement() {
    RuledWorld world(io_);
    world.start();
    world.wait_ready();
    world.coordinator.reports.clear();
    kj::Promise<Measurement> measuring = world.agent->measure("fake").promise();
    (void)measuring.wait(io_.waitScope);
    world.wait_ready();
    const auto& reports = world.coordinator.reports;
    QVERIFY(std::ranges::any_of(reports, [](const auto& devices) {
      return !devices.empty() && devices[0].state == State::PAUSED;
    }));
    QCOMPARE(world.reported_state(), State::READY);
    world.stop();
  }

  void a_word_for_no_device_is_named() {
    RuledWorld world(io_);
    world.chosen = {{"compute.devices", std::vector<std::string>{"fake", "cuda:7"}}};
    world.start();
    const auto notice = [](rpc::Snapshot::Reader snapshot) -> std::string {
      for (const auto one : snapshot.getNotices()) {
        if (std::string("device.word_unknown") == one.getCode().cStr()) {
          return english(read_message(one));
        }
      }
      return "";
    };
    world.wait_for_agent([&](rpc::Snapshot::Reader s) { return !notice(s).empty(); });
    world.wait_for_agent([&](rpc::Snapshot::Reader s) { return has(notice(s), "'cuda:7'"); });
    QVERIFY(
        world.agent->change_settings({{"compute.devices", std::vector<std::string>{"fake"}}}).ok());
    world.wait_for_agent([&](rpc::Snapshot::Reader s) { return notice(s).empty(); });
    world.stop();
  }

  void settings_of_workers_act_without_a_restart_of_the_client() {
    RuledWorld world(io_);
    world.start();
    world.wait_ready();
    uint32_t before = 0;
    world.wait_for_agent([&](rpc::Snapshot::Reader snapshot) {
      before = snapshot.getDevices()[0].getWorkerPid();
      return before != 0;
    });
    const auto pid = [&world] {
      capnp::MallocMessageBuilder message;
      auto snapshot = message.initRoot<rpc::Snapshot>();
      world.agent->write_snapshot(snapshot);
      return snapshot.getDevices()[0].getWorkerPid();
    };
    // Another rule is nothing to a worker: that is decided in the same turn.
    QVERIFY(world.agent->change_settings({{"rules.metered", true}}).ok());
    QCOMPARE(pid(), before);
    QCOMPARE(world.reported_state(), State::READY);
    QVERIFY(world.agent->change_settings({{"compute.threads", int64_t{3}}}).ok());
    world.wait_for_agent([&](rpc::Snapshot::Reader snapshot) {
      const uint32_t now = snapshot.getDevices()[0].getWorkerPid();
      return now != 0 && now != before;
    });
    world.wait_ready();
    std::ifstream file("/proc/" + std::to_string(pid()) + "/cmdline");
    std::string argv((std::istreambuf_iterator<char>(file)), {});
    std::ranges::replace(argv, '\0', ' ');
    QVERIFY2(has(argv, "--threads 3"), argv.c_str());
    world.stop();
  }

  void a_device_that_nobody_measured_is_measured_once() {
    RuledWorld world(io_, "once");
    world.sensors.now.idle = Millis{0};
    world.start();
    world.wait_state(State::PAUSED);
    const Measurement measured = world.agent->measure("fake").promise().wait(io_.waitScope);
    QCOMPARE(measured.benchmark.decode_rows_per_second, 42.0);
    world.stop();
  }

  void our_own_load_does_not_end_our_work() {
    RuledWorld world(io_, "gpu");
    world.start();
    world.wait_ready();
    world.stop();
    world.mode = "endless_gpu";
    world.coordinator.reports.clear();
    GpuReading gpu;
    gpu.uuid = "00ab";
    gpu.load = 0;
    world.sensors.now.gpus = {gpu};
    world.start();
    world.wait_ready();
    {
      kj::Promise<Measurement> measuring =
          world.agent->measure("vulkan:00-ab").promise().eagerlyEvaluate(nullptr);
      QVERIFY(!measuring.poll(io_.waitScope));
      world.clock.advance(Millis{500});
      world.sense([](Readings& now) { now.gpus->front().load = 1; });
      world.agent->judge();
      QCOMPARE(world.overall_code(), std::string("working.idle"));
    }
    // Others' does, once ours is over.
    world.clock.advance(Millis{6'000});
    world.agent->judge();
    world.wait_overall("rule.gpu_load");
    world.stop();
  }

  void only_a_full_disk_pauses_it_until_there_is_room() {
    {
      RuledWorld world(io_);
      world.records_folder = world.dir / "missing";
      world.start();
      world.wait_ready();
      QVERIFY(!world.records->problem().empty());
      world.stop();
    }
    RuledWorld world(io_);
    world.records_vfs = test::faulty_vfs();
    test::fail_writes_after(0);
    world.start();
    world.wait_state(State::PAUSED);
    world.wait_overall("attention.disk_full");
    test::fail_writes_after(-1);
    world.records->flush();
    world.agent->judge();
    world.wait_ready();
    world.stop();
  }

  void what_was_seen_before_is_waited_for() {
    RuledWorld world(io_);
    world.start();
    world.wait_ready();
    world.stop();
    // A card that was here yesterday, and whose driver is late today.
    QVERIFY(world.state
                ->change([&](ClientMemory& memory) {
                  DeviceFacts card{"vulkan:ab", "vulkan:0", "vulkan", "a card"};
                  memory.devices["vulkan:ab"] = {card, world.clock.now_wall()};
                })
                .ok());
    world.start();
    world.wait_overall("device.missing");
    world.wait_for_agent(
        [](rpc::Snapshot::Reader snapshot) { return snapshot.getDevices().size() == 2; });
    // The CPU is not lent in its place.
    world.wait_for_agent([](rpc::Snapshot::Reader snapshot) {
      for (const auto device : snapshot.getDevices()) {
        if (device.getLent() !=
            (std::string("vulkan:ab") == device.getReport().getInfo().getId().cStr()))
          return false;
      }
      return true;
    });
    world.stop();
  }
};

QTEST_GUILESS_MAIN(AgentRulesTest)
#include "agent_rules_test.moc"
