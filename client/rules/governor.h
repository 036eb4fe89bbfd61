#pragma once
// The comfort governor: how much of the time a device may compute so that it stays at the
// temperature or power that its owner likes. Pure: targets, readings and time in, a pace out.

#include <cstdint>
#include <optional>

#include "base/settings.h"
#include "base/units.h"
#include "schema/message.h"

namespace shoal::client {

struct GovernorTargets {
  double temperature_c = 0;  // 0: none.
  double watts = 0;          // 0: none.
  double duty_max = 1;       // 0.05 to 1.

  static GovernorTargets of(const Settings& settings);
};

struct Pace {
  double duty = 1;        // The part of the time in which the device may compute: 0.05 to 1.
  uint32_t rows_max = 0;  // Steps run in pieces of at most so many rows; 0: as they come.
  Message why;            // Empty at full speed.

  // As Worker.setPace wants it: 1 to 100.
  uint32_t duty_percent() const;
};

// One governor for one device. It moves duty by how far the reading is from its target and by how
// fast it comes nearer, so that it slows down before the target is reached. Without a reading only
// the duty limit holds, and the pace says so.
class Governor {
 public:
  // To be called every second or two. `elapsed` since the last call; after a longer gap, as a
  // sleep, the past counts for nothing.
  Pace update(const GovernorTargets& targets, std::optional<double> temperature_c,
              std::optional<double> watts, Millis elapsed);

 private:
  double duty_ = 1;
  std::optional<double> temperature_c_;  // Smoothed.
};

}  // namespace shoal::client
