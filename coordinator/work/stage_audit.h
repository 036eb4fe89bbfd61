#pragma once
// Decides who checks a stage of a session, and what follows when two who ran it differ. Pure.

#include <cstdint>
#include <span>
#include <vector>

#include "base/digest.h"
#include "coordinator/work/planner.h"

namespace shoal {

struct AuditorRequest {
  std::span<const FragmentCost> fragments;  // Of the stage.
  int64_t context = 0;
  int64_t rows_max = 1;
  bool trusted_only = false;
};

struct AuditorCandidate {
  PlanDevice device;
  bool busy = false;        // It works, or waits for a stage: nothing may be kept from it.
  bool barred = false;      // It cannot be believed here, or has failed at it.
  bool same_owner = false;  // As one whom it would check: they never check each other.
  bool same_address = false;
  bool in_session = false;  // Its host holds another stage of the same session.
};

// The places of the best, which are all as good: one of them is drawn by lot, so that nobody can
// choose whom he checks. Empty when there is none. One from another network comes first, then one
// whose host has no part in the session. Only exact devices can check.
std::vector<size_t> best_auditors(const AuditorRequest& request,
                                  std::span<const AuditorCandidate> candidates);

enum class Settlement {
  kAccused,  // Was wrong; and so on.
  kAuditor,
  kBoth,
  kOpen,  // All three differ, and none of them is trusted.
};

// Three answers to the same: who was wrong. The word of a trusted judge is the truth; one who is
// not has one vote of three. REQUIRES: accused and auditor differ.
Settlement settle(const Digest& accused, const Digest& auditor, const Digest& judge,
                  bool judge_trusted);

}  // namespace shoal
