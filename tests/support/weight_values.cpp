#include "tests/support/weight_values.h"

#include <bit>
#include <cmath>

#include "base/check.h"

namespace shoal {

using compute::DType;

double half_value(uint16_t h) {
  const int exponent = (h >> 10) & 31, mantissa = h & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (h & 0x8000) != 0 ? -magnitude : magnitude;
}

std::vector<double> weight_values(DType type, ByteSpan bytes, int64_t count) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t block = i / 32, j = i % 32;
    switch (type) {
      case DType::kF32:
        values.push_back(std::bit_cast<float>(load_le<uint32_t>(bytes.data() + i * 4)));
        break;
      case DType::kF16:
        values.push_back(half_value(load_le<uint16_t>(bytes.data() + i * 2)));
        break;
      case DType::kBF16: {
        const uint32_t bits = uint32_t{load_le<uint16_t>(bytes.data() + i * 2)} << 16;
        values.push_back(std::bit_cast<float>(bits));
        break;
      }
      case DType::kQ8_0: {
        const std::byte* at = bytes.data() + block * 34;
        values.push_back(half_value(load_le<uint16_t>(at)) * static_cast<int8_t>(at[2 + j]));
        break;
      }
      case DType::kQ4_0: {
        const std::byte* at = bytes.data() + block * 18;
        const int pair = static_cast<int>(at[2 + j % 16]);
        values.push_back(half_value(load_le<uint16_t>(at)) *
                         ((j < 16 ? pair % 16 : pair / 16) - 8));
        break;
      }
      case DType::kQ4_1:
      case DType::kQ5_0:
      case DType::kQ5_1: {
        const bool five = type != DType::kQ4_1;
        const bool minimum = type != DType::kQ5_0;
        const std::byte* at = bytes.data() + block * (16 + (five ? 4 : 0) + (minimum ? 4 : 2));
        const double d = half_value(load_le<uint16_t>(at));
        const double m = minimum ? half_value(load_le<uint16_t>(at + 2)) : -16 * d;
        at += minimum ? 4 : 2;
        int q = 0;
        if (five) {
          q = static_cast<int>(at[j / 8]) >> (j % 8) & 1 ? 16 : 0;
          at += 4;
        }
        const int pair = static_cast<int>(at[j % 16]);
        values.push_back((q + (j < 16 ? pair % 16 : pair / 16)) * d + m);
        break;
      }
      case DType::kQ4_K:
      case DType::kQ5_K: {
        const bool five = type == DType::kQ5_K;
        const std::byte* at = bytes.data() + i / 256 * (five ? 176 : 144);
        const int64_t e = i % 256 / 32;
        const auto packed = [&](int64_t n) { return static_cast<int>(at[4 + n]); };
        int scale, minimum;
        if (e < 4) {
          scale = packed(e) % 64;
          minimum = packed(e + 4) % 64;
        } else {
          scale = packed(e + 4) % 16 + packed(e - 4) / 64 * 16;
          minimum = packed(e + 4) / 16 + packed(e) / 64 * 16;
        }
        const int pair = static_cast<int>(at[(five ? 48 : 16) + e / 2 * 32 + j]);
        int q = e % 2 == 0 ? pair % 16 : pair / 16;
        if (five && (static_cast<int>(at[16 + j]) >> e) % 2 == 1) q += 16;
        values.push_back(half_value(load_le<uint16_t>(at)) * scale * q -
                         half_value(load_le<uint16_t>(at + 2)) * minimum);
        break;
      }
      case DType::kQ6_K: {
        const std::byte* at = bytes.data() + i / 256 * 210;
        const int64_t part = i % 256 / 128, quarter = i % 128 / 32;
        const int low = static_cast<int>(at[part * 64 + quarter % 2 * 32 + j]);
        const int high = static_cast<int>(at[128 + part * 32 + j]);
        const int q = (quarter < 2 ? low % 16 : low / 16) + (high >> (2 * quarter)) % 4 * 16 - 32;
        const auto scale = static_cast<int8_t>(at[192 + part * 8 + quarter * 2 + j / 16]);
        values.push_back(half_value(load_le<uint16_t>(at + 208)) * scale * q);
        break;
      }
      default: SHOAL_UNREACHABLE();
    }
  }
  return values;
}

}  // namespace shoal
