#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "compute/backends/cpu/kernels.h"
#include "compute/backends/cpu/weight_layout.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

using namespace exact;

// Elements of an elementwise op that make a piece.
constexpr int64_t kSpan = 2048;

// Adds up whether all of them are finite.
struct Finite {
  uint32_t bad = 0;
  float operator()(float x) {
    bad |= exact_is_finite(x) ? 0u : 1u;
    return x;
  }
  bool all() const { return bad == 0; }
};

float load_weight(DType dtype, const std::byte* weight, int64_t index) {
  switch (dtype) {
    case DType::kF16: return exact_half_to_float(load_le<uint16_t>(weight + index * 2));
    case DType::kBF16: return exact_bfloat16_to_float(load_le<uint16_t>(weight + index * 2));
    default: {
      float value;
      std::memcpy(&value, weight + index * 4, 4);
      return value;
    }
  }
}

// The order of float chunks (shaders/exact_math.h).
template <class Term>
float sum_in_order(int64_t count, const Term& term) {
  float sum = 0.0f;
  for (int64_t begin = 0; begin < count; begin += SHOAL_SUM_CHUNK) {
    const int64_t end = std::min<int64_t>(count, begin + SHOAL_SUM_CHUNK);
    float lanes[SHOAL_SUM_LANES] = {};
    for (int64_t i = begin; i < end; ++i) lanes[i % SHOAL_SUM_LANES] += term(i);
    sum += ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
           ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
  }
  return sum;
}

// --- embed, positions ---

// One row of a table, whatever its type.
void table_row(DType variant, const std::byte* table, int64_t row, int64_t width, float* y,
               Finite& finite) {
  if (!is_tiled(variant)) {
    for (int64_t i = 0; i < width; ++i)
      y[i] = finite(exact_factor(load_weight(variant, table, row * width + i)));
    return;
  }
  const bool minimum = has_minimum(variant);
  for (int64_t index = 0; index < width / 32; ++index) {
    const QuantBlock block = tiled_block(variant, table, width, row, index);
    const float second = static_cast<float>(block.minimum) * block.m;
    for (int i = 0; i < 32; ++i) {
      const float first = static_cast<float>(block.scales[i / 16] * block.values[i]) * block.d;
      y[index * 32 + i] = finite(exact_factor(minimum ? first + second : first));
    }
  }
}

Work embed_work(const KernelCall& call) {
  const auto p = call.as<EmbedParams>();
  return {p.rows, int64_t{p.width} * 4};
}

bool embed_run(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<EmbedParams>();
  Finite finite;
  for (int64_t row = first; row < last; ++row) {
    const int64_t token = load_le<int32_t>(call.buffers[0] + row * 4);
    table_row(call.variant, call.buffers[1], token, p.width, call.floats_out(2) + row * p.width,
              finite);
  }
  return finite.all();
}

bool positions_run(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<PositionsParams>();
  Finite finite;
  for (int64_t row = first; row < last; ++row) {
    const int64_t position = load_le<uint32_t>(call.buffers[1] + row * 8 + 4);
    if (position >= p.positions) return false;
    table_row(call.variant, call.buffers[0], position, p.width, call.floats_out(2) + row * p.width,
              finite);
  }
  return finite.all();
}
static_assert(begins_with_elements<EmbedParams>() && begins_with_elements<PositionsParams>());

// --- rms_norm ---

static_assert(begins_with_elements<RmsNormParams>() && begins_with_elements<LayerNormParams>());
Work rms_norm_work(const KernelCall& call) {
  const auto p = call.as<RmsNormParams>();
  return {p.rows, int64_t{p.width} * 2};
}

bool rms_norm_run(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<RmsNormParams>();
  const float* weight = call.floats(1);
  Finite finite;
  for (int64_t row = first; row < last; ++row) {
    const float* x = call.floats(0) + row * p.width;
    float* y = call.floats_out(2) + row * p.width;
    const float sum = sum_in_order(p.width, [&](int64_t i) {
      const float factor = exact_factor(x[i]);
      return factor * factor;
    });
    const float mean = finite(sum * p.inverse_width);
    const float s = exact_rsqrt(mean + p.epsilon);
    for (int64_t i = 0; i < p.width; ++i) {
      const float scaled = exact_flush(exact_flush(x[i]) * s);
      y[i] = finite(exact_flush(scaled * weight[i]));
    }
  }
  return finite.all();
}

