// A tile of a quantised product: TILE_ROWS rows of activations with four columns, all in registers, so
// that what is loaded serves several products. Included once for each TILE_ROWS, after dot.glsl, with
// TILE_NAME as the function's name. The order of sums is dot_row()'s.

// Four columns' words `at`, and the word's byte i of each, signed.
#ifndef TILE_PARTS
#define TILE_PARTS

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Quads { uvec4 at[]; };

// Four words from word `first` on, in one load.
uvec4 four_words(Words from, uint first) {
  uvec2 address = uvec2(from);
  uint carry;
  address.x = uaddCarry(address.x, first << 2, carry);
  address.y += carry + (first >> 30);
  return Quads(address).at[0];
}

// The 32 integers of a block, four to a word, the first sixteen in `low`; those of all types but q8_0
// without what is taken off each.
struct Codes {
  uvec4 low, high;
};

Codes load_codes(uint w_row, uint block) {
#if defined(VARIANT_Q8_0)
  return Codes(four_words(weight, w_row + 8u * block), four_words(weight, w_row + 8u * block + 4u));
#else
#if defined(VARIANT_Q4_0)
  uint at = w_row + 4u * block;
#else
  uint at = w_row + VALUE_WORDS * block;
#endif
  uvec4 words = four_words(weight, at);
  Codes codes = Codes(words & 0x0F0F0F0Fu, (words >> 4) & 0x0F0F0F0Fu);
#if defined(VALUE_WORDS)
  if (VALUE_WORDS == 5u) {
    uint bits = weight.at[at + 4u];
    codes.low |= uvec4(spread_bits(bits), spread_bits(bits >> 4), spread_bits(bits >> 8),
                       spread_bits(bits >> 12));
    codes.high |= uvec4(spread_bits(bits >> 16), spread_bits(bits >> 20), spread_bits(bits >> 24),
                        spread_bits(bits >> 28));
  }
  if (VALUE_WORDS == 6u) {
    uint first = weight.at[at + 4u];
    uint second = weight.at[at + 5u];
    codes.low |= uvec4(spread_pairs(first), spread_pairs(first >> 8), spread_pairs(first >> 16),
                       spread_pairs(first >> 24));
    codes.high |= uvec4(spread_pairs(second), spread_pairs(second >> 8), spread_pairs(second >> 16),
                        spread_pairs(second >> 24));
  }
#endif
  return codes;
#endif
}

// What goes with a column's block: factors, and for types of 256 elements integers.
struct Scales {
  float d, m;
  int first, second;
};

Scales load_scales(uint w_row, uint blocks, uint block) {
  Scales result = Scales(0.0, 0.0, 1, 1);
#if defined(VARIANT_Q8_0) || defined(VARIANT_Q4_0)
#if defined(VARIANT_Q8_0)
  uint scales = w_row + 8u * blocks;
#else
  uint scales = w_row + 4u * blocks;
#endif
  result.d = half_value(half_bits(weight.at[scales + block / 2u], block & 1u));
#else
  uint scales = w_row + VALUE_WORDS * blocks;
  uint heads = scales + (UNIT_BLOCKS > 1u ? blocks : 0u);
  uint head = weight.at[heads + block / UNIT_BLOCKS];
  result.d = half_value(half_bits(head, 0u));
#if defined(HAS_MINIMUM)
  result.m = half_value(half_bits(head, 1u));
#endif
#if defined(VARIANT_Q6_K)
  uint pair = weight.at[scales + block];
  result.first = signed_byte(pair, 0);
  result.second = signed_byte(pair, 1);
#elif defined(VARIANT_Q4_K) || defined(VARIANT_Q5_K)
  uint pair = weight.at[scales + block];
  result.first = int(pair & 255u);
  result.second = int((pair >> 8) & 255u);
#endif
#endif
  return result;
}

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

// What a block adds to four columns' sums; x_low and x_high are the sums of its activations.
vec4 block_products(ivec4 low, ivec4 high, int x_low, int x_high, vec4 d, vec4 m, ivec4 first,
                    ivec4 second, float x_scale) {
#if defined(VARIANT_Q8_0)
  ivec4 sum = low + high;
#elif defined(VARIANT_Q4_0)
  ivec4 sum = low + high - 8 * (x_low + x_high);
#elif defined(VARIANT_Q5_0)
  ivec4 sum = low + high - 16 * (x_low + x_high);
#elif defined(VARIANT_Q6_K)
  ivec4 sum = first * (low - 32 * x_low) + second * (high - 32 * x_high);
#else
  ivec4 sum = first * (low + high);
#endif
  vec4 result = times(vec4(sum), times(d, vec4(x_scale)));
#if defined(HAS_MINIMUM)
  result = plus(result, times(vec4(second * (x_low + x_high)), times(m, vec4(x_scale))));
#endif
  return result;
}

#endif

// The products of rows x_rows[] of activations with the columns whose rows of weights begin at w_rows.
void TILE_NAME(uint x_rows[TILE_ROWS], uvec4 w_rows, uint k, out vec4 sums[TILE_ROWS]) {
  uint blocks = k / 32u;
  vec4 chunks[TILE_ROWS];
  for (int r = 0; r < TILE_ROWS; ++r) {
    sums[r] = vec4(0.0);
    chunks[r] = vec4(0.0);
  }
  for (uint block = 0u; block < blocks; ++block) {
    Codes c0 = load_codes(w_rows.x, block);
    Codes c1 = load_codes(w_rows.y, block);
    Codes c2 = load_codes(w_rows.z, block);
    Codes c3 = load_codes(w_rows.w, block);
    ivec4 low[TILE_ROWS];
    ivec4 high[TILE_ROWS];
    uvec4 x_low[TILE_ROWS];
    uvec4 x_high[TILE_ROWS];
    for (int r = 0; r < TILE_ROWS; ++r) {
      low[r] = ivec4(0);
      high[r] = ivec4(0);
      x_low[r] = four_words(x, x_rows[r] + 8u * block);
      x_high[r] = four_words(x, x_rows[r] + 8u * block + 4u);
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
    Scales s0 = load_scales(w_rows.x, blocks, block);
    Scales s1 = load_scales(w_rows.y, blocks, block);
    Scales s2 = load_scales(w_rows.z, blocks, block);
    Scales s3 = load_scales(w_rows.w, blocks, block);
    vec4 d = vec4(s0.d, s1.d, s2.d, s3.d);
    vec4 m = vec4(s0.m, s1.m, s2.m, s3.m);
    ivec4 first = ivec4(s0.first, s1.first, s2.first, s3.first);
    ivec4 second = ivec4(s0.second, s1.second, s2.second, s3.second);
    const uint kBlocksPerChunk = SHOAL_SUM_CHUNK / SHOAL_QUANT_BLOCK;
    bool ends = block % kBlocksPerChunk == kBlocksPerChunk - 1u || block + 1u == blocks;
    for (int r = 0; r < TILE_ROWS; ++r) {
      float x_scale = uintBitsToFloat(x.at[x_rows[r] + k / 4u + block]);
#if defined(VARIANT_Q8_0)
      chunks[r] = plus(chunks[r], block_products(low[r], high[r], 0, 0, d, m, first, second, x_scale));
#else
      chunks[r] = plus(chunks[r], block_products(low[r], high[r], quad_sum(x_low[r]),
                                                 quad_sum(x_high[r]), d, m, first, second, x_scale));
#endif
      if (ends) {
        sums[r] = block < kBlocksPerChunk ? chunks[r] : plus(sums[r], chunks[r]);
        chunks[r] = vec4(0.0);
      }
    }
  }
}
