// attention: each query row over the positions of its sequence up to its own, in chunks counted
// from position 0 that are merged in ascending order, so that neither the step's size nor the batch
// decides a bit.

#include "compute/graph/limits.h"
#include "compute/ops/chunked_sum.h"
#include "compute/ops/op.h"
#include "compute/ops/samples.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

Result<void> check(const Graph& graph, const Op& op) {
  const Value& q = graph.values[op.inputs[0]];
  const Value& keys = graph.values[op.inputs[1]];
  const Value& values = graph.values[op.inputs[2]];
  const Value& y = graph.values[op.output];
  if (op.head_dim == 0 || op.head_dim > limits::kHeadDimMax || op.heads == 0 ||
      op.heads > limits::kHeadsMax || op.kv_heads == 0 || op.heads % op.kv_heads != 0) {
    return Error{ErrorCode::kCorrupt, "it has " + std::to_string(op.heads) + " heads of " +
                                          std::to_string(op.head_dim) + " for " +
                                          std::to_string(op.kv_heads) + " key heads"};
  }
  if (!is_rows(q, DType::kF32) || q.shape != Shape{kRows, int64_t{op.heads} * op.head_dim}) {
    return shape_error(
        "its query", q,
        "f32[rows, " + std::to_string(op.heads) + " heads of " + std::to_string(op.head_dim) + "]");
  }
  const Shape state_shape{kSequences, kContext, int64_t{op.kv_heads} * op.head_dim};
  if (keys.kind != ValueKind::kState || keys.shape != state_shape) {
    return shape_error(
        "its keys", keys,
        "a state of " + std::to_string(op.kv_heads) + " heads of " + std::to_string(op.head_dim));
  }
  if (values.kind != ValueKind::kState || values.shape != state_shape ||
      values.dtype != keys.dtype) {
    return shape_error("its values", values, "a state like its keys");
  }
  if (!is_rows(y, DType::kF32) || y.shape != q.shape)
    return shape_error("its output", y, describe(q));
  if (!(op.scale >= limits::kScaleMin && op.scale <= limits::kScaleMax)) {
    return Error{ErrorCode::kCorrupt, "its scale is not in 2^-50 .. 2^50"};
  }
  if (op.window > limits::kContextMax) {
    return Error{ErrorCode::kCorrupt, "its window is " + std::to_string(op.window)};
  }
  if (op.cap != 0.0f && !(op.cap >= limits::kCapMin && op.cap <= limits::kCapMax)) {
    return Error{ErrorCode::kCorrupt, "its cap is not 0 or 2^-20 .. 2^20"};
  }
  return {};
}

int64_t flops(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& q = graph.values[op.inputs[0]];
  const int64_t seen = op.window == 0 ? dims.context : std::min<int64_t>(dims.context, op.window);
  return rows_of(q, dims) * q.shape[1] * seen * 4;
}

DType variant(const Graph& graph, const Op& op) { return graph.values[op.inputs[1]].dtype; }

ParamBlock params(const Graph&, const Op& op, const Dims& dims) {
  return ParamBlock::of(AttentionParams{static_cast<uint>(dims.rows), op.heads, op.kv_heads,
                                        op.head_dim, op.scale, op.window, op.cap,
                                        op.cap == 0.0f ? 0.0f : 1.0f / op.cap});
}

Grid grid(const ParamBlock& block) {
  const auto p = block.as<AttentionParams>();
  return {p.rows, p.heads};
}

