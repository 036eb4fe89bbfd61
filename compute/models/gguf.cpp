#include "compute/models/gguf.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace shoal::compute {
namespace {

// The smallest encodings: a key/value of one byte with a key of one letter, a tensor with such a
// name.
constexpr uint64_t kValueBytesMin = 8 + 1 + 4 + 1;
constexpr uint64_t kTensorBytesMin = 8 + 1 + 4 + 8 + 4 + 8;
constexpr uint64_t kLengthMax = uint64_t{1} << 30;  // Of a string, and elements of an array.
constexpr uint64_t kNameMax = 1024;                 // Bytes of a key or a tensor's name.
constexpr uint32_t kDimensionsMax = 4;
constexpr uint64_t kAlignmentMax = 1 << 20;

struct TensorType {
  uint32_t id;
  std::string_view name;
  uint32_t block_elements, block_bytes;
  std::optional<DType> dtype;
};

// Also the types that no op takes: their sizes are needed to check the file, and a model that uses
// them is refused by the type's name.
constexpr TensorType kTensorTypes[] = {
    {0, "F32", 1, 4, DType::kF32},
    {1, "F16", 1, 2, DType::kF16},
    {2, "Q4_0", 32, 18, DType::kQ4_0},
    {3, "Q4_1", 32, 20, DType::kQ4_1},
    {6, "Q5_0", 32, 22, DType::kQ5_0},
    {7, "Q5_1", 32, 24, DType::kQ5_1},
    {8, "Q8_0", 32, 34, DType::kQ8_0},
    {9, "Q8_1", 32, 36, {}},
    {10, "Q2_K", 256, 84, {}},
    {11, "Q3_K", 256, 110, {}},
    {12, "Q4_K", 256, 144, DType::kQ4_K},
    {13, "Q5_K", 256, 176, DType::kQ5_K},
    {14, "Q6_K", 256, 210, DType::kQ6_K},
    {15, "Q8_K", 256, 292, {}},
    {16, "IQ2_XXS", 256, 66, {}},
    {17, "IQ2_XS", 256, 74, {}},
    {18, "IQ3_XXS", 256, 98, {}},
    {19, "IQ1_S", 256, 50, {}},
    {20, "IQ4_NL", 32, 18, {}},
    {21, "IQ3_S", 256, 110, {}},
    {22, "IQ2_S", 256, 82, {}},
    {23, "IQ4_XS", 256, 136, {}},
    {24, "I8", 1, 1, {}},
    {25, "I16", 1, 2, {}},
    {26, "I32", 1, 4, DType::kI32},
    {27, "I64", 1, 8, {}},
    {28, "F64", 1, 8, {}},
    {29, "IQ1_M", 256, 56, {}},
    {30, "BF16", 1, 2, DType::kBF16},
    {39, "MXFP4", 32, 17, {}},
};

// Bytes of one element of a fixed width; 0 for strings, arrays and unknown types.
uint64_t element_bytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool: return 1;
    case GgufType::kU16:
    case GgufType::kI16: return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32: return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64: return 8;
    case GgufType::kString:
    case GgufType::kArray: return 0;
  }
  return 0;
}

Result<std::string_view> read_string(ByteReader& reader, uint64_t length_max,
                                     const std::string& where) {
  SHOAL_TRY_ASSIGN(length, reader.u64(where));
  if (length > length_max) {
    return Error{ErrorCode::kCorrupt, where + ": a length of " + std::to_string(length) +
                                          " is more than the " + std::to_string(length_max) +
                                          " allowed"};
  }
  return reader.text(length, where);
}

// REQUIRES: at least element_bytes(type) bytes at `at`; type has a fixed width.
Result<GgufValue> scalar(GgufType type, const std::byte* at, const std::string& where) {
  GgufValue value{type, {}};
  switch (type) {
    case GgufType::kU8: value.value = uint64_t{load_le<uint8_t>(at)}; break;
    case GgufType::kU16: value.value = uint64_t{load_le<uint16_t>(at)}; break;
    case GgufType::kU32: value.value = uint64_t{load_le<uint32_t>(at)}; break;
    case GgufType::kU64: value.value = load_le<uint64_t>(at); break;
    case GgufType::kI8: value.value = int64_t{load_le<int8_t>(at)}; break;
    case GgufType::kI16: value.value = int64_t{load_le<int16_t>(at)}; break;
    case GgufType::kI32: value.value = int64_t{load_le<int32_t>(at)}; break;
    case GgufType::kI64: value.value = load_le<int64_t>(at); break;
    case GgufType::kF32: value.value = double{std::bit_cast<float>(load_le<uint32_t>(at))}; break;
    case GgufType::kF64: value.value = std::bit_cast<double>(load_le<uint64_t>(at)); break;
    case GgufType::kBool: {
      const auto byte = load_le<uint8_t>(at);
      if (byte > 1) return Error{ErrorCode::kCorrupt, where + ": a bool is neither 0 nor 1"};
      value.value = byte == 1;
      break;
    }
    case GgufType::kString:
    case GgufType::kArray: SHOAL_UNREACHABLE();
  }
  return value;
}

