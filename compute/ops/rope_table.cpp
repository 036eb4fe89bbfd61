#include "compute/ops/rope_table.h"

#include <bit>

#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

// A number as the unevaluated sum of two doubles, about 105 bits: an angle of 100,000 radians keeps
// nothing of its turn in a double's 53. Sums after Knuth, products after Dekker, without fma.
struct Wide {
  double high = 0.0;
  double low = 0.0;
};

Wide two_sum(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

Wide two_product(double a, double b) {
  constexpr double kSplit = 134217729.0;  // 2^27 + 1
  const double a_scaled = a * kSplit, b_scaled = b * kSplit;
  const double a_high = a_scaled - (a_scaled - a), b_high = b_scaled - (b_scaled - b);
  const double a_low = a - a_high, b_low = b - b_high;
  const double product = a * b;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

Wide add(Wide a, Wide b) {
  const Wide high = two_sum(a.high, b.high);
  return two_sum(high.high, high.low + (a.low + b.low));
}

Wide multiply(Wide a, Wide b) {
  const Wide high = two_product(a.high, b.high);
  return two_sum(high.high, high.low + (a.high * b.low + a.low * b.high));
}

Wide divide(Wide a, Wide b) {
  const double first = a.high / b.high;
  const Wide rest = add(a, multiply({-first, 0.0}, b));
  const double second = rest.high / b.high;
  const Wide rest2 = add(rest, multiply({-second, 0.0}, b));
  return add(two_sum(first, second), {rest2.high / b.high, 0.0});
}

constexpr Wide kLn2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
constexpr Wide kHalfPi{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};

// To the nearest integer. REQUIRES: |x| < 2^51.
double round_to_integer(double x) {
  constexpr double kMagic = 0x1.8p52;
  return (x + kMagic) - kMagic;
}

// ln x = exponent * ln 2 + 2 atanh((m - 1) / (m + 1)). REQUIRES: x is positive and normal.
Wide natural_log(double x) {
  uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFu) | 0x3FF0000000000000u);
  if (m > 1.4142135623730951) {
    m = m * 0.5;
    exponent += 1;
  }
  const Wide z = divide(two_sum(m, -1.0), two_sum(m, 1.0));
  const Wide z2 = multiply(z, z);
  Wide sum;
  for (int k = 45; k >= 1; k -= 2)
    sum = add(divide({1.0, 0.0}, {double(k), 0.0}), multiply(z2, sum));
  return add(multiply({double(exponent), 0.0}, kLn2), multiply({2.0, 0.0}, multiply(z, sum)));
}

// e^x by halving the argument nine times and squaring back. REQUIRES: |x| < 700.
Wide exponential(Wide x) {
  const double n = round_to_integer(x.high / kLn2.high);
  Wide r = add(x, multiply({-n, 0.0}, kLn2));
  r = {r.high * 0x1p-9, r.low * 0x1p-9};
  Wide sum{1.0, 0.0};
  for (int k = 14; k >= 1; --k) sum = add({1.0, 0.0}, divide(multiply(r, sum), {double(k), 0.0}));
  for (int i = 0; i < 9; ++i) sum = multiply(sum, sum);
  const double scale =
      std::bit_cast<double>(static_cast<uint64_t>(1023 + static_cast<int64_t>(n)) << 52);
  return {sum.high * scale, sum.low * scale};
}

// theta^(-2 pair / rotary) / linear_factor / the pair's divisor.
Wide frequency(const RopeSpec& spec, int64_t context, uint32_t pair) {
  const Wide exponent = divide({-2.0 * pair, 0.0}, {double(spec.rotary), 0.0});
  const Wide power =
      pair == 0 ? Wide{1.0, 0.0} : exponential(multiply(exponent, natural_log(spec.theta)));
  const Wide slower = divide(power, {spec.linear_factor, 0.0});
  const bool far = !spec.long_divisors.empty() && context > spec.long_beyond;
  const std::vector<double>& divisors = far ? spec.long_divisors : spec.divisors;
  return divisors.empty() ? slower : divide(slower, {divisors[pair], 0.0});
}

// Taylor's series: on |x| <= pi / 4 the first term left out is below 2^-60.
double sin_series(double x) {
  const double x2 = x * x;
  double sum = 0.0;
  for (int k = 19; k >= 3; k -= 2) sum = (-1.0 - sum) * x2 / double(k * (k - 1));
  return x + x * sum;
}

double cos_series(double x) {
  const double x2 = x * x;
  double sum = 0.0;
  for (int k = 20; k >= 2; k -= 2) sum = (-1.0 - sum) * x2 / double(k * (k - 1));
  return 1.0 + sum;
}

CosSin angle(Wide frequency, int64_t position) {
  const Wide whole = multiply({double(position), 0.0}, frequency);
  const double turns = round_to_integer(whole.high / kHalfPi.high);
  const Wide rest = add(whole, multiply({-turns, 0.0}, kHalfPi));
  const double x = rest.high + rest.low;
  const double c = cos_series(x), s = sin_series(x);
  switch (static_cast<int64_t>(turns) & 3) {
    case 0: return {c, s};
    case 1: return {-s, c};
    case 2: return {-c, -s};
    default: return {s, -c};
  }
}

}  // namespace

CosSin rope_angle(const RopeSpec& spec, int64_t position, uint32_t pair) {
  return angle(frequency(spec, 1, pair), position);
}

double rope_frequency(const RopeSpec& spec, uint32_t pair) { return frequency(spec, 1, pair).high; }

double plain_log(double x) { return natural_log(x).high; }

double plain_exp(double x) { return exponential({x, 0.0}).high; }

std::vector<float> make_rope_table(const RopeSpec& spec, int64_t context) {
  const int64_t half = spec.rotary / 2;
  std::vector<Wide> frequencies;
  for (int64_t i = 0; i < half; ++i)
    frequencies.push_back(frequency(spec, context, static_cast<uint32_t>(i)));
  std::vector<float> table;
  table.reserve(static_cast<size_t>(context * half * 2));
  for (int64_t position = 0; position < context; ++position) {
    for (int64_t i = 0; i < half; ++i) {
      const CosSin turn = angle(frequencies[i], position);
      table.push_back(exact::exact_factor(static_cast<float>(turn.cos * spec.magnitude)));
      table.push_back(exact::exact_factor(static_cast<float>(turn.sin * spec.magnitude)));
    }
  }
  return table;
}

}  // namespace shoal::compute
