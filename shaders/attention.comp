#version 460
#extension GL_GOOGLE_include_directive : require
#pragma shoal_variant(f32)
#pragma shoal_variant(f16)
#pragma shoal_grid(0 1)
#include "shaders/lib.glsl"

layout(push_constant, std430) uniform Call {
  layout(offset = 0) Floats q;
  layout(offset = 8) Words keys;
  layout(offset = 16) Words values;
  layout(offset = 24) Rows rows;
  layout(offset = 32) Floats result;
  CALL(AttentionParams);
};

// Four elements of a state from element i on; zeros from element `last` on.
vec4 load_state(Words state, uint base, uint i, uint last) {
#if defined(VARIANT_F32)
  return factors(load_four(Floats(state), base, i, last));
#else
  // A row may begin inside a word. No half is small enough for exact_factor() to change it.
  vec4 v = vec4(0.0);
  for (uint j = 0u; j < 4u; ++j) {
    uint at = base + i + j;
    if (i + j < last) v[j] = exact_half_to_float(half_bits(state.at[at / 2u], at & 1u));
  }
  return v;
#endif
}

bool finite = true;  // Whether all that this invocation made is.

float score(uint query, uint key) {
  float sum = 0.0;
  for (uint first = 0u; first < p.head_dim; first += SHOAL_SUM_CHUNK) {
    Lanes lanes = Lanes(vec4(0.0), vec4(0.0));
    uint last = min(first + SHOAL_SUM_CHUNK, p.head_dim);
    for (uint k = first; k < last; k += SHOAL_SUM_LANES) {
      lanes.low = plus(lanes.low, times(factors(load_four(q, query, k, last)),
                                        load_state(keys, key, k, last)));
      lanes.high = plus(lanes.high, times(factors(load_four(q, query, k + 4u, last)),
                                          load_state(keys, key, k + 4u, last)));
    }
    float chunk = sum_lanes(lanes);
    sum = first == 0u ? chunk : plus(sum, chunk);
  }
  float scaled = exact_flush(times(sum, p.scale));
  if (!exact_is_finite(scaled)) finite = false;
  return p.cap == 0.0 ? scaled : exact_soft_cap(scaled, p.cap, p.inverse_cap);
}

// One invocation does one head of a row. The head's sums over the chunks so far stand in the result
// until they are complete, so that a head may be of any size.
void main() {
  uint i = invocation();  // The head, counted over all rows.
  if (i >= invocations) return;
  uint row = i / p.heads;
  uint kv_head = i % p.heads / (p.heads / p.kv_heads);
  uint stride = p.kv_heads * p.head_dim;
  uint pages = rows.at[row].pages;
  uint length = rows.at[row].position + 1u;
  uint head = i * p.head_dim;

  uint seen_from = p.window == 0u || length <= p.window ? 0u : length - p.window;
  uint first_chunk = seen_from / SHOAL_ATTENTION_CHUNK * SHOAL_ATTENTION_CHUNK;
  float m = 0.0;
  float l = 0.0;
  for (uint chunk = first_chunk; chunk < length; chunk += SHOAL_ATTENTION_CHUNK) {
    bool is_first = chunk == first_chunk;
    uint first = max(chunk, seen_from);
    uint count = min(chunk + SHOAL_ATTENTION_CHUNK, length) - first;
    uint page = Words(rows).at[pages + chunk / SHOAL_ATTENTION_CHUNK];
    uint base = (page * SHOAL_ATTENTION_CHUNK + first - chunk) * stride + kv_head * p.head_dim;
    float w[SHOAL_ATTENTION_CHUNK];
    float m_c = 0.0;
    for (uint t = 0u; t < count; ++t) {
      float s = score(head, base + t * stride);
      w[t] = s;
      m_c = t == 0u || s > m_c ? s : m_c;
    }
    float l_c = 0.0;
    for (uint t = 0u; t < count; ++t) {
      w[t] = exact_factor(exact_exp(minus(w[t], m_c)));
      l_c = plus(l_c, w[t]);
    }
    // How much the sums so far and this chunk's count for in the sums from here on.
    float m_new = is_first || m_c > m ? m_c : m;
    float a = exact_factor(exact_exp(minus(m, m_new)));
    float b = exact_factor(exact_exp(minus(m_c, m_new)));
    for (uint d = 0u; d < p.head_dim; d += 4u) {
      vec4 o_c = vec4(0.0);
      for (uint t = 0u; t < count; ++t) {
        o_c = plus(o_c, times(vec4(w[t]), load_state(values, base + t * stride, d, p.head_dim)));
      }
      for (uint e = 0u; e < 4u && d + e < p.head_dim; ++e) {
        uint at = head + d + e;
        result.at[at] = is_first ? o_c[e] : plus(exact_flush(times(result.at[at], a)),
                                                    exact_flush(times(o_c[e], b)));
      }
    }
    l = is_first ? l_c : plus(times(l, a), times(l_c, b));
    m = m_new;
  }
  float inverse = exact_reciprocal(l);
  for (uint d = 0u; d < p.head_dim; ++d) {
    float y = exact_flush(times(result.at[head + d], inverse));
    finite = finite && exact_is_finite(y);
    result.at[head + d] = y;
  }
  if (!finite) REPORT_NON_FINITE();
}