// --- quantize ---

Work quantize_work(const KernelCall& call) {
  const auto p = call.as<QuantizeParams>();
  return {p.rows, int64_t{p.width} * 3};
}

bool quantize_run(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<QuantizeParams>();
  bool in_range = true;
  for (int64_t row = first; row < last; ++row) {
    const float* x = call.floats(0) + row * p.width;
    std::byte* values = call.buffers[1] + row * (p.width / 32 * 36);
    for (int64_t block = 0; block < p.width / 32; ++block) {
      uint32_t largest = 0;
      for (int64_t i = block * 32; i < block * 32 + 32; ++i) {
        largest = std::max(largest, floatBitsToUint(x[i]) & 0x7FFFFFFFu);
      }
      in_range = in_range && largest <= SHOAL_MAGNITUDE_BITS;
      const float inverse = exact_quant_inverse(largest);
      for (int64_t i = block * 32; i < block * 32 + 32; ++i) {
        values[i] = static_cast<std::byte>(exact_quant_value(x[i], inverse));
      }
      const float scale = exact_quant_scale(largest);
      std::memcpy(values + p.width + block * 4, &scale, 4);
    }
  }
  return in_range;
}

// --- matmul: a piece is a tile of eight columns, for all rows ---

Work matmul_work(const KernelCall& call) {
  const auto p = call.as<MatmulParams>();
  return {(int64_t{p.n} + kTileRows - 1) / kTileRows, int64_t{p.rows} * p.k / 2};
}

// k values, their scales, and a row of a tiled weight.
float tiled_dot(DType dtype, const std::byte* values, const std::byte* scales,
                const std::byte* weight, int64_t column, int64_t k) {
  float sum = 0.0f;
  const bool minimum = has_minimum(dtype);
  for (int64_t begin = 0; begin < k; begin += SHOAL_SUM_CHUNK) {
    const int64_t end = std::min<int64_t>(k, begin + SHOAL_SUM_CHUNK);
    float chunk = 0.0f;
    for (int64_t index = begin / 32; index < end / 32; ++index) {
      const QuantBlock block = tiled_block(dtype, weight, k, column, index);
      float scale;
      std::memcpy(&scale, scales + index * 4, 4);
      int32_t sums[2] = {}, x_sum = 0;
      for (int i = 0; i < 32; ++i) {
        const int32_t q = static_cast<int8_t>(values[index * 32 + i]);
        sums[i / 16] += block.values[i] * q;
        x_sum += q;
      }
      const int32_t integer_sum = block.scales[0] * sums[0] + block.scales[1] * sums[1];
      float product = static_cast<float>(integer_sum) * (block.d * scale);
      if (minimum) product += static_cast<float>(block.minimum * x_sum) * (block.m * scale);
      chunk += product;
    }
    sum += chunk;
  }
  return sum;
}

bool matmul_run(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<MatmulParams>();
  Finite finite;
  const int64_t column_end = std::min<int64_t>(p.n, last * kTileRows);
  for (int64_t column = first * kTileRows; column < column_end; ++column) {
    for (int64_t row = 0; row < p.rows; ++row) {
      float y;
      if (is_tiled(call.variant)) {
        const std::byte* x = call.buffers[0] + row * (p.k / 32 * 36);
        y = tiled_dot(call.variant, x, x + p.k, call.buffers[1], column, p.k);
      } else {
        const float* x = call.floats(0) + row * p.k;
        y = sum_in_order(p.k, [&](int64_t i) {
          return exact_factor(x[i]) * load_weight(call.variant, call.buffers[1], column * p.k + i);
        });
      }
      call.floats_out(2)[row * p.n_total + p.n_first + column] = finite(exact_flush(y));
    }
  }
  return finite.all();
}

// --- expert_matmul: a piece is a tile of eight columns of one row and slot ---

Work expert_matmul_work(const KernelCall& call) {
  const auto p = call.as<ExpertMatmulParams>();
  const int64_t tiles = (int64_t{p.n} + kTileRows - 1) / kTileRows;
  return {int64_t{p.rows} * p.used * tiles, int64_t{p.k} / 2};
}

