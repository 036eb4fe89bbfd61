// How kernels read weights (weights.h says how they lie), and what a block of one adds to a sum.
#pragma once

#include "compute/backends/cuda/kernel.h"
#include "compute/backends/cuda/weights.h"

namespace shoal::compute::cuda {

template <DType T>
SHOAL_DEVICE float half_value(uint16_t bits) {
  return T == DType::kBF16 ? exact_bfloat16_to_float(bits) : exact_half_to_float(bits);
}

// Four bits, or four pairs of bits, to the fifth (and sixth) bits of a word's bytes.
SHOAL_DEVICE uint spread_bits(uint bits) {
  return (((bits & 15u) * 0x00204081u) & 0x01010101u) << 4;
}
SHOAL_DEVICE uint spread_pairs(uint bits) {
  return ((bits & 3u) | (bits & 0x0Cu) << 6 | (bits & 0x30u) << 12 | (bits & 0xC0u) << 18) << 4;
}

// What goes with a block: factors, and for types of 256 elements integers.
struct Scales {
  float d = 0.0f, m = 0.0f;
  int first = 1, second = 1;
};

// A row of a weight of type T.
template <DType T>
struct WeightRow {
  static constexpr WeightFormat kFormat = weight_format(T);
  const std::byte* at;
  RowLayout layout;

  SHOAL_DEVICE WeightRow(const std::byte* weight, uint64_t row, uint columns)
      : layout(row_layout(weight_format(T), columns)) {
    at = weight + row * layout.stride;
  }

  // An element of a float type.
  SHOAL_DEVICE float element(uint i) const {
    if constexpr (T == DType::kF32) return reinterpret_cast<const float*>(at)[i];
    return half_value<T>(reinterpret_cast<const uint16_t*>(at)[i]);
  }

  // A block's 32 integers, four to a word, without what is taken off each.
  SHOAL_DEVICE void load_codes(uint block, uint (&codes)[8]) const {
    if constexpr (T == DType::kQ8_0) {
      const FourWords low = load_four_words(at + 32u * block);
      const FourWords high = load_four_words(at + 32u * block + 16u);
      SHOAL_UNROLL
      for (int j = 0; j < 4; ++j) {
        codes[j] = low.at[j];
        codes[4 + j] = high.at[j];
      }
      return;
    }
    const FourWords words = load_four_words(at + 16u * block);
    SHOAL_UNROLL
    for (int j = 0; j < 4; ++j) {
      codes[j] = words.at[j] & 0x0F0F0F0Fu;
      codes[4 + j] = (words.at[j] >> 4) & 0x0F0F0F0Fu;
    }
    const uint* high = reinterpret_cast<const uint*>(at + layout.high);
    if constexpr (kFormat.high_bytes == 4) {
      const uint bits = high[block];
      SHOAL_UNROLL
      for (int j = 0; j < 8; ++j) codes[j] |= spread_bits(bits >> (4 * j));
    }
    if constexpr (kFormat.high_bytes == 8) {
      SHOAL_UNROLL
      for (int j = 0; j < 8; ++j) {
        codes[j] |= spread_pairs(high[2u * block + j / 4] >> (8 * (j % 4)));
      }
    }
  }

  SHOAL_DEVICE Scales load_scales(uint block) const {
    Scales scales;
    const auto* heads = reinterpret_cast<const uint16_t*>(at + layout.heads);
    const uint unit = block / kFormat.unit_blocks;
    scales.d = exact_half_to_float(heads[kFormat.minimum ? 2u * unit : unit]);
    if constexpr (kFormat.minimum) scales.m = exact_half_to_float(heads[2u * unit + 1u]);
    if constexpr (kFormat.scale_bytes != 0) {
      const auto* pair = reinterpret_cast<const uint8_t*>(at + layout.scales) + 2u * block;
      scales.first = T == DType::kQ6_K ? int{static_cast<int8_t>(pair[0])} : int{pair[0]};
      scales.second = T == DType::kQ6_K ? int{static_cast<int8_t>(pair[1])} : int{pair[1]};
    }
    return scales;
  }

  // An element where the weight is read as a table.
  SHOAL_DEVICE float table_element(uint column) const {
    if constexpr (!kFormat.quantised) {
      return element(column);
    } else {
      const uint block = column / 32u, i = column % 32u;
      uint codes[8];
      load_codes(block, codes);
      const Scales scales = load_scales(block);
      uint word = 0;
      SHOAL_UNROLL
      for (uint j = 0; j < 8; ++j) word = i / 4u == j ? codes[j] : word;
      int code = static_cast<int8_t>(word >> (8u * (i % 4u)));
      code = (code - kFormat.zero) * (T == DType::kQ6_K && i >= 16u ? scales.second : scales.first);
      float value = static_cast<float>(code) * scales.d;
      if constexpr (kFormat.minimum) value = value + static_cast<float>(scales.second) * scales.m;
      return value;
    }
  }
};

// What a block adds to a sum. `low` and `high` are the products of its first and its last sixteen
// integers with those of the activations, which by themselves add to x_low and x_high; `a` is the
// activations' scale.
template <DType T>
SHOAL_DEVICE float block_product(int low, int high, int x_low, int x_high, const Scales& scales,
                                 float a) {
  constexpr WeightFormat kFormat = weight_format(T);
  int sum;
  if constexpr (T == DType::kQ6_K) {
    sum = scales.first * (low - 32 * x_low) + scales.second * (high - 32 * x_high);
  } else {
    sum = scales.first * (low + high - kFormat.zero * (x_low + x_high));
  }
  float product = static_cast<float>(sum) * (scales.d * a);
  if constexpr (kFormat.minimum) {
    product = product + static_cast<float>(scales.second * (x_low + x_high)) * (scales.m * a);
  }
  return product;
}

}  // namespace shoal::compute::cuda
