#include "compute/backends/vulkan/vulkan_device.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace shoal::compute {
namespace {

// Kernels count 32-bit words with a signed index.
constexpr int64_t kBufferBytesMax = int64_t{4} << 31;
// The smallest that a device must offer; what a kernel is told fits into it.
constexpr uint32_t kPushConstantBytes = 128;
// How long the end of a device waits for work that its owner gave up.
constexpr uint64_t kLastWaitNs = 2'000'000'000;

}  // namespace

// Like SHOAL_VK, and remembers a lost device.
#define SHOAL_VK_HERE(call)                                         \
  do {                                                              \
    if (const VkResult shoal_vk = (call); shoal_vk != VK_SUCCESS) { \
      return failed(shoal_vk, #call);                               \
    }                                                               \
  } while (false)

VulkanBuffer::~VulkanBuffer() {
  ++context_.buffers_freed_;
  if (!context_.settle()) return;  // Left to the end of the process.
  for (const VkBufferView view : views_) {
    context_.vk_.vkDestroyBufferView(context_.device_, view, nullptr);
  }
  context_.vk_.vkDestroyBuffer(context_.device_, buffer_, nullptr);
  context_.vk_.vkFreeMemory(context_.device_, memory_, nullptr);
  context_.heap_used_[heap_] -= allocated_;
}

Result<VkBufferView> VulkanBuffer::texels(uint32_t words) {
  SHOAL_CHECK(words == 1 || words == 4);
  VkBufferView& view = views_[words == 1 ? 0 : 1];
  if (view != VK_NULL_HANDLE) return view;
  const int64_t count = size_ / (4 * words), most = context_.physical_.facts.texels_max;
  if (count > most) {
    return Error{ErrorCode::kUnsupported, context_.physical_.info.selector + ": a buffer of " +
                                              std::to_string(size_) + " bytes has more than the " +
                                              std::to_string(most) +
                                              " texels that the driver allows"};
  }
  VkBufferViewCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO};
  info.buffer = buffer_;
  info.format = words == 1 ? VK_FORMAT_R32_UINT : VK_FORMAT_R32G32B32A32_UINT;
  info.range = static_cast<VkDeviceSize>(std::max<int64_t>(count, 1)) * 4 * words;
  const VkResult result = context_.vk_.vkCreateBufferView(context_.device_, &info, nullptr, &view);
  if (result != VK_SUCCESS) return context_.failed(result, "vkCreateBufferView");
  return view;
}

Result<std::unique_ptr<VulkanContext>> VulkanContext::open(
    std::shared_ptr<const VulkanInstance> instance, const PhysicalDevice& physical,
    const VulkanOptions& options) {
  auto context = std::make_unique<VulkanContext>(std::move(instance), physical, options);
  SHOAL_TRY(context->start());
  return context;
}

Result<void> VulkanContext::start() {
  const float priority = 0.0f;  // Below whatever the owner is doing.
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = physical_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDeviceVulkan12Features features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  features.bufferDeviceAddress = VK_TRUE;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &features};
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  SHOAL_VK(vkCreateDevice(physical_.handle, &info, nullptr, &device_));
  volkLoadDeviceTable(&vk_, device_);
  if (options_.on_functions) options_.on_functions(&vk_);
  vk_.vkGetDeviceQueue(device_, physical_.queue_family, 0, &queue_);

  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = physical_.queue_family;
  SHOAL_VK_HERE(vk_.vkCreateCommandPool(device_, &pool, nullptr, &pool_));
  const VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  for (Copy& copy : copies_) {
    VkCommandBufferAllocateInfo commands{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    commands.commandPool = pool_;
    commands.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    commands.commandBufferCount = 1;
    SHOAL_VK_HERE(vk_.vkAllocateCommandBuffers(device_, &commands, &copy.commands));
    SHOAL_VK_HERE(vk_.vkCreateFence(device_, &fence, nullptr, &copy.fence));
  }
  SHOAL_VK_HERE(vk_.vkCreateFence(device_, &fence, nullptr, &run_fence_));

  VkDescriptorSetLayoutBinding bindings[2] = {};
  for (uint32_t i = 0; i < 2; ++i) {
    bindings[i] = {i, VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT,
                   nullptr};
  }
  VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set.bindingCount = 2;
  set.pBindings = bindings;
  SHOAL_VK_HERE(vk_.vkCreateDescriptorSetLayout(device_, &set, nullptr, &set_layout_));
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushConstantBytes};
  VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &set_layout_;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &range;
  SHOAL_VK_HERE(vk_.vkCreatePipelineLayout(device_, &layout, nullptr, &pipeline_layout_));
  const VkPipelineCacheCreateInfo cache{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  SHOAL_VK_HERE(vk_.vkCreatePipelineCache(device_, &cache, nullptr, &pipeline_cache_));
  return {};
}

