#include "compute/shards/cut.h"

#include "base/files.h"
#include "compute/shards/shard.h"

namespace shoal::compute {
namespace {

Result<ByteVector> seal_fragment(const Fragment& fragment, const SecretBytes& key) {
  ByteVector sealed;
  sealed.reserve(sealed_size(shard_size(fragment)));
  SealedWriter writer(key, [&sealed](ByteSpan piece) -> Result<void> {
    sealed.insert(sealed.end(), piece.begin(), piece.end());
    return {};
  });
  SHOAL_TRY(write_shard(fragment, [&writer](ByteSpan piece) { return writer.write(piece); }));
  SHOAL_TRY(writer.finish());
  return sealed;
}

}  // namespace

std::string shard_file_name(const Digest& digest) { return digest.hex() + ".shard"; }

Result<ShardInfo> shard_info(const Fragment& fragment, FragmentKind kind) {
  // Everything a graph costs but its weights grows with rows or positions, so one of each tells
  // all.
  SHOAL_TRY_ASSIGN(one,
                   cost(fragment.graph, {.rows = 1, .outputs = 1, .context = 1, .sequences = 1}));
  ShardInfo info;
  info.kind = kind;
  info.weight_bytes = one.weight_bytes;
  info.flops_per_row = one.flops;
  info.state_bytes_per_position = one.state_bytes;
  info.workspace_bytes_per_row = one.workspace_bytes;
  return info;
}

Result<CutModel> cut_model(const Model& model, const std::filesystem::path& folder) {
  const ModelConfig& c = model.config;
  SHOAL_CHECK(static_cast<int64_t>(model.fragments.size()) == c.blocks + 2);
  SHOAL_TRY(make_folder(folder));
  CutModel result;
  result.manifest = {.name = model.name,
                     .architecture = c.architecture,
                     .numerics_version = model.fragments.front().graph.numerics_version,
                     .width = c.width,
                     .blocks = c.blocks,
                     .heads = c.heads,
                     .kv_heads = c.kv_heads,
                     .head_dim = c.head_dim,
                     .intermediate = c.intermediate,
                     .vocabulary = c.vocabulary,
                     .context = c.context,
                     .bos = c.bos,
                     .eos = c.eos,
                     .tokenizer = model.tokenizer};
  for (size_t i = 0; i < model.fragments.size(); ++i) {
    const FragmentKind kind = i == 0                            ? FragmentKind::kEmbedding
                              : i + 1 == model.fragments.size() ? FragmentKind::kHead
                                                                : FragmentKind::kBlock;
    SHOAL_TRY_ASSIGN(info, shard_info(model.fragments[i], kind));
    SecretBytes key = random_key();
    SHOAL_TRY_ASSIGN(sealed, seal_fragment(model.fragments[i], key));
    info.digest = digest_of(sealed);
    info.sealed_bytes = static_cast<int64_t>(sealed.size());
    SHOAL_TRY(write_file_durably(folder / shard_file_name(info.digest), sealed));
    result.manifest.shards.push_back(info);
    result.keys.push_back(std::move(key));
  }
  return result;
}

}  // namespace shoal::compute
