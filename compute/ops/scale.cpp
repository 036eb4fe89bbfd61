// scale: every element times one number.

#include "compute/graph/limits.h"
#include "compute/ops/elementwise.h"
#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  SHOAL_TRY(check_alike(graph, op, {"its input"}));
  if (!(op.scale >= limits::kScaleMin && op.scale <= limits::kScaleMax)) {
    return Error{ErrorCode::kCorrupt, "its scale is not in 2^-50 .. 2^50"};
  }
  return {};
}

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  return element_params<ScaleParams>(graph, op, dims, op.scale);
}

Result<void> reference(DType, const ParamBlock& block, std::span<const ByteSpan> inputs,
                       std::span<std::byte> output) {
  const auto p = block.as<ScaleParams>();
  for (int64_t i = 0; i < int64_t{p.rows} * p.width; ++i) {
    const float y = exact::exact_flush(load_f32(inputs[0], i)) * p.scale;
    store_f32(output, i, exact::exact_flush(y));
  }
  return check_finite(OpKind::kScale, output);
}

std::vector<OpSample> samples() {
  std::vector<OpSample> list;
  SampleMaker make(14);
  for (const float scale : {25.25f, 0x1p-50f}) {
    for (const Pattern pattern : kPatterns) {
      for (const auto& [rows, width] : {std::pair{1, 1}, {3, 63}, {17, 129}}) {
        OpSample sample{.label = label({{"rows", rows}, {"width", width}}, pattern),
                        .params = ParamBlock::of(ScaleParams{uint(rows), uint(width), scale}),
                        .non_finite = scale > 1.0f && pattern == Pattern::kMax};
        sample.inputs.push_back(make.floats(rows, width, pattern));
        sample.output = make.poison(DType::kF32, rows, width);
        list.push_back(std::move(sample));
      }
    }
  }
  return list;
}

}  // namespace

OpSpec scale_spec() {
  return {OpKind::kScale, 1,      StepBuffer::kNone,         check,     element_flops<1>,
          f32_variant,    params, element_grid<ScaleParams>, reference, samples};
}

}  // namespace shoal::compute
