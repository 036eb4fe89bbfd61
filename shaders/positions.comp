#version 460
#extension GL_GOOGLE_include_directive : require
#pragma shoal_variant(f32)
#pragma shoal_variant(f16)
#pragma shoal_variant(bf16)
#pragma shoal_variant(q8_0)
#pragma shoal_variant(q4_0)
#pragma shoal_variant(q4_1)
#pragma shoal_variant(q5_0)
#pragma shoal_variant(q5_1)
#pragma shoal_variant(q4_k)
#pragma shoal_variant(q5_k)
#pragma shoal_variant(q6_k)
#pragma shoal_grid(0 1)
#include "shaders/lib.glsl"
#include "shaders/table.glsl"

layout(push_constant, std430) uniform Call {
  layout(offset = 0) Words table;
  layout(offset = 8) Rows rows;
  layout(offset = 16) Floats result;
  CALL(PositionsParams);
};

void main() {
  uint i = invocation();
  if (i >= invocations) return;
  uint position = rows.at[i / p.width].position;
  if (position >= p.positions) {
    REPORT_NON_FINITE();
    return;
  }
  uint row = position * weight_stride(p.width);
  float y = exact_factor(table_element(table, row, p.width, i % p.width));
  if (!exact_is_finite(y)) REPORT_NON_FINITE();
  result.at[i] = y;
}
