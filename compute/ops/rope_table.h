#pragma once
// The angles of rope as data: cos and sin for each position and pair, computed on the host by
// additions, multiplications and divisions of doubles alone, so that every machine makes the same
// table.

#include <cstdint>
#include <vector>

#include "compute/graph/graph.h"

namespace shoal::compute {

// f32[context, rotary / 2, 2] of (cos, sin), times the spec's magnitude; what is below 2^-50 is +0.
// Rows do not depend on the context, unless the spec has divisors for long ones.
//
// REQUIRES: what verify() checks of a rope table; context is positive.
std::vector<float> make_rope_table(const RopeSpec& spec, int64_t context);

struct CosSin {
  double cos = 1.0;
  double sin = 0.0;
};
// Of one angle, within 1e-15, in a short context. REQUIRES: as above; 2 * pair < rotary;
// 0 <= position < 2^20.
CosSin rope_angle(const RopeSpec& spec, int64_t position, uint32_t pair);

// What models need to say how their tables are scaled, in the same arithmetic: how far a pair turns
// per position; ln x for a positive normal x; e^x for |x| < 700.
double rope_frequency(const RopeSpec& spec, uint32_t pair);
double plain_log(double x);
double plain_exp(double x);

}  // namespace shoal::compute
