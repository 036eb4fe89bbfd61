// Stage: verifies fragments, places their buffers on a device, and runs steps, of one stage or of
// several that share their weights, as one list of op calls.

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

Digest digest_of_graphs(std::span<const Graph> graphs) {
  DigestBuilder builder;
  for (const Graph& graph : graphs) builder.update(encode(graph));
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

// What a call takes, and how its size follows the step.
struct PlannedView {
  enum class From : uint8_t { kWeight, kWorkspace, kOwn, kRowInfo, kPicked } from;
  Buffer* weight = nullptr;
  size_t index = 0;   // The value's number in its graph, or of what the stage has for itself.
  int64_t bytes = 0;  // For one row; not of a weight and what a stage has for itself.
  enum class Per : uint8_t { kNone, kRow, kOutput } per = Per::kNone;
};

struct PlannedCall {
  size_t fragment = 0;
  size_t op = 0;
  const OpSpec* spec = nullptr;
  std::vector<PlannedView> views;
  bool own = false;  // It reads or writes what each stage has for itself.
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

class DeviceStage;

constexpr int64_t kRowsBeside = 16;

// What stages of the same fragments share. Ops that touch a stage's own caches or tables run for
// each stage of a step; all others for the rows of all of them at once.
class DeviceFragments final : public LoadedFragments {
 public:
  DeviceFragments(Device& device, const StageShape& shape) : device_(device), shape_(shape) {}

  Result<void> place(std::span<const Fragment> fragments, const StageOptions& first);

  Result<std::unique_ptr<Stage>> open(const StageOptions& options) override;
  std::vector<Result<std::vector<float>>> step(std::span<const StageStep> steps,
                                               Pace* pace) override;

  // One stage's share of a step.
  struct Part {
    DeviceStage* stage = nullptr;
    const StepInput* input = nullptr;
  };
  // All rows' outputs, part by part. REQUIRES: what check_input() and make_writable() of each stage
  // passed; rows for which there is memory, and all want features or none does.
  Result<std::vector<float>> run(std::span<const Part> parts, const Stage::FragmentTap* tap,
                                 Pace* pace);

  Device& device() { return device_; }
  const StageShape& shape() const { return shape_; }
  const std::vector<Graph>& graphs() const { return graphs_; }
  const Digest& digest() const { return digest_; }
  bool has_features() const { return features_.has_value(); }
  int64_t vocabulary_in() const { return vocabulary_in_; }
  void closed(const StageOptions& options) {
    row_info_needed_ -= row_info_bytes(options);
    --stages_;
  }
  int64_t shared_bytes() const {
    return weights_claim_->bytes() + workspace_->claim.bytes() + row_info_->claim.bytes();
  }
  size_t output_width(bool wants_features) const {
    if (wants_features) return static_cast<size_t>(shape_.width);
    return static_cast<size_t>(graphs_.back().values[graphs_.back().output].shape[1]);
  }
  int64_t outputs_of(const StepInput& input) const {
    return static_cast<int64_t>(shape_.ends_with_logits ? input.output_rows.size()
                                                        : input.rows.size());
  }

 private:
  // Where steps of up to so many rows are computed.
  struct Workspace {
    MemoryClaim claim;
    int64_t rows_max = 0;
    BufferPlan plan;
    std::vector<std::unique_ptr<Buffer>> slots;
    std::unique_ptr<Buffer> picked;
  };
  // What the steps of all open stages together may have of it.
  struct RowInfoRoom {
    MemoryClaim claim;
    std::unique_ptr<Buffer> buffer;
  };
  struct Rows {
    int64_t rows = 0, outputs = 0;
  };

  BufferPlan plan_for(int64_t rows_max) const;
  Result<void> make_workspace(int64_t rows_max);
  Result<void> make_row_info(int64_t bytes);
  Buffer& slot(size_t fragment, ValueId value) const {
    return *workspace_->slots[static_cast<size_t>(workspace_->plan.slots[fragment][value])];
  }
  void plan_calls(size_t fragment, const std::vector<Buffer*>& weights, size_t& own);
  Result<void> upload_input(std::span<const Part> parts);
  void make_calls(std::span<const Part> parts, size_t first_fragment, size_t last_fragment);
  void make_call(const PlannedCall& planned, const Rows& rows, const Rows& before,
                 const DeviceStage* stage);
  Result<std::vector<float>> download(Buffer& buffer, int64_t count);
  Result<void> run_calls(std::span<const Part> parts, Pace* pace);

  Device& device_;
  StageShape shape_;
  int64_t vocabulary_in_ = 0;                      // Rows of the embedding.
  int64_t positions_known_ = limits::kContextMax;  // That the model has learned.
  Digest digest_;
  std::vector<Graph> graphs_;
  std::vector<PlannedCall> plan_;
  std::optional<Features> features_;
  std::optional<MemoryClaim> weights_claim_;
  std::vector<std::unique_ptr<Buffer>> weights_;
  std::optional<Workspace> workspace_;
  int64_t longest_ = 0;  // Step that a stage may ask for.
  std::optional<RowInfoRoom> row_info_;
  int64_t row_info_needed_ = 0;  // By all stages that are open.
  int64_t stages_ = 0;           // How many are.
  std::vector<OpCall> calls_;    // Of the step being run.
};

class DeviceStage final : public Stage {
 public:
  DeviceStage(DeviceFragments& shared, const StageOptions& options)
      : shared_(shared),
        options_(options),
        cache_(shared.device(), options.sequences, options.context, pages_of(options),
               shared.digest()) {}

  ~DeviceStage() override { shared_.closed(options_); }

  Result<void> place(MemoryClaim claim);
  void own(std::unique_ptr<LoadedFragments> fragments) { owned_ = std::move(fragments); }

  const StageShape& shape() const override { return shared_.shape(); }
  int64_t device_bytes() const override { return claim_->bytes() + shared_.shared_bytes(); }
  Result<std::vector<float>> step(const StepInput& input, const FragmentTap* tap,
                                  Pace* pace) override;
  Result<void> fork(uint32_t from, uint32_t to, int64_t positions) override {
    return cache_.fork(from, to, positions);
  }
  Result<void> trim(uint32_t sequence, int64_t length) override {
    return cache_.trim(sequence, length);
  }
  Result<ByteVector> save(uint32_t sequence, int64_t first, int64_t last) override {
    return cache_.save(sequence, first, last);
  }
  Result<void> load(uint32_t sequence, ByteSpan saved) override {
    return cache_.load(sequence, saved);
  }

  // Whether a step of it may run, and memory for its rows.
  Result<void> prepare(const StepInput& input);
  void wrote(const StepInput& input) { cache_.wrote(input.rows); }
  const Cache& cache() const { return cache_; }
  Buffer* own_buffer(size_t index) const { return own_[index]; }
  const StageOptions& options() const { return options_; }

 private:
  Result<Buffer*> allocate(int64_t bytes);
  Result<Buffer*> rope_table(const RopeSpec& spec);
  Result<void> check_rows(std::span<const RowInfo> rows) const;
  Result<void> check_input(const StepInput& input) const;
  Result<std::vector<float>> run_in_pieces(const StepInput& input, size_t rows_max, Pace& pace);

  std::unique_ptr<LoadedFragments> owned_;  // Null where others may share them. Ends last.
  DeviceFragments& shared_;
  StageOptions options_;
  Cache cache_;
  std::optional<MemoryClaim> claim_;  // Once placed.
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<Buffer*> own_;  // Caches and tables, in the order of the graphs' values.
  std::map<RopeSpec, Buffer*> rope_tables_;
};

// --- what a stage takes, before anything is made; the largest number when it is more ---

void add_bytes(int64_t& total, int64_t bytes) {
  if (__builtin_add_overflow(total, bytes, &total)) total = std::numeric_limits<int64_t>::max();
}

int64_t weight_bytes_of(const Device& device, std::span<const Fragment> fragments) {
  int64_t total = 0;
  for (const Fragment& fragment : fragments) {
    for (const Value& value : fragment.graph.values) {
      if (value.kind != ValueKind::kWeight) continue;
      add_bytes(total, device.weight_bytes(value.dtype, weight_rows(value), value.shape.back()));
    }
  }
  return total;
}

int64_t workspace_bytes_of(const BufferPlan& plan, int64_t rows_max) {
  int64_t total = rows_max * 4;  // The picked rows.
  for (const int64_t bytes : plan.slot_bytes) add_bytes(total, bytes);
  return total;
}

// Caches and tables.
int64_t own_bytes_of(std::span<const Graph> graphs, const StageOptions& options) {
  int64_t total = 0;
  std::map<RopeSpec, int64_t> tables;
  for (const Graph& graph : graphs) {
    for (const Value& value : graph.values) {
      if (value.kind == ValueKind::kState)
        add_bytes(total, cache_bytes(value.dtype, value.shape.back(), pages_of(options)));
      if (value.kind == ValueKind::kRopeTable)
        tables[value.rope] = bytes_of(value, {1, 1, options.context, 1});
    }
  }
  for (const auto& [spec, bytes] : tables) add_bytes(total, bytes);
  return total;
}

Result<MemoryClaim> claim_memory(Device& device, int64_t bytes) {
  Result<MemoryClaim> claim = MemoryClaim::make(device, bytes);
  if (!claim.ok()) return with_context(claim.error(), "stage");
  return claim;
}

// --- what stages share ---

BufferPlan DeviceFragments::plan_for(int64_t rows_max) const {
  std::vector<const Graph*> chain;
  for (const Graph& graph : graphs_) chain.push_back(&graph);
  return plan_buffers(chain, {rows_max, rows_max, 1, 1});
}

Result<void> DeviceFragments::make_workspace(int64_t rows_max) {
  BufferPlan plan = plan_for(rows_max);
  SHOAL_TRY_ASSIGN(claim, claim_memory(device_, workspace_bytes_of(plan, rows_max)));
  Workspace made{std::move(claim), rows_max, std::move(plan), {}, nullptr};
  SHOAL_TRY_ASSIGN(picked, device_.allocate(rows_max * 4));
  made.picked = std::move(picked);
  for (const int64_t bytes : made.plan.slot_bytes) {
    SHOAL_TRY_ASSIGN(slot, device_.allocate(bytes));
    made.slots.push_back(std::move(slot));
  }
  workspace_.emplace(std::move(made));
  return {};
}

Result<void> DeviceFragments::make_row_info(int64_t bytes) {
  SHOAL_TRY_ASSIGN(claim, claim_memory(device_, bytes));
  SHOAL_TRY_ASSIGN(buffer, device_.allocate(bytes));
  row_info_.emplace(RowInfoRoom{std::move(claim), std::move(buffer)});
  return {};
}

Result<void> DeviceFragments::place(std::span<const Fragment> fragments,
                                    const StageOptions& first) {
  for (const Fragment& fragment : fragments) graphs_.push_back(fragment.graph);
  digest_ = digest_of_graphs(graphs_);
  const int64_t weight_bytes = weight_bytes_of(device_, fragments);
  {  // Everything that the first stage needs, before anything is made for it.
    int64_t whole = weight_bytes;
    add_bytes(whole, workspace_bytes_of(plan_for(first.rows_max), first.rows_max));
    add_bytes(whole, row_info_bytes(first));
    add_bytes(whole, own_bytes_of(graphs_, first));
    SHOAL_TRY_ASSIGN(claim, claim_memory(device_, whole));
  }
  SHOAL_TRY_ASSIGN(claim, claim_memory(device_, weight_bytes));
  weights_claim_.emplace(std::move(claim));

  size_t own = 0;
  for (size_t f = 0; f < fragments.size(); ++f) {
    const Graph& graph = graphs_[f];
    std::vector<Buffer*> weights(graph.values.size(), nullptr);
    for (ValueId id = 0; id < graph.values.size(); ++id) {
      const Value& value = graph.values[id];
      if (value.kind != ValueKind::kWeight) continue;
      Result<std::unique_ptr<Buffer>> buffer = device_.upload_weight(
          value.dtype, weight_rows(value), value.shape.back(), fragments[f].weights.at(value.name));
      if (!buffer.ok()) {
        return with_context(buffer.error(), fragment_label(f) + ", value " + std::to_string(id) +
                                                " of weights of " + std::to_string(weight_bytes) +
                                                " bytes");
      }
      weights_.push_back(std::move(buffer).value());
      weights[id] = weights_.back().get();
    }
    for (const Op& op : graph.ops) {
      const DType variant = op_spec(op.kind).variant(graph, op);
      if (!device_.supports(op.kind, variant)) {
        return Error{ErrorCode::kUnsupported, device_.info().selector + " has no kernel for " +
                                                  std::string(op_name(op.kind)) + " " +
                                                  std::string(dtype_name(variant))};
      }
      if (op.kind == OpKind::kPositions)
        positions_known_ = std::min(positions_known_, graph.values[op.inputs[0]].shape[0]);
      if (op.kind == OpKind::kEmbed) {
        const int64_t rows = graph.values[op.inputs[1]].shape[0];
        vocabulary_in_ = vocabulary_in_ == 0 ? rows : std::min(vocabulary_in_, rows);
      }
    }
    plan_calls(f, weights, own);
  }
  if (shape_.ends_with_logits) features_ = features_of(graphs_.back(), shape_.width);
  return {};
}

// `own` counts what a stage has for itself, over all fragments.
void DeviceFragments::plan_calls(size_t fragment, const std::vector<Buffer*>& weights,
                                 size_t& own) {
  const Graph& graph = graphs_[fragment];
  using View = PlannedView;
  std::vector<View> views;
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    const Value& value = graph.values[id];
    switch (value.kind) {
      case ValueKind::kWeight: views.push_back({View::From::kWeight, weights[id]}); break;
      case ValueKind::kState:
      case ValueKind::kRopeTable: views.push_back({View::From::kOwn, nullptr, own++}); break;
      default:
        views.push_back({View::From::kWorkspace, nullptr, id, bytes_of(value, {1, 1, 1, 1})});
        if (value.shape[0] == kRows) views.back().per = View::Per::kRow;
        if (value.shape[0] == kOutputs) views.back().per = View::Per::kOutput;
    }
  }
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    PlannedCall call{fragment, i, &op_spec(op.kind), {}};
    for (const ValueId id : op.inputs) {
      if (id != op.output) call.views.push_back(views[id]);
    }
    if (call.spec->step_buffer == StepBuffer::kRowInfo)
      call.views.push_back({View::From::kRowInfo, nullptr, 0, 8, View::Per::kRow});
    if (call.spec->step_buffer == StepBuffer::kPicked)
      call.views.push_back({View::From::kPicked, nullptr, 0, 4, View::Per::kOutput});
    call.views.push_back(views[op.output]);
    call.own = std::ranges::any_of(call.views,
                                   [](const View& view) { return view.from == View::From::kOwn; });
    plan_.push_back(std::move(call));
  }
}

