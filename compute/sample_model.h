#pragma once
// A Llama-like model of any size with random weights: what bench measures and tests run. Knows no
// files; real models are compute/models'.

#include <cstdint>
#include <memory>
#include <vector>

#include "compute/compute.h"

namespace shoal::compute {

struct SampleModelShape {
  int64_t width = 64;  // A multiple of 32 for quantised weights, as is `inner`.
  uint32_t heads = 4;
  uint32_t kv_heads = 2;
  uint32_t head_dim = 16;
  int64_t inner = 96;  // Of the feed-forward.
  int64_t vocabulary = 50;
  int blocks = 3;
  DType weights = DType::kF32;
  DType states = DType::kF16;
  bool ends = true;  // Embedding and head as well.
  uint64_t seed = 1;
};

// Embedding, blocks, head. The fragments' bytes live as long as the model.
struct SampleModel {
  std::vector<Fragment> fragments;
  std::vector<std::unique_ptr<const ByteVector>> storage;
};

SampleModel make_sample_model(const SampleModelShape& shape);

}  // namespace shoal::compute
