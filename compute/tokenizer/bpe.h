#pragma once
// Decides which neighbouring symbols of a word are joined, in which order: byte-pair encoding, by
// the rank of merges or by the score of tokens. Touches neither text rules nor special tokens.

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shoal {

// A piece of a word: `id` is its token, or kNoToken for a character that is none by itself (two
// such may still join into a token when tokens join by score).
struct Symbol {
  uint32_t begin = 0;
  uint32_t size = 0;
  int32_t id = -1;
};

inline constexpr int32_t kNoToken = -1;

struct MergeRule {
  uint32_t rank = 0;
  int32_t result = kNoToken;
};

// From a pair of token ids to its rule.
using MergeTable = std::unordered_map<uint64_t, MergeRule>;

inline uint64_t merge_key(int32_t left, int32_t right) {
  return (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
}

// From a token's text to its id; only tokens that plain text may become.
using TextTable = std::unordered_map<std::string_view, int32_t>;

// What a merge cost, so that tests can hold it to n log n without a clock.
struct MergeWork {
  uint64_t queued = 0;
  uint64_t merged = 0;
};

// Joins until no rule applies: the lowest rank first, among equals the leftmost. `symbols` are
// adjacent and in order.
void merge_by_rank(std::vector<Symbol>& symbols, const MergeTable& merges, MergeWork& work);

// Joins neighbours whose joined text is a token: the highest score first, among equals the
// leftmost. `text` is what the symbols span; no token is longer than `token_bytes_max`.
void merge_by_score(std::vector<Symbol>& symbols, std::string_view text, const TextTable& tokens,
                    const std::vector<float>& scores, size_t token_bytes_max, MergeWork& work);

}  // namespace shoal
