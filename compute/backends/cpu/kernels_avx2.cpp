// The hot kernels with AVX2 and F16C, in the same order of sums as the portable ones: eight lanes
// of a float chunk are the eight lanes of a register, eight columns of a tile are eight lanes of
// integers. No fused multiply-add: -ffp-contract=off holds for this file too, and the intrinsics
// used are single operations. Half to float by the processor is exact, so it has only one possible
// result.

#include "compute/backends/cpu/kernels.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <cpuid.h>
#include <immintrin.h>

#include <type_traits>

#include "compute/backends/cpu/attention_chunk.h"
#include "compute/backends/cpu/weight_layout.h"
#include "shaders/exact_math.h"

// Only what stands below is compiled for AVX2, and it uses no template of a header: the linker
// might take that instance for the whole program.
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,f16c")
#endif

namespace shoal::compute {
namespace {

using namespace exact;

constexpr int64_t kSpan = 2048;

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

template <class T>
T load_one(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

__m256 broadcast(float x) { return _mm256_set1_ps(x); }

__m256i magnitude_bits(__m256 x) {
  return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7FFFFFFF));
}

__m256 zero_below(__m256 x, [[maybe_unused]] uint32_t bits) {
#ifdef SHOAL_FAST
  return x;
#endif
  const __m256i keep =
      _mm256_cmpgt_epi32(magnitude_bits(x), _mm256_set1_epi32(static_cast<int>(bits - 1)));
  return _mm256_and_ps(x, _mm256_castsi256_ps(keep));
}
__m256 flush8(__m256 x) { return zero_below(x, SHOAL_FLUSH_BITS); }
__m256 factor8(__m256 x) { return zero_below(x, SHOAL_FACTOR_BITS); }

// Lanes that are not finite leave a set bit behind.
struct Finite8 {
  __m256i bad;
  Finite8() : bad(_mm256_setzero_si256()) {}
  __m256 operator()(__m256 x) {
    bad =
        _mm256_or_si256(bad, _mm256_cmpgt_epi32(magnitude_bits(x), _mm256_set1_epi32(0x7F7FFFFF)));
    return x;
  }
  bool all() const { return _mm256_testz_si256(bad, bad) != 0; }
};

// ((l0+l1)+(l2+l3))+((l4+l5)+(l6+l7))
float tree(__m256 lanes) {
  const __m256 pairs = _mm256_hadd_ps(lanes, lanes);
  const __m256 fours = _mm256_hadd_ps(pairs, pairs);
  return _mm_cvtss_f32(_mm_add_ss(_mm256_castps256_ps128(fours), _mm256_extractf128_ps(fours, 1)));
}

// The trees of four registers.
__m128 tree4(__m256 a, __m256 b, __m256 c, __m256 d) {
  const __m256 fours = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
  return _mm_add_ps(_mm256_castps256_ps128(fours), _mm256_extractf128_ps(fours, 1));
}

// exact_exp() of eight numbers. REQUIRES: none is NaN.
__m256 exp8(__m256 x) {
  const __m256 keep = _mm256_cmp_ps(x, broadcast(-69.0f), _CMP_GE_OQ);
  // A lane below -69 is zeroed at the end; until then any number will do that keeps its bits in
  // range.
  x = _mm256_min_ps(_mm256_max_ps(x, broadcast(-69.0f)), broadcast(80.0f));
  const __m256 t =
      _mm256_add_ps(_mm256_mul_ps(x, broadcast(1.44269504088896341f)), broadcast(12582912.0f));
  const __m256 n = _mm256_sub_ps(t, broadcast(12582912.0f));
  const __m256i n_bits = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_set1_epi32(0x4B400000));
  const __m256 r1 = _mm256_sub_ps(x, _mm256_mul_ps(n, broadcast(0.693359375f)));
  const __m256 r = _mm256_sub_ps(r1, _mm256_mul_ps(n, broadcast(-2.12194440e-4f)));
  __m256 p = broadcast(1.9875691500e-4f);
  p = _mm256_add_ps(_mm256_mul_ps(p, r), broadcast(1.3981999507e-3f));
  p = _mm256_add_ps(_mm256_mul_ps(p, r), broadcast(8.3334519073e-3f));
  p = _mm256_add_ps(_mm256_mul_ps(p, r), broadcast(4.1665795894e-2f));
  p = _mm256_add_ps(_mm256_mul_ps(p, r), broadcast(1.6666665459e-1f));
  p = _mm256_add_ps(_mm256_mul_ps(p, r), broadcast(5.0000001201e-1f));
  const __m256 q =
      _mm256_add_ps(_mm256_add_ps(_mm256_mul_ps(p, _mm256_mul_ps(r, r)), r), broadcast(1.0f));
  const __m256i scale = _mm256_slli_epi32(_mm256_add_epi32(n_bits, _mm256_set1_epi32(127)), 23);
  return _mm256_and_ps(_mm256_mul_ps(q, _mm256_castsi256_ps(scale)), keep);
}

