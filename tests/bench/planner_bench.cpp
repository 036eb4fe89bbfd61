// How long planning takes: 200 devices and 80 fragments, for both objectives, anchored or not, and
// with its explanation. Prints one JSON object.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "base/random.h"
#include "coordinator/work/planner.h"

using namespace shoal;

namespace {

constexpr int kDevices = 200;
constexpr int kFragments = 80;
constexpr int kRuns = 7;

// The median of several runs, in milliseconds.
template <class Work>
double median_ms(const Work& work) {
  std::vector<double> times;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - start;
    times.push_back(taken.count());
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

}  // namespace

int main() {
  Random random(5);
  std::vector<FragmentCost> fragments(
      kFragments, {Bytes{1'000'000'000}, Flops{2'000'000'000}, Bytes{4096}, Bytes{1 << 20}});
  std::vector<PlanDevice> devices;
  for (int i = 0; i < kDevices; ++i) {
    PlanDevice next;
    next.exact = true;
    next.trusted = i % 50 == 7;
    next.memory_free = Bytes{static_cast<int64_t>(4'000'000'000 + random.below(20'000'000'000))};
    next.weight_bytes_per_second = 1e11 * (1 + random.uniform() * 9);
    next.flops_per_second = 1e13 * (1 + random.uniform() * 9);
    next.fixed_seconds = random.uniform() * 1e-3;
    next.hop_seconds = 1e-3 + random.uniform() * 5e-2;
    next.link_bytes_per_second = 1e6 * (1 + random.uniform() * 99);
    devices.push_back(next);
  }
  PlanRequest request;
  request.fragments = fragments;
  request.width = 8192;
  request.context = 4096;
  request.rows_max = 64;
  request.prompt_rows = 512;
  request.tokens = 256;
  const auto planned_ms = [&](PlanObjective objective, bool anchored, size_t& stages) {
    request.objective = objective;
    request.anchored = anchored;
    request.streams = objective == PlanObjective::kThroughput ? 16 : 1;
    return median_ms([&] {
      const Result<Plan> plan = plan_session(request, devices);
      stages = plan.ok() ? plan.value().stages.size() : 0;
    });
  };
  size_t latency_stages = 0, anchored_stages = 0, throughput_stages = 0;
  const double latency = planned_ms(PlanObjective::kLatency, false, latency_stages);
  const double anchored = planned_ms(PlanObjective::kLatency, true, anchored_stages);
  const double throughput = planned_ms(PlanObjective::kThroughput, false, throughput_stages);
  request.objective = PlanObjective::kLatency;
  request.streams = 1;
  const Result<Plan> plan = plan_session(request, devices);
  if (!plan.ok()) return 1;
  const double explained = median_ms([&] { explain_plan(request, devices, plan.value()); });
  std::printf(
      "{\"devices\":%d,\"fragments\":%d,\"latency_ms\":%.1f,\"latency_stages\":%zu,"
      "\"anchored_ms\":%.1f,\"anchored_stages\":%zu,\"throughput_ms\":%.1f,"
      "\"throughput_stages\":%zu,\"explanation_ms\":%.1f}\n",
      kDevices, kFragments, latency, latency_stages, anchored, anchored_stages, throughput,
      throughput_stages, explained);
  return 0;
}
