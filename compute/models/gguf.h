#pragma once
// Reads the GGUF format (versions 2 and 3, little-endian) from hostile bytes: key/values with their
// types, and the tensors as views into the bytes. Every count, size and offset is checked before it
// is used.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "compute/models/weights.h"

namespace shoal::compute {

enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

struct GgufArray {
  GgufType element = GgufType::kU8;  // Never kArray: arrays of arrays are refused.
  uint64_t count = 0;
  ByteSpan bytes;  // The elements as they stand in the file; strings with their lengths.
};

struct GgufValue {
  GgufType type = GgufType::kU8;
  std::variant<uint64_t, int64_t, double, bool, std::string_view, GgufArray> value;
};

class GgufFile {
 public:
  // `bytes` outlive the result; `file` heads messages.
  static Result<GgufFile> read(ByteSpan bytes, std::string file);

  const std::map<std::string, GgufValue, std::less<>>& values() const { return values_; }
  const WeightTable& tensors() const { return tensors_; }
  const std::string& file() const { return file_; }

  // One value. Any of the format's integer types counts as integer, both float types as number.
  bool has(std::string_view key) const { return values_.find(key) != values_.end(); }
  Result<int64_t> integer(std::string_view key, int64_t min, int64_t max) const;
  Result<int64_t> integer_or(std::string_view key, int64_t fallback, int64_t min,
                             int64_t max) const;
  Result<double> number(std::string_view key, double min, double max) const;
  Result<double> number_or(std::string_view key, double fallback, double min, double max) const;
  Result<bool> boolean_or(std::string_view key, bool fallback) const;
  Result<std::string_view> text(std::string_view key) const;
  Result<std::vector<std::string_view>> texts(std::string_view key) const;
  Result<std::vector<int64_t>> integers(std::string_view key) const;
  Result<std::vector<double>> numbers(std::string_view key) const;

  Error wrong(std::string_view key, std::string_view what,
              ErrorCode code = ErrorCode::kCorrupt) const;  // "<file>: <key>: <what>"

 private:
  Result<const GgufArray*> array(std::string_view key) const;

  std::string file_;
  std::map<std::string, GgufValue, std::less<>> values_;
  WeightTable tensors_;
};

}  // namespace shoal::compute
