#pragma once
// Every setting of the client, as one table: the documented file and, later, the settings page are
// drawn from it.

#include <filesystem>
#include <span>

#include "base/host.h"
#include "base/settings.h"

namespace shoal::client {

std::span<const SettingSpec> settings_table();

// From "client.toml" in the config folder; without that file everything is at its default.
Result<Settings> load_settings(const UserFolders& folders);

}  // namespace shoal::client
