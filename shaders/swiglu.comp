#version 460
#extension GL_GOOGLE_include_directive : require
#pragma shoal_grid(0 1)
#include "shaders/lib.glsl"

layout(push_constant, std430) uniform Call {
  layout(offset = 0) Floats gate;
  layout(offset = 8) Floats up;
  layout(offset = 16) Floats result;
  CALL(SwigluParams);
};

void main() {
  uint i = invocation();
  if (i >= invocations) return;
  float y = exact_flush(times(exact_silu(exact_flush(gate.at[i])), exact_flush(up.at[i])));
  if (!exact_is_finite(y)) REPORT_NON_FINITE();
  result.at[i] = y;
}
