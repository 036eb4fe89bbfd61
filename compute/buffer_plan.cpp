#include "compute/buffer_plan.h"

#include <algorithm>

#include "base/check.h"

namespace shoal::compute {
namespace {

// Slots in use and free ones. Sizes may still grow: memory is taken when the plan is complete.
class Slots {
 public:
  explicit Slots(std::vector<int64_t>& bytes) : bytes_(bytes) {}

  // The free slot that fits best: the smallest that is large enough, else the largest one, grown.
  int64_t take(int64_t bytes) {
    int64_t best = -1;
    for (size_t slot = 0; slot < bytes_.size(); ++slot) {
      if (!free_[slot]) continue;
      if (best < 0 || fits_better(bytes_[slot], bytes_[static_cast<size_t>(best)], bytes)) {
        best = static_cast<int64_t>(slot);
      }
    }
    if (best < 0) {
      best = static_cast<int64_t>(bytes_.size());
      bytes_.push_back(0);
      free_.push_back(true);
    }
    const auto slot = static_cast<size_t>(best);
    bytes_[slot] = std::max(bytes_[slot], bytes);
    free_[slot] = false;
    return best;
  }

  void give_back(int64_t slot) { free_[static_cast<size_t>(slot)] = true; }

 private:
  static bool fits_better(int64_t a, int64_t b, int64_t needed) {
    if ((a >= needed) != (b >= needed)) return a >= needed;
    return a >= needed ? a < b : a > b;
  }

  std::vector<int64_t>& bytes_;
  std::vector<bool> free_;
};

}  // namespace

BufferPlan plan_buffers(std::span<const Graph* const> chain, const Dims& dims) {
  BufferPlan plan;
  Slots slots(plan.slot_bytes);
  const auto bytes_of = [&](const Value& value) {
    const Result<int64_t> size = byte_size(value.dtype, bind(value.shape, dims));
    SHOAL_CHECK(size.ok());
    return size.value();
  };
  int64_t input_slot = slots.take(bytes_of(chain[0]->values[chain[0]->input]));
  for (const Graph* graph : chain) {
    std::vector<size_t> last_use(graph->values.size(), 0);
    for (size_t i = 0; i < graph->ops.size(); ++i) {
      for (const ValueId id : graph->ops[i].inputs) last_use[id] = i;
      last_use[graph->ops[i].output] = i;
    }
    last_use[graph->output] = graph->ops.size();  // The next graph frees it.
    std::vector<int64_t> placed(graph->values.size(), -1);
    placed[graph->input] = input_slot;
    for (size_t i = 0; i < graph->ops.size(); ++i) {
      const Op& op = graph->ops[i];
      // The output is placed before the inputs are freed: no op writes what it reads.
      if (graph->values[op.output].kind == ValueKind::kComputed) {
        placed[op.output] = slots.take(bytes_of(graph->values[op.output]));
      }
      const auto free_after = [&](ValueId id) {
        if (placed[id] >= 0 && last_use[id] == i) slots.give_back(placed[id]);
      };
      for (const ValueId id : op.inputs) free_after(id);
      free_after(op.output);
    }
    input_slot = placed[graph->output];
    plan.slots.push_back(std::move(placed));
  }
  return plan;
}

}  // namespace shoal::compute
