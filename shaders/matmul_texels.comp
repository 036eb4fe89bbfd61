#version 460
// matmul for software drivers. There a load through an address, or from a storage buffer, is a loop over
// the invocations of a subgroup, and a texel's is not; so both factors are read as texels. An invocation
// has four columns with one or four rows, so that what it loads serves several products. Eight
// invocations side by side have the 32 columns of a tile: each loads one of eight words of activations
// and gets the others from its neighbours.
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#pragma shoal_variant(q8_0)
#pragma shoal_variant(q4_0)
#pragma shoal_variant(q4_1)
#pragma shoal_variant(q5_0)
#pragma shoal_variant(q5_1)
#pragma shoal_variant(q4_k)
#pragma shoal_variant(q5_k)
#pragma shoal_variant(q6_k)
#pragma shoal_grid(0/4 1/32)
#pragma shoal_group(8)
#pragma shoal_texels(1 4)
#define GROUP_SIZE 8
#include "shaders/lib.glsl"

layout(set = 0, binding = 0) uniform usamplerBuffer x_words;
layout(set = 0, binding = 1) uniform usamplerBuffer w_texels;
layout(push_constant, std430) uniform Call {
  layout(offset = 0) uint x_first;  // Where the call's part of the buffers begins, in texels.
  layout(offset = 8) uint w_first;
  layout(offset = 16) Floats result;
  CALL(MatmulParams);
};

#define WEIGHT_TEXEL(i) texelFetch(w_texels, int(w_first + (i)))
#include "shaders/tiles.glsl"

// Eight words of activations, one in each of eight invocations. A smaller subgroup loads every word.
struct Eight {
  uint at, mine;
};
uint x_word(uint at) { return texelFetch(x_words, int(x_first + at)).x; }
Eight load_eight(uint at, uint last) {
  if (gl_SubgroupSize < 8u) return Eight(at, 0u);
  return Eight(at, x_word(min(at + gl_SubgroupInvocationID % 8u, last)));
}
uint word_of(Eight eight, uint i) {
  if (gl_SubgroupSize < 8u) return x_word(eight.at + i);
  return subgroupShuffle(eight.mine, gl_SubgroupInvocationID / 8u * 8u + i);
}
uvec4 four_of(Eight eight, uint i) {
  return uvec4(word_of(eight, i), word_of(eight, i + 1u), word_of(eight, i + 2u), word_of(eight, i + 3u));
}

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
  put(row, column + 8u, sums.y);
  put(row, column + 16u, sums.z);
  put(row, column + 24u, sums.w);
}

// Four rows with four columns. Rows beyond the end are the last one again, columns are the zeros that
// fill up a tile; neither is stored.
void main() {
  uint i = invocation();
  if (i >= invocations) return;
  uint tiles = (p.n + kTileRows - 1u) / kTileRows;
  uint tile = i / 8u;
  uint row = tile / tiles * 4u;
  uint column = tile % tiles * kTileRows + i % 8u;
  uint x_stride = p.k / 4u + p.k / 32u;
  uint last = p.rows - 1u;
  if (row == last) {
    vec4 sums[1];
    uint x_rows[1] = uint[1](row * x_stride);
    tile_of_one(x_rows, column, p.k, sums);
    put_four(row, column, sums[0]);
    return;
  }
  uint x_rows[4] = uint[4](row * x_stride, min(row + 1u, last) * x_stride,
                           min(row + 2u, last) * x_stride, min(row + 3u, last) * x_stride);
  vec4 sums[4];
  tile_of_four(x_rows, column, p.k, sums);
  for (int r = 0; r < 4; ++r) put_four(row + uint(r), column, sums[r]);
}
