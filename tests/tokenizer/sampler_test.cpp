// Goal: the sampler draws what its options say, and the same token on every machine and replay.

#include "compute/sampling/sampler.h"

#include <QTest>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace shoal {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Nothing filters, the temperature changes nothing.
SamplingOptions plain() { return {.temperature = 1.0f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f}; }

// All tokens that many draws give.
std::set<int32_t> drawn(const std::vector<float>& logits, const SamplingOptions& options,
                        const std::vector<int32_t>& history = {}) {
  std::set<int32_t> tokens;
  for (uint64_t position = 0; position < 2000; ++position) {
    tokens.insert(sample(logits, options, history, position).value());
  }
  return tokens;
}

// Logits of the given probabilities.
std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

using Tokens = std::set<int32_t>;

}  // namespace

class SamplerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void temperature_zero_takes_the_lowest_of_the_largest();
  void top_k_keeps_so_many_and_one_is_greedy();
  void top_k_breaks_ties_by_id();
  void top_p_keeps_the_fewest_that_reach_it();
  void top_p_judges_what_top_k_left();
  void min_p_is_relative_to_the_likeliest();
  void filters_come_before_temperature();
  void penalty_follows_the_sign_and_the_window();
  void draws_follow_the_probabilities();
  void equal_logits_are_equally_likely();
  void equal_seed_and_position_draw_the_same();
  void draws_are_pinned();
  void positions_and_seeds_are_unrelated();
  void extreme_logits_do_no_harm();
  void refuses_what_is_not_finite();
  void refuses_bad_options_by_name();
  void refuses_bad_arguments();
};

void SamplerTest::temperature_zero_takes_the_lowest_of_the_largest() {
  SamplingOptions options = plain();
  options.temperature = 0.0f;
  QCOMPARE(sample(std::vector<float>{1, 3, 3, 2}, options, {}, 0).value(), 1);
  QCOMPARE(sample(std::vector<float>{-5}, options, {}, 0).value(), 0);
  // -0 and +0 are equal.
  QCOMPARE(sample(std::vector<float>{-1.0f, -0.0f, 0.0f}, options, {}, 0).value(), 1);
  QCOMPARE(drawn({1, 3, 3, 2}, options), Tokens({1}));
}

void SamplerTest::top_k_keeps_so_many_and_one_is_greedy() {
  const std::vector<float> logits = {0.0f, 0.3f, 0.1f, 0.2f};
  SamplingOptions options = plain();
  options.top_k = 1;
  QCOMPARE(drawn(logits, options), Tokens({1}));
  options.top_k = 3;
  QCOMPARE(drawn(logits, options), Tokens({1, 2, 3}));
  options.top_k = 4;
  QCOMPARE(drawn(logits, options), Tokens({0, 1, 2, 3}));
  options.top_k = 5;
  QCOMPARE(drawn(logits, options), Tokens({0, 1, 2, 3}));
  options.top_k = 0;
  QCOMPARE(drawn(logits, options), Tokens({0, 1, 2, 3}));
}

void SamplerTest::top_k_breaks_ties_by_id() {
  SamplingOptions options = plain();
  options.top_k = 2;
  QCOMPARE(drawn({7, 7, 7, 7}, options), Tokens({0, 1}));
  QCOMPARE(drawn({7, 8, 7, 7}, options), Tokens({0, 1}));
}

void SamplerTest::top_p_keeps_the_fewest_that_reach_it() {
  SamplingOptions options = plain();
  // Four equal tokens: a quarter each, exactly.
  const std::vector<float> equal = {1, 1, 1, 1};
  options.top_p = 0.5f;
  QCOMPARE(drawn(equal, options), Tokens({0, 1}));
  options.top_p = std::nextafter(0.5f, 1.0f);
  QCOMPARE(drawn(equal, options), Tokens({0, 1, 2}));
  options.top_p = 0.0f;
  QCOMPARE(drawn(equal, options), Tokens({0}));
  options.top_p = 1.0f;
  QCOMPARE(drawn(equal, options), Tokens({0, 1, 2, 3}));

  const std::vector<float> uneven = logits_of({0.1, 0.6, 0.3});
  options.top_p = 0.59f;
  QCOMPARE(drawn(uneven, options), Tokens({1}));
  options.top_p = 0.61f;
  QCOMPARE(drawn(uneven, options), Tokens({1, 2}));
  options.top_p = 0.91f;
  QCOMPARE(drawn(uneven, options), Tokens({0, 1, 2}));
}

void SamplerTest::top_p_judges_what_top_k_left() {
  SamplingOptions options = plain();
  options.top_k = 2;
  options.top_p = 0.74f;  // 0.6 of 0.8 is 0.75.
  QCOMPARE(drawn(logits_of({0.6, 0.2, 0.2}), options), Tokens({0}));
  options.top_p = 0.76f;
  QCOMPARE(drawn(logits_of({0.6, 0.2, 0.2}), options), Tokens({0, 1}));
}

