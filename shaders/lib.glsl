// What every kernel shares: the types of its buffers, its push constants, exact arithmetic, and how it
// reads weights. A kernel includes this after `#version 460`.
//
// A kernel has no descriptors. It is handed the addresses of its buffers as push constants, in the
// order of op_params.h; what is behind an address is only ever read as 32-bit words, so no feature for
// small types is asked of a device. No kernel waits for another invocation: barriers cost a software
// driver more than the sharing saves.
#extension GL_EXT_buffer_reference : require

#include "shaders/exact_math.h"
#include "shaders/op_params.h"

layout(local_size_x = 64) in;

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Rows { RowInfo at[]; };

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

// Weights lie row by row as upload_weight() repacks them (weight_layout.h):
//   f32    a word each, through exact_factor()
//   f16, bf16   two to a word, a row padded to whole words; bf16 through exact_factor()
//   q8_0   the row's int8 values, four to a word, then its f16 scales, two to a word
//   q4_0   the row's nibbles, 4 words a block as in the file, then its f16 scales, two to a word
//   others VALUE_WORDS a block of 32: nibbles as for q4_0, then a word of fifth bits, or two of fifth
//          and sixth ones, in the order of the elements; then for types of 256 elements a word of each
//          block's first scale and its second or its minimum; then the f16 d and m of each block of
//          the file in a word
#if defined(VARIANT_Q4_1) || defined(VARIANT_Q4_K)
#define VALUE_WORDS 4u
#elif defined(VARIANT_Q5_0) || defined(VARIANT_Q5_1) || defined(VARIANT_Q5_K)
#define VALUE_WORDS 5u
#elif defined(VARIANT_Q6_K)
#define VALUE_WORDS 6u
#endif
#if defined(VARIANT_Q4_K) || defined(VARIANT_Q5_K) || defined(VARIANT_Q6_K)
#define UNIT_BLOCKS 8u
#else
#define UNIT_BLOCKS 1u
#endif
#if defined(VARIANT_Q4_1) || defined(VARIANT_Q5_1) || defined(VARIANT_Q4_K) || defined(VARIANT_Q5_K)
#define HAS_MINIMUM
#endif
#if defined(VALUE_WORDS) || defined(VARIANT_Q8_0) || defined(VARIANT_Q4_0)
#define QUANTISED
#endif

uint weight_stride(uint k) {
#if defined(VARIANT_F32)
  return k;
#elif defined(VARIANT_Q8_0)
  return k / 4u + (k / 32u + 1u) / 2u;
#elif defined(VARIANT_Q4_0)
  return k / 8u + (k / 32u + 1u) / 2u;
#elif defined(VALUE_WORDS)
  uint blocks = k / 32u;
  return blocks * VALUE_WORDS + (UNIT_BLOCKS > 1u ? blocks : 0u) + blocks / UNIT_BLOCKS;
#else
  return (k + 1u) / 2u;
#endif
}

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
