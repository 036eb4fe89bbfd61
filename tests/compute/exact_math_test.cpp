// Goal: the exact functions are as accurate as docs/EXACT.md promises, on their whole domain and at
// its bounds. Method: a seeded sample and the boundaries against long double; conversions of halves
// against an oracle that rounds by integers of the C library; rope's table against long double
// libm. The worst errors are printed. (All 2^32 inputs: shoal-run bench.)

#include <QTest>

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/random.h"
#include "compute/ops/rope_table.h"
#include "shaders/exact_math.h"

using namespace shoal;
using namespace shoal::exact;

namespace {

constexpr uint64_t kSeed = 20240117;
constexpr int kSample = 2'000'000;

// In units of the last place of the f32 nearest to `wanted`.
double ulps(float got, long double wanted) {
  const float nearest = static_cast<float>(wanted);
  const int exponent = nearest == 0.0f ? -126 : std::max(std::ilogb(nearest), -126);
  return static_cast<double>(std::fabs((got - wanted) / std::ldexp(1.0L, exponent - 23)));
}

struct Worst {
  double error = 0;
  float at = 0;
  void see(double e, float x) {
    if (e > error || std::isnan(e)) error = e, at = x;
  }
  void print(const char* name) const {
    std::printf("%-16s worst %.3f ulp at %a (%g)\n", name, error, double(at), double(at));
  }
};

// A magnitude whose exponent is as likely as any other between the two.
float log_uniform(Random& random, int exponent_min, int exponent_max) {
  const auto exponent =
      static_cast<int>(random.below(uint64_t(exponent_max - exponent_min))) + exponent_min;
  return std::ldexp(1.0f + static_cast<float>(random.below(1u << 23)) * 0x1p-23f, exponent);
}

// What f32 to half means, by nearbyint's ties to even.
uint32_t half_oracle(float x) {
  const uint32_t sign = std::signbit(x) ? 0x8000u : 0u;
  if (std::isnan(x)) return sign | 0x7E00u;
  const double magnitude = std::fabs(double(x));
  if (magnitude >= 65520.0) return sign | 0x7C00u;
  const int exponent = magnitude < 0x1p-14 ? -14 : std::ilogb(magnitude);
  const auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  // 1024 steps make the next exponent; of subnormals they make the first normal half.
  if (magnitude < 0x1p-14) return sign | steps;
  return sign | ((static_cast<uint32_t>(exponent + 15) << 10) + (steps - 1024));
}

}  // namespace

class ExactMathTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void exp_is_within_two_ulps();
  void reciprocal_is_within_two_ulps();
  void rsqrt_is_within_two_ulps();
  void sigmoid_is_within_four_ulps();
  void tanh_is_within_four_ulps();
  void gelu_is_near_its_formula();
  void soft_cap_bends_at_its_cap();
  void rounding_ties_to_even();
  void flushing_has_sharp_bounds();
  void halves_convert_both_ways();
  void blocks_quantise_within_half_a_step();
  void rope_tables_match_long_double();
};

void ExactMathTest::exp_is_within_two_ulps() {
  Random random(kSeed);
  Worst worst;
  const auto see = [&](float x) {
    worst.see(ulps(exact_exp(x), std::exp(static_cast<long double>(x))), x);
  };
  for (int i = 0; i < kSample; ++i) see(static_cast<float>(random.uniform() * 149.0 - 69.0));
  for (int i = 0; i < kSample / 4; ++i) see(-log_uniform(random, -40, 6));
  // Both sides of every change of n.
  for (int n = -99; n <= 114; ++n) {
    const auto turn = static_cast<float>((n + 0.5) * 0.6931471805599453);
    for (float x = std::nextafter(turn, -100.0f), i = 0; i < 3; ++i, x = std::nextafter(x, 100.0f))
      see(x);
  }
  for (const float x : {0.0f, -0.0f, 1.0f, -1.0f, -69.0f, 80.0f, 0x1p-149f, -0x1p-126f}) see(x);
  worst.print("exp");
  QVERIFY(worst.error <= 2.0);
  QCOMPARE(exact_exp(0.0f), 1.0f);
  QCOMPARE(exact_exp(std::nextafter(-69.0f, -70.0f)), 0.0f);
  QCOMPARE(exact_exp(-std::numeric_limits<float>::infinity()), 0.0f);
  QCOMPARE(exact_exp(std::numeric_limits<float>::max()), exact_exp(80.0f));
  QVERIFY(exact_exp(-69.0f) >= 0x1p-100f);
  QVERIFY(std::isnan(exact_exp(std::numeric_limits<float>::quiet_NaN())));
}