// exact_reciprocal() for 1 <= x <= 2.
__m256 reciprocal8(__m256 x) {
  __m256 y =
      _mm256_castsi256_ps(_mm256_sub_epi32(_mm256_set1_epi32(0x7EF311C7), _mm256_castps_si256(x)));
  for (int i = 0; i < 4; ++i) {
    const __m256 t = _mm256_sub_ps(broadcast(1.0f), _mm256_mul_ps(x, y));
    y = _mm256_add_ps(y, _mm256_mul_ps(y, t));
  }
  return y;
}

__m256 sign_bits() { return _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0x80000000u))); }

// exact_sigmoid() of eight numbers. REQUIRES: none is NaN; so for all below.
__m256 sigmoid8(__m256 x) {
  const __m256 e = exp8(_mm256_or_ps(x, sign_bits()));
  const __m256 r = reciprocal8(_mm256_add_ps(broadcast(1.0f), e));
  const __m256 negative = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ);
  return _mm256_blendv_ps(r, _mm256_mul_ps(e, r), negative);
}

__m256 silu8(__m256 x) { return flush8(_mm256_mul_ps(x, sigmoid8(x))); }

__m256 gelu8(__m256 x) {
  const __m256 t = _mm256_max_ps(_mm256_min_ps(factor8(x), broadcast(16.0f)), broadcast(-16.0f));
  const __m256 cubic = _mm256_mul_ps(_mm256_mul_ps(t, t), broadcast(0.044715f));
  const __m256 u = _mm256_mul_ps(t, _mm256_add_ps(broadcast(1.0f), cubic));
  return flush8(_mm256_mul_ps(x, sigmoid8(_mm256_mul_ps(u, broadcast(1.59576912160573071f)))));
}

// exact_tanh(): both of its ways, and the right one is kept.
__m256 tanh8(__m256 x) {
  const __m256 a = _mm256_andnot_ps(sign_bits(), x);
  const __m256 bounded = _mm256_min_ps(a, broadcast(40.0f));  // Where e^-2a is 0 already.
  const __m256 z = _mm256_mul_ps(bounded, bounded);
  __m256 p = _mm256_mul_ps(broadcast(-5.70498872745e-3f), z);
  p = _mm256_mul_ps(_mm256_add_ps(p, broadcast(2.06390887954e-2f)), z);
  p = _mm256_mul_ps(_mm256_sub_ps(p, broadcast(5.37397155531e-2f)), z);
  p = _mm256_mul_ps(_mm256_add_ps(p, broadcast(1.33314422036e-1f)), z);
  p = _mm256_mul_ps(_mm256_sub_ps(p, broadcast(3.33332819422e-1f)), z);
  const __m256 near = _mm256_add_ps(a, _mm256_mul_ps(p, a));
  const __m256 e = exp8(_mm256_mul_ps(bounded, broadcast(-2.0f)));
  const __m256 far = _mm256_mul_ps(_mm256_sub_ps(broadcast(1.0f), e),
                                   reciprocal8(_mm256_add_ps(broadcast(1.0f), e)));
  const __m256 is_near = _mm256_cmp_ps(a, broadcast(0.625f), _CMP_LT_OQ);
  const __m256 is_tiny = _mm256_cmp_ps(a, broadcast(0.000244140625f), _CMP_LT_OQ);
  const __m256 magnitude = _mm256_blendv_ps(far, near, is_near);
  const __m256 result = _mm256_or_ps(magnitude, _mm256_and_ps(x, sign_bits()));
  return _mm256_blendv_ps(result, flush8(x), is_tiny);
}

