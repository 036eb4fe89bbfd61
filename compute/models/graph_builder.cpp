#include "compute/models/graph_builder.h"

#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

// 1 / sqrt(head_dim) by integers and multiplications alone, so that every machine writes the same
// graph.
float attention_scale(int64_t head_dim) { return exact::exact_rsqrt(static_cast<float>(head_dim)); }

}  // namespace

ValueId GraphBuilder::value(ValueKind kind, DType dtype, Shape shape, std::string name) {
  graph_.values.push_back(
      {.kind = kind, .dtype = dtype, .shape = std::move(shape), .name = std::move(name)});
  return static_cast<ValueId>(graph_.values.size() - 1);
}

ValueId GraphBuilder::weight(std::string_view role, Shape shape) {
  const auto type = types_.find(role);
  SHOAL_CHECK(type != types_.end());
  return value(ValueKind::kWeight, type->second, std::move(shape), std::string(role));
}

ValueId GraphBuilder::op(Op op, DType dtype, Shape shape) {
  op.output = value(ValueKind::kComputed, dtype, std::move(shape), std::string(op_name(op.kind)));
  graph_.ops.push_back(std::move(op));
  return graph_.ops.back().output;
}

ValueId GraphBuilder::tokens() {
  return graph_.input = value(ValueKind::kInput, DType::kI32, {kRows}, "tokens");
}

ValueId GraphBuilder::hidden(int64_t width) {
  return graph_.input = value(ValueKind::kInput, DType::kF32, {kRows, width}, "hidden");
}

ValueId GraphBuilder::embed(ValueId tokens, std::string_view role, int64_t vocabulary,
                            int64_t width) {
  const ValueId table = weight(role, {vocabulary, width});
  return op({.kind = OpKind::kEmbed, .inputs = {tokens, table}}, DType::kF32, {kRows, width});
}

ValueId GraphBuilder::rms_norm(ValueId x, std::string_view role, double epsilon) {
  const Shape shape = graph_.values[x].shape;
  const ValueId scale = weight(role, {shape.back()});
  return op(
      {.kind = OpKind::kRmsNorm, .inputs = {x, scale}, .epsilon = static_cast<float>(epsilon)},
      DType::kF32, shape);
}

ValueId GraphBuilder::matmul(ValueId x, std::string_view role, int64_t outputs) {
  Shape shape = graph_.values[x].shape;
  const ValueId matrix = weight(role, {outputs, shape.back()});
  ValueId left = x;
  if (block_elements(graph_.values[matrix].dtype) > 1) {
    auto [at, added] = quantised_.emplace(x, 0);
    if (added) at->second = op({.kind = OpKind::kQuantize, .inputs = {x}}, DType::kQ8Rows, shape);
    left = at->second;
  }
  shape.back() = outputs;
  return op({.kind = OpKind::kMatmul, .inputs = {left, matrix}}, DType::kF32, shape);
}

ValueId GraphBuilder::rope_table(const RopeSpec& spec) {
  const ValueId id =
      value(ValueKind::kRopeTable, DType::kF32, {kContext, spec.rotary / 2, 2}, "rope");
  graph_.values[id].rope = spec;
  return id;
}

ValueId GraphBuilder::rope(ValueId x, ValueId table, int64_t heads, int64_t head_dim,
                           bool interleaved) {
  return op({.kind = OpKind::kRope,
             .inputs = {x, table},
             .heads = static_cast<uint32_t>(heads),
             .head_dim = static_cast<uint32_t>(head_dim),
             .interleaved = interleaved},
            DType::kF32, graph_.values[x].shape);
}

ValueId GraphBuilder::cache(ValueId x, std::string_view name, DType dtype) {
  const int64_t width = graph_.values[x].shape.back();
  const ValueId state =
      value(ValueKind::kState, dtype, {kSequences, kContext, width}, std::string(name));
  graph_.ops.push_back({.kind = OpKind::kCacheAppend, .inputs = {x, state}, .output = state});
  return state;
}

ValueId GraphBuilder::attention(ValueId q, ValueId keys, ValueId values, int64_t heads,
                                int64_t kv_heads, int64_t head_dim) {
  return op({.kind = OpKind::kAttention,
             .inputs = {q, keys, values},
             .heads = static_cast<uint32_t>(heads),
             .kv_heads = static_cast<uint32_t>(kv_heads),
             .head_dim = static_cast<uint32_t>(head_dim),
             .scale = attention_scale(head_dim)},
            DType::kF32, graph_.values[q].shape);
}

ValueId GraphBuilder::swiglu(ValueId gate, ValueId up) {
  return op({.kind = OpKind::kSwiglu, .inputs = {gate, up}}, DType::kF32,
            graph_.values[gate].shape);
}

ValueId GraphBuilder::add(ValueId a, ValueId b) {
  return op({.kind = OpKind::kAdd, .inputs = {a, b}}, DType::kF32, graph_.values[a].shape);
}

ValueId GraphBuilder::select_rows(ValueId x) {
  Shape shape = graph_.values[x].shape;
  shape.front() = kOutputs;
  return op({.kind = OpKind::kSelectRows, .inputs = {x}}, DType::kF32, shape);
}

Graph GraphBuilder::finish(ValueId output) {
  graph_.numerics_version = SHOAL_NUMERICS_VERSION;
  graph_.output = output;
  return std::move(graph_);
}

}  // namespace shoal::compute
