#include "coordinator/session/live_model.h"

#include <algorithm>

namespace shoal {

bool LiveModel::ends_text(int32_t token) const {
  return tokenizer.is_eos(token) || std::ranges::find(manifest.eos, token) != manifest.eos.end();
}

Result<std::shared_ptr<const LiveModel>> load_live_model(const ModelRow& row) {
  SHOAL_TRY_ASSIGN(manifest, read_model_manifest(row.manifest));
  if (manifest.shards.size() != row.shards.size()) {
    return Error{
        ErrorCode::kCorrupt,
        "model " + row.name + ": the store has another number of shards than its manifest"};
  }
  Result<Tokenizer> tokenizer = Tokenizer::from_definition(manifest.tokenizer);
  if (!tokenizer.ok()) return with_context(tokenizer.error(), "model " + row.name + ": tokenizer");
  if (tokenizer.value().vocabulary() > manifest.vocabulary) {
    return Error{ErrorCode::kCorrupt,
                 "model " + row.name + ": the tokenizer has more tokens than the model"};
  }
  std::vector<FragmentCost> costs;
  for (const ManifestShard& shard : manifest.shards) costs.push_back(shard.cost);
  return std::shared_ptr<const LiveModel>(std::make_shared<LiveModel>(
      LiveModel{row.id, row.name, row.group, std::move(manifest), std::move(costs), row.shards,
                std::move(tokenizer).value()}));
}

}  // namespace shoal
