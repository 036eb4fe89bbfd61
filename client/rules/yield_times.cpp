#include "client/rules/yield_times.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace shoal::client {

Millis percentile(std::vector<Millis> values, double percent) {
  SHOAL_CHECK(percent >= 0 && percent <= 100);
  if (values.empty()) return Millis{0};
  const double rank = std::ceil(percent / 100 * static_cast<double>(values.size()));
  const size_t index = static_cast<size_t>(std::max(rank, 1.0)) - 1;
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(index));
  return values[index];
}

void YieldTimes::add(Millis stop, Millis free) {
  const Time time{std::max(stop, Millis{0}), std::max(free, Millis{0})};
  if (times_.size() < kCountMax) {
    times_.push_back(time);
    return;
  }
  times_[next_] = time;
  next_ = (next_ + 1) % kCountMax;
}

YieldSummary YieldTimes::summary(Millis stop_bound, Millis free_bound) const {
  std::vector<Millis> stops, frees;
  YieldSummary summary;
  summary.count = static_cast<uint32_t>(times_.size());
  for (const Time& time : times_) {
    stops.push_back(time.stop);
    frees.push_back(time.free);
    if (time.stop > stop_bound || time.free > free_bound) ++summary.late;
  }
  summary.stop_p50 = percentile(stops, 50);
  summary.stop_p99 = percentile(std::move(stops), 99);
  summary.free_p50 = percentile(frees, 50);
  summary.free_p99 = percentile(std::move(frees), 99);
  return summary;
}

}  // namespace shoal::client
