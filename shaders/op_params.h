// Each op's parameter block: one definition read by C++, GLSL and CUDA. Only 4-byte scalars. A kernel
// gets its buffers in the order given here, then `status`, and one block of at most 64 bytes.
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

// tokens i32[rows], table[vocabulary, width] -> f32[rows, width]. Variant: the table's type.
struct EmbedParams {
  uint rows, width, vocabulary;
};

// x f32[rows, width], weight f32[width] -> f32[rows, width].
struct RmsNormParams {
  uint rows, width;
  float epsilon;
  float inverse_width;  // 1 / width, rounded once on the host.
};

// x f32[rows, width] -> q8_rows[rows, width]. width is a multiple of 32. A row is `width` int8, then
// width / 32 f32 scales.
struct QuantizeParams {
  uint rows, width;
};

// x[rows, k], weight[n, k] -> f32[rows, n_total], columns n_first .. n_first + n - 1. x is q8_rows for
// q8_0 and q4_0 weights, else f32. Variant: the weight's type. A backend may cut n into several calls.
struct MatmulParams {
  uint rows, n, k;
  uint n_first, n_total;
};

// x f32[rows, heads * head_dim], table f32[context, rotary / 2, 2], row_info -> like x. The table
// holds (cos, sin). Pairs are (i, i + rotary / 2) when interleaved is 0, else (2i, 2i + 1).
struct RopeParams {
  uint rows, heads, head_dim, rotary;
  uint interleaved;
};

// x f32[rows, width], row_info -> state[sequences, context, width], in place. Variant: the state's
// type, f32 or f16.
struct CacheAppendParams {
  uint rows, width, context;
};

// q f32[rows, heads * head_dim], keys and values state[sequences, context, kv_heads * head_dim],
// row_info -> f32[rows, heads * head_dim]. Row r sees positions 0 .. row_info[r].position of its
// sequence. Variant: the states' type.
struct AttentionParams {
  uint rows, heads, kv_heads, head_dim, context;
  float scale;
};

// gate f32[rows, width], up f32[rows, width] -> silu(gate) * up.
struct SwigluParams {
  uint rows, width;
};

// a f32[rows, width] + b f32[rows, width].
struct AddParams {
  uint rows, width;
};

// x f32[rows_in, width], picked i32[rows] -> f32[rows, width].
struct SelectRowsParams {
  uint rows, width, rows_in;
};

#ifdef __cplusplus
static_assert(sizeof(RowInfo) == 8 && sizeof(AttentionParams) == 24 && sizeof(MatmulParams) == 20);
}  // namespace shoal::compute
#endif
#endif