VulkanContext::~VulkanContext() {
  if (device_ == VK_NULL_HANDLE) return;
  for (Copy& copy : copies_) copy.staging.reset();
  if (!settle()) return;
  for (const VkPipeline pipeline : pipelines_) vk_.vkDestroyPipeline(device_, pipeline, nullptr);
  vk_.vkDestroyPipelineCache(device_, pipeline_cache_, nullptr);
  vk_.vkDestroyPipelineLayout(device_, pipeline_layout_, nullptr);
  vk_.vkDestroyDescriptorSetLayout(device_, set_layout_, nullptr);
  for (const Copy& copy : copies_) vk_.vkDestroyFence(device_, copy.fence, nullptr);
  vk_.vkDestroyFence(device_, run_fence_, nullptr);
  vk_.vkDestroyCommandPool(device_, pool_, nullptr);
  vk_.vkDestroyDevice(device_, nullptr);
}

// A device that still runs our commands must keep what they use, and waiting for it could hang this
// thread for ever. So a run that was given up gets one more chance to end, and after that nothing
// that it may use is freed any more.
bool VulkanContext::settle() {
  const auto end = [this](VkFence fence, bool& running) {
    if (!running || given_up_) return;
    const VkResult waited = vk_.vkWaitForFences(device_, 1, &fence, VK_TRUE, kLastWaitNs);
    running = waited == VK_TIMEOUT;
    given_up_ = running;
    if (waited != VK_SUCCESS) lost_ = true;
  };
  for (Copy& copy : copies_) end(copy.fence, copy.running);
  end(run_fence_, run_running_);
  return !given_up_;
}

Error VulkanContext::failed(VkResult result, std::string_view call) {
  if (result == VK_ERROR_DEVICE_LOST || result == VK_TIMEOUT) lost_ = true;
  call.remove_prefix(std::min(call.find("vk_.") == 0 ? size_t{4} : size_t{0}, call.size()));
  return with_context(vulkan_error(result, call), physical_.info.selector);
}

Result<void> VulkanContext::usable() const {
  if (lost_) {
    return Error{ErrorCode::kUnavailable,
                 physical_.info.selector + ": the device is lost or hangs"};
  }
  return {};
}

Result<uint32_t> VulkanContext::memory_type(uint32_t allowed, MemoryUse use) const {
  constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  constexpr VkMemoryPropertyFlags kVisible =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  constexpr VkMemoryPropertyFlags kCached = kVisible | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  // The first wish that some type fulfils.
  std::vector<VkMemoryPropertyFlags> wishes;
  if (use == MemoryUse::kStaging) {
    wishes = {kCached, kVisible};
  } else if (physical_.shares_host_memory) {
    wishes = {kLocal | kCached, kLocal | kVisible, kLocal, 0};
  } else {
    wishes = {kLocal, 0};
  }
  const VkPhysicalDeviceMemoryProperties& memory = physical_.memory;
  for (const VkMemoryPropertyFlags wish : wishes) {
    for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
      if ((allowed >> i & 1) && (memory.memoryTypes[i].propertyFlags & wish) == wish) return i;
    }
  }
  return Error{ErrorCode::kUnsupported,
               physical_.info.selector + ": no memory that the host can see"};
}

