#version 460
#extension GL_GOOGLE_include_directive : require
#pragma shoal_variant(f32)
#pragma shoal_variant(f16)
#pragma shoal_variant(bf16)
#pragma shoal_variant(q8_0)
#pragma shoal_variant(q4_0)
#pragma shoal_grid(0 1)
#include "shaders/lib.glsl"

layout(push_constant, std430) uniform Call {
  layout(offset = 0) Words tokens;
  layout(offset = 8) Words table;
  layout(offset = 16) Floats result;
  CALL(EmbedParams);
};

void main() {
  uint i = invocation();
  if (i >= invocations) return;
  uint token = tokens.at[i / p.width];
  if (token >= p.vocabulary) return;
  uint column = i % p.width;
  uint row = token * weight_stride(p.width);
#if defined(VARIANT_F32)
  float y = uintBitsToFloat(table.at[row + column]);
#elif defined(VARIANT_Q8_0)
  uint block = column / 32u;
  float scale = half_value(half_bits(table.at[row + p.width / 4u + block / 2u], block & 1u));
  float y = times(float(signed_byte(table.at[row + column / 4u], int(column & 3u))), scale);
#elif defined(VARIANT_Q4_0)
  // A byte holds elements j and j + 16 of its block.
  uint block = column / 32u;
  uint element = column & 31u;
  float scale = half_value(half_bits(table.at[row + p.width / 8u + block / 2u], block & 1u));
  uint word = table.at[row + 4u * block + (element & 15u) / 4u];
  int nibble = int((word >> (8u * (element & 3u) + (element < 16u ? 0u : 4u))) & 15u);
  float y = times(float(nibble - 8), scale);
#else
  float y = half_value(half_bits(table.at[row + column / 2u], column & 1u));
#endif
  y = exact_factor(y);
  if (!exact_is_finite(y)) REPORT_NON_FINITE();
  result.at[i] = y;
}
