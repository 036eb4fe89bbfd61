// One dispatch path for all ops. A kernel is found by its op's name and variant; the count of its
// invocations follows from its own head (cmake/shoal_shaders.cmake); it is handed the addresses of
// its buffers and the parameter block as push constants. So nothing here learns what an op means.
//
// Buffers are bound by address and not by descriptor: a descriptor's range ends at
// maxStorageBufferRange, 128 MiB on the software driver, which is less than one weight of a
// middling model. Addresses have no such end, cost no descriptor pools, and let one pipeline layout
// serve all kernels. The exception are kernels that read texels, whose views have no such end
// either.
//
// A step's calls are recorded once and submitted again whenever the same ones are asked for: what
// changes from step to step (tokens, positions) lies in buffers.

#include "compute/backends/vulkan/vulkan_backend.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "compute/backends/vulkan/hazards.h"
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

constexpr uint64_t kCountedGroup = 64;  // Kernels with groups of this size count invocations.
// Kernels count invocations in 32 bits, the unused ones of the last row of groups included.
constexpr uint64_t kInvocationsMax = uint64_t{1} << 31;
constexpr uint32_t kAllFinite = 0xFFFFFFFF;  // What `status` holds until a call reports.
// All recordings that are kept hold no more: some 500 bytes each in the driver.
constexpr size_t kRecordedCallsMax = 20'000;

bool same_call(const OpCall& a, const OpCall& b) {
  const auto same_view = [](const BufferView& x, const BufferView& y) {
    return x.buffer == y.buffer && x.offset == y.offset && x.size == y.size;
  };
  return a.kind == b.kind && a.variant == b.variant && a.params_size == b.params_size &&
         a.params == b.params &&
         std::equal(a.buffers.begin(), a.buffers.end(), b.buffers.begin(), b.buffers.end(),
                    same_view);
}

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
    SHOAL_TRY(device->find_kernels(options.kernels.value_or(choose_kernels(physical.facts))));
    return std::unique_ptr<Device>(std::move(device));
  }

  ~VulkanDevice() override { forget_recordings(0); }

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
    return layout.value().words(rows) * 4;
  }
  Result<std::unique_ptr<Buffer>> upload_weight(DType dtype, int64_t rows, int64_t columns,
                                                ByteSpan bytes) override;

  Result<void> run(std::span<const OpCall> calls) override;

 private:
  struct Kernel {
    const Shader* shader = nullptr;
    VkPipeline pipeline = VK_NULL_HANDLE;  // Made when first used: opening a device stays quick.
  };

  struct Recording {
    std::vector<OpCall> calls;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkDescriptorPool pool = VK_NULL_HANDLE;
  };

  Result<void> find_kernels(const KernelChoice& choice);
  static bool in_table(OpKind kind, DType variant) {
    return static_cast<int>(kind) < kOpKinds && static_cast<int>(variant) < kDTypes;
  }
  Result<Kernel*> kernel_of(const OpCall& call);
  // Drops the oldest recordings, until those left have no more calls.
  void forget_recordings(size_t calls_max);
  Result<VkCommandBuffer> recording_of(std::span<const OpCall> calls);
  Result<void> record(std::span<const OpCall> calls, Recording& recording);
  Result<void> record_call(const OpCall& call, uint32_t index, const Recording& recording);

  std::unique_ptr<VulkanContext> context_;
  std::unique_ptr<VulkanBuffer> status_;
  Kernel kernels_[kOpKinds][kDTypes];
  std::vector<Recording> recordings_;  // The one used last at the end.
  size_t recorded_calls_ = 0;
  uint64_t recorded_since_ = 0;  // buffers_freed() of the context.
};

Result<void> VulkanDevice::find_kernels(const KernelChoice& choice) {
  if (const auto reason = why_not(context_->physical().facts, choice.matmul)) {
    return Error{ErrorCode::kUnsupported,
                 info().selector + ": cannot run the kernels asked for: " + *reason};
  }
  for (int kind = 0; kind < kOpKinds; ++kind) {
    const std::string op(op_name(static_cast<OpKind>(kind)));
    const bool is_matmul = static_cast<OpKind>(kind) == OpKind::kMatmul;
    const std::string better = op + std::string(kernel_suffix(choice.matmul));
    for (int variant = 0; variant < kDTypes; ++variant) {
      for (const Shader& shader : shader_table()) {
        if (shader.variant != dtype_name(static_cast<DType>(variant))) continue;
        const Shader*& chosen = kernels_[kind][variant].shader;
        if (shader.op == op && chosen == nullptr) chosen = &shader;
        if (is_matmul && shader.op == better) chosen = &shader;
      }
    }
  }
  return {};
}

