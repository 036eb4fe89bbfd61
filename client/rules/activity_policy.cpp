#include "client/rules/activity_policy.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/check.h"

namespace shoal::client {
namespace {

// How far a figure must come back over a limit that paused before the limit lets go.
constexpr double kTemperatureStep = 10;   // Degrees, as the setting says.
constexpr double kLoadStep = 0.10;        // Of all; at most half the limit.
constexpr double kBatteryStep = 5;        // Percent.
constexpr int64_t kFreeStepDivisor = 10;  // A tenth of the limit more must be free.

// Minutes between local time and UTC at a moment.
int64_t offset_at(Millis wall) {
  const LocalTime local = local_time(wall);
  const int64_t minutes = wall.count / 60'000 - (wall.count % 60'000 < 0 ? 1 : 0);
  return local.day * kMinutesOfDay + local.minute_of_day - minutes;
}

int minutes_to_midnight(const LocalTime& local) { return kMinutesOfDay - local.minute_of_day; }

int minutes_to_next_month(const LocalTime& local) {
  using namespace std::chrono;
  const auto last =
      year_month_day_last(year(local.year), month_day_last(month(unsigned(local.month))));
  const int days = static_cast<int>(unsigned(last.day())) - local.day_of_month;
  return std::max(days, 0) * kMinutesOfDay + minutes_to_midnight(local);
}

bool names_program(const std::string& setting, const std::string& running) {
  if (setting == running) return true;
  return setting.find('/') == std::string::npos &&
         running.substr(running.rfind('/') + 1) == setting;
}

// Every rule is a method that answers with the verdict that forbids, or nothing. The order in
// decide() is the order of the header's list.
class Judge {
 public:
  Judge(const PolicyInput& input, Resource resource, const GpuReading* gpu, const RuleTexts& texts)
      : input_(input),
        settings_(input.settings),
        readings_(input.readings),
        resource_(resource),
        gpu_(gpu),
        texts_(texts) {}

  Verdict verdict() const {
    if (readings_.sleeping) return wait("rule.sleeping", "");
    const ModeChoice& choice = input_.modes[static_cast<int>(resource_)];
    const Mode mode = mode_at(choice, input_.now);
    if (mode == Mode::kPaused) return paused(choice);
    if (auto forbids = hard_limits()) return *forbids;
    if (mode == Mode::kAlways) {
      Verdict allowed = allow();
      allowed.why = {"mode.always", {}};
      allowed.changes_at = sooner(choice.until, leaves_at());
      return allowed;
    }
    if (auto forbids = resource_ == Resource::kNetwork ? network_rules() : compute_rules()) {
      return *forbids;
    }
    return allow();
  }

 private:
  using Forbids = std::optional<Verdict>;

  Forbids hard_limits() const {
    if (resource_ == Resource::kNetwork) {
      if (auto forbids = transfer_cap()) return forbids;
      return disk();
    }
    if (auto forbids = temperature()) return forbids;
    if (auto forbids = memory()) return forbids;
    if (auto forbids = energy_caps()) return forbids;
    return leave_by();
  }

  Forbids compute_rules() const {
    if (auto forbids = owner()) return forbids;
    if (auto forbids = inhibitors()) return forbids;
    if (auto forbids = battery()) return forbids;
    if (auto forbids = power_saver()) return forbids;
    if (auto forbids = programs()) return forbids;
    if (auto forbids = game_mode()) return forbids;
    if (auto forbids = cpu_load()) return forbids;
    if (auto forbids = gpu_load()) return forbids;
    if (auto forbids = hours("rules.compute_hours", texts_.compute_hours, "rule.compute_hours")) {
      return forbids;
    }
    return price();
  }

  Forbids network_rules() const {
    if (readings_.online == false) {
      Verdict verdict = wait("rule.offline", "");
      verdict.activity = Activity::kOffline;
      return verdict;
    }
    if (!settings_.flag("rules.metered") && readings_.metered == true) {
      return wait("rule.metered", "rules.metered");
    }
    return hours("rules.network_hours", texts_.network_hours, "rule.network_hours");
  }

  // The sentence, and its remedy where the catalogue has one.
  Verdict wait(const std::string& code, std::string_view rule,
               std::vector<MessageParameter> parameters = {},
               std::vector<MessageParameter> remedy_parameters = {}) const {
    Verdict verdict;
    verdict.activity = Activity::kWaiting;
    verdict.why = {code, std::move(parameters)};
    if (find_message(code + ".remedy") != nullptr) {
      verdict.remedy = {code + ".remedy", std::move(remedy_parameters)};
    }
    verdict.rule = rule;
    return verdict;
  }