void SamplerTest::min_p_is_relative_to_the_likeliest() {
  const std::vector<float> logits = logits_of({0.5, 0.3, 0.2});
  SamplingOptions options = plain();
  options.min_p = 0.39f;
  QCOMPARE(drawn(logits, options), Tokens({0, 1, 2}));
  options.min_p = 0.41f;
  QCOMPARE(drawn(logits, options), Tokens({0, 1}));
  options.min_p = 0.61f;
  QCOMPARE(drawn(logits, options), Tokens({0}));
  options.min_p = 1.0f;
  QCOMPARE(drawn(logits, options), Tokens({0}));
  QCOMPARE(drawn({4, 4, 3}, options), Tokens({0, 1}));
}

void SamplerTest::filters_come_before_temperature() {
  SamplingOptions options = plain();
  options.temperature = 100.0f;  // Would make all alike, and let all pass.
  options.top_p = 0.59f;
  QCOMPARE(drawn(logits_of({0.6, 0.3, 0.1}), options), Tokens({0}));
  options.top_p = 1.0f;
  options.min_p = 0.4f;
  QCOMPARE(drawn(logits_of({0.6, 0.3, 0.1}), options), Tokens({0, 1}));
}

void SamplerTest::penalty_follows_the_sign_and_the_window() {
  SamplingOptions options = plain();
  options.temperature = 0.0f;
  options.repetition_penalty = 2.0f;
  options.repetition_window = 2;
  const std::vector<float> positive = {4.0f, 2.5f};
  QCOMPARE(sample(positive, options, std::vector<int32_t>{0}, 0).value(), 1);
  QCOMPARE(sample(positive, options, std::vector<int32_t>{0, 0}, 0).value(), 1);
  // Once, not twice: 2.5 / 2 beats 4 / 2 / 2 only if the penalty were applied again.
  QCOMPARE(sample(positive, options, std::vector<int32_t>{0, 1}, 0).value(), 0);
  QCOMPARE(sample(std::vector<float>{4.0f, 1.5f}, options, std::vector<int32_t>{0, 0}, 0).value(),
           0);
  // The window's boundary from both sides.
  QCOMPARE(sample(positive, options, std::vector<int32_t>{0, 1, 1}, 0).value(), 0);
  QCOMPARE(sample(std::vector<float>{4, 2.5f, 0}, options, std::vector<int32_t>{0, 2}, 0).value(),
           1);
  QCOMPARE(
      sample(std::vector<float>{4, 2.5f, 0}, options, std::vector<int32_t>{0, 2, 2}, 0).value(), 0);
  options.repetition_window = 0;
  QCOMPARE(sample(positive, options, std::vector<int32_t>{0}, 0).value(), 0);
  // A negative logit is multiplied: it sinks.
  options.repetition_window = 2;
  QCOMPARE(sample(std::vector<float>{-1.0f, -1.5f}, options, std::vector<int32_t>{0}, 0).value(),
           1);
  // A penalty below 1 draws repetition forth.
  options.repetition_penalty = 0.5f;
  QCOMPARE(sample(std::vector<float>{2, 3}, options, std::vector<int32_t>{0}, 0).value(), 0);
}

void SamplerTest::draws_follow_the_probabilities() {
  // Method: chi-square over fixed seeds, so the answer never changes. 13.8 is the 0.1 % bound for
  // two degrees of freedom.
  const std::vector<double> probabilities = {0.5, 0.3, 0.2};
  for (const float temperature : {1.0f, 0.5f, 2.0f}) {
    std::vector<double> expected;
    double total = 0;
    for (const double p : probabilities)
      total += expected.emplace_back(std::pow(p, 1 / temperature));
    SamplingOptions options = plain();
    options.temperature = temperature;
    options.seed = 7;
    std::vector<int> counts(3);
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) {
      const int32_t token =
          sample(logits_of(probabilities), options, {}, static_cast<uint64_t>(i)).value();
      counts[static_cast<size_t>(token)] += 1;
    }
    double chi_square = 0;
    for (size_t i = 0; i < 3; ++i) {
      const double mean = kDraws * expected[i] / total;
      chi_square += (counts[i] - mean) * (counts[i] - mean) / mean;
    }
    QVERIFY2(chi_square < 13.8, qPrintable(QString::number(chi_square)));
  }
}

void SamplerTest::equal_logits_are_equally_likely() {
  SamplingOptions options = plain();
  std::vector<int> counts(10);
  for (uint64_t seed = 0; seed < 20000; ++seed) {  // Neighbouring seeds at one position.
    options.seed = seed;
    counts[static_cast<size_t>(sample(std::vector<float>(10, -3.5f), options, {}, 5).value())] += 1;
  }
  double chi_square = 0;
  for (const int count : counts) chi_square += (count - 2000.0) * (count - 2000.0) / 2000.0;
  QVERIFY2(chi_square < 27.9, qPrintable(QString::number(chi_square)));  // 0.1 %, nine degrees.
}

