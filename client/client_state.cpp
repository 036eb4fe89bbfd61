#include "client/client_state.h"

#include <nlohmann/json.hpp>

#include "base/log.h"

namespace shoal::client {
namespace {

using Json = nlohmann::ordered_json;

std::string measurement_key(const DeviceFacts& device) {
  return device.id + "\n" + device.driver + "\n" + device.name + "\n" SHOAL_VERSION;
}

Json to_json(const Measurement& m) {
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

}  // namespace

std::string url_without_query(const std::string& url) {
  std::string text = url.substr(0, url.find('?'));
  while (text.ends_with('/')) text.pop_back();
  return text;
}

Result<ClientState> ClientState::load(const std::filesystem::path& path) {
  ClientState state(path);
  Result<StateFile::Loaded> loaded = state.file_.load();
  if (!loaded.ok()) {
    if (loaded.error().code == ErrorCode::kNotFound) return state;
    return loaded.error();
  }
  try {  // The checksum held, so another content is another version's, and no attack.
    const Json json = Json::parse(as_text(loaded.value().bytes));
    for (const Json& entry : json.at("attachments")) {
      state.attachments_.push_back({entry.at("url"), entry.at("name"), entry.at("host_id")});
    }
    for (const auto& [key, entry] : json.at("measurements").items()) {
      state.measurements_[key] = measurement_of(entry);
    }
  } catch (const Json::exception& exception) {
    return Error{ErrorCode::kCorrupt,
                 path.string() + " is not this version's: " + exception.what()};
  }
  return state;
}

Result<void> ClientState::save() const {
  Json json = {{"attachments", Json::array()}, {"measurements", Json::object()}};
  for (const Attachment& a : attachments_) {
    json["attachments"].push_back({{"url", a.url}, {"name", a.name}, {"host_id", a.host_id}});
  }
  for (const auto& [key, m] : measurements_) json["measurements"][key] = to_json(m);
  return file_.save(as_bytes(json.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

Result<void> ClientState::attach(Attachment attachment) {
  for (Attachment& known : attachments_) {
    if (known.url == attachment.url) {
      known = std::move(attachment);
      return save();
    }
  }
  attachments_.push_back(std::move(attachment));
  return save();
}

Result<int> ClientState::detach(const std::string& url) {
  const auto count = std::erase_if(attachments_, [&url](const Attachment& known) {
    return url.empty() || url_without_query(known.url) == url_without_query(url);
  });
  if (count > 0) SHOAL_TRY(save());
  return static_cast<int>(count);
}

const Measurement* ClientState::measurement(const DeviceFacts& device) const {
  const auto found = measurements_.find(measurement_key(device));
  return found == measurements_.end() ? nullptr : &found->second;
}

Result<void> ClientState::remember(const DeviceFacts& device, const Measurement& measurement) {
  // Another driver's or version's figures will not be asked for again.
  std::erase_if(measurements_,
                [&device](const auto& entry) { return entry.first.starts_with(device.id + "\n"); });
  measurements_[measurement_key(device)] = measurement;
  return save();
}

}  // namespace shoal::client
