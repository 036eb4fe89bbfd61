// positions: the row of a learned table that belongs to each row's position.

#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  const Value& table = graph.values[op.inputs[0]];
  const Value& y = graph.values[op.output];
  if (table.kind != ValueKind::kWeight || table.shape.size() != 2) {
    return shape_error("its table", table, "a weight [positions, width]");
  }
  if (!is_rows(y, DType::kF32) || y.shape != Shape{kRows, table.shape[1]}) {
    return shape_error("its output", y, "f32[rows, " + std::to_string(table.shape[1]) + "]");
  }
  return {};
}

int64_t flops(const Graph&, const Op&, const Dims&) { return 0; }

DType variant(const Graph& graph, const Op& op) { return graph.values[op.inputs[0]].dtype; }

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& table = graph.values[op.inputs[0]];
  return ParamBlock::of(PositionsParams{static_cast<uint>(dims.rows),
                                        static_cast<uint>(table.shape[1]),
                                        static_cast<uint>(table.shape[0])});
}

Result<void> reference(DType variant, const ParamBlock& block, std::span<const ByteSpan> inputs,
                       std::span<std::byte> output) {
  const auto p = block.as<PositionsParams>();
  for (int64_t row = 0; row < p.rows; ++row) {
    const int64_t position = load_position(inputs[1], row);
    if (position >= p.positions) return non_finite(OpKind::kPositions, row * p.width);
    for (int64_t i = 0; i < p.width; ++i) {
      store_f32(output, row * p.width + i,
                exact::exact_factor(load_element(variant, inputs[0], position * p.width + i)));
    }
  }
  return check_finite(OpKind::kPositions, output);
}

std::vector<OpSample> samples() {
  std::vector<OpSample> list;
  SampleMaker make(17);
  const auto add = [&](DType dtype, int width, int positions, const std::vector<RowInfo>& info,
                       Pattern pattern, bool non_finite = false) {
    const auto rows = static_cast<int>(info.size());
    OpSample sample{
        .label = label({{"rows", rows}, {"width", width}, {"positions", positions}}, pattern),
        .variant = dtype,
        .params = ParamBlock::of(PositionsParams{uint(rows), uint(width), uint(positions)}),
        .non_finite = non_finite};
    SampleBuffer table = make.weights(dtype, positions, width, pattern);
    sample.inputs = {std::move(table), make.row_info(info)};
    sample.output = make.poison(DType::kF32, rows, width);
    list.push_back(std::move(sample));
  };
  for (const DType dtype : kWeightTypes) {
    const int unit = static_cast<int>(block_elements(dtype));
    const int width = unit == 256 ? 512 : 96;
    add(dtype, unit, 1, {{0, 0}}, Pattern::kOrdinary);
    add(dtype, width, 7, {{1, 6}, {0, 0}, {0, 6}}, Pattern::kOrdinary);
    add(dtype, width, 9, {{0, 3}, {0, 4}, {0, 5}, {1, 0}, {1, 1}}, Pattern::kTiny);
  }
  add(DType::kF32, 64, 3, {{0, 2}, {1, 1}}, Pattern::kMax);
  add(DType::kF32, 64, 3, {{0, 2}, {1, 3}}, Pattern::kOrdinary, /*non_finite=*/true);
  return list;
}

}  // namespace

OpSpec positions_spec() {
  return {OpKind::kPositions,
          1,
          StepBuffer::kRowInfo,
          check,
          flops,
          variant,
          params,
          element_grid<PositionsParams>,
          reference,
          samples};
}

}  // namespace shoal::compute
