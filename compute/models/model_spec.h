#pragma once
// What an architecture is: which config keys it reads, which weights it has under which names and
// shapes, and the graphs it builds from them. One .cpp for each, and one line in model_list.cpp.

#include <map>
#include <span>
#include <string_view>

#include "compute/models/gguf.h"
#include "compute/models/json_text.h"
#include "compute/models/model.h"

namespace shoal::compute {

// A weight of a fragment. "{}" in a file's name stands for the block's number.
struct WeightSpec {
  std::string_view role;  // Its name in the graph.
  std::string_view hugging_face;
  std::string_view gguf;
  Shape (*shape)(const ModelConfig& config);  // One dimension: a norm, converted to f32.
  // When the config is tied, the embedding's first weight is taken instead.
  bool tied_to_embedding = false;
};

// The types of a fragment's weights by role, as the file has them.
using WeightTypes = std::map<std::string_view, DType>;

struct ModelSpec {
  std::string_view name;
  std::span<const std::string_view> hugging_face_classes;  // In config.json's "architectures".
  std::string_view gguf_architecture;                      // In "general.architecture".

  Result<ModelConfig> (*read_hugging_face)(const JsonFields& config);
  Result<ModelConfig> (*read_gguf)(const GgufFile& file);

  // The first embedding weight is the table that a tied head shares.
  std::span<const WeightSpec> embedding, block, head;
  Graph (*embedding_graph)(const ModelConfig& config, const WeightTypes& types);
  Graph (*block_graph)(const ModelConfig& config, const WeightTypes& types);
  Graph (*head_graph)(const ModelConfig& config, const WeightTypes& types);
};

std::span<const ModelSpec* const> model_specs();

extern const ModelSpec kLlama;

// The config of a config.json's text, by the first spec that has its class; `spec` says which.
Result<ModelConfig> read_config(std::string_view text, const std::string& file,
                                const ModelSpec** spec);

// "{}" replaced by the block's number.
std::string weight_name(std::string_view pattern, int64_t block);

}  // namespace shoal::compute
