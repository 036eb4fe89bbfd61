// verify(), cost() and decode() of graph.h: what a graph from a stranger must keep, and what it
// costs.

#include <bit>
#include <set>

#include "compute/graph/graph.h"
#include "compute/graph/limits.h"
#include "compute/ops/op.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

std::string value_label(const Graph& graph, ValueId id) {
  std::string text = "value " + std::to_string(id);
  if (!graph.values[id].name.empty()) text += " (" + graph.values[id].name + ")";
  return text;
}

std::string op_label(const Graph& graph, size_t index) {
  return "op " + std::to_string(index) + " (" + std::string(op_name(graph.ops[index].kind)) + ")";
}

Error corrupt(std::string message) { return Error{ErrorCode::kCorrupt, std::move(message)}; }

Result<void> check_name(const std::string& name) {
  if (name.size() > limits::kNameBytesMax) return corrupt("its name is too long");
  for (const char c : name) {
    if (c <= 0x20 || c == 0x7F) return corrupt("its name holds a byte that is not printable ASCII");
  }
  return {};
}

bool is_known_dtype(DType dtype) { return static_cast<int>(dtype) < kDTypes; }

// Every dimension is within its limit or one of the symbols.
Result<void> check_dims(const Value& value) {
  if (value.shape.empty() || value.shape.size() > 3) {
    return corrupt("it has " + std::to_string(value.shape.size()) + " dimensions");
  }
  for (const int64_t dim : value.shape) {
    const bool symbol = dim == kRows || dim == kOutputs || dim == kContext || dim == kSequences;
    if (!symbol && (dim < 1 || dim > limits::kWidthMax)) {
      return corrupt("a dimension is " + std::to_string(dim) + " where 1 .. " +
                     std::to_string(limits::kWidthMax) + " is allowed");
    }
  }
  if (value.shape.back() > 0 && value.shape.back() % block_elements(value.dtype) != 0) {
    return corrupt(describe(value) + ": the last dimension is no multiple of " +
                   std::to_string(block_elements(value.dtype)));
  }
  return {};
}

bool all_fixed(const Shape& shape) {
  for (const int64_t dim : shape) {
    if (dim < 1) return false;
  }
  return true;
}

// The shape that a value of its kind has. Adds a weight's bytes to `weight_bytes`.
Result<void> check_value(const Value& value, int64_t& weight_bytes) {
  if (!is_known_dtype(value.dtype)) return corrupt("its type is unknown");
  SHOAL_TRY(check_name(value.name));
  SHOAL_TRY(check_dims(value));
  switch (value.kind) {
    case ValueKind::kInput: {
      const bool tokens = value.dtype == DType::kI32 && value.shape == Shape{kRows};
      const bool hidden = value.dtype == DType::kF32 && value.shape.size() == 2 &&
                          value.shape[0] == kRows && value.shape[1] > 0;
      if (!tokens && !hidden)
        return shape_error("the input", value, "i32[rows] or f32[rows, width]");
      return {};
    }
    case ValueKind::kWeight: {
      if (value.name.empty()) return corrupt("a weight has no name");
      if (!is_weight_type(value.dtype) || value.shape.size() > 2 || !all_fixed(value.shape)) {
        return shape_error("it", value, "a weight of one or two fixed dimensions");
      }
      SHOAL_TRY_ASSIGN(bytes, byte_size(value.dtype, value.shape));
      weight_bytes += bytes;  // At most 2^42 each, and 16384 of them.
      if (weight_bytes > limits::kWeightBytesMax) return corrupt("the weights pass 2^40 bytes");
      return {};
    }
    case ValueKind::kState:
      if ((value.dtype != DType::kF32 && value.dtype != DType::kF16) || value.shape.size() != 3 ||
          value.shape[0] != kSequences || value.shape[1] != kContext || value.shape[2] < 1) {
        return shape_error("it", value, "f32 or f16[sequences, context, width]");
      }
      return {};
    case ValueKind::kRopeTable: {
      const RopeSpec& rope = value.rope;
      if (rope.rotary < 2 || rope.rotary % 2 != 0 || rope.rotary > limits::kHeadDimMax) {
        return corrupt("its rotary is " + std::to_string(rope.rotary));
      }
      if (value.dtype != DType::kF32 || value.shape != Shape{kContext, rope.rotary / 2, 2}) {
        return shape_error("it", value, "f32[context, rotary / 2, 2]");
      }
      if (!(rope.theta >= limits::kThetaMin && rope.theta <= limits::kThetaMax)) {
        return corrupt("its theta is out of range");
      }
      if (!(rope.linear_factor >= limits::kLinearFactorMin &&
            rope.linear_factor <= limits::kLinearFactorMax)) {
        return corrupt("its linear factor is out of range");
      }
      if (!(rope.magnitude >= limits::kMagnitudeMin && rope.magnitude <= limits::kMagnitudeMax)) {
        return corrupt("its magnitude is out of range");
      }
      for (const auto* divisors : {&rope.divisors, &rope.long_divisors}) {
        if (!divisors->empty() && divisors->size() != rope.rotary / 2) {
          return corrupt("it has " + std::to_string(divisors->size()) + " divisors where " +
                         std::to_string(rope.rotary / 2) + " are needed");
        }
        for (const double divisor : *divisors) {
          if (!(divisor >= limits::kLinearFactorMin && divisor <= limits::kLinearFactorMax)) {
            return corrupt("a divisor is out of range");
          }
        }
      }
      if (rope.long_beyond < 0 || rope.long_beyond > limits::kContextMax) {
        return corrupt("its bound for long contexts is out of range");
      }
      return {};
    }
    case ValueKind::kComputed: {
      const bool rows = value.shape.size() == 2 &&
                        (value.shape[0] == kRows || value.shape[0] == kOutputs) &&
                        value.shape[1] > 0;
      if (!rows || (value.dtype != DType::kF32 && value.dtype != DType::kQ8Rows)) {
        return shape_error("it", value, "f32 or q8_rows[rows or outputs, width]");
      }
      return {};
    }
  }
  return corrupt("its kind is unknown");
}

}  // namespace

