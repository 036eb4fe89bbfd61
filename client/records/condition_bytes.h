#pragma once
// Readings as few bytes, rounded so that what no rule would notice is no change: for the minutes
// that what-if goes through again. Pure.

#include "base/bytes.h"
#include "client/rules/activity_policy.h"

namespace shoal::client {

// The owner is told by the moment of the last input instead of the time since it, so that one who
// stays away changes nothing: `readings.idle` itself is not looked at, and not given back.
struct StoredCondition {
  Readings readings;
  std::optional<Millis> last_input;  // Wall time.
  Spent spent;
  double own_gpu_load = 0;
};
ByteVector condition_to_bytes(const StoredCondition& condition);
Result<StoredCondition> condition_from_bytes(ByteSpan bytes);

}  // namespace shoal::client