Result<std::unique_ptr<Stage>> DeviceFragments::open(const StageOptions& options) {
  SHOAL_TRY(check_options(options));
  if (options.context > positions_known_) {
    return invalid("stage: a context of " + std::to_string(options.context) +
                   " is longer than the " + std::to_string(positions_known_) +
                   " positions that the model has learned");
  }
  const int64_t rows_held = workspace_ ? workspace_->rows_max : 0;
  if (rows_held < options.rows_max) SHOAL_TRY(make_workspace(options.rows_max));
  // For others' rows beside the longest step of one, if there is room: it is only faster.
  longest_ = std::max(longest_, options.rows_max);
  if (stages_ > 0 && workspace_->rows_max < longest_ + kRowsBeside)
    (void)make_workspace(longest_ + kRowsBeside).ok();
  const int64_t needed = row_info_needed_ + row_info_bytes(options);
  if (!row_info_ || row_info_->buffer->size() < needed) SHOAL_TRY(make_row_info(needed));
  SHOAL_TRY_ASSIGN(claim, claim_memory(device_, own_bytes_of(graphs_, options)));
  row_info_needed_ = needed;  // Until the stage ends.
  ++stages_;
  auto stage = std::make_unique<DeviceStage>(*this, options);
  SHOAL_TRY(stage->place(std::move(claim)));
  return std::unique_ptr<Stage>(std::move(stage));
}