Result<void> verify(const Graph& graph) {
  if (graph.numerics_version != SHOAL_NUMERICS_VERSION) {
    return Error{
        ErrorCode::kUnsupported,
        "graph: numerics version " + std::to_string(graph.numerics_version) + " is not known here"};
  }
  const size_t count = graph.values.size();
  if (count == 0 || count > limits::kValuesMax)
    return corrupt("graph: it has " + std::to_string(count) + " values");
  if (graph.ops.empty() || graph.ops.size() > limits::kOpsMax) {
    return corrupt("graph: it has " + std::to_string(graph.ops.size()) + " ops");
  }
  if (graph.input >= count || graph.values[graph.input].kind != ValueKind::kInput) {
    return corrupt("graph: its input is no input value");
  }
  if (graph.output >= count || graph.values[graph.output].kind != ValueKind::kComputed ||
      graph.values[graph.output].dtype != DType::kF32) {
    return corrupt("graph: its output is no computed f32 value");
  }

  int64_t weight_bytes = 0;
  std::set<std::string_view> names;
  for (ValueId id = 0; id < count; ++id) {
    const Value& value = graph.values[id];
    if (Result<void> checked = check_value(value, weight_bytes); !checked.ok()) {
      return with_context(checked.error(), value_label(graph, id));
    }
    if (value.kind == ValueKind::kInput && id != graph.input) {
      return corrupt(value_label(graph, id) + ": a second input");
    }
    if (value.kind == ValueKind::kWeight && !names.insert(value.name).second) {
      return corrupt(value_label(graph, id) + ": a second weight of this name");
    }
  }

  std::vector<bool> made(count), used(count), appended(count);
  for (size_t index = 0; index < graph.ops.size(); ++index) {
    const Op& op = graph.ops[index];
    if (static_cast<size_t>(op.kind) >= op_list().size()) {
      return corrupt("op " + std::to_string(index) + ": its kind is unknown");
    }
    const OpSpec& spec = op_spec(op.kind);
    if (op.inputs.size() != spec.inputs) {
      return corrupt(op_label(graph, index) + ": it has " + std::to_string(op.inputs.size()) +
                     " inputs where " + std::to_string(spec.inputs) + " are needed");
    }
    for (const ValueId input : op.inputs) {
      if (input >= count) return corrupt(op_label(graph, index) + ": an input is out of range");
      if (graph.values[input].kind == ValueKind::kComputed && !made[input]) {
        return corrupt(op_label(graph, index) + ": " + value_label(graph, input) +
                       " is used before it is made");
      }
      if (op.kind == OpKind::kAttention && graph.values[input].kind == ValueKind::kState &&
          !appended[input]) {
        return corrupt(op_label(graph, index) + ": " + value_label(graph, input) +
                       " is read before anything is appended");
      }
      used[input] = true;
    }
    if (op.output >= count) return corrupt(op_label(graph, index) + ": its output is out of range");
    if (op.kind == OpKind::kCacheAppend) {
      if (appended[op.output]) {
        return corrupt(op_label(graph, index) + ": " + value_label(graph, op.output) +
                       " is appended to twice");
      }
      appended[op.output] = true;
    } else {
      if (graph.values[op.output].kind != ValueKind::kComputed) {
        return corrupt(op_label(graph, index) + ": " + value_label(graph, op.output) +
                       " can not be an output");
      }
      if (made[op.output]) {
        return corrupt(op_label(graph, index) + ": " + value_label(graph, op.output) +
                       " is made twice");
      }
      made[op.output] = true;
    }
    if (Result<void> checked = spec.check(graph, op); !checked.ok()) {
      return with_context(checked.error(), op_label(graph, index));
    }
  }
  if (!made[graph.output]) return corrupt("graph: its output is made by no op");
  used[graph.output] = true;
  for (ValueId id = 0; id < count; ++id) {
    if (!used[id]) return corrupt(value_label(graph, id) + ": it is used by no op");
  }
  return {};
}

