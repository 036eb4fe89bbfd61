#include "client/rules/energy.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shoal::client {
namespace {

constexpr double kWattsMax = 5'000;  // No device draws more: a counter that says so has jumped.
constexpr double kLearn = 0.1;       // How much one slice moves what was learnt.

void learn(std::optional<double>& value, double seen) {
  value = value ? *value + kLearn * (seen - *value) : seen;
}

bool is_power(const std::optional<double>& watts) {
  return watts && std::isfinite(*watts) && *watts >= 0 && *watts <= kWattsMax;
}

}  // namespace

std::optional<double> EnergyMeter::growth(double joules) const {
  if (!last_joules_) return std::nullopt;
  const double grown = joules - *last_joules_;
  const double most = kWattsMax * static_cast<double>(since_counter_.count) / 1000;
  if (grown < 0 || grown > most) return std::nullopt;
  return grown;
}

void EnergyMeter::restart() {
  last_joules_.reset();
  since_counter_ = busy_since_counter_ = Millis{0};
  estimated_joules_ = 0;
}

EnergySlice EnergyMeter::add(const EnergyReading& reading, Millis elapsed, Millis busy,
                             double watts_assumed) {
  elapsed = std::max(elapsed, Millis{0});
  busy = std::clamp(busy, Millis{0}, elapsed);
  const double seconds = static_cast<double>(elapsed.count) / 1000;
  const double busy_seconds = static_cast<double>(busy.count) / 1000;
  const double rest_seconds = seconds - busy_seconds;
  since_counter_ += elapsed;
  busy_since_counter_ += busy;

  if (reading.joules && std::isfinite(*reading.joules) && *reading.joules >= 0) {
    const std::optional<double> grown = growth(*reading.joules);
    const Millis span = std::exchange(since_counter_, Millis{0});
    const Millis worked = std::exchange(busy_since_counter_, Millis{0});
    const double counted = std::exchange(estimated_joules_, 0);
    last_joules_ = *reading.joules;
    if (grown) {
      const double span_seconds = static_cast<double>(span.count) / 1000;
      const double worked_seconds = static_cast<double>(worked.count) / 1000;
      const std::optional<double> whole =
          span.count > 0 ? std::optional<double>(*grown / span_seconds) : std::nullopt;
      if (worked.count == 0) {
        if (span.count > 0) learn(rest_watts_, *grown / span_seconds);
        return {0, whole, EnergySource::kCounter};
      }
      const double ours =
          std::max(*grown - rest_watts_.value_or(0) * (span_seconds - worked_seconds), 0.0);
      if (worked_seconds > span_seconds / 2) learn(busy_watts_, ours / worked_seconds);
      return {std::max(ours - counted, 0.0), whole, EnergySource::kCounter};
    }
  } else if (is_power(reading.watts)) {
    if (busy.count == 0) return {0, reading.watts, EnergySource::kWatts};
    const double ours =
        std::max(*reading.watts * seconds - rest_watts_.value_or(0) * rest_seconds, 0.0);
    if (busy_seconds > seconds / 2) learn(busy_watts_, ours / busy_seconds);
    if (last_joules_) estimated_joules_ += ours;
    return {ours, reading.watts, EnergySource::kWatts};
  }

  const double guess = std::clamp(watts_assumed, 0.0, kWattsMax);
  const double ours = busy_watts_.value_or(guess) * busy_seconds;
  if (last_joules_ && since_counter_.count > 0) estimated_joules_ += ours;
  return {ours, std::nullopt, EnergySource::kEstimate};
}

}  // namespace shoal::client
