#include "client/client_state.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/device_json.h"

namespace shoal::client {
namespace {

using Json = nlohmann::ordered_json;

std::string measurement_key(const DeviceFacts& device) {
  return device.id + "\n" + device.driver + "\n" + device.name + "\n" SHOAL_VERSION;
}

constexpr const char* kResourceNames[] = {"gpu", "cpu", "network"};
constexpr const char* kModeNames[] = {"rules", "always", "paused"};

using Modes = std::optional<ModeChoice>[kResourceCount];

Json modes_json(const Modes& modes) {
  Json json = Json::object();
  for (int i = 0; i < kResourceCount; ++i) {
    if (!modes[i]) continue;
    json[kResourceNames[i]] = {{"mode", kModeNames[static_cast<int>(modes[i]->mode)]},
                               {"until_ms", modes[i]->until.value_or(Millis{0}).count},
                               {"length_ms", modes[i]->length.count}};
  }
  return json;
}

void read_modes(const Json& json, Modes& modes) {
  for (int i = 0; i < kResourceCount; ++i) {
    if (!json.contains(kResourceNames[i])) continue;
    const Json& entry = json[kResourceNames[i]];
    ModeChoice choice;
    const std::string name = entry.at("mode");
    for (int mode = 0; mode < 3; ++mode) {
      if (name == kModeNames[mode]) choice.mode = static_cast<Mode>(mode);
    }
    const int64_t until = entry.at("until_ms");
    if (until != 0) choice.until = Millis{until};
    choice.length = Millis{entry.value("length_ms", INT64_MAX)};
    modes[i] = choice;
  }
}

Json to_json(const Pairing& pairing) {
  return {{"id", pairing.id},
          {"name", pairing.name},
          {"token_digest", pairing.token_digest},
          {"paired_at_ms", pairing.paired_at.count},
          {"last_used_ms", pairing.last_used.count}};
}

Json to_json(const ClientMemory& memory) {
  Json json = {{"attachments", Json::array()},
               {"measurements", Json::object()},
               {"modes", modes_json(memory.modes)},
               {"passing", modes_json(memory.passing)},
               {"leave_by_ms", memory.leave_by.value_or(Millis{0}).count},
               {"last_work_ms", Json::object()},
               {"pairings", Json::array()},
               {"devices", Json::array()}};
  for (const Attachment& a : memory.attachments) {
    json["attachments"].push_back({{"url", a.url}, {"name", a.name}, {"host_id", a.host_id}});
  }
  for (const auto& [key, m] : memory.measurements) json["measurements"][key] = measurement_json(m);
  for (const auto& [pin, at] : memory.last_work) json["last_work_ms"][pin] = at.count;
  for (const Pairing& pairing : memory.pairings) json["pairings"].push_back(to_json(pairing));
  for (const auto& [id, known] : memory.devices) {
    Json entry = device_json(known.facts);
    entry["seen_at_ms"] = known.seen_at.count;
    json["devices"].push_back(std::move(entry));
  }
  return json;
}

ClientMemory memory_of(const Json& json) {
  ClientMemory memory;
  for (const Json& entry : json.at("attachments")) {
    memory.attachments.push_back({entry.at("url"), entry.at("name"), entry.at("host_id")});
  }
  for (const auto& [key, entry] : json.at("measurements").items()) {
    memory.measurements[key] = measurement_of(entry);
  }
  if (!json.contains("modes")) return memory;  // Written before owners could choose.
  read_modes(json["modes"], memory.modes);
  if (json.contains("passing")) {
    read_modes(json["passing"], memory.passing);
  } else {  // Written when modes for a time, and pauses, stood among the others.
    for (int i = 0; i < kResourceCount; ++i) {
      const std::optional<ModeChoice>& mode = memory.modes[i];
      if (mode && (mode->until || mode->mode == Mode::kPaused))
        memory.passing[i] = std::exchange(memory.modes[i], std::nullopt);
    }
  }
  if (const int64_t at = json.at("leave_by_ms"); at != 0) memory.leave_by = Millis{at};
  for (const auto& [pin, entry] : json.at("last_work_ms").items()) {
    memory.last_work[pin] = Millis{entry};
  }
  for (const Json& entry : json.at("pairings")) {
    memory.pairings.push_back({entry.at("id"), entry.at("name"), entry.at("token_digest"),
                               Millis{entry.at("paired_at_ms")}, Millis{entry.at("last_used_ms")}});
  }
  for (const Json& entry : json.at("devices")) {
    KnownDevice known{facts_of(entry), Millis{entry.at("seen_at_ms")}};
    memory.devices[known.facts.id] = std::move(known);
  }
  return memory;
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
    state.memory_ = memory_of(Json::parse(as_text(loaded.value().bytes)));
  } catch (const Json::exception& exception) {
    return Error{ErrorCode::kCorrupt,
                 path.string() + " is not this version's: " + exception.what()};
  }
  return state;
}

Result<void> ClientState::change(const std::function<void(ClientMemory&)>& edit) {
  ClientMemory changed = memory_;
  edit(changed);
  const std::string text = to_json(changed).dump(-1, ' ', false, Json::error_handler_t::replace);
  SHOAL_TRY(file_.save(as_bytes(text)));
  memory_ = std::move(changed);
  return {};
}

Result<void> ClientState::attach(Attachment attachment) {
  return change([&attachment](ClientMemory& memory) {
    for (Attachment& known : memory.attachments) {
      if (known.url == attachment.url) {
        known = attachment;
        return;
      }
    }
    memory.attachments.push_back(attachment);
  });
}

Result<int> ClientState::detach(const std::string& url) {
  const auto leaves = [&url](const Attachment& known) {
    return url.empty() || url_without_query(known.url) == url_without_query(url);
  };
  const auto count = std::ranges::count_if(memory_.attachments, leaves);
  if (count > 0) {
    SHOAL_TRY(change([&](ClientMemory& memory) { std::erase_if(memory.attachments, leaves); }));
  }
  return static_cast<int>(count);
}

const Measurement* ClientState::measurement(const DeviceFacts& device) const {
  const auto found = memory_.measurements.find(measurement_key(device));
  return found == memory_.measurements.end() ? nullptr : &found->second;
}

Result<void> ClientState::remember(const DeviceFacts& device, const Measurement& measurement) {
  return change([&](ClientMemory& memory) {
    // Another driver's or version's figures will not be asked for again.
    std::erase_if(memory.measurements, [&device](const auto& entry) {
      return entry.first.starts_with(device.id + "\n");
    });
    memory.measurements[measurement_key(device)] = measurement;
  });
}

}  // namespace shoal::client