Result<GgufType> read_type(ByteReader& reader, const std::string& where) {
  SHOAL_TRY_ASSIGN(type, reader.u32(where + ": type"));
  if (type > static_cast<uint32_t>(GgufType::kF64)) {
    return Error{ErrorCode::kCorrupt, where + ": type " + std::to_string(type) + " is unknown"};
  }
  return static_cast<GgufType>(type);
}

Result<GgufValue> read_value(ByteReader& reader, ByteSpan all, const std::string& where) {
  SHOAL_TRY_ASSIGN(type, read_type(reader, where));
  if (type == GgufType::kString) {
    SHOAL_TRY_ASSIGN(text, read_string(reader, kLengthMax, where));
    return GgufValue{type, text};
  }
  if (type != GgufType::kArray) {
    SHOAL_TRY_ASSIGN(bytes, reader.bytes(element_bytes(type), where));
    return scalar(type, bytes.data(), where);
  }

  GgufArray array;
  SHOAL_TRY_ASSIGN(element, read_type(reader, where));
  array.element = element;
  if (element == GgufType::kArray) {
    return Error{ErrorCode::kUnsupported, where + ": is an array of arrays"};
  }
  SHOAL_TRY_ASSIGN(count, reader.u64(where + ": length"));
  const uint64_t element_min = element == GgufType::kString ? 8 : element_bytes(element);
  if (count > kLengthMax || count > reader.left() / element_min) {
    return Error{ErrorCode::kCorrupt, where + ": a length of " + std::to_string(count) +
                                          " elements passes the end of the file"};
  }
  array.count = count;
  const size_t begin = reader.position();
  if (element == GgufType::kString) {
    for (uint64_t i = 0; i < count; ++i) SHOAL_TRY(read_string(reader, kLengthMax, where));
  } else {
    SHOAL_TRY(reader.skip(count * element_min, where));
  }
  array.bytes = all.subspan(begin, reader.position() - begin);
  return GgufValue{type, array};
}

struct TensorInfo {
  std::string name;
  StoredTensor tensor;
  uint64_t offset = 0, size = 0;
};

Result<TensorInfo> read_tensor_info(ByteReader& reader, const std::string& file, uint64_t number) {
  TensorInfo info;
  const std::string numbered = file + ": tensor " + std::to_string(number) + ": name";
  SHOAL_TRY_ASSIGN(name, read_string(reader, kNameMax, numbered));
  if (name.empty()) return Error{ErrorCode::kCorrupt, numbered + ": is empty"};
  info.name = name;
  const std::string where = file + ": tensor " + printable(name);

  SHOAL_TRY_ASSIGN(dimensions, reader.u32(where + ": dimensions"));
  if (dimensions == 0 || dimensions > kDimensionsMax) {
    return Error{ErrorCode::kCorrupt,
                 where + ": " + std::to_string(dimensions) + " dimensions are not 1 to 4"};
  }
  for (uint32_t i = 0; i < dimensions; ++i) {
    SHOAL_TRY_ASSIGN(dimension, reader.u64(where + ": dimensions"));
    if (dimension == 0 || dimension > uint64_t{1} << 62) {
      return Error{ErrorCode::kCorrupt,
                   where + ": a dimension of " + std::to_string(dimension) + " is out of range"};
    }
    info.tensor.shape.insert(info.tensor.shape.begin(), static_cast<int64_t>(dimension));
  }
  SHOAL_TRY_ASSIGN(id, reader.u32(where + ": type"));
  const auto type = std::find_if(std::begin(kTensorTypes), std::end(kTensorTypes),
                                 [&](const TensorType& t) { return t.id == id; });
  if (type == std::end(kTensorTypes)) {
    return Error{ErrorCode::kUnsupported, where + ": type " + std::to_string(id) + " is unknown"};
  }
  info.tensor.type = type->name;
  info.tensor.dtype = type->dtype;
  auto size = stored_size(info.tensor.shape, type->block_elements, type->block_bytes);
  if (!size.ok()) return with_context(size.error(), where + ": dimensions");
  info.size = size.value();
  SHOAL_TRY_ASSIGN(offset, reader.u64(where + ": offset"));
  info.offset = offset;
  return info;
}

}  // namespace

