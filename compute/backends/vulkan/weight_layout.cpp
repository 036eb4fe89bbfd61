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
constexpr int64_t kChunkBlocks = SHOAL_SUM_CHUNK / SHOAL_QUANT_BLOCK;
constexpr int64_t kTileRows = 32;
constexpr int64_t kTexelBytes = 16;

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

// What the texels of a chunk hold, by type.
struct ChunkForm {
  int64_t code_texels = 1;  // Of a block.
  int64_t bit_words = 0;    // Of a block.
  bool unit_is_chunk = false;
  bool minimum = false;

  explicit ChunkForm(DType dtype)
      : code_texels(dtype == DType::kQ8_0 ? 2 : 1),
        unit_is_chunk(block_elements(dtype) == SHOAL_SUM_CHUNK),
        minimum(has_minimum(dtype)) {
    if (dtype == DType::kQ5_0 || dtype == DType::kQ5_1 || dtype == DType::kQ5_K) bit_words = 1;
    if (dtype == DType::kQ6_K) bit_words = 2;
  }
  int64_t head_texels(int64_t blocks) const {
    if (unit_is_chunk) return 2;
    return minimum ? (blocks + 3) / 4 : 1;
  }
  int64_t code_start(int64_t blocks) const {
    return head_texels(blocks) + (blocks * bit_words + 3) / 4;
  }
  int64_t texels(int64_t blocks) const { return code_start(blocks) + blocks * code_texels; }
};

int64_t row_texels(DType dtype, int64_t columns) {
  const ChunkForm form(dtype);
  const int64_t blocks = columns / kBlock, rest = blocks % kChunkBlocks;
  return blocks / kChunkBlocks * form.texels(kChunkBlocks) + (rest > 0 ? form.texels(rest) : 0);
}

// One row of a tile: its texels lie kTileRows apart.
class TileRow {
 public:
  explicit TileRow(uint32_t* first) : first_(first) {}
  uint32_t* texel(int64_t index) const { return first_ + index * kTileRows * 4; }
  uint32_t& word(int64_t texel_index, int64_t index) const {
    return texel(texel_index + index / 4)[index % 4];
  }

 private:
  uint32_t* first_;
};

// A chunk of q8_0 or q4_0, whose values lie as in the file.
void copy_chunk(DType dtype, const std::byte* file, int64_t blocks, int64_t at, TileRow row) {
  const ChunkForm form(dtype);
  const int64_t bytes = 2 + form.code_texels * kTexelBytes;
  for (int64_t b = 0; b < blocks; ++b, file += bytes) {
    uint16_t d;
    std::memcpy(&d, file, 2);
    row.word(at, b / 2) |= uint32_t{d} << (b % 2 * 16);
    for (int64_t t = 0; t < form.code_texels; ++t) {
      std::memcpy(row.texel(at + form.code_start(blocks) + b * form.code_texels + t),
                  file + 2 + t * kTexelBytes, kTexelBytes);
    }
  }
}

// A chunk of any other type. `index` is its first block, counted in the file.
void pack_chunk(DType dtype, ByteSpan file, int64_t index, int64_t blocks, int64_t at,
                TileRow row) {
  const ChunkForm form(dtype);
  const int zero = dtype == DType::kQ5_0 ? 16 : dtype == DType::kQ6_K ? 32 : 0;
  for (int64_t b = 0; b < blocks; ++b) {
    const QuantBlock block = load_block(dtype, file, index + b);
    uint32_t* codes = row.texel(at + form.code_start(blocks) + b);
    for (int i = 0; i < kBlock; ++i) {
      const auto code = static_cast<uint32_t>(block.values[i] + zero);
      codes[i % 16 / 4] |= (code & 15) << (i % 4 * 8 + (i < 16 ? 0 : 4));
      const int64_t bits = at + form.head_texels(blocks);
      if (form.bit_words == 1) row.word(bits, b) |= (code >> 4) << i;
      if (form.bit_words == 2) row.word(bits, 2 * b + i / 16) |= (code >> 4) << (i % 16 * 2);
    }
    const uint32_t head = block.d_bits | uint32_t{block.m_bits} << 16;
    if (form.unit_is_chunk) {
      const int second = form.minimum ? block.minimum : block.scales[1];
      const uint32_t pair = (static_cast<uint32_t>(block.scales[0]) & 255) |
                            (static_cast<uint32_t>(second) & 255) << 8;
      row.word(at, b / 2) |= pair << (b % 2 * 16);
      row.word(at + 1, 0) = head;
    } else if (form.minimum) {
      row.word(at, b) = head;
    } else {
      row.word(at, b / 2) |= uint32_t{block.d_bits} << (b % 2 * 16);
    }
  }
}

// REQUIRES: the row's place in `out` holds zeros.
void pack_row(DType dtype, int64_t columns, ByteSpan file_rows, int64_t row, TileRow out) {
  const bool as_in_file = dtype == DType::kQ8_0 || dtype == DType::kQ4_0;
  const ChunkForm form(dtype);
  const int64_t blocks = columns / kBlock;
  int64_t at = 0;
  for (int64_t first = 0; first < blocks; first += kChunkBlocks) {
    const int64_t count = std::min(blocks - first, kChunkBlocks);
    const int64_t index = row * blocks + first;
    if (as_in_file) {
      copy_chunk(dtype, file_rows.data() + index * block_bytes(dtype), count, at, out);
    } else {
      pack_chunk(dtype, file_rows, index, count, at, out);
    }
    at += form.texels(count);
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
    SHOAL_TRY_ASSIGN(file_bytes, byte_size(dtype, {columns}));
    return WeightLayout{file_bytes, row_texels(dtype, columns) * 4, kTileRows};
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
  SHOAL_CHECK(static_cast<int64_t>(out.size()) == layout.words(rows));
  if (is_quantised_weight(dtype)) std::fill(out.begin(), out.end(), 0u);
  for (int64_t row = 0; row < rows; ++row) {
    if (is_quantised_weight(dtype)) {
      uint32_t* tile = out.data() + row / kTileRows * kTileRows * layout.row_words;
      pack_row(dtype, columns, file_rows, row, TileRow(tile + row % kTileRows * 4));
      continue;
    }
    auto* to = reinterpret_cast<std::byte*>(out.data() + row * layout.row_words);
    out[(row + 1) * layout.row_words - 1] = 0;  // What pads an odd row of halves.
    std::memcpy(to, file_rows.data() + row * layout.file_row_bytes, layout.file_row_bytes);
    if (dtype == DType::kF32) zero_small<uint32_t>(to, columns, SHOAL_FACTOR_BITS);
    if (dtype == DType::kBF16) zero_small<uint16_t>(to, columns, SHOAL_FACTOR_BITS >> 16);
  }
}

}  // namespace shoal::compute
