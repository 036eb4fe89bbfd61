// An element of a weight that is read as a table, as embed and positions do. Included after the buffer
// `weight`.

#if defined(QUANTISED)
#include "shaders/tiles.glsl"
#endif

float table_element(uint row, uint width, uint column) {
#if defined(QUANTISED)
  uint blocks = width / SHOAL_QUANT_BLOCK;
  uint first = column / SHOAL_SUM_CHUNK * kChunkBlocks;
  uint count = min(blocks - first, kChunkBlocks);
  uint block = column / SHOAL_QUANT_BLOCK - first;
  uint at = first_texel(row, row_texels(width)) +
            first / kChunkBlocks * chunk_texels(kChunkBlocks) * kTileRows;
  Codes codes = load_codes(at, count, block);
  uint element = column % SHOAL_QUANT_BLOCK;
  uint word = element % 16u / 4u;
  int code = signed_byte(element < 16u ? codes.low[word] : codes.high[word], int(element & 3u));
  Scales scales = block_scales(load_heads(at, count), block);
#if defined(VARIANT_Q4_0)
  code -= 8;
#elif defined(VARIANT_Q5_0)
  code -= 16;
#elif defined(VARIANT_Q6_K)
  code = (code - 32) * (element < 16u ? scales.first : scales.second);
#else
  code *= scales.first;
#endif
  float value = times(float(code), scales.d);
#if defined(HAS_MINIMUM)
  value = plus(value, times(float(scales.second), scales.m));
#endif
  return value;
#elif defined(VARIANT_F32)
  return uintBitsToFloat(weight.at[row * weight_stride(width) + column]);
#else
  return half_value(half_bits(weight.at[row * weight_stride(width) + column / 2u], column & 1u));
#endif
}
