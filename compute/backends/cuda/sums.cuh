// Sums in the order of float chunks (shaders/exact_math.h), for eight lanes, a warp or a block.
#pragma once

#include "compute/backends/cuda/kernel.h"

namespace shoal::compute::cuda {

// Eight neighbouring lanes hold a chunk's lanes; each of them gets the chunk.
SHOAL_DEVICE float sum_of_lanes(float lane) {
  lane = lane + __shfl_xor_sync(kAllLanes, lane, 1);
  lane = lane + __shfl_xor_sync(kAllLanes, lane, 2);
  return lane + __shfl_xor_sync(kAllLanes, lane, 4);
}

constexpr uint kSumThreads = 256;

// The sum of term(0) .. term(count - 1), by a block of kSumThreads, each of whom gets it.
template <class Term>
SHOAL_DEVICE float block_sum(uint count, const Term& term) {
  constexpr uint kGroups = kSumThreads / SHOAL_SUM_LANES;
  SHOAL_SHARED(float, chunks, kGroups);
  const uint lane = threadIdx.x % SHOAL_SUM_LANES, group = threadIdx.x / SHOAL_SUM_LANES;
  const uint total = divide_up(count, SHOAL_SUM_CHUNK);
  float sum = 0.0f;
  for (uint first = 0; first < total; first += kGroups) {
    const uint begin = (first + group) * SHOAL_SUM_CHUNK;
    const uint end = begin + SHOAL_SUM_CHUNK < count ? begin + SHOAL_SUM_CHUNK : count;
    float part = 0.0f;
    for (uint k = begin + lane; k < end; k += SHOAL_SUM_LANES) part = part + term(k);
    part = sum_of_lanes(part);
    if (lane == 0) chunks[group] = part;
    __syncthreads();
    for (uint i = 0; i < kGroups && first + i < total; ++i) {
      const float chunk = chunks[i];
      sum = first + i == 0 ? chunk : sum + chunk;
    }
    __syncthreads();
  }
  return sum;
}

}  // namespace shoal::compute::cuda
