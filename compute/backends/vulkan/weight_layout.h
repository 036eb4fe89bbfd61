#pragma once
// How a weight lies on the device: the file's values, moved so that kernels read whole 32-bit
// words, and neighbouring invocations neighbouring ones. shaders/lib.glsl says how, and reads what
// is written here.

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "compute/graph/tensor.h"

namespace shoal::compute {

struct WeightLayout {
  int64_t file_row_bytes = 0;
  int64_t row_words = 0;
  int64_t tile_rows = 1;  // Rows lie in tiles of so many; the last one is filled up with zeros.

  int64_t words(int64_t rows) const {
    return (rows + tile_rows - 1) / tile_rows * tile_rows * row_words;
  }
};

// kInvalid where the type is no weight's or columns are no multiple of its block.
Result<WeightLayout> weight_layout(DType dtype, int64_t columns);

// Moves whole rows, the first of which begins a tile. Values keep their bits, but for those that
// exact_factor() calls zero.
// REQUIRES: file_rows holds n rows of layout.file_row_bytes, out is of layout.words(n).
void repack_rows(DType dtype, int64_t columns, ByteSpan file_rows, std::span<uint32_t> out);

}  // namespace shoal::compute