__m256 soft_cap8(__m256 x, float cap, float inverse_cap) {
  const __m256 part = flush8(_mm256_mul_ps(flush8(x), broadcast(inverse_cap)));
  return flush8(_mm256_mul_ps(broadcast(cap), tanh8(part)));
}

// --- weights of each float type, eight at a time ---

struct LoadF32 {
  static constexpr int64_t kBytes = 4;
  static __m256 eight(const std::byte* at) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(at));
  }
};
struct LoadF16 {
  static constexpr int64_t kBytes = 2;
  static __m256 eight(const std::byte* at) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
};
struct LoadBF16 {
  static constexpr int64_t kBytes = 2;
  static __m256 eight(const std::byte* at) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
};
// The states' f32 elements go through factor() when they are read.
struct LoadState32 {
  static constexpr int64_t kBytes = 4;
  static __m256 eight(const std::byte* at) { return factor8(LoadF32::eight(at)); }
};

// The first `count` of eight, the others +0.
template <class Load>
__m256 load_tail(const std::byte* at, int64_t count) {
  alignas(32) std::byte eight[32] = {};
  std::memcpy(eight, at, static_cast<size_t>(count * Load::kBytes));
  return Load::eight(eight);
}

// Dots of Rows vectors, whose elements went through factor() and end in zeros up to a multiple of
// 8, with four weight rows, in the order of float chunks. A column's sums stand in sums[row] lane
// by lane.
template <class Load, int Rows>
void dot4(const float* const (&x)[Rows], const std::byte* const (&w)[4], int64_t k,
          __m128 (&sums)[Rows]) {
  for (int r = 0; r < Rows; ++r) sums[r] = _mm_setzero_ps();
  for (int64_t begin = 0; begin < k; begin += SHOAL_SUM_CHUNK) {
    const int64_t end = smaller(k, begin + SHOAL_SUM_CHUNK);
    __m256 lanes[Rows][4];
    for (int r = 0; r < Rows; ++r) {
      for (int c = 0; c < 4; ++c) lanes[r][c] = _mm256_setzero_ps();
    }
    int64_t i = begin;
    for (; i + 8 <= end; i += 8) {
      for (int c = 0; c < 4; ++c) {
        const __m256 weight = Load::eight(w[c] + i * Load::kBytes);
        for (int r = 0; r < Rows; ++r) {
          lanes[r][c] =
              _mm256_add_ps(lanes[r][c], _mm256_mul_ps(_mm256_loadu_ps(x[r] + i), weight));
        }
      }
    }
    if (i < end) {
      for (int c = 0; c < 4; ++c) {
        const __m256 weight = load_tail<Load>(w[c] + i * Load::kBytes, end - i);
        for (int r = 0; r < Rows; ++r) {
          lanes[r][c] =
              _mm256_add_ps(lanes[r][c], _mm256_mul_ps(_mm256_loadu_ps(x[r] + i), weight));
        }
      }
    }
    for (int r = 0; r < Rows; ++r) {
      sums[r] = _mm_add_ps(sums[r], tree4(lanes[r][0], lanes[r][1], lanes[r][2], lanes[r][3]));
    }
  }
}

