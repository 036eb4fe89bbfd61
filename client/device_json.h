#pragma once
// A device and what it proved, as JSON: the same words in the client's state and in what its
// commands print.

#include <nlohmann/json.hpp>

#include "client/device_facts.h"

namespace shoal::client {

nlohmann::ordered_json device_json(const DeviceFacts& facts);

// Throws nlohmann::json::exception when a part is missing or of another kind.
DeviceFacts facts_of(const nlohmann::ordered_json& json);

nlohmann::ordered_json measurement_json(const Measurement& measurement);
// Throws likewise.
Measurement measurement_of(const nlohmann::ordered_json& json);

}  // namespace shoal::client
