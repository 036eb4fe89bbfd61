// Stage: verifies fragments, places their buffers on a device, and runs steps as one list of op
// calls.

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>

#include "base/check.h"
#include "compute/buffer_plan.h"
#include "compute/cache.h"
#include "compute/compute.h"
#include "compute/graph/limits.h"
#include "compute/memory_claim.h"
#include "compute/ops/op.h"
#include "compute/ops/rope_table.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Error invalid(std::string message) { return Error{ErrorCode::kInvalid, std::move(message)}; }

std::string fragment_label(size_t index) { return "fragment " + std::to_string(index); }

int64_t bytes_of(const Value& value, const Dims& dims) {
  const Result<int64_t> size = byte_size(value.dtype, bind(value.shape, dims));
  SHOAL_CHECK(size.ok());  // verify() bounded every dimension, check_options() every symbol.
  return size.value();
}

int64_t weight_rows(const Value& weight) { return weight.shape.size() == 2 ? weight.shape[0] : 1; }

Result<void> check_options(const StageOptions& options) {
  if (options.context < 1 || options.context > limits::kContextMax) {
    return invalid("stage: context is " + std::to_string(options.context));
  }
  if (options.sequences < 1 || options.sequences > limits::kSequencesMax) {
    return invalid("stage: sequences is " + std::to_string(options.sequences));
  }
  if (options.rows_max < 1 || options.rows_max > limits::kRowsMax) {
    return invalid("stage: rows_max is " + std::to_string(options.rows_max));
  }
  if (options.positions < 0) {
    return invalid("stage: positions is " + std::to_string(options.positions));
  }
  return {};
}

Result<void> check_weights(const Fragment& fragment) {
  for (const Value& value : fragment.graph.values) {
    if (value.kind != ValueKind::kWeight) continue;
    const auto found = fragment.weights.find(value.name);
    if (found == fragment.weights.end())
      return Error{ErrorCode::kCorrupt, "weight " + value.name + " is missing"};
    SHOAL_TRY_ASSIGN(bytes, byte_size(value.dtype, value.shape));
    if (static_cast<int64_t>(found->second.size()) != bytes) {
      return Error{ErrorCode::kCorrupt, "weight " + value.name + " has " +
                                            std::to_string(found->second.size()) + " bytes where " +
                                            describe(value) + " has " + std::to_string(bytes)};
    }
  }
  return {};
}

// Pages of the caches: a sequence begins a new one.
int64_t pages_of(const StageOptions& options) {
  const int64_t most = options.sequences * pages_for(options.context);
  return options.positions == 0 ? most : std::min(most, pages_for(options.positions));
}

// The words of row_info that a step may need, at most.
int64_t row_info_bytes(const StageOptions& options) {
  const int64_t listed = std::min(options.rows_max, options.sequences);
  return (options.rows_max * 2 + listed * pages_for(options.context)) * 4;
}

Digest digest_of_graphs(std::span<const Fragment> fragments) {
  DigestBuilder builder;
  for (const Fragment& fragment : fragments) builder.update(encode(fragment.graph));
  return builder.finish();
}

// The ends of a chain of verified graphs, and whether they fit each other.
Result<StageShape> shape_of(std::span<const Fragment> fragments) {
  StageShape shape;
  const auto meet = [&](int64_t width, size_t index) -> Result<void> {
    if (shape.width != 0 && shape.width != width) {
      return Error{ErrorCode::kCorrupt, fragment_label(index) + ": a hidden row of " +
                                            std::to_string(width) + " meets one of " +
                                            std::to_string(shape.width)};
    }
    shape.width = width;
    return {};
  };
  for (size_t i = 0; i < fragments.size(); ++i) {
    const Graph& graph = fragments[i].graph;
    const Value& input = graph.values[graph.input];
    const Value& output = graph.values[graph.output];
    if (input.dtype == DType::kI32) {
      if (i != 0)
        return Error{ErrorCode::kCorrupt, fragment_label(i) + ": only the first may take tokens"};
      shape.begins_with_tokens = true;
    } else {
      SHOAL_TRY(meet(input.shape[1], i));
    }
    if (output.shape[0] == kOutputs) {
      if (i + 1 != fragments.size()) {
        return Error{ErrorCode::kCorrupt, fragment_label(i) + ": only the last may give logits"};
      }
      shape.ends_with_logits = true;
      shape.vocabulary = output.shape[1];
    } else {
      SHOAL_TRY(meet(output.shape[1], i));
    }
  }
  return shape;
}

