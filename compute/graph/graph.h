#pragma once
// The one intermediate representation: values and ops as data. A model is a chain of fragments
// (embedding, blocks, head), each a Graph with one input and one output, so it can be cut between
// any two. A graph is checked as hostile input before it runs; its sizes and cost are computed from
// it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "compute/graph/tensor.h"

namespace shoal::compute {

enum class OpKind : uint8_t {
  kEmbed = 0,
  kRmsNorm = 1,
  kQuantize = 2,
  kMatmul = 3,
  kRope = 4,
  kCacheAppend = 5,
  kAttention = 6,
  kSwiglu = 7,
  kAdd = 8,
  kSelectRows = 9,
  kLayerNorm = 10,
  kBias = 11,
  kGelu = 12,
  kMultiply = 13,
  kSoftCap = 14,
  kScale = 15,
  kPositions = 16,
  kRoute = 17,
  kExpertMatmul = 18,
  kCombine = 19,
};
constexpr int kOpKinds = 20;
std::string_view op_name(OpKind kind);  // "rms_norm", ...: also the name of its kernel files.

enum class ValueKind : uint8_t {
  kInput = 0,      // What crosses the cut: tokens i32[rows] or hidden f32[rows, width].
  kWeight = 1,     // From the shard, named by `name`.
  kState = 2,      // Key or value cache of a stage, kept between steps.
  kRopeTable = 3,  // Made by the host from `rope`.
  kComputed = 4,   // An op's output.
};

// How a rope table is made: angle(position, i) = position * theta^(-2i / rotary) / linear_factor /
// divisor(i). Every kind of scaling that models use comes to this.
struct RopeSpec {
  double theta = 10000.0;
  uint32_t rotary = 0;                // Even; the table is f32[context, rotary / 2, 2].
  double linear_factor = 1.0;         // Positions are divided by it.
  double magnitude = 1.0;             // Cosines and sines are multiplied by it.
  std::vector<double> divisors;       // One a pair, or none at all.
  std::vector<double> long_divisors;  // Instead of these where the context is longer than
  int64_t long_beyond = 0;            // this. Empty: never.

  bool operator==(const RopeSpec&) const = default;
  auto operator<=>(const RopeSpec&) const = default;
};

using ValueId = uint32_t;

struct Value {
  ValueKind kind = ValueKind::kComputed;
  DType dtype = DType::kF32;
  Shape shape;       // May hold kRows, kOutputs, kContext, kSequences.
  std::string name;  // Unique among the weights of a graph; for the others a help to readers.
  RopeSpec rope;     // For kRopeTable.
};

// One node. `inputs` in the order of shaders/op_params.h, without row_info and the picked rows,
// which every step provides. A cache_append's output is its state input.
struct Op {
  OpKind kind = OpKind::kAdd;
  std::vector<ValueId> inputs;
  ValueId output = 0;
  float epsilon = 0.0f;         // rms_norm, layer_norm
  uint32_t heads = 0;           // rope, attention; rms_norm: how many parts of a row, 0 as 1
  uint32_t kv_heads = 0;        // attention
  uint32_t head_dim = 0;        // rope, attention
  bool interleaved = false;     // rope
  float scale = 1.0f;           // attention, scale
  uint32_t window = 0;          // attention: positions that a row sees, itself among them; 0: all
  float cap = 0.0f;             // attention: 0 is none; soft_cap
  bool error_function = false;  // gelu: by it, else by tanh
  uint32_t experts = 0;         // route, expert_matmul
  uint32_t experts_used = 0;    // route, expert_matmul, combine
  bool renormalise = false;     // route: the weights of those used add up to 1
};

struct Graph {
  uint32_t numerics_version = 1;
  std::vector<Value> values;
  std::vector<Op> ops;  // In an order in which they can run.
  ValueId input = 0;
  ValueId output = 0;
};

// Refuses what could not run: unknown kinds, ids out of range, a value used before it is made or
// made twice, shapes or types that an op's rule rejects, sizes beyond limits. The error names the
// op or value.
Result<void> verify(const Graph& graph);

// What running a verified graph costs, from its shapes alone.
struct GraphCost {
  int64_t flops = 0;            // Multiply-adds count as two. At the given dims.
  int64_t weight_bytes = 0;     // Read once per step.
  int64_t state_bytes = 0;      // Caches, at the given context and sequences.
  int64_t workspace_bytes = 0;  // All computed values, without reuse.
  int64_t input_bytes = 0;      // What crosses the cut, in and out.
  int64_t output_bytes = 0;
};
Result<GraphCost> cost(const Graph& graph, const Dims& dims);

// A compact binary form. decode() checks bounds and calls verify().
std::vector<std::byte> encode(const Graph& graph);
Result<Graph> decode(ByteSpan bytes);

}  // namespace shoal::compute
