#include "compute/run/model_bench.h"

#include <algorithm>

#include "compute/run/stopwatch.h"
#include "compute/sample_model.h"

namespace shoal::compute {
namespace {

constexpr int kOverheadSteps = 300;

// Any tokens do, as long as they differ.
int32_t token_at(const Model& model, uint32_t position) {
  return static_cast<int32_t>(position * int64_t{7919} % model.config.vocabulary);
}

struct StepCost {
  double flops = 0;
  double bytes = 0;
};

// Of a step of `rows` rows, `sequences` caches of `context` positions being read.
Result<StepCost> step_cost(const Model& model, int64_t rows, int64_t outputs, int64_t context,
                           int64_t sequences) {
  StepCost total;
  for (size_t i = 0; i < model.fragments.size(); ++i) {
    SHOAL_TRY_ASSIGN(
        part, cost(model.fragments[i].graph,
                   {.rows = rows, .outputs = outputs, .context = context, .sequences = sequences}));
    total.flops += static_cast<double>(part.flops);
    // Of the embedding's table only the tokens' rows are read.
    if (i > 0) total.bytes += static_cast<double>(part.weight_bytes + part.state_bytes);
  }
  return total;
}

}  // namespace

Result<ModelBench> ModelBench::open(const Model& model, Device& device,
                                    const ModelBenchPlan& plan) {
  const int64_t prompt_max = *std::max_element(plan.prompts.begin(), plan.prompts.end());
  const int64_t batch_max = *std::max_element(plan.batches.begin(), plan.batches.end());
  const int64_t context = prompt_max + plan.decode;
  if (context > model.config.context) {
    return Error{ErrorCode::kInvalid, "tokens: " + std::to_string(prompt_max) + " and " +
                                          std::to_string(plan.decode) +
                                          " to decode pass the model's context of " +
                                          std::to_string(model.config.context)};
  }
  ModelBench bench;
  bench.model_ = &model;
  bench.plan_ = plan;
  bench.plan_.chunk = std::min(plan.chunk, prompt_max);
  const Stopwatch opening;
  SHOAL_TRY_ASSIGN(stage, Stage::open(device, model.fragments,
                                      {.context = context,
                                       .sequences = batch_max,
                                       .rows_max = std::max(bench.plan_.chunk, batch_max)}));
  bench.open_seconds_ = opening.seconds();
  if (!stage->shape().begins_with_tokens || !stage->shape().ends_with_logits) {
    return Error{ErrorCode::kCorrupt, "model: does not begin with tokens and end with logits"};
  }
  bench.stage_ = std::move(stage);
  for (const int64_t prompt : plan.prompts) {
    for (const int64_t batch : plan.batches)
      bench.rates_.push_back({.prompt = prompt, .batch = batch});
  }
  // Once without being counted, so that drivers have compiled their kernels and pages are there.
  std::vector<RowInfo> rows;
  for (uint32_t i = 0; i < static_cast<uint32_t>(plan.prompts.front()); ++i) rows.push_back({0, i});
  SHOAL_TRY_ASSIGN(first, bench.run(rows, true));
  bench.first_token_seconds_ = first;
  return bench;
}

// Steps of at most `chunk` rows, or of one where all rows are of different sequences; seconds.
Result<double> ModelBench::run(std::span<const RowInfo> rows, bool wants_logits) {
  std::vector<int32_t> tokens;
  for (const RowInfo& row : rows) tokens.push_back(token_at(*model_, row.position));
  const bool one_sequence = rows.size() == 1 || rows[0].sequence == rows[1].sequence;
  const auto chunk = one_sequence ? static_cast<size_t>(plan_.chunk) : rows.size();
  const Stopwatch watch;
  for (size_t at = 0; at < rows.size();) {
    const size_t count = std::min(rows.size() - at, chunk);
    std::vector<uint32_t> outputs;
    for (uint32_t i = 0; wants_logits && i < count; ++i) {
      if (!one_sequence || at + i + 1 == rows.size()) outputs.push_back(i);
    }
    const auto output = stage_->step({.rows = rows.subspan(at, count),
                                      .tokens = std::span(tokens).subspan(at, count),
                                      .output_rows = outputs});
    if (!output.ok()) return output.error();
    at += count;
  }
  return watch.seconds();
}

Result<void> ModelBench::measure(ModelRates& best) {
  const auto prompt = static_cast<uint32_t>(best.prompt);
  const auto batch = static_cast<uint32_t>(best.batch);
  double prefill = 0;  // Of the first sequence: another one's is no other measure.
  for (uint32_t sequence = 0; sequence < batch; ++sequence) {
    std::vector<RowInfo> rows;
    for (uint32_t i = 0; i < prompt; ++i) rows.push_back({sequence, i});
    SHOAL_TRY_ASSIGN(seconds, run(rows, true));
    if (sequence == 0) prefill = seconds;
  }
  double decode = 0;
  for (uint32_t i = 0; i < static_cast<uint32_t>(plan_.decode); ++i) {
    std::vector<RowInfo> rows;
    for (uint32_t sequence = 0; sequence < batch; ++sequence)
      rows.push_back({sequence, prompt + i});
    SHOAL_TRY_ASSIGN(seconds, run(rows, true));
    decode += seconds;
  }
  // Attention's work grows with the context; the middle of the prompt stands for all of it.
  SHOAL_TRY_ASSIGN(prompt_cost, step_cost(*model_, best.prompt, 1, (best.prompt + 1) / 2, 1));
  SHOAL_TRY_ASSIGN(decode_cost, step_cost(*model_, best.batch, best.batch,
                                          best.prompt + plan_.decode / 2, best.batch));
  best.prefill_tokens_per_second =
      std::max(best.prefill_tokens_per_second, static_cast<double>(best.prompt) / prefill);
  best.prefill_flops_per_second =
      std::max(best.prefill_flops_per_second, prompt_cost.flops / prefill);
  const double steps_per_second = static_cast<double>(plan_.decode) / decode;
  best.decode_tokens_per_second =
      std::max(best.decode_tokens_per_second, steps_per_second * static_cast<double>(best.batch));
  best.decode_bytes_per_second =
      std::max(best.decode_bytes_per_second, steps_per_second * decode_cost.bytes);
  return {};
}

Result<void> ModelBench::round() {
  for (ModelRates& rates : rates_) SHOAL_TRY(measure(rates));
  return {};
}

Result<double> step_overhead(Device& device, int blocks) {
  const SampleModelShape shape{.width = 32,
                               .heads = 1,
                               .kv_heads = 1,
                               .head_dim = 32,
                               .inner = 32,
                               .blocks = blocks,
                               .weights = DType::kQ8_0,
                               .ends = false};
  const SampleModel model = make_sample_model(shape);
  SHOAL_TRY_ASSIGN(
      stage, Stage::open(device, model.fragments, {.context = 16, .sequences = 1, .rows_max = 1}));
  const std::vector<RowInfo> rows = {{0, 0}};
  const std::vector<float> hidden(static_cast<size_t>(shape.width), 0.5f);
  std::vector<double> seconds;
  for (int i = 0; i < kOverheadSteps; ++i) {
    const Stopwatch watch;
    const auto output = stage->step({.rows = rows, .hidden = hidden});
    if (!output.ok()) return output.error();
    seconds.push_back(watch.seconds());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kOverheadSteps / 2, seconds.end());
  return seconds[kOverheadSteps / 2];
}

}  // namespace shoal::compute
