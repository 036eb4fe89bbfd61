#include "compute/ops/op.h"

#include "base/check.h"
#include "shaders/exact_math.h"

namespace shoal::compute {

std::string describe(const Value& value) {
  std::string text(dtype_name(value.dtype));
  text += '[';
  for (size_t i = 0; i < value.shape.size(); ++i) {
    if (i > 0) text += ", ";
    switch (value.shape[i]) {
      case kRows: text += "rows"; break;
      case kOutputs: text += "outputs"; break;
      case kContext: text += "context"; break;
      case kSequences: text += "sequences"; break;
      default: text += std::to_string(value.shape[i]);
    }
  }
  return text + ']';
}

Error shape_error(std::string_view what, const Value& value, std::string_view wanted) {
  return Error{ErrorCode::kCorrupt, std::string(what) + " is " + describe(value) + " where " +
                                        std::string(wanted) + " is needed"};
}

bool is_rows(const Value& value, DType dtype) {
  return (value.kind == ValueKind::kComputed || value.kind == ValueKind::kInput) &&
         value.dtype == dtype && value.shape.size() == 2 &&
         (value.shape[0] == kRows || value.shape[0] == kOutputs);
}

int64_t rows_of(const Value& value, const Dims& dims) { return bind(value.shape, dims)[0]; }

Error non_finite(OpKind kind, int64_t element) {
  return Error{ErrorCode::kNonFinite, std::string(op_name(kind)) + ": element " +
                                          std::to_string(element) + " is not finite"};
}

Result<void> check_finite(OpKind kind, std::span<const std::byte> f32_output) {
  const auto count = static_cast<int64_t>(f32_output.size() / 4);
  for (int64_t i = 0; i < count; ++i) {
    if (!exact::exact_is_finite(load_f32(f32_output, i))) return non_finite(kind, i);
  }
  return {};
}

float load_f32(ByteSpan bytes, int64_t index) {
  float value;
  std::memcpy(&value, bytes.data() + index * 4, 4);
  return value;
}

void store_f32(std::span<std::byte> bytes, int64_t index, float value) {
  std::memcpy(bytes.data() + index * 4, &value, 4);
}

int32_t load_i32(ByteSpan bytes, int64_t index) {
  return load_le<int32_t>(bytes.data() + index * 4);
}

uint32_t load_position(ByteSpan row_info, int64_t row) {
  return load_le<uint32_t>(row_info.data() + row * 8 + 4);
}

int64_t load_place(ByteSpan row_info, int64_t row, int64_t position) {
  const int64_t pages = load_le<uint32_t>(row_info.data() + row * 8);
  const int64_t page =
      load_le<uint32_t>(row_info.data() + (pages + position / SHOAL_ATTENTION_CHUNK) * 4);
  return page * SHOAL_ATTENTION_CHUNK + position % SHOAL_ATTENTION_CHUNK;
}

bool has_minimum(DType dtype) {
  return dtype == DType::kQ4_1 || dtype == DType::kQ5_1 || dtype == DType::kQ4_K ||
         dtype == DType::kQ5_K;
}

namespace {

uint32_t byte_at(const std::byte* at, int64_t index) { return static_cast<uint32_t>(at[index]); }

// The 6-bit scale and minimum of an eighth of a block of 256.
void unpack_scales(const std::byte* packed, int64_t eighth, QuantBlock& block) {
  const auto q = [&](int64_t i) { return static_cast<int32_t>(byte_at(packed, i)); };
  if (eighth < 4) {
    block.scales[0] = q(eighth) & 63;
    block.minimum = q(eighth + 4) & 63;
  } else {
    block.scales[0] = (q(eighth + 4) & 15) | (q(eighth - 4) >> 6 << 4);
    block.minimum = (q(eighth + 4) >> 4) | (q(eighth) >> 6 << 4);
  }
  block.scales[1] = block.scales[0];
}

}  // namespace

QuantBlock load_block(DType dtype, ByteSpan bytes, int64_t index) {
  QuantBlock block;
  const bool large = block_elements(dtype) == 256;
  const int64_t eighth = large ? index % 8 : 0;
  const std::byte* at = bytes.data() + (large ? index / 8 : index) * block_bytes(dtype);
  const auto half = [&](int64_t offset) { return load_le<uint16_t>(at + offset); };
  const auto nibbles = [&](const std::byte* from) {  // As the types of 32 elements have them.
    for (int i = 0; i < 16; ++i) {
      block.values[i] = static_cast<int16_t>(byte_at(from, i) & 15);
      block.values[i + 16] = static_cast<int16_t>(byte_at(from, i) >> 4);
    }
  };
  const auto minus = [&](int zero) {
    for (int16_t& value : block.values) value = static_cast<int16_t>(value - zero);
  };
  switch (dtype) {
    case DType::kQ8_0:
      block.d_bits = half(0);
      for (int i = 0; i < 32; ++i) block.values[i] = static_cast<int8_t>(at[2 + i]);
      break;
    case DType::kQ4_0:
      block.d_bits = half(0);
      nibbles(at + 2);
      minus(8);
      break;
    case DType::kQ4_1:
      block.d_bits = half(0);
      block.m_bits = half(2);
      block.minimum = 1;
      nibbles(at + 4);
      break;
    case DType::kQ5_0:
    case DType::kQ5_1: {
      const bool with_minimum = dtype == DType::kQ5_1;
      block.d_bits = half(0);
      if (with_minimum) {
        block.m_bits = half(2);
        block.minimum = 1;
      }
      const std::byte* highs = at + (with_minimum ? 4 : 2);
      const auto fifth = load_le<uint32_t>(highs);
      nibbles(highs + 4);
      for (int i = 0; i < 32; ++i) {
        block.values[i] = static_cast<int16_t>(block.values[i] | (fifth >> i & 1) << 4);
      }
      if (!with_minimum) minus(16);
      break;
    }
    case DType::kQ4_K:
    case DType::kQ5_K: {
      const bool five = dtype == DType::kQ5_K;
      block.d_bits = half(0);
      block.m_bits = half(2) ^ 0x8000;  // The minimum is taken off.
      unpack_scales(at + 4, eighth, block);
      const std::byte* low = at + (five ? 48 : 16) + eighth / 2 * 32;
      for (int i = 0; i < 32; ++i) {
        uint32_t value = byte_at(low, i) >> (eighth % 2 * 4) & 15;
        if (five) value |= (byte_at(at + 16, i) >> eighth & 1) << 4;
        block.values[i] = static_cast<int16_t>(value);
      }
      break;
    }
    case DType::kQ6_K: {
      const int64_t part = eighth / 4, quarter = eighth % 4;
      const std::byte* low = at + part * 64 + quarter % 2 * 32;
      const std::byte* high = at + 128 + part * 32;
      for (int i = 0; i < 32; ++i) {
        const uint32_t four = byte_at(low, i) >> (quarter / 2 * 4) & 15;
        const uint32_t two = byte_at(high, i) >> (quarter * 2) & 3;
        block.values[i] = static_cast<int16_t>(four | two << 4);
      }
      minus(32);
      for (int i = 0; i < 2; ++i) {
        block.scales[i] = static_cast<int8_t>(at[192 + part * 8 + quarter * 2 + i]);
      }
      block.d_bits = half(208);
      break;
    }
    default: SHOAL_UNREACHABLE();
  }
  block.d = exact::exact_half_to_float(block.d_bits);
  block.m = exact::exact_half_to_float(block.m_bits);
  return block;
}

float load_element(DType dtype, ByteSpan bytes, int64_t index) {
  switch (dtype) {
    case DType::kF32: return load_f32(bytes, index);
    case DType::kF16:
      return exact::exact_half_to_float(load_le<uint16_t>(bytes.data() + index * 2));
    case DType::kBF16:
      return exact::exact_bfloat16_to_float(load_le<uint16_t>(bytes.data() + index * 2));
    default: {
      const QuantBlock block = load_block(dtype, bytes, index / 32);
      const float first =
          static_cast<float>(block.scales[index % 32 / 16] * block.values[index % 32]) * block.d;
      if (!has_minimum(dtype)) return first;
      const float second = static_cast<float>(block.minimum) * block.m;
      return first + second;
    }
  }
}

}  // namespace shoal::compute
