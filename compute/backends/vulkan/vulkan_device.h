#pragma once
// One opened GPU: its memory, its queue and the pipelines made so far. Knows buffers and SPIR-V,
// and no ops.

#include <volk.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "compute/backends/vulkan/vulkan_instance.h"

namespace shoal::compute {

class VulkanContext;

// Device memory with an address. Its context outlives it.
class VulkanBuffer final : public Buffer {
 public:
  explicit VulkanBuffer(VulkanContext& context) : context_(context) {}
  ~VulkanBuffer() override;
  VulkanBuffer(const VulkanBuffer&) = delete;
  VulkanBuffer& operator=(const VulkanBuffer&) = delete;

  int64_t size() const override { return size_; }
  VkDeviceAddress address() const { return address_; }
  // Where the host sees it, or null.
  std::byte* mapped() const { return mapped_; }
  // All of it as texels of so many words, 1 or 4.
  Result<VkBufferView> texels(uint32_t words);

 private:
  friend class VulkanContext;

  VulkanContext& context_;
  int64_t size_ = 0;       // As asked for.
  int64_t allocated_ = 0;  // As the driver counts it, in `heap_`.
  uint32_t heap_ = 0;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkDeviceAddress address_ = 0;
  VkBufferView views_[2] = {};  // Of one word, of four; made when first asked for.
  std::byte* mapped_ = nullptr;
};

// Owned and called by one thread. After a lost or hung device every call fails as kUnavailable.
class VulkanContext {
 public:
  static Result<std::unique_ptr<VulkanContext>> open(std::shared_ptr<const VulkanInstance> instance,
                                                     const PhysicalDevice& physical,
                                                     const VulkanOptions& options);
  // For open() only.
  VulkanContext(std::shared_ptr<const VulkanInstance> instance, const PhysicalDevice& physical,
                const VulkanOptions& options)
      : instance_(std::move(instance)), physical_(physical), options_(options) {}
  ~VulkanContext();
  VulkanContext(const VulkanContext&) = delete;
  VulkanContext& operator=(const VulkanContext&) = delete;

  const PhysicalDevice& physical() const { return physical_; }

  enum class MemoryUse { kDevice, kStaging };
  // kNoSpace, with figures, when it does not fit. The bytes are not set.
  Result<std::unique_ptr<VulkanBuffer>> allocate(int64_t bytes, MemoryUse use);
  Result<void> zero(VulkanBuffer& buffer);
  // Bytes go to a buffer by copies that run while the next ones are made ready. open_piece() gives
  // a place for so many, at most kPieceBytes, which are made there; send_piece() hands them over.
  // finish_pieces() returns when all have arrived. Where the host sees the buffer, its own memory
  // is the place. REQUIRES: the range lies in the buffer.
  static constexpr int64_t kPieceBytes = int64_t{4} << 20;
  Result<std::span<std::byte>> open_piece(VulkanBuffer& buffer, int64_t offset, int64_t bytes);
  Result<void> send_piece();
  Result<void> finish_pieces();
  Result<void> write(VulkanBuffer& buffer, int64_t offset, ByteSpan bytes);
  Result<void> read(const VulkanBuffer& buffer, int64_t offset, std::span<std::byte> bytes);

  Result<VkPipeline> make_pipeline(std::span<const uint32_t> words);

  // Command buffers that are recorded once, ended, and then run any number of times. A recording is
  // good for as long as buffers_freed() stays as it was when it began.
  Result<VkCommandBuffer> begin_recording();
  Result<void> end(VkCommandBuffer commands);
  Result<void> submit(VkCommandBuffer commands);  // Returns at its end.
  void forget_recording(VkCommandBuffer commands);
  uint64_t buffers_freed() const { return buffers_freed_; }

  // Room for so many sets of two views, for set 0 of pipeline_layout().
  Result<VkDescriptorPool> make_pool(uint32_t sets);
  Result<VkDescriptorSet> make_set(VkDescriptorPool pool, VkBufferView first, VkBufferView second);
  void free_pool(VkDescriptorPool pool);

  // What comes later in the commands sees all that came before.
  void barrier(VkCommandBuffer commands);
  Result<void> usable() const;  // kUnavailable when the device is lost or hangs.

  const VolkDeviceTable& vk() const { return vk_; }
  VkPipelineLayout pipeline_layout() const { return pipeline_layout_; }

 private:
  friend class VulkanBuffer;

  Result<void> start();
  bool settle();  // Whether nothing is running any more, so that things may be freed.
  // Commands that are recorded for one use, with the memory that they copy from or to.
  struct Copy {
    std::unique_ptr<VulkanBuffer> staging;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    bool running = false;  // Was handed over, and its end not seen.
  };
  Result<void> begin(Copy& copy);
  Result<void> end_and_submit(Copy& copy);
  Result<void> submit(VkCommandBuffer commands, VkFence fence, bool& running);
  Result<void> wait(VkFence fence, bool& running);
  Result<void> ensure_staging(Copy& copy);
  void barrier(VkCommandBuffer commands, VkPipelineStageFlags host, VkAccessFlags host_access);
  Result<uint32_t> memory_type(uint32_t allowed, MemoryUse use) const;
  Error failed(VkResult result, std::string_view call);

  std::shared_ptr<const VulkanInstance> instance_;
  const PhysicalDevice physical_;
  const VulkanOptions options_;
  VkDevice device_ = VK_NULL_HANDLE;
  VolkDeviceTable vk_{};
  VkQueue queue_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  Copy copies_[2];  // One is filled while the other runs.
  size_t next_copy_ = 0;
  struct {
    VulkanBuffer* buffer = nullptr;
    int64_t offset = 0, bytes = 0;
  } piece_;  // The one that is open.
  VkFence run_fence_ = VK_NULL_HANDLE;
  bool run_running_ = false;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout pipeline_layout_ = VK_NULL_HANDLE;
  VkPipelineCache pipeline_cache_ = VK_NULL_HANDLE;
  std::vector<VkPipeline> pipelines_;
  int64_t heap_used_[VK_MAX_MEMORY_HEAPS] = {};
  uint64_t buffers_freed_ = 0;
  bool lost_ = false;      // No answer to be expected any more.
  bool given_up_ = false;  // What runs will not end: nothing that it uses may be freed.
};

}  // namespace shoal::compute
