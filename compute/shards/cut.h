#pragma once
// Cuts a model into sealed shards, each under its own new key, and says in a manifest what they
// are.

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "base/secrets.h"
#include "compute/models/model.h"
#include "compute/shards/manifest.h"

namespace shoal::compute {

struct CutModel {
  Manifest manifest;
  std::vector<SecretBytes> keys;  // One for each shard, in order. Kept nowhere else.
};

// What the manifest says of a fragment besides its bytes, from its graph alone.
Result<ShardInfo> shard_info(const Fragment& fragment, FragmentKind kind);

// Writes `<digest>.shard` for each fragment into `folder`, which is made when it is not there. One
// shard at a time is in memory. A failure leaves the shards written so far.
Result<CutModel> cut_model(const Model& model, const std::filesystem::path& folder);

std::string shard_file_name(const Digest& digest);

}  // namespace shoal::compute