void SamplerTest::equal_seed_and_position_draw_the_same() {
  const std::vector<float> logits(1000, 0.0f);
  SamplingOptions options = plain();
  options.seed = 42;
  for (uint64_t position = 0; position < 50; ++position) {
    const int32_t token = sample(logits, options, {}, position).value();
    // Stateless: whatever was drawn between.
    QVERIFY(sample(logits, options, {}, position + 1000).ok());
    QCOMPARE(sample(logits, options, {}, position).value(), token);
  }
}

void SamplerTest::draws_are_pinned() {
  // Another machine, compiler or release must draw these very numbers.
  std::vector<float> logits;
  for (int i = 0; i < 256; ++i) logits.push_back(static_cast<float>((i * 37) % 256) / 32.0f);
  SamplingOptions options = plain();
  options.temperature = 0.8f;
  options.seed = 1234;
  std::vector<int32_t> tokens;
  for (uint64_t position = 0; position < 8; ++position) {
    tokens.push_back(sample(logits, options, {}, position).value());
  }
  QCOMPARE(tokens, std::vector<int32_t>({247, 13, 131, 130, 76, 186, 166, 48}));
  QCOMPARE(random_bits_at(1234, 5), uint64_t{12644204159741803555u});
}

void SamplerTest::positions_and_seeds_are_unrelated() {
  std::set<uint64_t> seen;
  uint64_t ones = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (uint64_t position = 0; position < 100; ++position) {
      const uint64_t bits = random_bits_at(seed, position);
      seen.insert(bits);
      ones += static_cast<uint64_t>(__builtin_popcountll(bits));
    }
  }
  QCOMPARE(seen.size(), size_t{10000});
  QVERIFY(ones > 10000 * 32 - 2000 && ones < 10000 * 32 + 2000);  // Five deviations of 400.
}

void SamplerTest::extreme_logits_do_no_harm() {
  const float most = std::numeric_limits<float>::max();
  SamplingOptions options;
  options.top_p = 0.9f;
  QCOMPARE(drawn({-most, most, -most}, options), Tokens({1}));
  QCOMPARE(drawn({most, most}, options), Tokens({0, 1}));
  QCOMPARE(drawn({-most, -most}, options), Tokens({0, 1}));
  options.temperature = 0.01f;
  QCOMPARE(drawn({1e-40f, 0.0f, 1.0f}, options), Tokens({2}));
  options.repetition_penalty = 100.0f;
  QCOMPARE(drawn({-most, -most / 2}, options, {0, 1}), Tokens({0, 1}));  // Both become the lowest.
  options.repetition_penalty = 0.01f;
  QCOMPARE(drawn({most, most / 2}, options, {0, 1}), Tokens({0, 1}));
}

void SamplerTest::refuses_what_is_not_finite() {
  for (const float odd : {kNaN, kInfinity, -kInfinity}) {
    const auto result = sample(std::vector<float>{0, odd}, plain(), {}, 0);
    QVERIFY(!result.ok());
    QCOMPARE(result.error().code, ErrorCode::kNonFinite);
    QVERIFY(result.error().message.find("number 1") != std::string::npos);
  }
}

void SamplerTest::refuses_bad_options_by_name() {
  const auto refused = [](SamplingOptions options, const char* name) {
    const auto result = options.check();
    return !result.ok() && result.error().code == ErrorCode::kInvalid &&
           result.error().message.find(name) == 0 &&
           !sample(std::vector<float>{0}, options, {}, 0).ok();
  };
  for (const float bad : {-1.0f, 0.0099f, 100.1f, kNaN, kInfinity}) {
    QVERIFY(refused({.temperature = bad}, "temperature"));
    QVERIFY(refused({.repetition_penalty = bad}, "repetition_penalty"));
  }
  for (const float bad : {-0.01f, 1.01f, kNaN, kInfinity}) {
    QVERIFY(refused({.top_p = bad}, "top_p"));
    QVERIFY(refused({.min_p = bad}, "min_p"));
  }
  QVERIFY(SamplingOptions{}.check().ok());
  QVERIFY((SamplingOptions{.temperature = 0.01f, .top_p = 0, .min_p = 1, .repetition_penalty = 100}
               .check()
               .ok()));
}

void SamplerTest::refuses_bad_arguments() {
  QCOMPARE(sample({}, plain(), {}, 0).error().code, ErrorCode::kInvalid);
  SamplingOptions options = plain();
  options.repetition_penalty = 1.1f;
  for (const int32_t token : {-1, 2}) {
    const auto result = sample(std::vector<float>{0, 0}, options, std::vector<int32_t>{token}, 0);
    QVERIFY(!result.ok());
    QVERIFY(result.error().message.find("history") == 0);
  }
  QVERIFY(sample(std::vector<float>{0, 0}, options, std::vector<int32_t>{0, 1}, 0).ok());
}

}  // namespace shoal

QTEST_GUILESS_MAIN(shoal::SamplerTest)
#include "sampler_test.moc"