// A buffer of a call, and how its size follows the step.
struct PlannedView {
  Buffer* buffer = nullptr;
  int64_t bytes = 0;  // Fixed, or for one row.
  enum class Per : uint8_t { kNone, kRow, kOutput } per = Per::kNone;
};

struct PlannedCall {
  size_t fragment = 0;
  size_t op = 0;
  const OpSpec* spec = nullptr;
  std::vector<PlannedView> views;
};

// Where a head's features are: the output of which op. What its last product takes, before it is
// quantised; none when that is no row of the model's width.
struct Features {
  size_t op = 0;
  ValueId value = 0;
};
std::optional<Features> features_of(const Graph& head, int64_t width) {
  const auto producer = [&head](ValueId id) {
    return std::ranges::find_if(head.ops, [id](const Op& op) { return op.output == id; });
  };
  const auto product = std::ranges::find_if(
      head.ops.rbegin(), head.ops.rend(), [](const Op& op) { return op.kind == OpKind::kMatmul; });
  if (product == head.ops.rend()) return {};
  ValueId taken = product->inputs[0];
  auto made = producer(taken);
  if (made != head.ops.end() && made->kind == OpKind::kQuantize) {
    taken = made->inputs[0];
    made = producer(taken);
  }
  const Value& value = head.values[taken];
  if (made == head.ops.end() || value.kind != ValueKind::kComputed || value.dtype != DType::kF32 ||
      value.shape != Shape{kOutputs, width}) {
    return {};
  }
  return Features{static_cast<size_t>(made - head.ops.begin()), taken};
}

class DeviceStage final : public Stage {
 public:
  DeviceStage(Device& device, const StageOptions& options, const StageShape& shape)
      : device_(device), options_(options), shape_(shape) {}

  Result<void> place(std::span<const Fragment> fragments);

  const StageShape& shape() const override { return shape_; }
  int64_t device_bytes() const override { return device_bytes_; }
  Result<std::vector<float>> step(const StepInput& input, const FragmentTap* tap,
                                  Pace* pace) override;
  Result<void> fork(uint32_t from, uint32_t to, int64_t positions) override {
    return cache_->fork(from, to, positions);
  }
  Result<void> trim(uint32_t sequence, int64_t length) override {
    return cache_->trim(sequence, length);
  }
  Result<ByteVector> save(uint32_t sequence, int64_t first, int64_t last) override {
    return cache_->save(sequence, first, last);
  }
  Result<void> load(uint32_t sequence, ByteSpan saved) override {
    return cache_->load(sequence, saved);
  }

 private:
  Dims dims(int64_t rows, int64_t outputs) const {
    return {rows, outputs, options_.context, options_.sequences};
  }
  Result<Buffer*> allocate(int64_t bytes);
  Result<Buffer*> rope_table(const RopeSpec& spec);
  Result<Buffer*> fixed_buffer(const Fragment& fragment, const Value& value);
  PlannedView view(const Value& value, Buffer* buffer) const;

  Result<void> check_rows(std::span<const RowInfo> rows) const;
  Result<void> check_input(const StepInput& input) const;
  Result<void> upload_input(const StepInput& input);
  void make_calls(size_t first_fragment, size_t last_fragment, const Dims& dims,
                  bool wants_features);
  Result<std::vector<float>> download(Buffer& buffer, int64_t count);
  Result<void> run_calls(const Dims& dims, Pace* pace, bool wants_features);
  Result<std::vector<float>> run_piece(const StepInput& input, const FragmentTap* tap, Pace* pace);
  Result<std::vector<float>> run_in_pieces(const StepInput& input, size_t rows_max, Pace& pace);
  size_t output_width(bool wants_features) const {
    if (wants_features) return static_cast<size_t>(shape_.width);
    return static_cast<size_t>(graphs_.back().values[graphs_.back().output].shape[1]);
  }

