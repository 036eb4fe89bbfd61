// An element of a weight that is read as a table, as embed and positions do; `row` is the word that its
// row begins with.

float table_element(Words table, uint row, uint width, uint column) {
#if defined(VARIANT_F32)
  return uintBitsToFloat(table.at[row + column]);
#elif defined(VARIANT_Q8_0)
  uint block = column / 32u;
  float scale = half_value(half_bits(table.at[row + width / 4u + block / 2u], block & 1u));
  return times(float(signed_byte(table.at[row + column / 4u], int(column & 3u))), scale);
#elif defined(VARIANT_Q4_0)
  // A byte holds elements j and j + 16 of its block.
  uint block = column / 32u;
  uint element = column & 31u;
  float scale = half_value(half_bits(table.at[row + width / 8u + block / 2u], block & 1u));
  uint word = table.at[row + 4u * block + (element & 15u) / 4u];
  int nibble = int((word >> (8u * (element & 3u) + (element < 16u ? 0u : 4u))) & 15u);
  return times(float(nibble - 8), scale);
#elif defined(VALUE_WORDS)
  uint blocks = width / 32u;
  uint block = column / 32u;
  uint element = column & 31u;
  uint at = row + VALUE_WORDS * block;
  uint byte_shift = 8u * (element & 3u) + (element < 16u ? 0u : 4u);
  int code = int((table.at[at + (element & 15u) / 4u] >> byte_shift) & 15u);
  if (VALUE_WORDS == 5u) code |= int((table.at[at + 4u] >> element) & 1u) << 4;
  if (VALUE_WORDS == 6u) {
    code |= int((table.at[at + 4u + element / 16u] >> (2u * (element & 15u))) & 3u) << 4;
  }
  uint scales = row + VALUE_WORDS * blocks;
  uint head = table.at[scales + (UNIT_BLOCKS > 1u ? blocks : 0u) + block / UNIT_BLOCKS];
#if defined(VARIANT_Q6_K)
  code = (code - 32) * signed_byte(table.at[scales + block], int(element / 16u));
#elif defined(VARIANT_Q5_0)
  code -= 16;
#endif
  int minimum = 1;
#if defined(VARIANT_Q4_K) || defined(VARIANT_Q5_K)
  uint pair = table.at[scales + block];
  code *= int(pair & 255u);
  minimum = int((pair >> 8) & 255u);
#endif
  float value = times(float(code), half_value(half_bits(head, 0u)));
#if defined(HAS_MINIMUM)
  value = plus(value, times(float(minimum), half_value(half_bits(head, 1u))));
#endif
  return value;
#else
  return half_value(half_bits(table.at[row + column / 2u], column & 1u));
#endif
}