bool expert_matmul_run(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<ExpertMatmulParams>();
  const int64_t tiles = (int64_t{p.n} + kTileRows - 1) / kTileRows;
  const int64_t width = int64_t{p.slots} * p.k;
  Finite finite;
  for (int64_t piece = first; piece < last; ++piece) {
    const int64_t row = piece / tiles / p.used, slot = piece / tiles % p.used;
    const int64_t tile = piece % tiles;
    const auto expert = static_cast<int64_t>(call.floats(2)[row * 2 * p.used + slot]);
    const int64_t from = p.slots == 1 ? 0 : slot * p.k;
    const int64_t column_end = std::min<int64_t>(p.n, (tile + 1) * kTileRows);
    for (int64_t column = tile * kTileRows; column < column_end; ++column) {
      const int64_t weight_row = expert * p.n + column;
      float y;
      if (is_tiled(call.variant)) {
        const std::byte* x = call.buffers[0] + row * (width / 32 * 36);
        y = tiled_dot(call.variant, x + from, x + width + from / 32 * 4, call.buffers[1],
                      weight_row, p.k);
      } else {
        const float* x = call.floats(0) + row * width + from;
        y = sum_in_order(p.k, [&](int64_t i) {
          return exact_factor(x[i]) *
                 load_weight(call.variant, call.buffers[1], weight_row * p.k + i);
        });
      }
      call.floats_out(3)[(row * p.used + slot) * p.n + column] = finite(exact_flush(y));
    }
  }
  return finite.all();
}

// --- route, combine ---

Work route_work(const KernelCall& call) {
  const auto p = call.as<RouteParams>();
  return {p.rows, int64_t{p.experts} * (p.used + 20)};
}

bool route_run(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<RouteParams>();
  Finite finite;
  std::vector<float> x(p.experts);
  std::vector<bool> taken(p.experts);
  for (int64_t row = first; row < last; ++row) {
    for (size_t e = 0; e < x.size(); ++e)
      x[e] = finite(exact_flush(call.floats(0)[row * p.experts + static_cast<int64_t>(e)]));
    float* y = call.floats_out(1) + row * 2 * p.used;
    taken.assign(p.experts, false);
    for (uint slot = 0; slot < p.used; ++slot) {
      size_t best = x.size();
      for (size_t e = 0; e < x.size(); ++e) {
        if (!taken[e] && (best == x.size() || x[e] > x[best])) best = e;
      }
      taken[best] = true;
      y[slot] = static_cast<float>(best);
    }
    const float largest = x[static_cast<size_t>(y[0])];
    const auto e_of = [&](size_t e) { return exact_factor(exact_exp(x[e] - largest)); };
    float sum = 0.0f;
    if (p.renormalise != 0) {
      for (uint slot = 0; slot < p.used; ++slot) sum += e_of(static_cast<size_t>(y[slot]));
    } else {
      for (size_t e = 0; e < x.size(); ++e) sum += e_of(e);
    }
    const float inverse = exact_reciprocal(sum);
    for (uint slot = 0; slot < p.used; ++slot)
      y[p.used + slot] = exact_flush(e_of(static_cast<size_t>(y[slot])) * inverse);
  }
  return finite.all();
}

Work combine_work(const KernelCall& call) {
  const auto p = call.as<CombineParams>();
  return {p.rows, int64_t{p.width} * p.used * 2};
}

bool combine_run(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<CombineParams>();
  Finite finite;
  for (int64_t row = first; row < last; ++row) {
    const float* weights = call.floats(1) + (row * 2 + 1) * p.used;
    const float* x = call.floats(0) + row * p.used * p.width;
    float* y = call.floats_out(2) + row * p.width;
    for (int64_t i = 0; i < p.width; ++i) {
      float sum = 0.0f;
      for (int64_t slot = 0; slot < p.used; ++slot)
        sum += exact_factor(weights[slot]) * exact_factor(x[slot * p.width + i]);
      y[i] = finite(exact_flush(sum));
    }
  }
  return finite.all();
}

// --- layer_norm ---

