// What every kernel shares: the types of its buffers, its push constants, exact arithmetic, and how it
// reads weights. A kernel includes this after `#version 460`.
//
// A kernel has no descriptors, but where it says `#pragma shoal_texels`. It is handed the addresses of its buffers as push constants, in the
// order of op_params.h; what is behind an address is only ever read as 32-bit words, so no feature for
// small types is asked of a device.
#extension GL_EXT_buffer_reference : require

#include "shaders/exact_math.h"
#include "shaders/op_params.h"

#ifndef GROUP_SIZE
#define GROUP_SIZE 64  // As `#pragma shoal_group` says; this where it is not said.
#endif
layout(local_size_x = GROUP_SIZE) in;

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Texels { uvec4 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Rows { RowPlace at[]; };

// The end of every kernel's push constants; its buffers stand before, 8 bytes each, at most five.
// Matches DispatchBlock in compute/backends/vulkan/vulkan_backend.cpp.
#define CALL(Params)                 \
  layout(offset = 40) Words status;  \
  layout(offset = 48) Params p;      \
  layout(offset = 112) uint call_index; \
  layout(offset = 116) uint invocations

// This invocation's number; those from `invocations` on have nothing to do. The groups are spread over
// two dimensions because a device may take as few as 65535 in one.
uint invocation() {
  return (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_WorkGroupSize.x +
         gl_LocalInvocationID.x;
}

// Sum and product, each rounded on its own. Kernels write no bare + or * between floats, and ask for no
// [[unroll]]: spirv-opt's unrolled copies lose the word `precise` (vulkan_test looks for that).
float plus(float a, float b) {
  precise float r = a + b;
  return r;
}
float minus(float a, float b) {
  precise float r = a - b;
  return r;
}
float times(float a, float b) {
  precise float r = a * b;
  return r;
}

// Byte i of a word as a signed number.
int signed_byte(uint word, int i) { return bitfieldExtract(int(word), 8 * i, 8); }

// The sum of four products of signed bytes.
int dot_bytes(uint a, uint b) {
  return signed_byte(a, 0) * signed_byte(b, 0) + signed_byte(a, 1) * signed_byte(b, 1) +
         signed_byte(a, 2) * signed_byte(b, 2) + signed_byte(a, 3) * signed_byte(b, 3);
}

// Half i (0 or 1) of a word.
uint half_bits(uint word, uint i) { return (word >> (16u * i)) & 0xFFFFu; }

vec4 plus(vec4 a, vec4 b) {
  precise vec4 r = a + b;
  return r;
}
vec4 times(vec4 a, vec4 b) {
  precise vec4 r = a * b;
  return r;
}
vec4 factors(vec4 v) {
  return vec4(exact_factor(v.x), exact_factor(v.y), exact_factor(v.z), exact_factor(v.w));
}

// A float chunk: lanes 0-3 and 4-7, and the order in which they are added. Where a chunk ends inside a
// group of eight, the missing products may be added as zeros: a lane begins with +0, so it is never -0.
struct Lanes {
  vec4 low, high;
};
float sum_lanes(Lanes lanes) {
  return plus(plus(plus(lanes.low.x, lanes.low.y), plus(lanes.low.z, lanes.low.w)),
              plus(plus(lanes.high.x, lanes.high.y), plus(lanes.high.z, lanes.high.w)));
}

// Four floats from element i on; zeros from element `last` on.
vec4 load_four(Floats from, uint base, uint i, uint last) {
  if (i + 4u <= last) {
    return vec4(from.at[base + i], from.at[base + i + 1u], from.at[base + i + 2u], from.at[base + i + 3u]);
  }
  vec4 v = vec4(0.0);
  if (i < last) v.x = from.at[base + i];
  if (i + 1u < last) v.y = from.at[base + i + 1u];
  if (i + 2u < last) v.z = from.at[base + i + 2u];
  return v;
}

// Weights lie as upload_weight() repacks them (weight_layout.h). Floats row by row:
//   f32    a word each, through exact_factor()
//   f16, bf16   two to a word, a row padded to whole words; bf16 through exact_factor()
// Quantised types in tiles of 32 rows: a texel of four words of each row in turn, so that neighbouring
// invocations, which do neighbouring rows, read neighbouring texels. The texels of a row, chunk by chunk
// of up to eight blocks of 32:
//   heads  q8_0, q4_0, q5_0: the blocks' f16 d, two to a word, in one texel; q4_1, q5_1: a word of d and m
//          for each block; types of 256 elements: a texel with two bytes of each block, its first scale
//          and its second or its minimum, and one whose first word is d and m
//   bits   a word of fifth bits a block, or two of fifth and sixth ones, in the order of the elements
//   codes  q8_0: two texels a block, an element a byte; others: one of nibbles, the first sixteen
//          elements the low ones
#if defined(VARIANT_Q5_0) || defined(VARIANT_Q5_1) || defined(VARIANT_Q5_K)
#define BIT_WORDS 1u
#elif defined(VARIANT_Q6_K)
#define BIT_WORDS 2u
#else
#define BIT_WORDS 0u
#endif
#if defined(VARIANT_Q4_K) || defined(VARIANT_Q5_K) || defined(VARIANT_Q6_K)
#define UNIT_IS_CHUNK  // The type's own blocks have 256 elements.
#endif
#if defined(VARIANT_Q4_1) || defined(VARIANT_Q5_1) || defined(VARIANT_Q4_K) || defined(VARIANT_Q5_K)
#define HAS_MINIMUM
#endif
#if !defined(VARIANT_F32) && !defined(VARIANT_F16) && !defined(VARIANT_BF16)
#define QUANTISED
#endif

#if !defined(QUANTISED)
// Words of a row.
uint weight_stride(uint k) {
#if defined(VARIANT_F32)
  return k;
#else
  return (k + 1u) / 2u;
#endif
}
#endif

float half_value(uint bits) {
#if defined(VARIANT_BF16)
  return exact_bfloat16_to_float(bits);
#else
  return exact_half_to_float(bits);
#endif
}

// Says that this call would make a NaN or an infinity. Of several calls the first is told, because
// later ones only inherit its fault.
#define REPORT_NON_FINITE() atomicMin(status.at[0], call_index)
