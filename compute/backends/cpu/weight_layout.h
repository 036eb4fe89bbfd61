#pragma once
// How the CPU plane keeps weights, chosen for its kernels. A quantised weight's rows stand in tiles
// of eight (the last one filled up with zeros); for each block of 32 along K a tile holds eight f16
// scales, then the eight rows' integers in groups of four bytes, row by row within a group. So one
// load brings the same four elements of eight rows. f32 and bf16 stay as in the file, small values
// zeroed.

#include <cstdint>

#include "base/bytes.h"
#include "compute/graph/tensor.h"

namespace shoal::compute {

constexpr int64_t kTileRows = 8;
constexpr int64_t kQ8TileBlock = kTileRows * 34;
constexpr int64_t kQ4TileBlock = kTileRows * 18;

inline bool is_tiled(DType dtype) { return dtype == DType::kQ8_0 || dtype == DType::kQ4_0; }

// Bytes in this layout. REQUIRES: byte_size() accepts the shape.
int64_t layout_size(DType dtype, int64_t rows, int64_t columns);

// `file` in the file's layout to `out`, which is zeroed and of layout_size() bytes.
void lay_out(DType dtype, int64_t rows, int64_t columns, ByteSpan file, std::byte* out);

// Of a tiled weight: the scale and the integers of one row's block.
float tiled_block(DType dtype, const std::byte* weight, int64_t columns, int64_t row, int64_t block,
                  int8_t (&values)[32]);

}  // namespace shoal::compute
