// bias: the same vector added to every row.

#include "compute/ops/elementwise.h"
#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  SHOAL_TRY(check_alike(graph, op, {"its input"}));
  return check_vector(graph.values[op.inputs[1]], "its bias", graph.values[op.output].shape[1]);
}

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  return element_params<BiasParams>(graph, op, dims);
}

Result<void> reference(DType, const ParamBlock& block, std::span<const ByteSpan> inputs,
                       std::span<std::byte> output) {
  const auto p = block.as<BiasParams>();
  for (int64_t i = 0; i < int64_t{p.rows} * p.width; ++i) {
    const float x = exact::exact_flush(load_f32(inputs[0], i));
    const float bias = exact::exact_factor(load_f32(inputs[1], i % p.width));
    store_f32(output, i, exact::exact_flush(x + bias));
  }
  return check_finite(OpKind::kBias, output);
}

std::vector<OpSample> samples() {
  std::vector<OpSample> list;
  SampleMaker make(16);
  for (const Pattern pattern : kPatterns) {
    for (const auto& [rows, width] : {std::pair{1, 1}, {3, 63}, {17, 129}}) {
      OpSample sample{.label = label({{"rows", rows}, {"width", width}}, pattern),
                      .params = ParamBlock::of(BiasParams{uint(rows), uint(width)})};
      SampleBuffer bias = make.weights(DType::kF32, 1, width,
                                       pattern == Pattern::kTiny ? pattern : Pattern::kOrdinary);
      sample.inputs = {make.floats(rows, width, pattern), std::move(bias)};
      sample.output = make.poison(DType::kF32, rows, width);
      list.push_back(std::move(sample));
    }
  }
  list.push_back(make.failing("overflow", ParamBlock::of(BiasParams{1, 33}),
                              {make.floats(1, 33), make.weights(DType::kF32, 1, 33)}, 3e38f));
  return list;
}

}  // namespace

OpSpec bias_spec() {
  return {OpKind::kBias, 2,      StepBuffer::kNone,        check,     element_flops<1>,
          f32_variant,   params, element_grid<BiasParams>, reference, samples};
}

}  // namespace shoal::compute
