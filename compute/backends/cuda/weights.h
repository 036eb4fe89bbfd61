#pragma once
// How a weight lies on a card: row by row, each row in sections that begin on 16 bytes, so that
// lanes load whole words. weight_layout.cpp writes what is described here, and weights.cuh reads
// it.
//
//   values   f32, f16, bf16 as in the file, small ones zeroed by exact_factor(); q8_0 its 32
//   integers a
//            block; else 16 bytes of nibbles a block, byte j holding elements j and 16 + j
//   high     fifth bits (4 bytes a block), or fifth and sixth ones (8 bytes), in the order of
//   elements scales   types of 256 elements: a byte of each block's first scale, one of its second
//   or minimum heads    f16 d, and f16 m where the type has minima, of each block of the file

#include "compute/graph/tensor.h"
#include "shaders/exact_math.h"  // SHOAL_EXACT_FN: on the card and in the program.

namespace shoal::compute::cuda {

using uint = uint32_t;

struct WeightFormat {
  bool quantised = false;
  uint value_bytes = 0;  // Of an element, or of a block of 32.
  uint high_bytes = 0;
  uint scale_bytes = 0;
  uint head_bytes = 0;   // Of a unit: a block of the file.
  uint unit_blocks = 1;  // Blocks of 32 in it.
  int zero = 0;          // Taken off each integer.
  bool minimum = false;
};

SHOAL_EXACT_FN constexpr WeightFormat weight_format(DType dtype) {
  switch (dtype) {
    case DType::kF32: return {false, 4};
    case DType::kF16:
    case DType::kBF16: return {false, 2};
    case DType::kQ8_0: return {true, 32, 0, 0, 2};
    case DType::kQ4_0: return {true, 16, 0, 0, 2, 1, 8};
    case DType::kQ4_1: return {true, 16, 0, 0, 4, 1, 0, true};
    case DType::kQ5_0: return {true, 16, 4, 0, 2, 1, 16};
    case DType::kQ5_1: return {true, 16, 4, 0, 4, 1, 0, true};
    case DType::kQ4_K: return {true, 16, 0, 2, 4, 8, 0, true};
    case DType::kQ5_K: return {true, 16, 4, 2, 4, 8, 0, true};
    case DType::kQ6_K: return {true, 16, 8, 2, 2, 8, 32};
    default: return {};
  }
}

// Where the sections of a row begin, in bytes.
struct RowLayout {
  uint64_t high = 0, scales = 0, heads = 0;
  uint64_t stride = 0;
};

SHOAL_EXACT_FN constexpr RowLayout row_layout(const WeightFormat& format, uint64_t columns) {
  const auto end = [](uint64_t bytes) { return (bytes + 15) / 16 * 16; };
  RowLayout layout;
  if (!format.quantised) {
    layout.stride = end(columns * format.value_bytes);
    return layout;
  }
  const uint64_t blocks = columns / 32;
  layout.high = end(blocks * format.value_bytes);
  layout.scales = layout.high + end(blocks * format.high_bytes);
  layout.heads = layout.scales + end(blocks * format.scale_bytes);
  layout.stride = layout.heads + end(blocks / format.unit_blocks * format.head_bytes);
  return layout;
}

}  // namespace shoal::compute::cuda
