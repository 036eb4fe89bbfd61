#pragma once
// Holds what a simulated fleet is like: how many hosts, how fast, when they are there, how they
// leave, what their messages suffer, and who of them lies. Pure figures; chance is world.h's.

#include <span>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "coordinator/work/broker.h"

namespace shoal::sim {

struct Scenario {
  std::string_view name, summary;

  // Being there. Log-normal: a median, and the factor that holds two thirds around it.
  double on_hours = 3, on_spread = 2.5;    // At a stretch.
  double off_hours = 5, off_spread = 2.5;  // In between.
  double always_on = 0.15;                 // Share of hosts that never leave.
  double day_swing = 0;                    // 0 to 1: how much fewer come at the wrong hour.
  double late_share = 0;                   // Of hosts that are new and come all at once ...
  double late_at = 0.25;                   // ... at this share of the time.

  // Leaving: the rest of the leaves is orderly.
  double leaves_asleep = 0.25;       // Suspended: they go on with their work when they wake.
  double leaves_crashed = 0.15;      // Switched off: what they held is lost.
  double crash_per_hour = 0.005;     // Besides.
  double failure_per_unit = 1e-5;    // Ends with an error.
  double clock_jump_per_day = 0.02;  // Its clock says that all its leases are over.

  // Speed, in 10^12 FLOP/s, log-normal; and how far the measured figure is off.
  double teraflops = 8, teraflops_spread = 2.5;
  double measured_spread = 1.15;
  double time_spread = 1.1;  // Of one unit.

  // Links.
  double round_trip_ms = 60, round_trip_spread = 2;
  double message_loss = 0.005, message_twice = 0.003;
  double twice_hours = 2;  // The second copy comes so late at most.

  // Trust.
  double experienced = 0.9;    // Share of hosts that have a history of valid results.
  double trusted = 0.003;      // Share of hosts; they are always on and never lie.
  double owners_shared = 0.1;  // Share of hosts whose owner has another one.
  double liars = 0;            // Share that lies on every unit from some point on.
  double sly = 0;              // Share that lies now and then ...
  double sly_lies = 0.05;      // ... on this share of its units.
  double careful = 0;  // Share that lies on every unit but on copies, which it tells by their size.
  double pairs = 0;    // Share that lies in pairs: two owners, the same lies.

  // The coordinator's own absences: each so long, so many, spread over the time.
  int outages = 0;
  double outage_hours = 0;
};

std::span<const Scenario> scenarios();
Result<Scenario> find_scenario(std::string_view name);  // kNotFound lists the names.

}  // namespace shoal::sim
