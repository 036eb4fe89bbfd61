// gelu: x times how likely a normal variable is below it, by tanh's approximation or by the error
// function.

#include "compute/ops/elementwise.h"
#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  return check_alike(graph, op, {"its input"});
}

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  return element_params<GeluParams>(graph, op, dims, op.error_function ? 1u : 0u);
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
    list.push_back(make.failing("infinite", ParamBlock::of(GeluParams{1, 33, error_function}),
                                {make.floats(1, 33)}, exact::uintBitsToFloat(0x7F800000u)));
  }
  return list;
}

}  // namespace

OpSpec gelu_spec() {
  return {OpKind::kGelu, 1,      StepBuffer::kNone,        check,     element_flops<20>,
          f32_variant,   params, element_grid<GeluParams>, reference, samples};
}

}  // namespace shoal::compute
