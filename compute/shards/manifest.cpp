#include "compute/shards/manifest.h"

#include "compute/models/json_text.h"
#include "compute/models/model.h"

namespace shoal::compute {
namespace {

constexpr int64_t kBytesMax = int64_t{1} << 50;
constexpr int64_t kSealedBytesMax = int64_t{16} << 30;  // schema/limits.h, kShardBytesMax
constexpr size_t kNameBytesMax = 256;
constexpr std::string_view kFile = "manifest";

Json body_of(const Manifest& m) {
  Json shards = Json::array();
  for (size_t i = 0; i < m.shards.size(); ++i) {
    const ShardInfo& s = m.shards[i];
    shards.push_back({{"index", i},
                      {"kind", fragment_kind_name(s.kind)},
                      {"digest", s.digest.hex()},
                      {"sealed_bytes", s.sealed_bytes},
                      {"weight_bytes", s.weight_bytes},
                      {"flops_per_row", s.flops_per_row},
                      {"state_bytes_per_position", s.state_bytes_per_position},
                      {"workspace_bytes_per_row", s.workspace_bytes_per_row}});
  }
  Json json = {{"manifest_version", kManifestVersion},
               {"name", m.name},
               {"architecture", m.architecture},
               {"numerics_version", m.numerics_version},
               {"width", m.width},
               {"blocks", m.blocks},
               {"heads", m.heads},
               {"kv_heads", m.kv_heads},
               {"head_dim", m.head_dim},
               {"intermediate", m.intermediate},
               {"vocabulary", m.vocabulary},
               {"context", m.context},
               {"bos", m.bos.has_value() ? Json(*m.bos) : Json(nullptr)},
               {"eos", m.eos},
               {"tokenizer", m.tokenizer},
               {"shards", std::move(shards)}};
  return json;
}

Digest digest_of_body(const Json& body) { return digest_of(as_bytes(body.dump())); }

Result<Digest> digest_field(const JsonFields& fields, std::string_view key) {
  SHOAL_TRY_ASSIGN(text, fields.text(key));
  auto digest = Digest::from_hex(text);
  if (!digest.ok()) return fields.wrong(key, digest.error().message);
  return digest;
}

Result<ShardInfo> read_shard_info(const Json& json, size_t index, size_t count) {
  SHOAL_TRY_ASSIGN(fields,
                   JsonFields::of(json, std::string(kFile) + ": shards: " + std::to_string(index)));
  SHOAL_TRY_ASSIGN(own_index, fields.integer("index", 0, kManifestShardsMax));
  if (own_index != static_cast<int64_t>(index)) return fields.wrong("index", "is out of order");
  ShardInfo info;
  info.kind = index == 0           ? FragmentKind::kEmbedding
              : index == count - 1 ? FragmentKind::kHead
                                   : FragmentKind::kBlock;
  SHOAL_TRY_ASSIGN(kind, fields.text("kind"));
  if (kind != fragment_kind_name(info.kind)) {
    return fields.wrong("kind", "is not \"" + std::string(fragment_kind_name(info.kind)) + "\"");
  }
  SHOAL_TRY_ASSIGN(digest, digest_field(fields, "digest"));
  info.digest = digest;
  struct Field {
    const char* key;
    int64_t* at;
    int64_t min, max;
  };
  for (const Field& field :
       {Field{"sealed_bytes", &info.sealed_bytes, 1, kSealedBytesMax},
        Field{"weight_bytes", &info.weight_bytes, 0, kBytesMax},
        Field{"flops_per_row", &info.flops_per_row, 0, kBytesMax},
        Field{"state_bytes_per_position", &info.state_bytes_per_position, 0, kBytesMax},
        Field{"workspace_bytes_per_row", &info.workspace_bytes_per_row, 0, kBytesMax}}) {
    SHOAL_TRY_ASSIGN(value, fields.integer(field.key, field.min, field.max));
    *field.at = value;
  }
  return info;
}

Result<void> read_numbers(const JsonFields& fields, Manifest& m) {
  struct Field {
    const char* key;
    int64_t* at;
    int64_t max;
  };
  for (const Field& field :
       {Field{"width", &m.width, kWidthMax}, Field{"blocks", &m.blocks, kBlocksMax},
        Field{"heads", &m.heads, kHeadsMax}, Field{"kv_heads", &m.kv_heads, kHeadsMax},
        Field{"head_dim", &m.head_dim, kHeadDimMax},
        Field{"intermediate", &m.intermediate, kIntermediateMax},
        Field{"vocabulary", &m.vocabulary, kVocabularyMax},
        Field{"context", &m.context, kModelContextMax}}) {
    SHOAL_TRY_ASSIGN(value, fields.integer(field.key, 1, field.max));
    *field.at = value;
  }
  return {};
}

}  // namespace

std::string_view fragment_kind_name(FragmentKind kind) {
  switch (kind) {
    case FragmentKind::kEmbedding: return "embedding";
    case FragmentKind::kBlock: return "block";
    case FragmentKind::kHead: return "head";
  }
  SHOAL_UNREACHABLE();
}

Digest manifest_digest(const Manifest& manifest) { return digest_of_body(body_of(manifest)); }

std::string write_manifest(const Manifest& manifest) {
  Json json = body_of(manifest);
  json["digest"] = digest_of_body(json).hex();
  return json.dump();
}

Result<Manifest> read_manifest(std::string_view text) {
  SHOAL_TRY_ASSIGN(json, parse_json(text, std::string(kFile)));
  SHOAL_TRY_ASSIGN(fields, JsonFields::of(json, std::string(kFile)));
  SHOAL_TRY_ASSIGN(version, fields.integer("manifest_version", 0, 1 << 30));
  if (version != kManifestVersion) {
    return fields.wrong("manifest_version",
                        std::to_string(version) + " is not " + std::to_string(kManifestVersion),
                        ErrorCode::kUnsupported);
  }
  Manifest m;
  SHOAL_TRY_ASSIGN(name, fields.text("name"));
  if (name.empty() || name.size() > kNameBytesMax)
    return fields.wrong("name", "is empty or too long");
  m.name = std::move(name);
  SHOAL_TRY_ASSIGN(architecture, fields.text("architecture"));
  if (architecture.size() > kNameBytesMax) return fields.wrong("architecture", "is too long");
  m.architecture = std::move(architecture);
  SHOAL_TRY_ASSIGN(numerics, fields.integer("numerics_version", 1, 1 << 30));
  m.numerics_version = static_cast<uint32_t>(numerics);
  SHOAL_TRY(read_numbers(fields, m));
  if (fields.has("bos")) {
    SHOAL_TRY_ASSIGN(bos, fields.integer("bos", 0, m.vocabulary - 1));
    m.bos = static_cast<int32_t>(bos);
  }
  SHOAL_TRY_ASSIGN(eos, fields.array("eos"));
  if (eos->size() > kEosMax) return fields.wrong("eos", "holds too many ids");
  for (const Json& id : *eos) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= static_cast<uint64_t>(m.vocabulary)) {
      return fields.wrong("eos", "holds what is no id below the vocabulary");
    }
    m.eos.push_back(id.get<int32_t>());
  }
  SHOAL_TRY_ASSIGN(tokenizer, fields.text("tokenizer"));
  m.tokenizer = std::move(tokenizer);

  SHOAL_TRY_ASSIGN(shards, fields.array("shards"));
  if (shards->size() > kManifestShardsMax || static_cast<int64_t>(shards->size()) != m.blocks + 2) {
    return fields.wrong(
        "shards", std::to_string(shards->size()) + " are not one for each block and two more");
  }
  for (size_t i = 0; i < shards->size(); ++i) {
    SHOAL_TRY_ASSIGN(info, read_shard_info((*shards)[i], i, shards->size()));
    m.shards.push_back(info);
  }
  // The text must be what write_manifest makes of it, unknown fields included.
  SHOAL_TRY_ASSIGN(digest, digest_field(fields, "digest"));
  Json body = json;
  body.erase("digest");
  if (body != body_of(m))
    return fields.wrong("digest", "the manifest holds fields that do not belong there");
  if (digest != manifest_digest(m)) return fields.wrong("digest", "is not that of the manifest");
  return m;
}

}  // namespace shoal::compute
