#pragma once
// Gives each value that a step computes a slot of memory, and a slot to another value once nobody
// reads the first any more. Over a whole chain of graphs, each one's output being the next one's
// input.

#include <cstdint>
#include <span>
#include <vector>

#include "compute/graph/graph.h"

namespace shoal::compute {

struct BufferPlan {
  std::vector<std::vector<int64_t>>
      slots;  // [graph][value]: its slot, or -1 for weights and the like.
  std::vector<int64_t> slot_bytes;
};

// REQUIRES: verified graphs, at least one; every computed value fits 2^62 bytes at these dims.
BufferPlan plan_buffers(std::span<const Graph* const> chain, const Dims& dims);

}  // namespace shoal::compute
