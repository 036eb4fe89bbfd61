#pragma once
// Decides which device replaces a lost one, and how long to wait for a step and for silence. Pure.

#include <cstdint>
#include <optional>
#include <span>

#include "coordinator/work/planner.h"

namespace shoal {

struct ReplacementRequest {
  std::span<const FragmentCost> fragments;  // Of the lost stage.
  int64_t context = 0;
  int64_t rows_max = 1;
  bool trusted_only = false;  // The stage is an end of an anchored session.
  bool exact = true;
  // What is still to be done, which tells how long the device is needed.
  int64_t rows_to_replay = 0, tokens_left = 0;
  double others_seconds_per_token = 0;  // Of the session's other stages.
};

struct ReplacementCandidate {
  PlanDevice device;
  bool in_session = false;  // It runs another stage of this session.
  bool distrusted = false;  // Its host gave this session a wrong answer.
  bool just_lost = false;   // It has failed this session before.
  bool has_shards = false;  // A standby: nothing to fetch.
};

// The place of the best candidate; empty when none will do. A device without a stage of this
// session comes before one with, one that has not failed before one that has, a standby before
// others, and then the fastest. Never taken is a distrusted one, one whose owner denies the class
// of work, and one whose owner wants it back before the session is predicted to end.
std::optional<size_t> choose_replacement(const ReplacementRequest& request,
                                         std::span<const ReplacementCandidate> candidates);

struct StepTimes {
  Millis least{2'000};   // No step is given up sooner.
  double factor = 8.0;   // Times what the same step took before.
  Millis first{10'000};  // For a stage that has not been measured yet.
};

// How long to wait for a step of `rows` on a stage: `row_seconds` is its slowest rate so far, 0
// before the first; `predicted_seconds` is what the planner expects of this step.
Millis step_timeout(const StepTimes& times, double row_seconds, double predicted_seconds,
                    int64_t rows);

// For how long a client must keep a stage without a step: the longest pause that a session can make
// while another of its stages is being replaced.
Millis lease_silence(Millis repair_wait, Millis open_silence);

}  // namespace shoal
