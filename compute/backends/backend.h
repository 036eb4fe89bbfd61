#pragma once
// The contract of an execution plane: devices, their buffers, and one way to run op calls. A plane
// knows kernels by the op's name; it knows no models, graphs or sessions.

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "compute/graph/graph.h"
#include "shaders/op_params.h"

namespace shoal::compute {

struct DeviceInfo {
  std::string id;        // Stable: "cpu", "vulkan:<uuid hex>".
  std::string selector;  // What a person types: "cpu", "vulkan:0".
  std::string plane;     // "cpu", "vulkan", "cuda".
  std::string name;      // "AMD EPYC", "llvmpipe (LLVM 15.0.6, 256 bits)".
  std::string driver;    // Name and version, or empty.
  int64_t memory_bytes = 0;
  bool software = false;  // A GPU driver that computes on the CPU.
};

class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual int64_t size() const = 0;
};

struct BufferView {
  Buffer* buffer = nullptr;
  int64_t offset = 0;  // A multiple of 4.
  int64_t size = 0;
};

// One kernel launch. Buffers are in the order of shaders/op_params.h: inputs, then the output.
struct OpCall {
  OpKind kind = OpKind::kAdd;
  DType variant = DType::kF32;  // Type of the weight, table or state; f32 where there is no choice.
  std::vector<BufferView> buffers;
  std::array<std::byte, 64> params{};
  uint32_t params_size = 0;

  template <class Params>
  void set_params(const Params& block) {
    static_assert(sizeof(Params) <= 64);
    std::memcpy(params.data(), &block, sizeof(Params));
    params_size = sizeof(Params);
  }
  template <class Params>
  Params get_params() const {
    Params block;
    std::memcpy(&block, params.data(), sizeof(Params));
    return block;
  }
};

// One device, owned and called by one thread.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual bool supports(OpKind kind, DType variant) const = 0;

  // A zeroed buffer for activations, states and tables. kNoSpace when it does not fit.
  virtual Result<std::unique_ptr<Buffer>> allocate(int64_t bytes) = 0;
  virtual Result<void> upload(Buffer& buffer, int64_t offset, ByteSpan bytes) = 0;
  virtual Result<void> download(const Buffer& buffer, int64_t offset,
                                std::span<std::byte> bytes) = 0;

  // What upload_weight() takes on the device. REQUIRES: byte_size() accepts it.
  virtual int64_t weight_bytes(DType dtype, int64_t rows, int64_t columns) const = 0;

  // A weight in the layout that this device's kernels want; `bytes` is in the file's layout, of
  // byte_size(dtype, {rows, columns}) bytes. Only kernels read it back.
  virtual Result<std::unique_ptr<Buffer>> upload_weight(DType dtype, int64_t rows, int64_t columns,
                                                        ByteSpan bytes) = 0;

  // What may be claimed of it (compute/memory_claim.h): a little of its memory stays free for what
  // a driver takes for itself.
  int64_t claimable_bytes() const { return info().memory_bytes - info().memory_bytes / 32; }
  int64_t claimed_bytes() const { return claimed_bytes_; }

  // Runs the calls in order; when it returns, their outputs can be downloaded. kNonFinite names the
  // first op that made a NaN or an infinity; kUnavailable: the device is lost.
  virtual Result<void> run(std::span<const OpCall> calls) = 0;

 private:
  friend class MemoryClaim;
  int64_t claimed_bytes_ = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view plane() const = 0;
  virtual std::vector<DeviceInfo> devices() = 0;  // Empty, with `why_none`, where there are none.
  virtual std::string why_none() const = 0;
  // `threads`: for planes that compute on the CPU; 0 means all cores.
  virtual Result<std::unique_ptr<Device>> open(const std::string& id, int threads) = 0;
};

// The planes compiled in, cpu first.
std::vector<std::unique_ptr<Backend>> make_backends();

}  // namespace shoal::compute