// `count` values through factor() into `out`, followed by zeros up to a multiple of 8.
void factor_row(const float* x, int64_t count, float* out) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) _mm256_storeu_ps(out + i, factor8(_mm256_loadu_ps(x + i)));
  if (i < count) {
    const __m256 tail = load_tail<LoadF32>(reinterpret_cast<const std::byte*>(x + i), count - i);
    _mm256_storeu_ps(out + i, factor8(tail));
  }
}

int64_t padded(int64_t count) { return (count + 7) / 8 * 8; }

// --- matmul, float weights ---

template <class Load>
bool float_matmul(const KernelCall& call, int64_t first, int64_t last, float* scratch) {
  const auto p = call.as<MatmulParams>();
  const int64_t stride = padded(p.k);
  for (int64_t row = 0; row < p.rows; ++row)
    factor_row(call.floats(0) + row * p.k, p.k, scratch + row * stride);
  const int64_t column_end = smaller(p.n, last * kTileRows);
  float* out = call.floats_out(2);
  uint32_t bad = 0;
  const auto store = [&](int64_t row, int64_t column, __m128 four) {
    alignas(16) float values[4];
    _mm_store_ps(values, four);
    for (int64_t c = 0; c < 4 && column + c < column_end; ++c) {
      const float y = exact_flush(values[c]);
      bad |= exact_is_finite(y) ? 0u : 1u;
      out[row * p.n_total + p.n_first + column + c] = y;
    }
  };
  for (int64_t column = first * kTileRows; column < column_end; column += 4) {
    const std::byte* w[4];
    for (int64_t c = 0; c < 4; ++c) {  // Beyond the end: the last column again, not stored.
      w[c] = call.buffers[1] + smaller(column + c, p.n - 1) * p.k * Load::kBytes;
    }
    int64_t row = 0;
    for (; row + 2 <= p.rows; row += 2) {
      const float* const x[2] = {scratch + row * stride, scratch + (row + 1) * stride};
      __m128 sums[2];
      dot4<Load, 2>(x, w, p.k, sums);
      store(row, column, sums[0]);
      store(row + 1, column, sums[1]);
    }
    if (row < p.rows) {
      const float* const x[1] = {scratch + row * stride};
      __m128 sums[1];
      dot4<Load, 1>(x, w, p.k, sums);
      store(row, column, sums[0]);
    }
  }
  return bad == 0;
}

// --- matmul, quantised weights ---

#include "compute/backends/cpu/registers256.inc"

struct V : Registers256 {
  static constexpr bool kWholeBytes = false;  // Two products of whole ones may not fit 16 bits.
  // To each integer the products of its four bytes of four groups with sixteen bytes of x.
  template <int Bits>
  static Ints add_products(Ints sum, const Ints* groups, const std::byte* x) {
    const Ints ones = _mm256_set1_epi16(1);
    // At most 4 * 2 * 31 * 127 in 16 bits, 2 * 2 * 63 * 127, or 2 * 128 * 127.
    constexpr int kTogether = Bits <= 5 ? 4 : Bits == 6 ? 2 : 1;
    for (int first = 0; first < 4; first += kTogether) {
      Ints pairs = no_ints();
      for (int g = first; g < first + kTogether; ++g) {
        const Ints four = each_int(four_bytes(x + g * 4));
        const Ints made = Bits == 8 ? _mm256_maddubs_epi16(_mm256_abs_epi8(groups[g]),
                                                           _mm256_sign_epi8(four, groups[g]))
                                    : _mm256_maddubs_epi16(groups[g], four);
        pairs = g == first ? made : _mm256_add_epi16(pairs, made);
      }
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
    }
    return sum;
  }
};

#include "compute/backends/cpu/products.inc"

bool matmul_avx2(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<MatmulParams>();
  if (is_tiled(call.variant)) return quantised_matmul(call, first, last);
  const Scratch scratch_memory(p.rows * padded(p.k) * 4);
  auto* scratch = static_cast<float*>(scratch_memory.data());
  if (call.variant == DType::kF16) return float_matmul<LoadF16>(call, first, last, scratch);
  if (call.variant == DType::kBF16) return float_matmul<LoadBF16>(call, first, last, scratch);
  return float_matmul<LoadF32>(call, first, last, scratch);
}

