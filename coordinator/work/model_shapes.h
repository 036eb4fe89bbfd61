#pragma once
// Holds the shapes of well-known models and derives from them what a plan needs: parameters,
// operations, bytes at a cut, bytes of cache. Pure. A published model's own manifest comes first;
// this is for questions about models that nobody has published here.
//
// Formulas, for a hidden row of `width` w, query heads x head size a, key and value heads x head
// size g, and a feed-forward width f. A multiply-add counts as two operations.
//   block matrices   2wa + 2wg + 2wf (gated: 3wf) parameters, two operations each for a token
//   attention        4a operations for each position that a token sees: of s tokens with a causal
//                    mask (s + 1) / 2 on average, without one s
//   head             vocabulary x w parameters (its own, or the embedding's again)
//   backward         twice the forward operations: one product for the inputs' gradients, one for
//                    the weights'
//   cut              w values for a token: 2 bytes each, or int8 in blocks of 32 with an FP16 scale
//   cache            2g values of 2 bytes for a token and block
// Norms, biases and the softmax count as parameters where they are such, and never as operations:
// they are below one in a hundred.

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

namespace shoal {

enum class ModelFamily {
  kBert,   // Two-sided attention, learned positions, biases, pooler.
  kGpt,    // Causal, learned positions, biases; the head is the embedding.
  kLlama,  // Causal, rotary positions, gated feed-forward, no biases.
};

struct ModelShape {
  const char* name;
  ModelFamily family;
  int64_t layers, width, heads, kv_heads, head_size, ffn_width, vocabulary;
  int64_t sequence;  // Positions that it was made for.
  bool tied_head;    // The head's matrix is the embedding's.
  bool qk_norm;      // A norm of each head's queries and keys.
  const char* source;
};

std::span<const ModelShape> all_model_shapes();

// kNotFound with the names that are known. Case and dashes do not matter.
Result<const ModelShape*> find_model_shape(std::string_view name);

// Parameters.
int64_t block_parameters(const ModelShape& shape);
int64_t embedding_parameters(const ModelShape& shape);
int64_t head_parameters(const ModelShape& shape);  // With the final norm; the pooler of BERT.
int64_t parameters(const ModelShape& shape);

// Operations of a forward pass for one token that sees `positions` positions, itself included.
double block_flops(const ModelShape& shape, double positions);
double head_flops(const ModelShape& shape);

// How many positions a token of a whole sequence sees on average.
double mean_positions(const ModelShape& shape, int64_t sequence);

// For each token of a whole sequence; every token's logits are computed.
double forward_flops(const ModelShape& shape, int64_t sequence);
double backward_flops(const ModelShape& shape, int64_t sequence);
// The usual short rule, two operations for each parameter: what docs/SOURCES.md 1 counts with. It
// leaves the attention out and counts the embedding, which computes nothing.
double forward_flops_by_rule(const ModelShape& shape);

// Bytes of a value on its way or in memory.
constexpr double kHalfBytes = 2;
constexpr double kInt8BlockBytes = 1 + 2.0 / 32;  // 32 int8 values and an FP16 scale.
constexpr double kInt4BlockBytes = 0.5 + 2.0 / 32;

double boundary_bytes(const ModelShape& shape, double bytes_per_value);  // A token, at one cut.
double cache_bytes(const ModelShape& shape);                             // A token and block.

}  // namespace shoal
