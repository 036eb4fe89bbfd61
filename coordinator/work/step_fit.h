#pragma once
// Decides how fast a device is from the steps that it has answered: the two rates and the fixed
// cost of planner.h's model of time. Pure.
//
// Steps that read weights and steps that compute are each a line: seconds = bytes / rate + fixed,
// seconds = operations / rate + fixed. Old steps fade. The fixed cost is where the line with the
// wider spread begins, so it stays as it was until steps of different sizes have been seen: other
// numbers of rows, or stages of other sizes.

#include <cstdint>

namespace shoal {

// One step on a device that ran nothing else, without the way there and back.
struct StepSample {
  double weight_bytes = 0, flops = 0, seconds = 0;
};

struct StepFactors {
  double weight_bytes_per_second = 0, flops_per_second = 0, fixed_seconds = 0;
};

// max(weights / rate, operations / rate) + fixed. REQUIRES: both rates are positive.
double step_seconds(const StepFactors& factors, double weight_bytes, double flops);

class StepFit {
 public:
  // Begins with what the device says of itself. REQUIRES: both rates are positive.
  explicit StepFit(const StepFactors& reported) : factors_(reported) {}

  // What makes no sense is ignored; one stall moves little.
  void add(const StepSample& sample);

  const StepFactors& factors() const { return factors_; }
  int64_t samples() const { return samples_; }

 private:
  // Fading sums of a line's points.
  struct Line {
    double count = 0, x = 0, xx = 0, t = 0, xt = 0;
  };
  void refit();

  StepFactors factors_;
  Line reading_, computing_;
  int64_t samples_ = 0;
};

}  // namespace shoal
