#include "client/records/sums.h"

#include <cmath>

namespace shoal::client {
namespace {

int64_t add_within(int64_t a, int64_t b) { return std::clamp(a + b, -kSumMax, kSumMax); }

int64_t count_of(int64_t value) { return std::clamp<int64_t>(value, 0, kSumMax); }

int64_t count_of(double value) {
  if (!(value > 0)) return 0;  // A NaN as well.
  return value >= static_cast<double>(kSumMax) ? kSumMax : std::llround(value);
}

}  // namespace

void Sums::add(const Sums& other) {
  for (int64_t Sums::*figure : kFigures) this->*figure = add_within(this->*figure, other.*figure);
  if (other.temperature_max) {
    temperature_max = std::max(temperature_max.value_or(*other.temperature_max),  //
                               *other.temperature_max);
  }
}

bool Sums::empty() const { return *this == Sums(); }

Sums sums_of(const Usage& usage) {
  Sums sums;
  sums.worked_ms = count_of(usage.worked_ms);
  sums.allowed_ms = count_of(usage.allowed_ms);
  sums.rows = count_of(usage.rows);
  sums.steps = count_of(usage.steps);
  sums.microjoules = count_of(usage.joules * 1e6);
  sums.nanocost = count_of(usage.cost * 1e9);
  sums.bytes_down = count_of(usage.bytes_down);
  sums.bytes_up = count_of(usage.bytes_up);
  if (usage.watts && *usage.watts >= 0 && usage.lasted_ms > 0) {
    sums.power_ms = count_of(usage.lasted_ms);
    sums.power_microjoules = count_of(*usage.watts * 1e3 * static_cast<double>(usage.lasted_ms));
  }
  // In tenths, as they are stored. What is colder or hotter than any device is no temperature.
  if (usage.temperature_c && *usage.temperature_c > -100 && *usage.temperature_c < 1000) {
    sums.temperature_max = std::round(*usage.temperature_c * 10) / 10;
  }
  return sums;
}

}  // namespace shoal::client
