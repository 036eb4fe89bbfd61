#include "compute/backends/vulkan/weight_layout.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "compute/ops/op.h"
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

// The types whose values do not lie as in the file (lib.glsl).
bool is_packed(DType dtype) {
  return is_quantised_weight(dtype) && dtype != DType::kQ8_0 && dtype != DType::kQ4_0;
}

int64_t value_words(DType dtype) {
  if (dtype == DType::kQ6_K) return 6;
  return dtype == DType::kQ4_1 || dtype == DType::kQ4_K ? 4 : 5;
}

WeightLayout packed_layout(DType dtype, int64_t columns) {
  const int64_t unit = block_elements(dtype), blocks = columns / kBlock;
  const Result<int64_t> file_bytes = byte_size(dtype, {columns});
  SHOAL_CHECK(file_bytes.ok());
  return {file_bytes.value(),
          blocks * value_words(dtype) + (unit == 256 ? blocks : 0) + columns / unit};
}

// REQUIRES: `out` holds zeros.
void pack_row(DType dtype, int64_t columns, ByteSpan file_rows, int64_t row, uint32_t* out) {
  const int64_t blocks = columns / kBlock, words = value_words(dtype);
  const int64_t blocks_in_unit = block_elements(dtype) / kBlock;
  const bool large = blocks_in_unit > 1;
  const int zero = dtype == DType::kQ5_0 ? 16 : dtype == DType::kQ6_K ? 32 : 0;
  uint32_t* scales = out + blocks * words;
  uint32_t* heads = scales + (large ? blocks : 0);
  for (int64_t index = 0; index < blocks; ++index) {
    const QuantBlock block = load_block(dtype, file_rows, row * blocks + index);
    uint32_t* at = out + index * words;
    for (int i = 0; i < 32; ++i) {
      const auto code = static_cast<uint32_t>(block.values[i] + zero);
      at[i % 16 / 4] |= (code & 15) << (i % 4 * 8 + (i < 16 ? 0 : 4));
      if (words == 5) at[4] |= (code >> 4) << i;
      if (words == 6) at[4 + i / 16] |= (code >> 4) << (i % 16 * 2);
    }
    if (large) {
      const int second = has_minimum(dtype) ? block.minimum : block.scales[1];
      scales[index] = (static_cast<uint32_t>(block.scales[0]) & 255) |
                      (static_cast<uint32_t>(second) & 255) << 8;
    }
    heads[index / blocks_in_unit] = block.d_bits | uint32_t{block.m_bits} << 16;
  }
}

}  // namespace

Result<WeightLayout> weight_layout(DType dtype, int64_t columns) {
  if (columns <= 0) return Error{ErrorCode::kInvalid, "a weight has no columns"};
  if (is_quantised_weight(dtype)) {
    if (columns % block_elements(dtype) != 0) {
      return Error{ErrorCode::kInvalid, "a weight's columns are no multiple of " +
                                            std::to_string(block_elements(dtype))};
    }
    if (is_packed(dtype)) return packed_layout(dtype, columns);
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
    if (is_packed(dtype)) {
      std::memset(to, 0, static_cast<size_t>(layout.row_words) * 4);
      pack_row(dtype, columns, file_rows, row, out.data() + row * layout.row_words);
      continue;
    }
    if (!is_quantised_weight(dtype)) {
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