bool layer_norm_run(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<LayerNormParams>();
  const float* weight = call.floats(1);
  const float* bias = call.floats(2);
  Finite finite;
  for (int64_t row = first; row < last; ++row) {
    const float* x = call.floats(0) + row * p.width;
    float* y = call.floats_out(3) + row * p.width;
    const float sum = sum_in_order(p.width, [&](int64_t i) { return exact_flush(x[i]); });
    const float mean = finite(exact_flush(exact_flush(sum) * p.inverse_width));
    const auto centred = [&](int64_t i) { return exact_flush(exact_flush(x[i]) - mean); };
    const float squares = sum_in_order(p.width, [&](int64_t i) {
      const float factor = exact_factor(centred(i));
      return factor * factor;
    });
    const float variance = finite(squares * p.inverse_width);
    const float s = exact_rsqrt(variance + p.epsilon);
    for (int64_t i = 0; i < p.width; ++i) {
      const float weighted = exact_flush(exact_flush(centred(i) * s) * weight[i]);
      y[i] = finite(exact_flush(weighted + bias[i]));
    }
  }
  return finite.all();
}
static_assert(sizeof(LayerNormParams) == sizeof(RmsNormParams));

// --- rope ---

Work rope_work(const KernelCall& call) {
  const auto p = call.as<RopeParams>();
  return {p.rows, int64_t{p.heads} * p.head_dim * 3};
}

bool rope_run(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<RopeParams>();
  const int64_t half = p.rotary / 2;
  const int64_t step = p.interleaved != 0 ? 2 : 1;
  const int64_t apart = p.interleaved != 0 ? 1 : half;
  Finite finite;
  for (int64_t row = first; row < last; ++row) {
    const int64_t position = load_le<uint32_t>(call.buffers[2] + row * 8 + 4);
    const float* table = call.floats(1) + position * half * 2;
    for (int64_t head = 0; head < p.heads; ++head) {
      const float* x = call.floats(0) + (row * p.heads + head) * p.head_dim;
      float* y = call.floats_out(3) + (row * p.heads + head) * p.head_dim;
      for (int64_t i = 0; i < half; ++i) {
        const float a = exact_factor(x[i * step]);
        const float b = exact_factor(x[i * step + apart]);
        const float c = exact_factor(table[i * 2]);
        const float s = exact_factor(table[i * 2 + 1]);
        y[i * step] = finite(exact_flush(a * c - b * s));
        y[i * step + apart] = finite(exact_flush(a * s + b * c));
      }
      for (int64_t i = p.rotary; i < p.head_dim; ++i) y[i] = finite(exact_flush(x[i]));
    }
  }
  return finite.all();
}

// --- cache_append ---

Work cache_append_work(const KernelCall& call) {
  const auto p = call.as<CacheAppendParams>();
  return {p.rows, int64_t{p.width} * 8};
}

bool cache_append_run(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<CacheAppendParams>();
  bool good = true;
  for (int64_t row = first; row < last; ++row) {
    const float* x = call.floats(0) + row * p.width;
    const int64_t to = place_of(call.buffers[1], row, position_of(call.buffers[1], row)) * p.width;
    if (call.variant == DType::kF32) {
      float* y = call.floats_out(2) + to;
      for (int64_t i = 0; i < p.width; ++i) {
        good = good && exact_is_finite(x[i]);
        y[i] = exact_factor(x[i]);
      }
    } else {
      std::byte* y = call.buffers[2] + to * 2;
      for (int64_t i = 0; i < p.width; ++i) {
        const uint32_t half = exact_float_to_half(x[i]);
        good = good && (half & 0x7C00u) != 0x7C00u;
        store_le<uint16_t>(y + i * 2, static_cast<uint16_t>(half));
      }
    }
  }
  return good;
}

// --- attention: a piece is one head of one row ---

Work attention_work(const KernelCall& call) {
  const auto p = call.as<AttentionParams>();
  int64_t positions = 0;
  for (int64_t row = 0; row < p.rows; ++row) positions += position_of(call.buffers[3], row) + 1;
  return {int64_t{p.rows} * p.heads, positions / p.rows * p.head_dim / 2};
}

