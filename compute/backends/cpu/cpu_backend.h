#pragma once
// The `cpu` plane: always there. Kernels chosen by what the processor has; the same bits for any
// choice and any number of threads.

#include <cstdint>
#include <memory>

#include "compute/backends/backend.h"

namespace shoal::compute {

// Kernels by the instructions that they need, the faster ones later.
enum class CpuKernels : uint8_t { kPortable, kAvx2, kAvxVnni, kAvx512 };
constexpr CpuKernels kAllCpuKernels[] = {CpuKernels::kPortable, CpuKernels::kAvx2,
                                         CpuKernels::kAvxVnni, CpuKernels::kAvx512};

struct CpuOptions {
  CpuKernels kernels_most = CpuKernels::kAvx512;  // The best that the machine has up to this.
};

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options = {});

}  // namespace shoal::compute
