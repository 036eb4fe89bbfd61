#pragma once
// The worker process: worker.capnp over one socket. A KJ loop owns the RPC; one compute thread owns
// the device and its stages; jobs and results cross in a queue. The only process that sees plain
// weights.

#include <string>

#include "base/host.h"
#include "base/result.h"
#include "base/units.h"

namespace shoal::worker {

struct WorkerOptions {
  std::string device = "cpu";  // An id or a selector.
  int threads = 0;             // For planes that compute on the CPU. 0: all cores.
  int rpc_fd = kChildChannelFd;
  Bytes memory_max{0};  // 0: no limit.
};

// Serves until the peer closes its end, then ends the process: a step that is still computed is not
// waited for.
[[noreturn]] void run_worker(const WorkerOptions& options);

// The devices here, as a JSON array.
std::string list_devices_json();

}  // namespace shoal::worker
