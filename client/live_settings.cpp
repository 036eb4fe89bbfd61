#include "client/live_settings.h"

#include <algorithm>

#include "base/files.h"

namespace shoal::client {

LiveSettings::LiveSettings(Settings stored, std::filesystem::path file, Check check)
    : file_(std::move(file)), check_(std::move(check)), stored_(std::move(stored)), now_(stored_) {}

Result<void> LiveSettings::override_with(SettingChange change) {
  SHOAL_TRY(now_.set(change.key, change.value));
  overrides_.push_back(std::move(change));
  return {};
}

Result<Settings> LiveSettings::changed(Settings settings,
                                       const std::vector<SettingChange>& changes) const {
  for (const SettingChange& change : changes) SHOAL_TRY(settings.set(change.key, change.value));
  SHOAL_TRY(check_(settings));
  return settings;
}

Result<Settings> LiveSettings::with(const std::vector<SettingChange>& changes) const {
  return changed(now_, changes);
}

Result<void> LiveSettings::change(const std::vector<SettingChange>& changes) {
  Settings base = stored_;
  std::error_code code;
  if (std::filesystem::exists(file_, code)) {
    SHOAL_TRY_ASSIGN(read, Settings::load(stored_.table(), file_));
    base = std::move(read);
  }
  SHOAL_TRY_ASSIGN(stored, changed(std::move(base), changes));
  std::vector<SettingChange> overrides = overrides_;
  std::erase_if(overrides, [&changes](const SettingChange& override) {
    return std::ranges::find(changes, override.key, &SettingChange::key) != changes.end();
  });
  SHOAL_TRY_ASSIGN(now, changed(stored, overrides));
  SHOAL_TRY(make_folder(file_.parent_path()));
  SHOAL_TRY(write_file_durably(file_, as_bytes(stored.document()), 0600));
  stored_ = std::move(stored);
  overrides_ = std::move(overrides);
  now_ = std::move(now);
  return {};
}

bool LiveSettings::needs_restart(std::string_view key) {
  static constexpr std::string_view kKeys[] = {
      "cache.folder",       "compute.threads",         "coordinators",  "sensors.program",
      "worker.hang_ms_max", "worker.memory_bytes_max", "worker.program"};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

}  // namespace shoal::client
