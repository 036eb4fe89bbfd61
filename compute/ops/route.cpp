// route: which experts a row goes to, and how much each of them counts.

#include <algorithm>
#include <tuple>

#include "compute/graph/limits.h"
#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  const Value& x = graph.values[op.inputs[0]];
  const Value& y = graph.values[op.output];
  if (op.experts == 0 || op.experts > limits::kExpertsMax || op.experts_used == 0 ||
      op.experts_used > limits::kExpertsUsedMax || op.experts_used > op.experts) {
    return Error{ErrorCode::kCorrupt, "it uses " + std::to_string(op.experts_used) + " of " +
                                          std::to_string(op.experts) + " experts"};
  }
  if (!is_rows(x, DType::kF32) || x.shape[1] != op.experts) {
    return shape_error("its input", x, "f32[rows, " + std::to_string(op.experts) + "]");
  }
  if (!is_rows(y, DType::kF32) || y.shape != Shape{x.shape[0], 2 * int64_t{op.experts_used}}) {
    return shape_error("its output", y, "f32[rows, " + std::to_string(2 * op.experts_used) + "]");
  }
  return {};
}

int64_t flops(const Graph& graph, const Op& op, const Dims& dims) {
  return rows_of(graph.values[op.output], dims) * op.experts * (op.experts_used + 15);
}

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  return ParamBlock::of(RouteParams{static_cast<uint>(rows_of(graph.values[op.output], dims)),
                                    op.experts, op.experts_used, op.renormalise ? 1u : 0u});
}

Grid grid(const ParamBlock& block) { return {block.as<RouteParams>().rows, 1}; }

Result<void> reference(DType, const ParamBlock& block, std::span<const ByteSpan> inputs,
                       std::span<std::byte> output) {
  using namespace exact;
  const auto p = block.as<RouteParams>();
  for (int64_t row = 0; row < p.rows; ++row) {
    const auto x = [&](int64_t e) { return exact_flush(load_f32(inputs[0], row * p.experts + e)); };
    for (int64_t e = 0; e < p.experts; ++e) {
      if (!exact_is_finite(x(e))) return non_finite(OpKind::kRoute, row * p.experts + e);
    }
    std::vector<int64_t> chosen;
    for (uint slot = 0; slot < p.used; ++slot) {
      int64_t best = -1;
      for (int64_t e = 0; e < p.experts; ++e) {
        if (std::find(chosen.begin(), chosen.end(), e) != chosen.end()) continue;
        if (best < 0 || x(e) > x(best)) best = e;
      }
      chosen.push_back(best);
    }
    const float largest = x(chosen.front());
    const auto e_of = [&](int64_t e) { return exact_factor(exact_exp(x(e) - largest)); };
    float sum = 0.0f;
    if (p.renormalise != 0) {
      for (const int64_t e : chosen) sum = sum + e_of(e);
    } else {
      for (int64_t e = 0; e < p.experts; ++e) sum = sum + e_of(e);
    }
    const float inverse = exact_reciprocal(sum);
    for (int64_t slot = 0; slot < p.used; ++slot) {
      const int64_t at = row * 2 * p.used + slot;
      store_f32(output, at, static_cast<float>(chosen[static_cast<size_t>(slot)]));
      const float weight = e_of(chosen[static_cast<size_t>(slot)]) * inverse;
      store_f32(output, at + p.used, exact_flush(weight));
    }
  }
  return {};
}

std::vector<OpSample> samples() {
  std::vector<OpSample> list;
  SampleMaker make(18);
  for (const uint renormalise : {0u, 1u}) {
    for (const auto& [rows, experts, used] :
         {std::tuple{1, 1, 1}, {3, 8, 2}, {17, 60, 4}, {2, 128, 8}, {5, 32, 32}}) {
      for (const Pattern pattern : kPatterns) {
        OpSample sample{
            .label = label({{"rows", rows}, {"experts", experts}, {"used", used}}, pattern),
            .params =
                ParamBlock::of(RouteParams{uint(rows), uint(experts), uint(used), renormalise})};
        sample.inputs.push_back(make.floats(rows, experts, pattern));
        if (pattern == Pattern::kOrdinary) {  // Equal ones: the lower comes first.
          for (int64_t i = 0; i + 1 < rows * experts; i += 3) {
            store_f32(sample.inputs[0].bytes, i + 1, load_f32(sample.inputs[0].bytes, i));
          }
        }
        sample.output = make.poison(DType::kF32, rows, 2 * used);
        list.push_back(std::move(sample));
      }
    }
  }
  OpSample infinite{
      .label = "infinite", .params = ParamBlock::of(RouteParams{1, 8, 2, 1}), .non_finite = true};
  infinite.inputs = {make.floats(1, 8)};
  store_f32(infinite.inputs[0].bytes, 7, exact::uintBitsToFloat(0xFF800000u));
  infinite.output = make.poison(DType::kF32, 1, 4);
  list.push_back(std::move(infinite));
  return list;
}

}  // namespace

OpSpec route_spec() {
  return {OpKind::kRoute, 1,    StepBuffer::kNone, check,  flops, f32_variant,
          params,         grid, reference,         samples};
}

}  // namespace shoal::compute
