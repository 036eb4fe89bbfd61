#pragma once
// Reads the manifest of a published model (JSON, as `shoal-run cut` prints it) as hostile input:
// what planning and sessions need of it. Pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "base/units.h"

namespace shoal {

// What a fragment (embedding, block or head) costs, from its graph.
struct FragmentCost {
  Bytes weights;
  Flops flops_per_row;
  Bytes state_per_position;
  Bytes workspace_per_row;
};

struct ManifestShard {
  FragmentCost cost;
  Digest digest;  // Of the ciphertext.
  int64_t sealed_bytes = 0;
};

struct ModelManifest {
  std::string name;
  std::string architecture;
  Digest digest;      // As the manifest names itself.
  int64_t width = 0;  // Of a hidden row.
  int64_t vocabulary = 0;
  int64_t context = 0;  // Positions that the model was made for.
  std::vector<int32_t> eos;
  std::string tokenizer;              // Its definition, as compute/tokenizer reads it.
  std::vector<ManifestShard> shards;  // Embedding, blocks, head; at least two.
};

// kCorrupt or kUnsupported, naming the field.
Result<ModelManifest> read_model_manifest(std::string_view json);

// The same manifest under another name; its digest changes with it.
Result<std::string> rename_manifest(std::string_view json, std::string_view name);

}  // namespace shoal