Result<std::unique_ptr<VulkanBuffer>> VulkanContext::allocate(int64_t bytes, MemoryUse use) {
  SHOAL_CHECK(bytes >= 0);
  SHOAL_TRY(usable());
  const int64_t bytes_max = std::min(physical_.allocation_bytes_max, kBufferBytesMax);
  if (bytes > bytes_max) {
    return Error{ErrorCode::kNoSpace,
                 physical_.info.selector + ": a buffer of " + std::to_string(bytes) +
                     " bytes is too large, the driver allows " + std::to_string(bytes_max)};
  }

  auto buffer = std::make_unique<VulkanBuffer>(*this);
  buffer->size_ = bytes;
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size =
      static_cast<VkDeviceSize>(std::max<int64_t>((bytes + 3) / 4 * 4, 4));  // vkCmdFillBuffer.
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
               VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT;
  SHOAL_VK_HERE(vk_.vkCreateBuffer(device_, &info, nullptr, &buffer->buffer_));

  VkMemoryRequirements needs;
  vk_.vkGetBufferMemoryRequirements(device_, buffer->buffer_, &needs);
  SHOAL_TRY_ASSIGN(type, memory_type(needs.memoryTypeBits, use));
  const VkMemoryType& memory = physical_.memory.memoryTypes[type];
  const int64_t heap_bytes =
      static_cast<int64_t>(physical_.memory.memoryHeaps[memory.heapIndex].size);
  const int64_t used = heap_used_[memory.heapIndex];
  if (static_cast<int64_t>(needs.size) > heap_bytes - used) {
    return Error{ErrorCode::kNoSpace, physical_.info.selector + ": a buffer of " +
                                          std::to_string(bytes) + " bytes does not fit, " +
                                          std::to_string(used) + " of " +
                                          std::to_string(heap_bytes) + " bytes are in use"};
  }
  VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &flags};
  allocate.allocationSize = needs.size;
  allocate.memoryTypeIndex = type;
  SHOAL_VK_HERE(vk_.vkAllocateMemory(device_, &allocate, nullptr, &buffer->memory_));
  buffer->heap_ = memory.heapIndex;
  buffer->allocated_ = static_cast<int64_t>(needs.size);
  heap_used_[memory.heapIndex] += buffer->allocated_;
  SHOAL_VK_HERE(vk_.vkBindBufferMemory(device_, buffer->buffer_, buffer->memory_, 0));

  VkBufferDeviceAddressInfo address{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
  address.buffer = buffer->buffer_;
  buffer->address_ = vk_.vkGetBufferDeviceAddress(device_, &address);

  constexpr VkMemoryPropertyFlags kMappable =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const bool map =
      use == MemoryUse::kStaging || (physical_.shares_host_memory && !options_.always_stage &&
                                     (memory.propertyFlags & kMappable) == kMappable);
  if (map) {
    void* mapped = nullptr;
    SHOAL_VK_HERE(vk_.vkMapMemory(device_, buffer->memory_, 0, VK_WHOLE_SIZE, 0, &mapped));
    buffer->mapped_ = static_cast<std::byte*>(mapped);
  }
  return buffer;
}

Result<void> VulkanContext::ensure_staging(Copy& copy) {
  if (copy.staging) return {};
  SHOAL_TRY_ASSIGN(staging, allocate(kPieceBytes, MemoryUse::kStaging));
  copy.staging = std::move(staging);
  return {};
}

Result<void> VulkanContext::zero(VulkanBuffer& buffer) {
  SHOAL_TRY(usable());
  if (buffer.mapped_) {
    std::memset(buffer.mapped_, 0, static_cast<size_t>(buffer.size_));
    return {};
  }
  Copy& copy = copies_[0];
  SHOAL_TRY(begin(copy));
  vk_.vkCmdFillBuffer(copy.commands, buffer.buffer_, 0, VK_WHOLE_SIZE, 0);
  SHOAL_TRY(end_and_submit(copy));
  return wait(copy.fence, copy.running);
}

Result<std::span<std::byte>> VulkanContext::open_piece(VulkanBuffer& buffer, int64_t offset,
                                                       int64_t bytes) {
  SHOAL_CHECK(offset >= 0 && offset <= buffer.size_ && bytes <= buffer.size_ - offset);
  SHOAL_CHECK(bytes >= 0 && bytes <= kPieceBytes);
  SHOAL_TRY(usable());
  piece_ = {&buffer, offset, bytes};
  if (buffer.mapped_) return std::span(buffer.mapped_ + offset, static_cast<size_t>(bytes));
  Copy& copy = copies_[next_copy_];
  SHOAL_TRY(ensure_staging(copy));
  SHOAL_TRY(wait(copy.fence, copy.running));
  return std::span(copy.staging->mapped_, static_cast<size_t>(bytes));
}

