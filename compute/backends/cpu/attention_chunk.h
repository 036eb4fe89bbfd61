#pragma once
// What the attention kernels of several kinds of registers share: from the products of a query with
// a chunk's keys to the weights of its positions. By AVX2.

#include <cstdint>

#include "shaders/op_params.h"

namespace shoal::compute {

struct ChunkWeights {
  float largest = 0;  // Score,
  float sum = 0;      // and sum of weights.
  bool finite = true;
};

// `w` holds SHOAL_ATTENTION_CHUNK numbers at a multiple of 32 bytes, of which the first `count` are
// the products; they become weights.
ChunkWeights chunk_weights(float* w, int64_t count, const AttentionParams& params);

}  // namespace shoal::compute
