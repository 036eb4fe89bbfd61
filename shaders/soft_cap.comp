#version 460
#extension GL_GOOGLE_include_directive : require
#pragma shoal_grid(0 1)
#include "shaders/lib.glsl"

layout(push_constant, std430) uniform Call {
  layout(offset = 0) Floats x;
  layout(offset = 8) Floats result;
  CALL(SoftCapParams);
};

void main() {
  uint i = invocation();
  if (i >= invocations) return;
  if (!exact_is_finite(x.at[i])) REPORT_NON_FINITE();
  result.at[i] = exact_soft_cap(x.at[i], p.cap, p.inverse_cap);
}
