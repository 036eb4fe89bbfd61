#pragma once
// Decides how often a host's results are checked, and how long it rests after a wrong one. Pure.

#include "coordinator/work/broker.h"

namespace shoal {

// The chance that a result is audited, for a host of which the last `valid_in_row` results were
// confirmed. It never reaches 0: who earned trust and then cheats is found as well.
double audit_rate(const BrokerRules& rules, int64_t valid_in_row);

// How long a host gets no work after its `wrong`-th wrong result, counted from 1.
Millis quarantine_time(const BrokerRules& rules, int64_t wrong);

}  // namespace shoal
