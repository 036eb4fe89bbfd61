// matmul: each row times a weight matrix; with quantised weights an integer product of blocks.

#include "compute/ops/dot.h"
#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  const Value& x = graph.values[op.inputs[0]];
  const Value& weight = graph.values[op.inputs[1]];
  const Value& y = graph.values[op.output];
  if (weight.kind != ValueKind::kWeight || weight.shape.size() != 2) {
    return shape_error("its weight", weight, "a weight [n, k]");
  }
  const DType x_type = is_quantised_weight(weight.dtype) ? DType::kQ8Rows : DType::kF32;
  if (!is_rows(x, x_type) || x.shape[1] != weight.shape[1]) {
    return shape_error(
        "its input", x,
        std::string(dtype_name(x_type)) + "[rows, " + std::to_string(weight.shape[1]) + "]");
  }
  if (!is_rows(y, DType::kF32) || y.shape != Shape{x.shape[0], weight.shape[0]}) {
    return shape_error("its output", y, "f32[rows, " + std::to_string(weight.shape[0]) + "]");
  }
  return {};
}

int64_t flops(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& weight = graph.values[op.inputs[1]];
  return rows_of(graph.values[op.output], dims) * weight.shape[0] * weight.shape[1] * 2;
}

DType variant(const Graph& graph, const Op& op) { return graph.values[op.inputs[1]].dtype; }

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& weight = graph.values[op.inputs[1]];
  const auto n = static_cast<uint>(weight.shape[0]);
  return ParamBlock::of(MatmulParams{static_cast<uint>(rows_of(graph.values[op.output], dims)), n,
                                     static_cast<uint>(weight.shape[1]), 0, n});
}

Grid grid(const ParamBlock& block) {
  const auto p = block.as<MatmulParams>();
  return {p.rows, p.n};
}

Result<void> reference(DType variant, const ParamBlock& block, std::span<const ByteSpan> inputs,
                       std::span<std::byte> output) {
  const auto p = block.as<MatmulParams>();
  for (int64_t row = 0; row < p.rows; ++row) {
    for (int64_t column = 0; column < p.n; ++column) {
      const float y = exact::exact_flush(
          is_quantised_weight(variant)
              ? quantised_dot(variant, inputs[0], row * (p.k / 32 * 36),
                              row * (p.k / 32 * 36) + p.k, inputs[1], column, p.k)
              : float_dot(variant, inputs[0], row * p.k, inputs[1], column * p.k, p.k));
      const int64_t at = row * p.n_total + p.n_first + column;
      store_f32(output, at, y);
      if (!exact::exact_is_finite(y)) return non_finite(OpKind::kMatmul, at);
    }
  }
  return {};
}

