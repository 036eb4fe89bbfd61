#pragma once
// What columns hold: enumerators as words, digests, and the one number of a query. The store checks
// that there are no other words.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/digest.h"
#include "base/sqlite/database.h"

namespace shoal {

template <class Enum, size_t N>
std::string_view word(const std::array<std::string_view, N>& words, Enum value) {
  return words.at(static_cast<size_t>(value));
}
template <class Enum, size_t N>
Enum value_of(const std::array<std::string_view, N>& words, const std::string& text) {
  const auto found = std::ranges::find(words, text);
  SHOAL_CHECK(found != words.end());
  return static_cast<Enum>(found - words.begin());
}

// Nothing where the column is empty.
inline Result<std::optional<Digest>> digest_of_column(const Query& query, int column) {
  const ByteVector bytes = query.blob(column);
  if (bytes.empty()) return std::optional<Digest>();
  SHOAL_TRY_ASSIGN(digest, Digest::from_bytes(bytes));
  return std::optional<Digest>(digest);
}

// 0 without a row.
inline Result<int64_t> one_number(Query query) {
  SHOAL_TRY_ASSIGN(some, query.row());
  return some ? query.integer(0) : 0;
}

}  // namespace shoal
