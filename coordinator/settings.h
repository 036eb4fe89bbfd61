#pragma once
// The coordinator's settings (DATA/coordinator.toml): one table of keys, and what they mean to its
// parts.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/settings.h"
#include "coordinator/jobs/options.h"
#include "coordinator/session/options.h"

namespace shoal {

std::span<const SettingSpec> coordinator_setting_table();

struct CoordinatorSettings {
  std::string name;
  std::string operator_text;  // Who runs it and what for, for volunteers.
  std::string listen_host;
  uint16_t listen_port = 0;  // 0: any free one.
  std::string public_host;   // Empty: see attach_host.
  Millis ping_interval;
  Millis drain;
  double credit_rate = 0;   // What a credit is worth, in units of `credit_unit`.
  std::string credit_unit;  // Empty: credit is worth nothing but itself.
  SessionOptions session;
  JobOptions jobs;
};

CoordinatorSettings coordinator_settings(const Settings& settings);
Result<CoordinatorSettings> load_coordinator_settings(const std::filesystem::path& folder);

// "0.0.0.0:7410", "[::]:7410", "name:0".
Result<void> set_listen(CoordinatorSettings& settings, std::string_view host_and_port);

// What an attach URL names: the public host, else the address listened on, else this machine's
// name.
std::string attach_host(const CoordinatorSettings& settings);

}  // namespace shoal
