#pragma once
// Decides when what is regular happens: on whole seconds, in the client and in its sensors, so that
// an idle computer wakes once for all of it. Pure.

#include "base/units.h"

namespace shoal::client {

// How long to wait so that what happens about each `period` happens on whole seconds, as all else
// that does, and the processor rests in between. Never twice at once; a period of less than a
// second stays as it is. `now` is monotonic.
constexpr Millis until_whole(Millis now, Millis period) {
  if (period.count < 1'000) return period;
  const int64_t step = period.count / 1'000 * 1'000;
  return {((now.count + step / 4) / step + 1) * step - now.count};
}

}  // namespace shoal::client
