#include "client/rules/tariff.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace shoal::client {
namespace {

constexpr double kPriceMax = 1'000;

struct PricedHours {
  WeekHours hours;
  double price = 0;
};

Result<PricedHours> parse_entry(const std::string& text) {
  SHOAL_TRY_ASSIGN(window, parse_week_window(text));
  std::string_view digits = window.rest;
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  if (digits.empty()) return refused_text(text, window.rest_at, "expected a price such as 0.21");
  double price = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), price,
                                           std::chars_format::fixed);
  if (code != std::errc() || end != digits.data() + digits.size() || !std::isfinite(price)) {
    return refused_text(text, window.rest_at, "expected a price such as 0.21");
  }
  if (price < 0 || price > kPriceMax) {
    return refused_text(text, window.rest_at, "a price is from 0 to 1000");
  }
  return PricedHours{std::move(window.hours), price};
}

}  // namespace

Tariff Tariff::flat(double price) {
  Tariff tariff;
  tariff.steps_ = {{0, price}};
  return tariff;
}

Result<Tariff> Tariff::parse(double price, std::span<const std::string> texts) {
  std::vector<PricedHours> entries;
  for (const std::string& text : texts) {
    SHOAL_TRY_ASSIGN(entry, parse_entry(text));
    entries.push_back(std::move(entry));
  }
  Tariff tariff;
  tariff.steps_.clear();
  for (int minute = 0; minute < kMinutesOfWeek; ++minute) {
    const auto fits = std::ranges::find_if(
        entries, [minute](const PricedHours& entry) { return entry.hours.contains(minute); });
    const double here = fits == entries.end() ? price : fits->price;
    if (tariff.steps_.empty() || tariff.steps_.back().price != here) {
      tariff.steps_.push_back({minute, here});
    }
  }
  return tariff;
}

size_t Tariff::step_at(int minute_of_week) const {
  const auto next = std::ranges::upper_bound(steps_, minute_of_week, {}, &Step::minute_of_week);
  return static_cast<size_t>(next - steps_.begin()) - 1;
}

double Tariff::price_at(int weekday, int minute_of_day) const {
  return steps_[step_at(WeekHours::at(weekday, minute_of_day))].price;
}

std::optional<int> Tariff::until_crossing(int weekday, int minute_of_day, double limit) const {
  const int now = WeekHours::at(weekday, minute_of_day);
  const size_t here = step_at(now);
  const bool above = steps_[here].price > limit;
  for (size_t i = 1; i < steps_.size(); ++i) {
    const Step& step = steps_[(here + i) % steps_.size()];
    if ((step.price > limit) == above) continue;
    return (step.minute_of_week - now + kMinutesOfWeek) % kMinutesOfWeek;
  }
  return std::nullopt;
}

}  // namespace shoal::client
