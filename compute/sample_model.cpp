#include "compute/sample_model.h"

#include <cmath>

#include "base/check.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

// What random blocks of a type hold, d being 1: how far values spread, the m (or what d of the
// minima) that puts their middle near 0, and where in a block d stands.
struct Quantised {
  float spread = 1.0f, middle = 0.0f;
  size_t d_at = 0;
};
Quantised quantised(DType dtype) {
  switch (dtype) {
    case DType::kQ8_0: return {74.0f};
    case DType::kQ4_0: return {4.6f};
    case DType::kQ4_1: return {4.6f, -7.5f};
    case DType::kQ5_0: return {9.2f};
    case DType::kQ5_1: return {9.2f, -15.5f};
    case DType::kQ4_K: return {260.0f, 7.5f};
    case DType::kQ5_K: return {520.0f, 15.5f};
    case DType::kQ6_K: return {1360.0f, 0.0f, 208};
    default: return {};
  }
}

// Builds one fragment, op by op.
class Builder {
 public:
  Builder(const SampleModelShape& shape, SampleMaker& make, SampleModel& model)
      : shape_(shape), make_(make), model_(model) {}

  ValueId input(DType dtype, Shape shape) {
    fragment_.graph.input =
        add({.kind = ValueKind::kInput, .dtype = dtype, .shape = std::move(shape)});
    return fragment_.graph.input;
  }

  ValueId norm(ValueId x) {
    const int64_t width = value(x).shape[1];
    const ValueId weight =
        add_weight("norm" + std::to_string(fragment_.graph.values.size()), DType::kF32, {width});
    return op({.kind = OpKind::kRmsNorm, .inputs = {x, weight}, .epsilon = 1e-5f}, value(x).shape);
  }

  // Quantises first where the weights are quantised.
  ValueId matmul(ValueId x, const std::string& name, int64_t n) {
    const int64_t k = value(x).shape[1];
    const int64_t rows = value(x).shape[0];
    if (block_elements(shape_.weights) > 1) {
      x = op({.kind = OpKind::kQuantize, .inputs = {x}}, value(x).shape, DType::kQ8Rows);
    }
    const ValueId weight = add_weight(name, shape_.weights, {n, k});
    return op({.kind = OpKind::kMatmul, .inputs = {x, weight}}, {rows, n});
  }

  ValueId embed(ValueId tokens) {
    const ValueId table = add_weight("table", shape_.weights, {shape_.vocabulary, shape_.width});
    return op({.kind = OpKind::kEmbed, .inputs = {tokens, table}}, {kRows, shape_.width});
  }

  ValueId rope(ValueId x, ValueId table, uint32_t heads) {
    return op(
        {.kind = OpKind::kRope, .inputs = {x, table}, .heads = heads, .head_dim = shape_.head_dim},
        value(x).shape);
  }