Result<GgufFile> GgufFile::read(ByteSpan bytes, std::string file) {
  GgufFile result;
  ByteReader reader(bytes);
  auto magic = reader.text(4, file + ": magic");
  if (!magic.ok() || magic.value() != "GGUF") {
    return Error{ErrorCode::kCorrupt, file + ": magic: does not begin with \"GGUF\""};
  }
  SHOAL_TRY_ASSIGN(version, reader.u32(file + ": version"));
  if (version == 0x02000000u || version == 0x03000000u) {
    return Error{ErrorCode::kUnsupported, file + ": version: the file is big-endian"};
  }
  if (version != 2 && version != 3) {
    return Error{ErrorCode::kUnsupported,
                 file + ": version: " + std::to_string(version) + " is not 2 or 3"};
  }
  SHOAL_TRY_ASSIGN(tensor_count, reader.u64(file + ": tensor count"));
  SHOAL_TRY_ASSIGN(value_count, reader.u64(file + ": key count"));
  if (tensor_count > bytes.size() / kTensorBytesMin) {
    return Error{ErrorCode::kCorrupt, file + ": tensor count: " + std::to_string(tensor_count) +
                                          " tensors do not fit into the file"};
  }
  if (value_count > bytes.size() / kValueBytesMin) {
    return Error{ErrorCode::kCorrupt, file + ": key count: " + std::to_string(value_count) +
                                          " keys do not fit into the file"};
  }

  for (uint64_t i = 0; i < value_count; ++i) {
    const std::string numbered = file + ": key " + std::to_string(i);
    SHOAL_TRY_ASSIGN(key, read_string(reader, kNameMax, numbered));
    if (key.empty()) return Error{ErrorCode::kCorrupt, numbered + ": is empty"};
    const std::string where = file + ": " + printable(key);
    SHOAL_TRY_ASSIGN(value, read_value(reader, bytes, where));
    if (!result.values_.emplace(std::string(key), value).second) {
      return Error{ErrorCode::kCorrupt, where + ": stands twice"};
    }
  }
  result.file_ = std::move(file);

  std::vector<TensorInfo> infos;
  for (uint64_t i = 0; i < tensor_count; ++i) {
    SHOAL_TRY_ASSIGN(info, read_tensor_info(reader, result.file_, i));
    infos.push_back(std::move(info));
  }

  SHOAL_TRY_ASSIGN(alignment_read, result.integer_or("general.alignment", 32, 1, kAlignmentMax));
  const auto alignment = static_cast<uint64_t>(alignment_read);
  if (!std::has_single_bit(alignment))
    return result.wrong("general.alignment", "is no power of two");
  const auto aligned = [&](uint64_t at) { return (at + alignment - 1) / alignment * alignment; };

  const uint64_t data_begin = aligned(reader.position());
  if (!infos.empty() && data_begin > bytes.size()) {
    return Error{ErrorCode::kCorrupt, result.file_ + ": data: the file ends before it"};
  }
  const uint64_t data_size = infos.empty() ? 0 : bytes.size() - data_begin;
  uint64_t expected = 0;
  for (TensorInfo& info : infos) {
    const std::string where = result.file_ + ": tensor " + printable(info.name);
    if (info.offset != expected) {
      return Error{ErrorCode::kCorrupt, where + ": offset: " + std::to_string(info.offset) +
                                            " is not where the tensor before it ends, " +
                                            std::to_string(expected)};
    }
    if (info.offset > data_size || info.size > data_size - info.offset) {
      return Error{ErrorCode::kCorrupt, where + ": offset: its " + std::to_string(info.size) +
                                            " bytes pass the end of the file"};
    }
    info.tensor.bytes = bytes.subspan(data_begin + info.offset, info.size);
    expected = aligned(info.offset + info.size);
    if (!result.tensors_.emplace(info.name, std::move(info.tensor)).second) {
      return Error{ErrorCode::kCorrupt, where + ": stands twice"};
    }
  }
  return result;
}

Error GgufFile::wrong(std::string_view key, std::string_view what, ErrorCode code) const {
  return Error{code, file_ + ": " + std::string(key) + ": " + std::string(what)};
}