std::vector<OpSample> samples() {
  std::vector<OpSample> list;
  SampleMaker make(7);
  struct Case {
    int rows, n, k;
    Pattern x = Pattern::kOrdinary, weight = Pattern::kOrdinary;
    int n_first = 0, n_after = 0;
    bool non_finite = false;
  };
  const auto add = [&](DType dtype, const Case& c) {
    std::string text = label({{"rows", c.rows}, {"n", c.n}, {"k", c.k}}, c.x);
    OpSample sample{.label = text + " x " + pattern_name(c.weight),
                    .variant = dtype,
                    .non_finite = c.non_finite};
    const int n_total = c.n_first + c.n + c.n_after;
    sample.params = ParamBlock::of(
        MatmulParams{uint(c.rows), uint(c.n), uint(c.k), uint(c.n_first), uint(n_total)});
    sample.inputs = {
        is_quantised_weight(dtype) ? make.q8_rows(c.rows, c.k, c.x) : make.floats(c.rows, c.k, c.x),
        make.weights(dtype, c.n, c.k, c.weight)};
    sample.output = make.poison(DType::kF32, c.rows, n_total);
    list.push_back(std::move(sample));
  };
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const int k : {1, 2, 7, 8, 9, 31, 33, 255, 256, 257, 511, 512, 513, 1037})
      add(dtype, {1, 3, k});
    add(dtype, {3, 17, 172});
    add(dtype, {17, 65, 96});
    add(dtype, {33, 7, 300});
    add(dtype, {1, 1, 1});
    add(dtype, {3, 9, 264, Pattern::kOrdinary, Pattern::kOrdinary, 5, 6});
    add(dtype, {3, 5, 300, Pattern::kZero, Pattern::kOrdinary});
    add(dtype, {3, 5, 300, Pattern::kTiny, Pattern::kOrdinary});
    add(dtype, {3, 5, 300, Pattern::kHuge, Pattern::kOrdinary});
    add(dtype, {3, 5, 300, Pattern::kLarge, Pattern::kOrdinary});
    add(dtype, {3, 5, 300, Pattern::kOrdinary, Pattern::kZero});
    add(dtype, {3, 5, 300, Pattern::kOrdinary, Pattern::kTiny});
    add(dtype, {3, 5, 300, Pattern::kTiny, Pattern::kTiny});
    add(dtype, {3, 5, 300, Pattern::kLarge, Pattern::kTiny});
    add(dtype, {1, 5, 300, Pattern::kMax, Pattern::kOrdinary, 0, 0, /*non_finite=*/true});
  }
  for (const DType dtype : kWeightTypes) {
    if (!is_quantised_weight(dtype)) continue;
    const bool large = block_elements(dtype) == 256;
    const int k = large ? 512 : 288;
    if (large) {
      for (const int width : {256, 512, 768, 1280}) add(dtype, {1, 3, width});
    } else {
      for (const int width : {32, 64, 224, 256, 288, 512, 544, 1056}) add(dtype, {1, 3, width});
      add(dtype, {3, 17, 96});
      add(dtype, {17, 65, 64});
      add(dtype, {1, 1, 32});
    }
    add(dtype, {5, 17, k});
    add(dtype, {33, 7, k});
    add(dtype, {3, 9, k, Pattern::kOrdinary, Pattern::kOrdinary, 5, 6});
    add(dtype, {3, 5, k, Pattern::kZero, Pattern::kOrdinary});
    add(dtype, {3, 5, k, Pattern::kTiny, Pattern::kOrdinary});
    add(dtype, {3, 5, k, Pattern::kLarge, Pattern::kOrdinary});
    add(dtype, {3, 5, k, Pattern::kMax, Pattern::kMax});    // The largest integer sums,
    add(dtype, {3, 5, k, Pattern::kMax, Pattern::kLarge});  // either way.
    add(dtype, {3, 5, k, Pattern::kOrdinary, Pattern::kZero});
    add(dtype, {3, 5, k, Pattern::kOrdinary, Pattern::kTiny});
    add(dtype, {3, 5, k, Pattern::kTiny, Pattern::kTiny});
    // Every scale infinite.
    const int least = large ? 256 : 64;
    add(dtype, {1, 5, least, Pattern::kOrdinary, Pattern::kOrdinary, 0, 0, /*non_finite=*/true});
    ByteVector& bytes = list.back().inputs[1].bytes;
    const int64_t block_bytes = byte_size(dtype, {block_elements(dtype)}).value();
    const int64_t scale_at = dtype == DType::kQ6_K ? 208 : 0;
    for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(block_bytes)) {
      store_le<uint16_t>(bytes.data() + at + scale_at, 0x7C00);
      if (dtype == DType::kQ6_K) continue;
      if (large) std::fill_n(bytes.data() + at + 4, 12, std::byte{0x21});  // No scale is 0.
    }
  }
  return list;
}

}  // namespace

OpSpec matmul_spec() {
  return {OpKind::kMatmul, 2,    StepBuffer::kNone, check,  flops, variant,
          params,          grid, reference,         samples};
}

}  // namespace shoal::compute
