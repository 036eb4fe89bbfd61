#pragma once
// Memory that a stage will take of its device, claimed whole before any of it is taken: what does
// not fit beside the other stages is refused with figures, and never half made.

#include <cstdint>

#include "base/result.h"
#include "compute/backends/backend.h"

namespace shoal::compute {

class MemoryClaim {
 public:
  // kNoSpace when that much is not free. The device outlives the claim.
  static Result<MemoryClaim> make(Device& device, int64_t bytes);

  MemoryClaim(MemoryClaim&& other) noexcept;
  MemoryClaim& operator=(MemoryClaim&& other) noexcept;
  ~MemoryClaim();

  int64_t bytes() const { return bytes_; }

 private:
  MemoryClaim(Device& device, int64_t bytes);

  Device* device_;  // Never null.
  int64_t bytes_;
};

}  // namespace shoal::compute
