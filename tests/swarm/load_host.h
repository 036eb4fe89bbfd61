#pragma once
// A real coordinator process, and hosts that keep it busy over real TLS without computing anything:
// for benchmarks of the wire, and for tests that kill what they speak with.

#include <kj/async-io.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/host.h"
#include "base/secrets.h"
#include "client/coordinator_link.h"
#include "schema/admin.capnp.h"
#include "schema/task.h"
#include "schema/transport.h"
#include "schema/work.capnp.h"

namespace shoal::test {

// shoal-coordinator on a data folder, as built. It dies with this object. Throws what goes wrong.
class CoordinatorProcess {
 public:
  // `settings` are lines of TOML for coordinator.toml; the folder is made when it is not there.
  CoordinatorProcess(kj::AsyncIoContext& io, std::filesystem::path data, std::string settings = "");

  void start(const std::string& listen = "127.0.0.1:0");
  // The same without waiting until it listens.
  void spawn(const std::string& listen = "127.0.0.1:0");
  // With SIGKILL, now; returns when it is gone.
  void kill();
  // As an administrator stops it.
  void stop();

  rpc::Admin::Client admin();  // Over its socket.
  rpc::AttachUrl url() const;  // With an invite for everybody.
  const std::filesystem::path& data() const { return data_; }
  int64_t pid() const { return child_->pid(); }
  // Of /proc/PID/status, such as "VmRSS:"; 0 when it is not there.
  Bytes memory(const std::string& field = "VmRSS:") const;
  double cpu_seconds() const;  // That it has used.

 private:
  kj::AsyncIoContext& io_;
  std::filesystem::path data_;
  std::string pin_, invite_;
  uint16_t port_ = 0;
  std::unique_ptr<ChildProcess> child_;  // Null while it does not run.
  kj::Own<rpc::Connection> admin_;       // Likewise.
  kj::Own<kj::AsyncIoStream> output_;    // Likewise: what it says.
};

class LoadHost {
 public:
  LoadHost(kj::AsyncIoContext& io, std::string name) : io_(io), name_(std::move(name)) {}

  // Dials, logs in and, with `reports`, says that it has one ready device. May be called again
  // after a loss.
  rpc::Task<void> connect(rpc::AttachUrl url, bool reports = true);
  void drop();
  bool connected() const { return line_ != nullptr; }
  uint64_t id() const { return id_; }

  struct Got {
    uint64_t unit = 0, lease = 0;
    std::vector<uint32_t> tokens_max;  // By item.
  };
  rpc::Task<std::vector<Got>> lease(uint32_t count_max);
  // Every token is the same. Whether it was taken.
  rpc::Task<bool> submit(Got got);
  rpc::Task<void> ping();

 private:
  kj::AsyncIoContext& io_;
  std::string name_;
  SigningKey identity_ = SigningKey::generate();
  BoxKeyPair worker_ = BoxKeyPair::generate();
  uint64_t id_ = 0;
  std::unique_ptr<client::LoggedIn> line_;  // Null while it is not connected.
  kj::Maybe<rpc::UnitDesk::Client> desk_;   // Likewise.
};

}  // namespace shoal::test