bool expert_matmul_avx2(const KernelCall& call, int64_t first, int64_t last) {
  if (!is_tiled(call.variant) || call.as<ExpertMatmulParams>().n % kTileRows != 0) {
    return portable_kernels()[static_cast<size_t>(OpKind::kExpertMatmul)].run(call, first, last);
  }
  return quantised_expert_matmul(call, first, last);
}

// --- attention ---

}  // namespace

ChunkWeights chunk_weights(float* w, int64_t count, const AttentionParams& p) {
  for (int64_t j = count; j < SHOAL_ATTENTION_CHUNK; ++j) w[j] = w[0];
  Finite8 finite;
  __m256 most = broadcast(w[0]);
  for (int64_t j = 0; j < SHOAL_ATTENTION_CHUNK; j += 8) {
    __m256 scores = finite(flush8(_mm256_mul_ps(_mm256_load_ps(w + j), broadcast(p.scale))));
    if (p.cap != 0.0f) scores = soft_cap8(scores, p.cap, p.inverse_cap);
    _mm256_store_ps(w + j, scores);
    most = j == 0 ? scores : _mm256_max_ps(most, scores);
  }
  if (!finite.all()) return {.finite = false};
  alignas(32) float eight[8];
  _mm256_store_ps(eight, most);
  float largest = eight[0];
  for (int i = 1; i < 8; ++i) largest = eight[i] > largest ? eight[i] : largest;
  for (int64_t j = 0; j < SHOAL_ATTENTION_CHUNK; j += 8) {
    _mm256_store_ps(w + j, factor8(exp8(_mm256_sub_ps(_mm256_load_ps(w + j), broadcast(largest)))));
  }
  float sum = 0.0f;
  for (int64_t j = 0; j < count; ++j) sum += w[j];
  return {largest, sum};
}

