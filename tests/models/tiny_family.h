#pragma once
// Tiny models of every family for tests: what each family is, written a second time from its
// papers and files, with random weights; the files that such
// a model would come in; and a slow evaluation in float64. Shares nothing with compute/models but
// the writing of containers.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/models/model_maker.h"

namespace shoal::compute {

struct TinyRope {
  std::string kind = "none";  // none, linear, llama3, yarn, longrope
  double theta = 10000;
  double factor = 1, low = 1, high = 4, original = 64;
  std::vector<double> short_factors, long_factors;
};

struct TinyFamily {
  std::string name, hugging_face_class, gguf;  // GGUF's architecture.
  int64_t width = 64, inner = 96, blocks = 3, heads = 4, kv_heads = 2, head_dim = 16;
  int64_t vocabulary = 96, context = 128;
  int64_t rotary = 16;  // Elements of a head that turn; 0: none.
  double epsilon = 1e-5;
  bool layer_norm = false, norm_before = true, norm_after = false;
  bool head_norms = false, whole_norms = false;  // Of queries and keys.
  bool query_bias = false, output_bias = false, ffn_bias = false;
  bool gated = true;
  std::string activation = "silu";  // silu, gelu_tanh, gelu
  bool tied = true, learned_positions = false;
  TinyRope rope, local_rope;
  std::vector<int> windows;  // Of each block, 0: none; empty: none anywhere.
  std::vector<int> ropes;    // Of each block: 0 none, 1 rope, 2 local_rope; empty: 1.
  double attention_scale = 0, attention_cap = 0, final_cap = 0, embedding_scale = 1;
  int64_t experts = 0, experts_used = 0;
  bool renormalise = true;
  // How its files hold it.
  bool pairs = false;     // GGUF: neighbours turn together.
  bool less_one = false;  // Hugging Face: norms' weights less 1.
  bool fused_query = false, fused_gate = false, transposed = false;
  std::string config;                            // Further members of config.json.
  std::string prefix;                            // Of Hugging Face names.
  std::map<std::string, double> gguf_numbers;    // Further keys below the architecture: floats,
  std::map<std::string, int64_t> gguf_integers;  // and integers.
  std::string gguf_scaling;                      // "rope.scaling.type".
};

// One a family, and further ones for what only some of its models have.
std::vector<TinyFamily> tiny_families();

// Random weights by role and block, in the order that its formulas want: rotate-half, [out, in].
using TinyWeights = std::map<std::string, std::vector<float>>;
TinyWeights tiny_weights(const TinyFamily& family, uint64_t seed);

// The bytes in a file of each row of a matrix that has a type of its own, by the numbers that they
// stand for: rows are moved when files are made, never changed.
struct TinyRows {
  std::string type;  // As GGUF spells it.
  std::map<std::vector<float>, ByteVector> bytes;
};

// The same with random blocks of such a type in the matrices; `rows` gets them. REQUIRES: blocks
// divide rows: see in_blocks_of_256.
TinyWeights tiny_weights(const TinyFamily& family, uint64_t seed, DType type, TinyRows& rows);
// The family with rows as long as blocks of 256 elements need.
TinyFamily in_blocks_of_256(TinyFamily family);

void write_folder(const std::filesystem::path& folder, const TinyFamily& family,
                  const TinyWeights& weights);
GgufMaker gguf_of(const TinyFamily& family, const TinyWeights& weights,
                  const TinyRows* rows = nullptr);

// Whether what quantised matrices are multiplied with is rounded as EXACT.md says, and keys and
// values to halves; or nothing is.
enum class Rounding : uint8_t { kNone, kAsQuantised };

struct Float64Rows {
  std::vector<std::vector<double>> logits;    // After each of the tokens.
  std::vector<std::vector<int64_t>> experts;  // That each of them went to, in all blocks.
};

// In a session of `context` positions.
Float64Rows float64_rows(const TinyFamily& family, const TinyWeights& weights,
                         const std::vector<int32_t>& tokens, int64_t context,
                         Rounding rounding = Rounding::kNone);

}  // namespace shoal::compute
