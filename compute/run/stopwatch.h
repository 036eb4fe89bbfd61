#pragma once
// Seconds to the nanosecond: base/clock.h counts milliseconds, and a small model's prompt takes
// less than one.

#include <chrono>

namespace shoal::compute {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace shoal::compute