Result<void> DeviceFragments::upload_input(std::span<const Part> parts) {
  int64_t rows = 0;
  for (const Part& part : parts) rows += static_cast<int64_t>(part.input->rows.size());
  std::vector<uint32_t> row_info(static_cast<size_t>(rows) * 2);
  std::vector<uint32_t> picked;
  size_t first = 0;
  for (const Part& part : parts) {
    part.stage->cache().list(part.input->rows, first, row_info);
    for (const uint32_t row : part.input->output_rows)
      picked.push_back(static_cast<uint32_t>(first) + row);
    first += part.input->rows.size();
  }
  SHOAL_TRY(device_.upload(*row_info_->buffer, 0, std::as_bytes(std::span(row_info))));
  if (!picked.empty())
    SHOAL_TRY(device_.upload(*workspace_->picked, 0, std::as_bytes(std::span(picked))));
  int64_t at = 0;
  for (const Part& part : parts) {
    const ByteSpan bytes = shape_.begins_with_tokens ? std::as_bytes(part.input->tokens)
                                                     : std::as_bytes(part.input->hidden);
    SHOAL_TRY(device_.upload(slot(0, graphs_[0].input), at, bytes));
    at += static_cast<int64_t>(bytes.size());
  }
  return {};
}

// For so many rows, which begin behind those before. Of all stages, or the given one's.
void DeviceFragments::make_call(const PlannedCall& planned, const Rows& rows, const Rows& before,
                                const DeviceStage* stage) {
  const Graph& graph = graphs_[planned.fragment];
  const Op& op = graph.ops[planned.op];
  const ParamBlock params = planned.spec->params(graph, op, {rows.rows, rows.outputs, 1, 1});
  if (planned.spec->grid(params).rows == 0) return;  // No logits are wanted.
  OpCall call{.kind = op.kind, .variant = planned.spec->variant(graph, op)};
  call.params = params.bytes;
  call.params_size = params.size;
  for (const PlannedView& view : planned.views) {
    Buffer* buffer = nullptr;
    switch (view.from) {
      case PlannedView::From::kWeight: buffer = view.weight; break;
      case PlannedView::From::kOwn: buffer = stage->own_buffer(view.index); break;
      case PlannedView::From::kRowInfo: buffer = row_info_->buffer.get(); break;
      case PlannedView::From::kPicked: buffer = workspace_->picked.get(); break;
      case PlannedView::From::kWorkspace:
        buffer = &slot(planned.fragment, static_cast<ValueId>(view.index));
    }
    int64_t offset = 0, size = buffer->size();
    if (view.per == PlannedView::Per::kRow) {
      offset = view.bytes * before.rows;
      size = view.bytes * rows.rows;
    } else if (view.per == PlannedView::Per::kOutput) {
      offset = view.bytes * before.outputs;
      size = view.bytes * rows.outputs;
    }
    // Behind the rows stand the pages.
    if (view.from == PlannedView::From::kRowInfo) size = buffer->size() - offset;
    call.buffers.push_back({buffer, offset, size});
  }
  calls_.push_back(std::move(call));
}

