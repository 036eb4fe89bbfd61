// Goal: whatever a worker does, its client knows it, says it, and starts another after a growing
// wait. Method: real processes of fake_worker; the test waits for reported changes, never for time.

#include <kj/async-io.h>

#include <QTest>
#include <csignal>
#include <functional>

#include "client/worker_process.h"

using namespace shoal;
using namespace shoal::client;

namespace {

class Watcher final : public WorkerProcess::Needs {
 public:
  explicit Watcher(kj::AsyncIoContext& io) : io_(io) {}

  void worker_changed(WorkerProcess& worker) override {
    seen_.push_back({worker.state(), worker.reason()});
    if (fulfiller_.get() != nullptr) fulfiller_->fulfill();
  }
  kj::Promise<void> prepare(WorkerProcess&, rpc::Worker::Client client,
                            DeviceFacts facts) override {
    prepared_.push_back(facts.id);
    return client.selfTestRequest().send().ignoreResult();
  }

  // Until `done` holds after some change. ctest's limit ends a wait for ever.
  void wait_until(const std::function<bool()>& done) {
    while (!done()) {
      auto pair = kj::newPromiseAndFulfiller<void>();
      fulfiller_ = kj::mv(pair.fulfiller);
      pair.promise.wait(io_.waitScope);
    }
  }

  struct Seen {
    WorkerProcess::State state;
    std::string reason;
  };
  std::vector<Seen> seen_;
  std::vector<std::string> prepared_;

 private:
  kj::AsyncIoContext& io_;
  kj::Own<kj::PromiseFulfiller<void>> fulfiller_;
};

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

class WorkerProcessTest : public QObject {
  Q_OBJECT

 public:
  ~WorkerProcessTest() noexcept override {}  // kj's own may throw, Qt's may not.

 private:
  using State = WorkerProcess::State;
  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  Loop loop_{io_, io_.provider->getTimer()};
  ManualClock clock_;
  Random random_{1};

  // A busy machine is no hanging worker: only tests of hanging ones are short of patience.
  WorkerOptions options(const char* mode, kj::Duration hang_max = 60 * kj::SECONDS) {
    WorkerOptions options;
    options.argv = {FAKE_WORKER, mode};
    options.ping_each = 10 * kj::MILLISECONDS;
    options.hang_max = hang_max;
    options.start_max = 10 * kj::SECONDS;
    options.back_off_first = Millis{10};
    options.back_off_most = Millis{20};
    return options;
  }
  std::unique_ptr<WorkerProcess> start(Watcher& watcher, WorkerOptions options) {
    return std::make_unique<WorkerProcess>(loop_, clock_, random_, watcher, std::move(options));
  }

 private Q_SLOTS:
  void initTestCase() { ignore_broken_pipes(); }

  void becomes_ready_and_stops_in_order() {
    Watcher watcher(io_);
    auto worker = start(watcher, options("good"));
    QVERIFY(worker->client() == nullptr);
    watcher.wait_until([&] { return worker->state() == State::kReady; });
    QCOMPARE(worker->facts().id, std::string("fake"));
    QCOMPARE(worker->public_key().size(), size_t(32));
    QCOMPARE(watcher.prepared_.size(), size_t(1));
    const int64_t pid = worker->pid();
    QVERIFY(pid > 0 && kill(static_cast<pid_t>(pid), 0) == 0);
    QVERIFY(worker->client() != nullptr);
    worker->stop().promise().wait(io_.waitScope);
    QCOMPARE(worker->pid(), int64_t(0));
    QVERIFY(kill(static_cast<pid_t>(pid), 0) != 0);  // Reaped, too.
  }

  void a_killed_one_is_followed_by_another_with_another_key() {
    Watcher watcher(io_);
    auto worker = start(watcher, options("good"));
    watcher.wait_until([&] { return worker->state() == State::kReady; });
    const ByteVector key = to_vector(worker->public_key());
    auto client = KJ_ASSERT_NONNULL(worker->client());
    const int64_t pid = worker->pid();
    kill(static_cast<pid_t>(pid), SIGKILL);
    watcher.wait_until([&] { return worker->restarts() == 1; });
    QVERIFY2(has(worker->reason(), "signal 9"), worker->reason().c_str());
    QVERIFY(worker->public_key().empty());
    watcher.wait_until([&] { return worker->state() == State::kReady; });
    QVERIFY(worker->pid() != pid);
    QVERIFY(to_vector(worker->public_key()) != key);
    // What was held of the dead one fails as a lost connection.
    const auto kind = client.pingRequest()
                          .send()
                          .ignoreResult()
                          .then([] { return kj::Exception::Type::FAILED; },
                                [](kj::Exception&& exception) { return exception.getType(); })
                          .wait(io_.waitScope);
    QVERIFY(kind == kj::Exception::Type::DISCONNECTED);
  }

