#pragma once
// How likely a token is, given a model's logits. Pure, and the same bits on every machine
// (docs/EXACT.md).

#include <cstdint>
#include <span>

#include "base/result.h"

namespace shoal {

// The natural logarithm of the token's probability at temperature 1:
//
//   float(logit[token] - largest - ln(sum over i of exp(logit[i] - largest)))
//
// The difference under exp is one of f32 and exp is exact_exp(). Its results are added as doubles
// in eight lanes, lane l those with i mod 8 = l in ascending order, and the sum is
// ((l0+l1)+(l2+l3))+((l4+l5)+(l6+l7)). ln and the last differences are made of additions,
// multiplications and divisions of doubles, and are rounded to f32 once. Within 2e-6 of the truth
// for vocabularies to 2^20, or an ulp where that is more. Never above 0; what is below the lowest
// f32 counts as that.
//
// kNonFinite when a logit is NaN or infinite; kInvalid for no logits or a token beyond them.
Result<float> log_likelihood(std::span<const float> logits, int32_t token);

// ln(x) for 1 <= x < 2^63, in that arithmetic. Within 1e-15 of the truth, relative to it or to 1.
double exact_ln(double x);

}  // namespace shoal