void DeviceFragments::make_calls(std::span<const Part> parts, size_t first_fragment,
                                 size_t last_fragment) {
  calls_.clear();
  const bool wants_features = parts[0].input->wants_features;
  const auto rows_of_part = [](const Part& part) {
    return Rows{static_cast<int64_t>(part.input->rows.size()),
                static_cast<int64_t>(part.input->output_rows.size())};
  };
  Rows all;
  for (const Part& part : parts) {
    all.rows += rows_of_part(part).rows;
    all.outputs += rows_of_part(part).outputs;
  }
  for (const PlannedCall& planned : plan_) {
    if (planned.fragment < first_fragment || planned.fragment > last_fragment) continue;
    // The features' slot holds them until the next op of the head.
    if (wants_features && planned.fragment + 1 == graphs_.size() && planned.op > features_->op) {
      continue;
    }
    if (!planned.own) {
      make_call(planned, all, {}, nullptr);
      continue;
    }
    Rows before;
    for (const Part& part : parts) {
      const Rows rows = rows_of_part(part);
      make_call(planned, rows, before, part.stage);
      before.rows += rows.rows;
      before.outputs += rows.outputs;
    }
  }
}

Result<std::vector<float>> DeviceFragments::download(Buffer& buffer, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  if (count > 0) SHOAL_TRY(device_.download(buffer, 0, std::as_writable_bytes(std::span(values))));
  return values;
}

