#version 460
#extension GL_GOOGLE_include_directive : require
#pragma shoal_grid(0)
#include "shaders/lib.glsl"

layout(push_constant, std430) uniform Call {
  layout(offset = 0) Floats x;
  layout(offset = 8) Floats weight;
  layout(offset = 16) Floats result;
  CALL(RmsNormParams);
};

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
      vec4 low = factors(load_four(x, base, k, last));
      vec4 high = factors(load_four(x, base, k + 4u, last));
      lanes.low = plus(lanes.low, times(low, low));
      lanes.high = plus(lanes.high, times(high, high));
    }
    float chunk = sum_lanes(lanes);
    sum = first == 0u ? chunk : plus(sum, chunk);
  }
  float mean = times(sum, p.inverse_width);
  float inverse = exact_rsqrt(plus(mean, p.epsilon));
  bool finite = exact_is_finite(mean);
  for (uint i = 0u; i < p.width; ++i) {
    float scaled = exact_flush(times(exact_flush(x.at[base + i]), inverse));
    float y = exact_flush(times(scaled, exact_factor(weight.at[i])));
    finite = finite && exact_is_finite(y);
    result.at[base + i] = y;
  }
  if (!finite) REPORT_NON_FINITE();
}
