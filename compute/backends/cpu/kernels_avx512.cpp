// The quantised products with AVX-512 VNNI, sixteen columns at once, and attention. The same bits
// as everywhere.

#include "compute/backends/cpu/kernels.h"

#if defined(__x86_64__) && defined(__GNUC__)

// GCC 12 takes its own header's "any value" for a variable that was forgotten.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <type_traits>

#include "compute/backends/cpu/attention_chunk.h"
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

using namespace exact;

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

template <class T>
T load_one(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

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
#ifdef SHOAL_FAST
    return x;
#endif
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

// --- attention: heads that share their keys may be one piece, so that those are read once ---

__m512 zero_below(__m512 x, [[maybe_unused]] uint32_t bits) {
#ifdef SHOAL_FAST
  return x;
#endif
  const __mmask16 keep = _mm512_cmpge_epi32_mask(sixteen::V::magnitude_bits(x),
                                                 _mm512_set1_epi32(static_cast<int>(bits)));
  return _mm512_maskz_mov_ps(keep, x);
}
__m512 flush16(__m512 x) { return zero_below(x, SHOAL_FLUSH_BITS); }
__m512 factor16(__m512 x) { return zero_below(x, SHOAL_FACTOR_BITS); }

// The states' types: sixteen elements of one vector, and eight of each of two.
struct State16 {
  static constexpr int64_t kBytes = 2;
  static __m512 sixteen(const std::byte* at) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  }
  static __m512 eights(const std::byte* a, const std::byte* b) {
    const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a));
    const __m128i second = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b));
    return _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1));
  }
};
struct State32 {
  static constexpr int64_t kBytes = 4;
  static __m512 sixteen(const std::byte* at) {
    return factor16(_mm512_loadu_ps(reinterpret_cast<const float*>(at)));
  }
  static __m512 eights(const std::byte* a, const std::byte* b) {
    const __m256 first = _mm256_loadu_ps(reinterpret_cast<const float*>(a));
    const __m256 second = _mm256_loadu_ps(reinterpret_cast<const float*>(b));
    return factor16(_mm512_insertf32x8(_mm512_castps256_ps512(first), second, 1));
  }
};

// ((l0+l1)+(l2+l3))+((l4+l5)+(l6+l7)) of both halves of two registers.
__m128 trees(__m512 x, __m512 y) {
  const __m256 a = _mm256_hadd_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
  const __m256 b = _mm256_hadd_ps(_mm512_castps512_ps256(y), _mm512_extractf32x8_ps(y, 1));
  const __m256 fours = _mm256_hadd_ps(a, b);
  return _mm_add_ps(_mm256_castps256_ps128(fours), _mm256_extractf128_ps(fours, 1));
}

// The products of each head's query with `count` keys, `stride` bytes apart; up to a multiple of
// eight the last one again.
template <class State, int Heads>
void key_products(const float* q, int64_t dim, const std::byte* keys, int64_t stride, int64_t count,
                  float (&w)[Heads][SHOAL_ATTENTION_CHUNK]) {
  for (int64_t j = 0; j < count; j += 8) {
    const std::byte* k[8];
    for (int64_t c = 0; c < 8; ++c) k[c] = keys + smaller(j + c, count - 1) * stride;
    __m128 sums[Heads][2];
    for (int h = 0; h < Heads; ++h) sums[h][0] = sums[h][1] = _mm_setzero_ps();
    for (int64_t begin = 0; begin < dim; begin += SHOAL_SUM_CHUNK) {
      const int64_t end = smaller(dim, begin + SHOAL_SUM_CHUNK);
      __m512 lanes[Heads][4];
      for (int h = 0; h < Heads; ++h) {
        for (int c = 0; c < 4; ++c) lanes[h][c] = _mm512_setzero_ps();
      }
      for (int64_t i = begin; i < end; i += 8) {
        for (int c = 0; c < 4; ++c) {
          const int64_t at = i * State::kBytes;
          const __m512 pair = State::eights(k[c * 2] + at, k[c * 2 + 1] + at);
          for (int h = 0; h < Heads; ++h) {
            const __m512 x = _mm512_broadcast_f32x8(_mm256_loadu_ps(q + h * dim + i));
            lanes[h][c] = _mm512_add_ps(lanes[h][c], _mm512_mul_ps(x, pair));
          }
        }
      }
      for (int h = 0; h < Heads; ++h) {
        sums[h][0] = _mm_add_ps(sums[h][0], trees(lanes[h][0], lanes[h][1]));
        sums[h][1] = _mm_add_ps(sums[h][1], trees(lanes[h][2], lanes[h][3]));
      }
    }
    for (int h = 0; h < Heads; ++h) {
      _mm_store_ps(w[h] + j, sums[h][0]);
      _mm_store_ps(w[h] + j + 4, sums[h][1]);
    }
  }
}

