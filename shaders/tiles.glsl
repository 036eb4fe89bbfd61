// Reads the tiles in which quantised weights lie; lib.glsl says how. Texels are counted from the weight's
// first one; a kernel that has them elsewhere than in `weight` defines WEIGHT_TEXEL before.

#ifndef WEIGHT_TEXEL
#define WEIGHT_TEXEL(i) weight.at[i]
#endif

const uint kTileRows = 32u;
const uint kChunkBlocks = SHOAL_SUM_CHUNK / SHOAL_QUANT_BLOCK;
#if defined(VARIANT_Q8_0)
const uint kCodeTexels = 2u;
#else
const uint kCodeTexels = 1u;
#endif

// Of a chunk of so many blocks.
uint head_texels(uint blocks) {
#if defined(UNIT_IS_CHUNK)
  return 2u;
#elif defined(HAS_MINIMUM)
  return (blocks + 3u) / 4u;
#else
  return 1u;
#endif
}
uint code_start(uint blocks) { return head_texels(blocks) + (blocks * BIT_WORDS + 3u) / 4u; }
uint chunk_texels(uint blocks) { return code_start(blocks) + blocks * kCodeTexels; }

uint row_texels(uint k) {
  uint blocks = k / SHOAL_QUANT_BLOCK;
  uint rest = blocks % kChunkBlocks;
  return blocks / kChunkBlocks * chunk_texels(kChunkBlocks) + (rest > 0u ? chunk_texels(rest) : 0u);
}
// The next ones of the row follow kTileRows apart.
uint first_texel(uint row, uint texels) {
  return row / kTileRows * texels * kTileRows + row % kTileRows;
}

struct Heads {
  uvec4 first;
#if defined(HAS_MINIMUM) || defined(UNIT_IS_CHUNK)
  uvec4 second;
#endif
};
Heads load_heads(uint at, uint blocks) {
#if defined(UNIT_IS_CHUNK)
  return Heads(WEIGHT_TEXEL(at), WEIGHT_TEXEL(at + kTileRows));
#elif defined(HAS_MINIMUM)
  return Heads(WEIGHT_TEXEL(at), blocks > 4u ? WEIGHT_TEXEL(at + kTileRows) : uvec4(0u));
#else
  return Heads(WEIGHT_TEXEL(at));
#endif
}

// What goes with a block: factors, and for types of 256 elements integers.
struct Scales {
  float d, m;
  int first, second;
};
Scales block_scales(Heads heads, uint block) {
  Scales result = Scales(0.0, 0.0, 1, 1);
#if defined(UNIT_IS_CHUNK)
  result.d = half_value(half_bits(heads.second.x, 0u));
  uint pair = half_bits(heads.first[block / 2u], block & 1u);
#if defined(VARIANT_Q6_K)
  result.first = signed_byte(pair, 0);
  result.second = signed_byte(pair, 1);
#else
  result.m = half_value(half_bits(heads.second.x, 1u));
  result.first = int(pair & 255u);
  result.second = int(pair >> 8);
#endif
#elif defined(HAS_MINIMUM)
  uint word = block < 4u ? heads.first[block] : heads.second[block - 4u];
  result.d = half_value(half_bits(word, 0u));
  result.m = half_value(half_bits(word, 1u));
#else
  result.d = half_value(half_bits(heads.first[block / 2u], block & 1u));
#endif
  return result;
}

// Four bits, or four pairs of bits, to the fifth (and sixth) bits of a word's bytes.
uint spread_bits(uint bits) { return (((bits & 15u) * 0x00204081u) & 0x01010101u) << 4; }
uint spread_pairs(uint bits) {
  return ((bits & 3u) | (bits & 0x0Cu) << 6 | (bits & 0x30u) << 12 | (bits & 0xC0u) << 18) << 4;
}

// The 32 integers of a block, four to a word, the first sixteen in `low`; those of all types but q8_0
// without what is taken off each.
struct Codes {
  uvec4 low, high;
};
Codes load_codes(uint at, uint blocks, uint block) {
  uint from = at + (code_start(blocks) + block * kCodeTexels) * kTileRows;
#if defined(VARIANT_Q8_0)
  return Codes(WEIGHT_TEXEL(from), WEIGHT_TEXEL(from + kTileRows));
#else
  uvec4 words = WEIGHT_TEXEL(from);
  Codes codes = Codes(words & 0x0F0F0F0Fu, (words >> 4) & 0x0F0F0F0Fu);
  if (BIT_WORDS > 0u) {
    uint word = block * BIT_WORDS;
    uvec4 four = WEIGHT_TEXEL(at + (head_texels(blocks) + word / 4u) * kTileRows);
    uint bits = four[word & 3u];
    if (BIT_WORDS == 1u) {
      codes.low |= uvec4(spread_bits(bits), spread_bits(bits >> 4), spread_bits(bits >> 8),
                         spread_bits(bits >> 12));
      codes.high |= uvec4(spread_bits(bits >> 16), spread_bits(bits >> 20), spread_bits(bits >> 24),
                          spread_bits(bits >> 28));
    } else {
      uint next = four[(word & 3u) + 1u];
      codes.low |= uvec4(spread_pairs(bits), spread_pairs(bits >> 8), spread_pairs(bits >> 16),
                         spread_pairs(bits >> 24));
      codes.high |= uvec4(spread_pairs(next), spread_pairs(next >> 8), spread_pairs(next >> 16),
                          spread_pairs(next >> 24));
    }
  }
  return codes;
#endif
}
