#pragma once
// Where a client lives: its folders, its settings, its lock, and the socket of the one that runs.
// What every command and the daemon begin with.

#include <kj/async-io.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/host.h"
#include "base/settings.h"
#include "client/client.h"
#include "client/worker_process.h"
#include "schema/agent.capnp.h"
#include "schema/transport.h"

namespace shoal::client {

struct Workplace {
  UserFolders folders;
  Settings settings;

  std::filesystem::path settings_file() const { return folders.config / "client.toml"; }
  std::filesystem::path lock() const { return folders.state / "client.lock"; }
  std::filesystem::path pid_file() const { return folders.state / "client.pid"; }
  std::filesystem::path identity() const { return folders.state / "identity"; }
  std::filesystem::path state() const { return folders.state / "client"; }
  std::string agent_socket() const { return (folders.runtime / "agent.sock").string(); }

  std::filesystem::path cache() const;
  std::vector<std::string> device_words(const CommandOptions& options) const;
  int threads(const CommandOptions& options) const;
  Result<std::string> worker_program() const;
  Result<std::string> sensors_program() const;

 private:
  Result<std::string> program(const char* key, const char* name) const;
};

Result<Workplace> open_workplace(const CommandOptions& options);

// The pid of the client that runs on this data folder, or an empty text when that is not known.
std::string running_pid(const Workplace& place);

inline bool is_taken(const Result<FileLock>& lock) {
  return !lock.ok() && lock.error().code == ErrorCode::kUnavailable;
}

// Everything that KJ does ends here: its exceptions become the world's errors.
template <class T, class Body>
Result<T> with_loop(Body body) {
  try {
    kj::AsyncIoContext io = kj::setupAsyncIo();
    const Loop loop{io, io.provider->getTimer()};
    return body(loop);
  } catch (const kj::Exception& exception) {
    return rpc::error_of(exception);
  }
}

// What a command asks of the client that runs already.
template <class Body>
Result<void> with_agent(const Workplace& place, Body body) {
  return with_loop<void>([&](Loop loop) -> Result<void> {
    kj::Own<rpc::Connection> connection =
        rpc::dial_unix(loop.io.provider->getNetwork(), loop.timer, place.agent_socket())
            .wait(loop.io.waitScope);
    return body(loop, connection->bootstrap().castAs<rpc::Agent>());
  });
}

}  // namespace shoal::client