Result<void> reference(DType variant, const ParamBlock& block, std::span<const ByteSpan> inputs,
                       std::span<std::byte> output) {
  using namespace exact;
  const auto p = block.as<AttentionParams>();
  const int64_t dim = p.head_dim;
  std::vector<float> o(static_cast<size_t>(dim));
  for (int64_t row = 0; row < p.rows; ++row) {
    const int64_t position = load_position(inputs[3], row);
    for (int64_t head = 0; head < p.heads; ++head) {
      const int64_t q_first = (row * p.heads + head) * dim;
      const int64_t kv_head = head / (p.heads / p.kv_heads);
      const auto kv_first = [&](int64_t j) {
        return (load_place(inputs[3], row, j) * p.kv_heads + kv_head) * dim;
      };
      float m = 0.0f, l = 0.0f;
      const int64_t seen_from =
          p.window == 0 || position < p.window ? int64_t{0} : position + 1 - p.window;
      const int64_t first_chunk = seen_from / SHOAL_ATTENTION_CHUNK * SHOAL_ATTENTION_CHUNK;
      for (int64_t chunk = first_chunk; chunk <= position; chunk += SHOAL_ATTENTION_CHUNK) {
        const bool first = chunk == first_chunk;
        const int64_t begin = std::max(chunk, seen_from);
        const int64_t count =
            std::min<int64_t>(chunk + SHOAL_ATTENTION_CHUNK, position + 1) - begin;
        float weights[SHOAL_ATTENTION_CHUNK];
        float m_c = 0.0f;
        for (int64_t j = 0; j < count; ++j) {
          const float dot = chunked_sum(dim, [&](int64_t d) {
            return exact_factor(load_f32(inputs[0], q_first + d)) *
                   exact_factor(load_element(variant, inputs[1], kv_first(begin + j) + d));
          });
          weights[j] = exact_flush(dot * p.scale);
          if (p.cap != 0.0f && exact_is_finite(weights[j]))
            weights[j] = exact_soft_cap(weights[j], p.cap, p.inverse_cap);
          if (!exact_is_finite(weights[j])) return non_finite(OpKind::kAttention, q_first);
          m_c = j == 0 || weights[j] > m_c ? weights[j] : m_c;
        }
        float l_c = 0.0f;
        for (int64_t j = 0; j < count; ++j) {
          weights[j] = exact_factor(exact_exp(weights[j] - m_c));
          l_c = l_c + weights[j];
        }
        const float m_new = first || m_c > m ? m_c : m;
        const float a = first ? 0.0f : exact_factor(exact_exp(m - m_new));
        const float b = exact_factor(exact_exp(m_c - m_new));
        for (int64_t d = 0; d < dim; ++d) {
          float o_c = 0.0f;
          for (int64_t j = 0; j < count; ++j) {
            const float product = weights[j] * exact_factor(load_element(variant, inputs[2],
                                                                         kv_first(begin + j) + d));
            o_c = o_c + product;
          }
          const float old_part = exact_flush(o[d] * a);
          const float new_part = exact_flush(o_c * b);
          o[d] = first ? o_c : old_part + new_part;
        }
        const float l_old = l * a;
        const float l_new = l_c * b;
        l = first ? l_c : l_old + l_new;
        m = m_new;
      }
      const float inverse = exact_reciprocal(l);
      for (int64_t d = 0; d < dim; ++d) store_f32(output, q_first + d, exact_flush(o[d] * inverse));
    }
  }
  return check_finite(OpKind::kAttention, output);
}

