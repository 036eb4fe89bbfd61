#pragma once
// Reads the safetensors format from hostile bytes: every size, range and name is checked against
// the file before it is used. The tensors are views into the bytes.

#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "compute/models/weights.h"

namespace shoal::compute {

constexpr uint64_t kSafetensorsHeaderMax = 100'000'000;

// The tensors of one file. Refuses a header that is too long or no JSON, duplicate names, unknown
// types, sizes that disagree with shapes, and ranges that overlap, leave gaps or pass the end.
// `bytes` outlive the result; `file` heads messages.
Result<WeightTable> read_safetensors(ByteSpan bytes, const std::string& file);

}  // namespace shoal::compute
