#pragma once
// What an op is, whole: its rule for shapes, its cost, its parameter block, its meaning as a plain
// reference, and the samples that every plane must reproduce bit by bit. One file per op.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "compute/graph/graph.h"
#include "shaders/op_params.h"

namespace shoal::compute {

// An op's parameters as its kernels get them (shaders/op_params.h).
struct ParamBlock {
  std::array<std::byte, 64> bytes{};
  uint32_t size = 0;

  template <class Params>
  static ParamBlock of(const Params& params) {
    static_assert(sizeof(Params) <= 64);
    ParamBlock block;
    std::memcpy(block.bytes.data(), &params, sizeof(Params));
    block.size = sizeof(Params);
    return block;
  }
  template <class Params>
  Params as() const {
    Params params;
    std::memcpy(&params, bytes.data(), sizeof(Params));
    return params;
  }
};

// The buffer that a step provides beside an op's own inputs; it stands between them and the output.
enum class StepBuffer : uint8_t { kNone, kRowInfo, kPicked };

// Independent pieces of the op's work, which a plane may compute in any order: rows x columns of
// them.
struct Grid {
  int64_t rows = 0;
  int64_t columns = 0;
};

// A buffer of a sample, in the file's layout if it is a weight.
struct SampleBuffer {
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t columns = 0;
  bool weight = false;  // Given to the device by upload_weight().
  ByteVector bytes;
};

// One call with its data. The output's bytes are what is there before the call.
struct OpSample {
  std::string label;
  DType variant = DType::kF32;
  ParamBlock params;
  std::vector<SampleBuffer> inputs;  // The step's buffer included.
  SampleBuffer output;
  bool non_finite = false;  // The call must fail with kNonFinite.
};

struct OpSpec {
  OpKind kind;
  size_t inputs;  // How many an Op has.
  StepBuffer step_buffer = StepBuffer::kNone;

  // The shape rule. The graph's values are well formed and the op's ids in range. The error says
  // what is wrong without naming the op.
  Result<void> (*check)(const Graph& graph, const Op& op);

  // The rest may believe that check() passed.
  int64_t (*flops)(const Graph& graph, const Op& op, const Dims& dims);
  DType (*variant)(const Graph& graph, const Op& op);
  ParamBlock (*params)(const Graph& graph, const Op& op, const Dims& dims);
  Grid (*grid)(const ParamBlock& params);

  // The meaning. Slow on purpose: every kernel of every plane is measured against this loop.
  // Buffers as in shaders/op_params.h, weights in the file's layout. Fails with kNonFinite only.
  Result<void> (*reference)(DType variant, const ParamBlock& params,
                            std::span<const ByteSpan> inputs, std::span<std::byte> output);

  std::vector<OpSample> (*samples)();
};

// One for each kind, in the order of OpKind.
std::span<const OpSpec> op_list();
const OpSpec& op_spec(OpKind kind);  // REQUIRES: kind is one of op_list().

// Each op's own file defines its spec.
OpSpec embed_spec();
OpSpec rms_norm_spec();
OpSpec quantize_spec();
OpSpec matmul_spec();
OpSpec rope_spec();
OpSpec cache_append_spec();
OpSpec attention_spec();
OpSpec swiglu_spec();
OpSpec add_spec();
OpSpec select_rows_spec();
OpSpec layer_norm_spec();
OpSpec bias_spec();
OpSpec gelu_spec();
OpSpec multiply_spec();
OpSpec soft_cap_spec();
OpSpec scale_spec();
OpSpec positions_spec();
OpSpec route_spec();
OpSpec expert_matmul_spec();
OpSpec combine_spec();

// For specs. An op of one variant only.
inline DType f32_variant(const Graph&, const Op&) { return DType::kF32; }

// Whether parameters begin with the output's rows and width, as kernels that serve several ops
// believe.
template <class Params>
constexpr bool begins_with_elements() {
  return std::is_standard_layout_v<Params> && offsetof(Params, rows) == 0 &&
         offsetof(Params, width) == sizeof(uint);
}

// A piece for each number of the output.
template <class Params>
Grid element_grid(const ParamBlock& block) {
  static_assert(begins_with_elements<Params>());
  const auto p = block.as<Params>();
  return {p.rows, p.width};
}

// For the rules.
std::string describe(const Value& value);  // "f32[rows, 64]"
Error shape_error(std::string_view what, const Value& value, std::string_view wanted);
bool is_rows(const Value& value, DType dtype);  // dtype[rows or outputs, width], computed or input.
int64_t rows_of(const Value& value, const Dims& dims);  // Its first dimension, bound.

// Whether a row of the output is not finite, as the error that names the op; ok if none is.
Result<void> check_finite(OpKind kind, std::span<const std::byte> f32_output);
Error non_finite(OpKind kind, int64_t element);

// For the references: one element at a time, without alignment.
float load_f32(ByteSpan bytes, int64_t index);
void store_f32(std::span<std::byte> bytes, int64_t index, float value);
int32_t load_i32(ByteSpan bytes, int64_t index);
uint32_t load_position(ByteSpan row_info, int64_t row);
// Which of a state's positions is the given one of the row's sequence.
int64_t load_place(ByteSpan row_info, int64_t row, int64_t position);
// An f32, f16 or bf16 element, as it stands; quantised: float(q) * scale of that element's block.
float load_element(DType dtype, ByteSpan bytes, int64_t index);

// 32 elements of a quantised weight, whatever its type: element i is
// float(scales[i / 16] * values[i]) * d + float(minimum) * m, the second part only where there is
// one. Its share of a dot product with 32 activations q * a is float(sum of scales * values * q) *
// (d * a) + float(minimum * sum of q) * (m * a).
struct QuantBlock {
  int16_t values[32];
  int32_t scales[2] = {1, 1};
  int32_t minimum = 0;
  uint16_t d_bits = 0, m_bits = 0;  // Halves.
  float d = 0.0f, m = 0.0f;
};
bool has_minimum(DType dtype);  // Whether a type's blocks have the second part.
// The given 32 elements of a tensor, counted in its file's layout.
QuantBlock load_block(DType dtype, ByteSpan bytes, int64_t block);

}  // namespace shoal::compute