std::vector<OpSample> samples() {
  std::vector<OpSample> list;
  SampleMaker make(10);
  struct Case {
    std::vector<RowInfo> info;
    int heads, kv_heads, head_dim, context;
    Pattern q = Pattern::kOrdinary, state = Pattern::kOrdinary;
    float q_factor = 1.0f;
    bool non_finite = false;
    uint window = 0;
    float cap = 0.0f;
  };
  const auto add = [&](DType dtype, const Case& c) {
    const auto rows = static_cast<int>(c.info.size());
    const auto last = static_cast<int>(c.info.back().position);
    std::string text = label({{"rows", rows},
                              {"heads", c.heads},
                              {"kv_heads", c.kv_heads},
                              {"head_dim", c.head_dim},
                              {"position", last},
                              {"window", c.window},
                              {"cap", static_cast<int64_t>(c.cap)}},
                             c.q);
    OpSample sample{.label = text + " x " + pattern_name(c.state),
                    .variant = dtype,
                    .non_finite = c.non_finite};
    const float scale = c.head_dim == 64 ? 0.125f : 0.0912f;
    sample.params = ParamBlock::of(AttentionParams{uint(rows), uint(c.heads), uint(c.kv_heads),
                                                   uint(c.head_dim), scale, c.window, c.cap,
                                                   c.cap == 0.0f ? 0.0f : 1.0f / c.cap});
    SampleBuffer q = make.floats(rows, int64_t{c.heads} * c.head_dim, c.q);
    if (c.q_factor != 1.0f) {  // Sharp weights: the largest score is far above the others.
      for (int64_t i = 0; i < rows * c.heads * c.head_dim; ++i) {
        store_f32(q.bytes, i, load_f32(q.bytes, i) * c.q_factor);
      }
    }
    const int64_t width = int64_t{c.kv_heads} * c.head_dim;
    const int64_t positions = state_positions(2, c.context);
    sample.inputs = {std::move(q), make.states(dtype, positions, width, c.state),
                     make.states(dtype, positions, width, c.state),
                     make.row_info(c.info, 2, c.context)};
    sample.output = make.poison(DType::kF32, rows, int64_t{c.heads} * c.head_dim);
    list.push_back(std::move(sample));
  };
  std::vector<RowInfo> seventeen;
  for (uint32_t i = 0; i < 17; ++i) seventeen.push_back({i % 2, 24 + i / 2});
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    for (const uint32_t position : {0u, 1u, 30u, 31u, 32u, 33u, 63u, 64u, 65u, 127u, 200u}) {
      add(dtype, {{{position % 2, position}}, 2, 1, 64, 201});
    }
    add(dtype, {{{0, 0}}, 1, 1, 1, 1});
    add(dtype, {{{1, 40}, {0, 3}, {1, 41}}, 9, 3, 64, 48});
    add(dtype, {seventeen, 4, 4, 80, 40});
    // Where many rows have heads that share their keys, planes may read those once for several.
    for (const int shared : {2, 3, 4, 6}) add(dtype, {seventeen, 2 * shared, 2, 64, 40});
    add(dtype, {{{1, 70}}, 3, 1, 7, 80});
    add(dtype, {{{1, 70}}, 4, 2, 128, 80});
    add(dtype, {{{1, 70}}, 2, 2, 256, 80});
    add(dtype, {{{0, 35}}, 1, 1, 320, 36});
    add(dtype, {{{1, 70}, {1, 71}}, 2, 1, 8, 80, Pattern::kOrdinary, Pattern::kOrdinary, 60.0f});
    add(dtype, {{{1, 70}, {1, 71}}, 2, 1, 64, 80, Pattern::kZero, Pattern::kOrdinary});
    add(dtype, {{{1, 70}, {1, 71}}, 2, 1, 64, 80, Pattern::kTiny, Pattern::kOrdinary});
    add(dtype, {{{1, 70}, {1, 71}}, 2, 1, 64, 80, Pattern::kHuge, Pattern::kOrdinary});
    add(dtype, {{{1, 70}, {1, 71}}, 2, 1, 64, 80, Pattern::kLarge, Pattern::kOrdinary});
    add(dtype, {{{1, 70}, {1, 71}}, 2, 1, 64, 80, Pattern::kOrdinary, Pattern::kTiny});
    add(dtype, {{{1, 70}, {1, 71}}, 2, 1, 64, 80, Pattern::kOrdinary, Pattern::kZero});
    // Windows that begin on both sides of a chunk's end, in the first chunk, and hold one position.
    for (const uint window : {1u, 2u, 31u, 32u, 33u, 64u, 65u, 70u, 71u, 72u, 1000u}) {
      Case c{{{0, 70}, {1, 31}, {1, 96}}, 2, 1, 64, 100};
      c.window = window;
      add(dtype, c);
    }
    for (const float cap : {50.0f, 0.5f}) {
      Case c{{{0, 70}, {1, 31}, {1, 96}}, 4, 2, 64, 100};
      c.cap = cap;
      add(dtype, c);
      c.window = 40;
      c.q_factor = 60.0f;
      c.head_dim = 12;
      add(dtype, c);
    }
    add(dtype, {{{1, 70}, {1, 71}},
                2,
                1,
                64,
                80,
                Pattern::kMax,
                Pattern::kOrdinary,
                1.0f,
                /*non_finite=*/true});
  }
  return list;
}

}  // namespace

OpSpec attention_spec() {
  return {OpKind::kAttention, 3,      StepBuffer::kRowInfo, check, flops, variant, params, grid,
          reference,          samples};
}

}  // namespace shoal::compute