  Device& device_;
  StageOptions options_;
  StageShape shape_;
  int64_t vocabulary_in_ = 0;  // Rows of the embedding.
  std::vector<Graph> graphs_;
  std::vector<PlannedCall> plan_;
  std::vector<Buffer*> outputs_;  // Of each fragment.
  std::optional<Features> features_;
  Buffer* features_buffer_ = nullptr;  // Null without features_.
  std::optional<MemoryClaim> claim_;   // Of device_bytes_, once placed.
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::map<RopeSpec, Buffer*> rope_tables_;
  Buffer* input_ = nullptr;
  Buffer* row_info_ = nullptr;
  Buffer* picked_ = nullptr;
  int64_t device_bytes_ = 0;
  std::optional<Cache> cache_;  // Once placed.
  std::vector<OpCall> calls_;   // Of the step being run.
};

Result<Buffer*> DeviceStage::allocate(int64_t bytes) {
  SHOAL_TRY_ASSIGN(buffer, device_.allocate(bytes));
  buffers_.push_back(std::move(buffer));
  return buffers_.back().get();
}

// Blocks of a model share their table: it is made once for each kind of angle.
Result<Buffer*> DeviceStage::rope_table(const RopeSpec& spec) {
  if (const auto found = rope_tables_.find(spec); found != rope_tables_.end()) return found->second;
  const std::vector<float> table = make_rope_table(spec, options_.context);
  SHOAL_TRY_ASSIGN(buffer, allocate(static_cast<int64_t>(table.size()) * 4));
  SHOAL_TRY(device_.upload(*buffer, 0, std::as_bytes(std::span(table))));
  rope_tables_.emplace(spec, buffer);
  return buffer;
}

Result<Buffer*> DeviceStage::fixed_buffer(const Fragment& fragment, const Value& value) {
  switch (value.kind) {
    case ValueKind::kWeight: {
      SHOAL_TRY_ASSIGN(buffer,
                       device_.upload_weight(value.dtype, weight_rows(value), value.shape.back(),
                                             fragment.weights.at(value.name)));
      buffers_.push_back(std::move(buffer));
      return buffers_.back().get();
    }
    case ValueKind::kState: {
      const int64_t width = value.shape.back();
      SHOAL_TRY_ASSIGN(buffer, allocate(cache_bytes(value.dtype, width, pages_of(options_))));
      cache_->add({buffer, value.dtype, width});
      return buffer;
    }
    case ValueKind::kRopeTable: return rope_table(value.rope);
    default: return static_cast<Buffer*>(nullptr);  // Placed by the plan.
  }
}

PlannedView DeviceStage::view(const Value& value, Buffer* buffer) const {
  if (value.kind == ValueKind::kState) return {buffer, buffer->size()};
  PlannedView planned{buffer, bytes_of(value, dims(1, 1))};
  if (value.shape[0] == kRows) planned.per = PlannedView::Per::kRow;
  if (value.shape[0] == kOutputs) planned.per = PlannedView::Per::kOutput;
  return planned;
}

// What all buffers of the stage together take, before any is made; the largest number when it is
// more.
int64_t total_bytes(const Device& device, std::span<const Fragment> fragments,
                    const BufferPlan& plan, const StageOptions& options) {
  const Dims dims{options.rows_max, options.rows_max, options.context, options.sequences};
  int64_t total = row_info_bytes(options) + options.rows_max * 4;  // And the picked rows.
  const auto add = [&total](int64_t bytes) {
    if (__builtin_add_overflow(total, bytes, &total)) total = std::numeric_limits<int64_t>::max();
  };
  std::map<RopeSpec, int64_t> tables;
  for (const Fragment& fragment : fragments) {
    for (const Value& value : fragment.graph.values) {
      if (value.kind == ValueKind::kWeight)
        add(device.weight_bytes(value.dtype, weight_rows(value), value.shape.back()));
      if (value.kind == ValueKind::kState)
        add(cache_bytes(value.dtype, value.shape.back(), pages_of(options)));
      if (value.kind == ValueKind::kRopeTable) {
        tables[value.rope] = bytes_of(value, dims);
      }
    }
  }
  for (const auto& [key, bytes] : tables) add(bytes);
  for (const int64_t bytes : plan.slot_bytes) add(bytes);
  return total;
}

