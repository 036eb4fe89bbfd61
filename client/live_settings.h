#pragma once
// Holds the settings of a running client and changes them: all or nothing, checked, written to the
// file before they act. What the command line chose instead stands until the owner changes it.

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"

namespace shoal::client {

struct SettingChange {
  std::string key;
  SettingValue value;
};

class LiveSettings {
 public:
  // Whether values that fit one by one also make sense: hours, prices, addresses. Names the key.
  using Check = std::function<Result<void>(const Settings& settings)>;

  // `stored` came from `file`, which may be absent.
  LiveSettings(Settings stored, std::filesystem::path file, Check check);

  const Settings& now() const { return now_; }
  // A choice of the command line for this run. REQUIRES: the table has the key, with this type.
  Result<void> override_with(SettingChange change);

  // What the settings would be.
  Result<Settings> with(const std::vector<SettingChange>& changes) const;
  // What was changed in the file by hand meanwhile is kept, and acts from now on too.
  Result<void> change(const std::vector<SettingChange>& changes);

  // Acts only when the client starts again.
  static bool needs_restart(std::string_view key);

 private:
  Result<Settings> changed(Settings settings, const std::vector<SettingChange>& changes) const;

  std::filesystem::path file_;
  Check check_;
  Settings stored_;
  std::vector<SettingChange> overrides_;
  Settings now_;  // Stored, with the overrides.
};

}  // namespace shoal::client
