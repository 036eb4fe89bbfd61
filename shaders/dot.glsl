// The dot products of matmul and expert_matmul, included after their buffers `x` and `weight`.

#if defined(QUANTISED)

#include "shaders/tiles.glsl"

// What a block adds to a sum: `low` and `high` are the products of its halves, x_low and x_high the sums
// of its activations. The integer parts are exact in any order.
float block_product(int low, int high, int x_low, int x_high, Scales scales, float x_scale) {
#if defined(VARIANT_Q8_0)
  int sum = low + high;
#elif defined(VARIANT_Q4_0)
  int sum = low + high - 8 * (x_low + x_high);
#elif defined(VARIANT_Q5_0)
  int sum = low + high - 16 * (x_low + x_high);
#elif defined(VARIANT_Q6_K)
  int sum = scales.first * (low - 32 * x_low) + scales.second * (high - 32 * x_high);
#else
  int sum = scales.first * (low + high);
#endif
  float result = times(float(sum), times(scales.d, x_scale));
#if defined(HAS_MINIMUM)
  result = plus(result, times(float(scales.second * (x_low + x_high)), times(scales.m, x_scale)));
#endif
  return result;
}

// k values at word x_values, their scales at word x_scales, and a row of the weight.
float dot_row(uint x_values, uint x_scales, uint w_row, uint k) {
  uint blocks = k / SHOAL_QUANT_BLOCK;
  uint at = first_texel(w_row, row_texels(k));
  float sum = 0.0;
  for (uint first = 0u; first < blocks; first += kChunkBlocks) {
    uint count = min(blocks - first, kChunkBlocks);
    Heads heads = load_heads(at, count);
    float chunk = 0.0;
    for (uint block = 0u; block < count; ++block) {
      Codes codes = load_codes(at, count, block);
      uint x_at = x_values + 8u * (first + block);
      int low = 0;
      int high = 0;
      int x_low = 0;
      int x_high = 0;
      for (uint j = 0u; j < 4u; ++j) {
        low += dot_bytes(x.at[x_at + j], codes.low[j]);
        high += dot_bytes(x.at[x_at + 4u + j], codes.high[j]);
#if !defined(VARIANT_Q8_0)
        x_low += dot_bytes(x.at[x_at + j], 0x01010101u);
        x_high += dot_bytes(x.at[x_at + 4u + j], 0x01010101u);
#endif
      }
      float x_scale = uintBitsToFloat(x.at[x_scales + first + block]);
      chunk = plus(chunk, block_product(low, high, x_low, x_high, block_scales(heads, block), x_scale));
    }
    sum = first == 0u ? chunk : plus(sum, chunk);
    at += chunk_texels(kChunkBlocks) * kTileRows;
  }
  return sum;
}

#else

// Four weights from element i on, i being a multiple of 4; zeros from the row's end on. They are
// factors already: upload_weight() sees to the small ones, and no half is that small.
vec4 load_weights(uint w_row, uint i, uint k) {
#if defined(VARIANT_F32)
  return load_four(Floats(weight), w_row, i, k);
#else
  uint first = weight.at[w_row + i / 2u];
  uint second = i + 2u < k ? weight.at[w_row + i / 2u + 1u] : 0u;
  return vec4(half_value(first & 0xFFFFu), half_value(first >> 16), half_value(second & 0xFFFFu),
              half_value(second >> 16));
#endif
}

// k elements of x from x_row on, and a weight's row.
float dot_row(uint x_row, uint w_row, uint k) {
  float sum = 0.0;
  for (uint first = 0u; first < k; first += SHOAL_SUM_CHUNK) {
    Lanes lanes = Lanes(vec4(0.0), vec4(0.0));
    uint last = min(first + SHOAL_SUM_CHUNK, k);
    for (uint i = first; i < last; i += SHOAL_SUM_LANES) {
      lanes.low =
          plus(lanes.low, times(factors(load_four(x, x_row, i, last)), load_weights(w_row, i, k)));
      if (i + 4u < last) {
        lanes.high = plus(lanes.high, times(factors(load_four(x, x_row, i + 4u, last)),
                                            load_weights(w_row, i + 4u, k)));
      }
    }
    float chunk = sum_lanes(lanes);
    sum = first == 0u ? chunk : plus(sum, chunk);
  }
  return sum;
}

#endif
