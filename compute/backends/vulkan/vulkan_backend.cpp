// One dispatch path for all ops. A kernel is found by its op's name and variant; the count of its
// invocations follows from its own head (cmake/shoal_shaders.cmake); it is handed the addresses of
// its buffers and the parameter block as push constants. So nothing here learns what an op means.
//
// Buffers are bound by address and never by descriptor: a descriptor's range ends at
// maxStorageBufferRange, 128 MiB on the software driver, which is less than one weight of a
// middling model. Addresses have no such end, cost no descriptor pools, and let one pipeline layout
// serve all kernels.

#include "compute/backends/vulkan/vulkan_backend.h"

#include <algorithm>
#include <cstring>

#include "compute/backends/vulkan/vulkan_device.h"
#include "compute/backends/vulkan/vulkan_instance.h"
#include "compute/backends/vulkan/weight_layout.h"
#include "shaders/shader_table.h"

namespace shoal::compute {
namespace {

// The push constants, as shaders/lib.glsl reads them.
struct DispatchBlock {
  uint64_t buffers[5];
  uint64_t status;
  std::array<std::byte, 64> params;
  uint32_t call_index;
  uint32_t invocations;
};
static_assert(offsetof(DispatchBlock, status) == 40 && offsetof(DispatchBlock, params) == 48);
static_assert(offsetof(DispatchBlock, call_index) == 112 && sizeof(DispatchBlock) <= 128);

constexpr uint64_t kGroupSize = 64;  // local_size_x in lib.glsl.
// Kernels count invocations in 32 bits, the unused ones of the last row of groups included.
constexpr uint64_t kInvocationsMax = uint64_t{1} << 31;
constexpr uint32_t kAllFinite = 0xFFFFFFFF;         // What `status` holds until a call reports.
constexpr int64_t kRepackBytes = int64_t{4} << 20;  // Of a weight, repacked at a time.

class VulkanDevice final : public Device {
 public:
  static Result<std::unique_ptr<Device>> open(std::shared_ptr<const VulkanInstance> instance,
                                              const PhysicalDevice& physical,
                                              const VulkanOptions& options) {
    auto device = std::make_unique<VulkanDevice>();
    SHOAL_TRY_ASSIGN(context, VulkanContext::open(std::move(instance), physical, options));
    device->context_ = std::move(context);
    SHOAL_TRY_ASSIGN(status, device->context_->allocate(4, VulkanContext::MemoryUse::kStaging));
    device->status_ = std::move(status);
    device->find_kernels(options.tiled.value_or(device->info().software));
    return std::unique_ptr<Device>(std::move(device));
  }

  const DeviceInfo& info() const override { return context_->physical().info; }

  bool supports(OpKind kind, DType variant) const override {
    return in_table(kind, variant) &&
           kernels_[static_cast<int>(kind)][static_cast<int>(variant)].shader != nullptr;
  }

  Result<std::unique_ptr<Buffer>> allocate(int64_t bytes) override {
    SHOAL_TRY_ASSIGN(buffer, context_->allocate(bytes, VulkanContext::MemoryUse::kDevice));
    SHOAL_TRY(context_->zero(*buffer));
    return std::unique_ptr<Buffer>(std::move(buffer));
  }

  Result<void> upload(Buffer& buffer, int64_t offset, ByteSpan bytes) override {
    return context_->write(static_cast<VulkanBuffer&>(buffer), offset, bytes);
  }

  Result<void> download(const Buffer& buffer, int64_t offset, std::span<std::byte> bytes) override {
    return context_->read(static_cast<const VulkanBuffer&>(buffer), offset, bytes);
  }

  int64_t weight_bytes(DType dtype, int64_t rows, int64_t columns) const override {
    const Result<WeightLayout> layout = weight_layout(dtype, columns);
    SHOAL_CHECK(layout.ok());
    return rows * layout.value().row_words * 4;
  }
  Result<std::unique_ptr<Buffer>> upload_weight(DType dtype, int64_t rows, int64_t columns,
                                                ByteSpan bytes) override;

  Result<void> run(std::span<const OpCall> calls) override;

 private:
  struct Kernel {
    const Shader* shader = nullptr;
    VkPipeline pipeline = VK_NULL_HANDLE;  // Made when first used: opening a device stays quick.
  };

