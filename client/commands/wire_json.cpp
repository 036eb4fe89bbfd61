#include "client/commands/wire_json.h"

#include <capnp/schema.h>

#include <cmath>

#include "base/bytes.h"
#include "schema/message.h"
#include "schema/transport.h"

namespace shoal::client {
namespace {

using Json = nlohmann::ordered_json;

std::string snake_case(kj::StringPtr name) {
  std::string out;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') {
      if (!out.empty()) out += '_';
      out += static_cast<char>(c - 'A' + 'a');
    } else {
      out += c;
    }
  }
  return out;
}

Json struct_json(capnp::DynamicStruct::Reader value) {
  Json object = Json::object();
  const capnp::StructSchema schema = value.getSchema();
  if (schema == capnp::Schema::from<rpc::Message>()) {
    const Message message = read_message(value.as<rpc::Message>());
    if (message.empty()) return nullptr;
    object["text"] = english(message);
    object["code"] = message.code;
    object["parameters"] = json_of(value.get("parameters"));
    return object;
  }
  for (const auto field : schema.getNonUnionFields()) {
    object[snake_case(field.getProto().getName())] = json_of(value.get(field));
  }
  KJ_IF_MAYBE (field, value.which()) {
    object[snake_case(field->getProto().getName())] = json_of(value.get(*field));
  }
  return object;
}

}  // namespace

Json json_of(capnp::DynamicValue::Reader value) {
  switch (value.getType()) {
    case capnp::DynamicValue::BOOL: return value.as<bool>();
    case capnp::DynamicValue::INT: return value.as<int64_t>();
    case capnp::DynamicValue::UINT: return value.as<uint64_t>();
    case capnp::DynamicValue::FLOAT: {
      const double number = value.as<double>();
      return std::isfinite(number) ? Json(number) : Json(nullptr);
    }
    case capnp::DynamicValue::TEXT: return value.as<capnp::Text>().cStr();
    case capnp::DynamicValue::DATA: return hex_encode(rpc::bytes_of(value.as<capnp::Data>()));
    case capnp::DynamicValue::ENUM: {
      const auto word = value.as<capnp::DynamicEnum>();
      KJ_IF_MAYBE (known, word.getEnumerant()) {
        return snake_case(known->getProto().getName());
      }
      return word.getRaw();
    }
    case capnp::DynamicValue::LIST: {
      Json list = Json::array();
      for (const auto item : value.as<capnp::DynamicList>()) list.push_back(json_of(item));
      return list;
    }
    case capnp::DynamicValue::STRUCT: return struct_json(value.as<capnp::DynamicStruct>());
    default: return nullptr;  // Capabilities and what a newer schema may hold.
  }
}

}  // namespace shoal::client