void ExactMathTest::reciprocal_is_within_two_ulps() {
  Random random(kSeed);
  Worst worst;
  const auto see = [&](float x) {
    worst.see(ulps(exact_reciprocal(x), 1.0L / x), x);
    worst.see(ulps(exact_reciprocal(-x), -1.0L / x), -x);
  };
  for (int i = 0; i < kSample; ++i) see(log_uniform(random, -100, 100));
  for (int e = -100; e <= 100; ++e) {
    const float x = std::ldexp(1.0f, e);
    see(x);
    if (e < 100) see(std::nextafter(x, 0x1p127f));
    if (e > -100) see(std::nextafter(x, 0.0f));
  }
  worst.print("reciprocal");
  QVERIFY(worst.error <= 2.0);
  QCOMPARE(exact_reciprocal(1.0f), 1.0f);
  QCOMPARE(exact_reciprocal(0.0f), exact_reciprocal(0x1p-100f));
  QCOMPARE(exact_reciprocal(-0x1p-140f), exact_reciprocal(-0x1p-100f));
  QCOMPARE(exact_reciprocal(0x1p120f), exact_reciprocal(0x1p100f));
}

void ExactMathTest::rsqrt_is_within_two_ulps() {
  Random random(kSeed);
  Worst worst;
  const auto see = [&](float x) {
    worst.see(ulps(exact_rsqrt(x), 1.0L / std::sqrt(static_cast<long double>(x))), x);
  };
  for (int i = 0; i < kSample; ++i) see(log_uniform(random, -100, 128));
  for (int e = -100; e <= 127; ++e) {
    const float x = std::ldexp(1.0f, e);
    see(x);
    see(std::nextafter(x, std::numeric_limits<float>::infinity()));
    if (e > -100) see(std::nextafter(x, 0.0f));
  }
  see(std::numeric_limits<float>::max());
  worst.print("rsqrt");
  QVERIFY(worst.error <= 2.0);
  QCOMPARE(exact_rsqrt(0.0f), exact_rsqrt(0x1p-100f));
  QCOMPARE(exact_rsqrt(0x1p-149f), exact_rsqrt(0x1p-100f));
}

void ExactMathTest::sigmoid_is_within_four_ulps() {
  Random random(kSeed);
  Worst worst;
  const auto see = [&](float x) {
    worst.see(ulps(exact_sigmoid(x), 1.0L / (1.0L + std::exp(-static_cast<long double>(x)))), x);
  };
  for (int i = 0; i < kSample; ++i) see(static_cast<float>(random.uniform() * 138.0 - 69.0));
  for (int i = 0; i < kSample / 4; ++i)
    see(log_uniform(random, -60, 6) * (i % 2 == 0 ? 1.0f : -1.0f));
  for (const float x : {0.0f, -0.0f, -69.0f, 69.0f, 100.0f, 3e38f}) see(x);
  worst.print("sigmoid");
  QVERIFY(worst.error <= 4.0);
  QCOMPARE(exact_sigmoid(-100.0f), 0.0f);
  QCOMPARE(exact_sigmoid(-3e38f), 0.0f);
  QCOMPARE(exact_silu(-3e38f), 0.0f);
  QVERIFY(!std::signbit(exact_silu(-3e38f)));
  QCOMPARE(exact_silu(3e38f), 3e38f);
}

