// Goal: what the sensors' program tells is known while it is fresh, and nothing is known that is
// old, senseless, or told by a program that is gone. Method: real processes of sensor_fake; the
// test waits for reported changes, never for time.

#include <kj/async-io.h>

#include <QTest>
#include <csignal>
#include <functional>

#include "client/sensor_process.h"

using namespace shoal;
using namespace shoal::client;

namespace {

class Watcher final : public SensorProcess::Needs {
 public:
  explicit Watcher(kj::AsyncIoContext& io) : io_(io) {}

  void sensors_changed() override {
    ++changes_;
    wake();
  }
  void about_to_sleep() override {
    events_.emplace_back("sleep");
    wake();
  }
  void woke() override {
    events_.emplace_back("woke");
    wake();
  }

  // Until `done` holds after some change. ctest's limit ends a wait for ever.
  void wait_until(const std::function<bool()>& done) {
    while (!done()) {
      auto pair = kj::newPromiseAndFulfiller<void>();
      fulfiller_ = kj::mv(pair.fulfiller);
      pair.promise.wait(io_.waitScope);
    }
  }

  int changes_ = 0;
  std::vector<std::string> events_;

 private:
  void wake() {
    if (fulfiller_.get() != nullptr) fulfiller_->fulfill();
  }

  kj::AsyncIoContext& io_;
  kj::Own<kj::PromiseFulfiller<void>> fulfiller_;
};

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

class SensorProcessTest : public QObject {
  Q_OBJECT

 public:
  ~SensorProcessTest() noexcept override {}  // kj's own may throw, Qt's may not.

 private:
  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  Loop loop_{io_, io_.provider->getTimer()};
  ManualClock clock_;
  Random random_{1};

  std::unique_ptr<SensorProcess> start(Watcher& watcher, const char* mode) {
    SensorOptions options;
    options.argv = {SENSOR_FAKE, mode};
    options.back_off_first = Millis{10};
    options.back_off_most = Millis{20};
    options.test_max = Millis{300};
    options.look_max = Millis{50};
    return std::make_unique<SensorProcess>(loop_, clock_, random_, watcher, std::move(options));
  }

 private Q_SLOTS:
  void initTestCase() { ignore_broken_pipes(); }

