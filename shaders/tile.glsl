// A tile of a quantised product: TILE_ROWS rows of activations with four columns of a tile of weights, all
// in registers, so that what is loaded serves several products. Included once for each TILE_ROWS, with
// TILE_NAME as the function's name. The order of sums is dot_row()'s.

#ifndef TILE_PARTS
#define TILE_PARTS

// Byte i of each of four words, signed.
ivec4 signed_bytes(uvec4 words, int i) { return bitfieldExtract(ivec4(words), 8 * i, 8); }

// The products of four columns' words with one word of x.
ivec4 word_products(ivec4 b0, ivec4 b1, ivec4 b2, ivec4 b3, uint word) {
  return b0 * signed_byte(word, 0) + b1 * signed_byte(word, 1) + b2 * signed_byte(word, 2) +
         b3 * signed_byte(word, 3);
}
int word_sum(uint word) { return dot_bytes(word, 0x01010101u); }
int quad_sum(uvec4 words) {
  return word_sum(words.x) + word_sum(words.y) + word_sum(words.z) + word_sum(words.w);
}

// The scales of a block of four columns.
struct FourScales {
  vec4 d, m;
  ivec4 first, second;
};
FourScales four_scales(Heads heads[4], uint block) {
  Scales a = block_scales(heads[0], block);
  Scales b = block_scales(heads[1], block);
  Scales c = block_scales(heads[2], block);
  Scales d = block_scales(heads[3], block);
  return FourScales(vec4(a.d, b.d, c.d, d.d), vec4(a.m, b.m, c.m, d.m),
                    ivec4(a.first, b.first, c.first, d.first),
                    ivec4(a.second, b.second, c.second, d.second));
}

// What a block adds to four columns' sums, as block_product() of dot.glsl.
vec4 block_products(ivec4 low, ivec4 high, int x_low, int x_high, FourScales scales, float x_scale) {
#if defined(VARIANT_Q8_0)
  ivec4 sum = low + high;
#elif defined(VARIANT_Q4_0)
  ivec4 sum = low + high - 8 * (x_low + x_high);
#elif defined(VARIANT_Q5_0)
  ivec4 sum = low + high - 16 * (x_low + x_high);
#elif defined(VARIANT_Q6_K)
  ivec4 sum = scales.first * (low - 32 * x_low) + scales.second * (high - 32 * x_high);
#else
  ivec4 sum = scales.first * (low + high);
#endif
  vec4 result = times(vec4(sum), times(scales.d, vec4(x_scale)));
#if defined(HAS_MINIMUM)
  result = plus(result, times(vec4(scales.second * (x_low + x_high)), times(scales.m, vec4(x_scale))));
#endif
  return result;
}

#endif

// The products of the activations that begin at words x_rows[] with columns `column`, `column` + 8, + 16
// and + 24 of one tile.
void TILE_NAME(uint x_rows[TILE_ROWS], uint column, uint k, out vec4 sums[TILE_ROWS]) {
  uint blocks = k / SHOAL_QUANT_BLOCK;
  uint at = first_texel(column, row_texels(k));
  for (int r = 0; r < TILE_ROWS; ++r) sums[r] = vec4(0.0);
  for (uint first = 0u; first < blocks; first += kChunkBlocks) {
    uint count = min(blocks - first, kChunkBlocks);
    Heads heads[4];
    for (uint c = 0u; c < 4u; ++c) heads[c] = load_heads(at + 8u * c, count);
    Eight x_scales[TILE_ROWS];
    vec4 chunks[TILE_ROWS];
    for (int r = 0; r < TILE_ROWS; ++r) {
      uint scales_at = x_rows[r] + k / 4u;
      x_scales[r] = load_eight(scales_at + first, scales_at + blocks - 1u);
      chunks[r] = vec4(0.0);
    }
    for (uint block = 0u; block < count; ++block) {
      Codes c0 = load_codes(at, count, block);
      Codes c1 = load_codes(at + 8u, count, block);
      Codes c2 = load_codes(at + 16u, count, block);
      Codes c3 = load_codes(at + 24u, count, block);
      ivec4 low[TILE_ROWS];
      ivec4 high[TILE_ROWS];
      uvec4 x_low[TILE_ROWS];
      uvec4 x_high[TILE_ROWS];
      for (int r = 0; r < TILE_ROWS; ++r) {
        low[r] = ivec4(0);
        high[r] = ivec4(0);
        uint x_at = x_rows[r] + 8u * (first + block);
        Eight eight = load_eight(x_at, x_at + 7u);
        x_low[r] = four_of(eight, 0u);
        x_high[r] = four_of(eight, 4u);
      }
      for (int j = 0; j < 4; ++j) {
        uvec4 words = uvec4(c0.low[j], c1.low[j], c2.low[j], c3.low[j]);
        ivec4 b0 = signed_bytes(words, 0);
        ivec4 b1 = signed_bytes(words, 1);
        ivec4 b2 = signed_bytes(words, 2);
        ivec4 b3 = signed_bytes(words, 3);
        for (int r = 0; r < TILE_ROWS; ++r) low[r] += word_products(b0, b1, b2, b3, x_low[r][j]);
        words = uvec4(c0.high[j], c1.high[j], c2.high[j], c3.high[j]);
        b0 = signed_bytes(words, 0);
        b1 = signed_bytes(words, 1);
        b2 = signed_bytes(words, 2);
        b3 = signed_bytes(words, 3);
        for (int r = 0; r < TILE_ROWS; ++r) high[r] += word_products(b0, b1, b2, b3, x_high[r][j]);
      }
      FourScales scales = four_scales(heads, block);
      for (int r = 0; r < TILE_ROWS; ++r) {
        float x_scale = uintBitsToFloat(word_of(x_scales[r], block));
#if defined(VARIANT_Q8_0)
        int x_low_sum = 0;
        int x_high_sum = 0;
#else
        int x_low_sum = quad_sum(x_low[r]);
        int x_high_sum = quad_sum(x_high[r]);
#endif
        chunks[r] = plus(chunks[r], block_products(low[r], high[r], x_low_sum, x_high_sum, scales,
                                                   x_scale));
      }
    }
    for (int r = 0; r < TILE_ROWS; ++r) sums[r] = first == 0u ? chunks[r] : plus(sums[r], chunks[r]);
    at += chunk_texels(kChunkBlocks) * kTileRows;
  }
}
