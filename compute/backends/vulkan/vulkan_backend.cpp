#include "compute/backends/vulkan/vulkan_backend.h"

namespace shoal::compute {
namespace {

class VulkanBackend final : public Backend {
 public:
  std::string_view plane() const override { return "vulkan"; }
  std::vector<DeviceInfo> devices() override { return {}; }
  std::string why_none() const override { return "this build has no Vulkan kernels"; }
  Result<std::unique_ptr<Device>> open(const std::string& id, int) override {
    return Error{ErrorCode::kNotFound, "no device " + id};
  }
};

}  // namespace

std::unique_ptr<Backend> make_vulkan_backend() { return make_vulkan_backend(VulkanOptions{}); }

std::unique_ptr<Backend> make_vulkan_backend(const VulkanOptions&) {
  return std::make_unique<VulkanBackend>();
}

}  // namespace shoal::compute