Result<GraphCost> cost(const Graph& graph, const Dims& dims) {
  if (dims.rows < 0 || dims.rows > limits::kRowsMax || dims.outputs < 0 ||
      dims.outputs > limits::kRowsMax || dims.context < 1 || dims.context > limits::kContextMax ||
      dims.sequences < 1 || dims.sequences > limits::kSequencesMax) {
    return Error{ErrorCode::kInvalid, "cost: rows, outputs, context or sequences are out of range"};
  }
  GraphCost total;
  bool fits = true;
  const auto add = [&](int64_t& sum, int64_t more) {
    fits = fits && !__builtin_add_overflow(sum, more, &sum);
  };
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    const Value& value = graph.values[id];
    const Shape shape = bind(value.shape, dims);
    int64_t bytes = 0;
    if (shape[0] > 0) {  // No rows, no bytes.
      SHOAL_TRY_ASSIGN(size, byte_size(value.dtype, shape));
      bytes = size;
    }
    switch (value.kind) {
      case ValueKind::kInput: add(total.input_bytes, bytes); break;
      case ValueKind::kWeight: add(total.weight_bytes, bytes); break;
      case ValueKind::kState: add(total.state_bytes, bytes); break;
      case ValueKind::kRopeTable: add(total.workspace_bytes, bytes); break;
      case ValueKind::kComputed: add(total.workspace_bytes, bytes); break;
    }
    if (id == graph.output) total.output_bytes = bytes;
  }
  for (const Op& op : graph.ops) add(total.flops, op_spec(op.kind).flops(graph, op, dims));
  if (!fits) return corrupt("graph: its cost passes 2^63");
  return total;
}

