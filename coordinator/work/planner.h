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

namespace shoal {

// A device as it is now: what it measured about itself, and what is free of it.
struct PlanDevice {
  HostId host;
  bool trusted = false;  // Its host may hold the ends of anchored sessions.
  bool exact = false;    // Its self-test passed: its results are the same bits as everybody's.
  Bytes memory_free;
  double weight_bytes_per_second = 0;  // 0: not measured; a cautious figure is used.
  double flops_per_second = 0;
  double hop_seconds = 0;  // From the coordinator to its host and back.
  int sessions = 0;        // That it works on already: they share it.
  bool denied = false;     // Its owner does not allow this class of work.
  // Until its owner wants it back.
  double seconds_available = std::numeric_limits<double>::infinity();
};

struct PlanRequest {
  std::span<const FragmentCost> fragments;
  int64_t width = 0;
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

struct Plan {
  std::vector<PlanStage> stages;
  double seconds_per_token = 0;  // Predicted.
  double seconds = 0;            // Of the whole session, likewise, with a reserve.
};

// Nothing runs exactly as predicted: what must end in time gets so much more of it.
constexpr double kTimeReserve = 1.25;

// What a stage needs on its device, and how long it takes.
Bytes stage_memory(std::span<const FragmentCost> fragments, int64_t context, int64_t rows_max);
double stage_seconds(std::span<const FragmentCost> fragments, const PlanDevice& device,
                     int64_t rows);

// One device if the model fits one, the fastest such. Else the split with the shortest time for one
// token; among those with nearly the same, the evenest; when several stages were asked for,
// evenness counts for more than time. No device has two stages, except that in an anchored session
// a single trusted device may hold both ends. A device is left out when its owner denies the class
// of work, or wants it back before the session is predicted to end. kInvalid when the request makes
// no sense, kUnavailable with one sentence for a person when the devices cannot do it.
Result<Plan> plan_session(const PlanRequest& request, std::span<const PlanDevice> devices);

// How long a session takes over these stages, with a reserve.
double session_seconds(const PlanRequest& request, std::span<const PlanDevice> devices,
                       std::span<const PlanStage> stages);

// How long a plan takes for one token: what plan_session makes small. For tests and for people.
double plan_cost(const PlanRequest& request, std::span<const PlanDevice> devices,
                 std::span<const PlanStage> stages);

}  // namespace shoal
