#include "compute/sampling/likelihood.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

#include "base/check.h"
#include "shaders/exact_math.h"

namespace shoal {
namespace {

constexpr size_t kLanes = 8;

}  // namespace

double exact_ln(double x) {
  SHOAL_CHECK(x >= 1.0 && x < 0x1p63);
  constexpr uint64_t kMantissa = (uint64_t{1} << 52) - 1, kOne = uint64_t{1023} << 52;
  const auto bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & kMantissa) | kOne);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  // ln m = 2 artanh((m - 1) / (m + 1)), whose series ends below 2^-60 of its first term: the square
  // is at most 0.0295.
  const double t = (m - 1.0) / (m + 1.0);
  const double square = t * t;
  double series = 0.0;
  for (int n = 23; n >= 1; n -= 2) {
    series = series * square;
    series = series + 1.0 / static_cast<double>(n);
  }
  // ln 2 in two parts, the first of so few bits that its product with an exponent is exact.
  const double scale = static_cast<double>(exponent);
  const double high = scale * 0x1.62e42fefa38p-1;
  const double low = scale * 0x1.ef35793c7673p-45;
  const double twice = 2.0 * t;
  const double rest = twice * series;
  const double tail = rest + low;
  return high + tail;
}

Result<float> log_likelihood(std::span<const float> logits, int32_t token) {
  if (token < 0 || static_cast<size_t>(token) >= logits.size()) {
    return Error{ErrorCode::kInvalid, "token " + std::to_string(token) + " is beyond the " +
                                          std::to_string(logits.size()) + " logits"};
  }
  float largest = std::numeric_limits<float>::lowest();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!exact::exact_is_finite(logits[i])) {
      return Error{ErrorCode::kNonFinite, "logits: number " + std::to_string(i) + " is not finite"};
    }
    largest = std::max(largest, logits[i]);
  }
  double lanes[kLanes] = {};
  for (size_t i = 0; i < logits.size(); ++i) {
    lanes[i % kLanes] += static_cast<double>(exact::exact_exp(logits[i] - largest));
  }
  const double sum = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
                     ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
  const double logit = static_cast<double>(logits[static_cast<size_t>(token)]);
  const double below = logit - static_cast<double>(largest);
  const double value = below - exact_ln(sum);
  return static_cast<float>(
      std::max(value, static_cast<double>(std::numeric_limits<float>::lowest())));
}

}  // namespace shoal
