#include "compute/ops/samples.h"

#include <bit>
#include <limits>

#include "base/check.h"
#include "shaders/exact_math.h"

namespace shoal::compute {

const char* pattern_name(Pattern pattern) {
  switch (pattern) {
    case Pattern::kOrdinary: return "ordinary";
    case Pattern::kZero: return "zero";
    case Pattern::kHuge: return "huge";
    case Pattern::kLarge: return "large";
    case Pattern::kTiny: return "tiny";
    case Pattern::kMax: return "max";
  }
  SHOAL_UNREACHABLE();
}

// splitmix64. Not base/random.h: the bytes of a sample are data that must never change.
uint32_t SampleMaker::next() {
  state_ += 0x9E3779B97F4A7C15u;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<uint32_t>((z ^ (z >> 31)) >> 32);
}

float SampleMaker::ordinary() {
  const uint32_t bits = next();
  if (bits % 31 == 0) return 0.0f;
  const float unit = static_cast<float>(static_cast<int32_t>(bits >> 8) - (1 << 23)) * 0x1p-22f;
  return bits % 7 == 0 ? unit * 0.001f : unit;
}

float SampleMaker::value(Pattern pattern) {
  switch (pattern) {
    case Pattern::kOrdinary:
    case Pattern::kHuge: return ordinary();
    case Pattern::kZero: return next() % 2 == 0 ? 0.0f : -0.0f;
    case Pattern::kLarge: return ordinary() * 0x1p98f;
    case Pattern::kMax: {
      const float most = std::numeric_limits<float>::max();
      return next() % 2 == 0 ? most : -most;
    }
    case Pattern::kTiny: {
      const uint32_t sign = next() & 0x80000000u;
      const uint32_t around = next() % 5;  // -2 .. 2 steps from the bound.
      switch (next() % 4) {
        case 0: return std::bit_cast<float>(sign | (next() & 0x7FFFFFu));  // Subnormal.
        case 1: return std::bit_cast<float>(sign | (SHOAL_FLUSH_BITS - 2u + around));
        case 2: return std::bit_cast<float>(sign | (SHOAL_FACTOR_BITS - 2u + around));
        default: return std::bit_cast<float>(sign | (0x00800000u - 2u + around));  // 2^-126
      }
    }
  }
  SHOAL_UNREACHABLE();
}

namespace {

SampleBuffer make_buffer(DType dtype, int64_t rows, int64_t columns) {
  const Result<int64_t> size = byte_size(dtype, {rows, columns});
  SHOAL_CHECK(size.ok());
  return {.dtype = dtype,
          .rows = rows,
          .columns = columns,
          .bytes = ByteVector(static_cast<size_t>(size.value()))};
}

void store_u16(SampleBuffer& buffer, int64_t index, uint32_t bits) {
  store_le<uint16_t>(buffer.bytes.data() + index * 2, static_cast<uint16_t>(bits));
}

}  // namespace

SampleBuffer SampleMaker::floats(int64_t rows, int64_t columns, Pattern pattern) {
  SampleBuffer buffer = make_buffer(DType::kF32, rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) store_f32(buffer.bytes, i, value(pattern));
  if (pattern == Pattern::kHuge) store_f32(buffer.bytes, next() % (rows * columns), -1e20f);
  return buffer;
}

SampleBuffer SampleMaker::weights(DType dtype, int64_t rows, int64_t columns, Pattern pattern) {
  SampleBuffer buffer = make_buffer(dtype, rows, columns);
  buffer.weight = true;
  if (dtype == DType::kF32) {
    buffer = floats(rows, columns, pattern);
    buffer.weight = true;
  } else if (dtype == DType::kF16) {
    for (int64_t i = 0; i < rows * columns; ++i) {
      // Any finite half, subnormals included, when the pattern is not ordinary.
      const uint32_t any = next() & 0xFBFFu;
      store_u16(buffer, i,
                pattern == Pattern::kOrdinary ? exact::exact_float_to_half(ordinary()) : any);
    }
  } else if (dtype == DType::kBF16) {
    for (int64_t i = 0; i < rows * columns; ++i) {
      store_u16(buffer, i, std::bit_cast<uint32_t>(value(pattern)) >> 16);
    }
  } else if (dtype != DType::kQ8_0 && dtype != DType::kQ4_0) {
    fill_blocks(buffer, pattern);
  } else {
    const int64_t block_bytes = dtype == DType::kQ8_0 ? 34 : 18;
    for (int64_t block = 0; block < rows * columns / 32; ++block) {
      std::byte* at = buffer.bytes.data() + block * block_bytes;
      uint32_t scale = exact::exact_float_to_half(ordinary() * 0.01f);  // Either sign, at times 0.
      if (pattern == Pattern::kTiny) scale = next() & 0x83FFu;          // Subnormal halves.
      if (pattern == Pattern::kMax || pattern == Pattern::kLarge) scale = 0x7BFFu;
      if (pattern == Pattern::kZero) scale = 0;
      store_le<uint16_t>(at, static_cast<uint16_t>(scale));
      for (int64_t i = 2; i < block_bytes; ++i) at[i] = static_cast<std::byte>(next());
      // -128 everywhere, or -8.
      if (pattern == Pattern::kMax)
        std::fill(at + 2, at + block_bytes, std::byte(dtype == DType::kQ8_0 ? 0x80 : 0));
    }
  }
  return buffer;
}

// The later types: any bytes, with halves where the type has them.
void SampleMaker::fill_blocks(SampleBuffer& buffer, Pattern pattern) {
  const DType dtype = buffer.dtype;
  const Result<int64_t> block_bytes = byte_size(dtype, {block_elements(dtype)});
  SHOAL_CHECK(block_bytes.ok());
  const bool large = block_elements(dtype) == 256;
  const auto size = static_cast<size_t>(block_bytes.value());
  const auto half = [&](std::byte* at) {
    // Integer scales of 6 and 8 bits make up for what halves are smaller here.
    uint32_t bits = exact::exact_float_to_half(ordinary() * (large ? 0.0005f : 0.01f));
    if (pattern == Pattern::kTiny) bits = next() & 0x83FFu;
    if (pattern == Pattern::kMax || pattern == Pattern::kLarge) bits = 0x7BFFu;
    if (pattern == Pattern::kZero) bits = 0;
    store_le<uint16_t>(at, static_cast<uint16_t>(bits));
  };
  for (size_t begin = 0; begin < buffer.bytes.size(); begin += size) {
    std::byte* at = buffer.bytes.data() + begin;
    for (size_t i = 0; i < size; ++i) at[i] = static_cast<std::byte>(next());
    if (pattern == Pattern::kMax) std::fill_n(at, size, std::byte{0xFF});
    if (pattern == Pattern::kLarge) std::fill_n(at, size, std::byte{0});
    if (dtype == DType::kQ6_K) {
      // -128, with integers of 31 or -32.
      if (pattern == Pattern::kMax || pattern == Pattern::kLarge)
        std::fill_n(at + 192, 16, std::byte{0x80});
      half(at + 208);
    } else {
      half(at);
      if (dtype != DType::kQ5_0) half(at + 2);
    }
  }
}

SampleBuffer SampleMaker::states(DType dtype, int64_t rows, int64_t columns, Pattern pattern) {
  SampleBuffer buffer = weights(dtype, rows, columns, pattern);
  buffer.weight = false;
  return buffer;
}

SampleBuffer SampleMaker::q8_rows(int64_t rows, int64_t columns, Pattern pattern) {
  SampleBuffer buffer = make_buffer(DType::kQ8Rows, rows, columns);
  for (int64_t row = 0; row < rows; ++row) {
    std::byte* at = buffer.bytes.data() + row * (columns / 32 * 36);
    for (int64_t block = 0; block < columns / 32; ++block) {
      // Scales as quantize makes them: 0, or from 2^-57 to 2^93.
      float scale = std::bit_cast<float>(std::bit_cast<uint32_t>(ordinary() * 0.01f) & 0x7FFFFFFFu);
      if (pattern == Pattern::kZero || scale < 0x1p-57f) scale = 0.0f;
      if (pattern == Pattern::kTiny) scale = next() % 3 == 0 ? 0.0f : 0x1.02p-57f;
      if (pattern == Pattern::kLarge) scale = 0x1p80f;
      for (int i = 0; i < 32; ++i) {
        int q = static_cast<int>(next() % 255) - 127;
        if (scale == 0.0f) q = 0;
        if (pattern == Pattern::kMax) q = -127;
        at[block * 32 + i] = static_cast<std::byte>(q);
      }
      std::memcpy(at + columns + block * 4, &scale, 4);
    }
  }
  return buffer;
}

SampleBuffer SampleMaker::integers(const std::vector<int32_t>& values) {
  SampleBuffer buffer = make_buffer(DType::kI32, 1, static_cast<int64_t>(values.size()));
  std::memcpy(buffer.bytes.data(), values.data(), buffer.bytes.size());
  return buffer;
}

int64_t state_positions(int64_t sequences, int64_t context) {
  const int64_t pages = (context + SHOAL_ATTENTION_CHUNK - 1) / SHOAL_ATTENTION_CHUNK;
  return sequences * pages * SHOAL_ATTENTION_CHUNK;
}

SampleBuffer SampleMaker::row_info(const std::vector<RowInfo>& rows, int64_t sequences,
                                   int64_t context) {
  const int64_t each = state_positions(1, context) / SHOAL_ATTENTION_CHUNK;
  std::vector<int32_t> words;
  for (const RowInfo& row : rows) {
    words.push_back(
        static_cast<int32_t>(static_cast<int64_t>(rows.size()) * 2 + int64_t{row.sequence} * each));
    words.push_back(static_cast<int32_t>(row.position));
  }
  // The last pages first, and those of different sequences in turns.
  for (int64_t sequence = 0; sequence < sequences; ++sequence) {
    for (int64_t page = 0; page < each; ++page) {
      words.push_back(static_cast<int32_t>((each - 1 - page) * sequences + sequence));
    }
  }
  return integers(words);
}

OpSample SampleMaker::failing(const char* label, const ParamBlock& params,
                              std::vector<SampleBuffer> inputs, float bad) {
  OpSample sample{
      .label = label, .params = params, .inputs = std::move(inputs), .non_finite = true};
  for (SampleBuffer& input : sample.inputs) store_f32(input.bytes, 32, bad);
  sample.output = poison(DType::kF32, 1, 33);
  return sample;
}

SampleBuffer SampleMaker::poison(DType dtype, int64_t rows, int64_t columns) {
  SampleBuffer buffer = make_buffer(dtype, rows, columns);
  std::fill(buffer.bytes.begin(), buffer.bytes.end(), std::byte{0x5A});
  return buffer;
}

std::string label(std::initializer_list<std::pair<const char*, int64_t>> numbers, Pattern pattern) {
  std::string text;
  for (const auto& [name, number] : numbers) {
    text += name;
    text += ' ' + std::to_string(number) + ' ';
  }
  return text + pattern_name(pattern);
}

}  // namespace shoal::compute