  Verdict paused(const ModeChoice& choice) const {
    Verdict verdict = choice.until ? wait("mode.paused_until", "", {WallTime{*choice.until}})
                                   : wait("mode.paused", "");
    verdict.activity = Activity::kPaused;
    verdict.remedy = {"mode.paused.remedy", {}};
    verdict.changes_at = choice.until;
    return verdict;
  }

  // Allowed, and until when as far as the clock alone says.
  Verdict allow() const {
    Verdict verdict;
    verdict.activity = Activity::kWorking;
    verdict.why = {"working.idle", {}};
    verdict.changes_at = leaves_at();
    const bool network = resource_ == Resource::kNetwork;
    const WeekHours& week = network ? texts_.network_hours : texts_.compute_hours;
    verdict.changes_at = sooner(
        verdict.changes_at, in_minutes(week.until_change(local().weekday, local().minute_of_day)));
    if (const double limit = price_max(); !network && limit > 0) {
      verdict.changes_at = sooner(
          verdict.changes_at,
          in_minutes(texts_.tariff.until_crossing(local().weekday, local().minute_of_day, limit)));
    }
    return verdict;
  }

  // --- Hard limits

  Forbids temperature() const {
    const bool is_gpu = resource_ == Resource::kGpu;
    const std::string_view key = is_gpu ? "rules.gpu_temperature_max" : "rules.cpu_temperature_max";
    const std::optional<double> now = is_gpu
                                          ? (gpu_ == nullptr ? std::nullopt : gpu_->temperature_c)
                                          : readings_.cpu_temperature_c;
    const auto most = static_cast<double>(settings_.integer(key));
    if (!now || !std::isfinite(*now)) {
      return forbid_if(is_owners_own(key), "rule.temperature_unknown", key, {Celsius{most}});
    }
    const double resumes = most - kTemperatureStep;
    if (*now >= most || (paused_by(key) && *now > resumes)) {
      return wait("rule.temperature", key, {Celsius{*now}}, {Celsius{resumes}});
    }
    return std::nullopt;
  }

  Forbids memory() const {
    return too_little(readings_.memory_available, "rules.memory_free_bytes_min", "rule.memory_low",
                      "rule.memory_unknown");
  }

  Forbids disk() const {
    return too_little(readings_.cache_disk_free, "cache.free_bytes_min", "rule.disk_low",
                      "rule.disk_unknown");
  }

  Forbids too_little(const std::optional<Bytes>& free, std::string_view key, const char* low,
                     const char* unknown) const {
    const Bytes least{settings_.integer(key)};
    if (least.count == 0) return std::nullopt;
    if (!free) return forbid_if(is_owners_own(key), unknown, key, {least});
    const Bytes resumes{least.count + least.count / kFreeStepDivisor};
    if (*free < least || (paused_by(key) && *free < resumes)) {
      return wait(low, key, {*free}, {resumes});
    }
    return std::nullopt;
  }

  Forbids energy_caps() const {
    const double day = settings_.real("energy.kwh_per_day_max");
    if (day > 0 && input_.spent.kilowatt_hours_today >= day) {
      Verdict verdict = wait("rule.energy_day", "energy.kwh_per_day_max",
                             {KilowattHours{input_.spent.kilowatt_hours_today}});
      verdict.changes_at = in_minutes(minutes_to_midnight(local()));
      return verdict;
    }
    const double month = settings_.real("energy.kwh_per_month_max");
    if (month > 0 && input_.spent.kilowatt_hours_month >= month) {
      Verdict verdict = wait("rule.energy_month", "energy.kwh_per_month_max",
                             {KilowattHours{input_.spent.kilowatt_hours_month}});
      verdict.changes_at = in_minutes(minutes_to_next_month(local()));
      return verdict;
    }
    return std::nullopt;
  }

  Forbids transfer_cap() const {
    const Bytes most{settings_.integer("rules.transfer_bytes_month")};
    if (most.count == 0 || input_.spent.transferred_month < most) return std::nullopt;
    Verdict verdict =
        wait("rule.transfer_month", "rules.transfer_bytes_month", {input_.spent.transferred_month});
    verdict.changes_at = in_minutes(minutes_to_next_month(local()));
    return verdict;
  }

  Forbids leave_by() const {
    if (!input_.leave_by || *input_.leave_by > input_.now) return std::nullopt;
    return wait("rule.leave_by", "", {WallTime{*input_.leave_by}});
  }

  // --- The owner's rules

