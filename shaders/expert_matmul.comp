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
#pragma shoal_grid(0 1 4)
#include "shaders/lib.glsl"

layout(push_constant, std430) uniform Call {
#if defined(QUANTISED)
  layout(offset = 0) Words x;
  layout(offset = 8) Texels weight;
#else
  layout(offset = 0) Floats x;
  layout(offset = 8) Words weight;
#endif
  layout(offset = 16) Floats routes;
  layout(offset = 24) Floats result;
  CALL(ExpertMatmulParams);
};

#include "shaders/dot.glsl"

void main() {
  uint i = invocation();
  if (i >= invocations) return;
  uint column = i % p.n;
  uint place = i / p.n;
  uint row = place / p.used;
  uint slot = place % p.used;
  uint expert = uint(routes.at[row * 2u * p.used + slot]);
  uint w_row = expert * p.n + column;
  uint from = p.slots == 1u ? 0u : slot * p.k;
  uint width = p.slots * p.k;
#if defined(QUANTISED)
  uint x_row = row * (width / 4u + width / 32u);
  float y = exact_flush(
      dot_row(x_row + from / 4u, x_row + width / 4u + from / 32u, w_row, p.k));
#else
  float y = exact_flush(dot_row(row * width + from, w_row * weight_stride(p.k), p.k));
#endif
  if (!exact_is_finite(y)) REPORT_NON_FINITE();
  result.at[i] = y;
}
