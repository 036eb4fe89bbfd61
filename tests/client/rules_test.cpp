// What the owner's rules allow. Each rule from both sides of its limit, what is not known, how a
// limit lets go, which of two rules decides, and when a verdict changes by itself.

#include <QTest>
#include <functional>
#include <limits>

#include "client/rules/activity_policy.h"
#include "client/rules/validate_rules.h"
#include "client/rules/what_if.h"
#include "client/rules/yield_times.h"
#include "client/settings.h"

using namespace shoal;
using namespace shoal::client;

namespace {

constexpr Resource kGpu = Resource::kGpu;
constexpr Resource kCpu = Resource::kCpu;
constexpr Resource kNetwork = Resource::kNetwork;
constexpr Bytes kGigabyte{1'000'000'000};
const double kNan = std::numeric_limits<double>::quiet_NaN();

// A computer with every sensor, on a Wednesday at noon, that nobody uses: everything is allowed.
struct World {
  Settings settings{settings_table()};
  ModeChoice modes[kResourceCount];
  Readings readings;
  GpuReading gpu;
  bool gpu_known = true;
  Spent spent;
  std::optional<Millis> leave_by;
  Millis now{1'783'512'000'000};  // 2026-07-08 12:00 UTC.
  LocalTime local = local_time(now);
  std::string forbidden_by;
  double own_gpu_load = 0;

  World() {
    readings.idle = Millis{3'600'000};
    readings.locked = false;
    readings.inhibitors.emplace();
    readings.on_battery = false;
    readings.battery_percent = 80;
    readings.power_profile = "balanced";
    readings.other_cpu_load = 0.02;
    readings.programs.emplace();
    readings.game_mode = false;
    readings.memory_available = Bytes{8 * kGigabyte.count};
    readings.cpu_temperature_c = 50;
    readings.online = true;
    readings.metered = false;
    readings.cache_disk_free = Bytes{100 * kGigabyte.count};
    gpu.temperature_c = 50;
    gpu.load = 0;
  }

  void set(std::string_view key, SettingValue value) {
    QVERIFY2(settings.set(key, std::move(value)).ok(), std::string(key).c_str());
  }
  void list(std::string_view key, std::vector<std::string> texts) { set(key, std::move(texts)); }
  void all_modes(ModeChoice choice) {
    for (ModeChoice& mode : modes) mode = choice;
  }

  Verdict decide(Resource resource) const {
    PolicyInput input{.settings = settings, .readings = readings};
    for (int i = 0; i < kResourceCount; ++i) input.modes[i] = modes[i];
    input.forbidden_by = forbidden_by;
    input.spent = spent;
    input.leave_by = leave_by;
    input.now = now;
    input.local = local;
    input.own_gpu_load = own_gpu_load;
    return client::decide(input, resource, resource == kGpu && gpu_known ? &gpu : nullptr);
  }
};

using Change = std::function<void(World&)>;

// One line of the table: what is changed in the good world, and the verdict's code and key.
struct Row {
  const char* name;
  Resource resource;
  Change change;
  std::string why = "working.idle";
  std::string rule = "";
};

void use(World& w) { w.readings.idle = Millis{0}; }
void film(World& w, const std::string& why) {
  w.readings.inhibitors = std::vector<Inhibitor>{{"vlc", why}};
}

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {"all well, gpu", kGpu, [](World&) {}},
      {"all well, cpu", kCpu, [](World&) {}},
      {"all well, network", kNetwork, [](World&) {}},

      {"sleep gpu", kGpu, [](World& w) { w.readings.sleeping = true; }, "rule.sleeping"},
      {"sleep network", kNetwork, [](World& w) { w.readings.sleeping = true; }, "rule.sleeping"},
      {"sleep in mode always", kGpu,
       [](World& w) {
         w.readings.sleeping = true;
         w.all_modes({Mode::kAlways, {}});
       },
       "rule.sleeping"},

      {"gpu at its temperature", kGpu, [](World& w) { w.gpu.temperature_c = 85; },
       "rule.temperature", "rules.gpu_temperature_max"},
      {"gpu just below it", kGpu, [](World& w) { w.gpu.temperature_c = 84.9; }},
      {"gpu on its way down", kGpu,
       [](World& w) {
         w.gpu.temperature_c = 75.1;
         w.forbidden_by = "rules.gpu_temperature_max";
       },
       "rule.temperature", "rules.gpu_temperature_max"},
      {"gpu cool again", kGpu,
       [](World& w) {
         w.gpu.temperature_c = 75;
         w.forbidden_by = "rules.gpu_temperature_max";
       }},
      {"gpu warm after another rule", kGpu,
       [](World& w) {
         w.gpu.temperature_c = 80;
         w.forbidden_by = "rules.gpu_when_in_use";
       }},
      {"hot gpu in mode always", kGpu,
       [](World& w) {
         w.gpu.temperature_c = 90;
         w.all_modes({Mode::kAlways, {}});
       },
       "rule.temperature", "rules.gpu_temperature_max"},
      {"gpu temperature unknown", kGpu, [](World& w) { w.gpu.temperature_c.reset(); }},
      {"gpu unknown", kGpu, [](World& w) { w.gpu_known = false; }},
      {"gpu temperature unknown, own limit", kGpu,
       [](World& w) {
         w.gpu.temperature_c.reset();
         w.set("rules.gpu_temperature_max", int64_t{80});
       },
       "rule.temperature_unknown", "rules.gpu_temperature_max"},
      {"gpu temperature no number, own limit", kGpu,
       [](World& w) {
         w.gpu.temperature_c = kNan;
         w.set("rules.gpu_temperature_max", int64_t{80});
       },
       "rule.temperature_unknown", "rules.gpu_temperature_max"},
      {"gpu unknown, own limit", kGpu,
       [](World& w) {
         w.gpu_known = false;
         w.set("rules.gpu_temperature_max", int64_t{80});
       },
       "rule.temperature_unknown", "rules.gpu_temperature_max"},
      {"hot cpu", kCpu, [](World& w) { w.readings.cpu_temperature_c = 95; }, "rule.temperature",
       "rules.cpu_temperature_max"},
      {"warm cpu", kCpu, [](World& w) { w.readings.cpu_temperature_c = 94.9; }},
      {"hot cpu is not the gpu", kGpu, [](World& w) { w.readings.cpu_temperature_c = 99; }},
      {"hot gpu is not the network", kNetwork, [](World& w) { w.gpu.temperature_c = 99; }},

      {"memory short", kCpu, [](World& w) { w.readings.memory_available = kGibibyte - Bytes{1}; },
       "rule.memory_low", "rules.memory_free_bytes_min"},
      {"memory just enough", kCpu, [](World& w) { w.readings.memory_available = kGibibyte; }},
      {"memory not yet enough again", kGpu,
       [](World& w) {
         w.readings.memory_available = Bytes{(1 << 30) + (1 << 30) / 10 - 1};
         w.forbidden_by = "rules.memory_free_bytes_min";
       },
       "rule.memory_low", "rules.memory_free_bytes_min"},
      {"memory enough again", kGpu,
       [](World& w) {
         w.readings.memory_available = Bytes{(1 << 30) + (1 << 30) / 10};
         w.forbidden_by = "rules.memory_free_bytes_min";
       }},
      {"memory unknown", kGpu, [](World& w) { w.readings.memory_available.reset(); }},
      {"memory unknown, own limit", kGpu,
       [](World& w) {
         w.readings.memory_available.reset();
         w.set("rules.memory_free_bytes_min", int64_t{1});
       },
       "rule.memory_unknown", "rules.memory_free_bytes_min"},
      {"no limit of memory", kGpu,
       [](World& w) {
         w.readings.memory_available = Bytes{0};
         w.set("rules.memory_free_bytes_min", int64_t{0});
       }},

      {"energy of the day used", kGpu,
       [](World& w) {
         w.set("energy.kwh_per_day_max", 2.0);
         w.spent.kilowatt_hours_today = 2.0;
       },
       "rule.energy_day", "energy.kwh_per_day_max"},
      {"energy of the day nearly used", kGpu,
       [](World& w) {
         w.set("energy.kwh_per_day_max", 2.0);
         w.spent.kilowatt_hours_today = 1.999;
       }},
      {"energy of the month used, mode always", kCpu,
       [](World& w) {
         w.set("energy.kwh_per_month_max", 30.0);
         w.spent.kilowatt_hours_month = 30.0;
         w.all_modes({Mode::kAlways, {}});
       },
       "rule.energy_month", "energy.kwh_per_month_max"},
      {"energy is no matter of the network", kNetwork,
       [](World& w) {
         w.set("energy.kwh_per_day_max", 2.0);
         w.spent.kilowatt_hours_today = 5;
       }},
      {"no energy limit", kGpu, [](World& w) { w.spent.kilowatt_hours_today = 900; }},

      {"bytes of the month used", kNetwork,
       [](World& w) {
         w.set("rules.transfer_bytes_month", int64_t{1'000});
         w.spent.transferred_month = Bytes{1'000};
       },
       "rule.transfer_month", "rules.transfer_bytes_month"},
      {"bytes of the month nearly used", kNetwork,
       [](World& w) {
         w.set("rules.transfer_bytes_month", int64_t{1'000});
         w.spent.transferred_month = Bytes{999};
       }},
      {"bytes are no matter of the gpu", kGpu,
       [](World& w) {
         w.set("rules.transfer_bytes_month", int64_t{1'000});
         w.spent.transferred_month = Bytes{1'000};
       }},
      {"disk short, mode always", kNetwork,
       [](World& w) {
         w.readings.cache_disk_free = kGibibyte - Bytes{1};
         w.all_modes({Mode::kAlways, {}});
       },
       "rule.disk_low", "cache.free_bytes_min"},
      {"disk just enough", kNetwork, [](World& w) { w.readings.cache_disk_free = kGibibyte; }},
      {"disk unknown", kNetwork, [](World& w) { w.readings.cache_disk_free.reset(); }},
      {"disk unknown, own limit", kNetwork,
       [](World& w) {
         w.readings.cache_disk_free.reset();
         w.set("cache.free_bytes_min", int64_t{7});
       },
       "rule.disk_unknown", "cache.free_bytes_min"},

      {"time to leave", kGpu, [](World& w) { w.leave_by = w.now; }, "rule.leave_by"},
      {"time to leave, mode always", kCpu,
       [](World& w) {
         w.leave_by = w.now - Millis{1};
         w.all_modes({Mode::kAlways, {}});
       },
       "rule.leave_by"},
      {"not yet time to leave", kGpu, [](World& w) { w.leave_by = w.now + Millis{1}; }},
      {"the network stays", kNetwork, [](World& w) { w.leave_by = w.now; }},

      {"owner here, gpu", kGpu, use, "rule.owner_active", "rules.gpu_when_in_use"},
      {"owner here, cpu", kCpu, use, "rule.owner_active", "rules.cpu_when_in_use"},
      {"owner here, network", kNetwork, use},
      {"owner away a moment too short", kGpu, [](World& w) { w.readings.idle = Millis{179'999}; },
       "rule.owner_active", "rules.gpu_when_in_use"},
      {"owner away long enough", kGpu, [](World& w) { w.readings.idle = Millis{180'000}; }},
      {"owner away since before he came", kGpu, [](World& w) { w.readings.idle = Millis{-5}; },
       "rule.owner_active", "rules.gpu_when_in_use"},
      {"owner here but locked", kGpu,
       [](World& w) {
         use(w);
         w.readings.locked = true;
       }},
      {"owner unknown", kGpu, [](World& w) { w.readings.idle.reset(); }, "rule.owner_unknown",
       "rules.idle_source"},
      {"owner unknown but locked", kGpu,
       [](World& w) {
         w.readings.idle.reset();
         w.readings.locked = true;
       }},
      {"owner unknown, named source", kCpu,
       [](World& w) {
         w.readings.idle.reset();
         w.set("rules.idle_source", std::string("mutter"));
       },
       "rule.owner_source_silent", "rules.idle_source"},
      {"owner unknown, mode always", kGpu,
       [](World& w) {
         w.readings.idle.reset();
         w.all_modes({Mode::kAlways, {}});
       },
       "mode.always"},
      {"owner here, allowed for the gpu", kGpu,
       [](World& w) {
         use(w);
         w.set("rules.gpu_when_in_use", true);
       }},
      {"owner here, allowed for the gpu alone", kCpu,
       [](World& w) {
         use(w);
         w.set("rules.gpu_when_in_use", true);
       },
       "rule.owner_active", "rules.cpu_when_in_use"},
      {"owner unknown, allowed in use", kCpu,
       [](World& w) {
         w.readings.idle.reset();
         w.set("rules.cpu_when_in_use", true);
       }},

      {"film", kGpu, [](World& w) { film(w, ""); }, "rule.inhibitor", "rules.inhibitors"},
      {"film with a reason", kCpu, [](World& w) { film(w, "a film"); }, "rule.inhibitor_why",
       "rules.inhibitors"},
      {"film, rule off", kGpu,
       [](World& w) {
         film(w, "");
         w.set("rules.inhibitors", false);
       }},
      {"inhibitors unknown", kGpu, [](World& w) { w.readings.inhibitors.reset(); },
       "rule.inhibitors_unknown", "rules.inhibitors"},
      {"inhibitors unknown, rule off", kGpu,
       [](World& w) {
         w.readings.inhibitors.reset();
         w.set("rules.inhibitors", false);
       }},
      {"film is no matter of the network", kNetwork, [](World& w) { film(w, ""); }},

      {"battery", kCpu, [](World& w) { w.readings.on_battery = true; }, "rule.on_battery",
       "rules.on_battery"},
      {"battery unknown", kGpu, [](World& w) { w.readings.on_battery.reset(); },
       "rule.battery_unknown", "rules.on_battery"},
      {"battery allowed, unknown whether", kGpu,
       [](World& w) {
         w.readings.on_battery.reset();
         w.set("rules.on_battery", true);
       },
       "rule.battery_unknown", "rules.on_battery"},
      {"battery allowed at any charge, unknown whether", kGpu,
       [](World& w) {
         w.readings.on_battery.reset();
         w.set("rules.on_battery", true);
         w.set("rules.battery_percent_min", int64_t{0});
       }},
      {"battery allowed and full", kGpu,
       [](World& w) {
         w.readings.on_battery = true;
         w.readings.battery_percent = 60.1;
         w.set("rules.on_battery", true);
       }},
      {"battery allowed and low", kGpu,
       [](World& w) {
         w.readings.on_battery = true;
         w.readings.battery_percent = 60;
         w.set("rules.on_battery", true);
       },
       "rule.battery_low", "rules.battery_percent_min"},
      {"battery not yet charged again", kGpu,
       [](World& w) {
         w.readings.on_battery = true;
         w.readings.battery_percent = 65;
         w.set("rules.on_battery", true);
         w.forbidden_by = "rules.battery_percent_min";
       },
       "rule.battery_low", "rules.battery_percent_min"},
      {"battery charged again", kGpu,
       [](World& w) {
         w.readings.on_battery = true;
         w.readings.battery_percent = 65.1;
         w.set("rules.on_battery", true);
         w.forbidden_by = "rules.battery_percent_min";
       }},
      {"battery charge unknown", kGpu,
       [](World& w) {
         w.readings.on_battery = true;
         w.readings.battery_percent.reset();
         w.set("rules.on_battery", true);
       },
       "rule.battery_charge_unknown", "rules.battery_percent_min"},
      {"power saver", kGpu, [](World& w) { w.readings.power_profile = "power-saver"; },
       "rule.power_saver", "rules.power_saver"},
      {"power saver allowed", kGpu,
       [](World& w) {
         w.readings.power_profile = "power-saver";
         w.set("rules.power_saver", true);
       }},
      {"no service of power profiles", kGpu, [](World& w) { w.readings.power_profile.reset(); }},

      {"program", kCpu,
       [](World& w) {
         w.list("rules.exclusive_programs", {"blender"});
         w.readings.programs = {"/usr/bin/blender"};
       },
       "rule.program", "rules.exclusive_programs"},
      {"program of the same beginning", kCpu,
       [](World& w) {
         w.list("rules.exclusive_programs", {"blend", "/opt/blender"});
         w.readings.programs = {"/usr/bin/blender"};
       }},
      {"program by its path", kGpu,
       [](World& w) {
         w.list("rules.exclusive_programs", {"/opt/game/bin/game"});
         w.readings.programs = {"/opt/game/bin/game"};
       },
       "rule.program", "rules.exclusive_programs"},
      {"program of the gpu", kGpu,
       [](World& w) {
         w.list("rules.exclusive_programs_gpu", {"game"});
         w.readings.programs = {"game"};
       },
       "rule.program", "rules.exclusive_programs_gpu"},
      {"program of the gpu leaves the cpu", kCpu,
       [](World& w) {
         w.list("rules.exclusive_programs_gpu", {"game"});
         w.readings.programs = {"game"};
       }},
      {"programs unknown", kGpu,
       [](World& w) {
         w.list("rules.exclusive_programs_gpu", {"game"});
         w.readings.programs.reset();
       },
       "rule.programs_unknown", "rules.exclusive_programs_gpu"},
      {"programs unknown, none named", kGpu, [](World& w) { w.readings.programs.reset(); }},
      {"game", kGpu, [](World& w) { w.readings.game_mode = true; }, "rule.game_mode",
       "rules.game_mode"},
      {"game, rule off", kGpu,
       [](World& w) {
         w.readings.game_mode = true;
         w.set("rules.game_mode", false);
       }},
      {"no service of games", kGpu, [](World& w) { w.readings.game_mode.reset(); }},

      {"cpu load over", kGpu, [](World& w) { w.readings.other_cpu_load = 0.51; }, "rule.cpu_load",
       "rules.other_cpu_load_max"},
      {"cpu load at the limit", kCpu, [](World& w) { w.readings.other_cpu_load = 0.5; }},
      {"cpu load not yet down", kCpu,
       [](World& w) {
         w.readings.other_cpu_load = 0.41;
         w.forbidden_by = "rules.other_cpu_load_max";
       },
       "rule.cpu_load", "rules.other_cpu_load_max"},
      {"cpu load down", kCpu,
       [](World& w) {
         w.readings.other_cpu_load = 0.39;
         w.forbidden_by = "rules.other_cpu_load_max";
       }},
      {"small limit lets go at half", kCpu,
       [](World& w) {
         w.set("rules.other_cpu_load_max", int64_t{4});
         w.readings.other_cpu_load = 0.019;
         w.forbidden_by = "rules.other_cpu_load_max";
       }},
      {"cpu load unknown", kCpu, [](World& w) { w.readings.other_cpu_load.reset(); },
       "rule.cpu_load_unknown", "rules.other_cpu_load_max"},
      {"cpu load no matter", kCpu,
       [](World& w) {
         w.readings.other_cpu_load.reset();
         w.set("rules.other_cpu_load_max", int64_t{100});
       }},
      {"gpu load over", kGpu, [](World& w) { w.gpu.load = 0.31; }, "rule.gpu_load",
       "rules.other_gpu_load_max"},
      {"gpu load at the limit", kGpu, [](World& w) { w.gpu.load = 0.3; }},
      {"gpu load of our own", kGpu,
       [](World& w) {
         w.gpu.load = 1;
         w.own_gpu_load = 0.9;
       }},
      {"gpu load of others beside our own", kGpu,
       [](World& w) {
         w.gpu.load = 1;
         w.own_gpu_load = 0.6;
       },
       "rule.gpu_load", "rules.other_gpu_load_max"},
      {"gpu load is not the cpu's", kCpu, [](World& w) { w.gpu.load = 1; }},
      {"gpu load unknown", kGpu, [](World& w) { w.gpu.load.reset(); }},
      {"gpu load unknown, own limit", kGpu,
       [](World& w) {
         w.gpu.load.reset();
         w.set("rules.other_gpu_load_max", int64_t{40});
       },
       "rule.gpu_load_unknown", "rules.other_gpu_load_max"},

      {"within hours", kGpu, [](World& w) { w.list("rules.compute_hours", {"wed 12:00-13:00"}); }},
      {"a minute before hours", kGpu,
       [](World& w) { w.list("rules.compute_hours", {"wed 12:01-13:00"}); }, "rule.compute_hours",
       "rules.compute_hours"},
      {"hours over", kCpu, [](World& w) { w.list("rules.compute_hours", {"wed 11:00-12:00"}); },
       "rule.compute_hours", "rules.compute_hours"},
      {"no hours at all", kCpu, [](World& w) { w.list("rules.compute_hours", {"never"}); },
       "rule.compute_hours_never", "rules.compute_hours"},
      {"hours that cannot be read", kCpu, [](World& w) { w.list("rules.compute_hours", {"noon"}); },
       "rule.compute_hours_never", "rules.compute_hours"},
      {"computing hours leave the network", kNetwork,
       [](World& w) { w.list("rules.compute_hours", {"never"}); }},
      {"network hours", kNetwork,
       [](World& w) { w.list("rules.network_hours", {"wed 13:00-14:00"}); }, "rule.network_hours",
       "rules.network_hours"},
      {"network hours leave the gpu", kGpu,
       [](World& w) { w.list("rules.network_hours", {"never"}); }},

      {"dear", kGpu, [](World& w) { w.set("energy.price_max", 0.25); }, "rule.price",
       "energy.price_max"},
      {"just cheap enough", kGpu, [](World& w) { w.set("energy.price_max", 0.30); }},
      {"cheap at this hour", kGpu,
       [](World& w) {
         w.set("energy.price_max", 0.25);
         w.list("energy.tariff", {"mon-sun 12:00-14:00 0.2"});
       }},
      {"a tariff that cannot be read", kGpu,
       [](World& w) {
         w.set("energy.price_max", 900.0);
         w.list("energy.tariff", {"cheap"});
       },
       "rule.price", "energy.price_max"},

      {"offline", kNetwork, [](World& w) { w.readings.online = false; }, "rule.offline"},
      {"offline leaves the gpu", kGpu, [](World& w) { w.readings.online = false; }},
      {"online unknown", kNetwork, [](World& w) { w.readings.online.reset(); }},
      {"metered", kNetwork, [](World& w) { w.readings.metered = true; }, "rule.metered",
       "rules.metered"},
      {"metered allowed", kNetwork,
       [](World& w) {
         w.readings.metered = true;
         w.set("rules.metered", true);
       }},
      {"metered unknown", kNetwork, [](World& w) { w.readings.metered.reset(); }},
      {"metered, mode always", kNetwork,
       [](World& w) {
         w.readings.metered = true;
         w.all_modes({Mode::kAlways, {}});
       },
       "mode.always"},
  };
  return kRows;
}

// The rules of a resource in the order in which they decide; each makes the world forbid by it.
struct Step {
  const char* why;
  Change change;
};

std::vector<Step> compute_steps() {
  return {
      {"rule.sleeping", [](World& w) { w.readings.sleeping = true; }},
      {"mode.paused",
       [](World& w) {
         w.all_modes({Mode::kPaused, {}});
       }},
      {"rule.temperature", [](World& w) { w.gpu.temperature_c = 99; }},
      {"rule.memory_low", [](World& w) { w.readings.memory_available = Bytes{0}; }},
      {"rule.energy_day",
       [](World& w) {
         w.set("energy.kwh_per_day_max", 1.0);
         w.spent.kilowatt_hours_today = 1;
       }},
      {"rule.energy_month",
       [](World& w) {
         w.set("energy.kwh_per_month_max", 1.0);
         w.spent.kilowatt_hours_month = 1;
       }},
      {"rule.leave_by", [](World& w) { w.leave_by = w.now; }},
      {"rule.owner_active", use},
      {"rule.inhibitor", [](World& w) { film(w, ""); }},
      {"rule.on_battery", [](World& w) { w.readings.on_battery = true; }},
      {"rule.power_saver", [](World& w) { w.readings.power_profile = "power-saver"; }},
      {"rule.program",
       [](World& w) {
         w.list("rules.exclusive_programs", {"game"});
         w.readings.programs = {"game"};
       }},
      {"rule.game_mode", [](World& w) { w.readings.game_mode = true; }},
      {"rule.cpu_load", [](World& w) { w.readings.other_cpu_load = 0.9; }},
      {"rule.gpu_load", [](World& w) { w.gpu.load = 0.9; }},
      {"rule.compute_hours", [](World& w) { w.list("rules.compute_hours", {"thu 01:00-02:00"}); }},
      {"rule.price", [](World& w) { w.set("energy.price_max", 0.01); }},
  };
}

std::vector<Step> network_steps() {
  return {
      {"rule.sleeping", [](World& w) { w.readings.sleeping = true; }},
      {"mode.paused",
       [](World& w) {
         w.all_modes({Mode::kPaused, {}});
       }},
      {"rule.transfer_month",
       [](World& w) {
         w.set("rules.transfer_bytes_month", int64_t{5});
         w.spent.transferred_month = Bytes{5};
       }},
      {"rule.disk_low", [](World& w) { w.readings.cache_disk_free = Bytes{0}; }},
      {"rule.offline", [](World& w) { w.readings.online = false; }},
      {"rule.metered", [](World& w) { w.readings.metered = true; }},
      {"rule.network_hours", [](World& w) { w.list("rules.network_hours", {"thu 01:00-02:00"}); }},
  };
}

constexpr Millis kHour{3'600'000};
constexpr Millis kDay{24 * 3'600'000};

Millis times(int count, Millis unit) { return {count * unit.count}; }

WatchedSpan span_of(const World& world, Millis start, Millis lasts) {
  WatchedSpan span;
  span.start = start;
  span.end = start + lasts;
  span.readings = world.readings;
  return span;
}

}  // namespace

class RulesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    qputenv("TZ", "UTC");
    tzset();
  }

  void each_rule_decides_at_its_limit_data() {
    QTest::addColumn<int>("row");
    for (size_t i = 0; i < rows().size(); ++i) QTest::newRow(rows()[i].name) << static_cast<int>(i);
  }
  void each_rule_decides_at_its_limit() {
    QFETCH(int, row);
    const Row& wanted = rows()[static_cast<size_t>(row)];
    World world;
    wanted.change(world);
    const Verdict verdict = world.decide(wanted.resource);
    QCOMPARE(verdict.why.code, wanted.why);
    QCOMPARE(verdict.rule, wanted.rule);
    const bool allowed = wanted.why == "working.idle" || wanted.why == "mode.always";
    QCOMPARE(verdict.allowed(), allowed);
    // A person is told a whole sentence, and what would change it.
    QVERIFY(find_message(verdict.why.code) != nullptr);
    QCOMPARE(verdict.remedy.empty(), allowed);
    for (const Message& message : {verdict.why, verdict.remedy}) {
      if (message.empty()) continue;
      const MessageSpec* const spec = find_message(message.code);
      QVERIFY(spec != nullptr);
      for (size_t place = 0; place < 4; ++place) {
        const bool asked = spec->text.find("{" + std::to_string(place) + "}") != spec->text.npos;
        QCOMPARE(asked, place < message.parameters.size());
      }
    }
  }

  // Goal: of two rules that forbid, the one that stands first in the header's list decides.
  void neighbours_decide_in_their_order() {
    for (const Resource resource : {kGpu, kNetwork}) {
      const std::vector<Step> steps = resource == kGpu ? compute_steps() : network_steps();
      for (size_t i = 0; i + 1 < steps.size(); ++i) {
        World world;
        steps[i + 1].change(world);
        QCOMPARE(world.decide(resource).why.code, std::string(steps[i + 1].why));
        steps[i].change(world);
        QCOMPARE(world.decide(resource).why.code, std::string(steps[i].why));
      }
    }
  }

  // Goal: "always" is stopped by what stands before it in the list and by nothing else.
  void always_overrides_rules_but_no_limit() {
    bool before = true;
    for (const Step& step : compute_steps()) {
      if (std::string(step.why) == "rule.owner_active") before = false;
      if (std::string(step.why) == "mode.paused") continue;
      World world;
      world.all_modes({Mode::kAlways, {}});
      step.change(world);
      QVERIFY2(world.decide(kGpu).allowed() == !before, step.why);
    }
  }

  void modes_end_by_themselves() {
    World world;
    world.modes[1] = {Mode::kPaused, world.now + Millis{1}};
    const Verdict paused = world.decide(kCpu);
    QCOMPARE(paused.activity, Activity::kPaused);
    QCOMPARE(paused.why.code, std::string("mode.paused_until"));
    QCOMPARE(paused.changes_at, std::optional(world.now + Millis{1}));
    QVERIFY(world.decide(kGpu).allowed());  // Only the one that was paused.
    world.modes[1].until = world.now;
    QCOMPARE(world.decide(kCpu).why.code, std::string("working.idle"));

    // The clock was put back an hour: the pause lasts until its wall time, and says so.
    world.now = world.now - kHour;
    QCOMPARE(world.decide(kCpu).why.code, std::string("mode.paused_until"));

    use(world);
    world.modes[1] = {Mode::kAlways, world.now + Millis{1}};
    QVERIFY(world.decide(kCpu).allowed());
    world.modes[1].until = world.now;
    QCOMPARE(world.decide(kCpu).why.code, std::string("rule.owner_active"));

    world.modes[1] = {Mode::kPaused, {}};
    QCOMPARE(world.decide(kCpu).why.code, std::string("mode.paused"));
    QVERIFY(!world.decide(kCpu).changes_at);
  }

  void verdicts_say_when_they_change() {
    World world;
    QVERIFY(!world.decide(kGpu).changes_at);
    world.readings.idle = Millis{60'000};
    QCOMPARE(world.decide(kGpu).changes_at, std::optional(world.now + Millis{120'000}));

    world = World();
    world.list("rules.compute_hours", {"mon-sun 22:00-06:00"});
    QCOMPARE(world.decide(kGpu).changes_at, std::optional(world.now + times(10, kHour)));
    world.now += times(11, kHour) + Millis{90'500};  // In the window, and within a minute.
    world.local = local_time(world.now);
    QCOMPARE(world.decide(kGpu).changes_at,
             std::optional(world.now - Millis{90'500} + times(7, kHour)));
    world.leave_by = world.now + kHour;  // Sooner than the window's end.
    QCOMPARE(world.decide(kGpu).changes_at, world.leave_by);

    world = World();
    world.set("energy.price_max", 0.25);
    world.list("energy.tariff", {"mon-sun 13:00-14:00 0.2"});
    QCOMPARE(world.decide(kCpu).changes_at, std::optional(world.now + kHour));
    world.now += kHour;
    world.local = local_time(world.now);
    QVERIFY(world.decide(kCpu).allowed());
    QCOMPARE(world.decide(kCpu).changes_at, std::optional(world.now + kHour));

    world = World();
    world.set("energy.kwh_per_day_max", 1.0);
    world.spent.kilowatt_hours_today = 1;
    QCOMPARE(world.decide(kCpu).changes_at, std::optional(world.now + times(12, kHour)));
    world.set("energy.kwh_per_day_max", 0.0);
    world.set("energy.kwh_per_month_max", 1.0);
    world.spent.kilowatt_hours_month = 1;  // From the 8th of July, noon, to the 1st of August.
    QCOMPARE(world.decide(kCpu).changes_at,
             std::optional(world.now + times(12, kHour) + times(23, kDay)));
  }

  // Goal: a window at a local hour is told right when summer time begins or ends before it.
  void summer_time_moves_no_hours() {
    qputenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3");  // Berlin, without its files.
    tzset();
    const Millis spring{1'774'735'200'000};  // 2026-03-28 23:00 local: 02:00 becomes 03:00.
    QCOMPARE(local_time(spring).minute_of_day, 23 * 60);
    const Millis after = after_local_minutes(spring, 7 * 60);
    QCOMPARE(local_time(after).minute_of_day, 6 * 60);
    QCOMPARE(after, spring + times(6, kHour));

    const Millis autumn{1'792'879'200'000};  // The evening before 03:00 becomes 02:00.
    const int from = local_time(autumn).minute_of_day;
    const Millis late = after_local_minutes(autumn, 24 * 60 - from + 6 * 60);
    QCOMPARE(local_time(late).minute_of_day, 6 * 60);
    QCOMPARE(local_time(late).day, local_time(autumn).day + 1);

    // An hour that the night skips is told early, never in the past.
    for (int minutes = 0; minutes < 300; ++minutes) {
      const Millis told = after_local_minutes(spring, minutes);
      QVERIFY(told >= spring && told <= spring + Millis{int64_t{minutes} * 60'000});
    }
    QCOMPARE(after_local_minutes(spring, 0), spring);
    qputenv("TZ", "UTC");
    tzset();
  }

  void what_if_counts_time_under_both_rules() {
    World world;
    const Millis start = world.now;
    world.readings.idle = Millis{0};  // An hour without input: 57 minutes count as away.
    const WatchedSpan spans[] = {span_of(world, start, kHour)};
    Settings changed(settings_table());
    QVERIFY(changed.set("rules.idle_seconds", int64_t{600}).ok());
    const WhatIfTimes times_of_gpu = what_if(spans, world.settings, changed);
    for (const Resource resource : {kGpu, kCpu}) {
      const WhatIfTime& time = times_of_gpu.resources[static_cast<int>(resource)];
      QCOMPARE(time.known, kHour);
      QCOMPARE(time.allowed, times(57, Millis{60'000}));
      QCOMPARE(time.would_be, times(50, Millis{60'000}));
    }
    QCOMPARE(times_of_gpu.resources[2].allowed, kHour);

    // Over days in which nothing but the clock moves: nights, and then cheap hours of nights.
    world.readings.idle = kHour;
    world.list("rules.compute_hours", {"mon-sun 22:00-06:00"});
    changed = world.settings;
    QVERIFY(changed.set("energy.price_max", 0.25).ok());
    QVERIFY(changed.set("energy.tariff", std::vector<std::string>{"mon-sun 00:00-05:00 0.2"}).ok());
    const WatchedSpan days[] = {span_of(world, start, times(4, kDay))};  // From noon to noon.
    const WhatIfTime nights = what_if(days, world.settings, changed).resources[1];
    QCOMPARE(nights.known, times(4, kDay));
    QCOMPARE(nights.allowed, times(4 * 8, kHour));
    QCOMPARE(nights.would_be, times(4 * 5, kHour));
  }

  void what_if_remembers_what_paused_within_a_span_only() {
    World world;
    world.readings.gpus = {world.gpu};
    (*world.readings.gpus)[0].temperature_c = 90;
    std::vector<WatchedSpan> spans = {span_of(world, world.now, Millis{60'000})};
    (*world.readings.gpus)[0].temperature_c = 80;  // Between both limits.
    spans.push_back(span_of(world, spans[0].end, Millis{30'000}));
    spans.push_back(span_of(world, spans[1].end + kHour, Millis{60'000}));
    spans.push_back(span_of(world, spans[2].end, Millis{-5}));
    const WhatIfTime time = what_if(spans, world.settings, world.settings).resources[0];
    QCOMPARE(time.known, Millis{150'000});
    QCOMPARE(time.allowed, Millis{60'000});  // After the gap nothing is remembered.
    QCOMPARE(time.would_be, time.allowed);

    // One cool GPU is enough.
    world.readings.gpus->push_back(world.gpu);
    spans = {span_of(world, world.now, Millis{60'000})};
    (*spans[0].readings.gpus)[0].temperature_c = 99;
    QCOMPARE(what_if(spans, world.settings, world.settings).resources[0].allowed, Millis{60'000});
    // A file's nonsense ends: a span of ages is cut.
    spans[0].end = Millis{int64_t{1} << 60};
    QVERIFY(what_if(spans, world.settings, world.settings).resources[0].known <= times(32, kDay));
  }

  void percentiles_are_of_the_last_thousand() {
    YieldTimes yields;
    QCOMPARE(yields.summary(Millis{1}, Millis{1}).count, 0u);
    QCOMPARE(yields.summary(Millis{1}, Millis{1}).stop_p99, Millis{0});
    yields.add(Millis{-3}, Millis{7});
    QCOMPARE(yields.summary(Millis{1}, Millis{7}).stop_p50, Millis{0});
    QCOMPARE(yields.summary(Millis{1}, Millis{7}).late, 0u);
    QCOMPARE(yields.summary(Millis{1}, Millis{6}).late, 1u);
    // 2,000 more: the first thousand of them is forgotten.
    for (int i = 1; i <= 2'000; ++i) yields.add(Millis{i}, Millis{2 * i});
    const YieldSummary summary = yields.summary(Millis{1'990}, Millis{100'000});
    QCOMPARE(summary.count, 1'000u);
    QCOMPARE(summary.stop_p50, Millis{1'500});
    QCOMPARE(summary.stop_p99, Millis{1'990});
    QCOMPARE(summary.free_p50, Millis{3'000});
    QCOMPARE(summary.free_p99, Millis{3'980});
    QCOMPARE(summary.late, 10u);
    QCOMPARE(percentile({Millis{5}}, 0), Millis{5});
    QCOMPARE(percentile({Millis{5}, Millis{9}}, 50), Millis{5});
    QCOMPARE(percentile({Millis{5}, Millis{9}}, 51), Millis{9});
  }

  void texts_of_settings_are_checked_with_key_and_place() {
    QVERIFY(validate_rules(Settings(settings_table())).ok());
    struct Case {
      const char* key;
      SettingValue value;
      const char* said;  // Null: accepted.
    };
    using List = std::vector<std::string>;
    const Case cases[] = {
        {"rules.compute_hours", List{"mon-fri 22:00-06:00", "sat 00:00-24:00"}, nullptr},
        {"rules.compute_hours", List{"mon 08:00-17:00", "mon 8-17"}, "'mon 8-17'"},
        {"rules.compute_hours", List{"mon 8-17"}, "character 5"},
        {"rules.network_hours", List{"someday 08:00-09:00"}, "rules.network_hours: "},
        {"energy.tariff", List{"mon-sun 22:00-06:00 0.21"}, nullptr},
        {"energy.tariff", List{"mon-sun 22:00-06:00"}, "energy.tariff: "},
        {"remote.listen", std::string("0.0.0.0:7411"), nullptr},
        {"remote.listen", std::string("[::]:7411"), nullptr},
        {"remote.listen", std::string("0.0.0.0"), "character 8"},
        {"remote.listen", std::string("::1:7411"), "character 1"},
        {"remote.listen", std::string("host:0"), "port"},
        {"network.direct_listen", std::string("0.0.0.0:7412"), nullptr},
        {"network.direct_listen", std::string("host:0"), "port"},
        {"remote.listen", std::string("host:65536"), "port"},
        {"remote.listen", std::string("host:65535"), nullptr},
        {"remote.listen", std::string("[::1:7411"), "bracket"},
        {"remote.listen", std::string(":7411"), "address"},
        {"rules.exclusive_programs", List{"game", ""}, "rules.exclusive_programs"},
        {"rules.exclusive_programs_gpu", List{"ga\nme"}, "rules.exclusive_programs_gpu"},
        {"energy.currency", std::string(), "energy.currency"},
        {"energy.currency", std::string("kr"), nullptr},
    };
    for (const Case& one : cases) {
      Settings settings(settings_table());
      QVERIFY(settings.set(one.key, one.value).ok());
      const Result<void> valid = validate_rules(settings);
      QVERIFY2(valid.ok() == (one.said == nullptr), one.key);
      if (one.said == nullptr) continue;
      QCOMPARE(valid.error().code, ErrorCode::kInvalid);
      QVERIFY2(valid.error().message.find(one.said) != std::string::npos,
               valid.error().message.c_str());
      QVERIFY2(valid.error().message.starts_with(one.key), valid.error().message.c_str());
    }
  }
};

QTEST_GUILESS_MAIN(RulesTest)
#include "rules_test.moc"
