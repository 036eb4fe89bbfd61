// The command `run`: builds the parts of the client and introduces them to each other.

#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "client/agent_server.h"
#include "client/identity.h"
#include "client/workplace.h"

namespace shoal::client {
namespace {

Result<void> serve(Loop loop, const CommandOptions& options, const Workplace& place) {
  SHOAL_TRY_ASSIGN(identity, load_or_make_identity(place.identity()));
  SHOAL_TRY_ASSIGN(state, ClientState::load(place.state()));
  const SystemClock clock;
  Random random(seed_from_system());
  const CacheLimits limits{Bytes{place.settings.integer("cache.bytes_max")},
                           Bytes{place.settings.integer("cache.free_bytes_min")}};
  SHOAL_TRY_ASSIGN(cache, ModelCache::open(place.cache(), limits, clock));
  SHOAL_TRY(make_folder(place.folders.runtime));
  SHOAL_TRY_ASSIGN(program, place.worker_program());
  const std::vector<DeviceFacts> all =
      list_devices(loop, program).promise().wait(loop.io.waitScope);
  SHOAL_TRY_ASSIGN(devices, choose_devices(all, place.device_words(options)));
  if (devices.empty())
    return Error{ErrorCode::kNotFound, "this machine has no device that can compute"};

  AgentOptions agent_options;
  agent_options.devices = std::move(devices);
  agent_options.urls = place.settings.list("coordinators");
  agent_options.worker_program = std::move(program);
  agent_options.threads = place.threads(options);
  agent_options.worker_memory_max = Bytes{place.settings.integer("worker.memory_bytes_max")};
  agent_options.worker_hang_max = Millis{place.settings.integer("worker.hang_ms_max")};
  std::string names;
  for (const DeviceFacts& device : agent_options.devices)
    names += (names.empty() ? "" : ", ") + device.selector;
  Agent agent(loop, clock, random, identity, state, *cache, std::move(agent_options));

  kj::Own<rpc::Listener> door =
      rpc::listen_unix(
          loop.io.provider->getNetwork(), loop.timer, place.agent_socket(),
          [&agent](rpc::Peer) -> capnp::Capability::Client { return kj::heap<AgentServer>(agent); })
          .wait(loop.io.waitScope);
  if (options.json) {
    std::cout << nlohmann::ordered_json{{"event", "started"},
                                        {"pid", own_pid()},
                                        {"agent", place.agent_socket()}}
                     .dump()
              << std::endl;
  } else {
    std::cout << "shoal-client runs (pid " << own_pid() << "), lending " << names << std::endl;
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
  SHOAL_TRY(write_file_durably(place.pid_file(), as_bytes(std::to_string(own_pid()))));
  kj::UnixEventPort::captureSignal(SIGTERM);
  kj::UnixEventPort::captureSignal(SIGINT);
  return with_loop<void>([&](Loop loop) { return serve(loop, options, place); });
}

}  // namespace shoal::client
