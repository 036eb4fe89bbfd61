#pragma once
// Hours of a week as a setting says them: "mon-fri 22:00-06:00". Decides what such a text means and
// how a week is written; for the rules, the command line, and the editor of the user interface.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace shoal {

inline constexpr int kMinutesOfDay = 24 * 60;
inline constexpr int kMinutesOfWeek = 7 * kMinutesOfDay;

// Some minutes of a week. Minute 0 is the first of Monday.
class WeekHours {
 public:
  // A cell is half an hour of a day; days begin with Monday.
  using Grid = std::array<std::array<bool, 48>, 7>;

  static WeekHours always();
  static WeekHours never();

  // Each text is a day or days, then one or more windows: "mon 08:00-12:00 13:00-17:00",
  // "sat-mon 00:00-24:00". A window that ends before it begins goes on into the next day. No texts
  // at all mean always; the one text "never" means never. What cannot be read is refused with the
  // text and the place in it.
  static Result<WeekHours> parse(std::span<const std::string> texts);

  // Cells that are on.
  static WeekHours of_grid(const Grid& grid);
  // A cell is on when all its minutes are.
  Grid grid() const;
  bool fits_grid() const;  // Whether grid() loses nothing.

  bool contains(int weekday, int minute_of_day) const {
    return contains(at(weekday, minute_of_day));
  }
  bool contains(int minute_of_week) const;
  // How many minutes from there until contains() answers otherwise; none: it never does.
  std::optional<int> until_change(int weekday, int minute_of_day) const;

  // The fewest texts in a plain form that parse() reads as the same week.
  std::vector<std::string> format() const;

  static int at(int weekday, int minute_of_day) { return weekday * kMinutesOfDay + minute_of_day; }

  friend bool operator==(const WeekHours&, const WeekHours&) = default;

 private:
  friend class WeekHoursBuilder;
  bool starts_on_ = false;  // At minute 0.
  std::vector<int> flips_;  // Minutes after 0 at which it turns on or off, ascending.
};

// One text of parse(), and what stands behind its windows, for texts that say more: "mon
// 08:00-12:00 0.21". `rest` begins at the character `rest_at` of the text, spaces skipped.
struct WeekWindow {
  WeekHours hours;
  std::string_view rest;
  size_t rest_at = 0;
};
Result<WeekWindow> parse_week_window(std::string_view text);

// "'text': why at character 3": how parse() refuses. `at` counts from 0, the sentence from 1.
Error refused_text(std::string_view text, size_t at, std::string_view why);

}  // namespace shoal
