// One dispatch path for all ops, as the Vulkan plane has it: a kernel is found by its op's name and
// variant, and is handed addresses and the parameter block. The plug-in behind the door knows CUDA;
// what is decided of buffers, weights, graphs and errors is decided here, and is tested on the
// shim.

#include "compute/backends/cuda/cuda_backend.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/bytes.h"
#include "base/check.h"
#include "compute/backends/cuda/weight_layout.h"
#include "compute/ops/op.h"

namespace shoal::compute {
namespace {

using cuda::Door;
using cuda::DoorCall;
using cuda::DoorCard;
using cuda::DoorGraph;
using cuda::DoorSession;
using cuda::DoorStatus;

constexpr int64_t kRepackBytes = int64_t{4} << 20;  // Of a weight, repacked at a time.
constexpr size_t kSentenceBytes = 512;

std::string version_text(int32_t version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

DeviceInfo device_info(const DoorCard& card, int number) {
  DeviceInfo info;
  info.id = "cuda:" + hex_encode(std::as_bytes(std::span(card.uuid)));
  info.selector = "cuda:" + std::to_string(number);
  info.plane = "cuda";
  info.name = std::string(card.name, strnlen(card.name, sizeof card.name));
  info.driver = "CUDA " + version_text(card.driver_version) + ", compute capability " +
                std::to_string(card.major) + "." + std::to_string(card.minor);
  info.memory_bytes = card.memory_bytes;
  return info;
}

// A session of the door, closed at the end.
class Session {
 public:
  Session(const Door& door, DoorSession* session, std::string selector)
      : door_(door), session_(session), selector_(std::move(selector)) {}
  ~Session() { door_.close(session_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Door& door() const { return door_; }
  DoorSession* get() const { return session_; }

  // A card that was lost once stays lost for this process: its driver says so to every later call.
  Result<void> check(DoorStatus status, int64_t bytes = 0) {
    if (status == DoorStatus::kOk) return {};
    std::string why = selector_ + ": " + door_.why(session_);
    if (status == DoorStatus::kNoSpace) {
      int64_t free_bytes = 0, total_bytes = 0;
      if (door_.memory(session_, &free_bytes, &total_bytes) == DoorStatus::kOk) {
        why += "; " + std::to_string(bytes) + " bytes are wanted, " + std::to_string(free_bytes) +
               " of " + std::to_string(total_bytes) + " are free";
      }
      return Error{ErrorCode::kNoSpace, why};
    }
    lost_ = true;
    return Error{ErrorCode::kUnavailable,
                 why + "; the card is lost to this process (the system's log may name an Xid)"};
  }
  bool lost() const { return lost_; }
  Error lost_error() const {
    return Error{ErrorCode::kUnavailable, selector_ + ": the card was lost before"};
  }

 private:
  const Door& door_;
  DoorSession* session_;
  std::string selector_;
  bool lost_ = false;
};

class CudaBuffer final : public Buffer {
 public:
  CudaBuffer(const Session& session, uint64_t address, int64_t size)
      : session_(session), address_(address), size_(size) {}
  ~CudaBuffer() override { session_.door().release(session_.get(), address_); }
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;

  int64_t size() const override { return size_; }
  uint64_t address() const { return address_; }

 private:
  const Session& session_;  // Of the device, which outlives its buffers.
  uint64_t address_;
  int64_t size_;
};

// Which lists of calls come again and are worth a graph: a decoding step is the same list each
// time, as positions and lengths stand in buffers. A list is kept as a graph when it comes a second
// time.
class KnownCalls {
 public:
  struct Use {
    DoorGraph graph = DoorGraph::kNone;
    uint32_t slot = 0;
  };

  Use look_up(const std::vector<DoorCall>& calls) {
    ++now_;
    for (uint32_t slot = 0; slot < cuda::kDoorGraphs; ++slot) {
      Entry& entry = entries_[slot];
      if (!same(entry.calls, calls)) continue;
      entry.last_use = now_;
      if (entry.kept) return {DoorGraph::kAgain, slot};
      entry.kept = true;
      return {DoorGraph::kKeep, slot};
    }
    Entry& oldest = *std::ranges::min_element(entries_, {}, &Entry::last_use);
    oldest = {calls, now_, false};
    return {};
  }
  void forget() { std::ranges::fill(entries_, Entry{}); }

 private:
  struct Entry {
    std::vector<DoorCall> calls;
    uint64_t last_use = 0;
    bool kept = false;
  };
  static bool same(const std::vector<DoorCall>& a, const std::vector<DoorCall>& b) {
    return a.size() == b.size() &&
           std::memcmp(a.data(), b.data(), a.size() * sizeof(DoorCall)) == 0;
  }

  std::array<Entry, cuda::kDoorGraphs> entries_;
  uint64_t now_ = 0;
};
static_assert(std::has_unique_object_representations_v<DoorCall>);  // Compared by its bytes.

class CudaDevice final : public Device {
 public:
  CudaDevice(DeviceInfo info, const Door& door, DoorSession* session)
      : info_(std::move(info)), session_(door, session, info_.selector), door_(door) {
    for (int kind = 0; kind < kOpKinds; ++kind) {
      for (int variant = 0; variant < kDTypes; ++variant) {
        const std::string op(op_name(static_cast<OpKind>(kind)));
        const std::string type(dtype_name(static_cast<DType>(variant)));
        kernels_[kind][variant] = door_.kernel(op.c_str(), type.c_str());
      }
    }
  }

  const DeviceInfo& info() const override { return info_; }
  bool supports(OpKind kind, DType variant) const override {
    return static_cast<int>(kind) < kOpKinds && static_cast<int>(variant) < kDTypes &&
           kernels_[static_cast<int>(kind)][static_cast<int>(variant)] != cuda::kNoKernel;
  }

  Result<std::unique_ptr<Buffer>> allocate(int64_t bytes) override {
    if (bytes <= 0) return Error{ErrorCode::kInvalid, "a buffer of no bytes"};
    if (session_.lost()) return session_.lost_error();
    uint64_t address = 0;
    SHOAL_TRY(session_.check(door_.allocate(session_.get(), bytes, &address), bytes));
    return std::unique_ptr<Buffer>(std::make_unique<CudaBuffer>(session_, address, bytes));
  }

  Result<void> upload(Buffer& buffer, int64_t offset, ByteSpan bytes) override {
    const auto size = static_cast<int64_t>(bytes.size());
    SHOAL_CHECK(offset >= 0 && offset <= buffer.size() && size <= buffer.size() - offset);
    if (session_.lost()) return session_.lost_error();
    const uint64_t to = static_cast<CudaBuffer&>(buffer).address() + static_cast<uint64_t>(offset);
    return session_.check(door_.write(session_.get(), to, bytes.data(), size));
  }

  Result<void> download(const Buffer& buffer, int64_t offset, std::span<std::byte> bytes) override {
    const auto size = static_cast<int64_t>(bytes.size());
    SHOAL_CHECK(offset >= 0 && offset <= buffer.size() && size <= buffer.size() - offset);
    if (session_.lost()) return session_.lost_error();
    const uint64_t from =
        static_cast<const CudaBuffer&>(buffer).address() + static_cast<uint64_t>(offset);
    return session_.check(door_.read(session_.get(), from, bytes.data(), size));
  }

  int64_t weight_bytes(DType dtype, int64_t rows, int64_t columns) const override {
    const auto sizes = cuda::weight_sizes(dtype, columns);
    SHOAL_CHECK(sizes.ok());
    return rows * sizes.value().row_bytes;
  }
  Result<std::unique_ptr<Buffer>> upload_weight(DType dtype, int64_t rows, int64_t columns,
                                                ByteSpan bytes) override;

  Result<void> run(std::span<const OpCall> calls) override;

 private:
  Result<DoorCall> door_call(const OpCall& call) const;

  DeviceInfo info_;
  Session session_;
  const Door& door_;
  int32_t kernels_[kOpKinds][kDTypes];
  std::vector<DoorCall> calls_;  // Of the run.
  KnownCalls known_;
};

// The card takes a piece while the next is repacked.
Result<std::unique_ptr<Buffer>> CudaDevice::upload_weight(DType dtype, int64_t rows,
                                                          int64_t columns, ByteSpan bytes) {
  SHOAL_TRY_ASSIGN(sizes, cuda::weight_sizes(dtype, columns));
  if (rows <= 0 || bytes.size() % sizes.file_row_bytes != 0 ||
      static_cast<int64_t>(bytes.size()) / sizes.file_row_bytes != rows) {
    return Error{ErrorCode::kInvalid, "a weight's bytes do not match its shape"};
  }
  SHOAL_TRY_ASSIGN(buffer, allocate(rows * sizes.row_bytes));
  const int64_t rows_at_once = std::max<int64_t>(kRepackBytes / sizes.row_bytes, 1);
  ByteVector piece;
  for (int64_t row = 0; row < rows; row += rows_at_once) {
    const int64_t count = std::min(rows_at_once, rows - row);
    piece.resize(static_cast<size_t>(count * sizes.row_bytes));
    cuda::repack_rows(dtype, columns,
                      bytes.subspan(row * sizes.file_row_bytes, count * sizes.file_row_bytes),
                      piece);
    SHOAL_TRY(upload(*buffer, row * sizes.row_bytes, piece));
  }
  return buffer;
}

Result<DoorCall> CudaDevice::door_call(const OpCall& call) const {
  if (!supports(call.kind, call.variant)) {
    return Error{ErrorCode::kUnsupported, info_.selector + ": no kernel for " +
                                              std::string(op_name(call.kind)) + " " +
                                              std::string(dtype_name(call.variant))};
  }
  DoorCall result{};
  result.kernel = kernels_[static_cast<int>(call.kind)][static_cast<int>(call.variant)];
  SHOAL_CHECK(call.buffers.size() <= cuda::kDoorBuffers);
  for (size_t i = 0; i < call.buffers.size(); ++i) {
    const BufferView& view = call.buffers[i];
    SHOAL_CHECK(view.buffer && view.offset >= 0 && view.offset % 4 == 0 && view.size >= 0);
    SHOAL_CHECK(view.offset <= view.buffer->size() &&
                view.size <= view.buffer->size() - view.offset);
    result.buffers[i] =
        static_cast<CudaBuffer*>(view.buffer)->address() + static_cast<uint64_t>(view.offset);
  }
  SHOAL_CHECK(call.params_size <= sizeof result.params);
  std::memcpy(result.params, call.params.data(), call.params_size);
  return result;
}

Result<void> CudaDevice::run(std::span<const OpCall> calls) {
  if (session_.lost()) return session_.lost_error();
  calls_.clear();
  for (const OpCall& call : calls) {
    const Grid grid = op_spec(call.kind).grid({call.params, call.params_size});
    if (grid.rows == 0 || grid.columns == 0) continue;
    SHOAL_TRY_ASSIGN(made, door_call(call));
    calls_.push_back(made);
  }
  if (calls_.empty()) return {};
  const KnownCalls::Use use = known_.look_up(calls_);
  uint32_t reported = cuda::kAllFinite;
  const DoorStatus status =
      door_.run(session_.get(), calls_.data(), calls_.size(), use.graph, use.slot, &reported);
  if (status != DoorStatus::kOk) known_.forget();  // A graph that could not be made was not kept.
  SHOAL_TRY(session_.check(status));
  if (reported == cuda::kAllFinite) return {};
  if (reported >= calls_.size()) {
    return Error{ErrorCode::kIo, info_.selector + ": the device reports a call that was not made"};
  }
  for (const OpCall& call : calls) {
    const Grid grid = op_spec(call.kind).grid({call.params, call.params_size});
    if (grid.rows == 0 || grid.columns == 0) continue;
    if (reported-- > 0) continue;
    return Error{ErrorCode::kNonFinite,
                 std::string(op_name(call.kind)) + ": made a NaN or an infinity"};
  }
  SHOAL_UNREACHABLE();
}

// Loads the plug-in when first asked, and again when that failed: a driver may come later.
class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const Door* door) : door_(door) {}

  std::string_view plane() const override { return "cuda"; }

  std::vector<DeviceInfo> devices() override {
    std::vector<DeviceInfo> infos;
    Result<void> started = start();
    if (!started.ok()) {
      why_none_ = started.error().message;
      return infos;
    }
    char why[kSentenceBytes] = {};
    const int32_t count = door_->cards(why, sizeof why);
    for (int32_t card = 0; card < count; ++card) {
      DoorCard described{};
      if (door_->describe(card, &described) == 0) infos.push_back(device_info(described, card));
    }
    why_none_ = count < 0 ? std::string(why, strnlen(why, sizeof why)) : "the driver has no card";
    return infos;
  }

  std::string why_none() const override { return why_none_; }

  Result<std::unique_ptr<Device>> open(const std::string& id, int) override {
    const std::vector<DeviceInfo> infos = devices();
    for (size_t card = 0; card < infos.size(); ++card) {
      if (id != infos[card].id && id != infos[card].selector) continue;
      char why[kSentenceBytes] = {};
      DoorSession* session = door_->open(number_of(infos[card]), why, sizeof why);
      if (session == nullptr) {
        return Error{ErrorCode::kUnavailable,
                     infos[card].selector + ": " + std::string(why, strnlen(why, sizeof why))};
      }
      return std::unique_ptr<Device>(std::make_unique<CudaDevice>(infos[card], *door_, session));
    }
    return Error{ErrorCode::kNotFound, "no CUDA device is called " + id +
                                           (infos.empty() ? ": " + why_none_ : std::string())};
  }

 private:
  Result<void> start() {
    if (door_ != nullptr) return {};
    SHOAL_TRY_ASSIGN(door, cuda::load_door());
    door_ = door;
    return {};
  }
  // What device_info() made the selector of: cards that cannot be described leave gaps.
  static int32_t number_of(const DeviceInfo& info) {
    return std::stoi(info.selector.substr(info.selector.find(':') + 1));
  }

  const Door* door_;  // Null until it is found.
  std::string why_none_ = "the CUDA devices were not asked for yet";
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend() { return std::make_unique<CudaBackend>(nullptr); }

std::unique_ptr<Backend> make_cuda_backend(const cuda::Door& door) {
  return std::make_unique<CudaBackend>(&door);
}

}  // namespace shoal::compute
