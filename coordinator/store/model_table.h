#pragma once
// Published models: the manifest, and for each fragment its sealed shard and the wrapped key. Rows
// in and out. A model is there whole or not at all.

#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "coordinator/store/store.h"

namespace shoal {

struct ShardRow {
  Digest digest;
  int64_t sealed_bytes = 0;
  ByteVector wrapped_key;
};

struct ModelRow {
  ModelId id;
  std::string name;
  Digest digest;         // Of the manifest.
  std::string manifest;  // JSON. Empty in lists.
  std::string purpose;   // For volunteers. May be empty.
  std::string group;     // Whose hosts alone may hold it; empty: all may.
  Millis published_at;
  std::vector<ShardRow> shards;  // By fragment. Empty in lists.
  int64_t fragments = 0;
  int64_t sealed_bytes = 0;
};

class ModelTable {
 public:
  explicit ModelTable(Store& store) : store_(store) {}  // The store outlives the table.

  Result<ModelId> add(const ModelRow& model);  // kExists when the name is taken.
  Result<std::vector<ModelRow>> list(int64_t count_max);
  Result<int64_t> count();
  Result<std::optional<ModelRow>> find(const std::string& name);  // Whole.
  Result<void> remove(ModelId id);
  // Whether any model has the shard.
  Result<bool> has_shard(const Digest& digest);
  // Any shard's key as it was wrapped; empty when there is none.
  Result<std::optional<ByteVector>> some_wrapped_key();

 private:
  Store& store_;
};

}  // namespace shoal
