#pragma once
// Decides which device runs which contiguous range of a model's fragments in a session. Pure: no
// clock, no store, no I/O.

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "coordinator/work/manifest.h"
#include "coordinator/work/reason.h"

namespace shoal {

// A device as it is now: what it measured about itself, and what is free of it.
struct PlanDevice {
  HostId host;
  bool trusted = false;  // Its host may hold the ends of anchored sessions.
  bool exact = false;    // Its self-test passed: its results are the same bits as everybody's.
  Bytes memory_free;
  double weight_bytes_per_second = 0;  // 0: not measured; a cautious figure is used.
  double flops_per_second = 0;
  double fixed_seconds = 0;  // What every step costs besides, however little it computes.
  double hop_seconds = 0;    // From the coordinator to its host and back.
  // Of the way to its host, in the slower direction; 0: not measured, and not counted.
  double link_bytes_per_second = 0;
  int sessions = 0;     // That it works on already: they share it.
  bool denied = false;  // Its owner does not allow this class of work.
  // Until its owner wants it back.
  double seconds_available = std::numeric_limits<double>::infinity();
};

// What a plan makes small: the time of one text's next token, or the time of the slowest stage,
// which is what many texts at once wait for.
enum class PlanObjective { kLatency, kThroughput };

struct PlanRequest {
  std::span<const FragmentCost> fragments;
  int64_t width = 0;        // Of a hidden row: its values travel between stages,
  int64_t value_bytes = 4;  // each so long.
  PlanObjective objective = PlanObjective::kLatency;
  int64_t streams = 1;                  // Texts that step together, for throughput.
  int64_t context = 0;                  // Positions of the session's one sequence.
  int64_t rows_max = 1;                 // Of a step.
  int64_t prompt_rows = 0, tokens = 0;  // To run and to draw: they tell how long it takes.
  int64_t stages_min = 1;
  std::vector<int64_t> cuts;  // Not empty: exactly these stage starts, besides 0; ascending.
  bool anchored = false;      // First and last stage on trusted hosts.
  bool exact = true;          // Only exact devices.
};

struct PlanStage {
  size_t device = 0;  // Its place in the list given.
  int64_t first_fragment = 0, last_fragment = 0;
};

// How a prompt goes through the stages: in blocks, one behind the other.
struct PrefillPlan {
  int64_t rows = 1;    // Of a block.
  double seconds = 0;  // Until the last row has left the last stage, predicted.
};

struct Plan {
  std::vector<PlanStage> stages;
  PrefillPlan prefill;
  double seconds_per_token = 0;  // Of one text, predicted.
  double tokens_per_second = 0;  // Of all texts, when enough are on their way to keep all busy.
  double seconds = 0;            // Of the whole session, likewise, with a reserve.
};

// Nothing runs exactly as predicted: what must end in time gets so much more of it.
constexpr double kTimeReserve = 1.25;

// More stages only when the slowest one becomes so much quicker.
constexpr double kStageGainMin = 1.1;

// What a stage needs on its device, and how long a step takes there and back:
// max(operations / rate, weights / bandwidth) + fixed, for each session on the device, and the hop.
Bytes stage_memory(std::span<const FragmentCost> fragments, int64_t context, int64_t rows_max);
double stage_seconds(std::span<const FragmentCost> fragments, const PlanDevice& device,
                     int64_t rows);

// One device if the model fits one, the fastest such. Else, for latency, the split with the
// shortest time for one token; among those with nearly the same, the evenest; when several stages
// were asked for, evenness counts for more than time. For throughput, the split with the quickest
// slowest stage, and of those within a tenth of it one with few stages. No device has two stages,
// except that in an anchored session a single trusted device may hold both ends. A device is left
// out when its owner denies the class of work, or wants it back before the session is predicted to
// end. kInvalid when the request makes no sense, kUnavailable with one sentence for a person when
// the devices cannot do it.
Result<Plan> plan_session(const PlanRequest& request, std::span<const PlanDevice> devices);

// The size of block with which a prompt is through soonest. Large blocks read the weights seldom;
// with small ones the last stage has to wait less long for its first.
PrefillPlan plan_prefill(const PlanRequest& request, std::span<const PlanDevice> devices,
                         std::span<const PlanStage> stages);

// How long a step of so many rows takes on a stage, with the way there and back.
double plan_step_seconds(const PlanRequest& request, std::span<const PlanDevice> devices,
                         const PlanStage& stage, int64_t rows);

// How long a session takes over these stages, with a reserve.
double session_seconds(const PlanRequest& request, std::span<const PlanDevice> devices,
                       std::span<const PlanStage> stages);

// How long a plan takes for one token: what plan_session makes small. For tests and for people.
double plan_cost(const PlanRequest& request, std::span<const PlanDevice> devices,
                 std::span<const PlanStage> stages);

// Why a plan is as it is, as data: for people and scripts. `names` are the devices', or empty.
struct PlanExplanation {
  std::vector<PlanReason> why, why_not_split, what_would_help;
};
PlanExplanation explain_plan(const PlanRequest& request, std::span<const PlanDevice> devices,
                             const Plan& plan, std::span<const std::string> names = {});

}  // namespace shoal
