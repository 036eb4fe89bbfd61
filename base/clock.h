#pragma once
// The only way to learn the time. Code that needs it takes a Clock, so that a test can move it.

#include <atomic>
#include <string>

#include "base/units.h"

namespace shoal {

class Clock {
 public:
  virtual ~Clock() = default;

  // Since an unnamed moment; never goes back. For durations and deadlines.
  virtual Millis now_monotonic() const = 0;

  // Since 1970-01-01 UTC; may jump. For records that people and other machines read.
  virtual Millis now_wall() const = 0;
};

// Any thread.
class SystemClock final : public Clock {
 public:
  Millis now_monotonic() const override;
  Millis now_wall() const override;
};

// For tests: stands still until it is told otherwise. Any thread.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Millis wall = Millis{1'700'000'000'000}) : wall_ms_(wall.count) {}

  Millis now_monotonic() const override { return {monotonic_ms_.load()}; }
  Millis now_wall() const override { return {wall_ms_.load()}; }

  void advance(Millis by);  // Both times. REQUIRES: by is not negative.
  void set_wall(Millis wall) { wall_ms_ = wall.count; }  // As when a user sets the clock.

 private:
  std::atomic<int64_t> monotonic_ms_ = 0;
  std::atomic<int64_t> wall_ms_;
};

// "2026-07-01T12:30:00.250Z"
std::string format_utc(Millis wall);

// Where a wall time falls in this machine's time zone.
struct LocalTime {
  int weekday = 0;        // 0: Monday.
  int minute_of_day = 0;  // 0 to 1439.
  int64_t day = 0;        // Counts local days; the same number from midnight to midnight.
  int year = 0, month = 0, day_of_month = 0;  // 2026, 1 to 12, 1 to 31.
};
LocalTime local_time(Millis wall);

// "2026-07-01 14:30" in this machine's time zone.
std::string format_local_minute(Millis wall);

}  // namespace shoal
