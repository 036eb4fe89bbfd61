#include "client/settings.h"

namespace shoal::client {

std::span<const SettingSpec> settings_table() {
  static const SettingSpec kTable[] = {
      {"coordinators", std::vector<std::string>{},
       "Attach URLs to join at start, beside those that `shoal-client attach` stored."},
      {"cache.folder", std::string(),
       "Where shards are kept. Empty: \"shards\" in this user's cache folder."},
      {"cache.bytes_max", int64_t{20} << 30,
       "The most that shards may take on disk. The least recently used go first.",
       /*min=*/1 << 20},
      {"cache.free_bytes_min", int64_t{1} << 30,
       "What must stay free on that disk, whatever the limit above says.", /*min=*/0},
      {"compute.devices", std::vector<std::string>{},
       "Which devices to lend: ids, selectors such as \"vulkan:0\", or planes such as \"cpu\" and\n"
       "\"vulkan\". Empty: every real GPU, or the CPU when there is none."},
      {"compute.threads", int64_t{0}, "Threads for computing on the CPU. 0: as many as it has.",
       /*min=*/0, /*max=*/1024},
      {"worker.program", std::string(),
       "The worker's program. Empty: shoal-worker beside this program."},
      {"worker.memory_bytes_max", int64_t{0},
       "The most memory that one worker may allocate on the host. 0: no limit.", /*min=*/0},
      {"worker.hang_ms_max", int64_t{10'000},
       "A worker that gives no sign of life for this long is ended and started anew.",
       /*min=*/500, /*max=*/600'000},
  };
  return kTable;
}

Result<Settings> load_settings(const UserFolders& folders) {
  const std::filesystem::path path = folders.config / "client.toml";
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return Settings(settings_table());
  return Settings::load(settings_table(), path);
}

}  // namespace shoal::client
