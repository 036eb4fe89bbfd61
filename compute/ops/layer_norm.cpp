// layer_norm: each row less its mean, divided by its deviation, times a weight, plus a bias.

#include "compute/graph/limits.h"
#include "compute/ops/chunked_sum.h"
#include "compute/ops/elementwise.h"
#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  SHOAL_TRY(check_alike(graph, op, {"its input"}));
  const int64_t width = graph.values[op.output].shape[1];
  SHOAL_TRY(check_vector(graph.values[op.inputs[1]], "its weight", width));
  SHOAL_TRY(check_vector(graph.values[op.inputs[2]], "its bias", width));
  if (!(op.epsilon >= limits::kEpsilonMin && op.epsilon <= limits::kEpsilonMax)) {
    return Error{ErrorCode::kCorrupt, "its epsilon is not 2^-100 .. 1"};
  }
  return {};
}

LayerNormParams make_params(int64_t rows, int64_t width, float epsilon) {
  return {static_cast<uint>(rows), static_cast<uint>(width), epsilon,
          1.0f / static_cast<float>(width)};
}

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& y = graph.values[op.output];
  return ParamBlock::of(make_params(rows_of(y, dims), y.shape[1], op.epsilon));
}

Grid grid(const ParamBlock& block) { return {block.as<LayerNormParams>().rows, 1}; }

Result<void> reference(DType, const ParamBlock& block, std::span<const ByteSpan> inputs,
                       std::span<std::byte> output) {
  using namespace exact;
  const auto p = block.as<LayerNormParams>();
  for (int64_t row = 0; row < p.rows; ++row) {
    const auto x = [&](int64_t i) { return exact_flush(load_f32(inputs[0], row * p.width + i)); };
    const float sum = chunked_sum(p.width, x);
    const float mean = exact_flush(exact_flush(sum) * p.inverse_width);
    const auto centred = [&](int64_t i) { return exact_flush(x(i) - mean); };
    const float squares = chunked_sum(p.width, [&](int64_t i) {
      const float factor = exact_factor(centred(i));
      return factor * factor;
    });
    const float variance = squares * p.inverse_width;
    const float s = exact_rsqrt(variance + p.epsilon);
    if (!exact_is_finite(mean) || !exact_is_finite(variance)) {
      return non_finite(OpKind::kLayerNorm, row * p.width);
    }
    for (int64_t i = 0; i < p.width; ++i) {
      const float scaled = exact_flush(centred(i) * s);
      const float weighted = exact_flush(scaled * exact_factor(load_f32(inputs[1], i)));
      const float y = weighted + exact_factor(load_f32(inputs[2], i));
      store_f32(output, row * p.width + i, exact_flush(y));
    }
  }
  return check_finite(OpKind::kLayerNorm, output);
}

std::vector<OpSample> samples() {
  std::vector<OpSample> list;
  SampleMaker make(11);
  const auto add = [&](int rows, int width, float epsilon, Pattern pattern,
                       bool non_finite = false) {
    OpSample sample{.label = label({{"rows", rows}, {"width", width}}, pattern),
                    .params = ParamBlock::of(make_params(rows, width, epsilon)),
                    .non_finite = non_finite};
    SampleBuffer x = make.floats(rows, width, pattern);
    SampleBuffer weight = make.weights(DType::kF32, 1, width);
    SampleBuffer bias = make.weights(DType::kF32, 1, width,
                                     pattern == Pattern::kTiny ? pattern : Pattern::kOrdinary);
    sample.inputs = {std::move(x), std::move(weight), std::move(bias)};
    sample.output = make.poison(DType::kF32, rows, width);
    list.push_back(std::move(sample));
  };
  for (const int width : {1, 7, 8, 9, 63, 64, 65, 255, 256, 257, 513, 1030}) {
    add(width % 2 == 0 ? 3 : 1, width, 1e-5f, Pattern::kOrdinary);
  }
  add(17, 96, 1e-6f, Pattern::kOrdinary);
  add(3, 300, 1e-12f, Pattern::kZero);
  add(3, 300, 1e-12f, Pattern::kTiny);
  add(3, 300, 1e-5f, Pattern::kTiny);
  add(3, 300, 1e-5f, Pattern::kHuge, /*non_finite=*/true);  // The square of 1e20 is infinite.
  add(1, 33, 1e-5f, Pattern::kMax, /*non_finite=*/true);
  // Rows whose elements are nearly the same: what the mean leaves must not matter.
  OpSample even{.label = "rows 2 width 200 of 3 and a little",
                .params = ParamBlock::of(make_params(2, 200, 1e-5f))};
  SampleBuffer x = make.floats(2, 200);
  for (int64_t i = 0; i < 400; ++i) store_f32(x.bytes, i, 3.0f + load_f32(x.bytes, i) * 1e-6f);
  even.inputs = {std::move(x), make.weights(DType::kF32, 1, 200),
                 make.weights(DType::kF32, 1, 200)};
  even.output = make.poison(DType::kF32, 2, 200);
  list.push_back(std::move(even));
  return list;
}

}  // namespace

OpSpec layer_norm_spec() {
  return {OpKind::kLayerNorm,
          3,
          StepBuffer::kNone,
          check,
          element_flops<7>,
          f32_variant,
          params,
          grid,
          reference,
          samples};
}

}  // namespace shoal::compute
