#pragma once
// Joins the lists of kernels of all files into one table, and makes calls of what comes through the
// door. Shared by the plug-in and the shim.

#include <cstring>

#include "compute/backends/cuda/door.h"
#include "compute/backends/cuda/kernel.h"

namespace shoal::compute::cuda {

// Null where there is no such row.
inline const KernelEntry* kernel_entry(int32_t number) {
  for (const auto list : kKernelLists) {
    const KernelList kernels = list();
    if (number >= 0 && static_cast<size_t>(number) < kernels.count) return kernels.entries + number;
    number -= static_cast<int32_t>(kernels.count);
  }
  return nullptr;
}

inline int32_t find_kernel(const char* op, const char* variant) {
  for (int32_t number = 0; const KernelEntry* entry = kernel_entry(number); ++number) {
    if (std::strcmp(entry->op, op) == 0 && std::strcmp(entry->variant, variant) == 0) return number;
  }
  return kNoKernel;
}

inline Call make_call(const DoorCall& from, uint32_t index, uint32_t* status, std::byte* scratch,
                      uint64_t scratch_bytes) {
  Call call;
  static_assert(sizeof call.params == sizeof from.params);
  static_assert(sizeof call.buffers / sizeof call.buffers[0] == kDoorBuffers);
  for (size_t i = 0; i < kDoorBuffers; ++i) {
    call.buffers[i] = reinterpret_cast<std::byte*>(from.buffers[i]);
  }
  std::memcpy(call.params, from.params, sizeof call.params);
  call.status = status;
  call.scratch = scratch;
  call.scratch_bytes = scratch_bytes;
  call.index = index;
  return call;
}

// What attention over long contexts is put together from.
constexpr int64_t kScratchBytes = int64_t{32} << 20;

}  // namespace shoal::compute::cuda
