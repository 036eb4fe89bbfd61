#version 460
#extension GL_GOOGLE_include_directive : require
#pragma shoal_grid(0 1)
#include "shaders/lib.glsl"

layout(push_constant, std430) uniform Call {
  layout(offset = 0) Floats x;
  layout(offset = 8) Words picked;
  layout(offset = 16) Floats result;
  CALL(SelectRowsParams);
};

void main() {
  uint i = invocation();
  if (i >= invocations) return;
  uint row = picked.at[i / p.width];
  if (row >= p.rows_in) return;
  float y = exact_flush(x.at[row * p.width + i % p.width]);
  if (!exact_is_finite(y)) REPORT_NON_FINITE();
  result.at[i] = y;
}