  void what_is_told_is_known() {
    Watcher watcher(io_);
    auto sensors = start(watcher, "good");
    QVERIFY(!sensors->readings().idle);
    QVERIFY(!sensors->find("idle")->known);
    QVERIFY(sensors->idle_supported());  // Nothing speaks against it yet.
    QVERIFY(sensors->find("mood") == nullptr);
    watcher.wait_until([&] { return sensors->readings().on_battery.has_value(); });
    QCOMPARE(sensors->readings().idle->count, int64_t(1'234));
    QCOMPARE(sensors->readings().idle_source, std::string("mutter"));
    QCOMPARE(*sensors->readings().on_battery, true);
    QCOMPARE(*sensors->readings().battery_percent, 71.5);
    QCOMPARE(*sensors->readings().power_profile, std::string("balanced"));
    QVERIFY(!sensors->readings().locked);
    QCOMPARE(english(sensors->find("idle")->value),
             std::string("Nobody touched this computer for 1 s."));
    QVERIFY(sensors->find("power")->known);
    QVERIFY(!sensors->find("gpu")->known);
  }

  // Lines without news wake nobody; that the owner's limit was crossed does.
  void what_says_nothing_new_is_not_told() {
    Watcher watcher(io_);
    auto sensors = start(watcher, "steady");
    sensors->configure({.exclusive_programs = {"blender"}, .idle_threshold = Millis{20'000}});
    watcher.wait_until([&] {
      const auto& programs = sensors->readings().programs;
      return programs && programs->size() == 1;
    });
    const auto tick = [&](Millis idle) {
      sensors->release_sleep();
      while (sensors->readings().idle != idle) io_.waitScope.poll();
    };
    tick(Millis{1'000});  // The first is news.
    while (!sensors->readings().on_battery) io_.waitScope.poll();
    const int before = watcher.changes_;
    for (int64_t second = 2; second < 20; ++second) tick(Millis{second * 1'000});
    QCOMPARE(watcher.changes_, before);
    tick(Millis{20'000});
    QCOMPARE(watcher.changes_, before + 1);
    for (int64_t second = 21; second < 30; ++second) tick(Millis{second * 1'000});
    QCOMPARE(watcher.changes_, before + 1);
    // A line in the same words as before keeps what it says from growing old all the same.
    const Millis at = sensors->find("power")->at;
    clock_.advance(Millis{4'000});
    tick(Millis{30'000});
    while (sensors->find("power")->at - at != Millis{4'000}) io_.waitScope.poll();
    QCOMPARE(watcher.changes_, before + 1);
  }

  void wishes_reach_it_and_each_that_follows_it() {
    Watcher watcher(io_);
    auto sensors = start(watcher, "good");
    sensors->configure({.exclusive_programs = {"blender"}});
    const auto told = [&] {
      const auto& programs = sensors->readings().programs;
      return programs && *programs == std::vector<std::string>{"blender"};
    };
    watcher.wait_until(told);
    kill(static_cast<pid_t>(sensors->pid()), SIGKILL);
    watcher.wait_until([&] { return sensors->restarts() == 1; });
    QVERIFY(!told());
    watcher.wait_until(told);
  }

  void one_that_is_gone_tells_nothing() {
    Watcher watcher(io_);
    auto sensors = start(watcher, "good");
    watcher.wait_until([&] { return sensors->readings().idle.has_value(); });
    kill(static_cast<pid_t>(sensors->pid()), SIGKILL);
    watcher.wait_until([&] { return sensors->restarts() == 1; });
    QVERIFY(!sensors->readings().idle);
    QVERIFY(sensors->readings().idle_source.empty());
    QVERIFY(!sensors->idle_supported());
    const SensorStatus& idle = *sensors->find("idle");
    QVERIFY(!idle.known && idle.backend.empty() && idle.value.empty());
    QVERIFY2(has(idle.problem, "signal 9"), idle.problem.c_str());
  }

  void one_that_cannot_run_is_tried_again() {
    Watcher watcher(io_);
    auto sensors = start(watcher, "exit");
    watcher.wait_until([&] { return sensors->restarts() == 3; });
    QVERIFY2(has(sensors->find("gpu")->problem, "exit code 3"),
             sensors->find("gpu")->problem.c_str());
    QVERIFY(!sensors->idle_supported());
  }

  void what_is_too_old_is_not_known() {
    Watcher watcher(io_);
    auto sensors = start(watcher, "good");
    watcher.wait_until([&] { return sensors->readings().on_battery.has_value(); });
    const Millis told = clock_.now_monotonic();
    clock_.advance(Millis{5'000});  // Idle comes each second: this is its limit. Power has 8.
    watcher.wait_until([&] { return !sensors->readings().idle; });
    QCOMPARE((sensors->find("idle")->at - told).count, int64_t(0));
    QVERIFY2(has(sensors->find("idle")->problem, "5 s"), sensors->find("idle")->problem.c_str());
    QVERIFY(sensors->readings().on_battery.has_value());
    clock_.advance(Millis{3'000});
    watcher.wait_until([&] { return !sensors->readings().on_battery; });
    QVERIFY(!sensors->find("power")->known);
  }

  void what_makes_no_sense_is_not_known() {
    Watcher watcher(io_);
    auto sensors = start(watcher, "hostile");
    watcher.wait_until([&] { return sensors->readings().online.has_value(); });
    const Readings& readings = sensors->readings();
    QVERIFY(!readings.idle && !readings.locked && !readings.battery_percent);
    QVERIFY(!readings.other_cpu_load && !readings.memory_available && !readings.inhibitors);
    QVERIFY(*readings.on_battery);  // The rest of a line stays.
    QCOMPARE(readings.gpus->size(), size_t(1));
    QCOMPARE(readings.gpus->front().name, std::string("a?[2Jb"));
    QVERIFY(!readings.metered);
    QCOMPARE(sensors->restarts(), 0u);
  }

  void one_that_never_ends_a_line_is_ended() {
    Watcher watcher(io_);
    auto sensors = start(watcher, "endless");
    watcher.wait_until([&] { return sensors->restarts() == 1; });
    QVERIFY(!sensors->readings().idle);
  }

  void sleep_is_told_once_and_let_go() {
    Watcher watcher(io_);
    auto sensors = start(watcher, "sleepy");
    watcher.wait_until([&] { return !watcher.events_.empty(); });
    QVERIFY(sensors->readings().sleeping);
    QCOMPARE(watcher.events_, std::vector<std::string>{"sleep"});
    sensors->release_sleep();
    watcher.wait_until([&] { return watcher.events_.size() == 2; });
    QVERIFY(!sensors->readings().sleeping);
    QCOMPARE(watcher.events_[1], std::string("woke"));
  }

  void nobody_sleeps_for_ever_because_the_program_is_gone() {
    Watcher watcher(io_);
    auto sensors = start(watcher, "sleepy");
    watcher.wait_until([&] { return sensors->readings().sleeping; });
    kill(static_cast<pid_t>(sensors->pid()), SIGKILL);
    watcher.wait_until([&] { return watcher.events_.size() == 2; });
    QCOMPARE(watcher.events_[1], std::string("woke"));
  }

  void a_test_asks_anew() {
    Watcher watcher(io_);
    auto sensors = start(watcher, "good");
    watcher.wait_until([&] { return sensors->readings().idle.has_value(); });
    const SensorStatus idle = sensors->test("idle").wait(io_.waitScope);
    QVERIFY(idle.known);
    QCOMPARE(sensors->readings().idle->count, int64_t(5'000));
    QCOMPARE(idle.backends.size(), size_t(2));
    QVERIFY(idle.backends[0].usable && !idle.backends[1].usable);
    QCOMPARE(english(idle.backends[0].value), std::string("Nobody touched this computer for 5 s."));
    QCOMPARE(idle.backends[1].problem, std::string("not running"));
    // One that does not answer is an answer as well.
    const SensorStatus disk = sensors->test("disk").wait(io_.waitScope);
    QVERIFY(!disk.known);
    QVERIFY2(has(disk.problem, "does not answer"), disk.problem.c_str());
    const bool refused =
        sensors->test("mood")
            .then([](SensorStatus&&) { return false; }, [](kj::Exception&&) { return true; })
            .wait(io_.waitScope);
    QVERIFY(refused);
  }

  void a_test_ends_with_the_program() {
    Watcher watcher(io_);
    auto sensors = start(watcher, "good");
    watcher.wait_until([&] { return sensors->readings().idle.has_value(); });
    auto answer = sensors->test("disk");
    kill(static_cast<pid_t>(sensors->pid()), SIGKILL);
    const SensorStatus disk = answer.wait(io_.waitScope);
    QVERIFY(!disk.known);
  }
};

QTEST_GUILESS_MAIN(SensorProcessTest)
#include "sensor_process_test.moc"
