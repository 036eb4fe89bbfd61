#pragma once
// Decides what is said to a volunteer whose device has no work: the one thing that stands most in
// the way. Pure.

#include <optional>
#include <string_view>

#include "base/units.h"

namespace shoal {

enum class DeviceState { kReady, kStarting, kFailed, kDraining, kPaused };

// A device, as its host reports it and the coordinator knows it.
struct DeviceSituation {
  DeviceState state = DeviceState::kStarting;
  int stages = 0;
  bool has_worker = false;
  bool exact = false;
  bool all_denied = false;          // Its owner allows no class of work that there is.
  Bytes memory_free;                // Of what may be used.
  std::optional<Millis> available;  // Until its owner wants it back; empty: no end is known.
};

struct CoordinatorSituation {
  bool stopping = false;
  bool has_models = false;
  Bytes smallest_need;  // What the least demanding fragment of any model takes.
  bool has_sessions = false;
};

// Working, pooled, sleeping, quarantined, draining, paused.
std::string_view state_word(DeviceState state, int stages);

// A code of schema/message.h; empty when it works. "standing.leaving" and
// "standing.model_too_large" have one place to fill.
std::string_view why_no_work(const DeviceSituation& device,
                             const CoordinatorSituation& coordinator);

}  // namespace shoal
