#pragma once
// A client that is not one: agent.capnp on a real Unix socket, with a story to tell instead of
// devices. It can be full of work, empty, busy, hung or killed. Changes that are asked of it show
// in its snapshot, and are kept as words for the test.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "schema/agent.capnp.h"

namespace shoal {

class FakeAgent {
 public:
  enum class Story {
    kEmpty,  // Just installed: no coordinator, devices found and none measured.
    kFull,   // Weeks of work: two coordinators, three devices, every list with rows.
  };

  // Serves at `socket` until it is killed. The constructor returns once it listens.
  FakeAgent(std::string socket, Story story);
  ~FakeAgent();

  // As after SIGSTOP: connections stay, nothing is answered, until wake().
  void hang();
  void wake();
  // As after SIGKILL: connections break, the socket's file stays.
  void kill();
  // A new process at the same socket, as after a restart. REQUIRES: killed.
  void start();
  // Sends a new, large snapshot as fast as they are taken.
  void set_busy(bool busy);

  // Edits the snapshot and sends it. Returns once it is done.
  void change(std::function<void(rpc::Snapshot::Builder)> edit);
  // From now on this method, such as "attach", fails with this sentence; empty: works again.
  void fail(const std::string& method, const std::string& why);

  // So many lines stand in the log now, each with its number as its id.
  void set_log_lines(uint64_t count);

  // What was asked so far, oldest first: "setMode gpu paused 900000". Snapshots and logs are not
  // counted.
  std::vector<std::string> calls() const;

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

}  // namespace shoal