Result<std::unique_ptr<Buffer>> VulkanDevice::upload_weight(DType dtype, int64_t rows,
                                                            int64_t columns, ByteSpan bytes) {
  SHOAL_TRY_ASSIGN(layout, weight_layout(dtype, columns));
  if (rows <= 0 || bytes.size() % layout.file_row_bytes != 0 ||
      static_cast<int64_t>(bytes.size()) / layout.file_row_bytes != rows) {
    return Error{ErrorCode::kInvalid, "a weight's bytes do not match its shape"};
  }
  const int64_t row_bytes = layout.row_words * 4;
  SHOAL_TRY_ASSIGN(buffer,
                   context_->allocate(layout.words(rows) * 4, VulkanContext::MemoryUse::kDevice));
  const auto repack = [&](int64_t row, int64_t count, std::span<uint32_t> out) {
    repack_rows(dtype, columns,
                bytes.subspan(row * layout.file_row_bytes, count * layout.file_row_bytes), out);
  };
  // Straight to where the device takes it from, or by way of our memory where a tile is too large.
  const int64_t tiles_at_once = VulkanContext::kPieceBytes / (row_bytes * layout.tile_rows);
  const int64_t rows_at_once = std::max<int64_t>(tiles_at_once, 1) * layout.tile_rows;
  std::vector<uint32_t> tile;
  for (int64_t row = 0; row < rows; row += rows_at_once) {
    const int64_t count = std::min(rows_at_once, rows - row);
    if (tiles_at_once == 0) {
      tile.resize(static_cast<size_t>(layout.words(count)));
      repack(row, count, tile);
      SHOAL_TRY(context_->write(*buffer, row * row_bytes, std::as_bytes(std::span(tile))));
      continue;
    }
    SHOAL_TRY_ASSIGN(piece,
                     context_->open_piece(*buffer, row * row_bytes, layout.words(count) * 4));
    repack(row, count, {reinterpret_cast<uint32_t*>(piece.data()), piece.size() / 4});
    SHOAL_TRY(context_->send_piece());
  }
  SHOAL_TRY(context_->finish_pieces());
  return std::unique_ptr<Buffer>(std::move(buffer));
}

Result<VulkanDevice::Kernel*> VulkanDevice::kernel_of(const OpCall& call) {
  if (!supports(call.kind, call.variant)) {
    return Error{ErrorCode::kUnsupported, info().selector + ": no kernel for " +
                                              std::string(op_name(call.kind)) + " " +
                                              std::string(dtype_name(call.variant))};
  }
  Kernel& kernel = kernels_[static_cast<int>(call.kind)][static_cast<int>(call.variant)];
  if (kernel.pipeline == VK_NULL_HANDLE) {
    Result<VkPipeline> pipeline = context_->make_pipeline(kernel.shader->words);
    if (!pipeline.ok()) {
      return with_context(pipeline.error(), std::string(kernel.shader->op) + " " +
                                                std::string(kernel.shader->variant));
    }
    kernel.pipeline = pipeline.value();
  }
  return &kernel;
}

