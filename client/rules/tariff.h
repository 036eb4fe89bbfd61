#pragma once
// What a kilowatt-hour costs, and when.

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "schema/week_hours.h"

namespace shoal::client {

class Tariff {
 public:
  Tariff() = default;  // Everything is free.

  // `price` at hours that no text names. A text is hours and a price: "mon-sun 22:00-06:00 0.21";
  // the first that fits counts. What cannot be read is refused with the text and the place in it.
  static Result<Tariff> parse(double price, std::span<const std::string> texts);
  static Tariff flat(double price);

  double price_at(int weekday, int minute_of_day) const;

  // How many minutes from there until the price is above `limit`, or no longer; none: never.
  std::optional<int> until_crossing(int weekday, int minute_of_day, double limit) const;

 private:
  size_t step_at(int minute_of_week) const;

  struct Step {
    int minute_of_week = 0;  // Where this price begins.
    double price = 0;
  };
  std::vector<Step> steps_ = {{0, 0}};  // Ascending, the first at minute 0.
};

// In the price's currency.
inline double cost_of(double kilowatt_hours, double price) { return kilowatt_hours * price; }

}  // namespace shoal::client
