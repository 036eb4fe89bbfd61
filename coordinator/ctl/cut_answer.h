#pragma once
// Reads what `shoal-run cut` prints: a manifest, and the only copy of the shards' keys. Outside of
// SecretBytes no copy of a key stays behind.

#include <nlohmann/json.hpp>
#include <vector>

#include "base/secrets.h"

namespace shoal::ctl {

struct CutAnswer {
  nlohmann::json json;  // The last line, its keys blank. Null when that is no JSON.
  std::vector<SecretBytes> keys;
};

// `output` is all that was printed; the keys in it are blanked. kCorrupt when they are no keys.
Result<CutAnswer> read_cut_answer(std::span<std::byte> output);

}  // namespace shoal::ctl
