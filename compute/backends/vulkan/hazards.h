#pragma once
// Decides between which calls of a step a device must wait, so that a call reads what earlier ones
// wrote and overwrites nothing that they still read. Pure.

#include <span>
#include <vector>

#include "compute/backends/backend.h"

namespace shoal::compute {

class Hazards {
 public:
  // Takes the next call's buffers, the last being the one that it writes. Whether a barrier must
  // stand before it; then what came before is done with.
  bool barrier_before(std::span<const BufferView> buffers);

 private:
  std::vector<BufferView> read_, written_;  // Since the last barrier.
};

}  // namespace shoal::compute