// All fragments. A CPU may rest after each op; a GPU takes a fragment at once, as each submission
// has its price.
Result<void> DeviceFragments::run_calls(std::span<const Part> parts, Pace* pace) {
  if (pace == nullptr || !pace->fine()) {
    make_calls(parts, 0, graphs_.size() - 1);
    return device_.run(calls_);
  }
  const bool by_op = device_.info().plane == "cpu";
  for (size_t f = 0; f < graphs_.size(); ++f) {
    make_calls(parts, f, f);
    const std::span<const OpCall> calls = calls_;
    const size_t at_once = by_op ? 1 : std::max<size_t>(calls.size(), 1);
    for (size_t i = 0; i < calls.size(); i += at_once) {
      if (f != 0 || i != 0) SHOAL_TRY(pace->rest());
      SHOAL_TRY(device_.run(calls.subspan(i, at_once)));
    }
  }
  return {};
}

Result<std::vector<float>> DeviceFragments::run(std::span<const Part> parts,
                                                const Stage::FragmentTap* tap, Pace* pace) {
  SHOAL_TRY(upload_input(parts));
  int64_t rows = 0, outputs = 0;
  for (const Part& part : parts) {
    rows += static_cast<int64_t>(part.input->rows.size());
    outputs += outputs_of(*part.input);
  }
  SHOAL_CHECK(rows <= workspace_->rows_max);
  const size_t last = graphs_.size() - 1;
  if (tap == nullptr) {
    SHOAL_TRY(run_calls(parts, pace));
  } else {
    // Slots are used again by later fragments, so that each output is taken before they run.
    for (size_t f = 0; f <= last; ++f) {
      make_calls(parts, f, f);
      if (Result<void> ran = device_.run(calls_); !ran.ok())
        return with_context(ran.error(), fragment_label(f));
      if (shape_.ends_with_logits && f == last) continue;
      const int64_t width = graphs_[f].values[graphs_[f].output].shape[1];
      SHOAL_TRY_ASSIGN(output, download(slot(f, graphs_[f].output), rows * width));
      (*tap)(f, output);
    }
  }
  const bool features = parts[0].input->wants_features;
  Buffer& wanted = slot(last, features ? features_->value : graphs_[last].output);
  return download(wanted, outputs * static_cast<int64_t>(output_width(features)));
}

