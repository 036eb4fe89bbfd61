#pragma once
// Moves weights from their file's layout into that of weights.h.

#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "compute/backends/cuda/weights.h"

namespace shoal::compute::cuda {

struct WeightSizes {
  int64_t file_row_bytes = 0;
  int64_t row_bytes = 0;  // On the card.
};

// kInvalid where the type is no weight's or columns are no multiple of its block.
Result<WeightSizes> weight_sizes(DType dtype, int64_t columns);

// Moves whole rows. Values keep their bits, but for those that exact_factor() calls zero.
// REQUIRES: file_rows holds n rows of file_row_bytes, out n of row_bytes.
void repack_rows(DType dtype, int64_t columns, ByteSpan file_rows, std::span<std::byte> out);

}  // namespace shoal::compute::cuda
