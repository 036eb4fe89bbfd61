#pragma once
// How much energy our work took: by the device's counter, by its power reading, or by an estimate
// that the counter has calibrated. Pure.

#include <optional>

#include "base/units.h"

namespace shoal::client {

enum class EnergySource { kCounter, kWatts, kEstimate };

struct EnergySlice {
  double joules = 0;  // Of our work alone: what the device draws at rest is taken off where known.
  std::optional<double> whole_watts;  // What the device drew in all, where a sensor tells.
  EnergySource source = EnergySource::kEstimate;

  double kilowatt_hours() const { return joules / 3.6e6; }
  bool measured() const { return source != EnergySource::kEstimate; }
};

// What a sensor says of one device at the end of a slice of time.
struct EnergyReading {
  std::optional<double>
      joules;  // A counter that grows; back at the start after a driver's restart.
  std::optional<double> watts;
};

// One meter for one device.
class EnergyMeter {
 public:
  // The energy of our work in the last `elapsed`, of which steps ran for `busy`. Where neither
  // counter nor power is known: busy time by the calibrated watts, or by `watts_assumed`, the
  // owner's guess. Slices that were estimated while the counter was away are not counted again
  // when it is back.
  EnergySlice add(const EnergyReading& reading, Millis elapsed, Millis busy, double watts_assumed);

  // What happened since the last slice is not known, as after a sleep: it counts for nothing.
  void restart();

  // What the device draws while it works, as its counter or power reading showed; none yet.
  std::optional<double> calibrated_watts() const { return busy_watts_; }

 private:
  // The counter's growth since it last answered; none: it cannot be trusted.
  std::optional<double> growth(double joules) const;

  std::optional<double> last_joules_;
  Millis since_counter_{0}, busy_since_counter_{0};  // Since it last answered.
  double estimated_joules_ = 0;                      // Counted since then.
  std::optional<double> rest_watts_, busy_watts_;
};

}  // namespace shoal::client
