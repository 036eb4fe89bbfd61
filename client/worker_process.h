#pragma once
// Keeps one worker process alive: starts it, proves and watches it, ends one that hangs, and starts
// it anew after a wait that grows with each failure. Knows nothing of stages.
//
// Belongs to the KJ loop's thread.

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/host.h"
#include "client/back_off.h"
#include "client/device_facts.h"
#include "client/loop.h"
#include "schema/task.h"
#include "schema/transport.h"
#include "schema/worker.capnp.h"

namespace shoal::client {

struct WorkerOptions {
  std::vector<std::string> argv;  // The program and what it is told; "--rpc-fd 3" is added.
  kj::Duration ping_each = 5 * kj::SECONDS;
  kj::Duration hang_max = 10 * kj::SECONDS;
  kj::Duration start_max =
      60 * kj::SECONDS;  // Until it has described itself: drivers are slow to open.
  Millis back_off_first{500};
  Millis back_off_most{5 * 60'000};
  Millis stays_up{30'000};  // One that lived so long starts the back-off anew.
};

class WorkerProcess {
 public:
  enum class State { kStarting, kReady, kFailed };  // kFailed: it does not stay up; still retried.

  class Needs {
   public:
    virtual ~Needs() noexcept(false) = default;
    virtual void worker_changed(WorkerProcess& worker) = 0;
    // Called when a new worker has described itself; it is ready when this resolves. A failure ends
    // it.
    virtual kj::Promise<void> prepare(WorkerProcess& worker, rpc::Worker::Client client,
                                      DeviceFacts facts) = 0;
  };

  // All of these outlive the object. Starts at once.
  WorkerProcess(Loop loop, const Clock& clock, Random& random, Needs& needs, WorkerOptions options);
  ~WorkerProcess();
  KJ_DISALLOW_COPY(WorkerProcess);

  State state() const { return state_; }
  const WorkerOptions& options() const { return options_; }
  const std::string& reason() const { return reason_; }  // Why it is not ready, for a person.
  int64_t pid() const { return child_ ? child_->pid() : 0; }
  uint32_t restarts() const { return restarts_; }
  ByteSpan public_key() const { return public_key_; }  // Empty unless ready.
  const DeviceFacts& facts() const { return facts_; }  // Of the last one that described itself.

  // Null unless ready. Calls on it fail as disconnected once that process is gone.
  kj::Maybe<rpc::Worker::Client> client();

  // Closes its pipe, gives it `gently` to end by itself, then ends it. Resolves when the process is
  // gone, and with it what it held of the device: true when it had to be ended. Nothing is started
  // after this.
  rpc::Task<bool> stop(kj::Duration gently = 1 * kj::SECONDS);

 private:
  rpc::Task<void> keep_alive();
  rpc::Task<std::string> live_once();  // Why it ended.
  rpc::Task<std::string> watch_pings(rpc::Worker::Client client);
  rpc::Task<bool> answers(rpc::Worker::Client client, kj::Duration limit);
  rpc::Task<std::string> become_ready(rpc::Worker::Client client);
  rpc::Task<std::string> child_ended();
  void set_state(State state, std::string reason);
  void drop_connection();

  Loop loop_;
  const Clock& clock_;
  Needs& needs_;
  WorkerOptions options_;
  BackOff back_off_;
  State state_ = State::kStarting;
  std::string reason_;
  uint32_t restarts_ = 0;
  ByteVector public_key_;
  DeviceFacts facts_;
  std::optional<ChildProcess> child_;
  kj::Own<kj::UnixEventPort::FdObserver> exit_observer_;
  kj::Own<rpc::Connection> connection_;
  kj::Maybe<rpc::Worker::Client> client_;
  kj::Promise<void> life_;  // Last: it uses all of the above.
};

// Starts the worker's program once to ask which devices there are. Throws as unavailable when it
// does not say, is ended, or takes too long: it may be asked again.
rpc::Task<std::vector<DeviceFacts>> list_devices(Loop loop, std::vector<std::string> argv);
inline rpc::Task<std::vector<DeviceFacts>> list_devices(Loop loop, std::string program) {
  return list_devices(loop, std::vector<std::string>{std::move(program)});
}

}  // namespace shoal::client
