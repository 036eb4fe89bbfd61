#include "compute/backends/cpu/ceilings.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/host.h"
#include "base/host_memory.h"
#include "compute/backends/cpu/thread_pool.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define SHOAL_CEILINGS_X86
#endif

namespace shoal::compute {
namespace {

constexpr size_t kReadWords = size_t{512} << 17;  // 512 MiB of 64-bit words.
constexpr int kPasses = 5;
constexpr int64_t kRounds = 4'000'000;  // About 20 ms of products on a thread.
constexpr int kSums = 12;               // Independent ones, so that no product waits for another.

// Of several runs of task(part) for every part at once, the shortest; seconds.
double shortest(ThreadPool& pool, const std::function<void(int64_t)>& task) {
  using Watch = std::chrono::steady_clock;
  double best = 1e9;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto begin = Watch::now();
    pool.run(pool.threads(), task);
    best = std::min(best, std::chrono::duration<double>(Watch::now() - begin).count());
  }
  return best;
}

// Where results go, so that no compiler finds them useless.
std::atomic<int64_t> sink{0};

struct Products {
  double per_round = 0;  // Multiply-adds on a thread, each counted as two.
  void (*run)() = nullptr;
  const char* instructions = "plain";
};

#ifdef SHOAL_CEILINGS_X86

__attribute__((target("avx2"))) void bytes_avx2() {
  const __m256i ones = _mm256_set1_epi16(1), seed = _mm256_set1_epi8(static_cast<char>(sink & 3));
  __m256i sums[kSums];
  for (__m256i& sum : sums) sum = seed;
  for (int64_t i = 0; i < kRounds; ++i) {
    for (__m256i& sum : sums)
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(seed, sum), ones));
  }
  for (const __m256i& sum : sums) sink += sum[0];
}

__attribute__((target("avxvnni,avx2"))) void bytes_avxvnni() {
  const __m256i seed = _mm256_set1_epi8(static_cast<char>(sink & 3));
  __m256i sums[kSums];
  for (__m256i& sum : sums) sum = seed;
  for (int64_t i = 0; i < kRounds; ++i) {
    for (__m256i& sum : sums) sum = _mm256_dpbusd_avx_epi32(sum, seed, seed);
  }
  for (const __m256i& sum : sums) sink += sum[0];
}

__attribute__((target("avx512f,avx512vnni"))) void bytes_avx512() {
  const __m512i seed = _mm512_set1_epi32(static_cast<int>(sink & 3) * 0x01010101);
  __m512i sums[kSums];
  for (__m512i& sum : sums) sum = seed;
  for (int64_t i = 0; i < kRounds; ++i) {
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, seed, seed);
  }
  for (const __m512i& sum : sums) sink += sum[0];
}

__attribute__((target("avx2,fma"))) void floats_fma() {
  const __m256 seed = _mm256_set1_ps(static_cast<float>(sink & 1) * 0.5f);
  __m256 sums[kSums];
  for (__m256& sum : sums) sum = seed;
  for (int64_t i = 0; i < kRounds; ++i) {
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, seed, seed);
  }
  for (const __m256& sum : sums) sink += static_cast<int64_t>(sum[0]);
}

__attribute__((target("avx512f"))) void floats_avx512() {
  const __m512 seed = _mm512_set1_ps(static_cast<float>(sink & 1) * 0.5f);
  __m512 sums[kSums];
  for (__m512& sum : sums) sum = seed;
  for (int64_t i = 0; i < kRounds; ++i) {
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, seed, seed);
  }
  for (const __m512& sum : sums) sink += static_cast<int64_t>(sum[0]);
}

bool has_avxvnni() {
  // CPUID 7.1, EAX bit 4 (Intel SDM volume 2A): gcc 12 knows no name of it.
  uint32_t eax = 7, ebx = 0, ecx = 1, edx = 0;
  __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
  return __builtin_cpu_supports("avx2") && (eax & 16) != 0;
}

Products best_bytes() {
  if (__builtin_cpu_supports("avx512vnni")) return {kSums * 128.0, bytes_avx512, "avx512vnni"};
  if (has_avxvnni()) return {kSums * 64.0, bytes_avxvnni, "avxvnni"};
  if (__builtin_cpu_supports("avx2")) return {kSums * 64.0, bytes_avx2, "avx2"};
  return {};
}

Products best_floats() {
  if (__builtin_cpu_supports("avx512f")) return {kSums * 32.0, floats_avx512, "avx512f"};
  if (__builtin_cpu_supports("fma")) return {kSums * 16.0, floats_fma, "fma"};
  return {};
}

#else

Products best_bytes() { return {}; }
Products best_floats() { return {}; }

#endif

double rate(ThreadPool& pool, const Products& products) {
  if (products.run == nullptr) return 0;
  const double seconds = shortest(pool, [&](int64_t) { products.run(); });
  return pool.threads() * static_cast<double>(kRounds) * products.per_round / seconds;
}

// 0 where there is no memory for it.
double read_rate(ThreadPool& pool) {
  const auto memory = memory_info();
  if (!memory.ok() || memory.value().available.count < int64_t{kReadWords * 16}) return 0;
  const ZeroedMemory bytes(kReadWords * 8);
  if (bytes.data() == nullptr) return 0;
  auto* const words = reinterpret_cast<uint64_t*>(bytes.data());
  std::fill_n(words, kReadWords, uint64_t{1});  // So that each page is memory of its own.
  const size_t share = kReadWords / static_cast<size_t>(pool.threads());
  const double seconds = shortest(pool, [&](int64_t part) {
    const uint64_t* const begin = words + static_cast<size_t>(part) * share;
    uint64_t sums[16] = {};
    for (size_t i = 0; i + 16 <= share; i += 16) {
      for (size_t lane = 0; lane < 16; ++lane) sums[lane] += begin[i + lane];
    }
    for (const uint64_t sum : sums) sink += static_cast<int64_t>(sum);
  });
  return static_cast<double>(share) * 8 * pool.threads() / seconds;
}

}  // namespace

Ceilings measure_ceilings(int threads) {
  ThreadPool pool(threads);
  const Products bytes = best_bytes();
  Ceilings result;
  result.read_bytes_per_second = read_rate(pool);
  result.int8_per_second = rate(pool, bytes);
  result.f32_per_second = rate(pool, best_floats());
  result.instructions = bytes.instructions;
  return result;
}

}  // namespace shoal::compute
