#version 460
#extension GL_GOOGLE_include_directive : require
#pragma shoal_grid(0)
#include "shaders/lib.glsl"

layout(push_constant, std430) uniform Call {
  layout(offset = 0) Floats x;
  layout(offset = 8) Floats result;
  CALL(RouteParams);
};

float share(uint at, float largest) {
  return exact_factor(exact_exp(minus(exact_flush(x.at[at]), largest)));
}

// One invocation does a row: as many passes over its experts as it uses, each finding the best one that
// stands behind the last in the order. Nothing that is not finite makes it name an expert beyond them.
void main() {
  uint row = invocation();
  if (row >= invocations) return;
  uint base = row * p.experts;
  uint to = row * 2u * p.used;
  bool finite = true;
  for (uint e = 0u; e < p.experts; ++e) finite = finite && exact_is_finite(x.at[base + e]);
  float largest = 0.0;
  for (uint slot = 0u; slot < p.used; ++slot) {
    uint best = p.experts;
    float best_x = 0.0;
    for (uint e = 0u; e < p.experts; ++e) {
      bool taken = false;
      for (uint other = 0u; other < slot; ++other) {
        taken = taken || uint(result.at[to + other]) == e;
      }
      float v = exact_flush(x.at[base + e]);
      if (!taken && (best == p.experts || v > best_x)) {
        best = e;
        best_x = v;
      }
    }
    if (slot == 0u) largest = best_x;
    result.at[to + slot] = float(best);
  }
  float sum = 0.0;
  if (p.renormalise != 0u) {
    for (uint slot = 0u; slot < p.used; ++slot) {
      sum = plus(sum, share(base + uint(result.at[to + slot]), largest));
    }
  } else {
    for (uint e = 0u; e < p.experts; ++e) sum = plus(sum, share(base + e, largest));
  }
  float inverse = exact_reciprocal(sum);
  for (uint slot = 0u; slot < p.used; ++slot) {
    float e = share(base + uint(result.at[to + slot]), largest);
    result.at[to + p.used + slot] = exact_flush(times(e, inverse));
  }
  if (!finite) REPORT_NON_FINITE();
}
