#pragma once
// What a model family is, as data: how its blocks are put together, what its files call things, and
// what its configs mean where they say nothing. One small file each in families/; one builder and
// one reader understand them all.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/models/gguf.h"
#include "compute/models/json_text.h"
#include "compute/models/model.h"

namespace shoal::compute {

// Which blocks attend to a window only, when the config gives one.
enum class WindowRule : uint8_t {
  kNone,   // None: a config that asks for a window is refused.
  kAll,    // Every block.
  kLater,  // Those from max_window_layers on, if use_sliding_window says so.
  kEvery,  // All but every n-th, n being `global_every`.
};

// What a tensor is called in Hugging Face files, where it is not called as in Llama. "{}" stands
// for the block's number, "{e}" for the expert's.
struct WeightName {
  std::string_view role;
  std::string_view name;
};

struct Family {
  std::string_view name;
  std::span<const std::string_view> hugging_face_classes;  // In config.json's "architectures".
  std::string_view gguf_architecture;                      // In "general.architecture".

  // The block.
  NormKind norm = NormKind::kRms;
  bool norm_before = true, norm_after = false;  // Of attention and of the feed-forward part.
  bool norm_plus_one = false;  // Hugging Face files hold the norms' weights less 1.
  QkNorm qk_norm = QkNorm::kNone;
  bool query_biases = false;  // Of query, key and value.
  bool output_biases = false, ffn_biases = false;
  bool rotary = true, learned_positions = false;
  bool some_without_rotary = false;  // "no_rope_layers"; where it is silent, every fourth block.
  bool local_rotary = false;         // Blocks with a window turn by another, unscaled base.
  bool partial_rotary = false;       // Configs may say that only a part of each head turns.
  WindowRule windows = WindowRule::kNone;
  int64_t global_every = 0;
  bool caps = false;  // Configs may cap scores and logits.
  Activation activation = Activation::kSilu;
  bool gated = true;
  bool embedding_scaled = false;   // By the root of the width.
  bool scale_by_key = false;       // Attention's scale follows "query_pre_attn_scalar".
  bool experts = false;            // Hugging Face configs of this family have them.
  bool gguf_experts = false;       // GGUF files may have them.
  bool always_renormalise = true;  // Experts' weights; else "norm_topk_prob" says.

  // Its files.
  bool pairs_in_gguf =
      false;  // Converters order q's and k's rows so that neighbours turn together.
  bool fused_query = false, fused_gate = false;  // One tensor of q, k and v; of gate and up.
  bool transposed = false;                       // In Hugging Face files: [in, out].
  std::string_view optional_prefix;  // That some of its Hugging Face files put before each name.
  std::span<const WeightName> names;

  // Where a Hugging Face config is silent.
  double epsilon = 1e-6;
  double theta = 10000.0;
  bool tied = false;
  int64_t context = 2048;
  int64_t window = 0;
  std::string_view default_activation = "silu";
};

std::span<const Family* const> families();

extern const Family kLlama, kMistral, kMixtral, kSmolLm3, kQwen2, kQwen3, kQwen3Moe, kGpt2, kOlmo2,
    kPhi3, kGemma2, kGemma3;

// The config of a config.json's text, by the family that has its class; `family` says which.
Result<ModelConfig> read_config(std::string_view text, const std::string& file,
                                const Family** family);
// The ids that end a text: "eos_token_id" of config.json or generation_config.json.
Result<std::vector<int32_t>> read_eos(const JsonFields& fields, int64_t vocabulary);
// The config of a GGUF file; `table` holds the tensors of all its parts.
Result<ModelConfig> read_gguf_config(const GgufFile& file, const WeightTable& table,
                                     const Family** family);

// A weight of a fragment: a tensor of the files, or some rows of one.
struct WeightSpec {
  std::string role;  // Its name in the graph.
  std::string name;  // In the file. "{e}" stands for each expert's number: they are put together.
  Shape shape;       // As the graph wants it; of one dimension: converted to f32.
  Shape stored;      // As the file has it.
  int64_t first_row = 0;
  bool transposed = false;
  bool plus_one = false;
  int64_t experts = 0;  // How many tensors "{e}" stands for.
};

enum class FileFormat : uint8_t { kHuggingFace, kGguf };

std::vector<WeightSpec> embedding_weights(const Family& family, const ModelConfig& config,
                                          FileFormat format);
std::vector<WeightSpec> block_weights(const Family& family, const ModelConfig& config,
                                      FileFormat format, int64_t block);
std::vector<WeightSpec> head_weights(const Family& family, const ModelConfig& config,
                                     FileFormat format);

// The types of a fragment's weights by role.
using WeightTypes = std::map<std::string, DType, std::less<>>;

Graph embedding_graph(const ModelConfig& config, const WeightTypes& types);
Graph block_graph(const ModelConfig& config, const WeightTypes& types, int64_t block);
Graph head_graph(const ModelConfig& config, const WeightTypes& types);

}  // namespace shoal::compute
