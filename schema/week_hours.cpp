#include "schema/week_hours.h"

#include <algorithm>
#include <bitset>
#include <cstdio>
#include <tuple>

#include "base/check.h"
#include "base/text.h"

namespace shoal {

// Minutes are set one by one, then read as the places where the week turns on and off.
class WeekHoursBuilder {
 public:
  void set(int from, int count) {
    for (int i = 0; i < count; ++i) minutes_.set(static_cast<size_t>((from + i) % kMinutesOfWeek));
  }
  void add(const WeekHours& hours) {
    for (int i = 0; i < kMinutesOfWeek; ++i) {
      if (hours.contains(i)) minutes_.set(static_cast<size_t>(i));
    }
  }
  WeekHours build() const {
    WeekHours hours;
    hours.starts_on_ = minutes_.test(0);
    for (int i = 1; i < kMinutesOfWeek; ++i) {
      if (minutes_.test(static_cast<size_t>(i)) != minutes_.test(static_cast<size_t>(i) - 1)) {
        hours.flips_.push_back(i);
      }
    }
    return hours;
  }

 private:
  std::bitset<kMinutesOfWeek> minutes_;
};

namespace {

constexpr std::string_view kDays[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
constexpr int kMinutesOfCell = 30;

// Reads one text from left to right and remembers where it stands.
class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

  size_t place() const { return place_; }
  bool at_end() const { return place_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[place_]; }
  Error refuse(std::string_view why) const { return refused_text(text_, place_, why); }

  void skip_spaces() {
    while (peek() == ' ') ++place_;
  }
  bool take(char wanted) {
    if (at_end() || text_[place_] != wanted) return false;
    ++place_;
    return true;
  }
  // A weekday in small or capital letters; none: the place stays.
  std::optional<int> day() {
    for (int day = 0; day < 7; ++day) {
      const std::string_view name = kDays[day];
      const std::string_view here = text_.substr(place_, name.size());
      const bool same = std::ranges::equal(
          here, name, [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
      if (same) {
        place_ += name.size();
        return day;
      }
    }
    return std::nullopt;
  }
  // One or two digits; none: the place stays.
  std::optional<int> number() {
    int value = 0;
    size_t digits = 0;
    while (digits < 2 && peek() >= '0' && peek() <= '9') {
      value = value * 10 + (peek() - '0');
      ++place_;
      ++digits;
    }
    if (digits == 0) return std::nullopt;
    return value;
  }
  void go_to(size_t place) { place_ = place; }

 private:
  std::string_view text_;
  size_t place_ = 0;
};

// "08:30", as minutes of a day; "24:00" is the day's end.
Result<int> read_time(TextReader& reader) {
  const size_t start = reader.place();
  const std::optional<int> hour = reader.number();
  if (!hour || !reader.take(':')) {
    reader.go_to(start);
    return reader.refuse("expected a time such as 08:00");
  }
  const size_t minute_at = reader.place();
  const std::optional<int> minute = reader.number();
  if (!minute || reader.place() != minute_at + 2 || *minute > 59) {
    reader.go_to(minute_at);
    return reader.refuse("expected minutes from 00 to 59");
  }
  if (*hour > 24 || (*hour == 24 && *minute > 0)) {
    reader.go_to(start);
    return reader.refuse("a day has no such hour: 24:00 is its end");
  }
  return *hour * 60 + *minute;
}

std::string time_text(int minute_of_day) {
  char text[16];
  std::snprintf(text, sizeof text, "%02d:%02d", minute_of_day / 60, minute_of_day % 60);
  return text;
}

// A window that begins on one day and is at most a day long.
struct Window {
  int from = 0, to = 0;  // Minutes of a day; `to` is at most a day's end, or before `from`.
  std::bitset<7> days;   // On which it begins.
};

void add_window(std::vector<Window>& windows, int day, int from, int to) {
  for (Window& window : windows) {
    if (window.from == from && window.to == to) {
      window.days.set(static_cast<size_t>(day));
      return;
    }
  }
  windows.push_back({from, to, {}});
  windows.back().days.set(static_cast<size_t>(day));
}

}  // namespace

Error refused_text(std::string_view text, size_t at, std::string_view why) {
  return {ErrorCode::kInvalid, "'" + printable(text.substr(0, 200)) + "': " + std::string(why) +
                                   " at character " + std::to_string(at + 1)};
}

WeekHours WeekHours::never() { return {}; }

WeekHours WeekHours::always() {
  WeekHours hours;
  hours.starts_on_ = true;
  return hours;
}

Result<WeekWindow> parse_week_window(std::string_view text) {
  TextReader reader(text);
  reader.skip_spaces();
  const std::optional<int> first = reader.day();
  if (!first) return reader.refuse("expected a day: mon, tue, wed, thu, fri, sat or sun");
  int last = *first;
  if (reader.take('-')) {
    const std::optional<int> day = reader.day();
    if (!day) return reader.refuse("expected a day: mon, tue, wed, thu, fri, sat or sun");
    last = *day;
  }
  if (reader.peek() != ' ') return reader.refuse("expected a space and a time such as 08:00");

  WeekHoursBuilder builder;
  bool any = false;
  while (true) {
    reader.skip_spaces();
    const size_t start = reader.place();
    // What stands behind the windows is no time: it has no colon where a time has one.
    const std::string_view ahead = text.substr(start, 3);
    const size_t colon = ahead.find(':');
    if (any && (colon == std::string_view::npos || colon == 0)) break;
    SHOAL_TRY_ASSIGN(from, read_time(reader));
    if (from == kMinutesOfDay) {
      reader.go_to(start);
      return reader.refuse("24:00 is a day's end, where nothing begins");
    }
    if (!reader.take('-')) return reader.refuse("expected '-' and the time of the end");
    SHOAL_TRY_ASSIGN(to, read_time(reader));
    if (from == to) {
      reader.go_to(start);
      return reader.refuse("the window is empty: a whole day is 00:00-24:00");
    }
    if (!reader.at_end() && reader.peek() != ' ') return reader.refuse("expected a space");
    const int length = to > from ? to - from : to + kMinutesOfDay - from;
    for (int day = *first;; day = (day + 1) % 7) {
      builder.set(WeekHours::at(day, from), length);
      if (day == last) break;
    }
    any = true;
  }
  return WeekWindow{builder.build(), text.substr(reader.place()), reader.place()};
}

Result<WeekHours> WeekHours::parse(std::span<const std::string> texts) {
  if (texts.empty()) return always();
  if (texts.size() == 1 && texts[0] == "never") return never();
  WeekHoursBuilder builder;
  for (const std::string& text : texts) {
    SHOAL_TRY_ASSIGN(window, parse_week_window(text));
    if (!window.rest.empty()) {
      return refused_text(text, window.rest_at, "expected a time such as 08:00");
    }
    builder.add(window.hours);
  }
  return builder.build();
}

bool WeekHours::contains(int minute_of_week) const {
  SHOAL_CHECK(minute_of_week >= 0 && minute_of_week < kMinutesOfWeek);
  const auto turned = std::ranges::upper_bound(flips_, minute_of_week) - flips_.begin();
  return starts_on_ == (turned % 2 == 0);
}

std::optional<int> WeekHours::until_change(int weekday, int minute_of_day) const {
  if (flips_.empty()) return std::nullopt;
  const int now = at(weekday, minute_of_day);
  const auto next = std::ranges::upper_bound(flips_, now);
  if (next != flips_.end()) return *next - now;
  // Over Sunday's midnight, which is a change only when the week ends otherwise than it begins.
  const bool turns_at_midnight = flips_.size() % 2 == 1;
  return (turns_at_midnight ? 0 : flips_.front()) + kMinutesOfWeek - now;
}

WeekHours WeekHours::of_grid(const Grid& grid) {
  WeekHoursBuilder builder;
  for (int day = 0; day < 7; ++day) {
    for (int cell = 0; cell < 48; ++cell) {
      if (grid[static_cast<size_t>(day)][static_cast<size_t>(cell)]) {
        builder.set(at(day, cell * kMinutesOfCell), kMinutesOfCell);
      }
    }
  }
  return builder.build();
}

WeekHours::Grid WeekHours::grid() const {
  Grid grid{};
  for (int day = 0; day < 7; ++day) {
    for (int cell = 0; cell < 48; ++cell) {
      const int start = at(day, cell * kMinutesOfCell);
      bool on = true;
      for (int i = 0; i < kMinutesOfCell; ++i) on = on && contains(start + i);
      grid[static_cast<size_t>(day)][static_cast<size_t>(cell)] = on;
    }
  }
  return grid;
}

bool WeekHours::fits_grid() const { return of_grid(grid()) == *this; }

std::vector<std::string> WeekHours::format() const {
  if (flips_.empty())
    return starts_on_ ? std::vector<std::string>{} : std::vector<std::string>{"never"};

  // Each run from on to off, over Sunday's midnight where it must; whole days are cut out of it.
  std::vector<Window> windows;
  for (int start = 0; start < kMinutesOfWeek; ++start) {
    const int before = (start + kMinutesOfWeek - 1) % kMinutesOfWeek;
    if (!contains(start) || contains(before)) continue;
    int length = *until_change(start / kMinutesOfDay, start % kMinutesOfDay);
    int at = start;
    while (length > 0) {
      const int from = at % kMinutesOfDay;
      // What is less than a day goes into one window, over midnight; of more, this day's part.
      const int part =
          length < kMinutesOfDay && from > 0 ? length : std::min(length, kMinutesOfDay - from);
      const int to = from + part > kMinutesOfDay ? from + part - kMinutesOfDay : from + part;
      add_window(windows, at / kMinutesOfDay % 7, from, to);
      at += part;
      length -= part;
    }
  }

  struct Line {
    int first_day = 0;
    int from = 0;
    std::string text;
  };
  std::vector<Line> lines;
  for (const Window& window : windows) {
    const std::string hours = " " + time_text(window.from) + "-" + time_text(window.to);
    if (window.days.all()) {
      lines.push_back({0, window.from, "mon-sun" + hours});
      continue;
    }
    for (int day = 0; day < 7; ++day) {
      const auto on = [&window](int d) {
        return window.days.test(static_cast<size_t>((d + 7) % 7));
      };
      if (!on(day) || on(day - 1)) continue;
      int last = day;
      while (on(last + 1)) ++last;
      std::string days(kDays[day]);
      if (last > day) days += "-" + std::string(kDays[last % 7]);
      lines.push_back({day, window.from, days + hours});
    }
  }
  std::ranges::sort(lines, [](const Line& a, const Line& b) {
    return std::tie(a.first_day, a.from, a.text) < std::tie(b.first_day, b.from, b.text);
  });
  std::vector<std::string> texts;
  for (Line& line : lines) texts.push_back(std::move(line.text));
  return texts;
}

}  // namespace shoal
