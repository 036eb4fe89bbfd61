#pragma once
// A published model as sessions use it: read once, then shared and never changed.

#include <memory>
#include <string>
#include <vector>

#include "compute/tokenizer/tokenizer.h"
#include "coordinator/store/model_table.h"
#include "coordinator/work/manifest.h"

namespace shoal {

struct LiveModel {
  ModelId id;
  std::string name;
  std::string group;  // Whose hosts alone may hold it; empty: all may.
  ModelManifest manifest;
  std::vector<FragmentCost> costs;  // By fragment.
  std::vector<ShardRow> shards;     // By fragment.
  Tokenizer tokenizer;

  bool ends_text(int32_t token) const;
};

Result<std::shared_ptr<const LiveModel>> load_live_model(const ModelRow& row);

}  // namespace shoal
