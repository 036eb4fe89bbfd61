#pragma once
// How fast a model runs on a device: prompts of several lengths, and decoding with one or several
// sequences in a step. Figures are the best of the rounds, as what disturbs only ever slows down.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "compute/compute.h"
#include "compute/models/model.h"

namespace shoal::compute {

struct ModelBenchPlan {
  std::vector<int64_t> prompts = {64};  // Tokens.
  std::vector<int64_t> batches = {1};   // Sequences that decode together.
  int64_t decode = 64;                  // Steps that are measured after each prompt.
  int64_t chunk = 64;                   // Prompt rows in one step.
  int rounds = 1;
};

struct ModelRates {
  int64_t prompt = 0;
  int64_t batch = 0;
  double prefill_tokens_per_second = 0;
  double prefill_flops_per_second = 0;  // By the graphs; see GraphCost.
  double decode_tokens_per_second = 0;  // Of all sequences together.
  double decode_bytes_per_second = 0;   // Weights, and the caches that attention reads.
};

// Keeps the opened stage, so that rounds can be run one by one beside those of a rival.
class ModelBench {
 public:
  // kInvalid names what of the plan the model cannot do.
  static Result<ModelBench> open(const Model& model, Device& device, const ModelBenchPlan& plan);

  // Runs every prompt with every batch once, and keeps what was better than before.
  Result<void> round();

  double open_seconds() const { return open_seconds_; }  // Of the stage: upload and planning.
  double first_token_seconds() const { return first_token_seconds_; }  // Of the first prompt.
  const std::vector<ModelRates>& rates() const { return rates_; }

 private:
  ModelBench() = default;
  Result<double> run(std::span<const RowInfo> rows, bool wants_logits);
  Result<void> measure(ModelRates& best);

  const Model* model_ = nullptr;
  ModelBenchPlan plan_;
  std::unique_ptr<Stage> stage_;
  double open_seconds_ = 0;
  double first_token_seconds_ = 0;
  std::vector<ModelRates> rates_;
};

// Seconds of a step of one row through blocks that are too small to cost anything: what a step
// takes that is not kernels.
Result<double> step_overhead(Device& device, int blocks);

}  // namespace shoal::compute
