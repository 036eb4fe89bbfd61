#pragma once
// The door of the plug-in libshoal_cuda.so: C functions and plain data, so that program and plug-in
// share nothing else. The plug-in holds the kernels and speaks to CUDA (plugin.cu); the program
// decides (cuda_backend.cpp). The shim stands behind the same door (shim_door.h).

#include <cstddef>
#include <cstdint>

namespace shoal::compute::cuda {

constexpr uint32_t kDoorVersion = 1;
constexpr char kDoorSymbol[] = "shoal_cuda_door";
constexpr size_t kDoorBuffers = 6;
constexpr int32_t kNoKernel = -1;
constexpr uint32_t kAllFinite = 0xFFFFFFFF;
constexpr uint32_t kDoorGraphs = 4;

// What a call of the door came to; why() says more.
enum class DoorStatus : int32_t {
  kOk = 0,
  kNoSpace = 1,  // Nothing changed.
  kLost = 2,     // The card or its driver failed: the session is good for nothing but to be closed.
};

struct DoorCard {
  char name[256];
  uint8_t uuid[16];
  int64_t memory_bytes;
  int32_t major, minor;  // Compute capability.
  int32_t processors;
  int32_t driver_version, runtime_version;  // 13000 is 13.0.
  int64_t bytes_per_second;                 // Of its memory, by its clock and width; 0: unknown.
};

// One op. A word of `params` beyond the op's own is 0.
struct DoorCall {
  int32_t kernel;
  uint32_t unused;
  uint64_t buffers[kDoorBuffers];  // Addresses on the card.
  uint32_t params[16];
};

// Whether a list of calls is kept as a graph, which a card takes at a fraction of the price of its
// launches, one by one.
enum class DoorGraph : int32_t {
  kNone = 0,
  kKeep = 1,   // Runs the calls and keeps them under `slot`.
  kAgain = 2,  // Runs what was kept there; `calls` is not read.
};

struct DoorSession;

struct Door {
  uint32_t version;

  // How many cards there are; below 0: none can be asked, and `why` (of why_bytes) holds a
  // sentence.
  int32_t (*cards)(char* why, size_t why_bytes);
  int32_t (*describe)(int32_t card, DoorCard* result);

  // Kernels for an op and variant, by the names of op_name() and dtype_name(); kNoKernel.
  int32_t (*kernel)(const char* op, const char* variant);

  // Null with a sentence when the card cannot be had.
  DoorSession* (*open)(int32_t card, char* why, size_t why_bytes);
  void (*close)(DoorSession* session);
  const char* (*why)(const DoorSession* session);  // Of the last call that did not go well.

  // Every call of a session is made on one thread. Work is queued in the order of the calls.
  DoorStatus (*memory)(DoorSession* session, int64_t* free_bytes, int64_t* total_bytes);
  DoorStatus (*allocate)(DoorSession* session, int64_t bytes, uint64_t* address);  // Zeroed.
  void (*release)(DoorSession* session, uint64_t address);
  // When it returns, `from` may change; the card may still be taking what came from it.
  DoorStatus (*write)(DoorSession* session, uint64_t to, const void* from, int64_t bytes);
  DoorStatus (*read)(DoorSession* session, uint64_t from, void* to, int64_t bytes);

  // Runs the calls, waits for their end, and says the lowest index of one that made a NaN or an
  // infinity, else kAllFinite.
  DoorStatus (*run)(DoorSession* session, const DoorCall* calls, size_t count, DoorGraph graph,
                    uint32_t slot, uint32_t* reported);
};

}  // namespace shoal::compute::cuda
