// soft_cap: keeps values between -cap and cap, smoothly: cap * tanh(x / cap).

#include "compute/graph/limits.h"
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
  if (!(op.cap >= limits::kCapMin && op.cap <= limits::kCapMax)) {
    return Error{ErrorCode::kCorrupt, "its cap is not in 2^-20 .. 2^20"};
  }
  return {};
}

int64_t flops(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& y = graph.values[op.output];
  return rows_of(y, dims) * y.shape[1] * 20;
}

DType variant(const Graph&, const Op&) { return DType::kF32; }

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& y = graph.values[op.output];
  return ParamBlock::of(SoftCapParams{static_cast<uint>(rows_of(y, dims)),
                                      static_cast<uint>(y.shape[1]), op.cap, 1.0f / op.cap});
}

Grid grid(const ParamBlock& block) {
  const auto p = block.as<SoftCapParams>();
  return {p.rows, p.width};
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
  OpSample infinite{.label = "infinite",
                    .params = ParamBlock::of(SoftCapParams{1, 33, 30.0f, 1.0f / 30.0f}),
                    .non_finite = true};
  infinite.inputs = {make.floats(1, 33)};
  store_f32(infinite.inputs[0].bytes, 32, exact::uintBitsToFloat(0x7F800000u));
  infinite.output = make.poison(DType::kF32, 1, 33);
  list.push_back(std::move(infinite));
  return list;
}

}  // namespace

OpSpec soft_cap_spec() {
  return {OpKind::kSoftCap, 1,    StepBuffer::kNone, check,  flops, variant,
          params,           grid, reference,         samples};
}

}  // namespace shoal::compute