std::vector<Result<std::vector<float>>> DeviceFragments::step(std::span<const StageStep> steps,
                                                              Pace* pace) {
  std::vector<Result<std::vector<float>>> results;
  std::vector<Part> parts;
  for (const StageStep& step : steps)
    parts.push_back({static_cast<DeviceStage*>(step.stage), step.input});
  // Each alone, where they do not go together.
  using Output = Result<std::vector<float>>;
  const auto rested = [&] {
    return pace == nullptr || results.empty() ? Result<void>() : pace->rest();
  };
  const auto alone = [&](const Part& part) -> Output {
    SHOAL_TRY(rested());
    return part.stage->step(*part.input, nullptr, pace);
  };
  const auto at_once = [&](std::span<const Part> several) -> Output {
    SHOAL_TRY(rested());
    return run(several, nullptr, pace);
  };
  for (size_t i = 0; i < parts.size();) {
    // As many as there is memory for.
    std::vector<Part> together;
    int64_t rows = 0;
    for (size_t j = i; j < parts.size(); ++j) {
      const StepInput& input = *parts[j].input;
      rows += static_cast<int64_t>(input.rows.size());
      const bool fits = rows <= workspace_->rows_max &&
                        (pace == nullptr || pace->rows_max() == 0 || rows <= pace->rows_max()) &&
                        input.wants_features == parts[i].input->wants_features;
      if (j > i && !fits) break;
      together.push_back(parts[j]);
    }
    bool ready = true;
    i += together.size();
    if (together.size() > 1) {
      for (const Part& part : together) ready = ready && part.stage->prepare(*part.input).ok();
      if (ready) {
        const Output output = at_once(together);
        // An error is one stage's, which its step alone will tell; the rest is nobody's fault.
        if (output.ok()) {
          const size_t width = output_width(together[0].input->wants_features);
          size_t at = 0;
          for (const Part& part : together) {
            const size_t count = static_cast<size_t>(outputs_of(*part.input)) * width;
            const auto begin = output.value().begin() + static_cast<ptrdiff_t>(at);
            results.push_back(std::vector<float>(begin, begin + static_cast<ptrdiff_t>(count)));
            part.stage->wrote(*part.input);
            at += count;
          }
          continue;
        }
        if (output.error().code != ErrorCode::kNonFinite) {
          results.insert(results.end(), together.size(), output);
          continue;
        }
      }
    }
    for (const Part& part : together) results.push_back(alone(part));
  }
  return results;
}

