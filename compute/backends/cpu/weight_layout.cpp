#include "compute/backends/cpu/weight_layout.h"

#include <algorithm>

#include "base/check.h"
#include "shaders/exact_math.h"

namespace shoal::compute {

int64_t layout_size(DType dtype, int64_t rows, int64_t columns) {
  const int64_t kept = is_tiled(dtype) ? (rows + kTileRows - 1) / kTileRows * kTileRows : rows;
  const Result<int64_t> size = byte_size(dtype, {kept, columns});
  SHOAL_CHECK(size.ok());
  return size.value();
}

void lay_out(DType dtype, int64_t rows, int64_t columns, ByteSpan file, std::byte* out) {
  if (is_tiled(dtype)) {
    const int64_t block_bytes = dtype == DType::kQ8_0 ? 34 : 18;
    const int64_t groups = (block_bytes - 2) / 4;
    const int64_t blocks = columns / 32;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t block = 0; block < blocks; ++block) {
        const std::byte* from = file.data() + (row * blocks + block) * block_bytes;
        std::byte* tile = out + (row / kTileRows * blocks + block) * (kTileRows * block_bytes);
        std::memcpy(tile + row % kTileRows * 2, from, 2);
        for (int64_t group = 0; group < groups; ++group) {
          std::memcpy(tile + kTileRows * 2 + (group * kTileRows + row % kTileRows) * 4,
                      from + 2 + group * 4, 4);
        }
      }
    }
    return;
  }
  std::copy(file.begin(), file.end(), out);
  for (int64_t i = 0; i < rows * columns; ++i) {
    if (dtype == DType::kF32) {
      float value;
      std::memcpy(&value, out + i * 4, 4);
      value = exact::exact_factor(value);
      std::memcpy(out + i * 4, &value, 4);
    } else if (dtype == DType::kBF16) {
      const float value = exact::exact_bfloat16_to_float(load_le<uint16_t>(out + i * 2));
      if (exact::exact_factor(value) == 0.0f) store_le<uint16_t>(out + i * 2, 0);
    }
  }
}

float tiled_block(DType dtype, const std::byte* weight, int64_t columns, int64_t row, int64_t block,
                  int8_t (&values)[32]) {
  const int64_t tile_bytes = dtype == DType::kQ8_0 ? kQ8TileBlock : kQ4TileBlock;
  const int64_t lane = row % kTileRows;
  const std::byte* tile = weight + (row / kTileRows * (columns / 32) + block) * tile_bytes;
  const std::byte* quants = tile + kTileRows * 2;
  for (int64_t i = 0; i < 32; ++i) {
    if (dtype == DType::kQ8_0) {
      values[i] = static_cast<int8_t>(quants[(i / 4 * kTileRows + lane) * 4 + i % 4]);
    } else {
      const int64_t j = i % 16;
      const auto pair = static_cast<int>(quants[(j / 4 * kTileRows + lane) * 4 + j % 4]);
      values[i] = static_cast<int8_t>((i < 16 ? pair & 15 : pair >> 4) - 8);
    }
  }
  return exact::exact_half_to_float(load_le<uint16_t>(tile + lane * 2));
}

}  // namespace shoal::compute
