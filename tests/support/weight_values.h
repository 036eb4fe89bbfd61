#pragma once
// What the bytes of a tensor mean, in double, read a second time from the formats' descriptions:
// tests hold compute/ against it. Shares with it only the names of the types.

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "compute/graph/tensor.h"

namespace shoal {

// An infinite half counts as the number that would come after the largest.
double half_value(uint16_t bits);

// `count` elements from the first on, of any type that weights have.
std::vector<double> weight_values(compute::DType type, ByteSpan bytes, int64_t count);

}  // namespace shoal
