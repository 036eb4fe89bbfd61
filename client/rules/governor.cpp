#include "client/rules/governor.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace shoal::client {
namespace {

constexpr double kDutyMin = 0.05;

// Temperature: duty falls by kGain for each degree that the device warms, and rises by the same for
// each degree below the target in kHorizonSeconds; above the target it falls twice as fast. So it
// begins to fall when the device would be at its target within kHorizonSeconds if it went on
// warming as it does. Found by simulation over first-order devices of 4 to 300 seconds and 25 to 60
// degrees: less gain or a shorter horizon overshoot by more than two degrees, and no tried pair
// swings.
constexpr double kGain = 0.06;
constexpr double kHorizonSeconds = 120;
constexpr double kOverWeight = 2;
constexpr double kSmoothSeconds = 3;

// Power follows duty at once, but its reading is a mean over a second or more: an integral that
// goes a twentieth of the way each second.
constexpr double kPowerPerSecond = 0.05;

constexpr double kSecondsMax = 10;  // A longer gap is no step of the control.

// Pieces of a step, so that the pauses between them are short: fewer rows at less duty.
uint32_t rows_for(double duty) {
  if (duty >= 0.995) return 0;
  const auto rows = static_cast<uint32_t>(std::lround(256 * duty));
  return std::clamp(std::bit_floor(std::max(rows, 1u)), 16u, 256u);
}

}  // namespace

GovernorTargets GovernorTargets::of(const Settings& settings) {
  return {static_cast<double>(settings.integer("comfort.temperature_target")),
          static_cast<double>(settings.integer("comfort.watts_target")),
          static_cast<double>(settings.integer("comfort.duty_percent_max")) / 100};
}

uint32_t Pace::duty_percent() const {
  return static_cast<uint32_t>(std::clamp(std::lround(duty * 100), 1L, 100L));
}

Pace Governor::update(const GovernorTargets& targets, std::optional<double> temperature_c,
                      std::optional<double> watts, Millis elapsed) {
  const double duty_max = std::clamp(targets.duty_max, kDutyMin, 1.0);
  const double seconds = static_cast<double>(elapsed.count) / 1000;
  const bool gap = seconds <= 0 || seconds > kSecondsMax;
  if (temperature_c && !std::isfinite(*temperature_c)) temperature_c.reset();
  if (watts && !std::isfinite(*watts)) watts.reset();

  const bool holds_temperature = targets.temperature_c > 0 && temperature_c;
  const bool holds_watts = targets.watts > 0 && watts;
  // Each target proposes a duty from the one of now; the least holds, so none can run away while
  // another is in charge.
  double duty = duty_max;
  enum class Holds { kLimit, kTemperature, kWatts } holds = Holds::kLimit;

  if (holds_temperature) {
    const bool first = gap || !temperature_c_;
    const double weight = first ? 1 : 1 - std::exp(-seconds / kSmoothSeconds);
    const double read = temperature_c.value_or(0);
    const double before = first ? read : *temperature_c_;
    const double now = before + weight * (read - before);
    temperature_c_ = now;
    const double below = targets.temperature_c - now;
    const double error = below < 0 ? kOverWeight * below : below;
    const double warmed = now - before;
    const double step = first ? 0 : kGain * (error * seconds / kHorizonSeconds - warmed);
    const double proposal = duty_ + step;
    if (proposal < duty) {
      duty = proposal;
      holds = Holds::kTemperature;
    }
  } else {
    temperature_c_.reset();
  }
  if (holds_watts) {
    const double error = std::clamp((targets.watts - watts.value_or(0)) / targets.watts, -1.0, 1.0);
    const double proposal = duty_ + (gap ? 0 : kPowerPerSecond * error * seconds);
    if (proposal < duty) {
      duty = proposal;
      holds = Holds::kWatts;
    }
  }
  duty_ = std::clamp(duty, kDutyMin, duty_max);

  Pace pace{duty_, rows_for(duty_), {}};
  const Percent percent{std::round(duty_ * 100)};
  if (targets.temperature_c > 0 && !temperature_c) {
    pace.why = {"pace.no_temperature", {percent}};
  } else if (targets.watts > 0 && !watts) {
    pace.why = {"pace.no_watts", {percent}};
  } else if (holds == Holds::kTemperature) {
    pace.why = {"pace.temperature", {percent, Celsius{targets.temperature_c}}};
  } else if (holds == Holds::kWatts) {
    pace.why = {"pace.watts", {percent, Watts{targets.watts}}};
  } else if (duty_max < 1) {
    pace.why = {"pace.duty", {percent}};
  }
  return pace;
}

}  // namespace shoal::client
