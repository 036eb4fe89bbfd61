#pragma once
// May we compute now, on which resource, and why not? Pure: settings, modes, readings, counters and
// time in; a verdict with its reason out. Unknown input means that the owner is here.

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/settings.h"
#include "client/rules/readings.h"
#include "client/rules/tariff.h"
#include "schema/message.h"
#include "schema/week_hours.h"

namespace shoal::client {

enum class Resource { kGpu, kCpu, kNetwork };
inline constexpr int kResourceCount = 3;

enum class Mode { kByRules, kAlways, kPaused };

// What the owner chose for one resource. Durable.
struct ModeChoice {
  Mode mode = Mode::kByRules;
  std::optional<Millis> until;  // Wall time at which it ends; none: not by itself.
  Millis length{0};             // How long it was chosen for: a clock set back must not stretch it.
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

// The texts of the settings that decide() would otherwise read at every call.
struct RuleTexts {
  WeekHours compute_hours = WeekHours::always();
  WeekHours network_hours = WeekHours::always();
  Tariff tariff;

  // A text that validate_rules() would refuse forbids: hours of never, a price without end.
  static RuleTexts of(const Settings& settings);
};

struct PolicyInput {
  const Settings& settings;  // Of client/settings.h.
  ModeChoice modes[kResourceCount];
  const Readings& readings;
  Spent spent;
  std::optional<Millis> leave_by;  // Wall time.
  Millis now{0};                   // Wall time.
  LocalTime local;                 // The same moment in local time.
  // The rule of the last verdict on the resource or device that is asked about; empty when it
  // allowed. For hysteresis: a limit that paused lets go a step below it.
  std::string forbidden_by;
  // The part of the GPU's load that was our own steps, 0 to 1. What is left is of others.
  double own_gpu_load = 0;
  const RuleTexts* texts = nullptr;  // Of `settings`; null: read from them.
};

// The mode at `now`: one whose time is over goes by rules.
Mode mode_at(const ModeChoice& choice, Millis now);

// The verdict for a resource. For GPUs, `gpu` is the reading of the one asked about; null when no
// sensor knows it.
//
// The first that applies decides:
//  1. The computer is about to sleep.
//  2. The owner paused the resource.
//  3. Hard limits: temperature, free memory, energy of the day and of the month (GPU, CPU); bytes
//     of the month, free disk (network).
//  4. The time to leave by is over (GPU, CPU).
//  5. Mode "always": allowed.
//  6. The owner's rules. GPU and CPU: owner here, inhibitors, battery and its charge, power saver,
//     exclusive programs, GameMode, others' CPU load, others' GPU load (GPU), hours, price.
//     Network: offline, metered, hours.
//
// What is not known forbids, with a sentence of its own: whether the owner is here, inhibitors,
// battery, programs, others' CPU load. But a limit on what many computers cannot measure
// (temperature, free memory and disk, GPU load) forbids on "not known" only when the owner set that
// limit himself, and a service that is not there (power profiles, GameMode, whether the network is
// metered or online) says that what it would tell of is not so.
Verdict decide(const PolicyInput& input, Resource resource, const GpuReading* gpu = nullptr);

// The wall time at which local time will have gone on by so many minutes, over changes of the clock
// for summer.
Millis after_local_minutes(Millis now, int minutes);

}  // namespace shoal::client
