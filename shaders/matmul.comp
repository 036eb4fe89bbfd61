#version 460
#extension GL_GOOGLE_include_directive : require
#pragma shoal_variant(f32)
#pragma shoal_variant(f16)
#pragma shoal_variant(bf16)
#pragma shoal_variant(q8_0)
#pragma shoal_variant(q4_0)
#pragma shoal_grid(0 1)
#include "shaders/lib.glsl"

layout(push_constant, std430) uniform Call {
#if defined(VARIANT_Q8_0) || defined(VARIANT_Q4_0)
  layout(offset = 0) Words x;
#else
  layout(offset = 0) Floats x;
#endif
  layout(offset = 8) Words weight;
  layout(offset = 16) Floats result;
  CALL(MatmulParams);
};

#if defined(VARIANT_Q8_0) || defined(VARIANT_Q4_0)

// The integer part of block `block`: exact in any order.
int block_sum(uint x_row, uint w_row, uint block) {
  int sum = 0;
#if defined(VARIANT_Q8_0)
  for (uint j = 0u; j < 8u; ++j) {
    sum += dot_bytes(x.at[x_row + 8u * block + j], weight.at[w_row + 8u * block + j]);
  }
#else
  // A weight is a nibble less 8; the eights are taken off together.
  for (uint j = 0u; j < 4u; ++j) {
    uint low = x.at[x_row + 8u * block + j];
    uint high = x.at[x_row + 8u * block + 4u + j];
    uint word = weight.at[w_row + 4u * block + j];
    sum += dot_bytes(low, word & 0x0F0F0F0Fu) + dot_bytes(high, (word >> 4) & 0x0F0F0F0Fu) -
           8 * (dot_bytes(low, 0x01010101u) + dot_bytes(high, 0x01010101u));
  }
#endif
  return sum;
}

float dot_row(uint row, uint column) {
  uint blocks = p.k / 32u;
  uint x_row = row * (p.k / 4u + blocks);
  uint w_row = column * weight_stride(p.k);
#if defined(VARIANT_Q8_0)
  uint scales = w_row + p.k / 4u;
#else
  uint scales = w_row + p.k / 8u;
#endif
  float sum = 0.0;
  float chunk = 0.0;
  for (uint block = 0u; block < blocks; ++block) {
    float weight_scale = half_value(half_bits(weight.at[scales + block / 2u], block & 1u));
    float x_scale = uintBitsToFloat(x.at[x_row + p.k / 4u + block]);
    chunk = plus(chunk, times(float(block_sum(x_row, w_row, block)), times(weight_scale, x_scale)));
    const uint kBlocksPerChunk = SHOAL_SUM_CHUNK / SHOAL_QUANT_BLOCK;
    if (block % kBlocksPerChunk == kBlocksPerChunk - 1u || block + 1u == blocks) {
      sum = block < kBlocksPerChunk ? chunk : plus(sum, chunk);
      chunk = 0.0;
    }
  }
  return sum;
}

#else

// Four weights from element k on, k being a multiple of 4; zeros from the row's end on. They are
// factors already: upload_weight() sees to the small ones, and no half is that small.
vec4 load_weights(uint w_row, uint k) {
#if defined(VARIANT_F32)
  return load_four(Floats(weight), w_row, k, p.k);
#else
  uint first = weight.at[w_row + k / 2u];
  uint second = k + 2u < p.k ? weight.at[w_row + k / 2u + 1u] : 0u;
  return vec4(half_value(first & 0xFFFFu), half_value(first >> 16), half_value(second & 0xFFFFu),
              half_value(second >> 16));
#endif
}

float dot_row(uint row, uint column) {
  uint x_row = row * p.k;
  uint w_row = column * weight_stride(p.k);
  float sum = 0.0;
  for (uint first = 0u; first < p.k; first += SHOAL_SUM_CHUNK) {
    Lanes lanes = Lanes(vec4(0.0), vec4(0.0));
    uint last = min(first + SHOAL_SUM_CHUNK, p.k);
    for (uint k = first; k < last; k += SHOAL_SUM_LANES) {
      lanes.low = plus(lanes.low, times(factors(load_four(x, x_row, k, last)), load_weights(w_row, k)));
      if (k + 4u < last) {
        lanes.high = plus(lanes.high, times(factors(load_four(x, x_row, k + 4u, last)),
                                            load_weights(w_row, k + 4u)));
      }
    }
    float chunk = sum_lanes(lanes);
    sum = first == 0u ? chunk : plus(sum, chunk);
  }
  return sum;
}

#endif

void main() {
  uint i = invocation();
  if (i >= invocations) return;
  uint row = i / p.n;
  uint column = i % p.n;
  float y = exact_flush(dot_row(row, column));
  if (!exact_is_finite(y)) REPORT_NON_FINITE();
  result.at[row * p.n_total + p.n_first + column] = y;
}
