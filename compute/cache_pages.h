#pragma once
// Decides which pages of a stage's caches hold which positions of which sequence, and which of them
// sequences share. Pure: it moves no bytes, and says what has to be moved.

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace shoal::compute {

class CachePages {
 public:
  // REQUIRES: all are positive, and `pages` fits 31 bits.
  CachePages(int64_t sequences, int64_t pages, int64_t page_positions);

  // Positions first .. last - 1 of a sequence.
  struct Range {
    uint32_t sequence = 0;
    int64_t first = 0;
    int64_t last = 0;
  };
  struct Copy {
    uint32_t from = 0;
    uint32_t to = 0;
  };

  // Gives each range pages that are its sequence's alone. kNoSpace with figures, and all as it was,
  // when there are not enough. The caller makes the copies before it writes to any of the ranges.
  // REQUIRES: a range begins at or before the end of what its sequence has pages for, and each
  // sequence stands in one range at most.
  Result<std::vector<Copy>> make_writable(std::span<const Range> ranges);

  // The pages of a sequence, in the order of its positions.
  std::span<const uint32_t> pages_of(uint32_t sequence) const { return lists_[sequence]; }

  // Makes `to` the first `positions` of `from`, by sharing their pages; what it was is gone.
  // REQUIRES: the sequences differ, and `from` has pages for so many positions.
  void fork(uint32_t from, uint32_t to, int64_t positions);

  // Forgets all positions from `length` on.
  void trim(uint32_t sequence, int64_t length);

  int64_t free_pages() const { return static_cast<int64_t>(free_.size()); }
  int64_t pages() const { return static_cast<int64_t>(users_.size()); }

 private:
  int64_t pages_for(int64_t positions) const {
    return (positions + page_positions_ - 1) / page_positions_;
  }
  bool take(std::span<const Range> ranges, std::vector<Copy>& copies);
  void let_go(uint32_t page);

  int64_t page_positions_;
  std::vector<std::vector<uint32_t>> lists_;  // Of each sequence.
  std::vector<uint32_t> users_;               // How many lists a page stands in.
  std::vector<uint32_t> free_;                // A page with no users; the next one is the last.
};

}  // namespace shoal::compute
