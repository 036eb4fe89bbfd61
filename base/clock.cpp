#include "base/clock.h"

#include <chrono>
#include <cstdio>
#include <ctime>

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

LocalTime local_time(Millis wall) {
  // Floor, so that times before 1970 fall into the right second.
  const std::time_t seconds = wall.count / 1000 - (wall.count % 1000 < 0 ? 1 : 0);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  using namespace std::chrono;
  const sys_days day = year_month_day(year(parts.tm_year + 1900), month(unsigned(parts.tm_mon + 1)),
                                      std::chrono::day(unsigned(parts.tm_mday)));
  return {.weekday = (parts.tm_wday + 6) % 7,
          .minute_of_day = parts.tm_hour * 60 + parts.tm_min,
          .day = day.time_since_epoch().count(),
          .year = parts.tm_year + 1900,
          .month = parts.tm_mon + 1,
          .day_of_month = parts.tm_mday};
}

std::string format_local_minute(Millis wall) {
  const LocalTime time = local_time(wall);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02d-%02d %02d:%02d", time.year, time.month,
                time.day_of_month, time.minute_of_day / 60, time.minute_of_day % 60);
  return text;
}

}  // namespace shoal
