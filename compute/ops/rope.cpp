// rope: turns pairs of each head's elements by an angle that grows with the position.

#include "compute/graph/limits.h"
#include "compute/ops/op.h"
#include "compute/ops/rope_table.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  const Value& x = graph.values[op.inputs[0]];
  const Value& table = graph.values[op.inputs[1]];
  const Value& y = graph.values[op.output];
  if (op.head_dim == 0 || op.head_dim > limits::kHeadDimMax || op.heads == 0 ||
      op.heads > limits::kHeadsMax) {
    return Error{ErrorCode::kCorrupt,
                 "it has " + std::to_string(op.heads) + " heads of " + std::to_string(op.head_dim)};
  }
  if (!is_rows(x, DType::kF32) || x.shape[0] != kRows ||
      x.shape[1] != int64_t{op.heads} * op.head_dim) {
    return shape_error(
        "its input", x,
        "f32[rows, " + std::to_string(op.heads) + " heads of " + std::to_string(op.head_dim) + "]");
  }
  if (table.kind != ValueKind::kRopeTable || table.rope.rotary > op.head_dim) {
    return shape_error("its table", table,
                       "a rope table of at most " + std::to_string(op.head_dim));
  }
  if (!is_rows(y, DType::kF32) || y.shape != x.shape)
    return shape_error("its output", y, describe(x));
  return {};
}

int64_t flops(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& y = graph.values[op.output];
  return rows_of(y, dims) * y.shape[1] * 3;
}

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  return ParamBlock::of(RopeParams{static_cast<uint>(dims.rows), op.heads, op.head_dim,
                                   graph.values[op.inputs[1]].rope.rotary,
                                   op.interleaved ? 1u : 0u});
}

Grid grid(const ParamBlock& block) {
  const auto p = block.as<RopeParams>();
  return {p.rows, p.heads};
}

Result<void> reference(DType, const ParamBlock& block, std::span<const ByteSpan> inputs,
                       std::span<std::byte> output) {
  const auto p = block.as<RopeParams>();
  const int64_t half = p.rotary / 2;
  for (int64_t row = 0; row < p.rows; ++row) {
    const int64_t position = load_position(inputs[2], row);
    for (int64_t head = 0; head < p.heads; ++head) {
      const int64_t first = (row * p.heads + head) * p.head_dim;
      for (int64_t i = 0; i < half; ++i) {
        const int64_t at_a = first + (p.interleaved != 0 ? 2 * i : i);
        const int64_t at_b = first + (p.interleaved != 0 ? 2 * i + 1 : i + half);
        const float a = exact::exact_factor(load_f32(inputs[0], at_a));
        const float b = exact::exact_factor(load_f32(inputs[0], at_b));
        const float c = exact::exact_factor(load_f32(inputs[1], (position * half + i) * 2));
        const float s = exact::exact_factor(load_f32(inputs[1], (position * half + i) * 2 + 1));
        const float ac = a * c, bs = b * s, as = a * s, bc = b * c;
        store_f32(output, at_a, exact::exact_flush(ac - bs));
        store_f32(output, at_b, exact::exact_flush(as + bc));
      }
      for (int64_t i = p.rotary; i < p.head_dim; ++i) {
        store_f32(output, first + i, exact::exact_flush(load_f32(inputs[0], first + i)));
      }
    }
  }
  return check_finite(OpKind::kRope, output);
}

std::vector<OpSample> samples() {
  std::vector<OpSample> list;
  SampleMaker make(8);
  const auto add = [&](const std::vector<uint32_t>& positions, int heads, int head_dim, int rotary,
                       bool interleaved, Pattern pattern, bool non_finite = false) {
    const auto rows = static_cast<int>(positions.size());
    constexpr int kTablePositions = 100;
    OpSample sample{.label = label({{"rows", rows},
                                    {"heads", heads},
                                    {"head_dim", head_dim},
                                    {"rotary", rotary},
                                    {"interleaved", interleaved}},
                                   pattern),
                    .params = ParamBlock::of(RopeParams{uint(rows), uint(heads), uint(head_dim),
                                                        uint(rotary), interleaved ? 1u : 0u}),
                    .non_finite = non_finite};
    SampleBuffer table = make.floats(kTablePositions, rotary);
    const std::vector<float> angles =
        make_rope_table({.rotary = uint32_t(rotary)}, kTablePositions);
    std::memcpy(table.bytes.data(), angles.data(), table.bytes.size());
    std::vector<RowInfo> info;
    for (const uint32_t position : positions) info.push_back({position % 2, position});
    sample.inputs = {make.floats(rows, int64_t{heads} * head_dim, pattern), std::move(table),
                     make.row_info(info)};
    sample.output = make.poison(DType::kF32, rows, int64_t{heads} * head_dim);
    list.push_back(std::move(sample));
  };
  std::vector<uint32_t> seventeen;
  for (uint32_t i = 0; i < 17; ++i) seventeen.push_back((i * 29) % 100);
  for (const bool interleaved : {false, true}) {
    add({0}, 1, 2, 2, interleaved, Pattern::kOrdinary);
    add({99, 0, 7}, 3, 64, 64, interleaved, Pattern::kOrdinary);
    add(seventeen, 5, 80, 20, interleaved, Pattern::kOrdinary);
    add({1, 50, 98}, 2, 128, 128, interleaved, Pattern::kTiny);
    add({1, 50, 98}, 2, 9, 8, interleaved, Pattern::kLarge);
    add({0, 1, 2}, 2, 8, 8, interleaved, Pattern::kZero);
  }
  add({60, 61, 62}, 2, 16, 16, false, Pattern::kMax, /*non_finite=*/true);
  return list;
}

}  // namespace

OpSpec rope_spec() {
  return {OpKind::kRope, 2,      StepBuffer::kRowInfo, check, flops, f32_variant, params, grid,
          reference,     samples};
}

}  // namespace shoal::compute