Result<void> DeviceStage::place(std::span<const Fragment> fragments) {
  const Dims most = dims(options_.rows_max, options_.rows_max);
  std::vector<const Graph*> chain;
  for (const Fragment& fragment : fragments) chain.push_back(&fragment.graph);
  const BufferPlan plan = plan_buffers(chain, most);
  device_bytes_ = total_bytes(device_, fragments, plan, options_);
  Result<MemoryClaim> claim = MemoryClaim::make(device_, device_bytes_);
  if (!claim.ok()) return with_context(claim.error(), "stage");
  claim_.emplace(std::move(claim).value());

  cache_.emplace(device_, options_.sequences, options_.context, pages_of(options_),
                 digest_of_graphs(fragments));
  SHOAL_TRY_ASSIGN(row_info, allocate(row_info_bytes(options_)));
  SHOAL_TRY_ASSIGN(picked, allocate(options_.rows_max * 4));
  row_info_ = row_info;
  picked_ = picked;
  std::vector<Buffer*> slots;
  for (const int64_t bytes : plan.slot_bytes) {
    SHOAL_TRY_ASSIGN(slot, allocate(bytes));
    slots.push_back(slot);
  }
  input_ = slots[plan.slots[0][fragments[0].graph.input]];

  for (size_t f = 0; f < fragments.size(); ++f) {
    const Graph& graph = fragments[f].graph;
    std::vector<Buffer*> buffers;
    for (ValueId id = 0; id < graph.values.size(); ++id) {
      Result<Buffer*> buffer = fixed_buffer(fragments[f], graph.values[id]);
      if (!buffer.ok()) {
        return with_context(buffer.error(), fragment_label(f) + ", value " + std::to_string(id) +
                                                " of a stage of " + std::to_string(device_bytes_) +
                                                " bytes");
      }
      const int64_t slot = plan.slots[f][id];
      buffers.push_back(slot >= 0 ? slots[static_cast<size_t>(slot)] : buffer.value());
    }
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      const Op& op = graph.ops[i];
      const OpSpec& spec = op_spec(op.kind);
      const DType variant = spec.variant(graph, op);
      if (!device_.supports(op.kind, variant)) {
        return Error{ErrorCode::kUnsupported, device_.info().selector + " has no kernel for " +
                                                  std::string(op_name(op.kind)) + " " +
                                                  std::string(dtype_name(variant))};
      }
      PlannedCall call{f, i, &spec, {}};
      for (const ValueId id : op.inputs) {
        if (id != op.output) call.views.push_back(view(graph.values[id], buffers[id]));
      }
      if (spec.step_buffer == StepBuffer::kRowInfo)
        call.views.push_back({row_info_, row_info_->size()});
      if (spec.step_buffer == StepBuffer::kPicked)
        call.views.push_back({picked_, 4, PlannedView::Per::kOutput});
      call.views.push_back(view(graph.values[op.output], buffers[op.output]));
      plan_.push_back(std::move(call));
      if (op.kind == OpKind::kPositions) {
        const int64_t known = graph.values[op.inputs[0]].shape[0];
        if (options_.context > known) {
          return invalid("stage: a context of " + std::to_string(options_.context) +
                         " is longer than the " + std::to_string(known) +
                         " positions that the model has learned");
        }
      }
      if (op.kind == OpKind::kEmbed) {
        const int64_t rows = graph.values[op.inputs[1]].shape[0];
        vocabulary_in_ = vocabulary_in_ == 0 ? rows : std::min(vocabulary_in_, rows);
      }
    }
    outputs_.push_back(buffers[graph.output]);
    if (shape_.ends_with_logits && f + 1 == fragments.size()) {
      features_ = features_of(graph, shape_.width);
      if (features_) features_buffer_ = buffers[features_->value];
    }
    graphs_.push_back(graph);
  }
  return {};
}