bool attention_run(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<AttentionParams>();
  const int64_t dim = p.head_dim;
  std::vector<float> o(static_cast<size_t>(dim));
  Finite finite;
  for (int64_t piece = first; piece < last; ++piece) {
    const int64_t row = piece / p.heads, head = piece % p.heads;
    const int64_t position = position_of(call.buffers[3], row);
    const float* q = call.floats(0) + piece * dim;
    float* y = call.floats_out(4) + piece * dim;
    const int64_t kv_head = head / (p.heads / p.kv_heads);
    float m = 0.0f, l = 0.0f;
    const int64_t seen_from = p.window == 0 ? 0 : std::max<int64_t>(0, position + 1 - p.window);
    const int64_t first_chunk = seen_from / SHOAL_ATTENTION_CHUNK * SHOAL_ATTENTION_CHUNK;
    for (int64_t chunk = first_chunk; chunk <= position; chunk += SHOAL_ATTENTION_CHUNK) {
      const bool is_first = chunk == first_chunk;
      const int64_t begin = std::max(chunk, seen_from);
      const int64_t count = std::min<int64_t>(chunk + SHOAL_ATTENTION_CHUNK, position + 1) - begin;
      const int64_t place = place_of(call.buffers[3], row, begin);
      const auto at = [&](int64_t j) { return ((place + j) * p.kv_heads + kv_head) * dim; };
      float w[SHOAL_ATTENTION_CHUNK];
      float m_c = 0.0f;
      for (int64_t j = 0; j < count; ++j) {
        const float dot = sum_in_order(dim, [&](int64_t d) {
          return exact_factor(q[d]) *
                 exact_factor(load_weight(call.variant, call.buffers[1], at(j) + d));
        });
        w[j] = finite(exact_flush(dot * p.scale));
        if (p.cap != 0.0f) w[j] = exact_soft_cap(w[j], p.cap, p.inverse_cap);
        if (j == 0 || w[j] > m_c) m_c = w[j];
      }
      float l_c = 0.0f;
      for (int64_t j = 0; j < count; ++j) {
        w[j] = exact_factor(exact_exp(w[j] - m_c));
        l_c += w[j];
      }
      const float m_new = is_first || m_c > m ? m_c : m;
      const float a = exact_factor(exact_exp(m - m_new));
      const float b = exact_factor(exact_exp(m_c - m_new));
      for (int64_t d = 0; d < dim; ++d) {
        float o_c = 0.0f;
        for (int64_t j = 0; j < count; ++j) {
          o_c += w[j] * exact_factor(load_weight(call.variant, call.buffers[2], at(j) + d));
        }
        o[d] = is_first ? o_c : exact_flush(o[d] * a) + exact_flush(o_c * b);
      }
      l = is_first ? l_c : l * a + l_c * b;
      m = m_new;
    }
    const float inverse = exact_reciprocal(l);
    for (int64_t d = 0; d < dim; ++d) y[d] = finite(exact_flush(o[d] * inverse));
  }
  return finite.all();
}

// --- elementwise: a piece is a span ---

Work span_work(const KernelCall& call, int64_t cost) {
  const auto p = call.as<AddParams>();
  return {(int64_t{p.rows} * p.width + kSpan - 1) / kSpan, kSpan * cost};
}

Work add_work(const KernelCall& call) { return span_work(call, 1); }
Work swiglu_work(const KernelCall& call) { return span_work(call, 6); }

template <class... Params>
constexpr bool all_begin_with_elements = (begins_with_elements<Params>() && ...);
static_assert(all_begin_with_elements<AddParams, SwigluParams, MultiplyParams, BiasParams,
                                      GeluParams, SoftCapParams, ScaleParams>);

template <class F>
bool each_number(const KernelCall& call, int64_t first, int64_t last, float* out, const F& f) {
  const auto p = call.as<AddParams>();
  const int64_t end = std::min(int64_t{p.rows} * p.width, last * kSpan);
  Finite finite;
  for (int64_t i = first * kSpan; i < end; ++i) out[i] = finite(f(i));
  return finite.all();
}

bool add_run(const KernelCall& call, int64_t first, int64_t last) {
  return each_number(call, first, last, call.floats_out(2),
                     [a = call.floats(0), b = call.floats(1)](int64_t i) {
                       return exact_flush(exact_flush(a[i]) + exact_flush(b[i]));
                     });
}

