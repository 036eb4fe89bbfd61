#pragma once
// How a weight lies on the device: the file's values, moved so that kernels read whole 32-bit
// words. shaders/lib.glsl reads what is written here.

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "compute/graph/tensor.h"

namespace shoal::compute {

struct WeightLayout {
  int64_t file_row_bytes = 0;
  int64_t row_words = 0;
};

// kInvalid where the type is no weight's or columns are no multiple of its block.
Result<WeightLayout> weight_layout(DType dtype, int64_t columns);

// Moves whole rows. Values keep their bits, but for those that exact_factor() calls zero.
// REQUIRES: file_rows holds n rows of layout.file_row_bytes, out n of layout.row_words.
void repack_rows(DType dtype, int64_t columns, ByteSpan file_rows, std::span<uint32_t> out);

}  // namespace shoal::compute
