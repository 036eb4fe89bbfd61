// Each op's parameter block: one definition read by C++, GLSL and CUDA. Only 4-byte scalars. A
// kernel gets its buffers in the order given here, then `status`, and one block of at most 64
// bytes.
#ifndef SHOAL_OP_PARAMS_H
#define SHOAL_OP_PARAMS_H

#ifdef __cplusplus
#include <cstdint>
namespace shoal::compute {
using uint = uint32_t;
#endif

// What a step says of each row: which sequence's cache it belongs to, and its position there.
struct RowInfo {
  uint sequence;
  uint position;
};

// What kernels read of it, as row_info: one of these a row, and behind them words that number pages.
// A page is SHOAL_ATTENTION_CHUNK positions of the caches; the row's position j stands in the page
// whose number is word `pages` + j / SHOAL_ATTENTION_CHUNK of row_info, at place j %
// SHOAL_ATTENTION_CHUNK.
struct RowPlace {
  uint pages;
  uint position;
};

// tokens i32[rows], table[vocabulary, width] -> factor(row) f32[rows, width]. Variant: the table's
// type; a quantised element is float(q) * scale.
struct EmbedParams {
  uint rows, width, vocabulary;
};

// x f32[rows, width], weight f32[width] -> f32[rows, width]; a row of several heads counts as
// several rows: x' = flush(x), sum of factor(x')^2 in the order of float chunks, mean = sum *
// inverse_width, s = rsqrt(mean + epsilon), y = flush(flush(x' * s) * factor(weight)).
struct RmsNormParams {
  uint rows, width;
  float epsilon;
  float inverse_width;  // 1 / width, rounded once on the host.
};

// x f32[rows, width] -> q8_rows[rows, width]. width is a multiple of 32. A row is `width` int8,
// then width / 32 f32 scales. Per block by exact_quant_*(); a magnitude above 2^100 reports
// non_finite.
struct QuantizeParams {
  uint rows, width;
};

// x[rows, k], weight[n, k] -> f32[rows, n_total], columns n_first .. n_first + n - 1. x is q8_rows
// for quantised weights, else f32. Variant: the weight's type. A backend may cut n into several
// calls. y = flush(the sum in the order of float or quantised chunks).
struct MatmulParams {
  uint rows, n, k;
  uint n_first, n_total;
};

// x f32[rows, heads * head_dim], table f32[context, rotary / 2, 2], row_info -> like x. The table
// holds (cos, sin). Pairs are (i, i + rotary / 2) when interleaved is 0, else (2i, 2i + 1).
// With a, b, c, s through factor(): flush(a * c - b * s), flush(a * s + b * c), each product and
// the sum rounded alone. Elements from `rotary` on are flush(x).
struct RopeParams {
  uint rows, heads, head_dim, rotary;
  uint interleaved;
};

// x f32[rows, width], row_info -> state[pages, SHOAL_ATTENTION_CHUNK, width], in place, each row at
// the place of its position. Variant: the state's type: f32 stores factor(x), f16 stores
// exact_float_to_half(x); an infinity reports non_finite.
struct CacheAppendParams {
  uint rows, width;
};

// q f32[rows, heads * head_dim], keys and values state[pages, SHOAL_ATTENTION_CHUNK, kv_heads *
// head_dim], row_info -> f32[rows, heads * head_dim]. Row r sees positions 0 ..
// row_info[r].position of its pages; query head h reads key head h / (heads / kv_heads). Variant: the states' type.
// Per chunk c of 32 positions, ascending: score = flush(dot(q, k) * scale), the dot in float chunk
// order over head_dim, non_finite reported if it is none; m_c = largest score; w = factor(exp(score
// - m_c)); l_c = sum of w ascending from +0; o_c[d] = sum of w * factor(v[d]) ascending from +0.
// The first chunk sets m, l, o; each later one merges: m' = max(m, m_c), a = factor(exp(m - m')), b
// = factor(exp(m_c - m')), l = l * a + l_c * b, o = flush(o * a) + flush(o_c * b), m = m'. Result:
// flush(o * reciprocal(l)).
// With a window, row r sees only the last `window` of its positions; chunks stay counted from 0,
// the first one is that of the first position seen, and leaves out those before. With a cap, score
// = soft_cap(flush(dot * scale)).
struct AttentionParams {
  uint rows, heads, kv_heads, head_dim;
  float scale;
  uint window;             // 0: none.
  float cap, inverse_cap;  // 0: none. 1 / cap, rounded once on the host.
};

// gate f32[rows, width], up f32[rows, width] -> flush(silu(flush(gate)) * flush(up)).
struct SwigluParams {
  uint rows, width;
};

// a f32[rows, width], b f32[rows, width] -> flush(flush(a) + flush(b)).
struct AddParams {
  uint rows, width;
};

// x f32[rows_in, width], picked i32[rows] -> flush(x[picked]) f32[rows, width].
struct SelectRowsParams {
  uint rows, width, rows_in;
};

// x f32[rows, width], weight f32[width], bias f32[width] -> f32[rows, width]: x' = flush(x), mean =
// flush(flush(sum of x' in the order of float chunks) * inverse_width), c = flush(x' - mean), s =
// rsqrt((sum of factor(c)^2, as for rms_norm) * inverse_width + epsilon),
// y = flush(flush(flush(c * s) * factor(weight)) + factor(bias)).
struct LayerNormParams {
  uint rows, width;
  float epsilon;
  float inverse_width;
};

// x f32[rows, width], bias f32[width] -> flush(flush(x) + factor(bias)).
struct BiasParams {
  uint rows, width;
};

// x f32[rows, width] -> exact_gelu_tanh(flush(x)), or exact_gelu_erf.
struct GeluParams {
  uint rows, width;
  uint error_function;
};

// a f32[rows, width], b f32[rows, width] -> flush(flush(a) * flush(b)).
struct MultiplyParams {
  uint rows, width;
};

// x f32[rows, width] -> exact_soft_cap(x).
struct SoftCapParams {
  uint rows, width;
  float cap, inverse_cap;  // 1 / cap, rounded once on the host.
};

// x f32[rows, width] -> flush(flush(x) * scale).
struct ScaleParams {
  uint rows, width;
  float scale;
};

// table[positions, width], row_info -> factor(row of its position) f32[rows, width]. Variant: the
// table's type, as for embed. A position beyond the table reports non_finite.
struct PositionsParams {
  uint rows, width, positions;
};

// x f32[rows, experts] -> f32[rows, 2 * used]: the experts of a row with the largest flush(x), in
// descending order, of equal ones the lower first; then their weights, in the same order. m = the
// largest; e = factor(exp(x - m)); weight = flush(e * reciprocal(sum)), the sum over those used in
// that order from +0 (renormalise), else over all in ascending order from +0.
struct RouteParams {
  uint rows, experts, used;
  uint renormalise;
};

// x[rows, slots * k], weight[experts * n, k], routes f32[rows, 2 * used] -> f32[rows, used * n]:
// slot j is the product of rows n * e .. n * e + n - 1 of the weight, e being the row's expert j,
// with x (slots 1) or its part j (slots `used`). Types, variant and sums as for matmul.
struct ExpertMatmulParams {
  uint rows, n, k, experts, used, slots;
};

// x f32[rows, used * width], routes f32[rows, 2 * used] -> f32[rows, width]: the sum of
// factor(weight j) * factor(part j), j ascending from +0, flushed.
struct CombineParams {
  uint rows, width, used;
};

#ifdef __cplusplus
static_assert(sizeof(RowPlace) == 8 && sizeof(AttentionParams) == 32 && sizeof(MatmulParams) == 20);
}  // namespace shoal::compute
#endif
#endif