  Forbids owner() const {
    const std::string_view key =
        resource_ == Resource::kGpu ? "rules.gpu_when_in_use" : "rules.cpu_when_in_use";
    if (settings_.flag(key) || readings_.locked == true) return std::nullopt;
    const Millis away{settings_.integer("rules.idle_seconds") * 1000};
    if (!readings_.idle) {
      const std::string& source = settings_.text("rules.idle_source");
      if (source == "auto") return wait("rule.owner_unknown", "rules.idle_source");
      return wait("rule.owner_source_silent", "rules.idle_source", {source});
    }
    const Millis idle = std::max(*readings_.idle, Millis{0});
    if (idle >= away) return std::nullopt;
    Verdict verdict = wait("rule.owner_active", key, {idle}, {away});
    verdict.changes_at = input_.now + (away - idle);
    return verdict;
  }

  Forbids inhibitors() const {
    if (!settings_.flag("rules.inhibitors")) return std::nullopt;
    if (!readings_.inhibitors) return wait("rule.inhibitors_unknown", "rules.inhibitors");
    if (readings_.inhibitors->empty()) return std::nullopt;
    const Inhibitor& first = readings_.inhibitors->front();
    if (first.why.empty()) return wait("rule.inhibitor", "rules.inhibitors", {first.who});
    return wait("rule.inhibitor_why", "rules.inhibitors", {first.who, first.why});
  }

  Forbids battery() const {
    const bool may = settings_.flag("rules.on_battery");
    if (!readings_.on_battery) {
      const bool matters = !may || settings_.integer("rules.battery_percent_min") > 0;
      return forbid_if(matters, "rule.battery_unknown", "rules.on_battery");
    }
    if (!*readings_.on_battery) return std::nullopt;
    if (!may) return wait("rule.on_battery", "rules.on_battery");
    constexpr std::string_view kKey = "rules.battery_percent_min";
    const auto least = static_cast<double>(settings_.integer(kKey));
    if (least == 0) return std::nullopt;
    if (!readings_.battery_percent || !std::isfinite(*readings_.battery_percent)) {
      return wait("rule.battery_charge_unknown", kKey);
    }
    const double resumes = std::min(least + (paused_by(kKey) ? kBatteryStep : 0), 100.0);
    if (*readings_.battery_percent > resumes) return std::nullopt;
    return wait("rule.battery_low", kKey, {Percent{*readings_.battery_percent}}, {Percent{least}});
  }

  Forbids power_saver() const {
    const bool saves = readings_.power_profile == "power-saver";
    return forbid_if(saves && !settings_.flag("rules.power_saver"), "rule.power_saver",
                     "rules.power_saver");
  }

  Forbids programs() const {
    if (auto forbids = programs("rules.exclusive_programs")) return forbids;
    return resource_ == Resource::kGpu ? programs("rules.exclusive_programs_gpu") : std::nullopt;
  }

  Forbids programs(std::string_view key) const {
    const std::vector<std::string>& wanted = settings_.list(key);
    if (wanted.empty()) return std::nullopt;
    if (!readings_.programs) return wait("rule.programs_unknown", key);
    for (const std::string& running : *readings_.programs) {
      for (const std::string& setting : wanted) {
        if (names_program(setting, running)) return wait("rule.program", key, {setting}, {setting});
      }
    }
    return std::nullopt;
  }

  Forbids game_mode() const {
    const bool plays = readings_.game_mode == true;
    return forbid_if(plays && settings_.flag("rules.game_mode"), "rule.game_mode",
                     "rules.game_mode");
  }

  Forbids cpu_load() const {
    constexpr std::string_view kKey = "rules.other_cpu_load_max";
    const double most = static_cast<double>(settings_.integer(kKey)) / 100;
    if (most >= 1) return std::nullopt;
    if (!readings_.other_cpu_load || !std::isfinite(*readings_.other_cpu_load)) {
      return wait("rule.cpu_load_unknown", kKey);
    }
    return too_much_load(*readings_.other_cpu_load, most, kKey, "rule.cpu_load");
  }

  Forbids gpu_load() const {
    if (resource_ != Resource::kGpu) return std::nullopt;
    constexpr std::string_view kKey = "rules.other_gpu_load_max";
    const double most = static_cast<double>(settings_.integer(kKey)) / 100;
    if (most >= 1) return std::nullopt;
    if (gpu_ == nullptr || !gpu_->load || !std::isfinite(*gpu_->load)) {
      return forbid_if(is_owners_own(kKey), "rule.gpu_load_unknown", kKey);
    }
    const double others = std::clamp(*gpu_->load - input_.own_gpu_load, 0.0, 1.0);
    return too_much_load(others, most, kKey, "rule.gpu_load");
  }