void ExactMathTest::tanh_is_within_four_ulps() {
  Random random(kSeed);
  Worst worst;
  const auto see = [&](float x) {
    worst.see(ulps(exact_tanh(x), std::tanh(static_cast<long double>(x))), x);
    QCOMPARE(exact_tanh(-x), -exact_tanh(x));
  };
  for (int i = 0; i < kSample; ++i) see(log_uniform(random, -99, 7));
  for (int i = 0; i < kSample / 4; ++i) see(static_cast<float>(random.uniform() * 10.0));
  for (const float bound : {0x1p-12f, 0.625f, 0x1p-100f, 34.5f}) {
    see(bound);
    see(std::nextafter(bound, 100.0f));
    if (bound > 0x1p-100f) see(std::nextafter(bound, 0.0f));
  }
  worst.print("tanh");
  QVERIFY(worst.error <= 4.0);
  QCOMPARE(exact_tanh(std::nextafter(0x1p-100f, 0.0f)), 0.0f);
  QCOMPARE(exact_tanh(std::numeric_limits<float>::max()), 1.0f);
}

// Where the result is far below x it is a difference of large numbers in the exponent, so that no
// relative bound holds; what matters is the error against x.
void ExactMathTest::gelu_is_near_its_formula() {
  Random random(kSeed);
  double worst_tanh = 0, worst_erf = 0;
  const auto see = [&](float x) {
    const long double u = 0.7978845608028653559L * (x + 0.044715L * x * x * x);
    const long double by_tanh = 0.5L * x * (1.0L + std::tanh(u));
    const long double by_erf = 0.5L * x * std::erfc(-static_cast<long double>(x) / std::sqrt(2.0L));
    const double unit = std::fabs(double(x));
    worst_tanh = std::max(worst_tanh, std::fabs(double(exact_gelu_tanh(x) - by_tanh)) / unit);
    worst_erf = std::max(worst_erf, std::fabs(double(exact_gelu_erf(x) - by_erf)) / unit);
  };
  for (int i = 0; i < kSample / 4; ++i) see(static_cast<float>(random.uniform() * 40.0 - 20.0));
  for (int i = 0; i < kSample / 4; ++i) {
    const float x = log_uniform(random, -90, 100);
    see(x);
    see(-x);
  }
  for (const float bound : {9.0f, 16.0f, 0x1p-50f, 13.0f}) {
    for (const float x : {bound, std::nextafter(bound, 100.0f), std::nextafter(bound, 0.0f)}) {
      see(x);
      see(-x);
    }
  }
  std::printf("%-16s worst %.2e of x by tanh, %.2e by erf\n", "gelu", worst_tanh, worst_erf);
  QVERIFY(worst_tanh <= 3e-7);
  QVERIFY(worst_erf <= 3e-7);
  QCOMPARE(exact_gelu_tanh(0.0f), 0.0f);
  QCOMPARE(exact_gelu_erf(0.0f), 0.0f);
  const float most = std::numeric_limits<float>::max();
  QCOMPARE(exact_gelu_tanh(most), most);
  QCOMPARE(exact_gelu_erf(most), most);
  QCOMPARE(exact_gelu_tanh(-most), 0.0f);
}

void ExactMathTest::soft_cap_bends_at_its_cap() {
  Random random(kSeed);
  for (const float cap : {30.0f, 50.0f, 0.25f}) {
    Worst worst;
    for (int i = 0; i < kSample / 8; ++i) {
      const float x = log_uniform(random, -80, 20);
      worst.see(ulps(exact_soft_cap(x, cap, 1.0f / cap),
                     cap * std::tanh(static_cast<long double>(x) / cap)),
                x);
    }
    worst.print("soft cap");
    QVERIFY(worst.error <= 6.0);
    QCOMPARE(exact_soft_cap(1e30f, cap, 1.0f / cap), cap);
  }
}

void ExactMathTest::rounding_ties_to_even() {
  Random random(kSeed);
  for (int i = -4000; i <= 4000; ++i) {
    const float x = static_cast<float>(i) * 0.25f;
    QCOMPARE(exact_round(x), std::nearbyint(x));
  }
  for (int i = 0; i < 100'000; ++i) {
    const auto x = static_cast<float>((random.uniform() - 0.5) * 8388607.0);
    QCOMPARE(exact_round(x), std::nearbyint(x));
  }
}

