// route and combine, the ops around a mixture's experts.

#include "compute/backends/cuda/kernel.h"

namespace shoal::compute::cuda {
namespace {

constexpr uint kThreads = 256;

// An expert and its flushed logit; of two the first in the order of a route.
struct Candidate {
  float x;
  uint expert;
};
SHOAL_DEVICE bool goes_before(const Candidate& a, const Candidate& b) {
  return a.x > b.x || (a.x == b.x && a.expert < b.expert);
}

// A warp does a row. Each slot takes the first expert in the order of those behind the last one
// taken; where none is left, as logits are not finite, it takes expert 0: what is reported must
// still name one.
__global__ void route(Call call) {
  const auto p = call.as<RouteParams>();
  const uint lane = threadIdx.x % kWarp;
  const uint row = blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (row >= p.rows) return;
  const float* x = call.at<const float>(0) + uint64_t{row} * p.experts;
  float* y = call.at<float>(1) + uint64_t{row} * 2 * p.used;

  bool finite = true;
  for (uint e = lane; e < p.experts; e += kWarp) finite = finite && exact_is_finite(x[e]);

  float largest = 0.0f;
  float sum = 0.0f;
  Candidate last = {0.0f, 0};
  float own = 0.0f;  // Lane i keeps the share of slot i. REQUIRES: used <= 32 (graph/limits.h).
  for (uint slot = 0; slot < p.used; ++slot) {
    Candidate best = {0.0f, p.experts};
    for (uint e = lane; e < p.experts; e += kWarp) {
      const Candidate next = {exact_flush(x[e]), e};
      if (slot > 0 && !goes_before(last, next)) continue;
      if (best.expert == p.experts || goes_before(next, best)) best = next;
    }
    for (uint step = 1; step < kWarp; step *= 2) {
      Candidate other;
      other.x = __shfl_xor_sync(kAllLanes, best.x, step);
      other.expert = __shfl_xor_sync(kAllLanes, best.expert, step);
      if (other.expert < p.experts && (best.expert == p.experts || goes_before(other, best))) {
        best = other;
      }
    }
    if (best.expert == p.experts) best = {0.0f, 0};
    last = best;
    if (slot == 0) largest = best.x;
    const float share = exact_factor(exact_exp(best.x - largest));
    sum = sum + share;
    if (lane == slot) own = share;
    if (lane == 0) y[slot] = static_cast<float>(best.expert);
  }
  if (p.renormalise == 0) {
    sum = 0.0f;
    for (uint first = 0; first < p.experts; first += kWarp) {
      const uint e = first + lane;
      const float share =
          e < p.experts ? exact_factor(exact_exp(exact_flush(x[e]) - largest)) : 0.0f;
      for (uint i = 0; i < kWarp && first + i < p.experts; ++i) {
        sum = sum + __shfl_sync(kAllLanes, share, i);
      }
    }
  }
  const float inverse = exact_reciprocal(sum);
  if (lane < p.used) y[p.used + lane] = exact_flush(own * inverse);
  if (!finite) report_non_finite(call);
}

__global__ void combine(Call call) {
  const auto p = call.as<CombineParams>();
  const uint row = blockIdx.x, column = blockIdx.y * kThreads + threadIdx.x;
  if (column >= p.width) return;
  const float* x = call.at<const float>(0) + uint64_t{row} * p.used * p.width;
  const float* shares = call.at<const float>(1) + (uint64_t{row} * 2 + 1) * p.used;
  float sum = 0.0f;
  for (uint slot = 0; slot < p.used; ++slot) {
    const float part = exact_factor(x[uint64_t{slot} * p.width + column]);
    sum = sum + exact_factor(shares[slot]) * part;
  }
  const float y = exact_flush(sum);
  if (!exact_is_finite(y)) report_non_finite(call);
  call.at<float>(2)[uint64_t{row} * p.width + column] = y;
}

void enqueue_route(Launcher& launcher, const Call& call) {
  const auto p = call.as<RouteParams>();
  launcher.run(route, divide_up(p.rows, kThreads / kWarp), 1, kThreads, call);
}
void enqueue_combine(Launcher& launcher, const Call& call) {
  const auto p = call.as<CombineParams>();
  launcher.run(combine, p.rows, divide_up(p.width, kThreads), kThreads, call);
}

const KernelEntry kEntries[] = {
    {"route", "f32", enqueue_route},
    {"combine", "f32", enqueue_combine},
};

}  // namespace

KernelList expert_kernels() { return {kEntries, sizeof kEntries / sizeof kEntries[0]}; }

}  // namespace shoal::compute::cuda