// --- a stage ---

Result<Buffer*> DeviceStage::allocate(int64_t bytes) {
  SHOAL_TRY_ASSIGN(buffer, shared_.device().allocate(bytes));
  buffers_.push_back(std::move(buffer));
  return buffers_.back().get();
}

// Blocks of a model share their table: it is made once for each kind of angle.
Result<Buffer*> DeviceStage::rope_table(const RopeSpec& spec) {
  if (const auto found = rope_tables_.find(spec); found != rope_tables_.end()) return found->second;
  const std::vector<float> table = make_rope_table(spec, options_.context);
  SHOAL_TRY_ASSIGN(buffer, allocate(static_cast<int64_t>(table.size()) * 4));
  SHOAL_TRY(shared_.device().upload(*buffer, 0, std::as_bytes(std::span(table))));
  rope_tables_.emplace(spec, buffer);
  return buffer;
}

Result<void> DeviceStage::place(MemoryClaim claim) {
  claim_.emplace(std::move(claim));
  for (const Graph& graph : shared_.graphs()) {
    for (const Value& value : graph.values) {
      if (value.kind == ValueKind::kRopeTable) {
        SHOAL_TRY_ASSIGN(table, rope_table(value.rope));
        own_.push_back(table);
      } else if (value.kind == ValueKind::kState) {
        const int64_t width = value.shape.back();
        SHOAL_TRY_ASSIGN(state, allocate(cache_bytes(value.dtype, width, pages_of(options_))));
        cache_.add({state, value.dtype, width});
        own_.push_back(state);
      }
    }
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
    if (first) written = cache_.length(row.sequence);
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
  if (input.tokens.size() != (shape().begins_with_tokens ? rows : 0)) {
    return invalid("step: it has " + std::to_string(input.tokens.size()) + " tokens for " +
                   std::to_string(rows) + " rows");
  }
  const size_t hidden = shape().begins_with_tokens ? 0 : rows * static_cast<size_t>(shape().width);
  if (input.hidden.size() != hidden) {
    return invalid("step: it has " + std::to_string(input.hidden.size()) + " hidden values where " +
                   std::to_string(hidden) + " are needed");
  }
  for (const int32_t token : input.tokens) {
    if (token < 0 || token >= shared_.vocabulary_in()) {
      return invalid("step: token " + std::to_string(token) + " is beyond the vocabulary of " +
                     std::to_string(shared_.vocabulary_in()));
    }
  }
  for (size_t i = 0; i < input.hidden.size(); ++i) {
    if (!exact::exact_is_finite(input.hidden[i])) {
      return invalid("step: hidden value " + std::to_string(i) + " is not finite");
    }
  }
  if (input.wants_features && !shape().ends_with_logits) {
    return invalid("step: features of a stage without the head");
  }
  if (input.wants_features && !shared_.has_features()) {
    return Error{ErrorCode::kUnsupported, "step: this model's head has no features of its width"};
  }
  if (!shape().ends_with_logits && !input.output_rows.empty()) {
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
  if (shape().ends_with_logits) {
    for (size_t i = 0; i < input.output_rows.size(); ++i) {
      place[input.output_rows[i]] = static_cast<int64_t>(i);
    }
  } else {
    std::iota(place.begin(), place.end(), int64_t{0});
  }
  const size_t outputs = shape().ends_with_logits ? input.output_rows.size() : input.rows.size();
  const size_t width = shared_.output_width(input.wants_features);
  std::vector<float> all(outputs * width);

  const auto width_in = static_cast<size_t>(shape().width);
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
        if (shape().ends_with_logits) output_rows.push_back(static_cast<uint32_t>(rows.size()));
        places.push_back(place[row]);
      }
      rows.push_back(input.rows[row]);
      if (shape().begins_with_tokens) {
        tokens.push_back(input.tokens[row]);
      } else {
        const std::span<const float> values = input.hidden.subspan(row * width_in, width_in);
        hidden.insert(hidden.end(), values.begin(), values.end());
      }
    }
    const StepInput piece_input{rows, tokens, hidden, output_rows, input.wants_features};
    const DeviceFragments::Part part{this, &piece_input};
    SHOAL_TRY_ASSIGN(output, shared_.run({&part, 1}, nullptr, &pace));
    for (size_t i = 0; i < places.size(); ++i) {
      std::copy_n(output.begin() + static_cast<int64_t>(i * width), width,
                  all.begin() + places[i] * static_cast<int64_t>(width));
    }
  }
  return all;
}

