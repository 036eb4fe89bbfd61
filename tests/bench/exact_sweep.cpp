// The exact functions on every f32 there is, against the C library in double: the worst error of
// each beside what docs/EXACT.md promises. Takes minutes; exact_math_test takes a sample.

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "shaders/exact_math.h"

using namespace shoal::exact;

namespace {

struct Function {
  const char* name;
  float (*exact)(float);
  double (*wanted)(double);
  double promised;  // In units of the last place.
  float smallest;   // Of the magnitudes that are in the domain,
  float largest;    // and their largest.
  bool negative;    // Whether those below zero are in it too.
};

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double reciprocal(double x) { return 1.0 / x; }
double rsqrt(double x) { return 1.0 / std::sqrt(x); }

constexpr uint32_t kSigns[] = {0, 0x80000000u};
constexpr float kMax = 0x1.fffffep127f;
constexpr Function kFunctions[] = {
    {"exp", exact_exp, std::exp, 2, 0, 80, false},
    {"exp of negative", [](float x) { return exact_exp(-x); },
     [](double x) { return std::exp(-x); }, 2, 0, 69, false},
    {"reciprocal", exact_reciprocal, reciprocal, 2, 0x1p-100f, 0x1p100f, true},
    {"rsqrt", exact_rsqrt, rsqrt, 2, 0x1p-100f, kMax, false},
    {"sigmoid", exact_sigmoid, sigmoid, 4, 0, 69, true},
    {"tanh", exact_tanh, std::tanh, 4, 0x1p-100f, kMax, true},
};

// The place of the last digit of the f32 nearest to `x`.
double last_place(double x) {
  const auto nearest = std::bit_cast<uint32_t>(static_cast<float>(x)) & 0x7FFFFFFFu;
  const uint32_t exponent = nearest < 0x00800000u ? 1 : nearest >> 23;
  return std::bit_cast<double>((uint64_t{exponent} + 1023 - 127 - 23) << 52);
}

bool sweep(const Function& f) {
  double worst = 0;
  float at = 0;
  const auto last = std::bit_cast<uint32_t>(f.largest);
  for (uint32_t bits = std::bit_cast<uint32_t>(f.smallest); bits <= last; ++bits) {
    for (const uint32_t sign : kSigns) {
      if (sign != 0 && !f.negative) continue;
      const auto x = std::bit_cast<float>(bits | sign);
      const double wanted = f.wanted(double{x});
      const double error = std::fabs(double{f.exact(x)} - wanted) / last_place(wanted);
      if (!(error <= worst)) worst = error, at = x;  // Also what is not a number.
    }
  }
  std::printf("  %-16s worst %.3f of %.0f ulp at %a\n", f.name, worst, f.promised, double{at});
  std::fflush(stdout);
  return worst <= f.promised;
}

bool sweep_halves() {
  // Every f32 rounds to one of the two halves around it, and to the nearer.
  uint64_t wrong = 0;
  for (uint64_t bits = 0; bits < 0x47800000u; ++bits) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const double magnitude = x;
    const int exponent = magnitude < 0x1p-14 ? -14 : std::ilogb(magnitude);
    const double step = std::ldexp(1.0, exponent - 10);
    const double nearest = std::nearbyint(magnitude / step) * step;
    const float got = exact_half_to_float(exact_float_to_half(x));
    const bool right = nearest >= 65536 ? std::isinf(got) : double{got} == nearest;
    wrong += right ? 0 : 1;
  }
  std::printf("  %-16s %llu wrong\n", "f32 to half", static_cast<unsigned long long>(wrong));
  return wrong == 0;
}

}  // namespace

int main() {
  bool good = sweep_halves();
  for (const Function& f : kFunctions) good = sweep(f) && good;
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