Result<void> DeviceStage::check_rows(std::span<const RowInfo> rows) const {
  if (rows.empty() || static_cast<int64_t>(rows.size()) > options_.rows_max) {
    return invalid("step: it has " + std::to_string(rows.size()) + " rows where 1 .. " +
                   std::to_string(options_.rows_max) + " are allowed");
  }
  std::vector<RowInfo> sorted(rows.begin(), rows.end());
  std::sort(sorted.begin(), sorted.end(), [](const RowInfo& a, const RowInfo& b) {
    return std::tie(a.sequence, a.position) < std::tie(b.sequence, b.position);
  });
  int64_t written = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const RowInfo& row = sorted[i];
    const std::string name = "step: sequence " + std::to_string(row.sequence);
    if (row.sequence >= static_cast<uint64_t>(options_.sequences)) {
      return invalid(name + " is beyond the stage's " + std::to_string(options_.sequences));
    }
    if (row.position >= static_cast<uint64_t>(options_.context)) {
      return invalid(name + ": position " + std::to_string(row.position) +
                     " is beyond the context of " + std::to_string(options_.context));
    }
    const bool first = i == 0 || sorted[i - 1].sequence != row.sequence;
    if (!first && sorted[i - 1].position == row.position) {
      return invalid(name + ": position " + std::to_string(row.position) + " stands in it twice");
    }
    if (first) written = cache_->length(row.sequence);
    if (row.position > written) {
      return invalid(name + ": position " + std::to_string(row.position) +
                     " comes before position " + std::to_string(written) + " was written");
    }
    written = std::max<int64_t>(written, row.position + 1);
  }
  return {};
}

Result<void> DeviceStage::check_input(const StepInput& input) const {
  SHOAL_TRY(check_rows(input.rows));
  const size_t rows = input.rows.size();
  if (input.tokens.size() != (shape_.begins_with_tokens ? rows : 0)) {
    return invalid("step: it has " + std::to_string(input.tokens.size()) + " tokens for " +
                   std::to_string(rows) + " rows");
  }
  const size_t hidden = shape_.begins_with_tokens ? 0 : rows * static_cast<size_t>(shape_.width);
  if (input.hidden.size() != hidden) {
    return invalid("step: it has " + std::to_string(input.hidden.size()) + " hidden values where " +
                   std::to_string(hidden) + " are needed");
  }
  for (const int32_t token : input.tokens) {
    if (token < 0 || token >= vocabulary_in_) {
      return invalid("step: token " + std::to_string(token) + " is beyond the vocabulary of " +
                     std::to_string(vocabulary_in_));
    }
  }
  for (size_t i = 0; i < input.hidden.size(); ++i) {
    if (!exact::exact_is_finite(input.hidden[i])) {
      return invalid("step: hidden value " + std::to_string(i) + " is not finite");
    }
  }
  if (input.wants_features && !shape_.ends_with_logits) {
    return invalid("step: features of a stage without the head");
  }
  if (input.wants_features && !features_) {
    return Error{ErrorCode::kUnsupported, "step: this model's head has no features of its width"};
  }
  if (!shape_.ends_with_logits && !input.output_rows.empty()) {
    return invalid("step: output rows for a stage without logits");
  }
  for (size_t i = 0; i < input.output_rows.size(); ++i) {
    if (input.output_rows[i] >= rows ||
        (i > 0 && input.output_rows[i] <= input.output_rows[i - 1])) {
      return invalid("step: output rows are not ascending numbers of its rows");
    }
  }
  return {};
}

Result<void> DeviceStage::upload_input(const StepInput& input) {
  const std::vector<uint32_t> row_info = cache_->row_info(input.rows);
  SHOAL_TRY(device_.upload(*row_info_, 0, std::as_bytes(std::span(row_info))));
  if (!input.output_rows.empty())
    SHOAL_TRY(device_.upload(*picked_, 0, std::as_bytes(input.output_rows)));
  return device_.upload(
      *input_, 0,
      shape_.begins_with_tokens ? std::as_bytes(input.tokens) : std::as_bytes(input.hidden));
}

