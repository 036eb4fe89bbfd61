#include "compute/backends/vulkan/vulkan_instance.h"

#include <algorithm>
#include <mutex>

#if defined(__SANITIZE_ADDRESS__)
#include <dlfcn.h>

// The software driver and the validation layer do not free all that they allocate.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libvulkan_lvp.so\nleak:libVkLayer_khronos_validation.so\n";
}
#endif

namespace shoal::compute {
namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

// volk keeps the loader's functions in variables of the process. They are filled once, because
// devices may be opened on several threads; being the loader's own entry points they serve every
// instance.
std::once_flag g_loader_once;
std::once_flag g_instance_functions_once;
VkResult g_loader_result = VK_ERROR_INITIALIZATION_FAILED;

VKAPI_ATTR VkBool32 VKAPI_CALL on_debug_message(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                                VkDebugUtilsMessageTypeFlagsEXT,
                                                const VkDebugUtilsMessengerCallbackDataEXT* data,
                                                void* user) {
  const auto& on_message = *static_cast<const std::function<void(std::string_view)>*>(user);
  if (on_message) on_message(data->pMessage);
  return VK_FALSE;
}

bool validation_installed() {
  uint32_t count = 0;
  if (vkEnumerateInstanceLayerProperties(&count, nullptr) != VK_SUCCESS) return false;
  std::vector<VkLayerProperties> layers(count);
  if (vkEnumerateInstanceLayerProperties(&count, layers.data()) != VK_SUCCESS) return false;
  return std::any_of(layers.begin(), layers.end(), [](const VkLayerProperties& layer) {
    return std::string_view(layer.layerName) == kValidationLayer;
  });
}

// The family that computes; one that also draws is the last choice, for the owner's screen uses it.
std::optional<uint32_t> compute_family(VkPhysicalDevice handle) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(handle, &count, families.data());
  std::optional<uint32_t> found;
  for (uint32_t i = 0; i < count; ++i) {
    const VkQueueFlags flags = families[i].queueFlags;
    if (!(flags & VK_QUEUE_COMPUTE_BIT) || families[i].queueCount == 0) continue;
    if (!(flags & VK_QUEUE_GRAPHICS_BIT)) return i;
    if (!found) found = i;
  }
  return found;
}

// What the device lacks for our kernels, or empty.
std::string lacking(VkPhysicalDevice handle, const VkPhysicalDeviceProperties& properties) {
  if (properties.apiVersion < VK_API_VERSION_1_2) return "its driver is older than Vulkan 1.2";
  VkPhysicalDeviceVulkan12Features features12{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &features12};
  vkGetPhysicalDeviceFeatures2(handle, &features);
  if (!features12.bufferDeviceAddress) return "its driver has no buffer addresses";
  if (!compute_family(handle)) return "it has no compute queue";
  return "";
}

PhysicalDevice describe(VkPhysicalDevice handle) {
  VkPhysicalDeviceDriverProperties driver{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
  VkPhysicalDeviceMaintenance3Properties limits3{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, &driver};
  VkPhysicalDeviceSubgroupProperties subgroup{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES,
                                              &limits3};
  VkPhysicalDeviceIDProperties ids{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES, &subgroup};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &ids};
  vkGetPhysicalDeviceProperties2(handle, &properties);

  PhysicalDevice device;
  device.handle = handle;
  device.queue_family = *compute_family(handle);
  device.allocation_bytes_max =
      static_cast<int64_t>(std::min<uint64_t>(limits3.maxMemoryAllocationSize, INT64_MAX));
  const VkPhysicalDeviceType type = properties.properties.deviceType;
  for (int i = 0; i < 2; ++i) {
    device.groups_max[i] = properties.properties.limits.maxComputeWorkGroupCount[i];
  }
  device.shares_host_memory =
      type == VK_PHYSICAL_DEVICE_TYPE_CPU || type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  vkGetPhysicalDeviceMemoryProperties(handle, &device.memory);

  DeviceInfo& info = device.info;
  info.id = "vulkan:" + hex_encode(std::as_bytes(std::span(ids.deviceUUID)));
  info.plane = "vulkan";
  info.name = properties.properties.deviceName;
  info.driver = std::string(driver.driverName) + " " + driver.driverInfo;
  info.software = type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  DeviceFacts& facts = device.facts;
  facts.software = info.software;
  facts.subgroup_size = subgroup.subgroupSize;
  facts.subgroup_shuffle = (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
                           (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) != 0;
  facts.texels_max = properties.properties.limits.maxTexelBufferElements;
  for (uint32_t i = 0; i < device.memory.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = device.memory.memoryHeaps[i];
    if (!(heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)) continue;
    info.memory_bytes = std::max(info.memory_bytes, static_cast<int64_t>(heap.size));
  }
  return device;
}

}  // namespace

