#version 460
#extension GL_GOOGLE_include_directive : require
#pragma shoal_grid(0 1)
#include "shaders/lib.glsl"

layout(push_constant, std430) uniform Call {
  layout(offset = 0) Floats x;
  layout(offset = 8) Floats result;
  CALL(ScaleParams);
};

void main() {
  uint i = invocation();
  if (i >= invocations) return;
  float y = exact_flush(times(exact_flush(x.at[i]), p.scale));
  if (!exact_is_finite(y)) REPORT_NON_FINITE();
  result.at[i] = y;
}