void ExactMathTest::flushing_has_sharp_bounds() {
  for (const float sign : {1.0f, -1.0f}) {
    QCOMPARE(exact_flush(sign * 0x1p-100f), sign * 0x1p-100f);
    QCOMPARE(std::bit_cast<uint32_t>(exact_flush(sign * std::nextafter(0x1p-100f, 0.0f))), 0u);
    QCOMPARE(std::bit_cast<uint32_t>(exact_flush(sign * 0x1p-149f)), 0u);
    QCOMPARE(exact_factor(sign * 0x1p-50f), sign * 0x1p-50f);
    QCOMPARE(std::bit_cast<uint32_t>(exact_factor(sign * std::nextafter(0x1p-50f, 0.0f))), 0u);
  }
  QCOMPARE(std::bit_cast<uint32_t>(exact_flush(-0.0f)), 0u);
  const float infinity = std::numeric_limits<float>::infinity();
  QVERIFY(exact_is_finite(std::numeric_limits<float>::max()));
  QVERIFY(!exact_is_finite(infinity) && !exact_is_finite(-infinity));
  QVERIFY(!exact_is_finite(std::numeric_limits<float>::quiet_NaN()));
  QVERIFY(std::isnan(exact_flush(std::numeric_limits<float>::quiet_NaN())));
}

void ExactMathTest::halves_convert_both_ways() {
  int wrong = 0;
  for (uint32_t h = 0; h < 65536; ++h) {
    const uint32_t exponent = (h >> 10) & 31u, mantissa = h & 1023u;
    const double sign = (h & 0x8000u) != 0 ? -1.0 : 1.0;
    const float x = exact_half_to_float(h);
    if (exponent == 31) {
      if (mantissa == 0 ? !(std::isinf(x) && std::signbit(x) == (sign < 0)) : !std::isnan(x))
        ++wrong;
      continue;
    }
    const double wanted = exponent == 0 ? sign * std::ldexp(double(mantissa), -24)
                                        : sign * std::ldexp(1024.0 + mantissa, int(exponent) - 25);
    if (double(x) != wanted || std::signbit(x) != (sign < 0)) ++wrong;
    if (exact_float_to_half(x) != h) ++wrong;
    // The middle to the next half, and its neighbours.
    const double next = exponent == 0 ? sign * std::ldexp(mantissa + 1.0, -24)
                                      : sign * std::ldexp(1025.0 + mantissa, int(exponent) - 25);
    const auto middle = static_cast<float>((wanted + next) / 2);
    for (const float y :
         {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, middle * 2)}) {
      if (exact_float_to_half(y) != half_oracle(y)) ++wrong;
    }
  }
  QCOMPARE(wrong, 0);
  Random random(kSeed);
  for (int i = 0; i < kSample; ++i) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(random.next_u64()));
    if (std::isnan(x)) {
      if ((exact_float_to_half(x) & 0x7C00u) != 0x7C00u || (exact_float_to_half(x) & 0x3FFu) == 0)
        ++wrong;
    } else if (exact_float_to_half(x) != half_oracle(x)) {
      ++wrong;
    }
  }
  QCOMPARE(wrong, 0);
  for (uint32_t h = 0; h < 65536; ++h) {
    if (std::bit_cast<uint32_t>(exact_bfloat16_to_float(h)) != h << 16) ++wrong;
  }
  QCOMPARE(wrong, 0);
}

void ExactMathTest::blocks_quantise_within_half_a_step() {
  Random random(kSeed);
  double worst = 0;
  for (int i = 0; i < 200'000; ++i) {
    const float largest = log_uniform(random, -50, 100);
    const uint32_t bits = std::bit_cast<uint32_t>(largest);
    const float scale = exact_quant_scale(bits), inverse = exact_quant_inverse(bits);
    QCOMPARE(exact_quant_value(largest, inverse), 127);
    QCOMPARE(exact_quant_value(-largest, inverse), -127);
    const float x = static_cast<float>(random.uniform() * 2.0 - 1.0) * largest;
    const double error = std::fabs(double(exact_quant_value(x, inverse)) * scale - x) / scale;
    worst = std::max(worst, error);
  }
  std::printf("%-16s worst %.6f of a step\n", "quantise", worst);
  QVERIFY(worst < 0.50002);
  QCOMPARE(exact_quant_scale(SHOAL_FACTOR_BITS - 1), 0.0f);
  QCOMPARE(exact_quant_inverse(SHOAL_FACTOR_BITS - 1), 0.0f);
  QVERIFY(exact_quant_scale(SHOAL_FACTOR_BITS) > 0.0f);
  QCOMPARE(exact_quant_value(0x1p-51f, 0.0f), 0);
}

