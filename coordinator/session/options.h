#pragma once
// What an administrator may set about sessions. Values only; coordinator/settings.cpp reads them.

#include <cstdint>

#include "base/units.h"
#include "coordinator/work/failover.h"

namespace shoal {

struct SessionOptions {
  int64_t rows_max = 64;  // Of a prefill step.
  StepTimes step;
  Millis open_silence{
      30'000};  // An opening stage that neither reads a shard nor answers is given up.
  Millis repair_wait{20'000};       // For a device to appear when none can take a lost stage.
  Millis device_rest{2'000};        // Before a device that failed is tried again as it was.
  int64_t device_failures_max = 5;  // Then a session leaves the device alone.
  int64_t kept_memory_max = int64_t{64}
                            << 20;  // Of one session's kept inputs; more goes to a file.
  int64_t standbys_max = 0;         // Stages of all sessions that another device holds loaded.
  int64_t audits_max = 0;           // Stages that are checked at a time; 0: none ever is.
  int64_t live_max = 64;            // Sessions at a time.
  bool direct = true;  // Stages pass rows on to each other, where their hosts' owners allow it.
};

}  // namespace shoal
