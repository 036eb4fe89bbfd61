#pragma once
// Opens a model from disk, a Hugging Face directory or a GGUF file, as a chain of fragments that
// can run, be cut into shards, or be refused by name. Weight files are checked as hostile input.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/files.h"
#include "base/result.h"
#include "compute/compute.h"
#include "compute/graph/graph.h"
#include "compute/models/quantize.h"

namespace shoal::compute {

enum class NormKind : uint8_t { kRms, kLayer };
enum class QkNorm : uint8_t { kNone, kHead, kWhole };  // Of queries and keys, before they turn.
enum class Activation : uint8_t { kSilu, kGeluTanh, kGelu };

// What differs from block to block.
struct BlockConfig {
  int64_t window = 0;  // Positions that a row sees, itself among them; 0: all.
  enum class Rotary : uint8_t { kNone, kWhole, kLocal } rotary = Rotary::kWhole;
};

// A whole model's description: what the builder needs, whatever the family and the file said it in.
struct ModelConfig {
  std::string architecture;  // "llama"
  int64_t width = 0;         // Of a hidden row.
  int64_t intermediate = 0;  // Of the feed-forward part.
  int64_t blocks = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t vocabulary = 0;
  int64_t context = 0;  // Positions it was trained for.
  double epsilon = 0;   // Of the norms.
  RopeSpec rope;
  RopeSpec local_rope;       // For blocks whose rotary is kLocal.
  bool interleaved = false;  // Which pairs rope turns: see RopeParams.
  bool tied = false;         // The head's matrix is the embedding's.
  NormKind norm = NormKind::kRms;
  bool norm_before = true, norm_after = false;  // Of attention and of the feed-forward part.
  QkNorm qk_norm = QkNorm::kNone;
  bool query_biases = false, output_biases = false, ffn_biases = false;
  std::vector<BlockConfig> kinds;  // Of each block; empty: all are alike and as BlockConfig says.
  bool learned_positions = false;  // `context` of them.
  double attention_scale = 0;      // 0: one over the root of head_dim.
  double attention_cap = 0, final_cap = 0;  // 0: none.
  double embedding_scale = 1;
  Activation activation = Activation::kSilu;
  bool gated = true;
  int64_t experts = 0, experts_used = 0;  // 0: none; else `intermediate` is that of one.
  bool renormalise = true;
  DType state_dtype = DType::kF16;  // Of the caches: f32 when the model's matrices are all f32.
  std::optional<int32_t> bos;
  std::vector<int32_t> eos;  // Any of them ends a text.
};

// What a config may ask for; with embedding and head the blocks are schema/limits.h's
// kFragmentsMax. Beyond these it is refused: a lie, or a model for other machines.
constexpr int64_t kWidthMax = int64_t{1} << 17;
constexpr int64_t kIntermediateMax = int64_t{1} << 20;
constexpr int64_t kBlocksMax = 1022;
constexpr int64_t kHeadsMax = 4096;
constexpr int64_t kHeadDimMax = 1024;
constexpr int64_t kVocabularyMax = int64_t{1} << 22;
constexpr int64_t kModelContextMax = int64_t{1} << 23;  // Positions stay exact as f32.
constexpr size_t kEosMax = 64;

struct Model {
  std::string name;  // "stories260K": from the file, else the file's own name.
  ModelConfig config;
  std::vector<Fragment> fragments;  // Embedding, blocks in order, head.
  std::string tokenizer;  // A tokenizer definition (compute/tokenizer); empty when there is none.

  std::vector<QuantCost::Line>
      quantised;  // What rounding its matrices cost, if that was asked for.

  // What the fragments' weights point into.
  std::vector<MappedFile> files;
  std::vector<ByteVector> converted;
};

struct OpenOptions {
  QuantMode quantise = QuantMode::kNone;  // Of matrices of 16 and 32 bits; others stay as they are.
};

// `path`: a folder with config.json, or a .gguf file; of one in several parts the first.
// kUnsupported names the key or the tensor that no architecture of ours has; kCorrupt what breaks a
// format's rules or disagrees with another file.
Result<Model> open_model(const std::filesystem::path& path, const OpenOptions& options = {});

// The same from a GGUF file's bytes, which outlive the model.
Result<Model> model_of_gguf(ByteSpan bytes, const std::string& file);

}  // namespace shoal::compute
