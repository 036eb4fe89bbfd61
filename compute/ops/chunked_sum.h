#pragma once
// The order of every float sum: chunks of 256 from index 0, eight lanes in a chunk, a fixed tree
// over the lanes, chunks in ascending order (shaders/exact_math.h).

#include <algorithm>
#include <cstdint>

#include "shaders/exact_math.h"

namespace shoal::compute {

template <class Term>
float chunked_sum(int64_t count, const Term& term) {
  float sum = 0.0f;
  for (int64_t begin = 0; begin < count; begin += SHOAL_SUM_CHUNK) {
    const int64_t end = std::min<int64_t>(count, begin + SHOAL_SUM_CHUNK);
    float lanes[SHOAL_SUM_LANES] = {};
    for (int64_t i = begin; i < end; ++i) lanes[i % SHOAL_SUM_LANES] += term(i);
    const float chunk = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
                        ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    sum = begin == 0 ? chunk : sum + chunk;
  }
  return sum;
}

}  // namespace shoal::compute