void ExactMathTest::rope_tables_match_long_double() {
  using compute::RopeSpec;
  double worst = 0;
  Random random(kSeed);
  for (const RopeSpec& spec :
       {RopeSpec{.theta = 10000.0, .rotary = 64}, RopeSpec{.theta = 500000.0, .rotary = 128},
        RopeSpec{.theta = 1e6, .rotary = 80, .linear_factor = 8.0},
        RopeSpec{.theta = 1e15, .rotary = 512}, RopeSpec{.theta = 1.0, .rotary = 2},
        RopeSpec{.theta = 10000.0, .rotary = 2, .linear_factor = 0.5},
        RopeSpec{.theta = 10000.0, .rotary = 4, .divisors = {1.5, 32.0}}}) {
    for (int i = 0; i < 20'000; ++i) {
      const auto pair = static_cast<uint32_t>(random.below(spec.rotary / 2));
      const int64_t position = i < 64    ? i
                               : i < 128 ? 131072 - (i - 64)
                                         : int64_t(random.below(131073));
      const compute::CosSin got = compute::rope_angle(spec, position, pair);
      const long double frequency =
          std::pow(static_cast<long double>(spec.theta), -2.0L * pair / spec.rotary) /
          spec.linear_factor / (spec.divisors.empty() ? 1.0 : spec.divisors[pair]);
      const long double angle = static_cast<long double>(position) * frequency;
      worst = std::max(worst, static_cast<double>(std::fabs(got.cos - std::cos(angle))));
      worst = std::max(worst, static_cast<double>(std::fabs(got.sin - std::sin(angle))));
    }
  }
  std::printf("%-16s worst %.2e\n", "rope table", worst);
  QVERIFY(worst <= 1e-12);

  const RopeSpec spec{.theta = 10000.0, .rotary = 8};
  const std::vector<float> table = compute::make_rope_table(spec, 5);
  QCOMPARE(table.size(), size_t(5 * 4 * 2));
  for (int i = 0; i < 4; ++i) {
    QCOMPARE(table[size_t(i) * 2], 1.0f);  // Position 0 turns nothing.
    QCOMPARE(table[size_t(i) * 2 + 1], 0.0f);
  }
  QCOMPARE(table[(3 * 4 + 1) * 2], float(compute::rope_angle(spec, 3, 1).cos));
  QCOMPARE(table[(3 * 4 + 1) * 2 + 1], float(compute::rope_angle(spec, 3, 1).sin));

  // A magnitude comes last; divisors for long contexts are taken beyond their bound, for all rows.
  RopeSpec scaled = spec;
  scaled.magnitude = 1.25;
  scaled.divisors = {1, 1, 1, 1};
  scaled.long_divisors = {1, 2, 4, 8};
  scaled.long_beyond = 5;
  const std::vector<float> near = compute::make_rope_table(scaled, 5);
  const std::vector<float> far = compute::make_rope_table(scaled, 6);
  RopeSpec slow = spec;
  slow.divisors = scaled.long_divisors;
  for (int i = 0; i < 4; ++i) {
    const auto pair = static_cast<uint32_t>(i);
    const size_t at = size_t(3 * 4 + i) * 2;
    QCOMPARE(near[at], float(compute::rope_angle(spec, 3, pair).cos * 1.25));
    QCOMPARE(far[at], float(compute::rope_angle(slow, 3, pair).cos * 1.25));
    QCOMPARE(far[at + 1], float(compute::rope_angle(slow, 3, pair).sin * 1.25));
  }
}

QTEST_GUILESS_MAIN(ExactMathTest)
#include "exact_math_test.moc"
