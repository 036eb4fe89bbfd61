#include "compute/models/weights.h"

#include <bit>

namespace shoal::compute {
namespace {

// Every f16 is a f32, so this is exact; written out because a compiler's own conversion may flush.
float f32_of_f16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = (bits >> 10) & 31u;
  const uint32_t fraction = bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (fraction << 13));
  }
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr size_t kLengthMax = 96;
  std::string result;
  for (const char c : text.substr(0, kLengthMax)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 32 && byte < 127) {
      result += c;
    } else {
      static constexpr char kDigits[] = "0123456789abcdef";
      result += "\\x";
      result += kDigits[byte >> 4];
      result += kDigits[byte & 15];
    }
  }
  if (text.size() > kLengthMax) result += "...";
  return result;
}

std::string shape_text(const Shape& shape) {
  std::string result = "[";
  for (const int64_t dimension : shape) {
    if (result.size() > 1) result += ", ";
    result += std::to_string(dimension);
  }
  return result + "]";
}

Result<uint64_t> stored_size(const Shape& shape, uint64_t block_elements, uint64_t block_bytes) {
  constexpr uint64_t kSizeMax = uint64_t{1} << 62;
  uint64_t blocks = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0) return Error{ErrorCode::kCorrupt, "shape has a negative dimension"};
    auto dimension = static_cast<uint64_t>(shape[i]);
    if (i + 1 == shape.size()) {
      if (dimension % block_elements != 0) {
        return Error{ErrorCode::kCorrupt, "shape " + shape_text(shape) + " is cut into blocks of " +
                                              std::to_string(block_elements) +
                                              ", which do not divide its last dimension"};
      }
      dimension /= block_elements;
    }
    if (dimension != 0 && blocks > kSizeMax / dimension) {
      return Error{ErrorCode::kCorrupt, "shape " + shape_text(shape) + " overflows"};
    }
    blocks *= dimension;
  }
  if (blocks > kSizeMax / block_bytes) {
    return Error{ErrorCode::kCorrupt, "shape " + shape_text(shape) + " overflows"};
  }
  return blocks * block_bytes;
}

Result<ByteVector> to_f32(const StoredTensor& tensor) {
  if (tensor.dtype == DType::kF32) return to_vector(tensor.bytes);
  if (tensor.dtype != DType::kF16 && tensor.dtype != DType::kBF16) {
    return Error{ErrorCode::kUnsupported, "type " + tensor.type + " cannot be read as f32"};
  }
  const size_t count = tensor.bytes.size() / 2;
  ByteVector result(count * 4);
  for (size_t i = 0; i < count; ++i) {
    const auto bits = load_le<uint16_t>(tensor.bytes.data() + 2 * i);
    const float value =
        tensor.dtype == DType::kF16 ? f32_of_f16(bits) : std::bit_cast<float>(uint32_t{bits} << 16);
    store_le(result.data() + 4 * i, std::bit_cast<uint32_t>(value));
  }
  return result;
}

}  // namespace shoal::compute
