#pragma once
// The `cpu` plane: always there. Kernels chosen by what the processor has; the same bits for any
// choice and any number of threads.

#include <memory>

#include "compute/backends/backend.h"

namespace shoal::compute {

struct CpuOptions {
  bool simd = true;  // False: the portable kernels, for tests.
};

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options = {});

}  // namespace shoal::compute