  ValueId block(ValueId x) {
    const int64_t kv_width = int64_t{shape_.kv_heads} * shape_.head_dim;
    const int64_t q_width = int64_t{shape_.heads} * shape_.head_dim;
    Value table{.kind = ValueKind::kRopeTable, .shape = {kContext, shape_.head_dim / 2, 2}};
    table.rope.rotary = shape_.head_dim;
    const ValueId angles = add(std::move(table));
    const ValueId keys = add({.kind = ValueKind::kState,
                              .dtype = shape_.states,
                              .shape = {kSequences, kContext, kv_width}});
    const ValueId values = add({.kind = ValueKind::kState,
                                .dtype = shape_.states,
                                .shape = {kSequences, kContext, kv_width}});
    const ValueId normed = norm(x);
    const ValueId q = rope(matmul(normed, "q", q_width), angles, shape_.heads);
    append(rope(matmul(normed, "k", kv_width), angles, shape_.kv_heads), keys);
    append(matmul(normed, "v", kv_width), values);
    const ValueId attended = op({.kind = OpKind::kAttention,
                                 .inputs = {q, keys, values},
                                 .heads = shape_.heads,
                                 .kv_heads = shape_.kv_heads,
                                 .head_dim = shape_.head_dim,
                                 .scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_dim))},
                                {kRows, q_width});
    const ValueId middle = sum(x, matmul(attended, "o", shape_.width));
    const ValueId normed2 = norm(middle);
    const ValueId gate = matmul(normed2, "gate", shape_.inner);
    const ValueId up = matmul(normed2, "up", shape_.inner);
    const ValueId inner =
        op({.kind = OpKind::kSwiglu, .inputs = {gate, up}}, {kRows, shape_.inner});
    return sum(middle, matmul(inner, "down", shape_.width));
  }

  ValueId head(ValueId x) {
    const ValueId picked =
        op({.kind = OpKind::kSelectRows, .inputs = {x}}, {kOutputs, shape_.width});
    return matmul(norm(picked), "head", shape_.vocabulary);
  }

  void finish(ValueId output) {
    fragment_.graph.output = output;
    model_.fragments.push_back(std::move(fragment_));
  }

 private:
  const Value& value(ValueId id) const { return fragment_.graph.values[id]; }

  ValueId add(Value value) {
    fragment_.graph.values.push_back(std::move(value));
    return static_cast<ValueId>(fragment_.graph.values.size() - 1);
  }

  ValueId op(Op node, Shape shape, DType dtype = DType::kF32) {
    node.output = add({.dtype = dtype, .shape = std::move(shape)});
    fragment_.graph.ops.push_back(node);
    return node.output;
  }

  ValueId sum(ValueId a, ValueId b) {
    return op({.kind = OpKind::kAdd, .inputs = {a, b}}, value(a).shape);
  }

  void append(ValueId x, ValueId state) {
    fragment_.graph.ops.push_back(
        {.kind = OpKind::kCacheAppend, .inputs = {x, state}, .output = state});
  }

  ValueId add_weight(const std::string& name, DType dtype, Shape shape) {
    const int64_t rows = shape.size() == 2 ? shape[0] : 1;
    const int64_t columns = shape.back();
    const Result<int64_t> size = byte_size(dtype, {rows, columns});
    SHOAL_CHECK(size.ok());
    ByteVector bytes(static_cast<size_t>(size.value()));
    // So that a row of about 1 gives a row of about 1.
    const float spread = rows == 1 ? 1.0f : 1.0f / std::sqrt(static_cast<float>(columns));
    const Quantised how = quantised(dtype);
    if (block_elements(dtype) > 1) {
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(make_.next());
      for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(block_bytes(dtype))) {
        const float factor = 0.5f + static_cast<float>(make_.next() >> 8) * 0x1p-24f;
        const float d = spread / how.spread * factor;
        const auto half = [](float x) {
          return static_cast<uint16_t>(exact::exact_float_to_half(x));
        };
        store_le<uint16_t>(bytes.data() + at + how.d_at, half(d));
        if (how.middle != 0.0f) store_le<uint16_t>(bytes.data() + at + 2, half(d * how.middle));
      }
    } else {
      for (int64_t i = 0; i < rows * columns; ++i) {
        const float x = rows == 1 ? 1.0f + 0.1f * make_.ordinary() : make_.ordinary() * spread;
        if (dtype == DType::kF32) store_f32(bytes, i, x);
        if (dtype == DType::kF16)
          store_le<uint16_t>(bytes.data() + i * 2,
                             static_cast<uint16_t>(exact::exact_float_to_half(x)));
        if (dtype == DType::kBF16)
          store_le<uint16_t>(bytes.data() + i * 2,
                             static_cast<uint16_t>(exact::floatBitsToUint(x) >> 16));
      }
    }
    model_.storage.push_back(std::make_unique<const ByteVector>(std::move(bytes)));
    fragment_.weights[name] = *model_.storage.back();
    return add(
        {.kind = ValueKind::kWeight, .dtype = dtype, .shape = std::move(shape), .name = name});
  }

  const SampleModelShape& shape_;
  SampleMaker& make_;
  SampleModel& model_;
  Fragment fragment_;
};

}  // namespace

SampleModel make_sample_model(const SampleModelShape& shape) {
  SampleModel model;
  SampleMaker make(shape.seed);
  if (shape.ends) {
    Builder builder(shape, make, model);
    builder.finish(builder.embed(builder.input(DType::kI32, {kRows})));
  }
  for (int i = 0; i < shape.blocks; ++i) {
    Builder builder(shape, make, model);
    builder.finish(builder.block(builder.input(DType::kF32, {kRows, shape.width})));
  }
  if (shape.ends) {
    Builder builder(shape, make, model);
    builder.finish(builder.head(builder.input(DType::kF32, {kRows, shape.width})));
  }
  return model;
}

}  // namespace shoal::compute
