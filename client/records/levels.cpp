#include "client/records/levels.h"

namespace shoal::client {
namespace {

constexpr int64_t kMinute = 60'000;

int64_t floor_minute(int64_t ms) { return ms - (ms % kMinute + kMinute) % kMinute; }

}  // namespace

Millis day_start(Millis wall) {
  // The first minute whose local day is this one. A day of a change of the clocks has 23 or 25
  // hours, so it is looked for.
  const int64_t day = local_time(wall).day;
  int64_t within = floor_minute(wall.count);
  const int64_t guess = within - int64_t{local_time(wall).minute_of_day} * kMinute;
  if (local_time({guess}).day == day && local_time({guess - kMinute}).day < day) return {guess};
  int64_t before = within - 27 * 60 * kMinute;
  while (within - before > kMinute) {
    const int64_t middle = floor_minute(before + (within - before) / 2);
    (local_time({middle}).day < day ? before : within) = middle;
  }
  return {within};
}

Millis step_start(Millis step, Millis wall) {
  const int64_t minutes = std::max<int64_t>(step.count / kMinute, 1);
  const int64_t into = local_time(wall).minute_of_day % minutes;
  return {floor_minute(wall.count) - into * kMinute};
}

Millis level_start(Level level, Millis wall) {
  if (level == Level::kDays) return day_start(wall);
  return step_start(kLevels[static_cast<size_t>(level)].step, wall);
}

}  // namespace shoal::client
