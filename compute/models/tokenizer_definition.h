#pragma once
// Writes the tokenizer definition, one JSON text that compute/tokenizer reads, from a model's own
// files. It checks that they are well formed; what they mean is the tokenizer's to judge.

#include <filesystem>
#include <string>

#include "base/result.h"
#include "compute/models/gguf.h"
#include "compute/models/model.h"

namespace shoal::compute {

constexpr int64_t kTokenizerFileBytesMax = int64_t{64} << 20;
constexpr int64_t kTemplateFileBytesMax = int64_t{1} << 20;

// From tokenizer.json, tokenizer_config.json and, for the chat template, chat_template.jinja, which
// goes before the one in tokenizer_config.json; empty when the folder has no tokenizer.json.
// `config` tells which tokens end a text.
Result<std::string> tokenizer_of_folder(const std::filesystem::path& folder,
                                        const ModelConfig& config);

// From the tokenizer.ggml keys, and tokenizer.chat_template; empty when there are none.
Result<std::string> tokenizer_of_gguf(const GgufFile& file, const ModelConfig& config);

}  // namespace shoal::compute