  Forbids too_much_load(double load, double most, std::string_view key, const char* code) const {
    const double resumes = most - std::min(kLoadStep, most / 2);
    if (load > most || (paused_by(key) && load > resumes)) {
      return wait(code, key, {Percent{load * 100}}, {Percent{resumes * 100}});
    }
    return std::nullopt;
  }

  Forbids hours(std::string_view key, const WeekHours& week, const char* code) const {
    if (week.contains(local().weekday, local().minute_of_day)) return std::nullopt;
    const auto begins = in_minutes(week.until_change(local().weekday, local().minute_of_day));
    if (!begins) return wait(std::string(code) + "_never", key);
    Verdict verdict = wait(code, key, {WallTime{*begins}});
    verdict.changes_at = begins;
    return verdict;
  }

  Forbids price() const {
    const double most = price_max();
    if (most <= 0) return std::nullopt;
    const double price = texts_.tariff.price_at(local().weekday, local().minute_of_day);
    if (price <= most) return std::nullopt;
    Verdict verdict = wait("rule.price", "energy.price_max", {money(price), money(most)});
    verdict.changes_at =
        in_minutes(texts_.tariff.until_crossing(local().weekday, local().minute_of_day, most));
    return verdict;
  }

  // --- Helpers

  Forbids forbid_if(bool condition, const char* code, std::string_view key,
                    std::vector<MessageParameter> parameters = {}) const {
    if (!condition) return std::nullopt;
    return wait(code, key, std::move(parameters));
  }

  const LocalTime& local() const { return input_.local; }
  std::string money(double amount) const {
    char number[32];
    std::snprintf(number, sizeof number, "%.2f ", amount);
    return number + settings_.text("energy.currency");
  }
  double price_max() const { return settings_.real("energy.price_max"); }

  bool paused_by(std::string_view key) const { return input_.forbidden_by == key; }

  bool is_owners_own(std::string_view key) const {
    const auto spec = std::ranges::find(settings_.table(), key, &SettingSpec::key);
    return spec != settings_.table().end() && settings_.value(key) != spec->fallback;
  }

  std::optional<Millis> leaves_at() const {
    return resource_ == Resource::kNetwork ? std::nullopt : input_.leave_by;
  }

  std::optional<Millis> in_minutes(std::optional<int> minutes) const {
    if (!minutes) return std::nullopt;
    return after_local_minutes(input_.now, *minutes);
  }

  static std::optional<Millis> sooner(std::optional<Millis> a, std::optional<Millis> b) {
    if (!a || !b) return a ? a : b;
    return std::min(*a, *b);
  }

  const PolicyInput& input_;
  const Settings& settings_;
  const Readings& readings_;
  Resource resource_;
  const GpuReading* gpu_;
  const RuleTexts& texts_;
};

}  // namespace

RuleTexts RuleTexts::of(const Settings& settings) {
  const auto hours = [&settings](std::string_view key) {
    Result<WeekHours> parsed = WeekHours::parse(settings.list(key));
    return parsed.ok() ? std::move(parsed).value() : WeekHours::never();
  };
  Result<Tariff> tariff =
      Tariff::parse(settings.real("energy.price_per_kwh"), settings.list("energy.tariff"));
  return {hours("rules.compute_hours"), hours("rules.network_hours"),
          tariff.ok() ? std::move(tariff).value()
                      : Tariff::flat(std::numeric_limits<double>::infinity())};
}

Mode mode_at(const ModeChoice& choice, Millis now) {
  return choice.until && *choice.until <= now ? Mode::kByRules : choice.mode;
}

Millis after_local_minutes(Millis now, int minutes) {
  SHOAL_CHECK(minutes >= 0);
  const int64_t into_minute = (now.count % 60'000 + 60'000) % 60'000;
  const int64_t plain = now.count - into_minute + int64_t{minutes} * 60'000;
  // Where summer time begins or ends on the way, the clock has gone on by more or less.
  const int64_t turned = offset_at(Millis{plain}) - offset_at(now);
  const int64_t turned_back = plain - turned * 60'000;
  if (offset_at(Millis{turned_back}) == offset_at(Millis{plain})) return Millis{turned_back};
  // The clock skips the time that was asked for: better told early than late.
  return Millis{std::max(turned_back, now.count - into_minute + std::min(minutes, 1) * 60'000)};
}

Verdict decide(const PolicyInput& input, Resource resource, const GpuReading* gpu) {
  if (input.texts != nullptr) return Judge(input, resource, gpu, *input.texts).verdict();
  const RuleTexts texts = RuleTexts::of(input.settings);
  return Judge(input, resource, gpu, texts).verdict();
}

}  // namespace shoal::client
