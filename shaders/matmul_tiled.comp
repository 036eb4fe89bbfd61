#version 460
// matmul for software drivers, whose loads cost most: an invocation has four rows and four columns, so
// that what it loads serves several products. On a GPU it would leave most of the device idle.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference_uvec2 : require
#pragma shoal_variant(q8_0)
#pragma shoal_variant(q4_0)
#pragma shoal_variant(q4_1)
#pragma shoal_variant(q5_0)
#pragma shoal_variant(q5_1)
#pragma shoal_variant(q4_k)
#pragma shoal_variant(q5_k)
#pragma shoal_variant(q6_k)
#pragma shoal_grid(0/4 1/4)
#include "shaders/lib.glsl"

layout(push_constant, std430) uniform Call {
  layout(offset = 0) Words x;
  layout(offset = 8) Words weight;
  layout(offset = 16) Floats result;
  CALL(MatmulParams);
};

#include "shaders/dot.glsl"

#define TILE_ROWS 1
#define TILE_NAME tile_of_one
#include "shaders/tile.glsl"
#undef TILE_ROWS
#undef TILE_NAME
#define TILE_ROWS 4
#define TILE_NAME tile_of_four
#include "shaders/tile.glsl"

void put(uint row, uint column, float sum) {
  if (row >= p.rows || column >= p.n) return;
  float y = exact_flush(sum);
  if (!exact_is_finite(y)) REPORT_NON_FINITE();
  result.at[row * p.n_total + p.n_first + column] = y;
}
void put_four(uint row, uint column, vec4 sums) {
  put(row, column, sums.x);
  put(row, column + 1u, sums.y);
  put(row, column + 2u, sums.z);
  put(row, column + 3u, sums.w);
}

// Four rows with four columns; beyond the ends the last of them again, which is not stored.
void main() {
  uint i = invocation();
  if (i >= invocations) return;
  uint column_tiles = (p.n + 3u) / 4u;
  uint row = i / column_tiles * 4u;
  uint column = i % column_tiles * 4u;
  uvec4 columns = min(uvec4(column, column + 1u, column + 2u, column + 3u), uvec4(p.n - 1u));
  uvec4 w_rows = columns * weight_stride(p.k);
  uint x_stride = p.k / 4u + p.k / 32u;
  if (p.rows == 1u) {
    vec4 sums[1];
    uint x_rows[1] = uint[1](0u);
    tile_of_one(x_rows, w_rows, p.k, sums);
    put_four(0u, column, sums[0]);
    return;
  }
  uint x_rows[4] = uint[4](row * x_stride, min(row + 1u, p.rows - 1u) * x_stride,
                           min(row + 2u, p.rows - 1u) * x_stride,
                           min(row + 3u, p.rows - 1u) * x_stride);
  vec4 sums[4];
  tile_of_four(x_rows, w_rows, p.k, sums);
  for (int r = 0; r < 4; ++r) put_four(row + uint(r), column, sums[r]);
}
