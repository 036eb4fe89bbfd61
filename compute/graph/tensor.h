#pragma once
// What a tensor is: its type, its shape and what it costs in bytes. Shapes are row-major with the
// contiguous dimension last; sizes are computed here and believed from nobody.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace shoal::compute {

enum class DType : uint8_t {
  kF32 = 0,
  kF16 = 1,
  kBF16 = 2,
  kQ8_0 = 3,  // Blocks of 32 along the last dimension: f16 scale, 32 int8. 34 bytes.
  kQ4_0 = 4,  // Blocks of 32: f16 scale, 16 bytes of nibbles, value (q - 8) * scale. 18 bytes.
  kI32 = 5,
  kQ8Rows = 6,  // Activations: per row the int8 values, then one f32 scale for each 32 of them.
  // Blocks of 32: f16 scale d, for the _1 types f16 m, for the 5s four bytes of fifth bits,
  // nibbles.
  kQ4_1 = 7,  // q * d + m. 20 bytes.
  kQ5_0 = 8,  // (q - 16) * d. 22 bytes.
  kQ5_1 = 9,  // q * d + m. 24 bytes.
  // Blocks of 256, in eighths of 32 with a scale of 6 bits each (Q6_K: sixteenths, 8 bits).
  kQ4_K = 10,  // q * scale * d - min * dmin. 144 bytes.
  kQ5_K = 11,  // The same with a fifth bit. 176 bytes.
  kQ6_K = 12,  // (q - 32) * scale * d. 210 bytes.
};
constexpr int kDTypes = 13;

std::string_view dtype_name(DType dtype);  // "f32", "q8_0", ...
bool is_weight_type(DType dtype);          // The float types and the quantised ones.
bool is_quantised_weight(DType dtype);     // q8_0, q4_0, ... q6_k.
uint32_t block_elements(DType dtype);      // 32 or 256 for the quantised types, else 1.
int64_t block_bytes(DType dtype);          // Of so many elements.

// Dimensions that a step or a session decides, as they stand in a graph's shapes.
constexpr int64_t kRows = -1;       // Rows (tokens) of a step, of all its sequences together.
constexpr int64_t kOutputs = -2;    // Rows whose logits are wanted.
constexpr int64_t kContext = -3;    // Positions that a sequence's cache can hold.
constexpr int64_t kSequences = -4;  // Sequences that a stage can hold.

using Shape = std::vector<int64_t>;

// The values of the symbolic dimensions.
struct Dims {
  int64_t rows = 1;
  int64_t outputs = 1;
  int64_t context = 1;
  int64_t sequences = 1;
};

Shape bind(const Shape& shape, const Dims& dims);  // Every symbol replaced by its value.

// Bytes of a tensor of this type and (bound) shape. Fails as kCorrupt when a dimension is not
// positive, the last is no multiple of the type's block, or the product passes 2^62.
Result<int64_t> byte_size(DType dtype, const Shape& shape);

}  // namespace shoal::compute
