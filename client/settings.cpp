#include "client/settings.h"

// Qt's lupdate finds what is said to people by this name; here it is English.
#define QT_TRANSLATE_NOOP(context, text) text

#include "client/rules/validate_rules.h"

namespace shoal::client {

std::span<const SettingSpec> settings_table() {
  static const SettingSpec kTable[] = {
      {"coordinators", std::vector<std::string>{},
       QT_TRANSLATE_NOOP(
           "settings",
           "Attach URLs to join at start, beside those that `shoal-client attach` stored.")},
      {"cache.folder", std::string(),
       QT_TRANSLATE_NOOP("settings",
                         "Where shards are kept. Empty: \"shards\" in this user's cache folder.")},
      {"cache.bytes_max", int64_t{20} << 30,
       QT_TRANSLATE_NOOP(
           "settings", "The most that shards may take on disk. The least recently used go first."),
       /*min=*/1 << 20},
      {"cache.free_bytes_min", int64_t{1} << 30,
       QT_TRANSLATE_NOOP("settings",
                         "What must stay free on that disk, whatever the limit above says."),
       /*min=*/0},
      {"compute.devices", std::vector<std::string>{},
       QT_TRANSLATE_NOOP("settings",
                         "Which devices to lend: ids, selectors such as \"vulkan:0\", or planes "
                         "such as \"cpu\" and\n"
                         "\"vulkan\". Empty: every real GPU, or the CPU when there is none.")},
      {"compute.threads", int64_t{0},
       QT_TRANSLATE_NOOP("settings", "Threads for computing on the CPU. 0: as many as it has."),
       /*min=*/0, /*max=*/1024},
      {"work.ahead_minutes", int64_t{15},
       QT_TRANSLATE_NOOP("settings",
                         "How many minutes of work on jobs each device keeps ahead, so that it has "
                         "some while a\ncoordinator is away."),
       /*min=*/1, /*max=*/1'440},
      {"work.checkpoint_seconds", int64_t{60},
       QT_TRANSLATE_NOOP("settings",
                         "How often what was computed of a job is stored, so that a crash loses no "
                         "more than that."),
       /*min=*/0, /*max=*/3'600},
      {"worker.program", std::string(),
       QT_TRANSLATE_NOOP("settings",
                         "The worker's program. Empty: shoal-worker beside this program.")},
      {"sensors.program", std::string(),
       QT_TRANSLATE_NOOP(
           "settings",
           "The program that watches the computer. Empty: shoal-sensors beside this program.")},
      {"worker.memory_bytes_max", int64_t{0},
       QT_TRANSLATE_NOOP("settings",
                         "The most memory that one worker may allocate on the host. 0: no limit."),
       /*min=*/0},
      {"worker.hang_ms_max", int64_t{10'000},
       QT_TRANSLATE_NOOP(
           "settings",
           "A worker that gives no sign of life for this long is ended and started anew."),
       /*min=*/500, /*max=*/600'000},

      // When to work. A rule that cannot be judged, because nothing tells, forbids.
      {"rules.gpu_when_in_use", false,
       QT_TRANSLATE_NOOP("settings", "Work on GPUs while somebody uses this computer.")},
      {"rules.cpu_when_in_use", false,
       QT_TRANSLATE_NOOP("settings", "Work on the CPU while somebody uses this computer.")},
      {"rules.idle_seconds", int64_t{180},
       QT_TRANSLATE_NOOP(
           "settings",
           "After so long without keyboard, mouse or touch the computer counts as not in use."),
       /*min=*/5, /*max=*/86'400},
      {"rules.idle_source",
       std::string("auto"),
       QT_TRANSLATE_NOOP(
           "settings",
           "Who tells how long nobody touched the computer. \"auto\" takes the first that works."),
       /*min=*/0,
       /*max=*/0,
       {"auto", "ext-idle-notify", "mutter", "screensaver", "xscreensaver", "logind", "terminals"}},
      {"rules.inhibitors", true,
       QT_TRANSLATE_NOOP("settings", "Wait while a program keeps the screen on: a film, a call.")},
      {"rules.on_battery", false, QT_TRANSLATE_NOOP("settings", "Work on battery.")},
      {"rules.battery_percent_min", int64_t{60},
       QT_TRANSLATE_NOOP("settings", "Where work on battery is allowed: only above this charge."),
       /*min=*/0, /*max=*/100},
      {"rules.power_saver", false,
       QT_TRANSLATE_NOOP("settings", "Work while the power-saver profile is on.")},
      {"rules.exclusive_programs", std::vector<std::string>{},
       QT_TRANSLATE_NOOP(
           "settings",
           "Programs that have the computer to themselves: full names of executables, such as\n"
           "\"blender\" or \"/opt/game/bin/game\". While one runs, nothing is computed.")},
      {"rules.exclusive_programs_gpu", std::vector<std::string>{},
       QT_TRANSLATE_NOOP("settings", "The same for GPUs alone: the CPU goes on.")},
      {"rules.game_mode", true,
       QT_TRANSLATE_NOOP("settings", "Wait while a game has asked for GameMode.")},
      {"rules.other_cpu_load_max", int64_t{50},
       QT_TRANSLATE_NOOP("settings",
                         "Wait while other programs use more than this percentage of all "
                         "processors. 100: never."),
       /*min=*/1, /*max=*/100},
      {"rules.other_gpu_load_max", int64_t{30},
       QT_TRANSLATE_NOOP(
           "settings",
           "Wait while other programs use more than this percentage of the GPU. 100: never."),
       /*min=*/1, /*max=*/100},
      {"rules.gpu_temperature_max", int64_t{85},
       QT_TRANSLATE_NOOP(
           "settings",
           "Stop a GPU at this temperature in degrees Celsius; it goes on 10 degrees below."),
       /*min=*/40, /*max=*/120},
      {"rules.cpu_temperature_max", int64_t{95},
       QT_TRANSLATE_NOOP("settings", "The same for the CPU."), /*min=*/40, /*max=*/120},
      {"rules.compute_hours", std::vector<std::string>{},
       QT_TRANSLATE_NOOP("settings",
                         "When to compute, as \"mon 08:00-17:00\" or \"mon-fri 22:00-06:00\". "
                         "Empty: at any time.")},
      {"rules.network_hours", std::vector<std::string>{},
       QT_TRANSLATE_NOOP(
           "settings",
           "When to use the network, likewise. Outside, no work is taken and nothing is fetched.")},
      {"rules.metered", false,
       QT_TRANSLATE_NOOP("settings", "Use the network while it is metered.")},
      {"rules.download_bytes_per_second", int64_t{0},
       QT_TRANSLATE_NOOP("settings", "Fetch no faster than this. 0: no limit."),
       /*min=*/0},
      {"rules.upload_bytes_per_second", int64_t{0},
       QT_TRANSLATE_NOOP("settings", "Send no faster than this. 0: no limit."),
       /*min=*/0},
      {"rules.transfer_bytes_month", int64_t{0},
       QT_TRANSLATE_NOOP("settings",
                         "Fetch and send no more than this in a calendar month. 0: no limit."),
       /*min=*/0},
      {"rules.memory_free_bytes_min", int64_t{1} << 30,
       QT_TRANSLATE_NOOP("settings", "Wait while less memory than this is free."),
       /*min=*/0},
      {"rules.vram_reserve_bytes", int64_t{512} << 20,
       QT_TRANSLATE_NOOP("settings",
                         "What is left of a GPU's memory for the display and other programs."),
       /*min=*/0},

      {"yield.stop_ms", int64_t{1'000},
       QT_TRANSLATE_NOOP(
           "settings",
           "When the owner comes back, nothing computes after so long: what still does is ended."),
       /*min=*/50, /*max=*/60'000},
      {"yield.free_ms", int64_t{5'000},
       QT_TRANSLATE_NOOP("settings", "And the devices' memory is free after so long."),
       /*min=*/100, /*max=*/60'000},

      {"comfort.temperature_target", int64_t{0},
       QT_TRANSLATE_NOOP("settings",
                         "Compute only as much as keeps each device at this temperature in degrees "
                         "Celsius. 0: off."),
       /*min=*/0, /*max=*/110},
      {"comfort.watts_target", int64_t{0},
       QT_TRANSLATE_NOOP("settings",
                         "Compute only as much as keeps each device at this power. 0: off."),
       /*min=*/0,
       /*max=*/2'000},
      {"comfort.duty_percent_max", int64_t{100},
       QT_TRANSLATE_NOOP("settings",
                         "Compute at most this part of the time, pausing between operations."),
       /*min=*/5,
       /*max=*/100},

      {"energy.price_per_kwh", 0.30, QT_TRANSLATE_NOOP("settings", "What a kilowatt-hour costs."),
       /*min=*/0, /*max=*/1'000},
      {"energy.currency", std::string("EUR"), QT_TRANSLATE_NOOP("settings", "In which currency.")},
      {"energy.tariff", std::vector<std::string>{},
       QT_TRANSLATE_NOOP("settings",
                         "Other prices at some hours, as \"mon-sun 22:00-06:00 0.21\". The first "
                         "that fits counts.")},
      {"energy.price_max", 0.0,
       QT_TRANSLATE_NOOP("settings", "Wait while a kilowatt-hour costs more than this. 0: never."),
       /*min=*/0, /*max=*/1'000},
      {"energy.kwh_per_day_max", 0.0,
       QT_TRANSLATE_NOOP("settings", "Use no more energy than this in a day. 0: no limit."),
       /*min=*/0, /*max=*/1'000},
      {"energy.kwh_per_month_max", 0.0,
       QT_TRANSLATE_NOOP("settings", "Nor than this in a calendar month. 0: no limit."),
       /*min=*/0, /*max=*/10'000},
      {"energy.cpu_watts", 45.0,
       QT_TRANSLATE_NOOP("settings",
                         "What the CPU draws while it computes, where no counter can be read."),
       /*min=*/0,
       /*max=*/2'000},
      {"energy.gpu_watts", 150.0, QT_TRANSLATE_NOOP("settings", "The same for a GPU."), /*min=*/0,
       /*max=*/2'000},

      {"consent.new_classes",
       std::string("allow"),
       QT_TRANSLATE_NOOP("settings",
                         "Whether work of a class that you have not judged yet is taken."),
       /*min=*/0,
       /*max=*/0,
       {"allow", "deny"}},
      {"network.direct", false,
       QT_TRANSLATE_NOOP(
           "settings",
           "Exchange the data of shared work with other computers directly where that "
           "works, instead of\nthrough the coordinator. They learn this computer's "
           "address.")},
      {"network.direct_listen", std::string(),
       QT_TRANSLATE_NOOP("settings",
                         "Where those computers may connect for that, as \"0.0.0.0:7412\". Empty: "
                         "nowhere; this\ncomputer only connects to them.")},
      {"remote.listen", std::string(),
       QT_TRANSLATE_NOOP("settings",
                         "Where user interfaces of other machines may connect after pairing, as "
                         "\"0.0.0.0:7411\".\n"
                         "Empty: nowhere.")},
  };
  return kTable;
}

Result<Settings> load_settings(const UserFolders& folders) {
  const std::filesystem::path path = folders.config / "client.toml";
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return Settings(settings_table());
  SHOAL_TRY_ASSIGN(settings, Settings::load(settings_table(), path));
  if (const Result<void> valid = validate_rules(settings); !valid.ok()) {
    return with_context(valid.error(), path.string());
  }
  return settings;
}

}  // namespace shoal::client
