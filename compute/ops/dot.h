#pragma once
// The dot products of matmul and expert_matmul, in the exact order of their sums.

#include "compute/ops/op.h"

namespace shoal::compute {

// k elements of x, from element x_first on, with k elements of a float weight.
float float_dot(DType dtype, ByteSpan x, int64_t x_first, ByteSpan weight, int64_t weight_first,
                int64_t k);

// k int8 values and their scales, which begin at these bytes of a q8_rows, with a weight's row.
float quantised_dot(DType dtype, ByteSpan x, int64_t values_at, int64_t scales_at, ByteSpan weight,
                    int64_t column, int64_t k);

}  // namespace shoal::compute
