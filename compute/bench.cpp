// Measures a device with one real block, under a few seconds; the figures feed the planner.

#include "base/clock.h"
#include "compute/compute.h"
#include "compute/ops/op.h"
#include "compute/sample_model.h"

namespace shoal::compute {
namespace {

constexpr int64_t kContextPositions = 256;
constexpr int64_t kPrefillRows = 64;
constexpr int64_t kMeasureMs = 500;
constexpr int64_t kCopyBytes = int64_t{32} << 20;

// Calls `once` until the time is up, after one call that is not counted; calls per second.
template <class Once>
Result<double> rate(const Clock& clock, const Once& once) {
  SHOAL_TRY(once());
  const int64_t begin = clock.now_monotonic().count;
  int64_t calls = 0;
  int64_t spent = 0;
  while (spent < kMeasureMs) {
    SHOAL_TRY(once());
    ++calls;
    spent = clock.now_monotonic().count - begin;
  }
  return static_cast<double>(calls) * 1000.0 / static_cast<double>(spent);
}

}  // namespace

Result<BenchReport> bench(Device& device) {
  // A block of a 0.5B-class model, and small enough for the software driver.
  const SampleModelShape shape{.width = 1024,
                               .heads = 16,
                               .kv_heads = 8,
                               .head_dim = 64,
                               .inner = 2816,
                               .blocks = 1,
                               .weights = DType::kQ8_0,
                               .states = DType::kF16,
                               .ends = false};
  const SampleModel model = make_sample_model(shape);
  SHOAL_TRY_ASSIGN(
      stage, Stage::open(device, model.fragments,
                         {.context = kContextPositions, .sequences = 1, .rows_max = kPrefillRows}));
  const SystemClock clock;
  std::vector<float> hidden(static_cast<size_t>(kPrefillRows * shape.width));
  for (size_t i = 0; i < hidden.size(); ++i) hidden[i] = static_cast<float>(i % 37) * 0.05f - 0.9f;
  std::vector<RowInfo> rows;
  for (uint32_t i = 0; i < kPrefillRows; ++i) rows.push_back({0, i});

  const auto step = [&](size_t count) -> Result<void> {
    const StepInput input{
        .rows = std::span(rows).first(count),
        .hidden = std::span(hidden).first(count * static_cast<size_t>(shape.width))};
    const auto output = stage->step(input);
    if (!output.ok()) return output.error();
    return {};
  };
  SHOAL_TRY_ASSIGN(prefill_rate, rate(clock, [&] { return step(kPrefillRows); }));
  // The 64th position again and again, so that every decoding step sees the same history.
  const RowInfo last = rows.back();
  rows[0] = last;
  SHOAL_TRY_ASSIGN(decode_rate, rate(clock, [&] { return step(1); }));

  SHOAL_TRY_ASSIGN(buffer, device.allocate(kCopyBytes));
  const ByteVector bytes(static_cast<size_t>(kCopyBytes), std::byte{1});
  SHOAL_TRY_ASSIGN(copy_rate, rate(clock, [&] { return device.upload(*buffer, 0, bytes); }));

  const Graph& graph = model.fragments[0].graph;
  SHOAL_TRY_ASSIGN(prefill_cost, cost(graph, {.rows = kPrefillRows, .context = kPrefillRows}));
  BenchReport report;
  report.decode_rows_per_second = decode_rate;
  report.prefill_rows_per_second = prefill_rate * kPrefillRows;
  report.weight_bytes_per_second = decode_rate * static_cast<double>(prefill_cost.weight_bytes);
  report.flops_per_second = prefill_rate * static_cast<double>(prefill_cost.flops);
  report.copy_bytes_per_second = copy_rate * static_cast<double>(kCopyBytes);
  return report;
}

}  // namespace shoal::compute
