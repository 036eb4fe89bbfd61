#pragma once
// Asks the planner what a session should be, with the hosts as they are now: for sessions that
// begin, and for people who ask beforehand. Opens and stores nothing.

#include "coordinator/session/session_shared.h"
#include "coordinator/work/planner.h"

namespace shoal {

struct SessionSizes {
  int64_t context = 0;   // Positions of each stage's cache.
  int64_t rows_max = 1;  // Of a step.
};
// kInvalid when the model's context does not hold the prompt. REQUIRES: both are positive.
Result<SessionSizes> session_sizes(const LiveModel& model, const SessionOptions& options,
                                   int64_t prompt_tokens, int64_t tokens_max);

JobClass class_of(const LiveModel& model, const SessionRequest& request);

struct SessionPlan {
  std::vector<Pool::Offer> offers;
  std::vector<PlanDevice> devices;  // The offers'.
  PlanRequest request;              // Refers to the model's costs.
  Plan plan;
};
// `model` outlives the plan.
Result<SessionPlan> plan_now(const SessionNeeds& needs, const LiveModel& model,
                             const SessionRequest& request, const SessionSizes& sizes,
                             int64_t prompt_tokens);

}  // namespace shoal
