#pragma once
// Decides the next token from a model's logits. Pure and stateless: the chance is a function of
// seed and position, and the arithmetic is exact (docs/EXACT.md), so that every machine, and a
// replay after a failure, draws the same token.

#include <cstdint>
#include <span>

#include "base/result.h"

namespace shoal {

// The steps go in the order of llama.cpp's default chain: repetition penalty, top_k, top_p, min_p,
// then temperature. So top_p and min_p judge the probabilities at temperature 1.
struct SamplingOptions {
  float temperature = 0.8f;  // 0: always the likeliest token. Else 0.01 to 100.
  uint32_t top_k = 40;       // Keep this many of the likeliest; 0 keeps all.
  float top_p = 0.95f;       // Keep the fewest likeliest that together reach this; 1 keeps all.
  float min_p = 0.05f;       // Keep those at least this likely relative to the likeliest; 0: all.
  float repetition_penalty = 1.0f;  // 0.01 to 100; 1 changes nothing, more makes repetition rarer.
  uint32_t repetition_window = 64;  // Over how many of the last tokens; 0: over none.
  uint64_t seed = 0;

  // kInvalid, naming the option and its bounds.
  Result<void> check() const;
};

// The token for `position`. `history` are the tokens before it, prompt included, oldest first.
//
// - The penalty divides a positive logit of a token in the window, and multiplies a negative one,
//   once however often the token occurs (Hugging Face's and llama.cpp's definition).
// - Tokens are ordered by logit, the largest first, among equals the lowest id first. At
// temperature 0
//   the first one is the answer. At least the first one is always kept.
// - Probabilities are 40-bit integers relative to the likeliest, so sums have no rounding.
//
// kNonFinite when a logit is NaN or infinite; kInvalid for options that check() refuses, no logits,
// or a history with tokens beyond them.
Result<int32_t> sample(std::span<const float> logits, const SamplingOptions& options,
                       std::span<const int32_t> history, uint64_t position);

// 64 random bits for one position of one seed.
uint64_t random_bits_at(uint64_t seed, uint64_t position);

}  // namespace shoal