void DeviceStage::make_calls(size_t first_fragment, size_t last_fragment, const Dims& dims,
                             bool wants_features) {
  calls_.clear();
  for (const PlannedCall& planned : plan_) {
    if (planned.fragment < first_fragment || planned.fragment > last_fragment) continue;
    // The features' slot holds them until the next op of the head.
    if (wants_features && planned.fragment + 1 == graphs_.size() && planned.op > features_->op) {
      continue;
    }
    const Graph& graph = graphs_[planned.fragment];
    const Op& op = graph.ops[planned.op];
    const ParamBlock params = planned.spec->params(graph, op, dims);
    if (planned.spec->grid(params).rows == 0) continue;  // No logits are wanted.
    OpCall call{.kind = op.kind, .variant = planned.spec->variant(graph, op)};
    call.params = params.bytes;
    call.params_size = params.size;
    for (const PlannedView& view : planned.views) {
      int64_t size = view.bytes;
      if (view.per == PlannedView::Per::kRow) size *= dims.rows;
      if (view.per == PlannedView::Per::kOutput) size *= dims.outputs;
      call.buffers.push_back({view.buffer, 0, size});
    }
    calls_.push_back(std::move(call));
  }
}

Result<std::vector<float>> DeviceStage::download(Buffer& buffer, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  if (count > 0) SHOAL_TRY(device_.download(buffer, 0, std::as_writable_bytes(std::span(values))));
  return values;
}

// All fragments. A CPU may rest after each op; a GPU takes a fragment at once, as each submission
// has its price.
Result<void> DeviceStage::run_calls(const Dims& dims, Pace* pace, bool wants_features) {
  if (pace == nullptr || !pace->fine()) {
    make_calls(0, graphs_.size() - 1, dims, wants_features);
    return device_.run(calls_);
  }
  const bool by_op = device_.info().plane == "cpu";
  for (size_t f = 0; f < graphs_.size(); ++f) {
    make_calls(f, f, dims, wants_features);
    const std::span<const OpCall> calls = calls_;
    const size_t at_once = by_op ? 1 : std::max<size_t>(calls.size(), 1);
    for (size_t i = 0; i < calls.size(); i += at_once) {
      if (f != 0 || i != 0) SHOAL_TRY(pace->rest());
      SHOAL_TRY(device_.run(calls.subspan(i, at_once)));
    }
  }
  return {};
}

Result<std::vector<float>> DeviceStage::run_piece(const StepInput& input, const FragmentTap* tap,
                                                  Pace* pace) {
  SHOAL_TRY(upload_input(input));
  const Dims step_dims =
      dims(static_cast<int64_t>(input.rows.size()), static_cast<int64_t>(input.output_rows.size()));
  if (tap == nullptr) {
    SHOAL_TRY(run_calls(step_dims, pace, input.wants_features));
  } else {
    // Slots are used again by later fragments, so that each output is taken before they run.
    for (size_t f = 0; f < graphs_.size(); ++f) {
      make_calls(f, f, step_dims, input.wants_features);
      if (Result<void> ran = device_.run(calls_); !ran.ok())
        return with_context(ran.error(), fragment_label(f));
      if (shape_.ends_with_logits && f + 1 == graphs_.size()) continue;
      const int64_t width = graphs_[f].values[graphs_[f].output].shape[1];
      SHOAL_TRY_ASSIGN(output, download(*outputs_[f], step_dims.rows * width));
      (*tap)(f, output);
    }
  }
  const int64_t rows = shape_.ends_with_logits ? step_dims.outputs : step_dims.rows;
  Buffer& wanted = input.wants_features ? *features_buffer_ : *outputs_.back();
  return download(wanted, rows * static_cast<int64_t>(output_width(input.wants_features)));
}

