#include "coordinator/work/audit.h"

#include <algorithm>

#include "base/check.h"

namespace shoal {

double audit_rate(const BrokerRules& rules, int64_t valid_in_row) {
  if (valid_in_row < rules.newcomer_units) return 1;
  const double rate = 1.0 / static_cast<double>(std::max<int64_t>(valid_in_row, 1));
  return std::clamp(rate, rules.audit_floor, 1.0);
}

Millis quarantine_time(const BrokerRules& rules, int64_t wrong) {
  SHOAL_CHECK(wrong > 0);
  Millis time = rules.quarantine;
  for (int64_t i = 1; i < wrong && time < rules.quarantine_max; ++i) time += time;
  return std::min(time, rules.quarantine_max);
}

}  // namespace shoal
