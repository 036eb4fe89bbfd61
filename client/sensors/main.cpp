// shoal-sensors: tells shoal-client, line by line, what this computer and its owner do. A process
// of its own, because buses and drivers hang.
//
// Each answer of a sensor is one line of JSON on stdout; each wish of the client one on stdin. It
// ends when stdin does.

#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>

#include "base/cli.h"
#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "client/sensors/sensor_threads.h"

namespace {

using namespace shoal;
using namespace shoal::client;

constexpr size_t kLineBytesMax = 1 << 20;
constexpr size_t kExclusiveMax = 1'000;
// All sensors wake on the same whole seconds. What they say then goes in one piece, so that the
// client wakes once.
constexpr int kGatherMs = 15;

SensorConfiguration read_configuration(const nlohmann::json& json) {
  SensorConfiguration configuration;
  configuration.exclusive = json.value("exclusive", std::vector<std::string>{});
  if (configuration.exclusive.size() > kExclusiveMax) configuration.exclusive.resize(kExclusiveMax);
  configuration.idle_source = json.value("idle_source", "auto");
  configuration.idle_threshold = Millis{json.value("idle_threshold_ms", int64_t{0})};
  configuration.cache_folder = json.value("cache_folder", "");
  return configuration;
}

void act_on(SensorThreads& threads, const std::string& line) {
  try {
    const nlohmann::json wish = nlohmann::json::parse(line);
    if (wish.contains("configure")) threads.configure(read_configuration(wish["configure"]));
    if (wish.value("released", false)) threads.released();
    if (wish.contains("test")) {
      const std::string name = wish["test"];
      if (!threads.test(name, wish.value("id", int64_t{0}))) {
        log_warning("sensors", "no_such_sensor", {{"name", name}});
      }
    }
  } catch (const nlohmann::json::exception& error) {
    log_warning("sensors", "wish_not_understood", {{"cause", error.what()}});
  }
}

// False: it has ended.
bool read_wishes(SensorThreads& threads, std::string& pending) {
  char piece[4'096];
  const ssize_t got = read(STDIN_FILENO, piece, sizeof piece);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  pending.append(piece, static_cast<size_t>(got));
  size_t end = 0;
  while ((end = pending.find('\n')) != std::string::npos) {
    act_on(threads, pending.substr(0, end));
    pending.erase(0, end + 1);
  }
  return pending.size() <= kLineBytesMax;
}

bool write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = write(STDOUT_FILENO, text.data(), text.size());
    if (wrote < 0 && errno == EAGAIN) {
      pollfd ready = {STDOUT_FILENO, POLLOUT, 0};
      (void)poll(&ready, 1, -1);
      continue;
    }
    if (wrote < 0 && errno != EINTR) return false;
    if (wrote > 0) text.remove_prefix(static_cast<size_t>(wrote));
  }
  return true;
}

// Until the client is gone.
void serve(SensorThreads& threads) {
  std::string pending;
  while (true) {
    if (!write_all(threads.take_lines())) return;
    pollfd fds[2] = {{STDIN_FILENO, POLLIN, 0}, {threads.wake_fd(), POLLIN, 0}};
    (void)poll(fds, 2, static_cast<int>(threads.look_again().count));
    if (fds[0].revents != 0 && !read_wishes(threads, pending)) return;
    if (fds[1].revents != 0) (void)poll(fds, 1, kGatherMs);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CommandLine command_line("shoal-sensors",
                           "Tells shoal-client what this computer and its owner do. Started by it; "
                           "started by hand it shows the same, one JSON object a line.");
  SystemRoots roots;
  int64_t own_root = getppid();
  CLI::App& app = command_line.app();
  app.add_option("--proc", roots.proc, "Where to find what /proc shows");
  app.add_option("--sys", roots.sys, "Where to find what /sys shows");
  app.add_option("--dev", roots.dev, "Where to find what /dev shows");
  app.add_option("--x11-sockets", roots.x11_sockets, "Where to find X servers' sockets");
  app.add_option("--own-root", own_root,
                 "The process whose load, with that of its children, does not count as others'");
  command_line.set_body([&]() -> Result<void> {
    ignore_broken_pipes();
    static const SystemClock clock;
    // Never destroyed: see sensor_threads.h.
    alignas(SensorThreads) static std::byte place[sizeof(SensorThreads)];
    SensorThreads& threads = *std::construct_at(reinterpret_cast<SensorThreads*>(place), clock);
    threads.start(make_idle_sensor(roots));
    threads.start(make_inhibitors_sensor());
    threads.start(make_power_sensor(roots));
    threads.start(make_sleep_sensor());
    threads.start(make_load_sensor(roots, own_root));
    threads.start(make_memory_sensor(roots));
    threads.start(make_disk_sensor());
    threads.start(make_programs_sensor(roots));
    threads.start(make_gpu_sensor(roots));
    threads.start(make_cpu_sensor(roots));
    threads.start(make_network_sensor(roots));
    serve(threads);
    // Without waiting for any thread.
    std::fflush(nullptr);
    _exit(0);
  });
  return command_line.run(argc, argv);
}
