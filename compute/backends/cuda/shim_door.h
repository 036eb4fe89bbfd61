#pragma once
// The plug-in's door without a card: memory is the program's own, kernels run on the shim. For
// tests, which may also choose when it fails.

#include <cstdint>

#include "compute/backends/cuda/door.h"

namespace shoal::compute::cuda {

// What the next session of this thread does; a test sets it before it opens a device.
struct ShimOptions {
  uint64_t seed = 1;
  int64_t memory_bytes = int64_t{1} << 30;
  uint64_t scratch_bytes = 1 << 20;
  int64_t lost_after_runs = -1;  // So many runs go well. -1: all do.
};
void set_shim_options(const ShimOptions& options);

// Of this thread, since its options were set.
struct ShimCounts {
  int64_t runs = 0, graphs_kept = 0, graphs_again = 0, open_sessions = 0, allocations = 0;
};
ShimCounts shim_counts();

const Door& shim_door();

}  // namespace shoal::compute::cuda
