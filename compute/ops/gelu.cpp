// gelu: x times how likely a normal variable is below it, by tanh's approximation or by the error
// function.

#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  const Value& x = graph.values[op.inputs[0]];
  const Value& y = graph.values[op.output];
  if (!is_rows(x, DType::kF32)) return shape_error("its input", x, "f32[rows, width]");
  if (!is_rows(y, DType::kF32) || y.shape != x.shape)
    return shape_error("its output", y, describe(x));
  return {};
}

int64_t flops(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& y = graph.values[op.output];
  return rows_of(y, dims) * y.shape[1] * 20;
}

DType variant(const Graph&, const Op&) { return DType::kF32; }

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& y = graph.values[op.output];
  return ParamBlock::of(GeluParams{static_cast<uint>(rows_of(y, dims)),
                                   static_cast<uint>(y.shape[1]), op.error_function ? 1u : 0u});
}

Grid grid(const ParamBlock& block) {
  const auto p = block.as<GeluParams>();
  return {p.rows, p.width};
}

Result<void> reference(DType, const ParamBlock& block, std::span<const ByteSpan> inputs,
                       std::span<std::byte> output) {
  const auto p = block.as<GeluParams>();
  for (int64_t i = 0; i < int64_t{p.rows} * p.width; ++i) {
    const float x = exact::exact_flush(load_f32(inputs[0], i));
    store_f32(output, i,
              p.error_function != 0 ? exact::exact_gelu_erf(x) : exact::exact_gelu_tanh(x));
  }
  return check_finite(OpKind::kGelu, output);
}

std::vector<OpSample> samples() {
  std::vector<OpSample> list;
  SampleMaker make(12);
  for (const uint error_function : {0u, 1u}) {
    for (const Pattern pattern : kPatterns) {
      for (const auto& [rows, width] : {std::pair{1, 1}, {3, 63}, {17, 129}}) {
        OpSample sample{
            .label = label({{"erf", error_function}, {"rows", rows}, {"width", width}}, pattern),
            .params = ParamBlock::of(GeluParams{uint(rows), uint(width), error_function})};
        sample.inputs.push_back(make.floats(rows, width, pattern));
        if (pattern == Pattern::kOrdinary) {  // Both sides of where the result is 0 or x.
          for (int64_t i = 0; i < rows * width; i += 2) {
            store_f32(sample.inputs[0].bytes, i, load_f32(sample.inputs[0].bytes, i) * 9.0f);
          }
        }
        sample.output = make.poison(DType::kF32, rows, width);
        list.push_back(std::move(sample));
      }
    }
    OpSample infinite{.label = "infinite",
                      .params = ParamBlock::of(GeluParams{1, 33, error_function}),
                      .non_finite = true};
    infinite.inputs = {make.floats(1, 33)};
    store_f32(infinite.inputs[0].bytes, 32, exact::uintBitsToFloat(0x7F800000u));
    infinite.output = make.poison(DType::kF32, 1, 33);
    list.push_back(std::move(infinite));
  }
  return list;
}

}  // namespace

OpSpec gelu_spec() {
  return {OpKind::kGelu, 1,    StepBuffer::kNone, check,  flops, variant,
          params,        grid, reference,         samples};
}

}  // namespace shoal::compute
