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
std::string remedy_text(rpc::Message::Reader message) { return in_commands(sentence(message)); }

std::string in_commands(std::string text) {
  struct Phrase {
    std::string_view window, command;
  };
  // The longer ones first.
  static constexpr Phrase kPhrases[] = {
      {"Switch a device on under Devices.", "Lend one with: shoal-client lend DEVICE on"},
      {"Switch it on under Devices.", "Lend it with: shoal-client lend DEVICE on"},
      {"Choose Resume.", "Resume with: shoal-client resume"},
      {"Join one under Coordinators with the URL that you were given.",
       "Join one with the URL that you were given: shoal-client attach URL"},
      {"Look through them under Coordinators, then choose",
       "Look through them with 'shoal-client consent list', then choose with 'shoal-client rules "
       "set'"},
      {"Allow a kind of work under Coordinators.",
       "Allow a kind of work with: shoal-client consent allow MODEL"},
      {"The limit is under Rules.", "The limit is a setting: see 'shoal-client rules list'."},
      {"The prices and the limit are under Rules.",
       "The prices and the limit are settings: see 'shoal-client rules list'."},
      {"Choose another time to leave by, or none.",
       "Choose another time to leave by, or none, with: shoal-client leave-by TIME|off"},
      {" under Rules", " with 'shoal-client rules set'"},
      {"choose 'always'", "choose 'shoal-client mode always'"},
      {"Choose 'always'", "Choose 'shoal-client mode always'"},
  };
  for (const Phrase& phrase : kPhrases) {
    for (size_t at = 0; (at = text.find(phrase.window, at)) != std::string::npos;
         at += phrase.command.size()) {
      text.replace(at, phrase.window.size(), phrase.command);
    }
  }
  return text;
}

}  // namespace shoal::client
