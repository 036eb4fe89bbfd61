// Whatever the bytes, decode() refuses them or gives a graph that verifies, costs something finite
// and encodes to the same bytes again.

#include <cstdint>

#include "base/check.h"
#include "compute/graph/graph.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shoal::compute;
  const shoal::ByteSpan bytes = std::as_bytes(std::span(data, size));
  const auto graph = decode(bytes);
  if (!graph.ok()) return 0;
  SHOAL_CHECK(verify(graph.value()).ok());
  SHOAL_CHECK(
      cost(graph.value(), {.rows = 65536, .outputs = 65536, .context = 1 << 20, .sequences = 65536})
          .ok());
  const auto again = encode(graph.value());
  SHOAL_CHECK(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
  return 0;
}
