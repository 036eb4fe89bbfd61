#pragma once
// Turns what configs say of a rope's scaling into what its table needs: divisors of frequencies and
// a magnitude. Only arithmetic of doubles that IEEE 754 rounds (square roots too), so that every
// machine that publishes a model writes the same graph.

#include "compute/graph/graph.h"

namespace shoal::compute {

// Frequencies whose wavelength is beyond original / low_factor are divided by `factor`, those below
// original / high_factor stay, between them they go over smoothly.
struct Llama3Scaling {
  double factor = 1, low_factor = 1, high_factor = 4, original = 8192;
};
// REQUIRES, as below: the rope has theta and rotary and is not scaled yet.
void scale_llama3(const Llama3Scaling& scaling, RopeSpec& rope);

// Pairs that turn more than beta_fast times within the original context stay, those that turn less
// than beta_slow times are divided by `factor`, between them they go over linearly.
struct YarnScaling {
  double factor = 1, original = 0, beta_fast = 32, beta_slow = 1;
  double magnitude = 0;  // 0: 1 + ln(factor) / 10.
};
void scale_yarn(const YarnScaling& scaling, RopeSpec& rope);

// 1 + weight * ln(factor) / 10 for a factor above 1, else 1.
double yarn_magnitude(double factor, double weight);
// sqrt(1 + ln(factor) / ln(original)) for a factor above 1, else 1.
double longrope_magnitude(double factor, double original);

}  // namespace shoal::compute
