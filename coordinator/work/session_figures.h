#pragma once
// What a session was predicted to take, and what it took: one definition of each number. Pure.

#include <cstdint>
#include <vector>

#include "coordinator/work/planner.h"

namespace shoal {

// Of one stage. 0: not predicted, or none was seen.
struct StageTimes {
  double row_seconds = 0;                  // A step of one row, with the way to the host and back.
  double block_seconds = 0;                // A step of a whole block of the prompt, likewise.
  double hop_seconds = 0;                  // The way alone.
  int64_t row_steps = 0, block_steps = 0;  // Measured: how many steps the means are of.
};

struct SessionTimes {
  double prefill_seconds = 0;    // From all stages being open to the first token.
  double tokens_per_second = 0;  // Of the tokens after it; of this text alone.
  std::vector<StageTimes> stages;
};

struct SessionFigures {
  int64_t block_rows = 0;  // So many rows of a prompt go into a stage at a time. 0: no plan.
  SessionTimes predicted;  // By the plan that the session began with.
  SessionTimes measured;   // Of each stage, whoever ran it; not of replays.
};

SessionFigures predict_session(const PlanRequest& request, std::span<const PlanDevice> devices,
                               const Plan& plan);

// A step was answered. Neither one row nor a whole block: it tells nothing.
void note_step(StageTimes& stage, int64_t rows, int64_t block_rows, double seconds);

}  // namespace shoal
