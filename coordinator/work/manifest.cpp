#include "coordinator/work/manifest.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace shoal {
namespace {

using Json = nlohmann::json;

constexpr int64_t kManifestVersion = 1;
constexpr int64_t kBytesMax = int64_t{1} << 50;
constexpr int64_t kSealedBytesMax = int64_t{16} << 30;
constexpr int64_t kFragmentsMax = 1024;
constexpr int64_t kSideMax = 1 << 20;                 // Width, vocabulary and context.
constexpr int64_t kStateBytesMax = int64_t{1} << 30;  // Of one position.
// What the planner adds up for a stage, the caches of a whole context included, stays a number.
static_assert(kFragmentsMax * (kBytesMax + kStateBytesMax * kSideMax) <= int64_t{1} << 61);
constexpr size_t kNameBytesMax = 256;
constexpr size_t kEosMax = 64;

Error wrong(std::string field, std::string_view why) {
  return {ErrorCode::kCorrupt, "manifest: " + std::move(field) + " " + std::string(why)};
}

Result<int64_t> integer_of(const Json& object, const char* key, int64_t min, int64_t max,
                           const std::string& where = "") {
  const auto found = object.find(key);
  if (found == object.end()) return wrong(where + key, "is missing");
  const bool fits = found->is_number_unsigned() &&
                    found->get<uint64_t>() <= static_cast<uint64_t>(max) &&
                    found->get<int64_t>() >= min;
  if (!fits) {
    return wrong(where + key,
                 "is not a number from " + std::to_string(min) + " to " + std::to_string(max));
  }
  return found->get<int64_t>();
}

Result<std::string> text_of(const Json& object, const char* key, size_t bytes_max,
                            const std::string& where = "") {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return wrong(where + key, "is no text");
  std::string text = found->get<std::string>();
  if (text.size() > bytes_max) return wrong(where + key, "is too long");
  return text;
}

Result<Digest> digest_in(const Json& object, const char* key, const std::string& where = "") {
  SHOAL_TRY_ASSIGN(text, text_of(object, key, 64, where));
  Result<Digest> digest = Digest::from_hex(text);
  if (!digest.ok()) return wrong(where + key, "is no digest");
  return digest;
}

// People read a name and type it.
Result<void> check_name(std::string_view name) {
  if (name.empty()) return wrong("name", "is empty");
  if (!is_printable(name))
    return wrong("name", "holds what cannot be shown: control characters, or no UTF-8");
  return {};
}

Digest digest_without_itself(Json body) {
  body.erase("digest");
  return digest_of(as_bytes(body.dump()));
}

Result<Json> parse(std::string_view text) {
  // A manifest is flat: anything nested deeply is somebody's trick.
  Json json = Json::parse(
      text, [](int depth, Json::parse_event_t, Json&) { return depth < 8; },
      /*allow_exceptions=*/false);
  if (!json.is_object()) return wrong("text", "is no JSON object");
  return json;
}

Result<ManifestShard> shard_of(const Json& json, size_t index, size_t count) {
  const std::string where = "shards[" + std::to_string(index) + "].";
  if (!json.is_object()) return wrong(where, "is no object");
  SHOAL_TRY_ASSIGN(own_index, integer_of(json, "index", 0, kFragmentsMax, where));
  if (own_index != static_cast<int64_t>(index)) return wrong(where + "index", "is out of order");
  SHOAL_TRY_ASSIGN(kind, text_of(json, "kind", 16, where));
  const char* const expected = index == 0 ? "embedding" : index + 1 == count ? "head" : "block";
  if (kind != expected) return wrong(where + "kind", "is not \"" + std::string(expected) + "\"");
  ManifestShard shard;
  SHOAL_TRY_ASSIGN(digest, digest_in(json, "digest", where));
  shard.digest = digest;
  SHOAL_TRY_ASSIGN(sealed, integer_of(json, "sealed_bytes", 1, kSealedBytesMax, where));
  shard.sealed_bytes = sealed;
  SHOAL_TRY_ASSIGN(weights, integer_of(json, "weight_bytes", 0, kBytesMax, where));
  shard.cost.weights = Bytes{weights};
  SHOAL_TRY_ASSIGN(flops, integer_of(json, "flops_per_row", 0, kBytesMax, where));
  shard.cost.flops_per_row = Flops{flops};
  SHOAL_TRY_ASSIGN(state, integer_of(json, "state_bytes_per_position", 0, kStateBytesMax, where));
  shard.cost.state_per_position = Bytes{state};
  SHOAL_TRY_ASSIGN(workspace, integer_of(json, "workspace_bytes_per_row", 0, kBytesMax, where));
  shard.cost.workspace_per_row = Bytes{workspace};
  return shard;
}

}  // namespace

Result<ModelManifest> read_model_manifest(std::string_view text) {
  SHOAL_TRY_ASSIGN(json, parse(text));
  SHOAL_TRY_ASSIGN(version, integer_of(json, "manifest_version", 0, 1 << 30));
  if (version != kManifestVersion) {
    return Error{ErrorCode::kUnsupported, "manifest: manifest_version " + std::to_string(version) +
                                              " is not the " + std::to_string(kManifestVersion) +
                                              " that this coordinator reads"};
  }
  ModelManifest manifest;
  SHOAL_TRY_ASSIGN(name, text_of(json, "name", kNameBytesMax));
  SHOAL_TRY(check_name(name));
  manifest.name = std::move(name);
  SHOAL_TRY_ASSIGN(architecture, text_of(json, "architecture", kNameBytesMax));
  manifest.architecture = std::move(architecture);
  SHOAL_TRY_ASSIGN(width, integer_of(json, "width", 1, kSideMax));
  manifest.width = width;
  SHOAL_TRY_ASSIGN(vocabulary, integer_of(json, "vocabulary", 1, kSideMax));
  manifest.vocabulary = vocabulary;
  SHOAL_TRY_ASSIGN(context, integer_of(json, "context", 1, kSideMax));
  manifest.context = context;
  SHOAL_TRY_ASSIGN(tokenizer, text_of(json, "tokenizer", text.size()));
  manifest.tokenizer = std::move(tokenizer);

  const auto eos = json.find("eos");
  if (eos == json.end() || !eos->is_array() || eos->size() > kEosMax) {
    return wrong("eos", "is no list of ids");
  }
  for (const Json& id : *eos) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= static_cast<uint64_t>(vocabulary)) {
      return wrong("eos", "holds what is no id below the vocabulary");
    }
    manifest.eos.push_back(id.get<int32_t>());
  }
  const auto shards = json.find("shards");
  if (shards == json.end() || !shards->is_array() || shards->size() < 2 ||
      shards->size() > static_cast<size_t>(kFragmentsMax)) {
    return wrong("shards", "is no list of 2 to " + std::to_string(kFragmentsMax) + " shards");
  }
  for (size_t i = 0; i < shards->size(); ++i) {
    SHOAL_TRY_ASSIGN(shard, shard_of((*shards)[i], i, shards->size()));
    manifest.shards.push_back(shard);
  }
  SHOAL_TRY_ASSIGN(digest, digest_in(json, "digest"));
  if (digest != digest_without_itself(json)) return wrong("digest", "is not that of the manifest");
  manifest.digest = digest;
  return manifest;
}

Result<std::string> rename_manifest(std::string_view text, std::string_view name) {
  SHOAL_TRY(check_name(name));
  SHOAL_TRY_ASSIGN(json, parse(text));
  json["name"] = name;
  json["digest"] = digest_without_itself(json).hex();
  return json.dump();
}

}  // namespace shoal
