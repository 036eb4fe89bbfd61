#include "compute/models/graph_builder.h"

#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

// 1 / sqrt(head_dim) by integers and multiplications alone, so that every machine writes the same
// graph.
float attention_scale(double head_dim) { return exact::exact_rsqrt(static_cast<float>(head_dim)); }

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

ValueId GraphBuilder::positions(std::string_view role, int64_t count, int64_t width) {
  const ValueId table = weight(role, {count, width});
  return op({.kind = OpKind::kPositions, .inputs = {table}}, DType::kF32, {kRows, width});
}

ValueId GraphBuilder::rms_norm(ValueId x, std::string_view role, double epsilon, int64_t heads) {
  const Shape shape = graph_.values[x].shape;
  const ValueId factors = weight(role, {shape.back() / heads});
  return op({.kind = OpKind::kRmsNorm,
             .inputs = {x, factors},
             .epsilon = static_cast<float>(epsilon),
             .heads = heads == 1 ? 0 : static_cast<uint32_t>(heads)},
            DType::kF32, shape);
}

ValueId GraphBuilder::layer_norm(ValueId x, std::string_view role, double epsilon) {
  const Shape shape = graph_.values[x].shape;
  const ValueId factors = weight(role, {shape.back()});
  const ValueId added = weight(std::string(role) + "_bias", {shape.back()});
  return op({.kind = OpKind::kLayerNorm,
             .inputs = {x, factors, added},
             .epsilon = static_cast<float>(epsilon)},
            DType::kF32, shape);
}

ValueId GraphBuilder::bias(ValueId x, std::string_view role) {
  const Shape shape = graph_.values[x].shape;
  return op({.kind = OpKind::kBias, .inputs = {x, weight(role, {shape.back()})}}, DType::kF32,
            shape);
}

ValueId GraphBuilder::fit(ValueId x, ValueId matrix) {
  if (!is_quantised_weight(graph_.values[matrix].dtype)) return x;
  auto [at, added] = quantised_.emplace(x, 0);
  if (added) {
    const Shape shape = graph_.values[x].shape;
    at->second = op({.kind = OpKind::kQuantize, .inputs = {x}}, DType::kQ8Rows, shape);
  }
  return at->second;
}

ValueId GraphBuilder::matmul(ValueId x, std::string_view role, int64_t outputs) {
  Shape shape = graph_.values[x].shape;
  const ValueId matrix = weight(role, {outputs, shape.back()});
  const ValueId left = fit(x, matrix);
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

ValueId GraphBuilder::attention(ValueId q, ValueId keys, ValueId values,
                                const AttentionShape& shape) {
  return op({.kind = OpKind::kAttention,
             .inputs = {q, keys, values},
             .heads = static_cast<uint32_t>(shape.heads),
             .kv_heads = static_cast<uint32_t>(shape.kv_heads),
             .head_dim = static_cast<uint32_t>(shape.head_dim),
             .scale = shape.scale == 0 ? attention_scale(static_cast<double>(shape.head_dim))
                                       : static_cast<float>(shape.scale),
             .window = static_cast<uint32_t>(shape.window),
             .cap = static_cast<float>(shape.cap)},
            DType::kF32, graph_.values[q].shape);
}

ValueId GraphBuilder::gelu(ValueId x, bool error_function) {
  return op({.kind = OpKind::kGelu, .inputs = {x}, .error_function = error_function}, DType::kF32,
            graph_.values[x].shape);
}

ValueId GraphBuilder::multiply(ValueId a, ValueId b) {
  return op({.kind = OpKind::kMultiply, .inputs = {a, b}}, DType::kF32, graph_.values[a].shape);
}

ValueId GraphBuilder::scale(ValueId x, double factor) {
  return op({.kind = OpKind::kScale, .inputs = {x}, .scale = static_cast<float>(factor)},
            DType::kF32, graph_.values[x].shape);
}

ValueId GraphBuilder::soft_cap(ValueId x, double cap) {
  return op({.kind = OpKind::kSoftCap, .inputs = {x}, .cap = static_cast<float>(cap)}, DType::kF32,
            graph_.values[x].shape);
}

ValueId GraphBuilder::route(ValueId logits, int64_t experts, int64_t used, bool renormalise) {
  return op({.kind = OpKind::kRoute,
             .inputs = {logits},
             .experts = static_cast<uint32_t>(experts),
             .experts_used = static_cast<uint32_t>(used),
             .renormalise = renormalise},
            DType::kF32, {graph_.values[logits].shape.front(), 2 * used});
}

ValueId GraphBuilder::expert_matmul(ValueId x, std::string_view role, ValueId routes,
                                    int64_t outputs, int64_t inputs, int64_t experts,
                                    int64_t used) {
  const ValueId matrices = weight(role, {experts * outputs, inputs});
  const ValueId left = fit(x, matrices);
  return op({.kind = OpKind::kExpertMatmul,
             .inputs = {left, matrices, routes},
             .experts = static_cast<uint32_t>(experts),
             .experts_used = static_cast<uint32_t>(used)},
            DType::kF32, {graph_.values[x].shape.front(), used * outputs});
}

ValueId GraphBuilder::combine(ValueId x, ValueId routes, int64_t used) {
  Shape shape = graph_.values[x].shape;
  shape.back() /= used;
  return op({.kind = OpKind::kCombine,
             .inputs = {x, routes},
             .experts_used = static_cast<uint32_t>(used)},
            DType::kF32, shape);
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