Result<int64_t> GgufFile::integer(std::string_view key, int64_t min, int64_t max) const {
  const auto at = values_.find(key);
  if (at == values_.end()) return wrong(key, "is missing");
  int64_t value = 0;
  if (const auto* plain = std::get_if<uint64_t>(&at->second.value)) {
    if (*plain > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return wrong(key, std::to_string(*plain) + " is too large");
    }
    value = static_cast<int64_t>(*plain);
  } else if (const auto* with_sign = std::get_if<int64_t>(&at->second.value)) {
    value = *with_sign;
  } else {
    return wrong(key, "is not an integer");
  }
  if (value < min || value > max) {
    return wrong(key, std::to_string(value) + " is not between " + std::to_string(min) + " and " +
                          std::to_string(max));
  }
  return value;
}

Result<int64_t> GgufFile::integer_or(std::string_view key, int64_t fallback, int64_t min,
                                     int64_t max) const {
  if (!has(key)) return fallback;
  return integer(key, min, max);
}

Result<double> GgufFile::number(std::string_view key, double min, double max) const {
  const auto at = values_.find(key);
  if (at == values_.end()) return wrong(key, "is missing");
  const auto* value = std::get_if<double>(&at->second.value);
  if (value == nullptr) return wrong(key, "is not a number with a fraction");
  if (!(*value >= min && *value <= max)) {
    return wrong(key, std::to_string(*value) + " is not between " + std::to_string(min) + " and " +
                          std::to_string(max));
  }
  return *value;
}

Result<double> GgufFile::number_or(std::string_view key, double fallback, double min,
                                   double max) const {
  if (!has(key)) return fallback;
  return number(key, min, max);
}

Result<bool> GgufFile::boolean_or(std::string_view key, bool fallback) const {
  const auto at = values_.find(key);
  if (at == values_.end()) return fallback;
  const auto* value = std::get_if<bool>(&at->second.value);
  if (value == nullptr) return wrong(key, "is not a bool");
  return *value;
}

Result<std::string_view> GgufFile::text(std::string_view key) const {
  const auto at = values_.find(key);
  if (at == values_.end()) return wrong(key, "is missing");
  const auto* value = std::get_if<std::string_view>(&at->second.value);
  if (value == nullptr) return wrong(key, "is not a string");
  return *value;
}

Result<const GgufArray*> GgufFile::array(std::string_view key) const {
  const auto at = values_.find(key);
  if (at == values_.end()) return wrong(key, "is missing");
  const auto* value = std::get_if<GgufArray>(&at->second.value);
  if (value == nullptr) return wrong(key, "is not an array");
  return value;
}

Result<std::vector<std::string_view>> GgufFile::texts(std::string_view key) const {
  SHOAL_TRY_ASSIGN(found, array(key));
  if (found->element != GgufType::kString) return wrong(key, "is not an array of strings");
  std::vector<std::string_view> result;
  result.reserve(found->count);
  ByteReader reader(found->bytes);
  for (uint64_t i = 0; i < found->count; ++i) {
    SHOAL_TRY_ASSIGN(text, read_string(reader, kLengthMax, std::string(key)));
    result.push_back(text);
  }
  return result;
}

Result<std::vector<int64_t>> GgufFile::integers(std::string_view key) const {
  SHOAL_TRY_ASSIGN(found, array(key));
  std::vector<int64_t> result;
  const uint64_t width = element_bytes(found->element);
  for (uint64_t i = 0; i < found->count; ++i) {
    if (width == 0) return wrong(key, "is not an array of integers");
    SHOAL_TRY_ASSIGN(item,
                     scalar(found->element, found->bytes.data() + i * width, std::string(key)));
    if (const auto* plain = std::get_if<uint64_t>(&item.value)) {
      if (*plain > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return wrong(key, "element " + std::to_string(i) + " is too large");
      }
      result.push_back(static_cast<int64_t>(*plain));
    } else if (const auto* with_sign = std::get_if<int64_t>(&item.value)) {
      result.push_back(*with_sign);
    } else {
      return wrong(key, "is not an array of integers");
    }
  }
  return result;
}

Result<std::vector<double>> GgufFile::numbers(std::string_view key) const {
  SHOAL_TRY_ASSIGN(found, array(key));
  if (found->element != GgufType::kF32 && found->element != GgufType::kF64) {
    return wrong(key, "is not an array of numbers with fractions");
  }
  std::vector<double> result;
  result.reserve(found->count);
  const uint64_t width = element_bytes(found->element);
  for (uint64_t i = 0; i < found->count; ++i) {
    SHOAL_TRY_ASSIGN(item,
                     scalar(found->element, found->bytes.data() + i * width, std::string(key)));
    result.push_back(std::get<double>(item.value));
  }
  return result;
}

}  // namespace shoal::compute
