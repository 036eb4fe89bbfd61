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

RowInfo load_row_info(ByteSpan bytes, int64_t row) {
  return {load_le<uint32_t>(bytes.data() + row * 8), load_le<uint32_t>(bytes.data() + row * 8 + 4)};
}

float load_block(DType dtype, ByteSpan bytes, int64_t block, int8_t (&values)[32]) {
  if (dtype == DType::kQ8_0) {
    const std::byte* at = bytes.data() + block * 34;
    for (int i = 0; i < 32; ++i) values[i] = static_cast<int8_t>(at[2 + i]);
    return exact::exact_half_to_float(load_le<uint16_t>(at));
  }
  SHOAL_CHECK(dtype == DType::kQ4_0);
  const std::byte* at = bytes.data() + block * 18;
  for (int i = 0; i < 16; ++i) {
    values[i] = static_cast<int8_t>(static_cast<int>(at[2 + i] & std::byte{15}) - 8);
    values[i + 16] = static_cast<int8_t>(static_cast<int>(at[2 + i] >> 4) - 8);
  }
  return exact::exact_half_to_float(load_le<uint16_t>(at));
}

float load_element(DType dtype, ByteSpan bytes, int64_t index) {
  switch (dtype) {
    case DType::kF32: return load_f32(bytes, index);
    case DType::kF16:
      return exact::exact_half_to_float(load_le<uint16_t>(bytes.data() + index * 2));
    case DType::kBF16:
      return exact::exact_bfloat16_to_float(load_le<uint16_t>(bytes.data() + index * 2));
    case DType::kQ8_0:
    case DType::kQ4_0: {
      int8_t values[32];
      const float scale = load_block(dtype, bytes, index / 32, values);
      return static_cast<float>(values[index % 32]) * scale;
    }
    default: SHOAL_UNREACHABLE();
  }
}

}  // namespace shoal::compute
