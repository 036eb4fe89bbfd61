#include "client/records/message_text.h"

#include <nlohmann/json.hpp>

namespace shoal::client {
namespace {

using nlohmann::json;

struct ToJson {
  json operator()(const std::string& text) const { return {"text", text}; }
  json operator()(Millis value) const { return {"ms", value.count}; }
  json operator()(Bytes value) const { return {"bytes", value.count}; }
  json operator()(Celsius value) const { return {"celsius", value.value}; }
  json operator()(Watts value) const { return {"watts", value.value}; }
  json operator()(Percent value) const { return {"percent", value.value}; }
  json operator()(Count value) const { return {"count", value.value}; }
  json operator()(WallTime value) const { return {"wall", value.at.count}; }
  json operator()(KilowattHours value) const { return {"kwh", value.value}; }
};

MessageParameter parameter_of(const json& pair) {
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string()) return std::string();
  const std::string kind = pair[0].get<std::string>();
  const json& value = pair[1];
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number()) return std::string();
  if (kind == "ms") return Millis{value.get<int64_t>()};
  if (kind == "bytes") return Bytes{value.get<int64_t>()};
  if (kind == "celsius") return Celsius{value.get<double>()};
  if (kind == "watts") return Watts{value.get<double>()};
  if (kind == "percent") return Percent{value.get<double>()};
  if (kind == "count") return Count{value.get<int64_t>()};
  if (kind == "wall") return WallTime{Millis{value.get<int64_t>()}};
  if (kind == "kwh") return KilowattHours{value.get<double>()};
  return std::string();
}

}  // namespace

std::string message_to_text(const Message& message) {
  if (message.empty()) return "";
  json parameters = json::array();
  for (const MessageParameter& parameter : message.parameters) {
    parameters.push_back(std::visit(ToJson{}, parameter));
  }
  return json{{"code", message.code}, {"parameters", std::move(parameters)}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

Message message_from_text(std::string_view text) {
  const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object() || !parsed.contains("code") || !parsed["code"].is_string()) return {};
  Message message{parsed["code"].get<std::string>(), {}};
  if (parsed.contains("parameters") && parsed["parameters"].is_array()) {
    for (const json& pair : parsed["parameters"]) {
      message.parameters.push_back(parameter_of(pair));
    }
  }
  return message;
}

}  // namespace shoal::client
