#include "compute/tokenizer/bpe.h"

#include <bit>
#include <optional>
#include <queue>

namespace shoal {
namespace {

constexpr uint32_t kNone = 0xFFFFFFFF;

// A join that was possible when it was queued. It is stale when the two symbols no longer are
// neighbours of the same joined size.
struct Candidate {
  uint32_t priority;  // The lowest goes first.
  uint32_t left;
  uint32_t right;
  uint32_t size;
  int32_t result;
};

struct GoesLater {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.priority != b.priority ? a.priority > b.priority : a.left > b.left;
  }
};

// `find` answers whether two neighbours join: priority and resulting token.
template <class Find>
void merge(std::vector<Symbol>& symbols, MergeWork& work, const Find& find) {
  const uint32_t count = static_cast<uint32_t>(symbols.size());
  if (count < 2) return;

  std::vector<uint32_t> previous(count), next(count);
  for (uint32_t i = 0; i < count; ++i) {
    previous[i] = i == 0 ? kNone : i - 1;
    next[i] = i + 1 == count ? kNone : i + 1;
  }
  std::priority_queue<Candidate, std::vector<Candidate>, GoesLater> queue;
  const auto offer = [&](uint32_t left, uint32_t right) {
    if (left == kNone || right == kNone) return;
    const std::optional<MergeRule> rule = find(symbols[left], symbols[right]);
    if (!rule) return;
    queue.push({rule->rank, left, right, symbols[left].size + symbols[right].size, rule->result});
    work.queued += 1;
  };
  for (uint32_t i = 0; i + 1 < count; ++i) offer(i, i + 1);

  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[best.left];
    Symbol& right = symbols[best.right];
    // A symbol that was joined to its left neighbour has size 0.
    if (left.size == 0 || right.size == 0 || next[best.left] != best.right ||
        left.size + right.size != best.size) {
      continue;
    }
    left.size = best.size;
    left.id = best.result;
    right.size = 0;
    next[best.left] = next[best.right];
    if (next[best.left] != kNone) previous[next[best.left]] = best.left;
    work.merged += 1;
    offer(previous[best.left], best.left);
    offer(best.left, next[best.left]);
  }
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.size == 0; });
}

// Higher scores become lower numbers; the order of finite floats is kept.
uint32_t priority_of_score(float score) {
  const uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 becomes +0.
  const uint32_t ascending = (bits & 0x80000000u) ? ~bits : bits | 0x80000000u;
  return ~ascending;
}

}  // namespace

void merge_by_rank(std::vector<Symbol>& symbols, const MergeTable& merges, MergeWork& work) {
  merge(symbols, work, [&](const Symbol& left, const Symbol& right) -> std::optional<MergeRule> {
    const auto rule = merges.find(merge_key(left.id, right.id));
    if (rule == merges.end()) return std::nullopt;
    return rule->second;
  });
}

void merge_by_score(std::vector<Symbol>& symbols, std::string_view text, const TextTable& tokens,
                    const std::vector<float>& scores, size_t token_bytes_max, MergeWork& work) {
  merge(symbols, work, [&](const Symbol& left, const Symbol& right) -> std::optional<MergeRule> {
    const size_t size = size_t{left.size} + right.size;
    if (size > token_bytes_max) return std::nullopt;
    const auto token = tokens.find(text.substr(left.begin, size));
    if (token == tokens.end()) return std::nullopt;
    return MergeRule{priority_of_score(scores[static_cast<size_t>(token->second)]), token->second};
  });
}

}  // namespace shoal
