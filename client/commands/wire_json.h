#pragma once
// Any value of the schema as JSON, by its own description: a field new in the schema shows up in
// every answer without a line of code.

#include <capnp/dynamic.h>

#include <nlohmann/json.hpp>

namespace shoal::client {

// Names in snake_case, enums as their names; a Message also as its English sentence; what is not
// known (NaN) as null; bytes as hex.
nlohmann::ordered_json json_of(capnp::DynamicValue::Reader value);

}  // namespace shoal::client