namespace {

Result<std::vector<double>> read_divisors(ByteReader& reader) {
  SHOAL_TRY_ASSIGN(count, reader.u32("divisor count"));
  if (count > limits::kHeadDimMax / 2) {
    return corrupt("it has " + std::to_string(count) + " divisors");
  }
  std::vector<double> divisors;
  for (uint32_t i = 0; i < count; ++i) {
    SHOAL_TRY_ASSIGN(bits, reader.u64("divisor"));
    divisors.push_back(std::bit_cast<double>(bits));
  }
  return divisors;
}

// `second`: the graph says SHG2; SHG1 had neither scaled tables nor the later ops' fields.
Result<Value> read_value(ByteReader& reader, bool second) {
  Value value;
  SHOAL_TRY_ASSIGN(kind, reader.u8("value kind"));
  SHOAL_TRY_ASSIGN(dtype, reader.u8("value type"));
  SHOAL_TRY_ASSIGN(rank, reader.u8("value rank"));
  value.kind = static_cast<ValueKind>(kind);
  value.dtype = static_cast<DType>(dtype);
  for (int i = 0; i < rank; ++i) {
    SHOAL_TRY_ASSIGN(dim, reader.u64("value dimension"));
    value.shape.push_back(static_cast<int64_t>(dim));
  }
  SHOAL_TRY_ASSIGN(name_bytes, reader.u16("name length"));
  SHOAL_TRY_ASSIGN(name, reader.text(name_bytes, "name"));
  value.name = name;
  if (value.kind == ValueKind::kRopeTable) {
    SHOAL_TRY_ASSIGN(theta, reader.u64("theta"));
    SHOAL_TRY_ASSIGN(rotary, reader.u32("rotary"));
    SHOAL_TRY_ASSIGN(factor, reader.u64("linear factor"));
    value.rope.theta = std::bit_cast<double>(theta);
    value.rope.rotary = rotary;
    value.rope.linear_factor = std::bit_cast<double>(factor);
    if (second) {
      SHOAL_TRY_ASSIGN(magnitude, reader.u64("magnitude"));
      SHOAL_TRY_ASSIGN(divisors, read_divisors(reader));
      SHOAL_TRY_ASSIGN(long_divisors, read_divisors(reader));
      SHOAL_TRY_ASSIGN(beyond, reader.u64("bound for long contexts"));
      value.rope.magnitude = std::bit_cast<double>(magnitude);
      value.rope.divisors = std::move(divisors);
      value.rope.long_divisors = std::move(long_divisors);
      value.rope.long_beyond = static_cast<int64_t>(beyond);
    }
  }
  return value;
}

Result<bool> read_flag(ByteReader& reader, const char* what) {
  SHOAL_TRY_ASSIGN(flag, reader.u8(what));
  if (flag > 1) return corrupt(std::string(what) + " is neither 0 nor 1");
  return flag == 1;
}

Result<Op> read_op(ByteReader& reader, bool second) {
  Op op;
  SHOAL_TRY_ASSIGN(kind, reader.u8("op kind"));
  SHOAL_TRY_ASSIGN(inputs, reader.u8("op inputs"));
  op.kind = static_cast<OpKind>(kind);
  for (int i = 0; i < inputs; ++i) {
    SHOAL_TRY_ASSIGN(input, reader.u32("op input"));
    op.inputs.push_back(input);
  }
  SHOAL_TRY_ASSIGN(output, reader.u32("op output"));
  SHOAL_TRY_ASSIGN(epsilon, reader.f32("epsilon"));
  SHOAL_TRY_ASSIGN(heads, reader.u32("heads"));
  SHOAL_TRY_ASSIGN(kv_heads, reader.u32("kv_heads"));
  SHOAL_TRY_ASSIGN(head_dim, reader.u32("head_dim"));
  SHOAL_TRY_ASSIGN(interleaved, read_flag(reader, "interleaved"));
  SHOAL_TRY_ASSIGN(scale, reader.f32("scale"));
  op.output = output;
  op.epsilon = epsilon;
  op.heads = heads;
  op.kv_heads = kv_heads;
  op.head_dim = head_dim;
  op.interleaved = interleaved;
  op.scale = scale;
  if (!second) return op;
  SHOAL_TRY_ASSIGN(window, reader.u32("window"));
  SHOAL_TRY_ASSIGN(cap, reader.f32("cap"));
  SHOAL_TRY_ASSIGN(error_function, read_flag(reader, "error_function"));
  SHOAL_TRY_ASSIGN(experts, reader.u32("experts"));
  SHOAL_TRY_ASSIGN(experts_used, reader.u32("experts_used"));
  SHOAL_TRY_ASSIGN(renormalise, read_flag(reader, "renormalise"));
  op.window = window;
  op.cap = cap;
  op.error_function = error_function;
  op.experts = experts;
  op.experts_used = experts_used;
  op.renormalise = renormalise;
  return op;
}

Result<Graph> read_graph(ByteReader& reader) {
  SHOAL_TRY_ASSIGN(magic, reader.text(4, "magic"));
  if (magic != "SHG1" && magic != "SHG2") return corrupt("this is no graph");
  const bool second = magic == "SHG2";
  Graph graph;
  SHOAL_TRY_ASSIGN(version, reader.u32("numerics version"));
  SHOAL_TRY_ASSIGN(input, reader.u32("input"));
  SHOAL_TRY_ASSIGN(output, reader.u32("output"));
  graph.numerics_version = version;
  graph.input = input;
  graph.output = output;
  SHOAL_TRY_ASSIGN(values, reader.u32("value count"));
  if (values > limits::kValuesMax) return corrupt("it has " + std::to_string(values) + " values");
  for (uint32_t i = 0; i < values; ++i) {
    SHOAL_TRY_ASSIGN(value, read_value(reader, second));
    graph.values.push_back(std::move(value));
  }
  SHOAL_TRY_ASSIGN(ops, reader.u32("op count"));
  if (ops > limits::kOpsMax) return corrupt("it has " + std::to_string(ops) + " ops");
  for (uint32_t i = 0; i < ops; ++i) {
    SHOAL_TRY_ASSIGN(op, read_op(reader, second));
    graph.ops.push_back(std::move(op));
  }
  if (!reader.at_end()) return corrupt("bytes follow its end");
  return graph;
}

}  // namespace

Result<Graph> decode(ByteSpan bytes) {
  if (bytes.size() > limits::kEncodedBytesMax) return corrupt("graph: it is longer than 16 MiB");
  ByteReader reader(bytes);
  Result<Graph> graph = read_graph(reader);
  if (!graph.ok()) return with_context(graph.error(), "graph");
  SHOAL_TRY(verify(graph.value()));
  return graph;
}

}  // namespace shoal::compute
