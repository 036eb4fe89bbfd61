#pragma once
// How long each resource could have worked under other rules: replays what was recorded through
// decide(). Pure.

#include <span>

#include "client/rules/activity_policy.h"

namespace shoal::client {

// What the sensors knew in a span of the past. readings.idle is as at `start`; it grows with time.
struct WatchedSpan {
  Millis start{0}, end{0};  // Wall times.
  Readings readings;
  Spent spent;
  double own_gpu_load = 0;
};

struct WhatIfTime {
  Millis known{0};     // How long the client was watching.
  Millis allowed{0};   // Under the rules as they are.
  Millis would_be{0};  // With the changes.
};

struct WhatIfTimes {
  WhatIfTime resources[kResourceCount];
};

// As if every mode had been "by rules", without a time to leave by. `spans` in the order of time;
// one that ends before it begins, as after the clock was put back, counts nothing. GPUs count as
// one resource: allowed when one of them was.
WhatIfTimes what_if(std::span<const WatchedSpan> spans, const Settings& settings,
                    const Settings& changed);

}  // namespace shoal::client
