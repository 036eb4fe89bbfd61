#pragma once
// A real coordinator and real unit runners of clients over streams in memory: time moves when
// nothing else can happen, and a seed draws what goes wrong. Messages are delayed, overtaken, lost
// and sent twice; lines are cut; either side is killed; disks fill; clocks jump; one host lies.

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/coordinator/world.h"

namespace shoal::test {

struct SwarmOptions {
  uint64_t seed = 1;
  int hosts = 7;  // The first one is trusted, the second one lies from some unit on.
  int prompts = 60;
  bool faults = true;  // Else nothing goes wrong.
};

struct SwarmOutcome {
  std::string wrong;  // What must not have come; empty: nothing.
  // What happened, to see that something did.
  int lies = 0;           // Units that the liar handed in.
  int messages_hurt = 0;  // Lost, repeated, or kept for long.
  int lines_cut = 0, clients_killed = 0, workers_killed = 0;
  int coordinators_stopped = 0, coordinators_killed = 0;
  int clock_jumps = 0;
  int64_t leases = 0, late = 0;  // Rows; of them, those that ended without a result in time.
  Millis took;                   // Virtual.
};

// Runs a job to its end, and holds the store against what is true.
SwarmOutcome run_swarm(const SwarmOptions& options);

}  // namespace shoal::test
