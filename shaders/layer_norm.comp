#version 460
#extension GL_GOOGLE_include_directive : require
#pragma shoal_grid(0)
#include "shaders/lib.glsl"

layout(push_constant, std430) uniform Call {
  layout(offset = 0) Floats x;
  layout(offset = 8) Floats weight;
  layout(offset = 16) Floats bias;
  layout(offset = 24) Floats result;
  CALL(LayerNormParams);
};

vec4 flushes(vec4 v) {
  return vec4(exact_flush(v.x), exact_flush(v.y), exact_flush(v.z), exact_flush(v.w));
}

// Four elements less the mean; zeros from element `last` on.
vec4 centred_four(uint base, uint i, uint last, float mean) {
  vec4 v = flushes(load_four(x, base, i, last));
  vec4 result = vec4(0.0);
  for (uint j = 0u; j < 4u; ++j) {
    if (i + j < last) result[j] = exact_flush(minus(v[j], mean));
  }
  return result;
}

// One invocation does a whole row.
void main() {
  uint row = invocation();
  if (row >= invocations) return;
  uint base = row * p.width;
  float sum = 0.0;
  for (uint first = 0u; first < p.width; first += SHOAL_SUM_CHUNK) {
    Lanes lanes = Lanes(vec4(0.0), vec4(0.0));
    uint last = min(first + SHOAL_SUM_CHUNK, p.width);
    for (uint k = first; k < last; k += SHOAL_SUM_LANES) {
      lanes.low = plus(lanes.low, flushes(load_four(x, base, k, last)));
      lanes.high = plus(lanes.high, flushes(load_four(x, base, k + 4u, last)));
    }
    float chunk = sum_lanes(lanes);
    sum = first == 0u ? chunk : plus(sum, chunk);
  }
  float mean = exact_flush(times(exact_flush(sum), p.inverse_width));
  float squares = 0.0;
  for (uint first = 0u; first < p.width; first += SHOAL_SUM_CHUNK) {
    Lanes lanes = Lanes(vec4(0.0), vec4(0.0));
    uint last = min(first + SHOAL_SUM_CHUNK, p.width);
    for (uint k = first; k < last; k += SHOAL_SUM_LANES) {
      vec4 low = factors(centred_four(base, k, last, mean));
      vec4 high = factors(centred_four(base, k + 4u, last, mean));
      lanes.low = plus(lanes.low, times(low, low));
      lanes.high = plus(lanes.high, times(high, high));
    }
    float chunk = sum_lanes(lanes);
    squares = first == 0u ? chunk : plus(squares, chunk);
  }
  float variance = times(squares, p.inverse_width);
  float inverse = exact_rsqrt(plus(variance, p.epsilon));
  bool finite = exact_is_finite(mean) && exact_is_finite(variance);
  for (uint i = 0u; i < p.width; ++i) {
    float centred = exact_flush(minus(exact_flush(x.at[base + i]), mean));
    float scaled = exact_flush(times(centred, inverse));
    float weighted = exact_flush(times(scaled, exact_factor(weight.at[i])));
    float y = exact_flush(plus(weighted, exact_factor(bias.at[i])));
    finite = finite && exact_is_finite(y);
    result.at[base + i] = y;
  }
  if (!finite) REPORT_NON_FINITE();
}
