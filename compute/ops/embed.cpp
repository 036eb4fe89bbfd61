// embed: a token's row of the table.

#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  const Value& tokens = graph.values[op.inputs[0]];
  const Value& table = graph.values[op.inputs[1]];
  const Value& y = graph.values[op.output];
  if (tokens.dtype != DType::kI32 || tokens.shape != Shape{kRows}) {
    return shape_error("its tokens", tokens, "i32[rows]");
  }
  if (table.kind != ValueKind::kWeight || table.shape.size() != 2) {
    return shape_error("its table", table, "a weight [vocabulary, width]");
  }
  if (!is_rows(y, DType::kF32) || y.shape != Shape{kRows, table.shape[1]}) {
    return shape_error("its output", y, "f32[rows, " + std::to_string(table.shape[1]) + "]");
  }
  return {};
}

int64_t flops(const Graph&, const Op&, const Dims&) { return 0; }

DType variant(const Graph& graph, const Op& op) { return graph.values[op.inputs[1]].dtype; }

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& table = graph.values[op.inputs[1]];
  return ParamBlock::of(EmbedParams{static_cast<uint>(dims.rows), static_cast<uint>(table.shape[1]),
                                    static_cast<uint>(table.shape[0])});
}

Result<void> reference(DType variant, const ParamBlock& block, std::span<const ByteSpan> inputs,
                       std::span<std::byte> output) {
  const auto p = block.as<EmbedParams>();
  for (int64_t row = 0; row < p.rows; ++row) {
    const int64_t token = load_i32(inputs[0], row);
    for (int64_t i = 0; i < p.width; ++i) {
      store_f32(output, row * p.width + i,
                exact::exact_factor(load_element(variant, inputs[1], token * p.width + i)));
    }
  }
  return check_finite(OpKind::kEmbed, output);
}

std::vector<OpSample> samples() {
  std::vector<OpSample> list;
  SampleMaker make(4);
  const auto add = [&](DType dtype, int width, int vocabulary, const std::vector<int32_t>& tokens,
                       Pattern pattern) {
    const auto rows = static_cast<int>(tokens.size());
    OpSample sample{
        .label = label({{"rows", rows}, {"width", width}, {"vocabulary", vocabulary}}, pattern),
        .variant = dtype,
        .params = ParamBlock::of(EmbedParams{uint(rows), uint(width), uint(vocabulary)})};
    sample.inputs = {make.integers(tokens), make.weights(dtype, vocabulary, width, pattern)};
    sample.output = make.poison(DType::kF32, rows, width);
    list.push_back(std::move(sample));
  };
  for (const DType dtype : kWeightTypes) {
    const int unit = static_cast<int>(block_elements(dtype));
    const int width = unit == 256 ? 512 : 96;
    add(dtype, unit, 1, {0}, Pattern::kOrdinary);
    add(dtype, width, 7, {6, 0, 6}, Pattern::kOrdinary);
    add(dtype, width + unit, 40, {39, 3, 3, 0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14},
        Pattern::kTiny);
    add(dtype, unit == 256 ? 256 : 64, 3, {1, 2, 0}, Pattern::kMax);
  }
  return list;
}

}  // namespace

OpSpec embed_spec() {
  return {OpKind::kEmbed, 2,      StepBuffer::kNone,         check,     flops,
          variant,        params, element_grid<EmbedParams>, reference, samples};
}

}  // namespace shoal::compute
