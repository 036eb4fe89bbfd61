// bias: the same vector added to every row.

#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  const Value& x = graph.values[op.inputs[0]];
  const Value& bias = graph.values[op.inputs[1]];
  const Value& y = graph.values[op.output];
  if (!is_rows(x, DType::kF32)) return shape_error("its input", x, "f32[rows, width]");
  if (bias.kind != ValueKind::kWeight || bias.dtype != DType::kF32 ||
      bias.shape != Shape{x.shape[1]}) {
    return shape_error("its bias", bias, "a weight f32[" + std::to_string(x.shape[1]) + "]");
  }
  if (!is_rows(y, DType::kF32) || y.shape != x.shape)
    return shape_error("its output", y, describe(x));
  return {};
}

int64_t flops(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& y = graph.values[op.output];
  return rows_of(y, dims) * y.shape[1];
}

DType variant(const Graph&, const Op&) { return DType::kF32; }

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& y = graph.values[op.output];
  return ParamBlock::of(
      BiasParams{static_cast<uint>(rows_of(y, dims)), static_cast<uint>(y.shape[1])});
}

Grid grid(const ParamBlock& block) {
  const auto p = block.as<BiasParams>();
  return {p.rows, p.width};
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
  OpSample overflow{
      .label = "overflow", .params = ParamBlock::of(BiasParams{1, 33}), .non_finite = true};
  overflow.inputs = {make.floats(1, 33), make.weights(DType::kF32, 1, 33)};
  for (SampleBuffer& input : overflow.inputs) store_f32(input.bytes, 32, 3e38f);
  overflow.output = make.poison(DType::kF32, 1, 33);
  list.push_back(std::move(overflow));
  return list;
}

}  // namespace

OpSpec bias_spec() {
  return {OpKind::kBias, 2,    StepBuffer::kNone, check,  flops, variant,
          params,        grid, reference,         samples};
}

}  // namespace shoal::compute
