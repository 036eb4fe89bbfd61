#pragma once
// Checks a step as it came over the wire, and turns it into values that the compute thread can own.

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "compute/compute.h"
#include "compute/sampling/sampler.h"
#include "schema/common.capnp.h"

namespace shoal::worker {

struct DrawRequest {
  size_t output = 0;  // Which of output_rows.
  SamplingOptions sampling;
  std::vector<int32_t> history;
  uint64_t position = 0;
};

struct ScoreRequest {
  size_t output = 0;  // Which of output_rows.
  int32_t token = 0;
};

struct StepRequest {
  std::vector<compute::RowInfo> rows;
  std::vector<int32_t> tokens;
  std::vector<float> hidden;
  std::vector<uint32_t> output_rows;  // Those of draws and scores, or all rows for the features.
  std::vector<DrawRequest> draws;
  std::vector<ScoreRequest> scores;
  bool wants_features = false;
};

// Refuses, by field, what is beyond limits.h or does not fit the stage.
Result<StepRequest> read_step(rpc::StepInput::Reader input, const compute::StageShape& shape,
                              const compute::StageOptions& options);

// Refuses, by field, a spec beyond limits.h; the shards and keys are checked where they are opened.
Result<compute::StageOptions> read_stage_options(rpc::StageSpec::Reader spec);

}  // namespace shoal::worker
