#include "coordinator/work/figures.h"

#include <cmath>
#include <cstdio>
#include <iterator>

namespace shoal {
namespace {

std::string printed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

}  // namespace

std::string figure_text(double value) {
  if (!std::isfinite(value)) return "no end of";
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size < 0.001) {
    char text[64];
    std::snprintf(text, sizeof text, "%.2g", value);
    return text;
  }
  // Decimals such that three digits are seen; what rounds up to one more digit loses one.
  if (size < 0.0995) return printed(value, 4);
  if (size < 0.995) return printed(value, 3);
  if (size < 9.995) return printed(value, 2);
  if (size < 99.95) return printed(value, 1);
  std::string text = printed(value, 0);
  for (size_t at = text.size(); at > 3 + (value < 0 ? 1u : 0u);) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

std::string unit_text(double value, const char* unit) {
  static constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  while (std::abs(value) >= 999.5 && prefix + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++prefix;
  }
  return figure_text(value) + " " + kPrefixes[prefix] + unit;
}

std::string seconds_text(double seconds) {
  if (!std::isfinite(seconds)) return "for ever";
  if (seconds < 1e-3) return figure_text(seconds * 1e6) + " us";
  if (seconds < 1) return figure_text(seconds * 1e3) + " ms";
  if (seconds < 120) return figure_text(seconds) + " s";
  if (seconds < 7200) return figure_text(seconds / 60) + " min";
  return figure_text(seconds / 3600) + " h";
}

std::string percent_text(double part) {
  return (part < 0.0995 ? figure_text(part * 100) : printed(part * 100, 0)) + " %";
}

std::string count_text(long long count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

}  // namespace shoal
