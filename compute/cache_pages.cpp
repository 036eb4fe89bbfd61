#include "compute/cache_pages.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/check.h"

namespace shoal::compute {

CachePages::CachePages(int64_t sequences, int64_t pages, int64_t page_positions)
    : page_positions_(page_positions),
      lists_(static_cast<size_t>(sequences)),
      users_(static_cast<size_t>(pages)) {
  SHOAL_CHECK(sequences > 0 && page_positions > 0 && pages > 0 &&
              pages <= std::numeric_limits<int32_t>::max());
  // Descending, so that a sequence which is alone lies in one piece.
  for (int64_t page = pages; page-- > 0;) free_.push_back(static_cast<uint32_t>(page));
}

Result<std::vector<CachePages::Copy>> CachePages::make_writable(std::span<const Range> ranges) {
  int64_t most = 0;  // More than are needed where ranges share a page.
  for (const Range& range : ranges) {
    SHOAL_CHECK(range.sequence < lists_.size() && range.first >= 0 && range.first < range.last);
    const std::vector<uint32_t>& list = lists_[range.sequence];
    const int64_t held = static_cast<int64_t>(list.size());
    SHOAL_CHECK(range.first <= held * page_positions_);
    for (int64_t i = range.first / page_positions_; i < pages_for(range.last); ++i) {
      if (i >= held || users_[list[static_cast<size_t>(i)]] > 1) ++most;
    }
  }
  std::vector<Copy> copies;
  if (most > free_pages()) {
    CachePages trial = *this;
    if (!trial.take(ranges, copies)) {
      return Error{ErrorCode::kNoSpace,
                   "the caches have " + std::to_string(free_pages()) + " free pages of " +
                       std::to_string(pages()) + ", of " + std::to_string(page_positions_) +
                       " positions each, and " + std::to_string(most) + " are needed"};
    }
    copies.clear();
  }
  SHOAL_CHECK(take(ranges, copies));
  return copies;
}

// Stops halfway, and says so, when no page is free.
bool CachePages::take(std::span<const Range> ranges, std::vector<Copy>& copies) {
  for (const Range& range : ranges) {
    std::vector<uint32_t>& list = lists_[range.sequence];
    for (int64_t i = range.first / page_positions_; i < pages_for(range.last); ++i) {
      const auto at = static_cast<size_t>(i);
      const bool held = at < list.size();
      if (held && users_[list[at]] == 1) continue;
      if (free_.empty()) return false;
      const uint32_t page = free_.back();
      free_.pop_back();
      users_[page] = 1;
      if (held) {
        copies.push_back({list[at], page});
        --users_[list[at]];
        list[at] = page;
      } else {
        list.push_back(page);
      }
    }
  }
  return true;
}

void CachePages::let_go(uint32_t page) {
  if (--users_[page] == 0) free_.push_back(page);
}

void CachePages::fork(uint32_t from, uint32_t to, int64_t positions) {
  SHOAL_CHECK(from < lists_.size() && to < lists_.size() && from != to && positions >= 0);
  const auto count = static_cast<size_t>(pages_for(positions));
  SHOAL_CHECK(count <= lists_[from].size());
  trim(to, 0);
  lists_[to].assign(lists_[from].begin(), lists_[from].begin() + static_cast<ptrdiff_t>(count));
  for (const uint32_t page : lists_[to]) ++users_[page];
}

void CachePages::trim(uint32_t sequence, int64_t length) {
  SHOAL_CHECK(sequence < lists_.size() && length >= 0);
  std::vector<uint32_t>& list = lists_[sequence];
  const auto keep = static_cast<size_t>(pages_for(length));
  // The last one first, so that the next to come lies as this one did.
  while (list.size() > keep) {
    let_go(list.back());
    list.pop_back();
  }
}

}  // namespace shoal::compute
