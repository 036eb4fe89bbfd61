#include "compute/memory_claim.h"

#include <string>
#include <utility>

#include "base/check.h"

namespace shoal::compute {

Result<MemoryClaim> MemoryClaim::make(Device& device, int64_t bytes) {
  SHOAL_CHECK(bytes >= 0);
  const int64_t memory = device.info().memory_bytes;
  if (bytes > device.claimable_bytes() - device.claimed_bytes()) {
    return Error{ErrorCode::kNoSpace,
                 "it takes " + std::to_string(bytes) + " bytes; " + device.info().selector +
                     " has " + std::to_string(memory) + ", of which other stages take " +
                     std::to_string(device.claimed_bytes()) + " and " +
                     std::to_string(memory - device.claimable_bytes()) + " stay free"};
  }
  return MemoryClaim(device, bytes);
}

MemoryClaim::MemoryClaim(Device& device, int64_t bytes) : device_(&device), bytes_(bytes) {
  device_->claimed_bytes_ += bytes_;
}

MemoryClaim::MemoryClaim(MemoryClaim&& other) noexcept
    : device_(other.device_), bytes_(std::exchange(other.bytes_, 0)) {}

MemoryClaim& MemoryClaim::operator=(MemoryClaim&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MemoryClaim::~MemoryClaim() { device_->claimed_bytes_ -= bytes_; }

}  // namespace shoal::compute