Error vulkan_error(VkResult result, std::string_view call) {
  // The call's arguments are of no use to a person.
  const std::string name(call.substr(0, call.find('(')));
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return Error{ErrorCode::kNoSpace, name + ": the driver is out of main memory"};
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return Error{ErrorCode::kNoSpace, name + ": the device is out of memory"};
    case VK_ERROR_TOO_MANY_OBJECTS:
      return Error{ErrorCode::kNoSpace, name + ": the driver allows no more allocations"};
    case VK_ERROR_DEVICE_LOST: return Error{ErrorCode::kUnavailable, name + ": the device is lost"};
    case VK_TIMEOUT: return Error{ErrorCode::kUnavailable, name + ": the device hangs"};
    case VK_ERROR_INCOMPATIBLE_DRIVER:
    case VK_ERROR_INITIALIZATION_FAILED:
      return Error{ErrorCode::kUnavailable, name + ": no Vulkan driver works on this machine"};
    default: return Error{ErrorCode::kIo, name + " failed with VkResult " + std::to_string(result)};
  }
}

Result<std::shared_ptr<const VulkanInstance>> VulkanInstance::create(const VulkanOptions& options) {
  std::call_once(g_loader_once, [] { g_loader_result = volkInitialize(); });
  if (g_loader_result != VK_SUCCESS) {
    return Error{ErrorCode::kUnavailable, "the Vulkan loader (libvulkan.so.1) is not installed"};
  }
  if (volkGetInstanceVersion() < VK_API_VERSION_1_2) {
    return Error{ErrorCode::kUnavailable, "the Vulkan loader is older than 1.2"};
  }
  auto instance = std::make_shared<VulkanInstance>(options);
  SHOAL_TRY(instance->start(options.validation));
  SHOAL_TRY(instance->find_devices());
  return std::shared_ptr<const VulkanInstance>(std::move(instance));
}

Result<void> VulkanInstance::start(bool validation) {
  if (validation && !validation_installed()) {
    return Error{ErrorCode::kUnsupported, std::string(kValidationLayer) + " is not installed"};
  }
  VkDebugUtilsMessengerCreateInfoEXT messenger{
      VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                              VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  messenger.pfnUserCallback = on_debug_message;
  messenger.pUserData = &on_message_;
  const VkValidationFeatureEnableEXT enables[] = {
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkValidationFeaturesEXT features{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT, &messenger};
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = enables;

  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "shoal";
  application.apiVersion = VK_API_VERSION_1_2;
  const char* extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;
  if (validation) {
    info.pNext = &features;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &kValidationLayer;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = extensions;
  }
  SHOAL_VK(vkCreateInstance(&info, nullptr, &instance_));
  std::call_once(g_instance_functions_once, [this] { volkLoadInstanceOnly(instance_); });

  if (validation) {
    const auto create = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
        vkGetInstanceProcAddr(instance_, "vkCreateDebugUtilsMessengerEXT"));
    SHOAL_VK(create(instance_, &messenger, nullptr, &messenger_));
  }
  return {};
}

Result<void> VulkanInstance::find_devices() {
  uint32_t count = 0;
  SHOAL_VK(vkEnumeratePhysicalDevices(instance_, &count, nullptr));
  std::vector<VkPhysicalDevice> handles(count);
  SHOAL_VK(vkEnumeratePhysicalDevices(instance_, &count, handles.data()));
  handles.resize(count);

#if defined(__SANITIZE_ADDRESS__)
  // Kept past their last use, so that the leak checker can tell their leaks by their names.
  for (const char* library : {"libvulkan_lvp.so", "libVkLayer_khronos_validation.so"}) {
    dlopen(library, RTLD_LAZY | RTLD_NODELETE | RTLD_NOLOAD);
  }
#endif

  for (const VkPhysicalDevice handle : handles) {
    VkPhysicalDeviceProperties properties{};
    vkGetPhysicalDeviceProperties(handle, &properties);
    if (const std::string reason = lacking(handle, properties); !reason.empty()) {
      left_out_ +=
          (left_out_.empty() ? "" : "; ") + std::string(properties.deviceName) + ": " + reason;
      continue;
    }
    PhysicalDevice device = describe(handle);
    // One GPU under two drivers is one device: the first driver that the loader names has it.
    const bool known =
        std::any_of(devices_.begin(), devices_.end(),
                    [&](const PhysicalDevice& other) { return other.info.id == device.info.id; });
    if (!known) devices_.push_back(std::move(device));
  }
  std::stable_sort(devices_.begin(), devices_.end(),
                   [](const auto& a, const auto& b) { return a.info.software < b.info.software; });
  for (size_t i = 0; i < devices_.size(); ++i) {
    devices_[i].info.selector = "vulkan:" + std::to_string(i);
  }
  return {};
}

VulkanInstance::~VulkanInstance() {
  if (instance_ == VK_NULL_HANDLE) return;
  if (messenger_ != VK_NULL_HANDLE) {
    const auto destroy = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
        vkGetInstanceProcAddr(instance_, "vkDestroyDebugUtilsMessengerEXT"));
    destroy(instance_, messenger_, nullptr);
  }
  vkDestroyInstance(instance_, nullptr);
}

}  // namespace shoal::compute
