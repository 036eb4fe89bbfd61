#pragma once
// What the client counts of its work, as whole numbers, so that sums are exact in whatever order
// they are added. Pure.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/units.h"

namespace shoal::client {

// Every figure is kept within this, so that adding two of them cannot overflow.
inline constexpr int64_t kSumMax = 4'000'000'000'000'000'000;

struct Sums {
  int64_t worked_ms = 0;   // Time with a step on the device.
  int64_t allowed_ms = 0;  // Time in which the rules allowed work.
  int64_t rows = 0, steps = 0;
  int64_t microjoules = 0;
  int64_t nanocost = 0;  // Billionths of the owner's currency.
  int64_t bytes_down = 0, bytes_up = 0;
  // Of receipts, in millionths of a credit. Pending goes down when its verdict comes.
  int64_t confirmed_micro = 0, pending_micro = 0, rejected_micro = 0;
  // The device's power, times the time in which it was known, and that time.
  int64_t power_microjoules = 0, power_ms = 0;
  std::optional<double> temperature_max;

  void add(const Sums& other);
  bool empty() const;  // Nothing was counted.

  double credit_confirmed() const { return static_cast<double>(confirmed_micro) / 1e6; }
  double credit_pending() const { return static_cast<double>(pending_micro) / 1e6; }
  double credit_rejected() const { return static_cast<double>(rejected_micro) / 1e6; }
  double kilowatt_hours() const { return static_cast<double>(microjoules) / 3.6e12; }
  double cost() const { return static_cast<double>(nanocost) / 1e9; }
  std::optional<double> watts_mean() const {
    if (power_ms <= 0) return {};
    return static_cast<double>(power_microjoules) / 1e3 / static_cast<double>(power_ms);
  }

  friend bool operator==(const Sums&, const Sums&) = default;
};

// All of them but the temperature, in the order of the table's columns.
inline constexpr int64_t Sums::*kFigures[] = {
    &Sums::worked_ms,       &Sums::allowed_ms,    &Sums::rows,           &Sums::steps,
    &Sums::microjoules,     &Sums::nanocost,      &Sums::bytes_down,     &Sums::bytes_up,
    &Sums::confirmed_micro, &Sums::pending_micro, &Sums::rejected_micro, &Sums::power_microjoules,
    &Sums::power_ms};

// What one device did and used since the last time it was told, some seconds at most.
struct Usage {
  int64_t worked_ms = 0, allowed_ms = 0, rows = 0, steps = 0;
  double joules = 0, cost = 0;
  int64_t bytes_down = 0, bytes_up = 0;
  std::optional<double> temperature_c;
  std::optional<double> watts;  // Over the whole time `lasted_ms`.
  int64_t lasted_ms = 0;
};

// Negative and absurd figures, as of a counter that was set back, count as nothing.
Sums sums_of(const Usage& usage);

}  // namespace shoal::client
