#version 460
#extension GL_GOOGLE_include_directive : require
#pragma shoal_variant(f32)
#pragma shoal_variant(f16)
#pragma shoal_grid(0 1 3/16)
#include "shaders/lib.glsl"

layout(push_constant, std430) uniform Call {
  layout(offset = 0) Floats q;
  layout(offset = 8) Words keys;
  layout(offset = 16) Words values;
  layout(offset = 24) Rows rows;
  layout(offset = 32) Floats result;
  CALL(AttentionParams);
};

// One invocation makes 16 elements of one head's output, and computes the head's scores for itself.
const uint kDims = 16u;

float state_factor(Words state, uint i) {
#if defined(VARIANT_F32)
  return exact_factor(uintBitsToFloat(state.at[i]));
#else
  return exact_factor(half_value(half_bits(state.at[i / 2u], i & 1u)));
#endif
}

float score(uint query, uint key) {
  float sum = 0.0;
  for (uint first = 0u; first < p.head_dim; first += SHOAL_SUM_CHUNK) {
    float lane[SHOAL_SUM_LANES];
    for (int l = 0; l < SHOAL_SUM_LANES; ++l) lane[l] = 0.0;
    uint last = min(first + SHOAL_SUM_CHUNK, p.head_dim);
    for (uint k = first; k < last; k += SHOAL_SUM_LANES) {
      for (int l = 0; l < SHOAL_SUM_LANES; ++l) {
        if (k + l < last) {
          lane[l] = plus(lane[l], times(exact_factor(q.at[query + k + l]), state_factor(keys, key + k + l)));
        }
      }
    }
    float chunk = sum_lanes(lane);
    sum = first == 0u ? chunk : plus(sum, chunk);
  }
  return exact_flush(times(sum, p.scale));
}

void main() {
  uint i = invocation();
  if (i >= invocations) return;
  uint dim_groups = (p.head_dim + kDims - 1u) / kDims;
  uint dim_first = i % dim_groups * kDims;
  uint dims = min(kDims, p.head_dim - dim_first);
  uint query_head = i / dim_groups;  // Counted over all rows.
  uint row = query_head / p.heads;
  uint kv_head = query_head % p.heads / (p.heads / p.kv_heads);
  uint stride = p.kv_heads * p.head_dim;
  uint base = rows.at[row].sequence * p.context * stride + kv_head * p.head_dim;
  uint length = rows.at[row].position + 1u;

  bool finite = true;
  float m = 0.0;
  float l = 0.0;
  float o[kDims];
  for (uint d = 0u; d < kDims; ++d) o[d] = 0.0;
  for (uint first = 0u; first < length; first += SHOAL_ATTENTION_CHUNK) {
    uint count = min(uint(SHOAL_ATTENTION_CHUNK), length - first);
    float w[SHOAL_ATTENTION_CHUNK];
    float m_c = 0.0;
    for (uint t = 0u; t < count; ++t) {
      float s = score(query_head * p.head_dim, base + (first + t) * stride);
      w[t] = s;
      finite = finite && exact_is_finite(s);
      m_c = t == 0u || s > m_c ? s : m_c;
    }
    float l_c = 0.0;
    float o_c[kDims];
    for (uint d = 0u; d < kDims; ++d) o_c[d] = 0.0;
    for (uint t = 0u; t < count; ++t) {
      float e = exact_factor(exact_exp(minus(w[t], m_c)));
      l_c = plus(l_c, e);
      uint value = base + (first + t) * stride + dim_first;
      for (uint d = 0u; d < kDims; ++d) {
        if (d < dims) o_c[d] = plus(o_c[d], times(e, state_factor(values, value + d)));
      }
    }
    if (first == 0u) {
      m = m_c;
      l = l_c;
      o = o_c;
    } else {
      float m_new = m_c > m ? m_c : m;
      float a = exact_factor(exact_exp(minus(m, m_new)));
      float b = exact_factor(exact_exp(minus(m_c, m_new)));
      l = plus(times(l, a), times(l_c, b));
      for (uint d = 0u; d < kDims; ++d) {
        o[d] = plus(exact_flush(times(o[d], a)), exact_flush(times(o_c[d], b)));
      }
      m = m_new;
    }
  }
  float inverse = exact_reciprocal(l);
  for (uint d = 0u; d < kDims; ++d) {
    if (d < dims) {
      float y = exact_flush(times(o[d], inverse));
      finite = finite && exact_is_finite(y);
      result.at[query_head * p.head_dim + dim_first + d] = y;
    }
  }
  if (!finite) REPORT_NON_FINITE();
}
