#include "compute/backends/cpu/cpu_backend.h"

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "base/host.h"
#include "base/host_memory.h"
#include "compute/backends/cpu/kernels.h"
#include "compute/backends/cpu/thread_pool.h"
#include "compute/backends/cpu/weight_layout.h"

namespace shoal::compute {
namespace {

// Below this many cycles an op runs on the caller alone: waking a thread costs more.
constexpr int64_t kShareCostMin = 40'000;
constexpr size_t kVectorBytes = 64;

class CpuBuffer final : public Buffer {
 public:
  // Null data when the memory can not be had.
  explicit CpuBuffer(int64_t size)
      : size_(size), memory_(static_cast<size_t>(size) + kVectorBytes) {}

  int64_t size() const override { return size_; }
  std::byte* data() const { return memory_.data(); }

 private:
  int64_t size_;
  ZeroedMemory memory_;  // With room for a kernel to load a whole vector at the end.
};

class CpuDevice final : public Device {
 public:
  CpuDevice(DeviceInfo info, const KernelTable& kernels, int threads)
      : info_(std::move(info)), kernels_(kernels), pool_(threads) {}

  const DeviceInfo& info() const override { return info_; }
  bool supports(OpKind, DType) const override { return true; }

  Result<std::unique_ptr<Buffer>> allocate(int64_t bytes) override {
    SHOAL_TRY_ASSIGN(buffer, allocate_cpu(bytes));
    return std::unique_ptr<Buffer>(std::move(buffer));
  }

  Result<void> upload(Buffer& buffer, int64_t offset, ByteSpan bytes) override {
    SHOAL_CHECK(offset >= 0 && offset + static_cast<int64_t>(bytes.size()) <= buffer.size());
    std::copy(bytes.begin(), bytes.end(), static_cast<CpuBuffer&>(buffer).data() + offset);
    return {};
  }

  Result<void> download(const Buffer& buffer, int64_t offset, std::span<std::byte> bytes) override {
    SHOAL_CHECK(offset >= 0 && offset + static_cast<int64_t>(bytes.size()) <= buffer.size());
    const std::byte* from = static_cast<const CpuBuffer&>(buffer).data() + offset;
    std::copy(from, from + bytes.size(), bytes.begin());
    return {};
  }

  int64_t weight_bytes(DType dtype, int64_t rows, int64_t columns) const override {
    return layout_size(dtype, rows, columns);
  }

  Result<std::unique_ptr<Buffer>> upload_weight(DType dtype, int64_t rows, int64_t columns,
                                                ByteSpan bytes) override {
    SHOAL_TRY_ASSIGN(file_bytes, byte_size(dtype, {rows, columns}));
    SHOAL_CHECK(is_weight_type(dtype) && file_bytes == static_cast<int64_t>(bytes.size()));
    SHOAL_TRY_ASSIGN(buffer, allocate_cpu(layout_size(dtype, rows, columns)));
    // By all threads: what takes longest is the first touch of the memory's pages.
    const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
    const int64_t shares = std::min<int64_t>(tiles, int64_t{pool_.threads()} * 8);
    pool_.run(shares, [&](int64_t share) {
      const RowRange part{tiles * share / shares * kTileRows,
                          std::min(rows, tiles * (share + 1) / shares * kTileRows)};
      lay_out(dtype, part, columns, bytes, buffer->data());
    });
    return std::unique_ptr<Buffer>(std::move(buffer));
  }

  Result<void> run(std::span<const OpCall> calls) override {
    for (const OpCall& op : calls) {
      KernelCall call{.variant = op.variant, .params = op.params};
      SHOAL_CHECK(op.buffers.size() <= call.buffers.size());
      for (size_t i = 0; i < op.buffers.size(); ++i) {
        const BufferView& view = op.buffers[i];
        SHOAL_CHECK(view.buffer != nullptr && view.offset >= 0 && view.size >= 0 &&
                    view.offset + view.size <= view.buffer->size());
        call.buffers[i] = static_cast<CpuBuffer*>(view.buffer)->data() + view.offset;
      }
      if (!run_one(kernels_[static_cast<size_t>(op.kind)], call)) {
        return Error{ErrorCode::kNonFinite,
                     std::string(op_name(op.kind)) + ": an element of its output is not finite"};
      }
    }
    return {};
  }

 private:
  Result<std::unique_ptr<CpuBuffer>> allocate_cpu(int64_t bytes) {
    SHOAL_CHECK(bytes >= 0);
    auto buffer = bytes <= info_.memory_bytes ? std::make_unique<CpuBuffer>(bytes) : nullptr;
    if (buffer == nullptr || buffer->data() == nullptr) {
      return Error{ErrorCode::kNoSpace,
                   "cpu: " + std::to_string(bytes) + " bytes do not fit into memory"};
    }
    return buffer;
  }

  bool run_one(const Kernel& kernel, const KernelCall& call) {
    const Work work = kernel.work(call);
    if (pool_.threads() == 1 || work.pieces < 2 || work.pieces * work.piece_cost < kShareCostMin) {
      return kernel.run(call, 0, work.pieces);
    }
    // Several shares for each thread, so that one that is held up elsewhere takes fewer.
    const int64_t shares = std::min<int64_t>(work.pieces, int64_t{pool_.threads()} * 8);
    std::atomic<bool> finite = true;
    pool_.run(shares, [&](int64_t share) {
      const int64_t first = work.pieces * share / shares;
      const int64_t last = work.pieces * (share + 1) / shares;
      if (!kernel.run(call, first, last)) finite = false;
    });
    return finite;
  }

  DeviceInfo info_;
  const KernelTable& kernels_;
  ThreadPool pool_;
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuOptions& options) {
    info_ = {.id = "cpu", .selector = "cpu", .plane = "cpu"};
    info_.name = cpu_name();
    info_.driver = "portable";
    kernels_ = &portable_kernels();
    const auto take = [&](CpuKernels kernels, const KernelTable* table, const char* name) {
      if (kernels > options.kernels_most || table == nullptr) return;
      kernels_ = table;
      info_.driver = name;
    };
    take(CpuKernels::kAvx2, avx2_kernels(), "avx2");
    take(CpuKernels::kAvxVnni, avxvnni_kernels(), "avx-vnni");
    take(CpuKernels::kAvx512, avx512_kernels(), "avx-512-vnni");
    const Result<MemoryInfo> memory = memory_info();
    info_.memory_bytes = memory.ok() ? memory.value().total.count : int64_t{8} << 30;
  }

  std::string_view plane() const override { return "cpu"; }
  std::vector<DeviceInfo> devices() override { return {info_}; }
  std::string why_none() const override { return ""; }

  Result<std::unique_ptr<Device>> open(const std::string& id, int threads) override {
    if (id != info_.id) return Error{ErrorCode::kNotFound, "cpu: there is no device " + id};
    return std::unique_ptr<Device>(std::make_unique<CpuDevice>(info_, *kernels_, threads));
  }

 private:
  const KernelTable* kernels_;
  DeviceInfo info_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

}  // namespace shoal::compute
