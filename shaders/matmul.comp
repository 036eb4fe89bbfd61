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
#if defined(QUANTISED)
  layout(offset = 0) Words x;
  layout(offset = 8) Texels weight;
#else
  layout(offset = 0) Floats x;
  layout(offset = 8) Words weight;
#endif
  layout(offset = 16) Floats result;
  CALL(MatmulParams);
};

#include "shaders/dot.glsl"

void main() {
  uint i = invocation();
  if (i >= invocations) return;
  uint row = i / p.n;
  uint column = i % p.n;
#if defined(QUANTISED)
  uint x_row = row * (p.k / 4u + p.k / 32u);
  float y = exact_flush(dot_row(x_row, x_row + p.k / 4u, column, p.k));
#else
  float y = exact_flush(dot_row(row * p.k, column * weight_stride(p.k), p.k));
#endif
  if (!exact_is_finite(y)) REPORT_NON_FINITE();
  result.at[row * p.n_total + p.n_first + column] = y;
}