Result<void> VulkanDevice::record_call(const OpCall& call, uint32_t index,
                                       const Recording& recording) {
  SHOAL_TRY_ASSIGN(found, kernel_of(call));
  const Kernel& kernel = *found;
  const Shader& shader = *kernel.shader;

  DispatchBlock block{};
  SHOAL_CHECK(call.buffers.size() <= std::size(block.buffers));
  VkBufferView views[2] = {};
  for (size_t i = 0; i < call.buffers.size(); ++i) {
    const BufferView& view = call.buffers[i];
    SHOAL_CHECK(view.buffer && view.offset >= 0 && view.offset % 4 == 0 && view.size >= 0);
    SHOAL_CHECK(view.offset <= view.buffer->size() &&
                view.size <= view.buffer->size() - view.offset);
    auto& buffer = *static_cast<VulkanBuffer*>(view.buffer);
    const uint32_t words = i < shader.texel_words.size() ? shader.texel_words[i] : 0;
    if (words == 0) {
      block.buffers[i] = buffer.address() + view.offset;
      continue;
    }
    SHOAL_CHECK(view.offset % (4 * words) == 0);
    block.buffers[i] = view.offset / (4 * words);
    SHOAL_TRY_ASSIGN(texels, buffer.texels(words));
    views[i] = texels;
  }
  block.status = status_->address();
  block.params = call.params;
  block.call_index = index;

  uint64_t invocations = 1;
  for (const GridFactor& factor : shader.grid) {
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
  if (shader.group != kCountedGroup) invocations *= shader.group;
  SHOAL_CHECK(invocations <= std::numeric_limits<uint32_t>::max());
  block.invocations = static_cast<uint32_t>(invocations);
  const uint64_t groups = (invocations + shader.group - 1) / shader.group;
  const uint64_t wide = std::min<uint64_t>(groups, context_->physical().groups_max[0]);
  const uint64_t high = (groups + wide - 1) / wide;
  SHOAL_CHECK(high <= context_->physical().groups_max[1]);

  const VolkDeviceTable& vk = context_->vk();
  const VkCommandBuffer commands = recording.commands;
  vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline);
  if (shader.texel_words[0] != 0) {
    SHOAL_TRY_ASSIGN(set, context_->make_set(recording.pool, views[0], views[1]));
    vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                               context_->pipeline_layout(), 0, 1, &set, 0, nullptr);
  }
  vk.vkCmdPushConstants(commands, context_->pipeline_layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                        sizeof block, &block);
  vk.vkCmdDispatch(commands, static_cast<uint32_t>(wide), static_cast<uint32_t>(high), 1);
  return {};
}

Result<void> VulkanDevice::record(std::span<const OpCall> calls, Recording& recording) {
  uint32_t sets = 0;
  for (const OpCall& call : calls) {
    SHOAL_TRY_ASSIGN(kernel, kernel_of(call));
    if (kernel->shader->texel_words[0] != 0) ++sets;
  }
  if (sets > 0) {
    SHOAL_TRY_ASSIGN(pool, context_->make_pool(sets));
    recording.pool = pool;
  }
  SHOAL_TRY_ASSIGN(commands, context_->begin_recording());
  recording.commands = commands;
  Hazards hazards;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (hazards.barrier_before(calls[i].buffers)) context_->barrier(commands);
    SHOAL_TRY(record_call(calls[i], static_cast<uint32_t>(i), recording));
  }
  return context_->end(commands);
}

void VulkanDevice::forget_recordings(size_t calls_max) {
  size_t dropped = 0;
  for (; recorded_calls_ > calls_max; ++dropped) {
    const Recording& oldest = recordings_[dropped];
    recorded_calls_ -= oldest.calls.size();
    if (oldest.commands != VK_NULL_HANDLE) context_->forget_recording(oldest.commands);
    if (oldest.pool != VK_NULL_HANDLE) context_->free_pool(oldest.pool);
  }
  recordings_.erase(recordings_.begin(),
                    recordings_.begin() + static_cast<std::ptrdiff_t>(dropped));
}

// A recording holds addresses and views, so none outlives a buffer.
Result<VkCommandBuffer> VulkanDevice::recording_of(std::span<const OpCall> calls) {
  if (recorded_since_ != context_->buffers_freed()) forget_recordings(0);
  recorded_since_ = context_->buffers_freed();
  const auto found = std::find_if(recordings_.begin(), recordings_.end(), [&](const Recording& r) {
    return std::equal(calls.begin(), calls.end(), r.calls.begin(), r.calls.end(), same_call);
  });
  if (found != recordings_.end()) {
    std::rotate(found, found + 1, recordings_.end());
    return recordings_.back().commands;
  }
  forget_recordings(kRecordedCallsMax - std::min(calls.size(), kRecordedCallsMax));
  recordings_.push_back({{calls.begin(), calls.end()}});
  recorded_calls_ += calls.size();
  if (Result<void> recorded = record(calls, recordings_.back()); !recorded.ok()) {
    forget_recordings(0);
    return recorded.error();
  }
  return recordings_.back().commands;
}

Result<void> VulkanDevice::run(std::span<const OpCall> calls) {
  SHOAL_TRY(context_->usable());
  if (calls.empty()) return {};
  SHOAL_TRY_ASSIGN(commands, recording_of(calls));
  std::memcpy(status_->mapped(), &kAllFinite, sizeof kAllFinite);
  SHOAL_TRY(context_->submit(commands));
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
