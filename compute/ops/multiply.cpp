// multiply: y = a * b. A gate that an activation was applied to, and what it lets through.

#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  const Value& a = graph.values[op.inputs[0]];
  const Value& b = graph.values[op.inputs[1]];
  const Value& y = graph.values[op.output];
  if (!is_rows(a, DType::kF32)) return shape_error("its first input", a, "f32[rows, width]");
  if (!is_rows(b, DType::kF32) || b.shape != a.shape)
    return shape_error("its second input", b, describe(a));
  if (!is_rows(y, DType::kF32) || y.shape != a.shape)
    return shape_error("its output", y, describe(a));
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
      MultiplyParams{static_cast<uint>(rows_of(y, dims)), static_cast<uint>(y.shape[1])});
}

Grid grid(const ParamBlock& block) {
  const auto p = block.as<MultiplyParams>();
  return {p.rows, p.width};
}

Result<void> reference(DType, const ParamBlock& block, std::span<const ByteSpan> inputs,
                       std::span<std::byte> output) {
  const auto p = block.as<MultiplyParams>();
  for (int64_t i = 0; i < int64_t{p.rows} * p.width; ++i) {
    const float a = exact::exact_flush(load_f32(inputs[0], i));
    const float b = exact::exact_flush(load_f32(inputs[1], i));
    store_f32(output, i, exact::exact_flush(a * b));
  }
  return check_finite(OpKind::kMultiply, output);
}

std::vector<OpSample> samples() {
  std::vector<OpSample> list;
  SampleMaker make(15);
  for (const Pattern pattern : kPatterns) {
    for (const auto& [rows, width] : {std::pair{1, 1}, {3, 63}, {17, 129}}) {
      OpSample sample{.label = label({{"rows", rows}, {"width", width}}, pattern),
                      .params = ParamBlock::of(MultiplyParams{uint(rows), uint(width)})};
      sample.inputs.push_back(make.floats(rows, width, pattern));
      sample.inputs.push_back(make.floats(
          rows, width,
          pattern == Pattern::kTiny || pattern == Pattern::kZero ? pattern : Pattern::kOrdinary));
      if (pattern == Pattern::kMax) {  // A finite product.
        for (int64_t i = 0; i < rows * width; ++i) {
          store_f32(sample.inputs[1].bytes, i, load_f32(sample.inputs[1].bytes, i) * 0.25f);
        }
      }
      sample.output = make.poison(DType::kF32, rows, width);
      list.push_back(std::move(sample));
    }
  }
  OpSample overflow{
      .label = "overflow", .params = ParamBlock::of(MultiplyParams{1, 33}), .non_finite = true};
  overflow.inputs = {make.floats(1, 33), make.floats(1, 33)};
  for (SampleBuffer& input : overflow.inputs) store_f32(input.bytes, 32, 1e20f);
  overflow.output = make.poison(DType::kF32, 1, 33);
  list.push_back(std::move(overflow));
  return list;
}

}  // namespace

OpSpec multiply_spec() {
  return {OpKind::kMultiply, 2,      StepBuffer::kNone, check, flops, variant, params, grid,
          reference,         samples};
}

}  // namespace shoal::compute
