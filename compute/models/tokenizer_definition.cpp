#include "compute/models/tokenizer_definition.h"

#include <cmath>

#include "base/files.h"
#include "compute/models/json_text.h"

namespace shoal::compute {
namespace {

bool is_utf8(std::string_view text) {
  // nlohmann's writer knows; it has no other way to ask.
  const std::string written =
      Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::ignore);
  const std::string replaced =
      Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
  return written.size() == replaced.size();
}

Result<Json> json_texts(const GgufFile& file, std::string_view key) {
  SHOAL_TRY_ASSIGN(texts, file.texts(key));
  Json list = Json::array();
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!is_utf8(texts[i])) {
      return file.wrong(key, "element " + std::to_string(i) + " is no UTF-8",
                        ErrorCode::kUnsupported);
    }
    list.push_back(std::string(texts[i]));
  }
  return list;
}

Result<void> copy_flag(const GgufFile& file, std::string_view key, Json& object, const char* name) {
  if (!file.has(key)) return {};
  SHOAL_TRY_ASSIGN(flag, file.boolean_or(key, false));
  object[name] = flag;
  return {};
}

Result<void> copy_text(const GgufFile& file, std::string_view key, Json& object, const char* name) {
  if (!file.has(key)) return {};
  SHOAL_TRY_ASSIGN(text, file.text(key));
  if (!is_utf8(text)) return file.wrong(key, "is no UTF-8");
  object[name] = std::string(text);
  return {};
}

}  // namespace

Result<std::string> tokenizer_of_folder(const std::filesystem::path& folder,
                                        const ModelConfig& config) {
  auto text = read_file(folder / "tokenizer.json", {kTokenizerFileBytesMax});
  if (!text.ok()) {
    if (text.error().code == ErrorCode::kNotFound) return std::string();
    return text.error();
  }
  Json definition = Json::object();
  definition["format"] = "huggingface";
  definition["eos"] = config.eos;
  SHOAL_TRY_ASSIGN(tokenizer, parse_json(as_text(text.value()), "tokenizer.json"));
  if (!tokenizer.is_object())
    return Error{ErrorCode::kCorrupt, "tokenizer.json: is not a JSON object"};
  definition["tokenizer"] = std::move(tokenizer);
  definition["config"] = Json::object();
  auto config_text = read_file(folder / "tokenizer_config.json", {kTokenizerFileBytesMax});
  if (config_text.ok()) {
    SHOAL_TRY_ASSIGN(settings, parse_json(as_text(config_text.value()), "tokenizer_config.json"));
    if (!settings.is_object())
      return Error{ErrorCode::kCorrupt, "tokenizer_config.json: is not a JSON object"};
    definition["config"] = std::move(settings);
  } else if (config_text.error().code != ErrorCode::kNotFound) {
    return config_text.error();
  }
  auto chat = read_file(folder / "chat_template.jinja", {kTemplateFileBytesMax});
  if (chat.ok()) {
    const std::string_view source = as_text(chat.value());
    if (!is_utf8(source)) return Error{ErrorCode::kCorrupt, "chat_template.jinja: is no UTF-8"};
    definition["config"]["chat_template"] = std::string(source);
  } else if (chat.error().code != ErrorCode::kNotFound) {
    return chat.error();
  }
  return definition.dump();
}

Result<std::string> tokenizer_of_gguf(const GgufFile& file, const ModelConfig& config) {
  if (!file.has("tokenizer.ggml.model")) return std::string();
  Json definition = Json::object();
  definition["format"] = "gguf";
  definition["bos"] = config.bos.has_value() ? Json(*config.bos) : Json(nullptr);
  definition["eos"] = config.eos;
  SHOAL_TRY(copy_text(file, "tokenizer.ggml.model", definition, "model"));
  SHOAL_TRY(copy_text(file, "tokenizer.ggml.pre", definition, "pre"));

  SHOAL_TRY_ASSIGN(tokens, json_texts(file, "tokenizer.ggml.tokens"));
  const auto count = static_cast<int64_t>(tokens.size());
  if (count != config.vocabulary) {
    return file.wrong("tokenizer.ggml.tokens", "holds " + std::to_string(count) +
                                                   " tokens, but the embedding has " +
                                                   std::to_string(config.vocabulary) + " rows");
  }
  definition["tokens"] = std::move(tokens);
  if (file.has("tokenizer.ggml.scores")) {
    SHOAL_TRY_ASSIGN(scores, file.numbers("tokenizer.ggml.scores"));
    if (static_cast<int64_t>(scores.size()) != count) {
      return file.wrong("tokenizer.ggml.scores", "has another length than the tokens");
    }
    for (const double score : scores) {
      if (!std::isfinite(score))
        return file.wrong("tokenizer.ggml.scores", "holds a score that is not finite");
    }
    definition["scores"] = std::move(scores);
  }
  if (file.has("tokenizer.ggml.token_type")) {
    SHOAL_TRY_ASSIGN(types, file.integers("tokenizer.ggml.token_type"));
    if (static_cast<int64_t>(types.size()) != count) {
      return file.wrong("tokenizer.ggml.token_type", "has another length than the tokens");
    }
    definition["types"] = std::move(types);
  }
  if (file.has("tokenizer.ggml.merges")) {
    SHOAL_TRY_ASSIGN(merges, json_texts(file, "tokenizer.ggml.merges"));
    definition["merges"] = std::move(merges);
  }
  SHOAL_TRY(copy_flag(file, "tokenizer.ggml.add_bos_token", definition, "add_bos"));
  SHOAL_TRY(copy_flag(file, "tokenizer.ggml.add_space_prefix", definition, "add_space_prefix"));
  SHOAL_TRY(copy_text(file, "tokenizer.chat_template", definition, "chat_template"));
  return definition.dump();
}

}  // namespace shoal::compute