Result<void> DeviceStage::prepare(const StepInput& input) {
  SHOAL_TRY(check_input(input));
  if (Result<void> room = cache_.make_writable(input.rows); !room.ok())
    return with_context(room.error(), "step");
  return {};
}

Result<std::vector<float>> DeviceStage::step(const StepInput& input, const FragmentTap* tap,
                                             Pace* pace) {
  SHOAL_CHECK(tap == nullptr || pace == nullptr);
  SHOAL_TRY(prepare(input));
  const DeviceFragments::Part part{this, &input};
  const auto rows_max = static_cast<size_t>(pace == nullptr ? 0 : pace->rows_max());
  Result<std::vector<float>> output = rows_max == 0 || input.rows.size() <= rows_max
                                          ? shared_.run({&part, 1}, tap, pace)
                                          : run_in_pieces(input, rows_max, *pace);
  if (!output.ok()) return output;
  wrote(input);
  return output;
}

}  // namespace

Result<std::unique_ptr<LoadedFragments>> LoadedFragments::load(Device& device,
                                                               std::span<const Fragment> fragments,
                                                               const StageOptions& first) {
  SHOAL_TRY(check_options(first));
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
  auto loaded = std::make_unique<DeviceFragments>(device, shape);
  SHOAL_TRY(loaded->place(fragments, first));
  return std::unique_ptr<LoadedFragments>(std::move(loaded));
}

Result<std::unique_ptr<Stage>> Stage::open(Device& device, std::span<const Fragment> fragments,
                                           const StageOptions& options) {
  SHOAL_TRY_ASSIGN(loaded, LoadedFragments::load(device, fragments, options));
  SHOAL_TRY_ASSIGN(stage, loaded->open(options));
  static_cast<DeviceStage&>(*stage).own(std::move(loaded));
  return std::unique_ptr<Stage>(std::move(stage));
}

}  // namespace shoal::compute
