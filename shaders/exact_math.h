// Exact arithmetic, written once and read by C++, GLSL and CUDA (docs/EXACT.md). Only + - * on f32,
// each rounded on its own, comparisons, integer and bit operations; every step is spelled out, so
// all planes produce the same bits. Build C++ with -ffp-contract=off and CUDA with --fmad=false.
// With SHOAL_FAST defined none of that holds: a build to measure what exactness costs.
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
SHOAL_EXACT_FN uint floatBitsToUint(float x) {
  uint u;
  std::memcpy(&u, &x, 4);
  return u;
}
SHOAL_EXACT_FN float uintBitsToFloat(uint u) {
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}
#else
#define SHOAL_EXACT_FN
#endif

// Lengths that fix the order of sums. Changing one changes bits: a new numerics_version.
// A dot product or sum over K is cut into chunks of 256 elements from index 0. Chunk results are
// added in ascending order, starting from the first chunk's result.
// - Float chunk: 8 lanes, lane l sums the elements k with k mod 8 = l in ascending k, starting from
//   +0; the chunk is ((l0+l1)+(l2+l3))+((l4+l5)+(l6+l7)). Both factors of every product go through
//   exact_factor() first, so that no product is subnormal.
// - Quantised chunk: blocks of 32 in ascending order, starting from +0; each adds
//   float(integer sum of the block) * (weight scale * activation scale).
// Attention walks positions in chunks of 32 from position 0 (compute/ops/attention.cpp).
#define SHOAL_NUMERICS_VERSION 1
#define SHOAL_SUM_CHUNK 256
#define SHOAL_SUM_LANES 8
#define SHOAL_QUANT_BLOCK 32
#define SHOAL_ATTENTION_CHUNK 32

// Subnormals: planes differ in keeping them, so none may ever arise or be read. Every f32 that an
// op reads from a buffer goes through exact_flush() or exact_factor(), and every f32 that it writes
// through exact_flush(). Elements of f32 and bf16 weights go through exact_factor() wherever they
// are used, so a plane may do that once when it uploads them. With factors of 2^-50 and more,
// products are 2^-100 and more, their sums are multiples of 2^-123, and what cancels leaves a
// normal number or zero.
#define SHOAL_FLUSH_BITS 0x0D800000u      // 2^-100
#define SHOAL_FACTOR_BITS 0x26800000u     // 2^-50
#define SHOAL_MAGNITUDE_BITS 0x71800000u  // 2^100

// A value below 2^-100 in magnitude becomes +0.
SHOAL_EXACT_FN float exact_flush(float x) {
#ifdef SHOAL_FAST
  return x;
#endif
  return (floatBitsToUint(x) & 0x7FFFFFFFu) < SHOAL_FLUSH_BITS ? 0.0f : x;
}

