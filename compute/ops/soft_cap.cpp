// soft_cap: keeps values between -cap and cap, smoothly: cap * tanh(x / cap).

#include "compute/graph/limits.h"
#include "compute/ops/elementwise.h"
#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  SHOAL_TRY(check_alike(graph, op, {"its input"}));
  if (!(op.cap >= limits::kCapMin && op.cap <= limits::kCapMax)) {
    return Error{ErrorCode::kCorrupt, "its cap is not in 2^-20 .. 2^20"};
  }
  return {};
}

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  return element_params<SoftCapParams>(graph, op, dims, op.cap, 1.0f / op.cap);
}

Result<void> reference(DType, const ParamBlock& block, std::span<const ByteSpan> inputs,
                       std::span<std::byte> output) {
  const auto p = block.as<SoftCapParams>();
  for (int64_t i = 0; i < int64_t{p.rows} * p.width; ++i) {
    const float x = load_f32(inputs[0], i);
    if (!exact::exact_is_finite(x)) return non_finite(OpKind::kSoftCap, i);
    store_f32(output, i, exact::exact_soft_cap(x, p.cap, p.inverse_cap));
  }
  return {};
}

std::vector<OpSample> samples() {
  std::vector<OpSample> list;
  SampleMaker make(13);
  for (const float cap : {30.0f, 0.01f, 50.0f}) {
    for (const Pattern pattern : kPatterns) {
      for (const auto& [rows, width] : {std::pair{1, 1}, {3, 63}, {17, 129}}) {
        OpSample sample{
            .label = label({{"rows", rows}, {"width", width}, {"cap", int64_t(cap)}}, pattern),
            .params = ParamBlock::of(SoftCapParams{uint(rows), uint(width), cap, 1.0f / cap})};
        sample.inputs.push_back(make.floats(rows, width, pattern));
        if (pattern == Pattern::kOrdinary) {  // Both halves of tanh, and beyond its end.
          for (int64_t i = 0; i < rows * width; i += 2) {
            store_f32(sample.inputs[0].bytes, i, load_f32(sample.inputs[0].bytes, i) * cap * 20.0f);
          }
        }
        sample.output = make.poison(DType::kF32, rows, width);
        list.push_back(std::move(sample));
      }
    }
  }
  list.push_back(make.failing("infinite", ParamBlock::of(SoftCapParams{1, 33, 30.0f, 1.0f / 30.0f}),
                              {make.floats(1, 33)}, exact::uintBitsToFloat(0x7F800000u)));
  return list;
}

}  // namespace

OpSpec soft_cap_spec() {
  return {OpKind::kSoftCap, 1,      StepBuffer::kNone,           check,     element_flops<20>,
          f32_variant,      params, element_grid<SoftCapParams>, reference, samples};
}

}  // namespace shoal::compute
