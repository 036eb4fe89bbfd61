#pragma once
// Readings as few bytes, rounded so that what no rule would notice is no change: for the minutes
// that what-if goes through again. Pure.

#include "base/bytes.h"
#include "client/rules/readings.h"

namespace shoal::client {

// Readings are told by the moment of the last input instead of the time since it, so that an owner
// who stays away changes nothing. `readings.idle` itself is not looked at.
ByteVector condition_to_bytes(const Readings& readings, std::optional<Millis> last_input);

struct StoredCondition {
  Readings readings;  // Without `idle`.
  std::optional<Millis> last_input;
};
Result<StoredCondition> condition_from_bytes(ByteSpan bytes);

}  // namespace shoal::client
