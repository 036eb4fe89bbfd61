// Goal: a log-likelihood is what mathematics says, to the last bits of f32, and pinned.

#include "compute/sampling/likelihood.h"

#include <QTest>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace shoal {
namespace {

double truth(const std::vector<float>& logits, int32_t token) {
  long double largest = *std::ranges::max_element(logits), sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<long double>(logit) - largest);
  return static_cast<double>(logits[static_cast<size_t>(token)] - largest - std::log(sum));
}

}  // namespace

class LikelihoodTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void ln_is_right_to_its_promise() {
    std::vector<double> arguments = {
        1.0, std::nextafter(1.0, 2.0), 1.4142135623730951,  std::nextafter(1.4142135623730951, 2.0),
        2.0, std::nextafter(2.0, 1.0), 0x1.fffffffffffffp62};
    Random random(5);
    for (int i = 0; i < 20'000; ++i) {
      const double mantissa = 1.0 + static_cast<double>(random.next_u64() >> 12) * 0x1p-52;
      arguments.push_back(std::ldexp(mantissa, static_cast<int>(random.next_u64() % 63)));
    }
    for (const double x : arguments) {
      const long double right = std::log(static_cast<long double>(x));
      const long double error = std::abs(exact_ln(x) - right);
      QVERIFY2(error <= 1e-15L * std::max(1.0L, right), QByteArray::number(x, 'g', 17));
    }
    QCOMPARE(exact_ln(1.0), 0.0);
  }

  void it_is_what_mathematics_says() {
    Random random(7);
    for (const size_t count : {1, 2, 7, 8, 9, 255, 256, 257, 50'000}) {
      for (const float spread : {0.01f, 1.0f, 10.0f, 60.0f}) {
        std::vector<float> logits(count);
        for (float& logit : logits) {
          logit = (static_cast<float>(random.next_u64() >> 40) * 0x1p-23f - 1.0f) * spread;
        }
        for (const size_t token : {size_t{0}, count / 2, count - 1}) {
          const auto id = static_cast<int32_t>(token);
          const double right = truth(logits, id);
          const float value = log_likelihood(logits, id).value();
          QVERIFY2(
              std::abs(value - right) <= std::max(2e-6, std::abs(right) * 0x1p-23),
              QByteArray::number(value, 'g', 9) + " is not " + QByteArray::number(right, 'g', 17));
          QVERIFY(value <= 0.0f);
        }
      }
    }
  }

  void its_bits_are_pinned() {
    std::vector<float> logits;
    for (int i = 0; i < 300; ++i) logits.push_back(static_cast<float>((i * 37) % 101) * 0.0625f);
    const auto bits = [&](int32_t token) {
      return std::bit_cast<uint32_t>(log_likelihood(logits, token).value());
    };
    QCOMPARE(bits(0), 0xc1222f1fu);
    QCOMPARE(bits(30), 0xc078bc7du);
    QCOMPARE(bits(299), 0xc0d85e3eu);
  }

  void a_certain_token_has_zero_and_a_hopeless_one_its_distance() {
    QCOMPARE(log_likelihood(std::vector<float>{5.0f}, 0).value(), 0.0f);
    const std::vector<float> logits = {1000.0f, -1000.0f};
    QCOMPARE(log_likelihood(logits, 0).value(), 0.0f);
    QCOMPARE(log_likelihood(logits, 1).value(), -2000.0f);
    constexpr float kMost = std::numeric_limits<float>::max();
    QCOMPARE(log_likelihood(std::vector<float>{kMost, -kMost}, 1).value(), -kMost);
  }

  void refuses_what_is_no_token_or_no_logit() {
    const std::vector<float> logits = {1.0f, 2.0f};
    QCOMPARE(log_likelihood({}, 0).error().code, ErrorCode::kInvalid);
    QCOMPARE(log_likelihood(logits, -1).error().code, ErrorCode::kInvalid);
    QCOMPARE(log_likelihood(logits, 2).error().code, ErrorCode::kInvalid);
    QVERIFY(log_likelihood(logits, 1).ok());
    for (const float bad : {std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(), std::nanf("")}) {
      QCOMPARE(log_likelihood(std::vector<float>{1.0f, bad}, 0).error().code,
               ErrorCode::kNonFinite);
    }
  }
};

}  // namespace shoal

QTEST_GUILESS_MAIN(shoal::LikelihoodTest)
#include "likelihood_test.moc"