Result<void> VulkanContext::send_piece() {
  if (piece_.bytes == 0 || piece_.buffer->mapped_) return {};
  Copy& copy = copies_[next_copy_];
  next_copy_ = (next_copy_ + 1) % std::size(copies_);
  SHOAL_TRY(begin(copy));
  const VkBufferCopy range{0, static_cast<VkDeviceSize>(piece_.offset),
                           static_cast<VkDeviceSize>(piece_.bytes)};
  vk_.vkCmdCopyBuffer(copy.commands, copy.staging->buffer_, piece_.buffer->buffer_, 1, &range);
  return end_and_submit(copy);
}

Result<void> VulkanContext::finish_pieces() {
  for (Copy& copy : copies_) SHOAL_TRY(wait(copy.fence, copy.running));
  return {};
}

Result<void> VulkanContext::write(VulkanBuffer& buffer, int64_t offset, ByteSpan bytes) {
  SHOAL_CHECK(offset >= 0 && offset <= buffer.size_);
  SHOAL_CHECK(static_cast<int64_t>(bytes.size()) <= buffer.size_ - offset);
  for (size_t done = 0; done < bytes.size();) {
    const size_t count = std::min(bytes.size() - done, static_cast<size_t>(kPieceBytes));
    SHOAL_TRY_ASSIGN(piece, open_piece(buffer, offset + static_cast<int64_t>(done),
                                       static_cast<int64_t>(count)));
    std::memcpy(piece.data(), bytes.data() + done, count);
    SHOAL_TRY(send_piece());
    done += count;
  }
  return finish_pieces();
}

Result<void> VulkanContext::read(const VulkanBuffer& buffer, int64_t offset,
                                 std::span<std::byte> bytes) {
  SHOAL_CHECK(offset >= 0 && offset <= buffer.size_);
  SHOAL_CHECK(static_cast<int64_t>(bytes.size()) <= buffer.size_ - offset);
  SHOAL_TRY(usable());
  if (bytes.empty()) return {};
  if (buffer.mapped_) {
    std::memcpy(bytes.data(), buffer.mapped_ + offset, bytes.size());
    return {};
  }
  Copy& copy = copies_[0];
  SHOAL_TRY(ensure_staging(copy));
  for (size_t done = 0; done < bytes.size();) {
    const size_t count = std::min(bytes.size() - done, static_cast<size_t>(kPieceBytes));
    SHOAL_TRY(begin(copy));
    const VkBufferCopy range{static_cast<VkDeviceSize>(offset) + done, 0, count};
    vk_.vkCmdCopyBuffer(copy.commands, buffer.buffer_, copy.staging->buffer_, 1, &range);
    SHOAL_TRY(end_and_submit(copy));
    SHOAL_TRY(wait(copy.fence, copy.running));
    std::memcpy(bytes.data() + done, copy.staging->mapped_, count);
    done += count;
  }
  return {};
}

Result<VkPipeline> VulkanContext::make_pipeline(std::span<const uint32_t> words) {
  SHOAL_TRY(usable());
  VkShaderModuleCreateInfo module_info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  module_info.codeSize = words.size_bytes();
  module_info.pCode = words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  SHOAL_VK_HERE(vk_.vkCreateShaderModule(device_, &module_info, nullptr, &module));
  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.layout = pipeline_layout_;
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result =
      vk_.vkCreateComputePipelines(device_, pipeline_cache_, 1, &info, nullptr, &pipeline);
  vk_.vkDestroyShaderModule(device_, module, nullptr);
  if (result != VK_SUCCESS) return failed(result, "vkCreateComputePipelines");
  pipelines_.push_back(pipeline);
  return pipeline;
}

Result<void> VulkanContext::begin(Copy& copy) {
  SHOAL_TRY(wait(copy.fence, copy.running));
  SHOAL_TRY(usable());
  // What a failed recording left behind goes, too.
  SHOAL_VK_HERE(vk_.vkResetCommandBuffer(copy.commands, 0));
  VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  SHOAL_VK_HERE(vk_.vkBeginCommandBuffer(copy.commands, &info));
  return {};
}

