#include "compute/graph/graph.h"

#include <bit>
#include <iterator>

namespace shoal::compute {

std::string_view op_name(OpKind kind) {
  constexpr std::string_view kNames[] = {"embed",     "rms_norm",     "quantize",      "matmul",
                                         "rope",      "cache_append", "attention",     "swiglu",
                                         "add",       "select_rows",  "layer_norm",    "bias",
                                         "gelu",      "multiply",     "soft_cap",      "scale",
                                         "positions", "route",        "expert_matmul", "combine"};
  static_assert(std::size(kNames) == kOpKinds);
  const auto index = static_cast<size_t>(kind);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

// "SHG2", numerics version, input, output, then the values and the ops, each preceded by its count.
// decode() is in compute/ops/verify.cpp, beside the rules that it must check.
std::vector<std::byte> encode(const Graph& graph) {
  ByteWriter writer;
  writer.text("SHG2");
  writer.u32(graph.numerics_version);
  writer.u32(graph.input);
  writer.u32(graph.output);
  writer.u32(static_cast<uint32_t>(graph.values.size()));
  for (const Value& value : graph.values) {
    writer.u8(static_cast<uint8_t>(value.kind));
    writer.u8(static_cast<uint8_t>(value.dtype));
    writer.u8(static_cast<uint8_t>(value.shape.size()));
    for (const int64_t dim : value.shape) writer.u64(static_cast<uint64_t>(dim));
    writer.u16(static_cast<uint16_t>(value.name.size()));
    writer.text(value.name);
    if (value.kind == ValueKind::kRopeTable) {
      writer.u64(std::bit_cast<uint64_t>(value.rope.theta));
      writer.u32(value.rope.rotary);
      writer.u64(std::bit_cast<uint64_t>(value.rope.linear_factor));
      writer.u64(std::bit_cast<uint64_t>(value.rope.magnitude));
      for (const auto* divisors : {&value.rope.divisors, &value.rope.long_divisors}) {
        writer.u32(static_cast<uint32_t>(divisors->size()));
        for (const double divisor : *divisors) writer.u64(std::bit_cast<uint64_t>(divisor));
      }
      writer.u64(static_cast<uint64_t>(value.rope.long_beyond));
    }
  }
  writer.u32(static_cast<uint32_t>(graph.ops.size()));
  for (const Op& op : graph.ops) {
    writer.u8(static_cast<uint8_t>(op.kind));
    writer.u8(static_cast<uint8_t>(op.inputs.size()));
    for (const ValueId input : op.inputs) writer.u32(input);
    writer.u32(op.output);
    writer.f32(op.epsilon);
    writer.u32(op.heads);
    writer.u32(op.kv_heads);
    writer.u32(op.head_dim);
    writer.u8(op.interleaved ? 1 : 0);
    writer.f32(op.scale);
    writer.u32(op.window);
    writer.f32(op.cap);
    writer.u8(op.error_function ? 1 : 0);
    writer.u32(op.experts);
    writer.u32(op.experts_used);
    writer.u8(op.renormalise ? 1 : 0);
  }
  return writer.take();
}

}  // namespace shoal::compute
