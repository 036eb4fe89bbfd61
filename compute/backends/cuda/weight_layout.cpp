#include "compute/backends/cuda/weight_layout.h"

#include <cstring>
#include <limits>

#include "base/check.h"
#include "compute/ops/op.h"
#include "shaders/exact_math.h"

namespace shoal::compute::cuda {
namespace {

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

// q8_0 and q4_0: the file's own bytes, its scales apart from its integers.
void move_plain_row(const WeightFormat& format, const RowLayout& layout, int64_t blocks,
                    const std::byte* from, std::byte* to) {
  for (int64_t block = 0; block < blocks; ++block) {
    std::memcpy(to + layout.heads + 2 * block, from, 2);
    std::memcpy(to + block * format.value_bytes, from + 2, format.value_bytes);
    from += 2 + format.value_bytes;
  }
}

// REQUIRES: `to` holds zeros.
void pack_row(DType dtype, const WeightFormat& format, const RowLayout& layout, int64_t blocks,
              ByteSpan file_rows, int64_t row, std::byte* to) {
  for (int64_t index = 0; index < blocks; ++index) {
    const QuantBlock block = load_block(dtype, file_rows, row * blocks + index);
    uint8_t nibbles[16] = {};
    uint64_t high = 0;  // Fifth bits, or fifth and sixth.
    for (int i = 0; i < 32; ++i) {
      const auto code = static_cast<uint32_t>(block.values[i] + format.zero);
      nibbles[i % 16] = static_cast<uint8_t>(nibbles[i % 16] | (code & 15) << (i < 16 ? 0 : 4));
      high |= uint64_t{code >> 4} << (format.high_bytes == 8 ? 2 * i : i);
    }
    std::memcpy(to + index * 16, nibbles, 16);
    if (format.high_bytes != 0) {
      std::memcpy(to + layout.high + index * format.high_bytes, &high, format.high_bytes);
    }
    if (format.scale_bytes != 0) {
      const int second = format.minimum ? block.minimum : block.scales[1];
      to[layout.scales + 2 * index] = static_cast<std::byte>(block.scales[0]);
      to[layout.scales + 2 * index + 1] = static_cast<std::byte>(second);
    }
    if (index % format.unit_blocks != 0) continue;
    std::byte* head = to + layout.heads + index / format.unit_blocks * format.head_bytes;
    std::memcpy(head, &block.d_bits, 2);
    if (format.minimum) std::memcpy(head + 2, &block.m_bits, 2);
  }
}

}  // namespace

Result<WeightSizes> weight_sizes(DType dtype, int64_t columns) {
  if (!is_weight_type(dtype)) return Error{ErrorCode::kInvalid, "not a type of weights"};
  SHOAL_TRY_ASSIGN(file_bytes, byte_size(dtype, {columns}));
  const RowLayout layout = row_layout(weight_format(dtype), static_cast<uint64_t>(columns));
  return WeightSizes{file_bytes, static_cast<int64_t>(layout.stride)};
}

void repack_rows(DType dtype, int64_t columns, ByteSpan file_rows, std::span<std::byte> out) {
  const Result<WeightSizes> sizes = weight_sizes(dtype, columns);
  SHOAL_CHECK(sizes.ok());
  const int64_t file_row = sizes.value().file_row_bytes, stride = sizes.value().row_bytes;
  const int64_t rows = static_cast<int64_t>(file_rows.size()) / file_row;
  SHOAL_CHECK(static_cast<int64_t>(file_rows.size()) == rows * file_row);
  SHOAL_CHECK(static_cast<int64_t>(out.size()) == rows * stride);
  const WeightFormat format = weight_format(dtype);
  const RowLayout layout = row_layout(format, static_cast<uint64_t>(columns));
  std::memset(out.data(), 0, out.size());
  for (int64_t row = 0; row < rows; ++row) {
    const std::byte* from = file_rows.data() + row * file_row;
    std::byte* to = out.data() + row * stride;
    if (dtype == DType::kQ8_0 || dtype == DType::kQ4_0) {
      move_plain_row(format, layout, columns / 32, from, to);
    } else if (format.quantised) {
      pack_row(dtype, format, layout, columns / 32, file_rows, row, to);
    } else {
      std::memcpy(to, from, static_cast<size_t>(file_row));
      if (dtype == DType::kF32) zero_small<uint32_t>(to, columns, SHOAL_FACTOR_BITS);
      if (dtype == DType::kBF16) zero_small<uint16_t>(to, columns, SHOAL_FACTOR_BITS >> 16);
    }
  }
}

}  // namespace shoal::compute::cuda
