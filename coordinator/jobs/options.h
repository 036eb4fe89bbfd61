#pragma once
// What an administrator may set about jobs. Values only; coordinator/settings.cpp reads them.

#include <cstdint>

#include "coordinator/work/broker.h"

namespace shoal {

struct JobOptions {
  BrokerRules rules;
  int64_t sequences_max = 16;  // Items that a device works on side by side.
};

}  // namespace shoal