namespace {

// REQUIRES: head_dim is a multiple of 8. `scratch` holds two times head_dim floats.
template <class Load>
bool attention_pieces(const KernelCall& call, int64_t first, int64_t last, float* scratch) {
  const auto p = call.as<AttentionParams>();
  const int64_t dim = p.head_dim;
  const int64_t stride =
      int64_t{p.kv_heads} * dim * Load::kBytes;  // From one position to the next.
  float* q = scratch;
  float* o = scratch + dim;
  Finite8 finite;
  for (int64_t piece = first; piece < last; ++piece) {
    const int64_t row = piece / p.heads, head = piece % p.heads;
    const int64_t position = position_of(call.buffers[3], row);
    const int64_t of_head = head / (p.heads / p.kv_heads) * dim * Load::kBytes;
    factor_row(call.floats(0) + piece * dim, dim, q);
    float m = 0.0f, l = 0.0f;
    const int64_t seen_from = p.window == 0 || position < p.window ? 0 : position + 1 - p.window;
    const int64_t first_chunk = seen_from / SHOAL_ATTENTION_CHUNK * SHOAL_ATTENTION_CHUNK;
    for (int64_t start = first_chunk; start <= position; start += SHOAL_ATTENTION_CHUNK) {
      const bool is_first = start == first_chunk;
      const int64_t begin = start < seen_from ? seen_from : start;
      const int64_t count = smaller(start + SHOAL_ATTENTION_CHUNK, position + 1) - begin;
      const int64_t base = place_of(call.buffers[3], row, begin) * stride + of_head;
      const std::byte* keys = call.buffers[1] + base;
      const std::byte* values = call.buffers[2] + base;
      alignas(32) float w[SHOAL_ATTENTION_CHUNK];
      for (int64_t j = 0; j < count; j += 4) {
        const std::byte* k[4];
        for (int64_t c = 0; c < 4; ++c) k[c] = keys + smaller(j + c, count - 1) * stride;
        const float* const x[1] = {q};
        __m128 sums[1];
        dot4<Load, 1>(x, k, dim, sums);
        _mm_store_ps(w + j, sums[0]);  // Beyond the end: the last score again.
      }
      const ChunkWeights chunk = chunk_weights(w, count, p);
      if (!chunk.finite) return false;
      const float m_c = chunk.largest, l_c = chunk.sum;
      const float m_new = is_first || m_c > m ? m_c : m;
      const float a = exact_factor(exact_exp(m - m_new));
      const float b = exact_factor(exact_exp(m_c - m_new));
      const auto merge = [&](int64_t d, __m256 o_c) {
        if (!is_first) {
          const __m256 old_part = flush8(_mm256_mul_ps(_mm256_loadu_ps(o + d), broadcast(a)));
          o_c = _mm256_add_ps(old_part, flush8(_mm256_mul_ps(o_c, broadcast(b))));
        }
        _mm256_storeu_ps(o + d, o_c);
      };
      int64_t d = 0;
      for (; d + 32 <= dim; d += 32) {
        __m256 sums[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                          _mm256_setzero_ps()};
        const std::byte* v = values + d * Load::kBytes;
        for (int64_t j = 0; j < count; ++j, v += stride) {
          const __m256 weight = broadcast(w[j]);
          for (int i = 0; i < 4; ++i) {
            sums[i] = _mm256_add_ps(sums[i],
                                    _mm256_mul_ps(weight, Load::eight(v + i * 8 * Load::kBytes)));
          }
        }
        for (int i = 0; i < 4; ++i) merge(d + i * 8, sums[i]);
      }
      for (; d < dim; d += 8) {
        __m256 sum = _mm256_setzero_ps();
        const std::byte* v = values + d * Load::kBytes;
        for (int64_t j = 0; j < count; ++j, v += stride) {
          sum = _mm256_add_ps(sum, _mm256_mul_ps(broadcast(w[j]), Load::eight(v)));
        }
        merge(d, sum);
      }
      l = is_first ? l_c : l * a + l_c * b;
      m = m_new;
    }
    const __m256 inverse = broadcast(exact_reciprocal(l));
    float* y = call.floats_out(4) + piece * dim;
    for (int64_t d = 0; d < dim; d += 8) {
      _mm256_storeu_ps(y + d, finite(flush8(_mm256_mul_ps(_mm256_loadu_ps(o + d), inverse))));
    }
  }
  return finite.all();
}

bool attention_avx2(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<AttentionParams>();
  if (p.head_dim % 8 != 0) {
    return portable_kernels()[static_cast<size_t>(OpKind::kAttention)].run(call, first, last);
  }
  const Scratch scratch_memory(int64_t{p.head_dim} * 8);
  auto* scratch = static_cast<float*>(scratch_memory.data());
  if (call.variant == DType::kF16) return attention_pieces<LoadF16>(call, first, last, scratch);
  return attention_pieces<LoadState32>(call, first, last, scratch);
}

// --- rms_norm, quantize, elementwise ---

bool rms_norm_avx2(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<RmsNormParams>();
  const int64_t width = p.width;
  const float* weight = call.floats(1);
  Finite8 finite;
  for (int64_t row = first; row < last; ++row) {
    const float* x = call.floats(0) + row * width;
    float* y = call.floats_out(2) + row * width;
    float sum = 0.0f;
    for (int64_t begin = 0; begin < width; begin += SHOAL_SUM_CHUNK) {
      const int64_t end = smaller(width, begin + SHOAL_SUM_CHUNK);
      __m256 lanes = _mm256_setzero_ps();
      int64_t i = begin;
      for (; i + 8 <= end; i += 8) {
        const __m256 factor = factor8(_mm256_loadu_ps(x + i));
        lanes = _mm256_add_ps(lanes, _mm256_mul_ps(factor, factor));
      }
      if (i < end) {
        const __m256 factor =
            factor8(load_tail<LoadF32>(reinterpret_cast<const std::byte*>(x + i), end - i));
        lanes = _mm256_add_ps(lanes, _mm256_mul_ps(factor, factor));
      }
      sum += tree(lanes);
    }
    const float mean = sum * p.inverse_width;
    finite(broadcast(mean));
    const float s = exact_rsqrt(mean + p.epsilon);
    int64_t i = 0;
    for (; i + 8 <= width; i += 8) {
      const __m256 scaled = flush8(_mm256_mul_ps(flush8(_mm256_loadu_ps(x + i)), broadcast(s)));
      _mm256_storeu_ps(y + i, finite(flush8(_mm256_mul_ps(scaled, _mm256_loadu_ps(weight + i)))));
    }
    for (; i < width; ++i) {
      y[i] = exact_flush(exact_flush(exact_flush(x[i]) * s) * weight[i]);
      finite(broadcast(y[i]));
    }
  }
  return finite.all();
}

bool quantize_avx2(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<QuantizeParams>();
  const int64_t blocks = p.width / 32;
  bool in_range = true;
  for (int64_t row = first; row < last; ++row) {
    const float* x = call.floats(0) + row * p.width;
    std::byte* out = call.buffers[1] + row * (blocks * 36);
    for (int64_t block = 0; block < blocks; ++block) {
      __m256 v[4];
      for (int i = 0; i < 4; ++i) v[i] = _mm256_loadu_ps(x + block * 32 + i * 8);
      const __m256i most =
          _mm256_max_epi32(_mm256_max_epi32(magnitude_bits(v[0]), magnitude_bits(v[1])),
                           _mm256_max_epi32(magnitude_bits(v[2]), magnitude_bits(v[3])));
      alignas(32) int32_t eight[8];
      _mm256_store_si256(reinterpret_cast<__m256i*>(eight), most);
      int32_t largest = 0;
      for (const int32_t bits : eight) largest = bits > largest ? bits : largest;
      in_range = in_range && static_cast<uint32_t>(largest) <= SHOAL_MAGNITUDE_BITS;
      const __m256 inverse = broadcast(exact_quant_inverse(static_cast<uint32_t>(largest)));
      __m256i q[4];
      for (int i = 0; i < 4; ++i) {
        const __m256 t = _mm256_add_ps(_mm256_mul_ps(v[i], inverse), broadcast(12582912.0f));
        q[i] = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_set1_epi32(0x4B400000));
        q[i] = _mm256_min_epi32(_mm256_max_epi32(q[i], _mm256_set1_epi32(-127)),
                                _mm256_set1_epi32(127));
      }
      const __m256i packed =
          _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
      const __m256i ordered =
          _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + block * 32), ordered);
      const float scale = exact_quant_scale(static_cast<uint32_t>(largest));
      std::memcpy(out + p.width + block * 4, &scale, 4);
    }
  }
  return in_range;
}

