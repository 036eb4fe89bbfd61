#pragma once
// How fast the devices were free when the owner wanted them: the last 1,000 times, and what they
// say together. Pure.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace shoal::client {

struct YieldSummary {
  uint32_t count = 0;
  Millis stop_p50{0}, stop_p99{0}, free_p50{0}, free_p99{0};
  uint32_t late = 0;  // How many were over one of the bounds.
};

class YieldTimes {
 public:
  static constexpr size_t kCountMax = 1'000;

  // `stop`: from the event until no kernel ran; `free`: until the device's memory was free.
  // Negative times, as of a bad clock, count as 0.
  void add(Millis stop, Millis free);
  YieldSummary summary(Millis stop_bound, Millis free_bound) const;

 private:
  struct Time {
    Millis stop{0}, free{0};
  };
  std::vector<Time> times_;  // A ring once it is full.
  size_t next_ = 0;          // The oldest, once it is full.
};

// The smallest value that at least `percent` of the values do not exceed; 0 of none.
Millis percentile(std::vector<Millis> values, double percent);

}  // namespace shoal::client