// What a head has come to, over the chunks so far.
struct Merged {
  float m = 0, l = 0;
  float a = 0, b = 0;  // The shares of what was, and of the next chunk.
};

// Adds Registers times sixteen elements of the weighted values, from element d on, to each head's.
template <class State, int Heads, int Registers>
void weigh_values(const float (&w)[Heads][SHOAL_ATTENTION_CHUNK], const std::byte* values,
                  int64_t stride, int64_t count, const Merged (&merged)[Heads], bool is_first,
                  float* o, int64_t dim, int64_t d) {
  __m512 sums[Heads][Registers];
  for (int h = 0; h < Heads; ++h) {
    for (int i = 0; i < Registers; ++i) sums[h][i] = _mm512_setzero_ps();
  }
  const std::byte* v = values + d * State::kBytes;
  for (int64_t j = 0; j < count; ++j, v += stride) {
    __m512 value[Registers];
    for (int i = 0; i < Registers; ++i) value[i] = State::sixteen(v + i * 16 * State::kBytes);
    for (int h = 0; h < Heads; ++h) {
      const __m512 weight = _mm512_set1_ps(w[h][j]);
      for (int i = 0; i < Registers; ++i)
        sums[h][i] = _mm512_add_ps(sums[h][i], _mm512_mul_ps(weight, value[i]));
    }
  }
  for (int h = 0; h < Heads; ++h) {
    for (int i = 0; i < Registers; ++i) {
      float* const to = o + h * dim + d + i * 16;
      __m512 made = sums[h][i];
      if (!is_first) {
        const __m512 old = _mm512_mul_ps(_mm512_loadu_ps(to), _mm512_set1_ps(merged[h].a));
        made =
            _mm512_add_ps(flush16(old), flush16(_mm512_mul_ps(made, _mm512_set1_ps(merged[h].b))));
      }
      _mm512_storeu_ps(to, made);
    }
  }
}

