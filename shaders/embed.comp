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

layout(push_constant, std430) uniform Call {
  layout(offset = 0) Words tokens;
#if defined(QUANTISED)
  layout(offset = 8) Texels weight;
#else
  layout(offset = 8) Words weight;
#endif
  layout(offset = 16) Floats result;
  CALL(EmbedParams);
};

#include "shaders/table.glsl"

void main() {
  uint i = invocation();
  if (i >= invocations) return;
  uint token = tokens.at[i / p.width];
  if (token >= p.vocabulary) return;
  uint column = i % p.width;
  float y = exact_factor(table_element(token, p.width, column));
  if (!exact_is_finite(y)) REPORT_NON_FINITE();
  result.at[i] = y;
}
