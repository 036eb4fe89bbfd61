#pragma once
// Decides how long a transfer must wait so that a rate is kept: a bucket that fills at the rate and
// holds one second of it. Pure: time comes in.

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace shoal::client {

class RateLimit {
 public:
  // 0: no limit.
  void set(BytesPerSecond rate) {
    rate_ = rate;
    level_ = std::min(level_, static_cast<double>(rate.count));
  }

  // Takes what is about to be sent, and says how long to wait before sending it. What is larger
  // than the bucket goes into debt, so that it passes at last and the ones after it pay.
  Millis take(Bytes bytes, Millis now) {
    if (rate_.count <= 0) return Millis{0};
    const auto rate = static_cast<double>(rate_.count);
    const double passed = static_cast<double>(std::max<int64_t>((now - at_).count, 0));
    level_ = std::min(level_ + passed * rate / 1000, rate);
    at_ = now;
    level_ -= static_cast<double>(bytes.count);
    if (level_ >= 0) return Millis{0};
    return Millis{static_cast<int64_t>(-level_ / rate * 1000) + 1};
  }

 private:
  BytesPerSecond rate_;
  double level_ = 0;  // Bytes that may go now; below zero: a debt.
  Millis at_{0};
};

}  // namespace shoal::client
