#include "compute/models/json_text.h"

#include <cmath>
#include <vector>

#include "compute/models/weights.h"

namespace shoal::compute {
namespace {

// Builds the tree from parse events, so that depth and duplicates are seen before memory is spent.
class TreeBuilder : public nlohmann::json_sax<Json> {
 public:
  Json tree;
  std::string error;

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return fail("holds binary data"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    auto [at, added] = open_.back()->get_ref<Json::object_t&>().emplace(name, nullptr);
    if (!added) return fail("key \"" + printable(name) + "\" stands twice in one object");
    slot_ = &at->second;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& cause) override {
    // The cause repeats the bytes it met; they may be anything.
    return fail("is not JSON at byte " + std::to_string(position) + ": " + printable(cause.what()));
  }

 private:
  bool fail(std::string why) {
    if (error.empty()) error = std::move(why);
    return false;
  }
  Json* place(Json value) {
    if (open_.empty()) return &(tree = std::move(value));
    if (open_.back()->is_array()) {
      auto& items = open_.back()->get_ref<Json::array_t&>();
      items.push_back(std::move(value));
      return &items.back();
    }
    return &(*slot_ = std::move(value));
  }
  bool put(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (open_.size() >= kJsonDepthMax) {
      return fail("is nested deeper than " + std::to_string(kJsonDepthMax) + " levels");
    }
    open_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  // The containers being filled. Stable: a container grows only while it is the last.
  std::vector<Json*> open_;
  Json* slot_ = nullptr;  // Where the value of the last key goes.
};

std::string range_text(double min, double max) {
  auto number = [](double value) { return Json(value).dump(); };
  return "between " + number(min) + " and " + number(max);
}

}  // namespace

Result<Json> parse_json(std::string_view text, const std::string& file) {
  TreeBuilder builder;
  if (!Json::sax_parse(text, &builder)) {
    return Error{ErrorCode::kCorrupt,
                 file + ": " + (builder.error.empty() ? "is not JSON" : builder.error)};
  }
  return std::move(builder.tree);
}

Result<JsonFields> JsonFields::of(const Json& object, std::string where) {
  if (!object.is_object()) return Error{ErrorCode::kCorrupt, where + ": is not a JSON object"};
  return JsonFields(object, std::move(where));
}

const Json* JsonFields::find(std::string_view key) const {
  const auto at = object_->find(key);
  return at == object_->end() || at->is_null() ? nullptr : &*at;
}

Error JsonFields::wrong(std::string_view key, std::string_view what, ErrorCode code) const {
  return Error{code, where_ + ": " + std::string(key) + ": " + std::string(what)};
}

Result<int64_t> JsonFields::integer(std::string_view key, int64_t min, int64_t max) const {
  const Json* value = find(key);
  if (value == nullptr) return wrong(key, "is missing");
  if (!value->is_number_integer()) return wrong(key, "is not an integer");
  const bool fits =
      value->is_number_unsigned()
          ? value->get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
          : true;
  if (!fits || value->get<int64_t>() < min || value->get<int64_t>() > max) {
    return wrong(key, value->dump() + " is not between " + std::to_string(min) + " and " +
                          std::to_string(max));
  }
  return value->get<int64_t>();
}

Result<int64_t> JsonFields::integer_or(std::string_view key, int64_t fallback, int64_t min,
                                       int64_t max) const {
  if (!has(key)) return fallback;
  return integer(key, min, max);
}

Result<double> JsonFields::number(std::string_view key, double min, double max) const {
  const Json* value = find(key);
  if (value == nullptr) return wrong(key, "is missing");
  if (!value->is_number()) return wrong(key, "is not a number");
  const double number = value->get<double>();
  if (!(number >= min && number <= max)) return wrong(key, "is not " + range_text(min, max));
  return number;
}

Result<double> JsonFields::number_or(std::string_view key, double fallback, double min,
                                     double max) const {
  if (!has(key)) return fallback;
  return number(key, min, max);
}

Result<bool> JsonFields::boolean_or(std::string_view key, bool fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) return wrong(key, "is neither true nor false");
  return value->get<bool>();
}

Result<std::string> JsonFields::text(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return wrong(key, "is missing");
  if (!value->is_string()) return wrong(key, "is not a text");
  return value->get<std::string>();
}

Result<std::string> JsonFields::text_or(std::string_view key, std::string fallback) const {
  if (!has(key)) return fallback;
  return text(key);
}

Result<JsonFields> JsonFields::object(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return wrong(key, "is missing");
  return of(*value, where_ + ": " + std::string(key));
}

Result<const Json*> JsonFields::array(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return wrong(key, "is missing");
  if (!value->is_array()) return wrong(key, "is not a list");
  return value;
}

}  // namespace shoal::compute
