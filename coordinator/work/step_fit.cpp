#include "coordinator/work/step_fit.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace shoal {
namespace {

constexpr double kFading = 0.98;       // Of all that was seen, at each new step.
constexpr double kStallFactor = 4;     // A step counts for at most so many times its prediction.
constexpr double kCountMin = 8;        // Steps on a line before its beginning is believed.
constexpr double kSpreadMin = 0.1;     // Their standard deviation over their mean, likewise.
constexpr double kRatePartMin = 0.05;  // The fixed cost leaves at least so much of the time.

double spread_of(double count, double sum, double squares) {
  if (count < kCountMin || sum <= 0) return 0;
  const double mean = sum / count;
  return std::sqrt(std::max(squares / count - mean * mean, 0.0)) / mean;
}

bool is_usable(double value) { return std::isfinite(value) && value >= 0; }

}  // namespace

double step_seconds(const StepFactors& factors, double weight_bytes, double flops) {
  SHOAL_CHECK(factors.weight_bytes_per_second > 0 && factors.flops_per_second > 0);
  return std::max(weight_bytes / factors.weight_bytes_per_second,
                  flops / factors.flops_per_second) +
         factors.fixed_seconds;
}

void StepFit::add(const StepSample& sample) {
  if (!is_usable(sample.weight_bytes) || !is_usable(sample.flops) || !is_usable(sample.seconds))
    return;
  if (sample.seconds <= 0 || sample.weight_bytes + sample.flops <= 0) return;
  const double predicted = step_seconds(factors_, sample.weight_bytes, sample.flops);
  const double seconds = std::min(sample.seconds, kStallFactor * predicted);
  const bool computes = sample.flops / factors_.flops_per_second >
                        sample.weight_bytes / factors_.weight_bytes_per_second;
  const double x = computes ? sample.flops : sample.weight_bytes;
  for (Line* const line : {&reading_, &computing_}) {
    for (double* const sum : {&line->count, &line->x, &line->xx, &line->t, &line->xt})
      *sum *= kFading;
  }
  Line& line = computes ? computing_ : reading_;
  line.count += 1;
  line.x += x;
  line.xx += x * x;
  line.t += seconds;
  line.xt += x * seconds;
  samples_ += 1;
  refit();
}

void StepFit::refit() {
  const double reading = spread_of(reading_.count, reading_.x, reading_.xx);
  const double computing = spread_of(computing_.count, computing_.x, computing_.xx);
  if (const double spread = std::max(reading, computing); spread >= kSpreadMin) {
    const Line& line = reading >= computing ? reading_ : computing_;
    const double variance = line.xx / line.count - (line.x / line.count) * (line.x / line.count);
    const double slope =
        (line.xt / line.count - line.x / line.count * (line.t / line.count)) / variance;
    if (slope > 0) {
      factors_.fixed_seconds = std::max((line.t - slope * line.x) / line.count, 0.0);
    }
  }
  const auto rate = [&](const Line& line, double& rate) {
    if (line.count < 1 || line.x <= 0) return;
    const double seconds =
        std::max(line.t - factors_.fixed_seconds * line.count, kRatePartMin * line.t);
    rate = line.x / seconds;
  };
  rate(reading_, factors_.weight_bytes_per_second);
  rate(computing_, factors_.flops_per_second);
}

}  // namespace shoal
