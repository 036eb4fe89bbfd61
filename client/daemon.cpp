// The command `run`: builds the parts of the client and introduces them to each other.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "client/agent_server.h"
#include "client/identity.h"
#include "client/remote_door.h"
#include "client/rules/validate_rules.h"
#include "client/workplace.h"

namespace shoal::client {
namespace {

Mode start_mode(const CommandOptions& options) {
  return options.mode == "always"   ? Mode::kAlways
         : options.mode == "paused" ? Mode::kPaused
                                    : Mode::kByRules;
}

// What of the owner's names a bug report must not hold.
std::vector<std::string> private_words() {
  std::vector<std::string> words;
  for (const char* const name : {"HOME", "USER", "LOGNAME"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && std::string_view(value).size() > 1) words.emplace_back(value);
  }
  return words;
}

// The socket's folder is ours alone, also when somebody made it before with another mode.
Result<void> make_private_folder(const std::filesystem::path& path) {
  SHOAL_TRY(make_folder(path));
  std::error_code code;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all, code);
  if (!code) return {};
  return Error{ErrorCode::kDenied,
               "the folder " + path.string() + " cannot be made private: " + code.message()};
}

// The log goes to stderr as before, and to the ring.
class LogToRing {
 public:
  explicit LogToRing(LogRing& ring) {
    set_log_sink([&ring](LogLevel level, std::string_view line) {
      ring.add(level, line);
      const std::string text = std::string(line) + "\n";
      [[maybe_unused]] const size_t written = std::fwrite(text.data(), 1, text.size(), stderr);
    });
  }
  ~LogToRing() { set_log_sink(nullptr); }
  LogToRing(const LogToRing&) = delete;
  LogToRing& operator=(const LogToRing&) = delete;
};

class ProcessSensors final : public SensorSource, private SensorProcess::Needs {
 public:
  ProcessSensors(Loop loop, const Clock& clock, Random& random, std::string program) {
    SensorOptions options;
    options.argv = {std::move(program)};
    process_ = std::make_unique<SensorProcess>(
        loop, clock, random, static_cast<SensorProcess::Needs&>(*this), std::move(options));
  }

  const Readings& readings() const override { return process_->readings(); }
  const std::vector<SensorStatus>& sensors() const override { return process_->sensors(); }
  bool idle_supported() const override { return process_->idle_supported(); }
  kj::Promise<SensorStatus> test(std::string name) override {
    return process_->test(std::move(name));
  }
  void configure(SensorWishes wishes) override { process_->configure(std::move(wishes)); }
  void release_sleep() override { process_->release_sleep(); }
  void on_change(std::function<void()> changed) override { changed_ = std::move(changed); }

 private:
  void tell() {
    if (changed_) changed_();
  }
  void sensors_changed() override { tell(); }
  void about_to_sleep() override { tell(); }
  void woke() override { tell(); }

  std::function<void()> changed_;
  std::unique_ptr<SensorProcess> process_;
};

Result<void> serve(Loop loop, const CommandOptions& options, const Workplace& place) {
  const SystemClock clock;
  LogRing ring(clock, place.folders.state);
  const LogToRing log_to_ring(ring);
  Random random(seed_from_system());
  SHOAL_TRY_ASSIGN(state, ClientState::load(place.state()));
  SHOAL_TRY_ASSIGN(identity, load_or_make_identity(place.identity(), !state.attachments().empty()));

  LiveSettings settings(place.settings, place.settings_file(), validate_rules);
  if (!options.devices.empty()) {
    SHOAL_TRY(settings.override_with({"compute.devices", options.devices}));
  }
  if (options.threads) {
    SHOAL_TRY(settings.override_with({"compute.threads", int64_t{*options.threads}}));
  }
  const CacheLimits limits{Bytes{place.settings.integer("cache.bytes_max")},
                           Bytes{place.settings.integer("cache.free_bytes_min")}};
  SHOAL_TRY_ASSIGN(cache, ModelCache::open(place.cache(), limits, clock));
  SHOAL_TRY(make_private_folder(place.folders.runtime));
  SHOAL_TRY_ASSIGN(program, place.worker_program());
  Records records(place.folders.state, clock);
  SHOAL_TRY_ASSIGN(sensors_program, place.sensors_program());
  ProcessSensors sensors(loop, clock, random, std::move(sensors_program));

  AgentOptions agent_options;
  agent_options.worker_program = std::move(program);
  agent_options.start_mode = start_mode(options);
  agent_options.state_folder = place.folders.state.string();
  agent_options.cache_folder = place.cache();
  agent_options.units_folder = place.folders.state / "units";
  agent_options.private_words = private_words();
  Agent agent({loop, clock, random, identity, state, settings, *cache, sensors, records, ring},
              std::move(agent_options));
  RemoteDoor remote(agent, place.folders.state / "remote");

  kj::Own<rpc::Listener> door =
      rpc::listen_unix(loop.io.provider->getNetwork(), loop.timer, place.agent_socket(),
                       [&](rpc::Peer) -> capnp::Capability::Client {
                         return kj::heap<AgentServer>(agent, remote);
                       })
          .wait(loop.io.waitScope);
  if (options.json) {
    std::cout << nlohmann::ordered_json{{"event", "started"},
                                        {"pid", own_pid()},
                                        {"agent", place.agent_socket()}}
                     .dump()
              << std::endl;
  } else {
    std::cout << "shoal-client runs (pid " << own_pid() << ")" << std::endl;
    if (state.attachments().empty()) {
      std::cout << "It is not attached yet: shoal-client attach URL" << std::endl;
    }
  }

  kj::UnixEventPort& port = loop.io.unixEventPort;
  port.onSignal(SIGTERM)
      .ignoreResult()
      .exclusiveJoin(port.onSignal(SIGINT).ignoreResult())
      .exclusiveJoin(agent.stop_requested())
      .wait(loop.io.waitScope);
  log_info("client", "stops");
  agent.shut_down().promise().wait(loop.io.waitScope);
  door = nullptr;
  std::error_code code;
  std::filesystem::remove(place.agent_socket(), code);
  std::filesystem::remove(place.pid_file(), code);
  return {};
}

}  // namespace

Result<void> run_client(const CommandOptions& options) {
  SHOAL_TRY_ASSIGN(place, open_workplace(options));
  const Result<FileLock> lock = FileLock::acquire(place.lock());
  if (is_taken(lock)) {
    const std::string pid = running_pid(place);
    return Error{ErrorCode::kExists, "a client already runs on " + place.folders.state.string() +
                                         (pid.empty() ? "" : " (pid " + pid + ")")};
  }
  if (!lock.ok()) return lock.error();
  // Only messages name the pid: a full disk is no reason not to run.
  const Result<void> told =
      write_file_durably(place.pid_file(), as_bytes(std::to_string(own_pid())));
  if (!told.ok()) log_warning("client", "pid_not_written", {{"cause", told.error()}});
  kj::UnixEventPort::captureSignal(SIGTERM);
  kj::UnixEventPort::captureSignal(SIGINT);
  return with_loop<void>([&](Loop loop) { return serve(loop, options, place); });
}

}  // namespace shoal::client
