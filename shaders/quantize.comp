#version 460
#extension GL_GOOGLE_include_directive : require
#pragma shoal_grid(0 1/32)
#include "shaders/lib.glsl"

layout(push_constant, std430) uniform Call {
  layout(offset = 0) Floats x;
  layout(offset = 8) Words result;
  CALL(QuantizeParams);
};

// One invocation does a block of 32.
void main() {
  uint i = invocation();
  if (i >= invocations) return;
  uint blocks = p.width / 32u;
  uint row = i / blocks;
  uint block = i % blocks;
  uint from = row * p.width + 32u * block;
  uint to = row * (p.width / 4u + blocks);
  uint largest = 0u;  // Magnitudes are ordered as their bits are.
  for (uint k = 0u; k < 32u; ++k) {
    largest = max(largest, floatBitsToUint(x.at[from + k]) & 0x7FFFFFFFu);
  }
  if (largest > SHOAL_MAGNITUDE_BITS) REPORT_NON_FINITE();
  float inverse = exact_quant_inverse(largest);
  for (uint word = 0u; word < 8u; ++word) {
    uint bytes = 0u;
    for (uint j = 0u; j < 4u; ++j) {
      int q = exact_quant_value(exact_flush(x.at[from + 4u * word + j]), inverse);
      bytes |= (uint(q) & 0xFFu) << (8u * j);
    }
    result.at[to + 8u * block + word] = bytes;
  }
  result.at[to + p.width / 4u + block] = floatBitsToUint(exact_quant_scale(largest));
}
