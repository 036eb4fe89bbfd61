// Goal: no bytes make the GGUF reader or what builds a model from it crash, read outside or answer
// with a model that could not run.

#include "base/check.h"
#include "compute/models/model.h"

using namespace shoal;
using namespace shoal::compute;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto model = model_of_gguf(std::as_bytes(std::span(data, size)), "fuzz");
  if (!model.ok()) return 0;
  for (const Fragment& fragment : model.value().fragments) {
    SHOAL_CHECK(verify(fragment.graph).ok());
    for (const Value& value : fragment.graph.values) {
      if (value.kind != ValueKind::kWeight) continue;
      const auto bytes = fragment.weights.find(value.name);
      SHOAL_CHECK(bytes != fragment.weights.end());
      SHOAL_CHECK(byte_size(value.dtype, value.shape).value() ==
                  static_cast<int64_t>(bytes->second.size()));
    }
  }
  return 0;
}
