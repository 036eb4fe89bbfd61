#include "tests/coordinator/toy_model.h"

#include <nlohmann/json.hpp>

#include "base/random.h"
#include "coordinator/work/manifest.h"

namespace shoal::test {
namespace {

std::string toy_tokenizer() {
  nlohmann::json tokens = {"<unk>", "<s>", "</s>"}, scores = {0.0, 0.0, 0.0}, types = {2, 3, 3};
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    tokens.push_back(text);
    scores.push_back(0.0);
    types.push_back(6);
  }
  return nlohmann::json{{"format", "gguf"},
                        {"model", "llama"},
                        {"tokens", tokens},
                        {"scores", scores},
                        {"types", types},
                        {"bos", 1},
                        {"eos", {2}},
                        {"add_bos", true},
                        {"add_space_prefix", false},
                        {"chat_template", kToyChatTemplate}}
      .dump();
}

}  // namespace

ToyModel make_toy_model(const std::string& name, size_t shard_bytes, int64_t flops_per_row) {
  ToyModel model;
  nlohmann::json shards = nlohmann::json::array();
  Random random(7);
  for (int i = 0; i < kToyFragments; ++i) {
    ByteVector plain(shard_bytes);
    random.fill(plain);
    model.keys.push_back(random_key());
    model.shards.push_back(seal_stream(model.keys.back(), plain));
    shards.push_back({{"index", i},
                      {"kind", i == 0                   ? "embedding"
                               : i + 1 == kToyFragments ? "head"
                                                        : "block"},
                      {"digest", digest_of(model.shards.back()).hex()},
                      {"sealed_bytes", model.shards.back().size()},
                      {"weight_bytes", 1'000'000},
                      {"flops_per_row", flops_per_row},
                      {"state_bytes_per_position", 100},
                      {"workspace_bytes_per_row", 100}});
  }
  const nlohmann::json body = {{"manifest_version", 1},
                               {"name", "unnamed"},
                               {"architecture", "toy"},
                               {"numerics_version", 1},
                               {"width", kToyWidth},
                               {"blocks", kToyFragments - 2},
                               {"vocabulary", kToyVocabulary},
                               {"context", kToyContext},
                               {"bos", 1},
                               {"eos", {kToyEos}},
                               {"tokenizer", toy_tokenizer()},
                               {"shards", shards}};
  model.manifest = rename_manifest(body.dump(), name).value();
  return model;
}

std::vector<float> ToyStage::step(uint32_t position, std::vector<float> row) {
  for (int fragment = first_; fragment <= last_; ++fragment) {
    if (fragment == 0) {
      const auto token = static_cast<int64_t>(row.at(0));
      row.assign(kToyWidth, 0);
      for (int k = 0; k < kToyWidth; ++k) {
        row[static_cast<size_t>(k)] =
            static_cast<float>((token * 31 + int64_t{position} * 7 + k * 13) % 4099);
      }
    } else if (fragment + 1 < kToyFragments) {
      auto& cache = caches_[fragment];
      cache[position] = row;
      std::vector<float> out(kToyWidth);
      for (size_t k = 0; k < kToyWidth; ++k) {
        int64_t sum = static_cast<int64_t>(row[k]) * 3 + fragment;
        for (uint32_t p = 0; p <= position; ++p) {
          const auto found = cache.find(p);
          if (found == cache.end()) return {};
          sum += static_cast<int64_t>(found->second[k]) * (p % 5 + 1);
        }
        out[k] = static_cast<float>(sum % 65521);
      }
      row = out;
    }
  }
  return row;
}

int32_t ToyStage::draw(const std::vector<float>& row, uint64_t seed, uint64_t position) {
  if (seed == kToyEosSeed && position >= kToyEosPosition) return kToyEos;
  uint64_t mix = seed * 0x9e3779b97f4a7c15ull + position;
  for (const float value : row) mix = (mix ^ static_cast<uint64_t>(value)) * 0xbf58476d1ce4e5b9ull;
  return static_cast<int32_t>(3 + 32 + (mix >> 33) % 95);  // A byte that is a letter or the like.
}

std::vector<int32_t> toy_tokens(std::vector<int32_t> tokens, int64_t count, uint64_t seed,
                                bool ignore_eos) {
  ToyStage stage(0, kToyFragments - 1);
  std::vector<int32_t> drawn;
  std::vector<float> row;
  for (uint32_t position = 0; static_cast<int64_t>(drawn.size()) < count; ++position) {
    row = stage.step(position, {static_cast<float>(tokens[position])});
    if (position + 1 < tokens.size()) continue;
    if (tokens.size() > kToyContext) break;
    drawn.push_back(ToyStage::draw(row, seed, tokens.size()));
    tokens.push_back(drawn.back());
    if (drawn.back() == kToyEos && !ignore_eos) break;
  }
  return drawn;
}

}  // namespace shoal::test
