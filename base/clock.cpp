#include "base/clock.h"

#include <chrono>
#include <cstdio>

#include "base/check.h"

namespace shoal {
namespace {

template <class TimePoint>
Millis since_epoch(TimePoint time) {
  return {std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count()};
}

}  // namespace

Millis SystemClock::now_monotonic() const { return since_epoch(std::chrono::steady_clock::now()); }
Millis SystemClock::now_wall() const { return since_epoch(std::chrono::system_clock::now()); }

void ManualClock::advance(Millis by) {
  SHOAL_CHECK(by.count >= 0);
  monotonic_ms_ += by.count;
  wall_ms_ += by.count;
}

std::string format_utc(Millis wall) {
  using namespace std::chrono;
  const sys_time<milliseconds> time{milliseconds{wall.count}};
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss clock{time - day};
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", int(date.year()),
                unsigned(date.month()), unsigned(date.day()), int(clock.hours().count()),
                int(clock.minutes().count()), int(clock.seconds().count()),
                int(clock.subseconds().count()));
  return text;
}

}  // namespace shoal
