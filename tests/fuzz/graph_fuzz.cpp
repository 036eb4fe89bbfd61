// Whatever the bytes, decode() refuses them or gives a graph that verifies, costs something finite
// and encodes to the same bytes again. Those of the first encoding are read and never written: what
// they become is what stays the same.

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
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
  if (shoal::as_text(bytes).starts_with("SHG1")) {
    const auto newer = decode(again);
    SHOAL_CHECK(newer.ok() && encode(newer.value()) == again);
  } else {
    SHOAL_CHECK(std::ranges::equal(again, bytes));
  }
  return 0;
}