// Of each number of two inputs: `f8` of eight at a time, `f1` of what is left, both of flushed
// numbers. The parameters of such ops are alike (kernels_portable.cpp asserts it).
template <class F8, class F1>
bool pairwise(const KernelCall& call, int64_t first, int64_t last, const F8& f8, const F1& f1) {
  const auto p = call.as<AddParams>();
  const int64_t end = smaller(int64_t{p.rows} * p.width, last * kSpan);
  const float* a = call.floats(0);
  const float* b = call.floats(1);
  float* y = call.floats_out(2);
  Finite8 finite;
  int64_t i = first * kSpan;
  for (; i + 8 <= end; i += 8) {
    const __m256 made = f8(flush8(_mm256_loadu_ps(a + i)), flush8(_mm256_loadu_ps(b + i)));
    _mm256_storeu_ps(y + i, finite(flush8(made)));
  }
  for (; i < end; ++i) {
    y[i] = exact_flush(f1(exact_flush(a[i]), exact_flush(b[i])));
    finite(broadcast(y[i]));
  }
  return finite.all();
}

bool add_avx2(const KernelCall& call, int64_t first, int64_t last) {
  return pairwise(
      call, first, last, [](__m256 a, __m256 b) { return _mm256_add_ps(a, b); },
      [](float a, float b) { return a + b; });
}

