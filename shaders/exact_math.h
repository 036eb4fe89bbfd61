// Exact arithmetic, written once and read by C++, GLSL and CUDA (docs/EXACT.md). Only + - * on f32,
// each rounded on its own, comparisons, integer and bit operations; every step is spelled out, so all
// planes produce the same bits. Build C++ with -ffp-contract=off and CUDA with --fmad=false.
#ifndef SHOAL_EXACT_MATH_H
#define SHOAL_EXACT_MATH_H

#ifdef __cplusplus
#include <cstdint>
#include <cstring>
namespace shoal::exact {
using uint = uint32_t;
#ifdef __CUDACC__
#define SHOAL_EXACT_FN __host__ __device__ inline
#else
#define SHOAL_EXACT_FN inline
#endif
#define precise  // GLSL's word for "do not contract"; C++ has the compiler flag.
SHOAL_EXACT_FN uint floatBitsToUint(float x) { uint u; std::memcpy(&u, &x, 4); return u; }
SHOAL_EXACT_FN float uintBitsToFloat(uint u) { float x; std::memcpy(&x, &u, 4); return x; }
#else
#define SHOAL_EXACT_FN
#endif

// Lengths that fix the order of sums. Changing one changes bits: a new numerics_version.
// A dot product or sum over K is cut into chunks of 256 elements from index 0. Chunk results are
// added in ascending order, starting from the first chunk's result.
// - Float chunk: 8 lanes, lane l sums the elements k with k mod 8 = l in ascending k, starting from
//   +0; the chunk is ((l0+l1)+(l2+l3))+((l4+l5)+(l6+l7)).
// - Quantised chunk: blocks of 32 in ascending order, starting from +0; each adds
//   float(integer sum of the block) * (weight scale * activation scale).
// Attention walks positions in chunks of 32 from position 0 (see attention.cpp).
#define SHOAL_NUMERICS_VERSION 1
#define SHOAL_SUM_CHUNK 256
#define SHOAL_SUM_LANES 8
#define SHOAL_QUANT_BLOCK 32
#define SHOAL_ATTENTION_CHUNK 32

// A value below 2^-100 in magnitude becomes +0, so that no subnormal decides a result.
SHOAL_EXACT_FN float exact_flush(float x) {
  return (floatBitsToUint(x) & 0x7FFFFFFFu) < 0x0D800000u ? 0.0f : x;
}

SHOAL_EXACT_FN bool exact_is_finite(float x) {
  return (floatBitsToUint(x) & 0x7F800000u) != 0x7F800000u;
}

// To the nearest integer, ties to even. REQUIRES: |x| < 2^22.
SHOAL_EXACT_FN float exact_round(float x) {
  precise float t = x + 12582912.0f;
  precise float r = t - 12582912.0f;
  return r;
}

// 1/x. REQUIRES: 2^-100 <= |x| <= 2^100.
SHOAL_EXACT_FN float exact_reciprocal(float x) {
  uint bits = floatBitsToUint(x);
  precise float a = uintBitsToFloat(bits & 0x7FFFFFFFu);
  precise float y = uintBitsToFloat(0x7EF311C7u - (bits & 0x7FFFFFFFu));
  for (int i = 0; i < 4; ++i) {
    precise float p = a * y;
    precise float t = 1.0f - p;
    precise float d = y * t;
    y = y + d;
  }
  return uintBitsToFloat(floatBitsToUint(y) | (bits & 0x80000000u));
}

// 1/sqrt(x). REQUIRES: 2^-100 <= x <= 2^100.
SHOAL_EXACT_FN float exact_rsqrt(float x) {
  precise float half_x = 0.5f * x;
  precise float y = uintBitsToFloat(0x5F375A86u - (floatBitsToUint(x) >> 1));
  for (int i = 0; i < 4; ++i) {
    precise float h = half_x * y;
    precise float p = h * y;
    precise float t = 0.5f - p;
    precise float d = y * t;
    y = y + d;
  }
  return y;
}

// e^x for x <= 80; +0 below -69 (under 2^-100). Range reduction by ln 2 in two parts, then the
// degree-5 polynomial of the Cephes library's expf (S. Moshier).
SHOAL_EXACT_FN float exact_exp(float x) {
  if (x < -69.0f) return 0.0f;
  precise float scaled = x * 1.44269504088896341f;
  precise float n = exact_round(scaled);
  precise float hi = n * 0.693359375f;
  precise float lo = n * -2.12194440e-4f;
  precise float r1 = x - hi;
  precise float r = r1 - lo;
  precise float p = 1.9875691500e-4f;
  p = p * r; p = p + 1.3981999507e-3f;
  p = p * r; p = p + 8.3334519073e-3f;
  p = p * r; p = p + 4.1665795894e-2f;
  p = p * r; p = p + 1.6666665459e-1f;
  p = p * r; p = p + 5.0000001201e-1f;
  precise float r2 = r * r;
  precise float q = p * r2;
  q = q + r;
  q = q + 1.0f;
  precise float scale = uintBitsToFloat(uint(int(n) + 127) << 23);
  precise float result = q * scale;
  return result;
}

// 1/(1+e^-x), for any finite x.
SHOAL_EXACT_FN float exact_sigmoid(float x) {
  float magnitude = uintBitsToFloat(floatBitsToUint(x) & 0x7FFFFFFFu);
  precise float e = exact_exp(-magnitude);
  precise float s = 1.0f + e;
  precise float r = exact_reciprocal(s);
  precise float er = e * r;
  return x < 0.0f ? er : r;
}

SHOAL_EXACT_FN float exact_silu(float x) {
  precise float y = x * exact_sigmoid(x);
  return exact_flush(y);
}

// IEEE binary16 in the low 16 bits to f32; subnormal halves become normal floats, infinities and
// NaNs keep their kind.
SHOAL_EXACT_FN float exact_half_to_float(uint h) {
  uint sign = (h & 0x8000u) << 16;
  uint exponent = (h >> 10) & 0x1Fu;
  uint mantissa = h & 0x3FFu;
  if (exponent == 0u) {
    precise float magnitude = float(mantissa) * 5.9604644775390625e-8f;  // 2^-24
    return uintBitsToFloat(floatBitsToUint(magnitude) | sign);
  }
  if (exponent == 31u) return uintBitsToFloat(sign | 0x7F800000u | (mantissa << 13));
  return uintBitsToFloat(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

// f32 to IEEE binary16 bits, ties to even; too large becomes infinity (the caller reports it).
SHOAL_EXACT_FN uint exact_float_to_half(float x) {
  uint bits = floatBitsToUint(x);
  uint sign = (bits >> 16) & 0x8000u;
  uint magnitude = bits & 0x7FFFFFFFu;
  if (magnitude >= 0x7F800000u) return sign | (magnitude > 0x7F800000u ? 0x7E00u : 0x7C00u);
  if (magnitude >= 0x477FF000u) return sign | 0x7C00u;
  if (magnitude < 0x33000001u) return sign;  // At most half of the smallest subnormal.
  if (magnitude < 0x38800000u) {             // A subnormal half: shift the full mantissa.
    uint shift = 126u - (magnitude >> 23);
    uint mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
    uint kept = mantissa >> shift;
    uint rest = mantissa & ((1u << shift) - 1u);
    uint tie = 1u << (shift - 1u);
    if (rest > tie || (rest == tie && (kept & 1u) != 0u)) kept += 1u;
    return sign | kept;
  }
  uint rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return sign | ((rounded - 0x38000000u) >> 13);
}

SHOAL_EXACT_FN float exact_bfloat16_to_float(uint h) { return uintBitsToFloat(h << 16); }

#ifdef __cplusplus
#undef precise
}  // namespace shoal::exact
#endif
#endif