bool multiply_run(const KernelCall& call, int64_t first, int64_t last) {
  return each_number(call, first, last, call.floats_out(2),
                     [a = call.floats(0), b = call.floats(1)](int64_t i) {
                       return exact_flush(exact_flush(a[i]) * exact_flush(b[i]));
                     });
}

bool swiglu_run(const KernelCall& call, int64_t first, int64_t last) {
  return each_number(call, first, last, call.floats_out(2),
                     [gate = call.floats(0), up = call.floats(1)](int64_t i) {
                       return exact_flush(exact_silu(exact_flush(gate[i])) * exact_flush(up[i]));
                     });
}

Work bias_work(const KernelCall& call) { return span_work(call, 1); }
Work gelu_work(const KernelCall& call) { return span_work(call, 8); }
Work soft_cap_work(const KernelCall& call) { return span_work(call, 8); }

bool bias_run(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<BiasParams>();
  const int64_t end = std::min(int64_t{p.rows} * p.width, last * kSpan);
  Finite finite;
  int64_t column = first * kSpan % p.width;
  for (int64_t i = first * kSpan; i < end; ++i) {
    call.floats_out(2)[i] =
        finite(exact_flush(exact_flush(call.floats(0)[i]) + call.floats(1)[column]));
    column = column + 1 == p.width ? 0 : column + 1;
  }
  return finite.all();
}

bool gelu_run(const KernelCall& call, int64_t first, int64_t last) {
  const bool error_function = call.as<GeluParams>().error_function != 0;
  return each_number(call, first, last, call.floats_out(1),
                     [x = call.floats(0), error_function](int64_t i) {
                       const float v = exact_flush(x[i]);
                       return error_function ? exact_gelu_erf(v) : exact_gelu_tanh(v);
                     });
}

bool scale_run(const KernelCall& call, int64_t first, int64_t last) {
  const float scale = call.as<ScaleParams>().scale;
  return each_number(call, first, last, call.floats_out(1), [x = call.floats(0), scale](int64_t i) {
    return exact_flush(exact_flush(x[i]) * scale);
  });
}

bool soft_cap_run(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<SoftCapParams>();
  const int64_t end = std::min(int64_t{p.rows} * p.width, last * kSpan);
  Finite finite;
  for (int64_t i = first * kSpan; i < end; ++i) {
    call.floats_out(1)[i] = exact_soft_cap(finite(call.floats(0)[i]), p.cap, p.inverse_cap);
  }
  return finite.all();
}

// --- select_rows ---

Work select_rows_work(const KernelCall& call) {
  const auto p = call.as<SelectRowsParams>();
  return {p.rows, int64_t{p.width}};
}

bool select_rows_run(const KernelCall& call, int64_t first, int64_t last) {
  const auto p = call.as<SelectRowsParams>();
  Finite finite;
  for (int64_t row = first; row < last; ++row) {
    const int64_t from = load_le<int32_t>(call.buffers[1] + row * 4);
    for (int64_t i = 0; i < p.width; ++i) {
      call.floats_out(2)[row * p.width + i] =
          finite(exact_flush(call.floats(0)[from * p.width + i]));
    }
  }
  return finite.all();
}

}  // namespace

Scratch::Scratch(int64_t bytes)
    : data_(bytes > 0 ? std::malloc(static_cast<size_t>(bytes)) : nullptr) {
  SHOAL_CHECK(bytes <= 0 || data_ != nullptr);
}

Scratch::~Scratch() { std::free(data_); }

const KernelTable& portable_kernels() {
  static constexpr KernelTable kTable = {{
      {embed_work, embed_run},
      {rms_norm_work, rms_norm_run},
      {quantize_work, quantize_run},
      {matmul_work, matmul_run},
      {rope_work, rope_run},
      {cache_append_work, cache_append_run},
      {attention_work, attention_run},
      {swiglu_work, swiglu_run},
      {add_work, add_run},
      {select_rows_work, select_rows_run},
      {rms_norm_work, layer_norm_run},
      {bias_work, bias_run},
      {gelu_work, gelu_run},
      {add_work, multiply_run},
      {soft_cap_work, soft_cap_run},
      {bias_work, scale_run},
      {embed_work, positions_run},
      {route_work, route_run},
      {expert_matmul_work, expert_matmul_run},
      {combine_work, combine_run},
  }};
  return kTable;
}

}  // namespace shoal::compute
