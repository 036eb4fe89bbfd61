#pragma once
// Enumerators as the words that a column holds, and back. The store checks that there are no
// others.

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/check.h"

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

}  // namespace shoal