  void find_kernels(bool tiled);
  static bool in_table(OpKind kind, DType variant) {
    return static_cast<int>(kind) < kOpKinds && static_cast<int>(variant) < kDTypes;
  }
  Result<void> record(std::span<const OpCall> calls);
  Result<void> record_call(const OpCall& call, uint32_t index);

  std::unique_ptr<VulkanContext> context_;
  std::unique_ptr<VulkanBuffer> status_;
  Kernel kernels_[kOpKinds][kDTypes];
};

void VulkanDevice::find_kernels(bool tiled) {
  for (int kind = 0; kind < kOpKinds; ++kind) {
    const std::string op(op_name(static_cast<OpKind>(kind)));
    for (int variant = 0; variant < kDTypes; ++variant) {
      for (const Shader& shader : shader_table()) {
        if (shader.variant != dtype_name(static_cast<DType>(variant))) continue;
        const Shader*& chosen = kernels_[kind][variant].shader;
        if (shader.op == op && chosen == nullptr) chosen = &shader;
        if (tiled && shader.op == op + "_tiled") chosen = &shader;
      }
    }
  }
}

Result<std::unique_ptr<Buffer>> VulkanDevice::upload_weight(DType dtype, int64_t rows,
                                                            int64_t columns, ByteSpan bytes) {
  SHOAL_TRY_ASSIGN(layout, weight_layout(dtype, columns));
  if (rows <= 0 || bytes.size() % layout.file_row_bytes != 0 ||
      static_cast<int64_t>(bytes.size()) / layout.file_row_bytes != rows) {
    return Error{ErrorCode::kInvalid, "a weight's bytes do not match its shape"};
  }
  const int64_t row_bytes = layout.row_words * 4;
  SHOAL_TRY_ASSIGN(buffer, context_->allocate(rows * row_bytes, VulkanContext::MemoryUse::kDevice));
  const int64_t rows_at_once = std::max<int64_t>(kRepackBytes / row_bytes, 1);
  std::vector<uint32_t> words;
  for (int64_t row = 0; row < rows; row += rows_at_once) {
    const int64_t count = std::min(rows_at_once, rows - row);
    words.resize(static_cast<size_t>(count * layout.row_words));
    repack_rows(dtype, columns,
                bytes.subspan(row * layout.file_row_bytes, count * layout.file_row_bytes), words);
    SHOAL_TRY(context_->write(*buffer, row * row_bytes, std::as_bytes(std::span(words))));
  }
  return std::unique_ptr<Buffer>(std::move(buffer));
}

Result<void> VulkanDevice::record_call(const OpCall& call, uint32_t index) {
  if (!supports(call.kind, call.variant)) {
    return Error{ErrorCode::kUnsupported, info().selector + ": no kernel for " +
                                              std::string(op_name(call.kind)) + " " +
                                              std::string(dtype_name(call.variant))};
  }
  Kernel& kernel = kernels_[static_cast<int>(call.kind)][static_cast<int>(call.variant)];
  if (kernel.pipeline == VK_NULL_HANDLE) {
    SHOAL_TRY_ASSIGN(pipeline, context_->make_pipeline(kernel.shader->words));
    kernel.pipeline = pipeline;
  }

  DispatchBlock block{};
  SHOAL_CHECK(call.buffers.size() <= std::size(block.buffers));
  for (size_t i = 0; i < call.buffers.size(); ++i) {
    const BufferView& view = call.buffers[i];
    SHOAL_CHECK(view.buffer && view.offset >= 0 && view.offset % 4 == 0 && view.size >= 0);
    SHOAL_CHECK(view.offset <= view.buffer->size() &&
                view.size <= view.buffer->size() - view.offset);
    block.buffers[i] = static_cast<VulkanBuffer*>(view.buffer)->address() + view.offset;
  }
  block.status = status_->address();
  block.params = call.params;
  block.call_index = index;

  uint64_t invocations = 1;
  for (const GridFactor& factor : kernel.shader->grid) {
    if (factor.divisor == 0) break;
    uint32_t word = 0;
    SHOAL_CHECK(4 * (factor.word + 1) <= call.params_size);
    std::memcpy(&word, call.params.data() + 4 * factor.word, 4);
    invocations *= (uint64_t{word} + factor.divisor - 1) / factor.divisor;
    if (invocations > kInvocationsMax) {
      return Error{ErrorCode::kUnsupported,
                   std::string(op_name(call.kind)) + ": too many elements for one call"};
    }
  }
  if (invocations == 0) return {};
  block.invocations = static_cast<uint32_t>(invocations);
  const uint64_t groups = (invocations + kGroupSize - 1) / kGroupSize;
  const uint64_t wide = std::min<uint64_t>(groups, context_->physical().groups_max[0]);
  const uint64_t high = (groups + wide - 1) / wide;
  SHOAL_CHECK(high <= context_->physical().groups_max[1]);

  const VolkDeviceTable& vk = context_->vk();
  const VkCommandBuffer commands = context_->commands();
  vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline);
  vk.vkCmdPushConstants(commands, context_->pipeline_layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                        sizeof block, &block);
  vk.vkCmdDispatch(commands, static_cast<uint32_t>(wide), static_cast<uint32_t>(high), 1);
  return {};
}

// Each call may read what the one before it wrote.
Result<void> VulkanDevice::record(std::span<const OpCall> calls) {
  for (size_t i = 0; i < calls.size(); ++i) {
    if (i > 0) context_->barrier();
    SHOAL_TRY(record_call(calls[i], static_cast<uint32_t>(i)));
  }
  return {};
}

Result<void> VulkanDevice::run(std::span<const OpCall> calls) {
  SHOAL_TRY(context_->begin());
  SHOAL_TRY(record(calls));
  std::memcpy(status_->mapped(), &kAllFinite, sizeof kAllFinite);
  SHOAL_TRY(context_->submit());
  uint32_t reported = kAllFinite;
  std::memcpy(&reported, status_->mapped(), sizeof reported);
  if (reported == kAllFinite) return {};
  if (reported >= calls.size()) {
    return Error{ErrorCode::kIo, info().selector + ": the device reports a call that was not made"};
  }
  return Error{ErrorCode::kNonFinite, std::string(op_name(calls[reported].kind)) +
                                          ": made a NaN or an infinity (call " +
                                          std::to_string(reported) + ")"};
}

// Makes its instance when first asked, and again when that failed: a driver may come later.
class VulkanBackend final : public Backend {
 public:
  explicit VulkanBackend(const VulkanOptions& options) : options_(options) {}

