#pragma once
// The levels at which statistics are kept, and where their rows begin. Pure but for the time zone.

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/clock.h"

namespace shoal::client {

constexpr Millis kDay{86'400'000};

enum class Level { kMinutes, kTenMinutes, kHours, kDays };

struct LevelSpec {
  Level level;
  Millis step;
  int64_t days_kept;  // 0: for ever.
};
inline constexpr std::array<LevelSpec, 4> kLevels = {{{Level::kMinutes, {60'000}, 3},
                                                      {Level::kTenMinutes, {600'000}, 30},
                                                      {Level::kHours, {3'600'000}, 400},
                                                      {Level::kDays, kDay, 0}}};

inline constexpr Millis kWallMax{253'370'764'800'000};  // The year 9999.
// A wall clock may say anything; a row begins within 1970 and 9999.
constexpr Millis sane_wall(Millis wall) { return std::clamp(wall, Millis{0}, kWallMax); }

// When the local day of `wall` began.
Millis day_start(Millis wall);
// When the row of this level that `wall` falls into began: aligned to the local clock.
Millis level_start(Level level, Millis wall);
// The same for any step of minutes within a day.
Millis step_start(Millis step, Millis wall);

}  // namespace shoal::client
