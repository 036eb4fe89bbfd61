#pragma once
// JSON from strangers' files: parsed with bounded nesting and no duplicate keys, and read field by
// field with errors that name the file and the key. Private to models, shards and run: no door
// includes it.

#include <nlohmann/json.hpp>

#include <limits>
#include <string>
#include <string_view>

#include "base/result.h"

namespace shoal::compute {

using Json = nlohmann::json;

constexpr int kJsonDepthMax = 64;

// Refuses what is not JSON (RFC 8259), nesting beyond kJsonDepthMax, and a key that stands twice in
// one object. `file` stands at the head of the message.
Result<Json> parse_json(std::string_view text, const std::string& file);

// The fields of one object. A field that is null counts as absent.
class JsonFields {
 public:
  // `where` heads messages: "config.json" or "config.json: rope_scaling". `object` outlives this.
  static Result<JsonFields> of(const Json& object, std::string where);

  const Json* find(std::string_view key) const;  // Null when absent.
  bool has(std::string_view key) const { return find(key) != nullptr; }

  Result<int64_t> integer(std::string_view key, int64_t min, int64_t max) const;
  Result<int64_t> integer_or(std::string_view key, int64_t fallback, int64_t min,
                             int64_t max) const;
  Result<double> number(std::string_view key, double min, double max) const;
  Result<double> number_or(std::string_view key, double fallback, double min, double max) const;
  Result<bool> boolean_or(std::string_view key, bool fallback) const;
  Result<std::string> text(std::string_view key) const;
  Result<std::string> text_or(std::string_view key, std::string fallback) const;
  Result<JsonFields> object(std::string_view key) const;
  Result<const Json*> array(std::string_view key) const;

  const Json& json() const { return *object_; }
  Error wrong(std::string_view key, std::string_view what,
              ErrorCode code = ErrorCode::kCorrupt) const;  // "<where>: <key>: <what>"

 private:
  JsonFields(const Json& object, std::string where) : object_(&object), where_(std::move(where)) {}

  const Json* object_;
  std::string where_;
};

}  // namespace shoal::compute
