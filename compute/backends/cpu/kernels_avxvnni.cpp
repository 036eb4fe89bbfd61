// The quantised products with AVX-VNNI, for processors that have no AVX-512: eight columns at once.
// The same bits as everywhere.

#include "compute/backends/cpu/kernels.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <cpuid.h>
#include <immintrin.h>

#include <type_traits>

#include "compute/backends/cpu/weight_layout.h"
#include "shaders/exact_math.h"

// As in kernels_avx2.cpp: no function of a header may be compiled in here.
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,f16c,avxvnni"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,f16c,avxvnni")
#endif

namespace shoal::compute {
namespace {

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

template <class T>
T load_one(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

#include "compute/backends/cpu/registers256.inc"

struct V : Registers256 {
  static constexpr bool kWholeBytes = true;
  // To each integer the products of its four bytes of four groups with sixteen bytes of x.
  template <int Bits>
  static Ints add_products(Ints sum, const Ints* groups, const std::byte* x) {
    for (int g = 0; g < 4; ++g)
      sum = _mm256_dpbusd_avx_epi32(sum, groups[g], each_int(four_bytes(x + g * 4)));
    return sum;
  }
};

#include "compute/backends/cpu/products.inc"

const Kernel& avx2_kernel(OpKind kind) { return (*avx2_kernels())[static_cast<size_t>(kind)]; }

// Float weights go the way of AVX2.
Work matmul_work(const KernelCall& call) {
  if (!is_tiled(call.variant)) return avx2_kernel(OpKind::kMatmul).work(call);
  const auto p = call.as<MatmulParams>();
  constexpr int64_t kColumns = V::kTiles * kTileRows;
  return {(int64_t{p.n} + kColumns - 1) / kColumns, int64_t{p.rows} * p.k / 4};
}

bool matmul_run(const KernelCall& call, int64_t first, int64_t last) {
  if (!is_tiled(call.variant)) return avx2_kernel(OpKind::kMatmul).run(call, first, last);
  return quantised_matmul(call, first, last);
}

bool expert_matmul_run(const KernelCall& call, int64_t first, int64_t last) {
  if (!is_tiled(call.variant) || call.as<ExpertMatmulParams>().n % kTileRows != 0)
    return avx2_kernel(OpKind::kExpertMatmul).run(call, first, last);
  return quantised_expert_matmul(call, first, last);
}

}  // namespace
}  // namespace shoal::compute

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace shoal::compute {

const KernelTable* avxvnni_kernels() {
  // Not every compiler's __builtin_cpu_supports() knows it: bit 4 of EAX, leaf 7, part 1.
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool vnni = __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax >> 4 & 1u) != 0;
  if (avx2_kernels() == nullptr || !vnni) return nullptr;
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
const KernelTable* avxvnni_kernels() { return nullptr; }
}  // namespace shoal::compute

#endif
