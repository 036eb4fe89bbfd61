#pragma once
// The `vulkan` plane: any GPU with Vulkan 1.2 and buffer addresses, the software driver included.

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "compute/backends/backend.h"
#include "compute/backends/vulkan/kernel_choice.h"

namespace shoal::compute {

struct VulkanOptions {
  bool validation = false;    // Fails to open where the validation layer is not installed.
  bool always_stage = false;  // Copies through a staging buffer even where memory could be mapped.
  // Unset: as choose_kernels() says. A device that lacks what they need fails to open.
  std::optional<KernelChoice> kernels;
  uint64_t run_timeout_ms = 120'000;  // A run that takes longer means a hung device.
  // Puts other functions into an opened device's VolkDeviceTable: tests make a driver fail.
  std::function<void(void*)> on_functions;
  // What the validation layer says; called on the thread that made the call.
  std::function<void(std::string_view)> on_message;
};

std::unique_ptr<Backend> make_vulkan_backend();
std::unique_ptr<Backend> make_vulkan_backend(const VulkanOptions& options);

}  // namespace shoal::compute