  std::string_view plane() const override { return "vulkan"; }

  std::vector<DeviceInfo> devices() override {
    std::vector<DeviceInfo> infos;
    const auto instance = start();
    if (!instance.ok()) {
      why_none_ = instance.error().message;
      return infos;
    }
    for (const PhysicalDevice& device : instance.value()->devices()) infos.push_back(device.info);
    why_none_ = "";
    if (infos.empty()) {
      const std::string& left_out = instance.value()->left_out();
      why_none_ = left_out.empty() ? "no Vulkan driver found a device" : left_out;
    }
    return infos;
  }

  std::string why_none() const override { return why_none_; }

  Result<std::unique_ptr<Device>> open(const std::string& id, int) override {
    SHOAL_TRY_ASSIGN(instance, start());
    for (const PhysicalDevice& device : instance->devices()) {
      if (id == device.info.id || id == device.info.selector) {
        return VulkanDevice::open(instance, device, options_);
      }
    }
    return Error{ErrorCode::kNotFound, "no Vulkan device is called " + id};
  }

 private:
  Result<std::shared_ptr<const VulkanInstance>> start() {
    if (!instance_) {
      SHOAL_TRY_ASSIGN(instance, VulkanInstance::create(options_));
      instance_ = std::move(instance);
    }
    return instance_;
  }

  const VulkanOptions options_;
  std::shared_ptr<const VulkanInstance> instance_;
  std::string why_none_ = "the Vulkan devices were not asked for yet";
};

}  // namespace

std::unique_ptr<Backend> make_vulkan_backend() { return make_vulkan_backend(VulkanOptions{}); }

std::unique_ptr<Backend> make_vulkan_backend(const VulkanOptions& options) {
  return std::make_unique<VulkanBackend>(options);
}

}  // namespace shoal::compute
