// cache_append: writes a step's keys or values into the stage's state, at each row's position.

#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  const Value& x = graph.values[op.inputs[0]];
  const Value& state = graph.values[op.inputs[1]];
  if (!is_rows(x, DType::kF32) || x.shape[0] != kRows)
    return shape_error("its input", x, "f32[rows, width]");
  if (state.kind != ValueKind::kState || state.shape != Shape{kSequences, kContext, x.shape[1]}) {
    return shape_error("its state", state,
                       "a state [sequences, context, " + std::to_string(x.shape[1]) + "]");
  }
  if (op.output != op.inputs[1]) return Error{ErrorCode::kCorrupt, "its output is not its state"};
  return {};
}

int64_t flops(const Graph&, const Op&, const Dims&) { return 0; }

DType variant(const Graph& graph, const Op& op) { return graph.values[op.output].dtype; }

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  return ParamBlock::of(CacheAppendParams{static_cast<uint>(dims.rows),
                                          static_cast<uint>(graph.values[op.inputs[0]].shape[1])});
}

Grid grid(const ParamBlock& block) {
  const auto p = block.as<CacheAppendParams>();
  return {p.rows, p.width};
}

Result<void> reference(DType variant, const ParamBlock& block, std::span<const ByteSpan> inputs,
                       std::span<std::byte> output) {
  const auto p = block.as<CacheAppendParams>();
  for (int64_t row = 0; row < p.rows; ++row) {
    const int64_t to = load_place(inputs[1], row, load_position(inputs[1], row)) * p.width;
    for (int64_t i = 0; i < p.width; ++i) {
      const float x = load_f32(inputs[0], row * p.width + i);
      if (variant == DType::kF32) {
        if (!exact::exact_is_finite(x)) return non_finite(OpKind::kCacheAppend, row * p.width + i);
        store_f32(output, to + i, exact::exact_factor(x));
      } else {
        const uint32_t half = exact::exact_float_to_half(x);
        if ((half & 0x7C00u) == 0x7C00u) return non_finite(OpKind::kCacheAppend, row * p.width + i);
        store_le<uint16_t>(output.data() + (to + i) * 2, static_cast<uint16_t>(half));
      }
    }
  }
  return {};
}

std::vector<OpSample> samples() {
  std::vector<OpSample> list;
  SampleMaker make(9);
  const auto add = [&](DType dtype, const std::vector<RowInfo>& info, int width, int context,
                       Pattern pattern, bool non_finite = false) {
    const auto rows = static_cast<int>(info.size());
    OpSample sample{
        .label = label({{"rows", rows}, {"width", width}, {"context", context}}, pattern),
        .variant = dtype,
        .params = ParamBlock::of(CacheAppendParams{uint(rows), uint(width)}),
        .non_finite = non_finite};
    sample.inputs = {make.floats(rows, width, pattern), make.row_info(info, 2, context)};
    sample.output = make.states(dtype, state_positions(2, context), width);
    if (dtype == DType::kF16 && pattern == Pattern::kOrdinary) {
      // Halfway between halves, and the largest that does not become infinite.
      store_f32(sample.inputs[0].bytes, 0, 1.00048828125f);
      store_f32(sample.inputs[0].bytes, rows * width - 1, 65519.99f);
    }
    list.push_back(std::move(sample));
  };
  std::vector<RowInfo> seventeen;
  for (uint32_t i = 0; i < 17; ++i) seventeen.push_back({i % 2, 3 + i / 2});
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    add(dtype, {{0, 0}}, 2, 1, Pattern::kOrdinary);
    add(dtype, {{1, 8}, {0, 0}, {1, 2}}, 33, 9,
        Pattern::kOrdinary);  // Odd: a word holds halves of two rows.
    add(dtype, seventeen, 64, 40, Pattern::kOrdinary);
    add(dtype, {{1, 6}, {1, 7}, {1, 8}}, 48, 9, Pattern::kTiny);
    add(dtype, {{1, 6}, {0, 6}, {1, 0}}, 48, 9, Pattern::kZero);
  }
  add(DType::kF32, {{1, 6}, {1, 7}, {1, 8}}, 48, 9, Pattern::kMax);
  add(DType::kF16, {{1, 6}, {1, 7}, {1, 8}}, 48, 9, Pattern::kHuge, /*non_finite=*/true);
  return list;
}

}  // namespace

OpSpec cache_append_spec() {
  return {OpKind::kCacheAppend,
          2,
          StepBuffer::kRowInfo,
          check,
          flops,
          variant,
          params,
          grid,
          reference,
          samples};
}

}  // namespace shoal::compute
