#version 460
#extension GL_GOOGLE_include_directive : require
#pragma shoal_grid(0 1)
#include "shaders/lib.glsl"

layout(push_constant, std430) uniform Call {
  layout(offset = 0) Floats x;
  layout(offset = 8) Floats routes;
  layout(offset = 16) Floats result;
  CALL(CombineParams);
};

void main() {
  uint i = invocation();
  if (i >= invocations) return;
  uint row = i / p.width;
  uint column = i % p.width;
  float sum = 0.0;
  for (uint slot = 0u; slot < p.used; ++slot) {
    float share = exact_factor(routes.at[(row * 2u + 1u) * p.used + slot]);
    sum = plus(sum, times(share, exact_factor(x.at[(row * p.used + slot) * p.width + column])));
  }
  float y = exact_flush(sum);
  if (!exact_is_finite(y)) REPORT_NON_FINITE();
  result.at[i] = y;
}