bool swiglu_avx2(const KernelCall& call, int64_t first, int64_t last) {
  return pairwise(
      call, first, last, [](__m256 gate, __m256 up) { return _mm256_mul_ps(silu8(gate), up); },
      [](float gate, float up) { return exact_silu(gate) * up; });
}

bool multiply_avx2(const KernelCall& call, int64_t first, int64_t last) {
  return pairwise(
      call, first, last, [](__m256 a, __m256 b) { return _mm256_mul_ps(a, b); },
      [](float a, float b) { return a * b; });
}

bool gelu_avx2(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<GeluParams>();
  if (p.error_function != 0)
    return portable_kernels()[static_cast<size_t>(OpKind::kGelu)].run(call, first, last);
  const int64_t end = smaller(int64_t{p.rows} * p.width, last * kSpan);
  const float* x = call.floats(0);
  float* y = call.floats_out(1);
  Finite8 finite;
  int64_t i = first * kSpan;
  for (; i + 8 <= end; i += 8) {
    const __m256 eight = finite(_mm256_loadu_ps(x + i));
    _mm256_storeu_ps(y + i, finite(gelu8(flush8(eight))));
  }
  for (; i < end; ++i) {
    y[i] = exact_gelu_tanh(exact_flush(x[i]));
    finite(broadcast(y[i]));
  }
  return finite.all();
}

bool soft_cap_avx2(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<SoftCapParams>();
  const int64_t end = smaller(int64_t{p.rows} * p.width, last * kSpan);
  const float* x = call.floats(0);
  float* y = call.floats_out(1);
  Finite8 finite;
  int64_t i = first * kSpan;
  for (; i + 8 <= end; i += 8) {
    _mm256_storeu_ps(y + i, soft_cap8(finite(_mm256_loadu_ps(x + i)), p.cap, p.inverse_cap));
  }
  for (; i < end; ++i) {
    finite(broadcast(x[i]));
    y[i] = exact_soft_cap(x[i], p.cap, p.inverse_cap);
  }
  return finite.all();
}

}  // namespace
}  // namespace shoal::compute

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace shoal::compute {

namespace {

bool has_avx2() {
  // Not every compiler's __builtin_cpu_supports() knows F16C: bit 29 of ECX, leaf 1.
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> 29 & 1u) != 0;
  return __builtin_cpu_supports("avx2") && f16c;
}

}  // namespace

const KernelTable* avx2_kernels() {
  static const bool kHasAvx2 = has_avx2();  // Asking costs microseconds in a virtual machine.
  if (!kHasAvx2) return nullptr;
  static const KernelTable kTable = [] {
    KernelTable table = portable_kernels();
    const auto replace = [&](OpKind kind, auto run) { table[static_cast<size_t>(kind)].run = run; };
    replace(OpKind::kRmsNorm, rms_norm_avx2);
    replace(OpKind::kQuantize, quantize_avx2);
    replace(OpKind::kMatmul, matmul_avx2);
    replace(OpKind::kAttention, attention_avx2);
    replace(OpKind::kSwiglu, swiglu_avx2);
    replace(OpKind::kAdd, add_avx2);
    replace(OpKind::kMultiply, multiply_avx2);
    replace(OpKind::kGelu, gelu_avx2);
    replace(OpKind::kSoftCap, soft_cap_avx2);
    replace(OpKind::kExpertMatmul, expert_matmul_avx2);
    return table;
  }();
  return &kTable;
}

}  // namespace shoal::compute

#else

namespace shoal::compute {
const KernelTable* avx2_kernels() { return nullptr; }
}  // namespace shoal::compute

#endif