// Heads of one row that share their keys, from `head` on. `scratch` holds two times Heads times
// head_dim floats.
template <class State, int Heads>
bool attend(const KernelCall& call, const AttentionParams& p, int64_t row, int64_t head,
            float* scratch) {
  const int64_t dim = p.head_dim;
  const int64_t stride = int64_t{p.kv_heads} * dim * State::kBytes;
  float* const q = scratch;
  float* const o = scratch + Heads * dim;
  const int64_t position = position_of(call.buffers[3], row);
  const int64_t of_head = head / (p.heads / p.kv_heads) * dim * State::kBytes;
  const int64_t at = (row * p.heads + head) * dim;
  for (int64_t i = 0; i < Heads * dim; i += 16)
    _mm512_storeu_ps(q + i, factor16(_mm512_loadu_ps(call.floats(0) + at + i)));
  Merged merged[Heads];
  const int64_t seen_from = p.window == 0 || position < p.window ? 0 : position + 1 - p.window;
  const int64_t first_chunk = seen_from / SHOAL_ATTENTION_CHUNK * SHOAL_ATTENTION_CHUNK;
  for (int64_t start = first_chunk; start <= position; start += SHOAL_ATTENTION_CHUNK) {
    const bool is_first = start == first_chunk;
    const int64_t begin = start < seen_from ? seen_from : start;
    const int64_t count = smaller(start + SHOAL_ATTENTION_CHUNK, position + 1) - begin;
    const int64_t base = place_of(call.buffers[3], row, begin) * stride + of_head;
    alignas(64) float w[Heads][SHOAL_ATTENTION_CHUNK];
    key_products<State, Heads>(q, dim, call.buffers[1] + base, stride, count, w);
    for (int h = 0; h < Heads; ++h) {
      const ChunkWeights chunk = chunk_weights(w[h], count, p);
      if (!chunk.finite) return false;
      Merged& of = merged[h];
      const float m_new = is_first || chunk.largest > of.m ? chunk.largest : of.m;
      of.a = exact_factor(exact_exp(of.m - m_new));
      of.b = exact_factor(exact_exp(chunk.largest - m_new));
      of.l = is_first ? chunk.sum : of.l * of.a + chunk.sum * of.b;
      of.m = m_new;
    }
    const std::byte* const values = call.buffers[2] + base;
    int64_t d = 0;
    for (; d + 64 <= dim; d += 64)
      weigh_values<State, Heads, 4>(w, values, stride, count, merged, is_first, o, dim, d);
    for (; d < dim; d += 16)
      weigh_values<State, Heads, 1>(w, values, stride, count, merged, is_first, o, dim, d);
  }
  sixteen::V::Finite finite;
  for (int h = 0; h < Heads; ++h) {
    const __m512 inverse = _mm512_set1_ps(exact_reciprocal(merged[h].l));
    for (int64_t i = h * dim; i < (h + 1) * dim; i += 16) {
      const __m512 y = flush16(_mm512_mul_ps(_mm512_loadu_ps(o + i), inverse));
      _mm512_storeu_ps(call.floats_out(4) + at + i, finite(y));
    }
  }
  return finite.all();
}

constexpr int64_t kHeadsTogether = 4;

// How many heads a piece has: one where there are few rows, as threads then need the pieces; else
// those that share their keys, up to four.
int64_t heads_of_piece(const AttentionParams& p) {
  const int64_t shared = p.heads / p.kv_heads;
  if (int64_t{p.rows} * p.kv_heads < 16) return 1;
  for (int64_t heads = kHeadsTogether; heads > 1; --heads) {
    if (shared % heads == 0) return heads;
  }
  return 1;
}

template <class State>
bool attention_pieces(const KernelCall& call, const AttentionParams& p, int64_t first,
                      int64_t last) {
  const int64_t heads = heads_of_piece(p), pieces = p.heads / heads;
  const Scratch memory(kHeadsTogether * p.head_dim * 8);
  auto* scratch = static_cast<float*>(memory.data());
  for (int64_t piece = first; piece < last; ++piece) {
    const int64_t row = piece / pieces, head = piece % pieces * heads;
    const bool good = heads == 4   ? attend<State, 4>(call, p, row, head, scratch)
                      : heads == 3 ? attend<State, 3>(call, p, row, head, scratch)
                      : heads == 2 ? attend<State, 2>(call, p, row, head, scratch)
                                   : attend<State, 1>(call, p, row, head, scratch);
    if (!good) return false;
  }
  return true;
}

Work attention_work(const KernelCall& call) {
  const auto p = call.as<AttentionParams>();
  Work work = avx2_kernel(OpKind::kAttention).work(call);
  if (p.head_dim % 16 != 0) return work;
  const int64_t heads = heads_of_piece(p);
  return {work.pieces / heads, work.piece_cost * heads / 2};
}

bool attention_run(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<AttentionParams>();
  if (p.head_dim % 16 != 0) return avx2_kernel(OpKind::kAttention).run(call, first, last);
  return call.variant == DType::kF16 ? attention_pieces<State16>(call, p, first, last)
                                     : attention_pieces<State32>(call, p, first, last);
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
    table[static_cast<size_t>(OpKind::kAttention)] = {attention_work, attention_run};
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
