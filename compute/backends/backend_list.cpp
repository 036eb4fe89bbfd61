#include "compute/backends/backend.h"
#include "compute/backends/cpu/cpu_backend.h"
#include "compute/backends/cuda/cuda_backend.h"
#ifdef SHOAL_HAVE_VULKAN
#include "compute/backends/vulkan/vulkan_backend.h"
#endif

namespace shoal::compute {

std::vector<std::unique_ptr<Backend>> make_backends() {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(make_cpu_backend());
  backends.push_back(make_cuda_backend());
#ifdef SHOAL_HAVE_VULKAN
  backends.push_back(make_vulkan_backend());
#endif
  return backends;
}

}  // namespace shoal::compute
