#version 460
#extension GL_GOOGLE_include_directive : require
#pragma shoal_grid(0 1)
#include "shaders/lib.glsl"

layout(push_constant, std430) uniform Call {
  layout(offset = 0) Floats x;
  layout(offset = 8) Floats bias;
  layout(offset = 16) Floats result;
  CALL(BiasParams);
};

void main() {
  uint i = invocation();
  if (i >= invocations) return;
  float y = exact_flush(plus(exact_flush(x.at[i]), exact_factor(bias.at[i % p.width])));
  if (!exact_is_finite(y)) REPORT_NON_FINITE();
  result.at[i] = y;
}
