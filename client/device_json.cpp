#include "client/device_json.h"

namespace shoal::client {

using Json = nlohmann::ordered_json;

Json device_json(const DeviceFacts& facts) {
  return {{"id", facts.id},
          {"selector", facts.selector},
          {"plane", facts.plane},
          {"name", facts.name},
          {"driver", facts.driver},
          {"memory_bytes", facts.memory_bytes},
          {"software", facts.software}};
}

DeviceFacts facts_of(const Json& json) {
  return {json.at("id"),     json.at("selector"),     json.at("plane"),   json.at("name"),
          json.at("driver"), json.at("memory_bytes"), json.at("software")};
}

Json measurement_json(const Measurement& m) {
  return {{"exact", m.self_test.exact},
          {"samples", m.self_test.samples},
          {"failed", m.self_test.failed},
          {"unsupported", m.self_test.unsupported},
          {"first_failure", m.self_test.first_failure},
          {"decode_rows_per_second", m.benchmark.decode_rows_per_second},
          {"prefill_rows_per_second", m.benchmark.prefill_rows_per_second},
          {"weight_bytes_per_second", m.benchmark.weight_bytes_per_second},
          {"flops_per_second", m.benchmark.flops_per_second},
          {"copy_bytes_per_second", m.benchmark.copy_bytes_per_second},
          {"measured_at_ms", m.benchmark.measured_at.count}};
}

Measurement measurement_of(const Json& json) {
  Measurement m;
  m.self_test = {json.at("exact"), json.at("samples"), json.at("failed"), json.at("unsupported"),
                 json.at("first_failure")};
  m.benchmark = {json.at("decode_rows_per_second"),  json.at("prefill_rows_per_second"),
                 json.at("weight_bytes_per_second"), json.at("flops_per_second"),
                 json.at("copy_bytes_per_second"),   Millis{json.at("measured_at_ms")}};
  return m;
}

}  // namespace shoal::client
