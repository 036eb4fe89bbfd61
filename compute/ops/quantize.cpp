// quantize: activations to int8 in blocks of 32 with an f32 scale each, for the quantised products.

#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  const Value& x = graph.values[op.inputs[0]];
  const Value& y = graph.values[op.output];
  if (!is_rows(x, DType::kF32) || x.shape[1] % SHOAL_QUANT_BLOCK != 0) {
    return shape_error("its input", x, "f32[rows, a multiple of 32]");
  }
  if (!is_rows(y, DType::kQ8Rows) || y.shape != x.shape) {
    return shape_error("its output", y, "q8_rows of its input's shape");
  }
  return {};
}

int64_t flops(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& y = graph.values[op.output];
  return rows_of(y, dims) * y.shape[1] * 2;
}

ParamBlock params(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& y = graph.values[op.output];
  return ParamBlock::of(
      QuantizeParams{static_cast<uint>(rows_of(y, dims)), static_cast<uint>(y.shape[1])});
}

Grid grid(const ParamBlock& block) {
  const auto p = block.as<QuantizeParams>();
  return {p.rows, p.width / SHOAL_QUANT_BLOCK};
}

Result<void> reference(DType, const ParamBlock& block, std::span<const ByteSpan> inputs,
                       std::span<std::byte> output) {
  const auto p = block.as<QuantizeParams>();
  const int64_t row_bytes = p.width + p.width / 32 * 4;
  for (int64_t row = 0; row < p.rows; ++row) {
    for (int64_t b = 0; b < p.width / 32; ++b) {
      const int64_t first = row * p.width + b * 32;
      uint32_t largest = 0;
      for (int64_t i = 0; i < 32; ++i) {
        largest =
            std::max(largest, exact::floatBitsToUint(load_f32(inputs[0], first + i)) & 0x7FFFFFFFu);
      }
      if (largest > SHOAL_MAGNITUDE_BITS) return non_finite(OpKind::kQuantize, first);
      const float inverse = exact::exact_quant_inverse(largest);
      for (int64_t i = 0; i < 32; ++i) {
        const int q = exact::exact_quant_value(load_f32(inputs[0], first + i), inverse);
        output[row * row_bytes + b * 32 + i] = static_cast<std::byte>(q);
      }
      const float scale = exact::exact_quant_scale(largest);
      std::memcpy(output.data() + row * row_bytes + p.width + b * 4, &scale, 4);
    }
  }
  return {};
}

std::vector<OpSample> samples() {
  std::vector<OpSample> list;
  SampleMaker make(6);
  const auto add = [&](int rows, int width, Pattern pattern, bool non_finite = false) {
    OpSample sample{.label = label({{"rows", rows}, {"width", width}}, pattern),
                    .params = ParamBlock::of(QuantizeParams{uint(rows), uint(width)}),
                    .non_finite = non_finite};
    sample.inputs = {make.floats(rows, width, pattern)};
    sample.output = make.poison(DType::kQ8Rows, rows, width);
    list.push_back(std::move(sample));
  };
  for (const Pattern pattern :
       {Pattern::kOrdinary, Pattern::kZero, Pattern::kHuge, Pattern::kLarge, Pattern::kTiny}) {
    add(1, 32, pattern);
    add(3, 64, pattern);
    add(17, 288, pattern);
  }
  add(1, 64, Pattern::kMax, /*non_finite=*/true);
  // Blocks whose largest value stands on either side of the bounds, and ties in rounding.
  OpSample sample{.label = "bounds", .params = ParamBlock::of(QuantizeParams{3, 128})};
  SampleBuffer x = make.floats(3, 128, Pattern::kZero);
  for (int b = 0; b < 5; ++b) {
    store_f32(x.bytes, b * 32 + b, exact::uintBitsToFloat(SHOAL_FACTOR_BITS - 2u + uint(b)));
    store_f32(x.bytes, b * 32 + 30,
              exact::uintBitsToFloat(0x80000000u | (SHOAL_FACTOR_BITS - 3u + uint(b))));
  }
  for (int b = 5; b < 7; ++b) {
    store_f32(x.bytes, b * 32 + 31, exact::uintBitsToFloat(SHOAL_MAGNITUDE_BITS - 6u + uint(b)));
  }
  for (int b = 7; b < 12; ++b) {
    for (int i = 0; i < 32; ++i)
      store_f32(x.bytes, b * 32 + i, (float(i) - 15.5f) * (b % 2 == 0 ? 1.0f : 8.0f));
    store_f32(x.bytes, b * 32 + 31, 127.0f);
  }
  sample.inputs = {std::move(x)};
  sample.output = make.poison(DType::kQ8Rows, 3, 128);
  list.push_back(std::move(sample));
  return list;
}

}  // namespace

OpSpec quantize_spec() {
  return {OpKind::kQuantize, 1,      StepBuffer::kNone, check, flops, f32_variant, params, grid,
          reference,         samples};
}

}  // namespace shoal::compute