  void one_that_does_not_stay_up_is_failed_and_still_retried() {
    Watcher watcher(io_);
    auto worker = start(watcher, options("exit"));
    watcher.wait_until([&] { return worker->restarts() == 7; });
    QVERIFY2(has(worker->reason(), "exit code 3"), worker->reason().c_str());
    QVERIFY(watcher.seen_[0].state == State::kStarting);  // Once is no failure yet.
    QVERIFY(watcher.seen_[6].state == State::kFailed);
    QVERIFY(watcher.prepared_.empty());
  }

  void one_that_hangs_is_ended() {
    for (const char* mode : {"mute", "deaf"}) {
      Watcher watcher(io_);
      auto worker = start(watcher, options(mode, 100 * kj::MILLISECONDS));
      watcher.wait_until([&] { return worker->restarts() == 1; });
      QVERIFY2(has(watcher.seen_.back().reason, "no sign of life"),
               watcher.seen_.back().reason.c_str());
    }
  }

  // Method: the time is the test's, and the process never answers.
  void a_hang_takes_as_long_as_the_setting_says() {
    for (const int hang_max : {2, 10, 60}) {
      kj::TimerImpl timer(kj::origin<kj::TimePoint>());
      Loop loop{io_, timer};
      Watcher watcher(io_);
      WorkerOptions patient = options("mute", hang_max * kj::SECONDS);
      patient.ping_each = std::min(5 * kj::SECONDS, patient.hang_max / 3);
      patient.start_max = 1'000 * kj::SECONDS;
      const auto worker =
          std::make_unique<WorkerProcess>(loop, clock_, random_, watcher, std::move(patient));
      io_.waitScope.poll();
      int64_t took_ms = 0;
      while (worker->restarts() == 0 && took_ms < 100'000) {
        took_ms += 50;
        clock_.advance(Millis{50});
        timer.advanceTo(timer.now() + 50 * kj::MILLISECONDS);
        io_.waitScope.poll();
      }
      QVERIFY2(took_ms <= hang_max * 1'000 + 100 && took_ms >= hang_max * 900,
               std::to_string(took_ms).c_str());
    }
  }

  void a_stopped_process_is_one_that_hangs() {
    Watcher watcher(io_);
    auto worker = start(watcher, options("good", 200 * kj::MILLISECONDS));
    watcher.wait_until([&] { return worker->state() == State::kReady; });
    const int64_t pid = worker->pid();
    kill(static_cast<pid_t>(pid), SIGSTOP);
    watcher.wait_until([&] { return worker->restarts() == 1; });
    QVERIFY(kill(static_cast<pid_t>(pid), 0) != 0);
    watcher.wait_until([&] { return worker->state() == State::kReady; });
  }

  void one_that_cannot_be_prepared_is_not_ready() {
    for (const char* mode : {"confused", "unmeasured"}) {
      Watcher watcher(io_);
      auto worker = start(watcher, options(mode));
      watcher.wait_until([&] { return worker->restarts() == 2; });
      for (const Watcher::Seen& seen : watcher.seen_) QVERIFY(seen.state != State::kReady);
    }
  }

  void a_program_that_is_not_there_is_named() {
    Watcher watcher(io_);
    WorkerOptions missing = options("good");
    missing.argv[0] = "/nonexistent/shoal-worker";
    auto worker = start(watcher, missing);
    watcher.wait_until([&] { return worker->restarts() == 1; });
    QVERIFY2(has(worker->reason(), "/nonexistent/shoal-worker"), worker->reason().c_str());
  }

  void a_long_life_starts_the_waits_anew() {
    Watcher watcher(io_);
    WorkerOptions patient = options("good");
    patient.stays_up = Millis{30'000};
    auto worker = start(watcher, patient);
    for (uint32_t i = 1; i <= 6; ++i) {  // Six deaths, but each after a long life.
      watcher.wait_until([&] { return worker->state() == State::kReady; });
      clock_.advance(Millis{30'000});
      kill(static_cast<pid_t>(worker->pid()), SIGKILL);
      watcher.wait_until([&] { return worker->restarts() == i; });
      QVERIFY(worker->state() == State::kStarting);
    }
  }
};

QTEST_GUILESS_MAIN(WorkerProcessTest)
#include "worker_process_test.moc"
