#pragma once
// How long each resource could have worked under other rules: replays what was recorded through
// decide(). Pure.

#include <memory>
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

// As if every mode had been "by rules", without a time to leave by. GPUs count as one resource:
// allowed when one of them was. Takes the past in pieces, as days of it take a while.
class WhatIf {
 public:
  WhatIf(Settings settings, Settings changed);
  ~WhatIf();
  WhatIf(const WhatIf&) = delete;
  WhatIf& operator=(const WhatIf&) = delete;

  // In the order of time, over all calls; a span that ends before it begins, as after the clock was
  // put back, counts nothing.
  void add(std::span<const WatchedSpan> spans);
  const WhatIfTimes& times() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The same at once.
WhatIfTimes what_if(std::span<const WatchedSpan> spans, const Settings& settings,
                    const Settings& changed);

}  // namespace shoal::client