// A factor of a product that is summed: below 2^-50 in magnitude it becomes +0.
SHOAL_EXACT_FN float exact_factor(float x) {
#ifdef SHOAL_FAST
  return x;
#endif
  return (floatBitsToUint(x) & 0x7FFFFFFFu) < SHOAL_FACTOR_BITS ? 0.0f : x;
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

// 1/x. A magnitude outside 2^-100 .. 2^100 counts as the bound that it passed.
SHOAL_EXACT_FN float exact_reciprocal(float x) {
  uint bits = floatBitsToUint(x);
  uint magnitude = bits & 0x7FFFFFFFu;
  if (magnitude < SHOAL_FLUSH_BITS) magnitude = SHOAL_FLUSH_BITS;
  if (magnitude > SHOAL_MAGNITUDE_BITS) magnitude = SHOAL_MAGNITUDE_BITS;
  precise float a = uintBitsToFloat(magnitude);
  precise float y = uintBitsToFloat(0x7EF311C7u - magnitude);
  for (int i = 0; i < 4; ++i) {
    precise float p = a * y;
    precise float t = 1.0f - p;
    precise float d = y * t;
    y = y + d;
  }
  return uintBitsToFloat(floatBitsToUint(y) | (bits & 0x80000000u));
}

// 1/sqrt(x) for x >= 0. Below 2^-100 it counts as 2^-100; above, any finite x is in the domain.
SHOAL_EXACT_FN float exact_rsqrt(float x) {
  precise float a = floatBitsToUint(x) < SHOAL_FLUSH_BITS ? uintBitsToFloat(SHOAL_FLUSH_BITS) : x;
  precise float half_x = 0.5f * a;
  precise float y = uintBitsToFloat(0x5F375A86u - (floatBitsToUint(a) >> 1));
  for (int i = 0; i < 4; ++i) {
    precise float h = half_x * y;
    precise float p = h * y;
    precise float t = 0.5f - p;
    precise float d = y * t;
    y = y + d;
  }
  return y;
}

// e^x; x above 80 counts as 80, and below -69 (under 2^-99) the result is +0. Range reduction by ln
// 2 in two parts, then the degree-5 polynomial of the Cephes library's expf (S. Moshier).
SHOAL_EXACT_FN float exact_exp(float x) {
  if (x < -69.0f) return 0.0f;
  if (x > 80.0f) x = 80.0f;
  precise float scaled = x * 1.44269504088896341f;
  precise float t = scaled + 12582912.0f;  // exact_round(), with the integer kept in t's low bits.
  precise float n = t - 12582912.0f;
  uint n_bits = floatBitsToUint(t) - 0x4B400000u;
  precise float hi = n * 0.693359375f;
  precise float lo = n * -2.12194440e-4f;
  precise float r1 = x - hi;
  precise float r = r1 - lo;
  precise float p = 1.9875691500e-4f;
  p = p * r;
  p = p + 1.3981999507e-3f;
  p = p * r;
  p = p + 8.3334519073e-3f;
  p = p * r;
  p = p + 4.1665795894e-2f;
  p = p * r;
  p = p + 1.6666665459e-1f;
  p = p * r;
  p = p + 5.0000001201e-1f;
  precise float r2 = r * r;
  precise float q = p * r2;
  q = q + r;
  q = q + 1.0f;
  precise float scale = uintBitsToFloat((n_bits + 127u) << 23);
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

// tanh of any finite x. Near 0 an odd polynomial (that of the Cephes library's tanhf, S. Moshier),
// so that small results keep their digits; from 0.625 on (1 - e) / (1 + e) with e = exp(-2 |x|).
SHOAL_EXACT_FN float exact_tanh(float x) {
  uint bits = floatBitsToUint(x);
  float a = uintBitsToFloat(bits & 0x7FFFFFFFu);
  if (a < 0.000244140625f) return exact_flush(x);  // 2^-12: x^3 / 3 is less than half a step.
  precise float result = 0.0f;
  if (a < 0.625f) {
    precise float z = a * a;
    precise float p = -5.70498872745e-3f;
    p = p * z;
    p = p + 2.06390887954e-2f;
    p = p * z;
    p = p - 5.37397155531e-2f;
    p = p * z;
    p = p + 1.33314422036e-1f;
    p = p * z;
    p = p - 3.33332819422e-1f;
    p = p * z;
    p = p * a;
    result = a + p;
  } else {
    precise float twice = a * -2.0f;
    precise float e = exact_exp(twice);
    precise float above = 1.0f - e;
    precise float below = 1.0f + e;
    result = above * exact_reciprocal(below);
  }
  return uintBitsToFloat(floatBitsToUint(result) | (bits & 0x80000000u));
}

// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), which is x * sigmoid(twice what tanh is
// of). Beyond 16 the sigmoid is 0 or 1, so its argument need not grow.
SHOAL_EXACT_FN float exact_gelu_tanh(float x) {
  float t = exact_factor(x);
  if (t > 16.0f) t = 16.0f;
  if (t < -16.0f) t = -16.0f;
  precise float square = t * t;
  precise float cubic = square * 0.044715f;
  precise float inner = 1.0f + cubic;
  precise float u = t * inner;
  precise float scaled = u * 1.59576912160573071f;
  precise float y = x * exact_sigmoid(scaled);
  return exact_flush(y);
}

// x * Phi(x), Phi being the normal distribution: Phi(-a) = erfc(a / sqrt 2) / 2, and erfc(b) =
// t * exp(p(t) - b^2) with t = 1 / (1 + b / 2) and a polynomial that was fitted for b up to 6.5.
SHOAL_EXACT_FN float exact_gelu_erf(float x) {
  float a = uintBitsToFloat(floatBitsToUint(x) & 0x7FFFFFFFu);
  if (a > 9.0f) a = 9.0f;
  precise float b = exact_factor(a) * 0.707106781186547524f;
  precise float half_b = 0.5f * b;
  precise float below = 1.0f + half_b;
  precise float t = exact_reciprocal(below);
  precise float p = 9.492629113e-2f;
  p = p * t;
  p = p - 4.004365992e-1f;
  p = p * t;
  p = p + 4.745738108e-1f;
  p = p * t;
  p = p + 2.469697136e-1f;
  p = p * t;
  p = p - 8.954364935e-1f;
  p = p * t;
  p = p + 4.56922206e-1f;
  p = p * t;
  p = p - 1.297913632e-1f;
  p = p * t;
  p = p + 4.23483259e-1f;
  p = p * t;
  p = p + 9.939862101e-1f;
  p = p * t;
  p = p - 1.265197014f;
  precise float square = b * b;
  precise float exponent = p - square;
  precise float tail = t * exact_exp(exponent);
  precise float half_tail = 0.5f * tail;
  precise float whole = 1.0f - half_tail;
  precise float y = x * (x < 0.0f ? half_tail : whole);
  return exact_flush(y);
}

// cap * tanh(x / cap); `inverse_cap` is 1 / cap, rounded once on the host.
SHOAL_EXACT_FN float exact_soft_cap(float x, float cap, float inverse_cap) {
  precise float part = exact_flush(x) * inverse_cap;
  precise float y = cap * exact_tanh(exact_flush(part));
  return exact_flush(y);
}

// Quantising a block of 32 by the bits of its largest magnitude. Below 2^-50 the whole block is
// zero with scale 0; above 2^100 the op reports non_finite instead.
SHOAL_EXACT_FN float exact_quant_scale(uint largest_bits) {
  if (largest_bits < SHOAL_FACTOR_BITS) return 0.0f;
  precise float scale = uintBitsToFloat(largest_bits) * 0.00787401574803149606f;  // 1/127
  return scale;
}
SHOAL_EXACT_FN float exact_quant_inverse(uint largest_bits) {
  if (largest_bits < SHOAL_FACTOR_BITS) return 0.0f;
  precise float inverse = 127.0f * exact_reciprocal(uintBitsToFloat(largest_bits));
  return inverse;
}
// -127 .. 127: x * inverse to the nearest integer, ties to even.
SHOAL_EXACT_FN int exact_quant_value(float x, float inverse) {
  precise float scaled = x * inverse;
  precise float t = scaled + 12582912.0f;
  int q = int(floatBitsToUint(t) - 0x4B400000u);
  return q < -127 ? -127 : (q > 127 ? 127 : q);
}

// IEEE binary16 in the low 16 bits to f32; subnormal halves become normal floats, infinities and
// NaNs keep their kind.
SHOAL_EXACT_FN float exact_half_to_float(uint h) {
  uint sign = (h & 0x8000u) << 16;
  uint magnitude = h & 0x7FFFu;
  // All three are computed and one is chosen: no branch in any plane's inner loop.
  precise float small_float = float(magnitude) * 5.9604644775390625e-8f;  // 2^-24
  uint small = floatBitsToUint(small_float);
  uint normal = (magnitude << 13) + 0x38000000u;
  uint special = (magnitude << 13) | 0x7F800000u;
  uint finite = magnitude < 0x400u ? small : normal;
  uint bits = magnitude < 0x7C00u ? finite : special;
  return uintBitsToFloat(bits | sign);
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

// A small bfloat16 becomes a subnormal f32: use it through exact_flush() or exact_factor().
SHOAL_EXACT_FN float exact_bfloat16_to_float(uint h) { return uintBitsToFloat(h << 16); }

#ifdef __cplusplus
#undef precise
}  // namespace shoal::exact
#endif
#endif
