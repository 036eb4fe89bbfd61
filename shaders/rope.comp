#version 460
#extension GL_GOOGLE_include_directive : require
#pragma shoal_grid(0 1 2/2)
#include "shaders/lib.glsl"

layout(push_constant, std430) uniform Call {
  layout(offset = 0) Floats x;
  layout(offset = 8) Floats table;
  layout(offset = 16) Rows rows;
  layout(offset = 24) Floats result;
  CALL(RopeParams);
};

// One invocation turns a pair, or copies two elements beyond `rotary`. It reads both before it writes,
// so the result may lie in the input's place.
void main() {
  uint i = invocation();
  if (i >= invocations) return;
  uint pairs = (p.head_dim + 1u) / 2u;
  uint pair = i % pairs;
  uint head = i / pairs;  // Counted over all rows.
  uint row = head / p.heads;
  uint base = head * p.head_dim;
  uint half_rotary = p.rotary / 2u;
  if (pair >= half_rotary) {
    uint element = 2u * pair;  // rotary is even, so rotary + 2 * (pair - rotary / 2).
    result.at[base + element] = exact_flush(x.at[base + element]);
    if (element + 1u < p.head_dim) {
      result.at[base + element + 1u] = exact_flush(x.at[base + element + 1u]);
    }
    return;
  }
  uint a = base + (p.interleaved != 0u ? 2u * pair : pair);
  uint b = base + (p.interleaved != 0u ? 2u * pair + 1u : pair + half_rotary);
  uint angle = 2u * (rows.at[row].position * half_rotary + pair);
  float cosine = exact_factor(table.at[angle]);
  float sine = exact_factor(table.at[angle + 1u]);
  float xa = exact_factor(x.at[a]);
  float xb = exact_factor(x.at[b]);
  float ya = exact_flush(minus(times(xa, cosine), times(xb, sine)));
  float yb = exact_flush(plus(times(xa, sine), times(xb, cosine)));
  if (!exact_is_finite(ya) || !exact_is_finite(yb)) REPORT_NON_FINITE();
  result.at[a] = ya;
  result.at[b] = yb;
}