Result<void> VulkanContext::end_and_submit(Copy& copy) {
  SHOAL_TRY(end(copy.commands));
  return submit(copy.commands, copy.fence, copy.running);
}

Result<VkCommandBuffer> VulkanContext::begin_recording() {
  SHOAL_TRY(usable());
  VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  allocate.commandPool = pool_;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  SHOAL_VK_HERE(vk_.vkAllocateCommandBuffers(device_, &allocate, &commands));
  const VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  if (const VkResult result = vk_.vkBeginCommandBuffer(commands, &info); result != VK_SUCCESS) {
    vk_.vkFreeCommandBuffers(device_, pool_, 1, &commands);
    return failed(result, "vkBeginCommandBuffer");
  }
  return commands;
}

Result<void> VulkanContext::end(VkCommandBuffer commands) {
  // For the host and for whatever is submitted next.
  barrier(commands, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  SHOAL_VK_HERE(vk_.vkEndCommandBuffer(commands));
  return {};
}

void VulkanContext::forget_recording(VkCommandBuffer commands) {
  if (settle()) vk_.vkFreeCommandBuffers(device_, pool_, 1, &commands);
}

Result<VkDescriptorPool> VulkanContext::make_pool(uint32_t sets) {
  SHOAL_TRY(usable());
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, 2 * sets};
  VkDescriptorPoolCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  info.maxSets = sets;
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  VkDescriptorPool pool = VK_NULL_HANDLE;
  SHOAL_VK_HERE(vk_.vkCreateDescriptorPool(device_, &info, nullptr, &pool));
  return pool;
}

Result<VkDescriptorSet> VulkanContext::make_set(VkDescriptorPool pool, VkBufferView first,
                                                VkBufferView second) {
  VkDescriptorSetAllocateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  info.descriptorPool = pool;
  info.descriptorSetCount = 1;
  info.pSetLayouts = &set_layout_;
  VkDescriptorSet set = VK_NULL_HANDLE;
  SHOAL_VK_HERE(vk_.vkAllocateDescriptorSets(device_, &info, &set));
  const VkBufferView views[2] = {first, second};
  VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
  write.dstSet = set;
  write.descriptorCount = 2;  // Goes over to binding 1, which is like binding 0.
  write.descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER;
  write.pTexelBufferView = views;
  vk_.vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
  return set;
}

void VulkanContext::free_pool(VkDescriptorPool pool) {
  if (settle()) vk_.vkDestroyDescriptorPool(device_, pool, nullptr);
}

void VulkanContext::barrier(VkCommandBuffer commands) { barrier(commands, 0, 0); }

void VulkanContext::barrier(VkCommandBuffer commands, VkPipelineStageFlags host,
                            VkAccessFlags host_access) {
  constexpr VkPipelineStageFlags kStages =
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                          VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT | host_access;
  vk_.vkCmdPipelineBarrier(commands, kStages, kStages | host, 0, 1, &barrier, 0, nullptr, 0,
                           nullptr);
}

Result<void> VulkanContext::submit(VkCommandBuffer commands, VkFence fence, bool& running) {
  SHOAL_TRY(usable());
  SHOAL_VK_HERE(vk_.vkResetFences(device_, 1, &fence));
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  SHOAL_VK_HERE(vk_.vkQueueSubmit(queue_, 1, &info, fence));
  running = true;
  return {};
}

Result<void> VulkanContext::wait(VkFence fence, bool& running) {
  if (!running) return {};
  const uint64_t timeout_ns = options_.run_timeout_ms * 1'000'000;
  const VkResult waited = vk_.vkWaitForFences(device_, 1, &fence, VK_TRUE, timeout_ns);
  // A lost device has ended all work, so what it used may be freed.
  if (waited == VK_SUCCESS || waited == VK_ERROR_DEVICE_LOST) running = false;
  SHOAL_VK_HERE(waited);
  return {};
}

Result<void> VulkanContext::submit(VkCommandBuffer commands) {
  SHOAL_TRY(submit(commands, run_fence_, run_running_));
  return wait(run_fence_, run_running_);
}

}  // namespace shoal::compute
