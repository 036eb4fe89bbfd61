#pragma once
// Runs one sample of an op on a device and on the reference, and says where they differ.

#include <string>

#include "base/result.h"
#include "compute/backends/backend.h"
#include "compute/ops/op.h"

namespace shoal::compute {

// Empty when every bit agrees; else what differs first. An error when the device is lost or full.
Result<std::string> compare_sample(Device& device, const OpSpec& spec, const OpSample& sample);

}  // namespace shoal::compute
