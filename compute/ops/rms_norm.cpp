// rms_norm: each row, or each of its heads, divided by its root mean square, times a weight.

#include "compute/graph/limits.h"
#include "compute/ops/chunked_sum.h"
#include "compute/ops/elementwise.h"
#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

int64_t heads_of(const Op& op) { return op.heads == 0 ? 1 : op.heads; }

Result<void> check(const Graph& graph, const Op& op) {
  SHOAL_TRY(check_alike(graph, op, {"its input"}));
  const int64_t heads = heads_of(op), width = graph.values[op.output].shape[1];
  if (heads > limits::kHeadsMax || width % heads != 0) {
    return Error{ErrorCode::kCorrupt,
                 "its " + std::to_string(heads) + " heads do not divide " + std::to_string(width)};
  }
  SHOAL_TRY(check_vector(graph.values[op.inputs[1]], "its weight", width / heads));
  const bool sane = op.epsilon == 0.0f ||
                    (op.epsilon >= limits::kEpsilonMin && op.epsilon <= limits::kEpsilonMax);
  if (!sane) return Error{ErrorCode::kCorrupt, "its epsilon is not 0 or 2^-100 .. 1"};
  return {};
}

RmsNormParams make_params(int64_t rows, int64_t width, float epsilon) {
  return {static_cast<uint>(rows), static_cast<uint>(width), epsilon,
          1.0f / static_cast<float>(width)};
}

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& y = graph.values[op.output];
  const int64_t heads = heads_of(op);
  return ParamBlock::of(make_params(rows_of(y, dims) * heads, y.shape[1] / heads, op.epsilon));
}

Grid grid(const ParamBlock& block) { return {block.as<RmsNormParams>().rows, 1}; }

Result<void> reference(DType, const ParamBlock& block, std::span<const ByteSpan> inputs,
                       std::span<std::byte> output) {
  const auto p = block.as<RmsNormParams>();
  for (int64_t row = 0; row < p.rows; ++row) {
    const auto x = [&](int64_t i) {
      return exact::exact_flush(load_f32(inputs[0], row * p.width + i));
    };
    const float sum = chunked_sum(p.width, [&](int64_t i) {
      const float factor = exact::exact_factor(x(i));
      return factor * factor;
    });
    const float mean = sum * p.inverse_width;
    const float s = exact::exact_rsqrt(mean + p.epsilon);
    if (!exact::exact_is_finite(mean)) return non_finite(OpKind::kRmsNorm, row * p.width);
    for (int64_t i = 0; i < p.width; ++i) {
      const float scaled = exact::exact_flush(x(i) * s);
      const float y = scaled * exact::exact_factor(load_f32(inputs[1], i));
      store_f32(output, row * p.width + i, exact::exact_flush(y));
    }
  }
  return check_finite(OpKind::kRmsNorm, output);
}

std::vector<OpSample> samples() {
  std::vector<OpSample> list;
  SampleMaker make(5);
  const auto add = [&](int rows, int width, float epsilon, Pattern pattern,
                       bool non_finite = false) {
    OpSample sample{.label = label({{"rows", rows}, {"width", width}}, pattern),
                    .params = ParamBlock::of(make_params(rows, width, epsilon)),
                    .non_finite = non_finite};
    SampleBuffer weight = make.weights(DType::kF32, 1, width);
    sample.inputs = {make.floats(rows, width, pattern), std::move(weight)};
    sample.output = make.poison(DType::kF32, rows, width);
    list.push_back(std::move(sample));
  };
  for (const int width : {1, 7, 8, 9, 63, 64, 65, 255, 256, 257, 513, 1030}) {
    add(width % 2 == 0 ? 3 : 1, width, 1e-5f, Pattern::kOrdinary);
  }
  add(17, 96, 1e-6f, Pattern::kOrdinary);
  add(3, 300, 0.0f, Pattern::kZero);
  add(3, 300, 0.0f, Pattern::kTiny);
  add(3, 300, 1e-5f, Pattern::kTiny);
  add(3, 300, 0.0f, Pattern::kHuge, /*non_finite=*/true);  // The square of 1e20 is infinite.
  add(1, 33, 0.0f, Pattern::kMax, /*non_finite=*/true);
  // The largest squares whose sum is finite.
  OpSample sample{.label = "rows 1 width 200 of 1e18",
                  .params = ParamBlock::of(make_params(1, 200, 1e-5f))};
  SampleBuffer x = make.floats(1, 200);
  for (int64_t i = 0; i < 200; ++i) store_f32(x.bytes, i, load_f32(x.bytes, i) * 0.5e18f);
  sample.inputs = {std::move(x), make.weights(DType::kF32, 1, 200)};
  sample.output = make.poison(DType::kF32, 1, 200);
  list.push_back(std::move(sample));
  return list;
}

}  // namespace

OpSpec rms_norm_spec() {
  return {OpKind::kRmsNorm, 2,    StepBuffer::kNone, check,  element_flops<4>, f32_variant,
          params,           grid, reference,         samples};
}

}  // namespace shoal::compute
