#pragma once
// May we compute now, on which resource, and why not? Pure: settings, modes, readings, counters and
// time in; a verdict with its reason out. Unknown input means that the owner is here.

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/settings.h"
#include "client/rules/readings.h"
#include "schema/message.h"

namespace shoal::client {

enum class Resource { kGpu, kCpu, kNetwork };
inline constexpr int kResourceCount = 3;

enum class Mode { kByRules, kAlways, kPaused };

// What the owner chose for one resource. Durable.
struct ModeChoice {
  Mode mode = Mode::kByRules;
  std::optional<Millis> until;  // Wall time at which it goes by rules again; none: not by itself.
};

// As the tray shows them (schema/agent.capnp).
enum class Activity { kWorking, kWaiting, kPaused, kAttention, kOffline };

struct Verdict {
  Activity activity = Activity::kWaiting;
  Message why;
  Message remedy;                    // What would change it; may be empty.
  std::string rule;                  // The settings key that decided; empty when none did.
  std::optional<Millis> changes_at;  // Wall time; none: not known.

  bool allowed() const { return activity == Activity::kWorking; }
};

// What was used so far in this local day and month.
struct Spent {
  double kilowatt_hours_today = 0, kilowatt_hours_month = 0;
  Bytes transferred_month;
};

struct PolicyInput {
  const Settings& settings;  // Of client/settings.h.
  ModeChoice modes[kResourceCount];
  const Readings& readings;
  Spent spent;
  std::optional<Millis> leave_by;  // Wall time.
  Millis now{0};                   // Wall time.
  LocalTime local;                 // The same moment in local time.
  // What the last verdicts were, for hysteresis: a limit that paused lets go a step below it.
  bool was_allowed[kResourceCount] = {};
};

// The verdict for a resource. For GPUs, `gpu` is the reading of the one asked about; null when no
// sensor knows it: then temperature and load rules count as unknown only where they are switched
// on.
Verdict decide(const PolicyInput& input, Resource resource, const GpuReading* gpu = nullptr);

}  // namespace shoal::client
