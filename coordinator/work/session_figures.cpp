#include "coordinator/work/session_figures.h"

namespace shoal {

SessionFigures predict_session(const PlanRequest& request, std::span<const PlanDevice> devices,
                               const Plan& plan) {
  SessionFigures figures;
  figures.block_rows = plan.prefill.rows;
  figures.predicted.prefill_seconds = plan.prefill.seconds;
  figures.predicted.tokens_per_second = 1 / plan.seconds_per_token;
  for (const PlanStage& stage : plan.stages) {
    StageTimes times;
    times.row_seconds = plan_step_seconds(request, devices, stage, 1);
    times.block_seconds = plan_step_seconds(request, devices, stage, plan.prefill.rows);
    times.hop_seconds = devices[stage.device].hop_seconds;
    figures.predicted.stages.push_back(times);
  }
  figures.measured.stages.resize(plan.stages.size());
  return figures;
}

void note_step(StageTimes& stage, int64_t rows, int64_t block_rows, double seconds) {
  const auto add = [seconds](double& mean, int64_t& steps) {
    steps += 1;
    mean += (seconds - mean) / static_cast<double>(steps);
  };
  if (rows == 1) add(stage.row_seconds, stage.row_steps);
  if (rows == block_rows) add(stage.block_seconds, stage.block_steps);
}

}  // namespace shoal
