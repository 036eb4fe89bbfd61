#pragma once
// Decides how long to wait after a failure: twice as long each time up to a limit, less a random
// part, so that many who failed together do not come back together. Pure but for its seeded chance.

#include <algorithm>

#include "base/check.h"
#include "base/random.h"
#include "base/units.h"

namespace shoal::client {

class BackOff {
 public:
  // `random` outlives this. REQUIRES: 0 < first <= most.
  BackOff(Millis first, Millis most, Random& random) : first_(first), most_(most), random_(random) {
    SHOAL_CHECK(first.count > 0 && first <= most);
  }

  // Between half of the step's length and all of it.
  Millis next() {
    const int64_t length =
        failures_ < 30 ? std::min(first_.count << failures_, most_.count) : most_.count;
    ++failures_;
    const int64_t half = length / 2;
    return {length - half + static_cast<int64_t>(random_.below(static_cast<uint64_t>(half) + 1))};
  }
  void reset() { failures_ = 0; }
  int failures() const { return failures_; }

 private:
  Millis first_, most_;
  Random& random_;
  int failures_ = 0;
};

}  // namespace shoal::client
