#pragma once
// The door to compute: list devices, open a stage on one of them, run steps. A stage is a
// contiguous range of a model's fragments with its caches.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "compute/backends/backend.h"
#include "compute/graph/graph.h"

namespace shoal::compute {

// A piece of a model that can run: embedding, one block, or the head.
struct Fragment {
  Graph graph;
  std::map<std::string, ByteSpan> weights;  // By the names in the graph, in the file's layout.
};

std::vector<DeviceInfo> list_devices();

// Opens a device by id or selector ("cpu", "vulkan", "vulkan:0").
Result<std::unique_ptr<Device>> open_device(const std::string& id_or_selector, int threads);

struct StageOptions {
  int64_t context = 512;  // Positions per sequence.
  int64_t sequences = 1;
  int64_t rows_max = 64;  // The largest step.
  // What the caches hold, of all sequences together; what sequences share counts once. 0: as much
  // as all of them may need.
  int64_t positions = 0;
};

struct StepInput {
  std::span<const RowInfo> rows;
  std::span<const int32_t> tokens;        // When the stage begins with the embedding,
  std::span<const float> hidden;          // else rows x width.
  std::span<const uint32_t> output_rows;  // When it ends with the head: ascending row numbers.
  // When it ends with the head: instead of logits, what the head's last product would take, which
  // is the rows after the final norm. output_rows x width.
  bool wants_features = false;
};

struct StageShape {
  bool begins_with_tokens = false;
  bool ends_with_logits = false;
  int64_t width = 0;       // Of a hidden row.
  int64_t vocabulary = 0;  // When it ends with logits, else 0.
};

// How a step is cut up so that the device can rest in it. The results stay the same, to the bit.
class Pace {
 public:
  virtual ~Pace() = default;
  virtual int64_t rows_max() const = 0;  // A step runs in pieces of so many rows; 0: as it comes.
  virtual bool fine()
      const = 0;  // Rest within pieces too: between ops, or what a GPU takes at once.
  // Called where the step may rest, with nothing running on the device. May wait. An error ends the
  // step with it.
  virtual Result<void> rest() = 0;
};

// Owned and called by one thread, which also owns the device.
class Stage {
 public:
  // Verifies every graph and weight as hostile input. kNoSpace with figures when it does not fit.
  // `device` outlives the stage; the weights' bytes are not kept.
  static Result<std::unique_ptr<Stage>> open(Device& device, std::span<const Fragment> fragments,
                                             const StageOptions& options);
  virtual ~Stage() = default;

  virtual const StageShape& shape() const = 0;
  virtual int64_t device_bytes() const = 0;

  // Called with the output of each fragment but a head, in order (for digests). rows x width.
  using FragmentTap = std::function<void(size_t fragment, std::span<const float> output)>;

  // Hidden rows (rows x width), logits (output_rows x vocabulary) or features. Refuses as kInvalid
  // rows beyond the options, positions beyond the context, tokens beyond the vocabulary, non-finite
  // input; as kNoSpace, with figures, when the caches are full. A failed step leaves the caches of
  // its rows undefined and all else as it was. Writing a position again replaces it, so going back
  // needs no call. REQUIRES: only one of `tap` and `pace` is given.
  virtual Result<std::vector<float>> step(const StepInput& input, const FragmentTap* tap = nullptr,
                                          Pace* pace = nullptr) = 0;

  // Makes `to` the first `positions` of `from`, without copying them: what both hold is kept once
  // until one of them writes there. What `to` was is gone.
  virtual Result<void> fork(uint32_t from, uint32_t to, int64_t positions) = 0;
  // Forgets a sequence's positions from `length` on, so that others may have their memory.
  virtual Result<void> trim(uint32_t sequence, int64_t length) = 0;

  // What the caches hold of positions first .. last - 1, for a stage of the same fragments on any
  // device: it goes on from there to the same bits. Which weights made them the caller must know.
  virtual Result<ByteVector> save(uint32_t sequence, int64_t first, int64_t last) = 0;
  // Writes them where they were, in any sequence that has all positions before them. Refuses what
  // no stage of these fragments saved, and what no step could have stored.
  virtual Result<void> load(uint32_t sequence, ByteSpan saved) = 0;
};

// Fragments on a device, with the memory in which their steps are computed. Stages of the same
// fragments share one: each has caches of its own, and their steps can run as one.
class LoadedFragments {
 public:
  // As Stage::open(); refused, too, when a first stage of such options would not fit beside it.
  static Result<std::unique_ptr<LoadedFragments>> load(Device& device,
                                                       std::span<const Fragment> fragments,
                                                       const StageOptions& first);
  virtual ~LoadedFragments() = default;

  // It outlives the stage.
  virtual Result<std::unique_ptr<Stage>> open(const StageOptions& options) = 0;

  // Steps of several of its stages, one each, as one where memory and pace allow. Each has the
  // result that its stage's step() gives, to the bit; one that fails fails alone.
  struct StageStep {
    Stage* stage = nullptr;
    const StepInput* input = nullptr;
  };
  virtual std::vector<Result<std::vector<float>>> step(std::span<const StageStep> steps,
                                                       Pace* pace) = 0;
};

// Compares every op's samples on `device` with the CPU reference, bit by bit. Names the first that
// differs. A device that passes may do exact work.
struct SelfTestReport {
  bool exact = false;
  int samples = 0;
  int failed = 0;
  int unsupported = 0;
  std::string first_failure;  // "matmul q8_0 sample 3: element 17 is 0x..., reference 0x..."
};
Result<SelfTestReport> self_test(Device& device);

// Measured on the device with one block of the given shape (random weights).
struct BenchReport {
  double decode_rows_per_second = 0;   // One row a step.
  double prefill_rows_per_second = 0;  // 64 rows a step.
  double weight_bytes_per_second = 0;  // While decoding.
  double flops_per_second = 0;         // While prefilling.
  double copy_bytes_per_second = 0;    // Host to device.
};
Result<BenchReport> bench(Device& device);

}  // namespace shoal::compute
