// Goal: no plain shard's bytes crash its reader; what is taken can be written again as the same
// bytes.

#include <algorithm>

#include "base/check.h"
#include "compute/shards/shard.h"

using namespace shoal;
using namespace shoal::compute;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  const auto fragment = open_shard(bytes);
  if (!fragment.ok()) return 0;
  SHOAL_CHECK(verify(fragment.value().graph).ok());
  SHOAL_CHECK(shard_size(fragment.value()) <= size + kShardAlignment);
  ByteVector again;
  const auto written = write_shard(fragment.value(), [&](ByteSpan piece) -> Result<void> {
    again.insert(again.end(), piece.begin(), piece.end());
    return {};
  });
  SHOAL_CHECK(written.ok());
  const auto reopened = open_shard(again);
  SHOAL_CHECK(reopened.ok() && reopened.value().weights.size() == fragment.value().weights.size());
  return 0;
}
