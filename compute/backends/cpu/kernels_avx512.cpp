// The quantised products with AVX-512 VNNI: sixteen columns at once. The same bits as everywhere.

#include "compute/backends/cpu/kernels.h"

#if defined(__x86_64__) && defined(__GNUC__)

// GCC 12 takes its own header's "any value" for a variable that was forgotten.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <type_traits>

#include "compute/backends/cpu/weight_layout.h"
#include "shaders/exact_math.h"

// As in kernels_avx2.cpp: no function of a header may be compiled in here.
#ifdef __clang__
#pragma clang attribute push(                                                           \
    __attribute__((target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
#endif

namespace shoal::compute {
namespace {

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Where a step has many rows: sixteen columns at once.
namespace sixteen {

struct V {
  using Ints = __m512i;
  using Floats = __m512;
  static constexpr int kTiles = 2;
  static constexpr int kRows = 8;  // That one loading of weights serves.
  using Tiles = const std::byte* [kTiles];

  static Ints bytes(const Tiles& tiles, int64_t at) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(tiles[0] + at));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(tiles[1] + at));
    return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
  }
  static Floats halves(const Tiles& tiles, int64_t at) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(tiles[0] + at));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(tiles[1] + at));
    return _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1));
  }
  // Eight bytes of each tile.
  template <bool Signed>
  static Floats numbers(const Tiles& tiles, int64_t at) {
    const __m128i both =
        _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(tiles[0] + at)),
                           _mm_loadl_epi64(reinterpret_cast<const __m128i*>(tiles[1] + at)));
    return _mm512_cvtepi32_ps(Signed ? _mm512_cvtepi8_epi32(both) : _mm512_cvtepu8_epi32(both));
  }
  static void store(float* to, int64_t count, Floats x) {
    _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1), x);
  }

  static int32_t four_bytes(const std::byte* at) {
    int32_t four;
    std::memcpy(&four, at, 4);
    return four;
  }
  static Ints no_ints() { return _mm512_setzero_si512(); }
  static Ints each_int(int32_t x) { return _mm512_set1_epi32(x); }
  static Ints each_byte(int x) { return _mm512_set1_epi8(static_cast<char>(x)); }
  static Ints both(Ints a, Ints b) { return _mm512_and_si512(a, b); }
  static Ints either(Ints a, Ints b) { return _mm512_or_si512(a, b); }
  static Ints exclusive_or(Ints a, Ints b) { return _mm512_xor_si512(a, b); }
  static Ints shifted_right(Ints a, unsigned bits) { return _mm512_srli_epi16(a, bits); }
  static Ints shifted_left(Ints a, unsigned bits) { return _mm512_slli_epi16(a, bits); }
  static Ints plus(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  static constexpr bool kWholeBytes = true;
  // To each integer the products of its four bytes of four groups with sixteen bytes of x.
  template <int Bits>
  static Ints add_products(Ints sum, const Ints* groups, const std::byte* x) {
    for (int g = 0; g < 4; ++g)
      sum = _mm512_dpbusd_epi32(sum, groups[g], each_int(four_bytes(x + g * 4)));
    return sum;
  }

  static Floats zeros() { return _mm512_setzero_ps(); }
  static Floats each(float x) { return _mm512_set1_ps(x); }
  static Floats floats(Ints x) { return _mm512_cvtepi32_ps(x); }
  static Floats plus(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats times(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Ints magnitude_bits(Floats x) {
    return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7FFFFFFF));
  }
  static Floats flush(Floats x) {
    const __mmask16 keep =
        _mm512_cmpge_epi32_mask(magnitude_bits(x), _mm512_set1_epi32(SHOAL_FLUSH_BITS));
    return _mm512_maskz_mov_ps(keep, x);
  }
  struct Finite {
    unsigned bad = 0;
    Floats operator()(Floats x) {
      bad |= _mm512_cmpgt_epi32_mask(magnitude_bits(x), _mm512_set1_epi32(0x7F7FFFFF));
      return x;
    }
    bool all() const { return bad == 0; }
  };
};

#include "compute/backends/cpu/products.inc"

}  // namespace sixteen

// Where it has few, memory is what bounds it, and one tile after the other is read faster than two
// at a time.
namespace eight {

#include "compute/backends/cpu/registers256.inc"

struct V : Registers256 {
  static constexpr bool kWholeBytes = true;
  template <int Bits>
  static Ints add_products(Ints sum, const Ints* groups, const std::byte* x) {
    for (int g = 0; g < 4; ++g)
      sum = _mm256_dpbusd_epi32(sum, groups[g], each_int(four_bytes(x + g * 4)));
    return sum;
  }
};

#include "compute/backends/cpu/products.inc"

}  // namespace eight

constexpr int64_t kManyRows = sixteen::V::kRows;

const Kernel& avx2_kernel(OpKind kind) { return (*avx2_kernels())[static_cast<size_t>(kind)]; }

// Float weights go the way of AVX2.
Work matmul_work(const KernelCall& call) {
  if (!is_tiled(call.variant)) return avx2_kernel(OpKind::kMatmul).work(call);
  const auto p = call.as<MatmulParams>();
  const int64_t columns = p.rows < kManyRows ? kTileRows : sixteen::V::kTiles * kTileRows;
  return {(int64_t{p.n} + columns - 1) / columns, int64_t{p.rows} * p.k / 4};
}

bool matmul_run(const KernelCall& call, int64_t first, int64_t last) {
  if (!is_tiled(call.variant)) return avx2_kernel(OpKind::kMatmul).run(call, first, last);
  return call.as<MatmulParams>().rows < kManyRows ? eight::quantised_matmul(call, first, last)
                                                  : sixteen::quantised_matmul(call, first, last);
}

bool expert_matmul_run(const KernelCall& call, int64_t first, int64_t last) {
  if (!is_tiled(call.variant) || call.as<ExpertMatmulParams>().n % kTileRows != 0)
    return avx2_kernel(OpKind::kExpertMatmul).run(call, first, last);
  return eight::quantised_expert_matmul(call, first, last);
}

}  // namespace
}  // namespace shoal::compute

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace shoal::compute {

const KernelTable* avx512_kernels() {
  if (avx2_kernels() == nullptr || !__builtin_cpu_supports("avx512f") ||
      !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512vnni")) {
    return nullptr;
  }
  static const KernelTable kTable = [] {
    KernelTable table = *avx2_kernels();
    table[static_cast<size_t>(OpKind::kMatmul)] = {matmul_work, matmul_run};
    table[static_cast<size_t>(OpKind::kExpertMatmul)].run = expert_matmul_run;
    return table;
  }();
  return &kTable;
}

}  // namespace shoal::compute

#else

namespace shoal::compute {
const KernelTable* avx512_kernels() { return nullptr; }
}  // namespace shoal::compute

#endif
