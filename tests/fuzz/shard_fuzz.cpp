// Whatever the bytes, open_shard() refuses them or gives a fragment that verifies, and that is
// written, at the size that was told, as bytes that say the same when they are read again. (An older
// graph encoding is read and never written, so the first bytes may differ.)

#include "base/check.h"
#include "compute/shards/shard.h"

using namespace shoal;
using namespace shoal::compute;

namespace {

ByteVector written(const Fragment& fragment) {
  ByteVector bytes;
  const auto done = write_shard(fragment, [&](ByteSpan piece) -> Result<void> {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return {};
  });
  SHOAL_CHECK(done.ok());
  SHOAL_CHECK(bytes.size() == shard_size(fragment));
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto fragment = open_shard(std::as_bytes(std::span(data, size)));
  if (!fragment.ok()) return 0;
  SHOAL_CHECK(verify(fragment.value().graph).ok());
  const ByteVector first = written(fragment.value());
  const auto reopened = open_shard(first);
  SHOAL_CHECK(reopened.ok() && written(reopened.value()) == first);
  return 0;
}
