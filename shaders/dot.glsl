// The dot products of matmul and expert_matmul, included after their buffers `x` and `weight`.

#if defined(QUANTISED)

// Four bits, or four pairs of bits, to the fifth (and sixth) bits of a word's bytes.
uint spread_bits(uint bits) { return (((bits & 15u) * 0x00204081u) & 0x01010101u) << 4; }
uint spread_pairs(uint bits) {
  return ((bits & 3u) | (bits & 0x0Cu) << 6 | (bits & 0x30u) << 12 | (bits & 0xC0u) << 18) << 4;
}

// What block `block` of a weight's row adds to a sum; its activations begin at word x_at. Integer parts
// are exact in any order.
float block_product(uint x_at, float x_scale, uint w_row, uint blocks, uint block) {
#if defined(VARIANT_Q8_0)
  int sum = 0;
  for (uint j = 0u; j < 8u; ++j) {
    sum += dot_bytes(x.at[x_at + j], weight.at[w_row + 8u * block + j]);
  }
  uint scales = w_row + 8u * blocks;
  float d = half_value(half_bits(weight.at[scales + block / 2u], block & 1u));
  return times(float(sum), times(d, x_scale));
#elif defined(VARIANT_Q4_0)
  // A weight is a nibble less 8; the eights are taken off together.
  int sum = 0;
  for (uint j = 0u; j < 4u; ++j) {
    uint low = x.at[x_at + j];
    uint high = x.at[x_at + 4u + j];
    uint word = weight.at[w_row + 4u * block + j];
    sum += dot_bytes(low, word & 0x0F0F0F0Fu) + dot_bytes(high, (word >> 4) & 0x0F0F0F0Fu) -
           8 * (dot_bytes(low, 0x01010101u) + dot_bytes(high, 0x01010101u));
  }
  uint scales = w_row + 4u * blocks;
  float d = half_value(half_bits(weight.at[scales + block / 2u], block & 1u));
  return times(float(sum), times(d, x_scale));
#else
  uint at = w_row + VALUE_WORDS * block;
  int low_sum = 0;
  int high_sum = 0;
  int low_x = 0;
  int high_x = 0;
  for (uint j = 0u; j < 4u; ++j) {
    uint word = weight.at[at + j];
    uint low = word & 0x0F0F0F0Fu;
    uint high = (word >> 4) & 0x0F0F0F0Fu;
    if (VALUE_WORDS == 5u) {
      low |= spread_bits(weight.at[at + 4u] >> (4u * j));
      high |= spread_bits(weight.at[at + 4u] >> (16u + 4u * j));
    }
    if (VALUE_WORDS == 6u) {
      low |= spread_pairs(weight.at[at + 4u] >> (8u * j));
      high |= spread_pairs(weight.at[at + 5u] >> (8u * j));
    }
    low_sum += dot_bytes(x.at[x_at + j], low);
    high_sum += dot_bytes(x.at[x_at + 4u + j], high);
    low_x += dot_bytes(x.at[x_at + j], 0x01010101u);
    high_x += dot_bytes(x.at[x_at + 4u + j], 0x01010101u);
  }
  uint scales = w_row + VALUE_WORDS * blocks;
  uint heads = scales + (UNIT_BLOCKS > 1u ? blocks : 0u);
  uint head = weight.at[heads + block / UNIT_BLOCKS];
  float d = half_value(half_bits(head, 0u));
#if defined(VARIANT_Q6_K)
  uint pair = weight.at[scales + block];
  int sum = signed_byte(pair, 0) * (low_sum - 32 * low_x) +
            signed_byte(pair, 1) * (high_sum - 32 * high_x);
#elif defined(VARIANT_Q5_0)
  int sum = low_sum + high_sum - 16 * (low_x + high_x);
#else
  int sum = low_sum + high_sum;
  int minimum = low_x + high_x;
#if defined(VARIANT_Q4_K) || defined(VARIANT_Q5_K)
  uint pair = weight.at[scales + block];
  sum *= int(pair & 255u);
  minimum *= int((pair >> 8) & 255u);
#endif
#endif
  float product = times(float(sum), times(d, x_scale));
#if defined(HAS_MINIMUM)
  float m = half_value(half_bits(head, 1u));
  product = plus(product, times(float(minimum), times(m, x_scale)));
#endif
  return product;
#endif
}

// k values at word x_values, their scales at word x_scales, and a weight's row.
float dot_row(uint x_values, uint x_scales, uint w_row, uint k) {
  uint blocks = k / 32u;
  float sum = 0.0;
  float chunk = 0.0;
  for (uint block = 0u; block < blocks; ++block) {
    float x_scale = uintBitsToFloat(x.at[x_scales + block]);
    chunk = plus(chunk, block_product(x_values + 8u * block, x_scale, w_row, blocks, block));
    const uint kBlocksPerChunk = SHOAL_SUM_CHUNK / SHOAL_QUANT_BLOCK;
    if (block % kBlocksPerChunk == kBlocksPerChunk - 1u || block + 1u == blocks) {
      sum = block < kBlocksPerChunk ? chunk : plus(sum, chunk);
      chunk = 0.0;
    }
  }
  return sum;
}

#else

// Four weights from element i on, i being a multiple of 4; zeros from the row's end on. They are
// factors already: upload_weight() sees to the small ones, and no half is that small.
vec4 load_weights(uint w_row, uint i, uint k) {
#if defined(VARIANT_F32)
  return load_four(Floats(weight), w_row, i, k);
#else
  uint first = weight.at[w_row + i / 2u];
  uint second = i + 2u < k ? weight.at[w_row + i / 2u + 1u] : 0u;
  return vec4(half_value(first & 0xFFFFu), half_value(first >> 16), half_value(second & 0xFFFFu),
              half_value(second >> 16));
#endif
}

// k elements of x from x_row on, and a weight's row.
float dot_row(uint x_row, uint w_row, uint k) {
  float sum = 0.0;
  for (uint first = 0u; first < k; first += SHOAL_SUM_CHUNK) {
    Lanes lanes = Lanes(vec4(0.0), vec4(0.0));
    uint last = min(first + SHOAL_SUM_CHUNK, k);
    for (uint i = first; i < last; i += SHOAL_SUM_LANES) {
      lanes.low =
          plus(lanes.low, times(factors(load_four(x, x_row, i, last)), load_weights(w_row, i, k)));
      if (i + 4u < last) {
        lanes.high = plus(lanes.high, times(factors(load_four(x, x_row, i + 4u, last)),
                                            load_weights(w_row, i + 4u, k)));
      }
    }
    float chunk = sum_lanes(lanes);
    sum = first == 0u ? chunk : plus(sum, chunk);
  }
  return sum;
}

#endif
