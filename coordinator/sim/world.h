#pragma once
// Runs a broker under virtual time with simulated hosts, messages and faults, all drawn from a
// seed: the same seed replays the same run.

#include <functional>
#include <string>
#include <vector>

#include "coordinator/sim/scenario.h"
#include "coordinator/sim/truth.h"

namespace shoal::sim {

struct Options {
  Scenario scenario;
  BrokerRules rules;
  int64_t hosts = 1000;
  double hours = 24;
  double warm_hours = 0;  // Shares are counted from here on.
  uint64_t seed = 1;
  double job_hours = 12;  // Of the fleet's work, for each job; the last ones are smaller.
};

// How things stood at a moment.
struct Sample {
  double hour = 0;
  int64_t hosts_on = 0;
  double flops_done = 0;                 // So far.
  Spent spent;                           // So far.
  int64_t pending = 0;                   // Results that wait to be confirmed.
  int64_t lies = 0, lies_confirmed = 0;  // So far.
};

struct Report {
  Options options;
  Truth truth;
  std::vector<Sample> samples;
  Spent whole, steady;      // Until the hours were over; steady: without the warm ones.
  double flops_steady = 0;  // Done in these.
  int64_t units_steady = 0;
  int64_t jobs = 0, jobs_unfinished = 0;
  double drain_hours = 0;  // That the last jobs took, after the hours were over.
  int64_t events = 0;
  int64_t live_units_max = 0;
  // Counted by the world.
  int64_t messages_lost = 0, messages_twice = 0, sleeps = 0, crashes = 0, returns = 0;
  int64_t spoken_up = 0;  // Lies told a second time, under a lease that was given back.
  // Counted for those who lie, for the bounds.
  int64_t liars = 0, lies_steady = 0, lies_confirmed_steady = 0;
};

// `progress` is told the virtual hour now and then; may be null.
Report run(const Options& options, const std::function<void(double hour)>& progress);

}  // namespace shoal::sim
