#version 460
#extension GL_GOOGLE_include_directive : require
#pragma shoal_grid(0 1)
#include "shaders/lib.glsl"

layout(push_constant, std430) uniform Call {
  layout(offset = 0) Floats a;
  layout(offset = 8) Floats b;
  layout(offset = 16) Floats result;
  CALL(MultiplyParams);
};

void main() {
  uint i = invocation();
  if (i >= invocations) return;
  float y = exact_flush(times(exact_flush(a.at[i]), exact_flush(b.at[i])));
  if (!exact_is_finite(y)) REPORT_NON_FINITE();
  result.at[i] = y;
}
