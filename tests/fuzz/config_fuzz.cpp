// Goal: no config.json, and no manifest, crashes its reader; what is taken obeys the stated bounds.

#include "base/check.h"
#include "compute/models/family.h"
#include "compute/shards/manifest.h"

using namespace shoal;
using namespace shoal::compute;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = as_text(std::as_bytes(std::span(data, size)));
  const Family* spec = nullptr;
  const auto config = read_config(text, "fuzz", &spec);
  if (config.ok()) {
    SHOAL_CHECK(spec != nullptr);
    const ModelConfig& c = config.value();
    SHOAL_CHECK(c.width >= 1 && c.width <= kWidthMax && c.blocks >= 1 && c.blocks <= kBlocksMax);
    SHOAL_CHECK(c.heads % c.kv_heads == 0 && c.rope.rotary % 2 == 0);
  }
  const auto manifest = read_manifest(text);
  if (manifest.ok()) SHOAL_CHECK(read_manifest(write_manifest(manifest.value())).ok());
  return 0;
}
