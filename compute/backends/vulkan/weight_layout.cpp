#include "compute/backends/vulkan/weight_layout.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

constexpr int64_t kBlock = 32;

// Bytes of a block's values in the file, without its f16 scale, which stands before them.
int64_t block_value_bytes(DType dtype) { return dtype == DType::kQ8_0 ? 32 : 16; }

// exact_factor() of each element, by its bits: kernels need not do it again.
template <class Bits>
void zero_small(std::byte* at, int64_t count, Bits bound) {
  constexpr Bits kMagnitude = std::numeric_limits<Bits>::max() >> 1;
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, at + i * sizeof bits, sizeof bits);
    if ((bits & kMagnitude) < bound) bits = 0;
    std::memcpy(at + i * sizeof bits, &bits, sizeof bits);
  }
}

bool is_quantised(DType dtype) { return dtype == DType::kQ8_0 || dtype == DType::kQ4_0; }

}  // namespace

Result<WeightLayout> weight_layout(DType dtype, int64_t columns) {
  if (columns <= 0) return Error{ErrorCode::kInvalid, "a weight has no columns"};
  if (is_quantised(dtype)) {
    if (columns % kBlock != 0) {
      return Error{ErrorCode::kInvalid, "a weight's columns are no multiple of 32"};
    }
    const int64_t blocks = columns / kBlock;
    const int64_t bytes = block_value_bytes(dtype);
    return WeightLayout{blocks * (bytes + 2), blocks * bytes / 4 + (blocks + 1) / 2};
  }
  switch (dtype) {
    case DType::kF32: return WeightLayout{columns * 4, columns};
    case DType::kF16:
    case DType::kBF16: return WeightLayout{columns * 2, (columns + 1) / 2};
    default: return Error{ErrorCode::kInvalid, "not a type of weights"};
  }
}

void repack_rows(DType dtype, int64_t columns, ByteSpan file_rows, std::span<uint32_t> out) {
  const Result<WeightLayout> result = weight_layout(dtype, columns);
  SHOAL_CHECK(result.ok());
  const WeightLayout& layout = result.value();
  const int64_t rows = static_cast<int64_t>(file_rows.size()) / layout.file_row_bytes;
  SHOAL_CHECK(static_cast<int64_t>(file_rows.size()) == rows * layout.file_row_bytes);
  SHOAL_CHECK(static_cast<int64_t>(out.size()) == rows * layout.row_words);
  for (int64_t row = 0; row < rows; ++row) {
    const std::byte* from = file_rows.data() + row * layout.file_row_bytes;
    auto* to = reinterpret_cast<std::byte*>(out.data() + row * layout.row_words);
    if (!is_quantised(dtype)) {
      out[(row + 1) * layout.row_words - 1] = 0;  // What pads an odd row of halves.
      std::memcpy(to, from, layout.file_row_bytes);
      if (dtype == DType::kF32) zero_small<uint32_t>(to, columns, SHOAL_FACTOR_BITS);
      if (dtype == DType::kBF16) zero_small<uint16_t>(to, columns, SHOAL_FACTOR_BITS >> 16);
      continue;
    }
    const int64_t blocks = columns / kBlock;
    const int64_t bytes = block_value_bytes(dtype);
    std::byte* scales = to + blocks * bytes;
    if (blocks % 2 != 0) std::memset(scales + 2 * blocks, 0, 2);
    for (int64_t block = 0; block < blocks; ++block) {
      std::memcpy(scales + 2 * block, from + block * (bytes + 2), 2);
      std::memcpy(to + block * bytes, from + block * (bytes + 2) + 2, bytes);
    }
  }
}

}  // namespace shoal::compute
