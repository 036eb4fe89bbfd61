// combine: what the experts of a row made of it, each as much as its route says.

#include <tuple>

#include "compute/graph/limits.h"
#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  const Value& x = graph.values[op.inputs[0]];
  const Value& routes = graph.values[op.inputs[1]];
  const Value& y = graph.values[op.output];
  const int64_t used = op.experts_used;
  if (used == 0 || used > limits::kExpertsUsedMax) {
    return Error{ErrorCode::kCorrupt, "it combines " + std::to_string(used) + " experts"};
  }
  if (!is_rows(x, DType::kF32) || x.shape[1] % used != 0) {
    return shape_error("its input", x, "f32[rows, " + std::to_string(used) + " * width]");
  }
  if (!is_rows(routes, DType::kF32) || routes.shape != Shape{x.shape[0], 2 * used}) {
    return shape_error("its routes", routes, "f32[rows, " + std::to_string(2 * used) + "]");
  }
  if (!is_rows(y, DType::kF32) || y.shape != Shape{x.shape[0], x.shape[1] / used}) {
    return shape_error("its output", y, "f32[rows, " + std::to_string(x.shape[1] / used) + "]");
  }
  return {};
}

int64_t flops(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& x = graph.values[op.inputs[0]];
  return rows_of(x, dims) * x.shape[1] * 2;
}

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& y = graph.values[op.output];
  return ParamBlock::of(CombineParams{static_cast<uint>(rows_of(y, dims)),
                                      static_cast<uint>(y.shape[1]), op.experts_used});
}

Result<void> reference(DType, const ParamBlock& block, std::span<const ByteSpan> inputs,
                       std::span<std::byte> output) {
  using namespace exact;
  const auto p = block.as<CombineParams>();
  for (int64_t row = 0; row < p.rows; ++row) {
    for (int64_t i = 0; i < p.width; ++i) {
      float sum = 0.0f;
      for (int64_t slot = 0; slot < p.used; ++slot) {
        const float weight = exact_factor(load_f32(inputs[1], (row * 2 + 1) * p.used + slot));
        const float part = exact_factor(load_f32(inputs[0], (row * p.used + slot) * p.width + i));
        const float product = weight * part;
        sum = sum + product;
      }
      store_f32(output, row * p.width + i, exact_flush(sum));
    }
  }
  return check_finite(OpKind::kCombine, output);
}

std::vector<OpSample> samples() {
  std::vector<OpSample> list;
  SampleMaker make(20);
  for (const auto& [rows, width, used] :
       {std::tuple{1, 1, 1}, {3, 63, 2}, {5, 129, 8}, {2, 64, 32}}) {
    for (const Pattern pattern : kPatterns) {
      OpSample sample{.label = label({{"rows", rows}, {"width", width}, {"used", used}}, pattern),
                      .params = ParamBlock::of(CombineParams{uint(rows), uint(width), uint(used)}),
                      .non_finite = pattern == Pattern::kMax && used > 1};
      SampleBuffer routes = make.floats(rows, 2 * used);
      for (int64_t i = 0; i < rows * 2 * used; ++i) {
        store_f32(routes.bytes, i,
                  pattern == Pattern::kMax ? 1.0f : load_f32(routes.bytes, i) * 0.5f);
      }
      SampleBuffer x = make.floats(rows, int64_t{used} * width, pattern);
      if (sample.non_finite) {  // Two of the same sign.
        for (int slot = 0; slot < 2; ++slot) store_f32(x.bytes, slot * width, 3e38f);
      }
      sample.inputs = {std::move(x), std::move(routes)};
      sample.output = make.poison(DType::kF32, rows, width);
      list.push_back(std::move(sample));
    }
  }
  return list;
}

}  // namespace

OpSpec combine_spec() {
  return {OpKind::kCombine, 2,      StepBuffer::kNone,           check,     flops,
          f32_variant,      params, element_grid<CombineParams>, reference, samples};
}

}  // namespace shoal::compute
