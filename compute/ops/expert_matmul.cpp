// expert_matmul: each row times the matrices of the experts that it was routed to.

#include <tuple>

#include "compute/graph/limits.h"
#include "compute/ops/dot.h"
#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  const Value& x = graph.values[op.inputs[0]];
  const Value& weight = graph.values[op.inputs[1]];
  const Value& routes = graph.values[op.inputs[2]];
  const Value& y = graph.values[op.output];
  const int64_t used = op.experts_used;
  if (weight.kind != ValueKind::kWeight || weight.shape.size() != 2 || op.experts == 0 ||
      weight.shape[0] % op.experts != 0) {
    return shape_error("its weight", weight,
                       "a weight [" + std::to_string(op.experts) + " * n, k]");
  }
  const int64_t n = weight.shape[0] / op.experts, k = weight.shape[1];
  // What it reads as experts' numbers must be such numbers: only a route makes them.
  bool routed = false;
  for (const Op& other : graph.ops) {
    routed = routed || (other.output == op.inputs[2] && other.kind == OpKind::kRoute &&
                        other.experts == op.experts && other.experts_used == op.experts_used);
  }
  if (!routed) return shape_error("its routes", routes, "what a route to as many experts made");
  const DType x_type = is_quantised_weight(weight.dtype) ? DType::kQ8Rows : DType::kF32;
  if (!is_rows(x, x_type) || (x.shape[1] != k && x.shape[1] != used * k) ||
      x.shape[0] != routes.shape[0]) {
    return shape_error("its input", x,
                       std::string(dtype_name(x_type)) + "[rows, " + std::to_string(k) + " or " +
                           std::to_string(used * k) + "]");
  }
  if (!is_rows(y, DType::kF32) || y.shape != Shape{x.shape[0], used * n}) {
    return shape_error("its output", y, "f32[rows, " + std::to_string(used * n) + "]");
  }
  return {};
}

int64_t flops(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& y = graph.values[op.output];
  return rows_of(y, dims) * y.shape[1] * graph.values[op.inputs[1]].shape[1] * 2;
}

DType variant(const Graph& graph, const Op& op) { return graph.values[op.inputs[1]].dtype; }

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& weight = graph.values[op.inputs[1]];
  const auto k = static_cast<uint>(weight.shape[1]);
  return ParamBlock::of(ExpertMatmulParams{
      static_cast<uint>(rows_of(graph.values[op.output], dims)),
      static_cast<uint>(weight.shape[0]) / op.experts, k, op.experts, op.experts_used,
      static_cast<uint>(graph.values[op.inputs[0]].shape[1]) / k});
}

Grid grid(const ParamBlock& block) {
  const auto p = block.as<ExpertMatmulParams>();
  return {p.rows, int64_t{p.used} * p.n};
}

Result<void> reference(DType variant, const ParamBlock& block, std::span<const ByteSpan> inputs,
                       std::span<std::byte> output) {
  const auto p = block.as<ExpertMatmulParams>();
  const int64_t width = int64_t{p.slots} * p.k;  // Of a row of x.
  for (int64_t row = 0; row < p.rows; ++row) {
    for (int64_t slot = 0; slot < p.used; ++slot) {
      const auto expert = static_cast<int64_t>(load_f32(inputs[2], row * 2 * p.used + slot));
      const int64_t first = p.slots == 1 ? 0 : slot * p.k;
      for (int64_t column = 0; column < p.n; ++column) {
        const int64_t weight_row = expert * p.n + column;
        float y;
        if (is_quantised_weight(variant)) {
          const int64_t base = row * (width / 32 * 36);
          y = quantised_dot(variant, inputs[0], base + first, base + width + first / 32 * 4,
                            inputs[1], weight_row, p.k);
        } else {
          y = float_dot(variant, inputs[0], row * width + first, inputs[1], weight_row * p.k, p.k);
        }
        const int64_t at = (row * p.used + slot) * p.n + column;
        y = exact::exact_flush(y);
        store_f32(output, at, y);
        if (!exact::exact_is_finite(y)) return non_finite(OpKind::kExpertMatmul, at);
      }
    }
  }
  return {};
}

std::vector<OpSample> samples() {
  std::vector<OpSample> list;
  SampleMaker make(19);
  const auto add = [&](DType dtype, int rows, int n, int k, int experts, int used, int slots,
                       Pattern pattern = Pattern::kOrdinary, bool non_finite = false) {
    OpSample sample{.label = label({{"rows", rows},
                                    {"n", n},
                                    {"k", k},
                                    {"experts", experts},
                                    {"used", used},
                                    {"slots", slots}},
                                   pattern),
                    .variant = dtype,
                    .params = ParamBlock::of(ExpertMatmulParams{
                        uint(rows), uint(n), uint(k), uint(experts), uint(used), uint(slots)}),
                    .non_finite = non_finite};
    SampleBuffer routes = make.floats(rows, 2 * used);
    for (int row = 0; row < rows; ++row) {
      const int first = static_cast<int>(make.next() % uint(experts));
      for (int slot = 0; slot < used; ++slot) {
        store_f32(routes.bytes, row * 2 * used + slot,
                  static_cast<float>((first + slot) % experts));
      }
    }
    SampleBuffer x = is_quantised_weight(dtype) ? make.q8_rows(rows, slots * k, pattern)
                                                : make.floats(rows, slots * k, pattern);
    SampleBuffer weight = make.weights(dtype, experts * n, k);
    sample.inputs = {std::move(x), std::move(weight), std::move(routes)};
    sample.output = make.poison(DType::kF32, rows, used * n);
    list.push_back(std::move(sample));
  };
  for (const DType dtype : kWeightTypes) {
    const int unit = static_cast<int>(block_elements(dtype));
    const int k = unit == 256 ? 512 : 288;
    add(dtype, 1, 1, unit, 1, 1, 1);
    add(dtype, 3, 7, k, 4, 2, 1);  // Tiles that hold rows of two experts.
    add(dtype, 5, 16, k, 3, 2, 2);
    add(dtype, 2, 8, k, 3, 3, 3, Pattern::kTiny);
    add(dtype, 2, 9, k, 3, 1, 1, Pattern::kZero);
  }
  add(DType::kF32, 1, 3, 40, 2, 1, 1, Pattern::kMax, /*non_finite=*/true);
  return list;
}

}  // namespace

OpSpec expert_matmul_spec() {
  return {OpKind::kExpertMatmul,
          3,
          StepBuffer::kNone,
          check,
          flops,
          variant,
          params,
          grid,
          reference,
          samples};
}

}  // namespace shoal::compute