// In the order of positions, as a row looks back on those before it; the outputs are put where the
// step wants them.
Result<std::vector<float>> DeviceStage::run_in_pieces(const StepInput& input, size_t rows_max,
                                                      Pace& pace) {
  std::vector<uint32_t> order(input.rows.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](uint32_t row) {
    return std::pair(input.rows[row].sequence, input.rows[row].position);
  });
  // Where the output of a row belongs; -1: it has none.
  std::vector<int64_t> place(input.rows.size(), -1);
  if (shape_.ends_with_logits) {
    for (size_t i = 0; i < input.output_rows.size(); ++i) {
      place[input.output_rows[i]] = static_cast<int64_t>(i);
    }
  } else {
    std::iota(place.begin(), place.end(), int64_t{0});
  }
  const size_t outputs = shape_.ends_with_logits ? input.output_rows.size() : input.rows.size();
  const size_t width = output_width(input.wants_features);
  std::vector<float> all(outputs * width);

  const auto width_in = static_cast<size_t>(shape_.width);
  for (size_t first = 0; first < order.size(); first += rows_max) {
    if (first != 0) SHOAL_TRY(pace.rest());
    const std::span<const uint32_t> piece =
        std::span(order).subspan(first, std::min(rows_max, order.size() - first));
    std::vector<RowInfo> rows;
    std::vector<int32_t> tokens;
    std::vector<float> hidden;
    std::vector<uint32_t> output_rows;
    std::vector<int64_t> places;
    for (const uint32_t row : piece) {
      if (place[row] >= 0) {
        if (shape_.ends_with_logits) output_rows.push_back(static_cast<uint32_t>(rows.size()));
        places.push_back(place[row]);
      }
      rows.push_back(input.rows[row]);
      if (shape_.begins_with_tokens) {
        tokens.push_back(input.tokens[row]);
      } else {
        const std::span<const float> values = input.hidden.subspan(row * width_in, width_in);
        hidden.insert(hidden.end(), values.begin(), values.end());
      }
    }
    SHOAL_TRY_ASSIGN(output, run_piece({rows, tokens, hidden, output_rows, input.wants_features},
                                       nullptr, &pace));
    for (size_t i = 0; i < places.size(); ++i) {
      std::copy_n(output.begin() + static_cast<int64_t>(i * width), width,
                  all.begin() + places[i] * static_cast<int64_t>(width));
    }
  }
  return all;
}

Result<std::vector<float>> DeviceStage::step(const StepInput& input, const FragmentTap* tap,
                                             Pace* pace) {
  SHOAL_CHECK(tap == nullptr || pace == nullptr);
  SHOAL_TRY(check_input(input));
  if (Result<void> room = cache_->make_writable(input.rows); !room.ok())
    return with_context(room.error(), "step");
  const auto rows_max = static_cast<size_t>(pace == nullptr ? 0 : pace->rows_max());
  Result<std::vector<float>> output = rows_max == 0 || input.rows.size() <= rows_max
                                          ? run_piece(input, tap, pace)
                                          : run_in_pieces(input, rows_max, *pace);
  if (!output.ok()) return output;
  cache_->wrote(input.rows);
  return output;
}

}  // namespace

Result<std::unique_ptr<Stage>> Stage::open(Device& device, std::span<const Fragment> fragments,
                                           const StageOptions& options) {
  SHOAL_TRY(check_options(options));
  if (fragments.empty()) return invalid("stage: it has no fragments");
  for (size_t i = 0; i < fragments.size(); ++i) {
    if (Result<void> checked = verify(fragments[i].graph); !checked.ok()) {
      return with_context(checked.error(), fragment_label(i));
    }
    if (Result<void> checked = check_weights(fragments[i]); !checked.ok()) {
      return with_context(checked.error(), fragment_label(i));
    }
  }
  SHOAL_TRY_ASSIGN(shape, shape_of(fragments));
  auto stage = std::make_unique<DeviceStage>(device, options, shape);
  SHOAL_TRY(stage->place(fragments));
  return std::unique_ptr<Stage>(std::move(stage));
}

}  // namespace shoal::compute
