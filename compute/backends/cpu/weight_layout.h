#pragma once
// How the CPU plane keeps weights, chosen for its kernels. A quantised weight's rows stand in tiles
// of eight (the last one filled up with zeros); for each block of 32 along K a tile holds eight f16
// scales, then the eight rows' integers in groups of four bytes, row by row within a group. So one
// load brings the same four elements of eight rows. What does not fit into nibbles follows them;
// types of 256 elements keep their f16 scales once for eight blocks. f32 and bf16 stay as in the
// file, small values zeroed.

#include <cstdint>

#include "base/bytes.h"
#include "compute/graph/tensor.h"
#include "compute/ops/op.h"

namespace shoal::compute {

constexpr int64_t kTileRows = 8;
constexpr int64_t kQ8TileBlock = kTileRows * 34;
constexpr int64_t kQ4TileBlock = kTileRows * 18;

inline bool is_tiled(DType dtype) { return is_quantised_weight(dtype); }

// Where a tile of the nibble types keeps what, in bytes. A unit is a block of the file's type: its
// head holds eight f16 d, then eight f16 m where the type has minima. Then follows each 32 of its
// elements: eight first and eight second scales (or minima) of a byte where the type is of 256
// elements; 128 bytes of nibbles, byte j of row r of group g holding elements 4g + j and 16 + 4g +
// j; then fifth bits (bit g of byte j of a row for element 4g + j), or fifth and sixth (the first
// 32 bytes for groups 0 to 3, the second for 4 to 7).
struct TileFormat {
  int bits = 4;
  bool minimum = false;
  bool large = false;
  int zero = 0;  // Taken off each integer.

  constexpr int64_t head_bytes() const { return minimum ? 32 : 16; }
  constexpr int64_t scale_bytes() const { return large ? 16 : 0; }
  constexpr int64_t block_bytes() const {
    return scale_bytes() + 128 + (bits == 5 ? 32 : bits == 6 ? 64 : 0);
  }
  constexpr int64_t blocks() const { return large ? 8 : 1; }
  constexpr int64_t unit_bytes() const { return head_bytes() + blocks() * block_bytes(); }
};

constexpr TileFormat tile_format(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0: return {.zero = 8};
    case DType::kQ4_1: return {.minimum = true};
    case DType::kQ5_0: return {.bits = 5, .zero = 16};
    case DType::kQ5_1: return {.bits = 5, .minimum = true};
    case DType::kQ4_K: return {.minimum = true, .large = true};
    case DType::kQ5_K: return {.bits = 5, .minimum = true, .large = true};
    default: return {.bits = 6, .large = true, .zero = 32};  // q6_k
  }
}
static_assert(tile_format(DType::kQ4_0).unit_bytes() == kQ4TileBlock);

// Bytes in this layout. REQUIRES: byte_size() accepts the shape.
int64_t layout_size(DType dtype, int64_t rows, int64_t columns);

// Which rows of a weight.
struct RowRange {
  int64_t first = 0;
  int64_t last = 0;  // One beyond.
};

// Rows of `file`, a whole weight in the file's layout, to `out`, which is zeroed and of
// layout_size() bytes. Ranges that begin on multiples of kTileRows write to different bytes.
void lay_out(DType dtype, RowRange rows, int64_t columns, ByteSpan file, std::byte* out);

// Of a tiled weight: one row's block of 32. The bits of d and m are not set.
QuantBlock tiled_block(DType dtype, const std::byte* weight, int64_t columns, int64_t row,
                       int64_t block);

}  // namespace shoal::compute
