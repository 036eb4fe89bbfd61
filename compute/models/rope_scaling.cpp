#include "compute/models/rope_scaling.h"

#include <algorithm>
#include <cmath>

#include "compute/ops/rope_table.h"

namespace shoal::compute {
namespace {

constexpr double kTwoPi = 0x1.921fb54442d18p+2;

double whole_below(double x) {
  auto whole = static_cast<double>(static_cast<int64_t>(x));
  return whole > x ? whole - 1 : whole;
}

}  // namespace

void scale_llama3(const Llama3Scaling& s, RopeSpec& rope) {
  std::vector<double> divisors;
  const double longest = s.original / s.low_factor, shortest = s.original / s.high_factor;
  for (uint32_t pair = 0; pair < rope.rotary / 2; ++pair) {
    const double wavelength = kTwoPi / rope_frequency(rope, pair);
    double divisor = 1;
    if (wavelength > longest) {
      divisor = s.factor;
    } else if (wavelength >= shortest) {
      const double smooth =
          (s.original / wavelength - s.low_factor) / (s.high_factor - s.low_factor);
      divisor = 1 / ((1 - smooth) / s.factor + smooth);
    }
    divisors.push_back(divisor);
  }
  rope.divisors = std::move(divisors);
}

void scale_yarn(const YarnScaling& s, RopeSpec& rope) {
  const double n = rope.rotary;
  const auto turning = [&](double turns) {  // The pair that turns so often.
    return n * plain_log(s.original / (turns * kTwoPi)) / (2 * plain_log(rope.theta));
  };
  const double low = std::max(whole_below(turning(s.beta_fast)), 0.0);
  const double high = std::min(-whole_below(-turning(s.beta_slow)), n - 1);
  const double width = high > low ? high - low : 0.001;
  std::vector<double> divisors;
  for (uint32_t pair = 0; pair < rope.rotary / 2; ++pair) {
    const double ramp = std::clamp((pair - low) / width, 0.0, 1.0);
    divisors.push_back(1 / (ramp / s.factor + (1 - ramp)));
  }
  rope.divisors = std::move(divisors);
  rope.magnitude = s.magnitude != 0 ? s.magnitude : yarn_magnitude(s.factor, 1);
}

double yarn_magnitude(double factor, double weight) {
  return factor <= 1 ? 1 : 1 + weight * plain_log(factor) * 0.1;
}

double longrope_magnitude(double factor, double original) {
  if (factor <= 1) return 1;
  return std::sqrt(1 + plain_log(factor) / plain_log(original));
}

}  // namespace shoal::compute
