#pragma once
// Finds Vulkan: the loader, its drivers, and the devices that could run our kernels, with the
// reason for each that could not. Holds the instance; makes no device.

#include <volk.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compute/backends/backend.h"
#include "compute/backends/vulkan/vulkan_backend.h"

namespace shoal::compute {

// A failed Vulkan call as an error of ours: no memory, a lost device, or anything else.
Error vulkan_error(VkResult result, std::string_view call);

// Returns the error of a failed Vulkan call out of the current function.
#define SHOAL_VK(call)                                              \
  do {                                                              \
    if (const VkResult shoal_vk = (call); shoal_vk != VK_SUCCESS) { \
      return ::shoal::compute::vulkan_error(shoal_vk, #call);       \
    }                                                               \
  } while (false)

// A device that can run our kernels.
struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  DeviceInfo info;
  DeviceFacts facts;
  uint32_t queue_family = 0;
  uint32_t groups_max[2] = {65535, 65535};  // Work groups in x and y.
  int64_t allocation_bytes_max = 0;
  bool shares_host_memory = false;  // Integrated or software: mapping beats copying.
  VkPhysicalDeviceMemoryProperties memory{};
};

// Never changes once made, so the backend and its devices share it, and the last of them ends it.
class VulkanInstance {
 public:
  // kUnavailable, with the reason, where there is no loader or no driver.
  static Result<std::shared_ptr<const VulkanInstance>> create(const VulkanOptions& options);
  VulkanInstance(const VulkanOptions& options) : on_message_(options.on_message) {}
  ~VulkanInstance();
  VulkanInstance(const VulkanInstance&) = delete;
  VulkanInstance& operator=(const VulkanInstance&) = delete;

  // Hardware before software, else in the loader's order, which is what selectors count.
  std::span<const PhysicalDevice> devices() const { return devices_; }
  // Why devices that the loader knows were left out; empty where none was.
  const std::string& left_out() const { return left_out_; }

 private:
  Result<void> start(bool validation);
  Result<void> find_devices();

  std::function<void(std::string_view)> on_message_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::vector<PhysicalDevice> devices_;
  std::string left_out_;
};

}  // namespace shoal::compute
