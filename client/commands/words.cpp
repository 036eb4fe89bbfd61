#include "client/commands/words.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/clock.h"
#include "client/rules/activity_policy.h"

namespace shoal::client {
namespace {

constexpr Millis kDurationMax{int64_t{366} * 86'400'000};

template <class Enum, size_t kCount>
const char* word(const char* const (&words)[kCount], Enum value) {
  const auto index = static_cast<size_t>(value);
  return index < kCount ? words[index] : "unknown";  // Of a newer program.
}

// All of `text` as a whole number of so many digits at most; none: it is no such number.
std::optional<int> digits(std::string_view text, size_t count_max) {
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = code == std::errc() && end == text.data() + text.size();
  if (!whole || text.size() > count_max || text.starts_with('-')) return std::nullopt;
  return value;
}

// "14:30" as minutes of a day.
std::optional<int> minute_of_day(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::optional<int> hour = digits(text.substr(0, colon), 2);
  const std::optional<int> minute = digits(text.substr(colon + 1), 2);
  if (!hour || !minute || *hour > 23 || *minute > 59 || text.size() - colon != 3) {
    return std::nullopt;
  }
  return *hour * 60 + *minute;
}

// Remedies whose sentence in the catalogue (schema/message.cpp) sends its reader to a page or a
// button of the window: with the command that does the same.
constexpr MessageSpec kRemedies[] = {
    {"attention.no_device.remedy", "Lend one with: shoal-client lend DEVICE on"},
    {"batch.denied.remedy", "Allow a kind of work with: shoal-client consent allow MODEL"},
    {"device.not_lent.remedy", "Lend it with: shoal-client lend DEVICE on"},
    {"mode.paused.remedy", "Resume with: shoal-client resume"},
    {"offline.not_attached.remedy",
     "Join one with the URL that you were given: shoal-client attach URL"},
    {"records.consents_lost.remedy",
     "Look through them with 'shoal-client consent list', then choose anew what becomes of new "
     "kinds with 'shoal-client rules set consent.new_classes'."},
    {"rule.battery_charge_unknown.remedy",
     "Plug it in, or set the lowest charge to 0 with 'shoal-client rules set "
     "rules.battery_percent_min 0'."},
    {"rule.battery_unknown.remedy",
     "If it has no battery, allow work on battery with 'shoal-client rules set rules.on_battery "
     "true' and set the lowest charge to 0 with 'shoal-client rules set "
     "rules.battery_percent_min 0'."},
    {"rule.compute_hours.remedy",
     "Change the hours with 'shoal-client rules set rules.compute_hours', or choose 'shoal-client "
     "mode always'."},
    {"rule.compute_hours_never.remedy",
     "Choose hours with 'shoal-client rules set rules.compute_hours'."},
    {"rule.cpu_load.remedy",
     "Work starts when they use less than {0}. The limit is the setting "
     "rules.other_cpu_load_max."},
    {"rule.cpu_load_unknown.remedy",
     "Set the limit for other programs to 100 % with 'shoal-client rules set "
     "rules.other_cpu_load_max 100' to work without it."},
    {"rule.disk_low.remedy",
     "Work starts when {0} are free. Make room, or lower the limit with 'shoal-client rules set "
     "cache.free_bytes_min'."},
    {"rule.disk_unknown.remedy",
     "Set that limit to its default or to 0 with 'shoal-client rules set cache.free_bytes_min' to "
     "work without it."},
    {"rule.energy_day.remedy",
     "Work starts after midnight, or when you allow more with 'shoal-client rules set "
     "energy.kwh_per_day_max'."},
    {"rule.energy_month.remedy",
     "Work starts with the next month, or when you allow more with 'shoal-client rules set "
     "energy.kwh_per_month_max'."},
    {"rule.gpu_load.remedy",
     "Work starts when they use less than {0}. The limit is the setting "
     "rules.other_gpu_load_max."},
    {"rule.gpu_load_unknown.remedy",
     "Set the limit for other programs to its default or to 100 % with 'shoal-client rules set "
     "rules.other_gpu_load_max' to work without it."},
    {"rule.inhibitor.remedy",
     "Work starts when it lets go. Or do not wait for it, with 'shoal-client rules set "
     "rules.inhibitors false'."},
    {"rule.inhibitor_why.remedy",
     "Work starts when it lets go. Or do not wait for it, with 'shoal-client rules set "
     "rules.inhibitors false'."},
    {"rule.inhibitors_unknown.remedy",
     "Do not wait for such programs, with 'shoal-client rules set rules.inhibitors false', to work "
     "without it."},
    {"rule.leave_by.remedy",
     "Choose another time to leave by, or none, with: shoal-client leave-by TIME|off"},
    {"rule.memory_low.remedy",
     "Work starts when {0} are free. Close programs, or lower the limit with 'shoal-client rules "
     "set rules.memory_free_bytes_min'."},
    {"rule.memory_unknown.remedy",
     "Set that limit to its default or to 0 with 'shoal-client rules set "
     "rules.memory_free_bytes_min' to work without it."},
    {"rule.metered.remedy",
     "Use another network, or allow metered ones with 'shoal-client rules set rules.metered "
     "true'."},
    {"rule.network_hours.remedy",
     "Change the hours with 'shoal-client rules set rules.network_hours', or choose 'shoal-client "
     "mode always'."},
    {"rule.network_hours_never.remedy",
     "Choose hours with 'shoal-client rules set rules.network_hours'."},
    {"rule.on_battery.remedy",
     "Plug it in, or allow work on battery with 'shoal-client rules set rules.on_battery true'."},
    {"rule.owner_active.remedy",
     "Work starts after {0} without input. Or allow work while the computer is in use, with "
     "'shoal-client rules set rules.cpu_when_in_use true' or 'rules.gpu_when_in_use'."},
    {"rule.owner_source_silent.remedy",
     "Choose 'auto' or another source with 'shoal-client rules set rules.idle_source', or choose "
     "'shoal-client mode always'."},
    {"rule.owner_unknown.remedy",
     "Choose 'shoal-client mode always', or allow work while the computer is in use, with "
     "'shoal-client rules set rules.cpu_when_in_use true' or 'rules.gpu_when_in_use'."},
    {"rule.power_saver.remedy",
     "Choose another power profile, or allow work while saving power with 'shoal-client rules set "
     "rules.power_saver true'."},
    {"rule.price.remedy",
     "Work starts when it is cheaper. The limit is the setting energy.price_max; for the prices "
     "see 'shoal-client rules list'."},
    {"rule.programs_unknown.remedy",
     "Take the programs off the list with 'shoal-client rules set rules.exclusive_programs' or "
     "'rules.exclusive_programs_gpu' to work without it."},
    {"rule.temperature.remedy",
     "Work starts at {0}. Let it cool, or raise the limit with 'shoal-client rules set'."},
    {"rule.temperature_unknown.remedy",
     "Set that limit to its default with 'shoal-client rules set' to work without it."},
    {"rule.transfer_month.remedy",
     "Work starts with the next month, or when you allow more with 'shoal-client rules set "
     "rules.transfer_bytes_month'."},
    {"standing.denied.remedy", "Allow a kind of work with: shoal-client consent allow MODEL"},
};

Error refuse(std::string_view text, const std::string& wanted) {
  return {ErrorCode::kInvalid, "'" + std::string(text) + "' is not " + wanted};
}

}  // namespace

Result<Millis> parse_duration(std::string_view text) {
  const std::string wanted = "a duration such as 90s, 15m, 1h or 2d";
  if (text.size() < 2) return refuse(text, wanted);
  int64_t unit = 0;
  switch (text.back()) {
    case 's': unit = 1'000; break;
    case 'm': unit = 60'000; break;
    case 'h': unit = 3'600'000; break;
    case 'd': unit = 86'400'000; break;
    default: return refuse(text, wanted);
  }
  const std::optional<int> count = digits(text.substr(0, text.size() - 1), 9);
  if (!count) return refuse(text, wanted);
  const Millis duration{*count * unit};
  if (duration.count == 0 || duration > kDurationMax) {
    return refuse(text, "a duration from one second to a year");
  }
  return duration;
}

Result<Millis> parse_next_time(std::string_view text, Millis now) {
  const std::optional<int> wanted = minute_of_day(text);
  if (!wanted) return refuse(text, "a time such as 18:00");
  int minutes = *wanted - local_time(now).minute_of_day;
  if (minutes <= 0) minutes += kMinutesOfDay;
  return after_local_minutes(now, minutes);
}

Result<Millis> parse_date(std::string_view text) {
  const std::string wanted = "a date such as 2026-07-01 or \"2026-07-01 14:30\"";
  if (text.size() != 10 && text.size() != 16) return refuse(text, wanted);
  const auto year = digits(text.substr(0, 4), 4);
  const auto month = digits(text.substr(5, 2), 2);
  const auto day = digits(text.substr(8, 2), 2);
  if (text[4] != '-' || text[7] != '-' || !year || !month || !day) return refuse(text, wanted);
  std::optional<int> minute = 0;
  if (text.size() == 16) minute = text[10] == ' ' ? minute_of_day(text.substr(11)) : std::nullopt;
  if (!minute) return refuse(text, wanted);
  using namespace std::chrono;
  const year_month_day date{std::chrono::year{*year},
                            std::chrono::month{static_cast<unsigned>(*month)},
                            std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok()) return refuse(text, "a day that there is");
  const int64_t local =
      sys_days(date).time_since_epoch().count() * int64_t{kMinutesOfDay} + *minute;
  // As if it were UTC, then put right by what the clock shows there; twice, as that may cross a
  // change to or from summer time.
  int64_t utc = local;
  for (int i = 0; i < 2; ++i) {
    const LocalTime shown = local_time(Millis{utc * 60'000});
    utc -= shown.day * kMinutesOfDay + shown.minute_of_day - local;
  }
  return Millis{utc * 60'000};
}

const char* word_of(rpc::Resource resource) {
  static constexpr const char* kWords[] = {"gpu", "cpu", "network"};
  return word(kWords, resource);
}
const char* word_of(rpc::Mode mode) {
  static constexpr const char* kWords[] = {"rules", "always", "paused"};
  return word(kWords, mode);
}
const char* word_of(rpc::Activity activity) {
  static constexpr const char* kWords[] = {"working", "waiting", "paused", "attention", "offline"};
  return word(kWords, activity);
}
const char* permission_of(rpc::Activity activity) {
  return activity == rpc::Activity::WORKING ? "allowed" : word_of(activity);
}
const char* word_of(rpc::DeviceReport::State state) {
  static constexpr const char* kWords[] = {"ready", "starting", "failed", "draining", "paused"};
  return word(kWords, state);
}
const char* word_of(rpc::Privacy privacy) {
  static constexpr const char* kWords[] = {"public", "anchored", "group"};
  return word(kWords, privacy);
}
const char* word_of(rpc::Receipt::Verdict verdict) {
  static constexpr const char* kWords[] = {"pending", "confirmed", "rejected"};
  return word(kWords, verdict);
}

std::string text_of(Millis duration) { return english(MessageParameter{duration}); }
std::string text_of(Bytes bytes) { return english(MessageParameter{bytes}); }
std::string time_text(int64_t wall_ms) {
  return wall_ms == 0 ? "-" : format_local_minute(Millis{wall_ms});
}
std::string rounded(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}
std::string sentence(rpc::Message::Reader message) { return english(read_message(message)); }

std::string remedy_text(const Message& remedy) {
  for (const MessageSpec& spec : kRemedies) {
    if (spec.code != remedy.code) continue;
    std::vector<std::string> parameters;
    for (const MessageParameter& parameter : remedy.parameters) {
      parameters.push_back(english(parameter));
    }
    return fill_places(spec.text, parameters);
  }
  return english(remedy);
}

}  // namespace shoal::client
