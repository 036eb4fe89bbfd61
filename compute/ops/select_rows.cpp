// select_rows: keeps the rows whose logits are wanted, so that the head multiplies no others.

#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  const Value& x = graph.values[op.inputs[0]];
  const Value& y = graph.values[op.output];
  if (!is_rows(x, DType::kF32) || x.shape[0] != kRows)
    return shape_error("its input", x, "f32[rows, width]");
  if (!is_rows(y, DType::kF32) || y.shape != Shape{kOutputs, x.shape[1]}) {
    return shape_error("its output", y, "f32[outputs, " + std::to_string(x.shape[1]) + "]");
  }
  return {};
}

int64_t flops(const Graph&, const Op&, const Dims&) { return 0; }

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  return ParamBlock::of(SelectRowsParams{static_cast<uint>(dims.outputs),
                                         static_cast<uint>(graph.values[op.output].shape[1]),
                                         static_cast<uint>(dims.rows)});
}

Result<void> reference(DType, const ParamBlock& block, std::span<const ByteSpan> inputs,
                       std::span<std::byte> output) {
  const auto p = block.as<SelectRowsParams>();
  for (int64_t row = 0; row < p.rows; ++row) {
    const int64_t from = load_i32(inputs[1], row);
    for (int64_t i = 0; i < p.width; ++i) {
      store_f32(output, row * p.width + i,
                exact::exact_flush(load_f32(inputs[0], from * p.width + i)));
    }
  }
  return check_finite(OpKind::kSelectRows, output);
}

std::vector<OpSample> samples() {
  std::vector<OpSample> list;
  SampleMaker make(3);
  const auto add = [&](int rows_in, int width, const std::vector<int32_t>& picked,
                       Pattern pattern) {
    const auto rows = static_cast<int>(picked.size());
    OpSample sample{
        .label = label({{"rows", rows}, {"width", width}, {"of", rows_in}}, pattern),
        .params = ParamBlock::of(SelectRowsParams{uint(rows), uint(width), uint(rows_in)})};
    sample.inputs = {make.floats(rows_in, width, pattern), make.integers(picked)};
    sample.output = make.poison(DType::kF32, rows, width);
    list.push_back(std::move(sample));
  };
  add(1, 1, {0}, Pattern::kOrdinary);
  add(3, 65, {2}, Pattern::kOrdinary);
  add(17, 64, {0, 5, 16}, Pattern::kTiny);
  add(17, 3, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, Pattern::kMax);
  return list;
}

}  // namespace

OpSpec select_rows_spec() {
  return {OpKind::kSelectRows,
          1,
          StepBuffer::kPicked,
          check,
          flops,
          f32_variant,
          params,
          element_grid<SelectRowsParams>,
          reference,
          samples};
}

}  // namespace shoal::compute
