#include "compute/backends/cuda/shim_door.h"

#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compute/backends/cuda/kernel_table.h"

namespace shoal::compute::cuda {
namespace {

thread_local ShimOptions options;  // The door is made of C functions, which nothing can be handed.
thread_local ShimCounts counts;

}  // namespace

struct DoorSession {
  ShimOptions options;
  std::string why;
  int64_t used = 0, runs = 0;
  std::map<uint64_t, std::vector<FourWords>> memory;  // Aligned as kernels want it.
  std::vector<FourWords> scratch;
  std::vector<DoorCall> graphs[kDoorGraphs];
  uint64_t launches = 0;

  DoorStatus lost(std::string text) {
    why = std::move(text);
    return DoorStatus::kLost;
  }
};

namespace {

int32_t cards(char*, size_t) { return 1; }

int32_t describe(int32_t, DoorCard* result) {
  *result = DoorCard{};
  std::snprintf(result->name, sizeof result->name, "SIMT shim");
  result->uuid[15] = 1;
  result->memory_bytes = options.memory_bytes;
  result->major = 8;
  result->driver_version = result->runtime_version = 13000;
  return 0;
}

DoorSession* open(int32_t, char*, size_t) {
  auto session = std::make_unique<DoorSession>();
  session->options = options;
  session->scratch.resize(options.scratch_bytes / sizeof(FourWords) + 1);
  ++counts.open_sessions;
  return session.release();
}

void close(DoorSession* session) {
  std::unique_ptr<DoorSession> ended(session);
  --counts.open_sessions;
}

const char* why(const DoorSession* session) { return session->why.c_str(); }

DoorStatus memory(DoorSession* session, int64_t* free_bytes, int64_t* total_bytes) {
  *total_bytes = session->options.memory_bytes;
  *free_bytes = session->options.memory_bytes - session->used;
  return DoorStatus::kOk;
}

DoorStatus allocate(DoorSession* session, int64_t bytes, uint64_t* address) {
  if (session->used + bytes > session->options.memory_bytes) {
    session->why = "allocating: out of memory";
    return DoorStatus::kNoSpace;
  }
  std::vector<FourWords> words((static_cast<size_t>(bytes) + 15) / 16);
  *address = reinterpret_cast<uint64_t>(words.data());
  session->memory.emplace(*address, std::move(words));
  session->used += static_cast<int64_t>((bytes + 15) / 16 * 16);
  ++counts.allocations;
  return DoorStatus::kOk;
}

void release(DoorSession* session, uint64_t address) {
  const auto found = session->memory.find(address);
  session->used -= static_cast<int64_t>(found->second.size() * 16);
  session->memory.erase(found);
  --counts.allocations;
}

DoorStatus write(DoorSession*, uint64_t to, const void* from, int64_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, static_cast<size_t>(bytes));
  return DoorStatus::kOk;
}

DoorStatus read(DoorSession*, uint64_t from, void* to, int64_t bytes) {
  std::memcpy(to, reinterpret_cast<const void*>(from), static_cast<size_t>(bytes));
  return DoorStatus::kOk;
}

class ShimLauncher final : public Launcher {
 public:
  explicit ShimLauncher(uint64_t seed) : seed_(seed) {}

  void run(Kernel kernel, uint blocks_x, uint blocks_y, uint threads, const Call& call) override {
    if (!result_.ok()) return;
    result_ = simt::run_grid({blocks_x, blocks_y, 1}, threads, ++seed_,
                             [kernel, &call] { kernel(call); });
  }
  const Result<void>& result() const { return result_; }

 private:
  uint64_t seed_;
  Result<void> result_;
};

DoorStatus run(DoorSession* session, const DoorCall* calls, size_t count, DoorGraph graph,
               uint32_t slot, uint32_t* reported) {
  ++counts.runs;
  if (session->options.lost_after_runs >= 0 &&
      session->runs++ >= session->options.lost_after_runs) {
    return session->lost("running: unspecified launch failure (cudaErrorLaunchFailure)");
  }
  std::vector<DoorCall>& kept = session->graphs[slot % kDoorGraphs];
  if (graph == DoorGraph::kKeep) {
    kept.assign(calls, calls + count);
    ++counts.graphs_kept;
  }
  if (graph == DoorGraph::kAgain) {
    calls = kept.data();
    count = kept.size();
    ++counts.graphs_again;
  }
  uint32_t status = kAllFinite;
  for (size_t i = 0; i < count; ++i) {
    const KernelEntry* entry = kernel_entry(calls[i].kernel);
    if (entry == nullptr) return session->lost("there is no such kernel");
    ShimLauncher launcher(session->options.seed + 1000 * ++session->launches);
    entry->enqueue(launcher, make_call(calls[i], static_cast<uint32_t>(i), &status,
                                       reinterpret_cast<std::byte*>(session->scratch.data()),
                                       session->options.scratch_bytes));
    if (!launcher.result().ok()) {
      return session->lost(std::string(entry->op) + " " + entry->variant + ": " +
                           launcher.result().error().message);
    }
  }
  *reported = status;
  return DoorStatus::kOk;
}

const Door kDoor = {kDoorVersion, cards,    describe, find_kernel, open, close, why,
                    memory,       allocate, release,  write,       read, run};

}  // namespace

void set_shim_options(const ShimOptions& wanted) {
  options = wanted;
  counts = {};
}
ShimCounts shim_counts() { return counts; }
const Door& shim_door() { return kDoor; }

}  // namespace shoal::compute::cuda
