#include "client/sensors/sensor_threads.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/text.h"
#include "client/whole_seconds.h"

namespace shoal::client {
namespace {

constexpr Millis kHangRepeat{2'000};  // How often a hang is reported anew.
constexpr Millis kLookMost{10'000};   // How long nobody looks for sensors that hang.
constexpr size_t kTextBytesMax = 1'000;

OwnedFd make_event() {
  OwnedFd fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  SHOAL_CHECK(fd.get() >= 0);
  return fd;
}

void ring(const OwnedFd& event) { (void)eventfd_write(event.get(), 1); }
void silence(const OwnedFd& event) {
  eventfd_t count = 0;
  (void)eventfd_read(event.get(), &count);
}

std::string clean(std::string_view text) { return printable(cut_utf8(text, kTextBytesMax)); }

nlohmann::json backends_json(const std::vector<SensorBackend>& backends) {
  nlohmann::json list = nlohmann::json::array();
  for (const SensorBackend& backend : backends) {
    nlohmann::json entry = {{"name", backend.name}, {"usable", backend.usable}};
    if (!backend.problem.empty()) entry["problem"] = clean(backend.problem);
    if (backend.idle) entry["idle_ms"] = backend.idle->count;
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

struct SensorThreads::Run {
  std::unique_ptr<Sensor> sensor;  // The sensor's thread alone touches it, but for its name.
  OwnedFd wake = make_event();
  std::thread thread;

  // All below is guarded by mutex_.
  Millis due{0};     // When it is asked next, if nothing wakes it before.
  std::string line;  // Not taken yet. Empty: none.
  std::optional<Millis> asked_at;
  std::string asking;  // Whom.
  Millis hang_told{0};
  std::vector<int64_t> tests;          // Wanted by the client.
  std::vector<int64_t> tests_running;  // Those that the reading under way will answer.
  bool released = false;
  nlohmann::json backends;  // As told last.
};

SensorThreads::SensorThreads(const Clock& clock)
    : clock_(clock),
      wake_(make_event()),
      configuration_(std::make_shared<const SensorConfiguration>()) {}

void SensorThreads::start(std::unique_ptr<Sensor> sensor) {
  runs_.push_back(std::make_unique<Run>());
  Run& run = *runs_.back();
  run.sensor = std::move(sensor);
  run.thread = std::thread([this, &run] { this->run(run); });
}

void SensorThreads::configure(SensorConfiguration configuration) {
  {
    const std::lock_guard lock(mutex_);
    configuration_ = std::make_shared<const SensorConfiguration>(std::move(configuration));
  }
  for (const auto& run : runs_) ring(run->wake);
}

void SensorThreads::released() {
  for (const auto& run : runs_) {
    if (run->sensor->name() != "sleep") continue;
    {
      const std::lock_guard lock(mutex_);
      run->released = true;
    }
    ring(run->wake);
  }
}

bool SensorThreads::test(std::string_view name, int64_t id) {
  constexpr size_t kWaitingMax = 64;
  for (const auto& run : runs_) {
    if (run->sensor->name() != name) continue;
    {
      const std::lock_guard lock(mutex_);
      if (run->tests.size() < kWaitingMax) run->tests.push_back(id);
    }
    ring(run->wake);
    return true;
  }
  return false;
}

// REQUIRES: mutex_ is held.
void SensorThreads::put_line(Run& run, const SensorAnswer& answer) {
  nlohmann::json line = answer.values;
  line["sensor"] = run.sensor->name();
  line["known"] = answer.known;
  line["every_ms"] = answer.next.count;
  if (!answer.backend.empty()) line["backend"] = answer.backend;
  if (!answer.problem.empty()) line["problem"] = clean(answer.problem);
  if (answer.backends) {
    nlohmann::json backends = backends_json(*answer.backends);
    // They hardly ever change, and weigh more than all the rest.
    if (backends != run.backends || !run.tests_running.empty()) line["backends"] = backends;
    run.backends = std::move(backends);
  }
  if (!run.tests_running.empty()) line["tests"] = run.tests_running;
  run.tests_running.clear();
  // What was not taken yet may have carried more than this one does; it is not to be lost.
  std::string text =
      line.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
  text += '\n';
  const bool carries = run.line.find("\"tests\"") != std::string::npos ||
                       run.line.find("\"backends\"") != std::string::npos;
  constexpr size_t kPendingBytesMax = 1 << 18;
  if (carries && run.line.size() < kPendingBytesMax) {
    run.line += text;
  } else {
    run.line = std::move(text);
  }
  ring(wake_);
}

void SensorThreads::run(Run& run) {
  const std::function<void(std::string_view)> about_to_ask = [this, &run](std::string_view whom) {
    const std::lock_guard lock(mutex_);
    run.asking = whom;
  };
  Millis rest{2'000};
  while (true) {
    std::shared_ptr<const SensorConfiguration> configuration;
    bool thorough = false;
    bool released = false;
    const Millis now = clock_.now_monotonic();
    {
      const std::lock_guard lock(mutex_);
      configuration = configuration_;
      run.tests_running.insert(run.tests_running.end(), run.tests.begin(), run.tests.end());
      run.tests.clear();
      thorough = !run.tests_running.empty();
      released = std::exchange(run.released, false);
      run.asked_at = now;
      run.asking.clear();
      run.hang_told = Millis{0};
    }
    // A tenth is left for what follows the last wait.
    const Millis deadline = now + Millis{kAnswerMax.count * 9 / 10};
    const std::optional<SensorAnswer> answer =
        run.sensor->read({*configuration, clock_, deadline, thorough, released, about_to_ask});
    if (answer) rest = answer->next;
    const Millis due = now + until_whole(now, rest);
    const SensorWake wake = run.sensor->wake();
    {
      const std::lock_guard lock(mutex_);
      run.asked_at.reset();
      run.due = wake.within ? std::min(due, now + *wake.within) : due;
      if (answer) put_line(run, *answer);
    }
    const int64_t left = std::max<int64_t>(0, due.count - clock_.now_monotonic().count);
    const int64_t wait = wake.within ? std::min(left, wake.within->count) : left;
    pollfd fds[2] = {{run.wake.get(), POLLIN, 0}, {wake.fd, wake.events, 0}};
    (void)poll(fds, 2, static_cast<int>(std::min<int64_t>(wait, 3'600'000)));
    silence(run.wake);
  }
}

std::string SensorThreads::take_lines() {
  silence(wake_);
  std::string lines;
  const std::lock_guard lock(mutex_);
  const Millis now = clock_.now_monotonic();
  for (const auto& run : runs_) {
    if (run->asked_at && now - *run->asked_at >= kAnswerMax &&
        (run->hang_told.count == 0 || now - run->hang_told >= kHangRepeat)) {
      run->hang_told = now;
      run->tests_running.insert(run->tests_running.end(), run->tests.begin(), run->tests.end());
      run->tests.clear();
      const int64_t seconds = (now - *run->asked_at).count / 1'000;
      put_line(*run,
               SensorAnswer::unknown((run->asking.empty() ? "it" : run->asking) +
                                         " has not answered for " + std::to_string(seconds) + " s",
                                     kHangRepeat));
    }
    lines += std::exchange(run->line, {});
  }
  return lines;
}

Millis SensorThreads::look_again() {
  // Until the one that has waited longest would hang, or the next that is asked. One that something
  // else wakes meanwhile is told at most so much late.
  Millis wait = kLookMost;
  const std::lock_guard lock(mutex_);
  const Millis now = clock_.now_monotonic();
  for (const auto& run : runs_) {
    const Millis from = run->asked_at ? std::max(*run->asked_at, run->hang_told) : run->due;
    wait = std::min(wait, std::max(from + kAnswerMax - now, Millis{50}));
  }
  return wait;
}

}  // namespace shoal::client
