#include "client/live_settings.h"

#include <algorithm>

#include "base/files.h"
#include "base/host_access.h"
#include "base/text.h"

namespace shoal::client {
namespace {

// Nearest to `path` and there: what does not exist yet can be made there.
std::filesystem::path existing(std::filesystem::path path) {
  std::error_code code;
  while (!std::filesystem::exists(path, code) && path.has_relative_path()) {
    path = path.parent_path();
  }
  return path;
}

Result<void> check_path(const SettingChange& change) {
  const bool is_folder = change.key == "cache.folder";
  const bool is_program = change.key == "worker.program" || change.key == "sensors.program";
  const auto* const text = std::get_if<std::string>(&change.value);
  if ((!is_folder && !is_program) || text == nullptr || text->empty()) return {};
  const std::filesystem::path path = *text;
  const auto refuse = [&change, text](const std::string& why) {
    return Error{ErrorCode::kInvalid, change.key + ": '" + printable(*text) + "' " + why};
  };
  if (!path.is_absolute()) {
    return refuse(
        "is not a whole path: it must begin with '/', as the client may be started from "
        "any folder");
  }
  std::error_code code;
  if (is_program) {
    if (!std::filesystem::is_regular_file(path, code)) return refuse("is no file");
    return may_run(path) ? Result<void>() : refuse("is no program that this user may start");
  }
  const std::filesystem::path there = existing(path);
  if (!std::filesystem::is_directory(there, code)) {
    return refuse(there == path ? "is no folder"
                                : "cannot be made: " + there.string() + " is no folder");
  }
  if (!may_write_in(there)) {
    return refuse("cannot be used: this user may not write to " + there.string());
  }
  return {};
}

}  // namespace

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
  for (const SettingChange& change : changes) SHOAL_TRY(check_path(change));
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
  Settings now = stored;
  if (!overrides.empty()) {
    SHOAL_TRY_ASSIGN(overridden, changed(stored, overrides));
    now = std::move(overridden);
  }
  SHOAL_TRY(make_folder(file_.parent_path()));
  SHOAL_TRY(write_file_durably(file_, as_bytes(stored.document()), 0600));
  stored_ = std::move(stored);
  overrides_ = std::move(overrides);
  now_ = std::move(now);
  return {};
}

bool LiveSettings::needs_restart(std::string_view key) {
  static constexpr std::string_view kKeys[] = {"cache.folder", "coordinators", "sensors.program",
                                               "worker.program"};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

}  // namespace shoal::client
