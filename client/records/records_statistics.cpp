#include <cmath>

#include "client/records/records_state.h"

namespace shoal::client {
namespace {

constexpr size_t kWaitingSumsMax = 10'000;
constexpr int64_t kRowsForgottenAtOnce = 300;

constexpr char kAdd[] =
    "INSERT INTO statistics (level, start_ms, device, worked_ms, allowed_ms, rows_done, steps, "
    "microjoules, nanocost, bytes_down, bytes_up, confirmed_micro, pending_micro, rejected_micro, "
    "power_microjoules, power_ms, temperature_max_tenths) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17) "
    "ON CONFLICT (level, start_ms, device) DO UPDATE SET "
    // Both are within kSumMax, so that their sum is a whole number, too.
    "worked_ms = min(worked_ms + excluded.worked_ms, 4000000000000000000), "
    "allowed_ms = min(allowed_ms + excluded.allowed_ms, 4000000000000000000), "
    "rows_done = min(rows_done + excluded.rows_done, 4000000000000000000), "
    "steps = min(steps + excluded.steps, 4000000000000000000), "
    "microjoules = min(microjoules + excluded.microjoules, 4000000000000000000), "
    "nanocost = min(nanocost + excluded.nanocost, 4000000000000000000), "
    "bytes_down = min(bytes_down + excluded.bytes_down, 4000000000000000000), "
    "bytes_up = min(bytes_up + excluded.bytes_up, 4000000000000000000), "
    "confirmed_micro = min(confirmed_micro + excluded.confirmed_micro, 4000000000000000000), "
    "pending_micro = min(pending_micro + excluded.pending_micro, 4000000000000000000), "
    "rejected_micro = min(rejected_micro + excluded.rejected_micro, 4000000000000000000), "
    "power_microjoules = "
    "min(power_microjoules + excluded.power_microjoules, 4000000000000000000), "
    "power_ms = min(power_ms + excluded.power_ms, 4000000000000000000), "
    "temperature_max_tenths = max(coalesce(temperature_max_tenths, "
    "excluded.temperature_max_tenths), coalesce(excluded.temperature_max_tenths, "
    "temperature_max_tenths))";

// The columns of a row, from this one on, in the order of kFigures.
Sums sums_in(const Query& query, int column) {
  Sums sums;
  for (int64_t Sums::*figure : kFigures) {
    sums.*figure = std::clamp(query.integer(column++), -kSumMax, kSumMax);
  }
  if (!query.is_null(column)) {
    sums.temperature_max = static_cast<double>(query.integer(column)) / 10;
  }
  return sums;
}

Sums total_of(const std::map<std::string, Sums>& by_device) {
  Sums total;
  for (const auto& [device, sums] : by_device) total.add(sums);
  return total;
}

}  // namespace

Result<int64_t> Records::State::name_id(const std::string& text) {
  if (const auto found = names.find(text); found != names.end()) return found->second;
  int64_t id = 0;
  {
    Query query = database->query("SELECT id FROM name WHERE text = ?");
    query.bind(text);
    SHOAL_TRY_ASSIGN(some, query.row());
    if (some) id = query.integer(0);
  }
  if (id == 0) {
    SHOAL_TRY(database->query("INSERT INTO name (text) VALUES (?)").bind(text).run());
    id = database->last_id();
  }
  names[text] = id;
  return id;
}

Result<void> Records::State::add_to_levels(Millis at, const std::string& device, const Sums& sums) {
  SHOAL_TRY_ASSIGN(id, name_id(device));
  for (const LevelSpec& spec : kLevels) {
    Query query = database->query(kAdd);
    query.bind(static_cast<int64_t>(spec.level)).bind(level_start(spec.level, at).count).bind(id);
    for (int64_t Sums::*figure : kFigures) query.bind(sums.*figure);
    if (sums.temperature_max) {
      query.bind(static_cast<int64_t>(std::lround(*sums.temperature_max * 10)));
    } else {
      query.bind_null();
    }
    SHOAL_TRY(query.run());
  }
  return {};
}

Result<void> Records::State::write_sums() {
  for (const auto& [key, sums] : waiting_sums) {
    SHOAL_TRY(add_to_levels({key.first}, key.second, sums));
  }
  return {};
}

Result<void> Records::State::add_stored_days(Millis from, Millis to,
                                             std::map<std::string, Sums>& into) {
  Query query = database->query(
      "SELECT name.text, worked_ms, allowed_ms, rows_done, steps, microjoules, nanocost, "
      "bytes_down, bytes_up, confirmed_micro, pending_micro, rejected_micro, power_microjoules, "
      "power_ms, temperature_max_tenths FROM statistics JOIN name ON name.id = device "
      "WHERE level = 3 AND start_ms >= ? AND start_ms < ?");
  query.bind(from.count).bind(to.count);
  while (true) {
    SHOAL_TRY_ASSIGN(more, query.row());
    if (!more) return {};
    into[query.text(0)].add(sums_in(query, 1));
  }
}

Result<void> Records::State::load_ever() {
  std::map<std::string, Sums> loaded;
  SHOAL_TRY(add_stored_days({INT64_MIN}, {INT64_MAX}, loaded));
  for (const auto& [key, sums] : waiting_sums) loaded[key.second].add(sums);
  ever = std::move(loaded);
  return {};
}

void Records::State::roll_day() {
  const Millis at = now();
  const LocalTime local = local_time(at);
  if (day == local.day) return;
  today.clear();
  month.clear();
  today_from = day_start(at);
  today_to = day_start({today_from.count + 30 * 3'600'000});
  const Millis noon{today_from.count + 12 * 3'600'000};
  month_from = day_start({noon.count - (local.day_of_month - 1) * kDay.count});
  const Millis next{month_from.count + 32 * kDay.count};
  month_to = day_start({next.count - (local_time(next).day_of_month - 1) * kDay.count});
  for (const auto& [key, sums] : waiting_sums) {
    const Millis start = day_start({key.first});
    if (start >= today_from && start < today_to) today[key.second].add(sums);
    if (start >= month_from && start < month_to) month[key.second].add(sums);
  }
  if (!database) return;  // Asked again until there is one.
  if (add_stored_days(today_from, today_to, today).ok() &&
      add_stored_days(month_from, month_to, month).ok()) {
    day = local.day;
  }
}

void Records::State::count(Millis at, const std::string& device, const Sums& sums) {
  ever[device].add(sums);
  if (!day) return;  // They will be loaded whole.
  if (at >= today_from && at < today_to) today[device].add(sums);
  if (at >= month_from && at < month_to) month[device].add(sums);
}

void Records::add(const std::string& device, const Usage& usage) {
  const Sums sums = sums_of(usage);
  if (sums.empty()) return;
  const Millis at = state_->now();
  auto& waiting = state_->waiting_sums;
  if (waiting.size() >= kWaitingSumsMax) {
    // A file that could not be written for days: hours will do.
    std::map<std::pair<int64_t, std::string>, Sums> hours;
    for (const auto& [key, minute] : waiting) {
      hours[{level_start(Level::kHours, {key.first}).count, key.second}].add(minute);
    }
    waiting = std::move(hours);
  }
  state_->roll_day();
  state_->count(at, device, sums);
  waiting[{level_start(Level::kMinutes, at).count, device}].add(sums);
}

Sums Records::today() {
  state_->roll_day();
  return total_of(state_->today);
}

Sums Records::today(const std::string& device) {
  state_->roll_day();
  const auto found = state_->today.find(device);
  return found == state_->today.end() ? Sums() : found->second;
}

Sums Records::ever() const { return total_of(state_->ever); }

Spent Records::spent() {
  state_->roll_day();
  const Sums month = total_of(state_->month);
  return {.kilowatt_hours_today = total_of(state_->today).kilowatt_hours(),
          .kilowatt_hours_month = month.kilowatt_hours(),
          .transferred_month = Bytes{month.bytes_down + month.bytes_up}};
}

namespace {

// Named in the table `mark`: from where on the rows of a level are whole.
constexpr const char* kKeptMarks[] = {"minutes_from_ms", "ten_minutes_from_ms", "hours_from_ms"};

}  // namespace

Result<Millis> Records::State::kept_from(Level level) {
  if (level == Level::kDays) return Millis{INT64_MIN};
  SHOAL_TRY_ASSIGN(from, mark(kKeptMarks[static_cast<size_t>(level)]));
  return Millis{from.value_or(INT64_MIN)};
}

// A level's finest rows are forgotten from the local midnight before; what they held is in the
// coarser rows since it was counted. So nothing is moved, and nothing can be lost or doubled.
Result<void> Records::State::forget_statistics() {
  const Millis at = now();
  const Millis tomorrow = day_start({day_start(at).count + 30 * 3'600'000});
  for (const LevelSpec& spec : kLevels) {
    if (spec.days_kept == 0) continue;
    SHOAL_TRY_ASSIGN(kept, kept_from(spec.level));
    Millis from = std::max(kept, day_start({at.count - spec.days_kept * kDay.count}));
    // The clock was far ahead once and much was forgotten: from tomorrow on the rows are whole.
    from = std::min(from, tomorrow);
    if (from != kept) SHOAL_TRY(set_mark(kKeptMarks[static_cast<size_t>(spec.level)], from.count));
    int64_t last = from.count - 1;
    {
      Query query = database->query(
          "SELECT start_ms FROM statistics WHERE level = ? AND start_ms < ? ORDER BY start_ms "
          "LIMIT 1 OFFSET ?");
      query.bind(static_cast<int64_t>(spec.level)).bind(from.count).bind(kRowsForgottenAtOnce);
      SHOAL_TRY_ASSIGN(more, query.row());
      if (more) last = query.integer(0);
    }
    SHOAL_TRY(database->query("DELETE FROM statistics WHERE level = ? AND start_ms <= ?")
                  .bind(static_cast<int64_t>(spec.level))
                  .bind(last)
                  .run());
  }
  return {};
}

Result<std::vector<StatisticsRow>> Records::statistics(Millis from, Millis to, Millis step) {
  return state_->noted([&]() -> Result<std::vector<StatisticsRow>> {
    SHOAL_TRY_ASSIGN(database, state_->readable());
    from = sane_wall(from);
    to = sane_wall(to);
    {
      // Time without rows costs no steps.
      Query query =
          database->query("SELECT min(start_ms), max(start_ms) FROM statistics WHERE level = 3");
      SHOAL_TRY_ASSIGN(some, query.row());
      if (!some || query.is_null(0)) return std::vector<StatisticsRow>();
      from = std::max(from, Millis{query.integer(0)});
      to = std::min(to, Millis{query.integer(1) + 25 * 3'600'000});
    }
    if (from >= to) return std::vector<StatisticsRow>();

    Level level = Level::kMinutes;
    for (const LevelSpec& spec : kLevels) {
      if (step >= spec.step) level = spec.level;
    }
    step = std::max(step, kLevels[0].step);
    while (level != Level::kDays && (to - from).count / step.count > kStatisticsStepsMax) {
      level = static_cast<Level>(static_cast<int>(level) + 1);
      step = std::max(step, kLevels[static_cast<size_t>(level)].step);
    }
    int64_t days = std::max<int64_t>((step.count + kDay.count / 2) / kDay.count, 1);
    days = std::max(days, (to - from).count / kDay.count / kStatisticsStepsMax + 1);
    const int64_t first_day = local_time(from).day;
    const Millis first_start = day_start(from);

    const bool by_days = level == Level::kDays;
    const auto bucket_of = [&](Level row_level, Millis start) -> Millis {
      if (!by_days) {
        return kLevels[static_cast<size_t>(row_level)].step > step ? start
                                                                   : step_start(step, start);
      }
      const int64_t since = local_time(start).day - first_day;
      const int64_t bucket = since - (since % days + days) % days;
      return day_start({first_start.count + bucket * kDay.count + 12 * 3'600'000});
    };

    std::map<std::pair<int64_t, std::string>, Sums> buckets;
    Millis end = to;
    while (true) {
      SHOAL_TRY_ASSIGN(kept, state_->kept_from(level));
      const Millis begin = std::max(level_start(level, from), kept);
      Query query = database->query(
          "SELECT start_ms, name.text, worked_ms, allowed_ms, rows_done, steps, microjoules, "
          "nanocost, bytes_down, bytes_up, confirmed_micro, pending_micro, rejected_micro, "
          "power_microjoules, power_ms, temperature_max_tenths FROM statistics "
          "JOIN name ON name.id = device WHERE level = ? AND start_ms >= ? AND start_ms < ? "
          "ORDER BY start_ms");
      query.bind(static_cast<int64_t>(level)).bind(begin.count).bind(end.count);
      Millis start{INT64_MIN}, bucket{0};
      while (true) {
        SHOAL_TRY_ASSIGN(more, query.row());
        if (!more) break;
        if (start.count != query.integer(0)) {
          start = {query.integer(0)};
          bucket = bucket_of(level, start);
        }
        buckets[{bucket.count, query.text(1)}].add(sums_in(query, 2));
      }
      end = std::min(end, kept);
      if (level == Level::kDays || from >= end) break;
      level = static_cast<Level>(static_cast<int>(level) + 1);
    }
    std::vector<StatisticsRow> rows;
    for (const auto& [key, sums] : buckets) {
      if (!sums.empty()) rows.push_back({{key.first}, key.second, sums});
    }
    return rows;
  }());
}

}  // namespace shoal::client
