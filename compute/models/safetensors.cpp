#include "compute/models/safetensors.h"

#include <algorithm>
#include <vector>

#include "compute/models/json_text.h"

namespace shoal::compute {
namespace {

struct TypeSize {
  std::string_view name;
  uint64_t bytes;
  std::optional<DType> dtype;
};

constexpr TypeSize kTypes[] = {
    {"F32", 4, DType::kF32}, {"F16", 2, DType::kF16}, {"BF16", 2, DType::kBF16},
    {"I32", 4, DType::kI32}, {"BOOL", 1, {}},         {"U8", 1, {}},
    {"I8", 1, {}},           {"F8_E4M3", 1, {}},      {"F8_E5M2", 1, {}},
    {"I16", 2, {}},          {"U16", 2, {}},          {"U32", 4, {}},
    {"F64", 8, {}},          {"I64", 8, {}},          {"U64", 8, {}},
};

constexpr size_t kDimensionsMax = 8;

struct Range {
  uint64_t begin, end;
  const std::string* name;
};

Result<uint64_t> whole_number(const Json& value, const std::string& where) {
  if (!value.is_number_unsigned())
    return Error{ErrorCode::kCorrupt, where + ": is not a whole number"};
  return value.get<uint64_t>();
}

Result<StoredTensor> read_entry(const Json& entry, ByteSpan data, const std::string& where,
                                Range& range) {
  SHOAL_TRY_ASSIGN(fields, JsonFields::of(entry, where));
  for (const auto& [key, value] : entry.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      return Error{ErrorCode::kCorrupt, where + ": unknown field \"" + printable(key) + "\""};
    }
  }
  StoredTensor tensor;
  SHOAL_TRY_ASSIGN(type, fields.text("dtype"));
  const auto known = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const TypeSize& t) { return t.name == type; });
  if (known == std::end(kTypes)) {
    return fields.wrong("dtype", "\"" + printable(type) + "\" is unknown");
  }
  tensor.type = type;
  tensor.dtype = known->dtype;

  SHOAL_TRY_ASSIGN(shape, fields.array("shape"));
  if (shape->size() > kDimensionsMax) return fields.wrong("shape", "has too many dimensions");
  for (const Json& item : *shape) {
    SHOAL_TRY_ASSIGN(dimension, whole_number(item, where + ": shape"));
    if (dimension > uint64_t{1} << 62) return fields.wrong("shape", "overflows");
    tensor.shape.push_back(static_cast<int64_t>(dimension));
  }
  auto size = stored_size(tensor.shape, 1, known->bytes);
  if (!size.ok()) return with_context(size.error(), where + ": shape");

  SHOAL_TRY_ASSIGN(offsets, fields.array("data_offsets"));
  if (offsets->size() != 2) return fields.wrong("data_offsets", "does not hold two numbers");
  SHOAL_TRY_ASSIGN(begin, whole_number((*offsets)[0], where + ": data_offsets"));
  SHOAL_TRY_ASSIGN(end, whole_number((*offsets)[1], where + ": data_offsets"));
  if (begin > end) return fields.wrong("data_offsets", "ends before it begins");
  if (end > data.size()) {
    return fields.wrong("data_offsets", "ends at " + std::to_string(end) + ", but the file holds " +
                                            std::to_string(data.size()) + " bytes of data");
  }
  if (end - begin != size.value()) {
    return fields.wrong("data_offsets", "spans " + std::to_string(end - begin) + " bytes, but " +
                                            type + " " + shape_text(tensor.shape) + " takes " +
                                            std::to_string(size.value()));
  }
  tensor.bytes = data.subspan(begin, end - begin);
  range.begin = begin;
  range.end = end;
  return tensor;
}

// The format wants every byte of data to belong to exactly one tensor.
Result<void> check_cover(std::vector<Range> ranges, uint64_t data_size, const std::string& file) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  uint64_t covered = 0;
  for (const Range& range : ranges) {
    const std::string where = file + ": tensor " + printable(*range.name) + ": data_offsets: ";
    if (range.begin < covered) return Error{ErrorCode::kCorrupt, where + "overlaps another tensor"};
    if (range.begin > covered) return Error{ErrorCode::kCorrupt, where + "leaves a gap before it"};
    covered = range.end;
  }
  if (covered != data_size) {
    return Error{ErrorCode::kCorrupt, file + ": data: " + std::to_string(data_size - covered) +
                                          " bytes at the end belong to no tensor"};
  }
  return {};
}

}  // namespace

Result<WeightTable> read_safetensors(ByteSpan bytes, const std::string& file) {
  if (bytes.size() < 8)
    return Error{ErrorCode::kCorrupt, file + ": header size: the file ends inside it"};
  const auto header_size = load_le<uint64_t>(bytes.data());
  if (header_size > kSafetensorsHeaderMax) {
    return Error{ErrorCode::kCorrupt, file + ": header size: " + std::to_string(header_size) +
                                          " bytes are more than the " +
                                          std::to_string(kSafetensorsHeaderMax) + " allowed"};
  }
  if (header_size > bytes.size() - 8) {
    return Error{ErrorCode::kCorrupt, file + ": header size: " + std::to_string(header_size) +
                                          " bytes pass the end of the file"};
  }
  const ByteSpan data = bytes.subspan(8 + header_size);
  SHOAL_TRY_ASSIGN(header, parse_json(as_text(bytes.subspan(8, header_size)), file + ": header"));
  if (!header.is_object())
    return Error{ErrorCode::kCorrupt, file + ": header: is not a JSON object"};

  WeightTable table;
  std::vector<Range> ranges;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      bool texts = entry.is_object();
      if (texts) {
        for (const Json& value : entry) texts = texts && value.is_string();
      }
      if (!texts) {
        return Error{ErrorCode::kCorrupt, file + ": header: __metadata__: is not a map of texts"};
      }
      continue;
    }
    Range range{};
    SHOAL_TRY_ASSIGN(tensor, read_entry(entry, data, file + ": tensor " + printable(name), range));
    const auto at = table.emplace(name, std::move(tensor)).first;
    range.name = &at->first;
    ranges.push_back(range);
  }
  SHOAL_TRY(check_cover(std::move(ranges), data.size(), file));
  return table;
}

}  // namespace shoal::compute
