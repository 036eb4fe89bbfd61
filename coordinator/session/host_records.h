#pragma once
// What is thought of hosts: by checks of units and of stages alike. Whoever keeps it implements
// this.

#include "base/units.h"

namespace shoal {

struct HostRecord {
  int64_t valid_in_row = 0;
  Millis quarantined;  // For so long still.
};

class HostRecords {
 public:
  virtual ~HostRecords() noexcept(false) = default;
  virtual HostRecord record_of(HostId host) const = 0;
  virtual void stage_checked(HostId host, bool right) = 0;
  virtual bool units_wait() const = 0;  // For devices.
};

}  // namespace shoal
