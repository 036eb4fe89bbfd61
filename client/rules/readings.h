#pragma once
// What the sensors know of this computer and its owner, as values. Absent means not known, and what
// is not known counts as a reason not to work.

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace shoal::client {

// A program that keeps the screen on: a film, a call, a presentation.
struct Inhibitor {
  std::string who;
  std::string why;
};

struct GpuReading {
  std::string pci_address;  // "0000:01:00.0", the domain included. Empty: not known.
  std::string uuid;         // As Vulkan and NVML name it, lower-case hex without dashes; or empty.
  std::string name;
  std::optional<double> temperature_c;
  std::optional<double> watts;
  std::optional<double> joules;  // A counter that only grows.
  std::optional<double> load;    // 0 to 1, all programs, ours included.
  std::optional<Bytes> memory_total, memory_used;
};

struct Readings {
  // The owner.
  std::optional<Millis> idle;  // Since the last input of anybody on this computer.
  std::string idle_source;     // Which backend answered; empty: none.
  std::optional<bool> locked;  // The session is locked: a positive "away".
  std::optional<std::vector<Inhibitor>> inhibitors;

  // Power.
  std::optional<bool> on_battery;
  std::optional<double> battery_percent;
  std::optional<std::string>
      power_profile;  // "power-saver", "balanced", "performance"; "none": nothing offers profiles
  bool sleeping = false;  // The system said that it is about to sleep or end.

  // Load that is not ours.
  std::optional<double> other_cpu_load;              // 0 to 1 of all processors.
  std::optional<std::vector<std::string>> programs;  // Of the exclusive ones: those that run now.
  std::optional<bool> game_mode;
  std::optional<Bytes> memory_available;
  std::optional<std::vector<GpuReading>> gpus;
  std::optional<double> cpu_temperature_c;
  std::optional<double> cpu_joules;  // RAPL's counter, unwrapped.

  // Network and disk.
  std::optional<bool> online, metered;
  std::optional<Bytes> cache_disk_free;
};

}  // namespace shoal::client
