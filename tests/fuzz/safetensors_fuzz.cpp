// Goal: no bytes make the safetensors reader crash, read outside or answer with a tensor that is
// not there.

#include "base/check.h"
#include "compute/models/safetensors.h"

using namespace shoal;
using namespace shoal::compute;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  const auto table = read_safetensors(bytes, "fuzz");
  if (!table.ok()) {
    SHOAL_CHECK(table.error().message.starts_with("fuzz: "));
    return 0;
  }
  size_t total = 0;
  for (const auto& [name, tensor] : table.value()) {
    for (const std::byte b : tensor.bytes) total += static_cast<size_t>(b) & 1;
    if (tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16) {
      SHOAL_CHECK(to_f32(tensor).value().size() == 2 * tensor.bytes.size());
    }
  }
  return total > size ? -1 : 0;
}
