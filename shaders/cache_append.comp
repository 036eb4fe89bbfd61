#version 460
#extension GL_GOOGLE_include_directive : require
#pragma shoal_variant(f32)
#pragma shoal_variant(f16)
#pragma shoal_grid(0 1)
#include "shaders/lib.glsl"

layout(push_constant, std430) uniform Call {
  layout(offset = 0) Floats x;
  layout(offset = 8) Rows rows;
  layout(offset = 16) Words state;
  CALL(CacheAppendParams);
};

void main() {
  uint i = invocation();
  if (i >= invocations) return;
  RowPlace row = rows.at[i / p.width];
  uint column = i % p.width;
  uint page = Words(rows).at[row.pages + row.position / SHOAL_ATTENTION_CHUNK];
  uint to = (page * SHOAL_ATTENTION_CHUNK + row.position % SHOAL_ATTENTION_CHUNK) * p.width + column;
#if defined(VARIANT_F32)
  state.at[to] = floatBitsToUint(exact_factor(x.at[i]));
  if (!exact_is_finite(x.at[i])) REPORT_NON_FINITE();
#else
  uint bits = exact_float_to_half(x.at[i]);
  if ((bits & 0x7C00u) == 0x7C00u) REPORT_NON_FINITE();
  // Two elements share a word. The even one writes both; where an odd width lets rows share a word,
  // each puts its own half in by itself.
  if ((p.width & 1u) == 0u) {
    if ((column & 1u) != 0u) return;
    state.at[to / 2u] = bits | (exact_float_to_half(x.at[i + 1u]) << 16);
  } else {
    uint shift = 16u * (to & 1u);
    atomicAnd(state.at[to / 2u], ~(0xFFFFu << shift));
    atomicOr(state.at[to / 2u], bits << shift);
  }
#endif
}
