// multiply: y = a * b. A gate that an activation was applied to, and what it lets through.

#include "compute/ops/elementwise.h"
#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  return check_alike(graph, op, {"its first input", "its second input"});
}

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  return element_params<MultiplyParams>(graph, op, dims);
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
  list.push_back(make.failing("overflow", ParamBlock::of(MultiplyParams{1, 33}),
                              {make.floats(1, 33), make.floats(1, 33)}, 1e20f));
  return list;
}

}  // namespace

OpSpec multiply_spec() {
  return {OpKind::kMultiply,
          2,
          StepBuffer::kNone,
          check,
          element_flops<1>,
          f32_variant,
          params,
          element_grid<MultiplyParams>,
          reference,
          samples};
}

}  // namespace shoal::compute
