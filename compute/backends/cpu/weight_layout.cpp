#include "compute/backends/cpu/weight_layout.h"

#include <algorithm>

#include "base/check.h"
#include "shaders/exact_math.h"

namespace shoal::compute {

namespace {

bool is_plain(DType dtype) { return dtype == DType::kQ8_0 || dtype == DType::kQ4_0; }

// Any nibble type, by what its blocks mean.
void lay_out_tiles(DType dtype, RowRange rows, int64_t columns, ByteSpan file, std::byte* out) {
  const TileFormat format = tile_format(dtype);
  const int64_t blocks = columns / 32;
  for (int64_t row = rows.first; row < rows.last; ++row) {
    const int64_t lane = row % kTileRows;
    std::byte* tile = out + row / kTileRows * (blocks / format.blocks()) * format.unit_bytes();
    for (int64_t index = 0; index < blocks; ++index) {
      const QuantBlock block = load_block(dtype, file, row * blocks + index);
      std::byte* unit = tile + index / format.blocks() * format.unit_bytes();
      store_le<uint16_t>(unit + lane * 2, block.d_bits);
      if (format.minimum) store_le<uint16_t>(unit + 16 + lane * 2, block.m_bits);
      std::byte* at = unit + format.head_bytes() + index % format.blocks() * format.block_bytes();
      if (format.large) {
        at[lane] = static_cast<std::byte>(block.scales[0]);
        at[8 + lane] = static_cast<std::byte>(format.minimum ? block.minimum : block.scales[1]);
        at += format.scale_bytes();
      }
      for (int64_t i = 0; i < 32; ++i) {
        const auto code = static_cast<uint32_t>(block.values[i] + format.zero);
        const int64_t byte = lane * 4 + i % 4, group = i / 4;
        at[group % 4 * 32 + byte] |= static_cast<std::byte>((code & 15) << (i < 16 ? 0 : 4));
        if (format.bits == 5) at[128 + byte] |= static_cast<std::byte>((code >> 4) << group);
        if (format.bits == 6) {
          at[128 + group / 4 * 32 + byte] |= static_cast<std::byte>((code >> 4) << (group % 4 * 2));
        }
      }
    }
  }
}

// Types whose tiles keep a block's bytes as the file does, four by four.
void lay_out_plain_tiles(DType dtype, RowRange rows, int64_t columns, ByteSpan file,
                         std::byte* out) {
  const int64_t block_bytes = dtype == DType::kQ8_0 ? 34 : 18;
  const int64_t groups = (block_bytes - 2) / 4, blocks = columns / 32;
  for (int64_t row = rows.first; row < rows.last; row += kTileRows) {
    const int64_t lanes = std::min(kTileRows, rows.last - row);
    std::byte* tile = out + row / kTileRows * blocks * (kTileRows * block_bytes);
    for (int64_t block = 0; block < blocks; ++block, tile += kTileRows * block_bytes) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const std::byte* from = file.data() + ((row + lane) * blocks + block) * block_bytes;
        std::memcpy(tile + lane * 2, from, 2);
        std::byte* to = tile + kTileRows * 2 + lane * 4;
        for (int64_t group = 0; group < groups; ++group)
          std::memcpy(to + group * kTileRows * 4, from + 2 + group * 4, 4);
      }
    }
  }
}

}  // namespace

int64_t layout_size(DType dtype, int64_t rows, int64_t columns) {
  const int64_t kept = is_tiled(dtype) ? (rows + kTileRows - 1) / kTileRows * kTileRows : rows;
  if (is_tiled(dtype) && !is_plain(dtype)) {
    const TileFormat format = tile_format(dtype);
    return kept / kTileRows * (columns / 32 / format.blocks()) * format.unit_bytes();
  }
  const Result<int64_t> size = byte_size(dtype, {kept, columns});
  SHOAL_CHECK(size.ok());
  return size.value();
}

void lay_out(DType dtype, RowRange rows, int64_t columns, ByteSpan file, std::byte* out) {
  if (is_plain(dtype)) {
    lay_out_plain_tiles(dtype, rows, columns, file, out);
    return;
  }
  if (is_tiled(dtype)) {
    lay_out_tiles(dtype, rows, columns, file, out);
    return;
  }
  const Result<int64_t> row_bytes = byte_size(dtype, {1, columns});
  SHOAL_CHECK(row_bytes.ok());
  const int64_t begin = rows.first * row_bytes.value(), end = rows.last * row_bytes.value();
  out += begin;
  std::memcpy(out, file.data() + begin, static_cast<size_t>(end - begin));
  for (int64_t i = 0; i < (rows.last - rows.first) * columns; ++i) {
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

QuantBlock tiled_block(DType dtype, const std::byte* weight, int64_t columns, int64_t row,
                       int64_t block) {
  QuantBlock result;
  const int64_t lane = row % kTileRows;
  const int64_t tile_index = row / kTileRows;
  const auto half = [](const std::byte* at) {
    return exact::exact_half_to_float(load_le<uint16_t>(at));
  };
  if (dtype == DType::kQ8_0) {
    const std::byte* tile = weight + (tile_index * (columns / 32) + block) * kQ8TileBlock;
    const std::byte* quants = tile + kTileRows * 2;
    for (int64_t i = 0; i < 32; ++i)
      result.values[i] = static_cast<int8_t>(quants[(i / 4 * kTileRows + lane) * 4 + i % 4]);
    result.d = half(tile + lane * 2);
    return result;
  }
  const TileFormat format = tile_format(dtype);
  const int64_t units = columns / 32 / format.blocks();
  const std::byte* unit =
      weight + (tile_index * units + block / format.blocks()) * format.unit_bytes();
  const std::byte* at = unit + format.head_bytes() + block % format.blocks() * format.block_bytes();
  result.d = half(unit + lane * 2);
  if (format.minimum) {
    result.m = half(unit + 16 + lane * 2);
    result.minimum = 1;
  }
  if (format.large) {
    const auto first = static_cast<uint8_t>(at[lane]), second = static_cast<uint8_t>(at[8 + lane]);
    if (format.minimum) {
      result.scales[0] = result.scales[1] = first;
      result.minimum = second;
    } else {
      result.scales[0] = static_cast<int8_t>(first);
      result.scales[1] = static_cast<int8_t>(second);
    }
    at += format.scale_bytes();
  }
  const auto byte_at = [at](int64_t index) { return static_cast<int>(at[index]); };
  for (int64_t i = 0; i < 32; ++i) {
    const int64_t byte = lane * 4 + i % 4, group = i / 4;
    int code = byte_at(group % 4 * 32 + byte) >> (i < 16 ? 0 : 4) & 15;
    if (format.bits == 5) code |= (byte_at(128 + byte) >> group & 1) << 4;
    if (format.bits == 6) {
      code |= (byte_at(128 + group / 4 * 32 + byte) >> (group % 4 * 2) & 3) << 4;
    }
    result.values[i] = static_cast<int16_t>(code - format.zero);
  }
  return result;
}

}  // namespace shoal::compute
