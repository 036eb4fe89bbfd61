#include "client/records/condition_bytes.h"
#include "client/records/message_text.h"
#include "client/records/records_state.h"

namespace shoal::client {
namespace {

constexpr int64_t kLasts = INT64_MAX;
constexpr int64_t kRowsForgottenAtOnce = 200;
// An owner's last input is known to some seconds only.
constexpr int64_t kInputJitterMs = 5'000;
// What one past work or span may hold; a peer chose some of it.
constexpr size_t kTextMax = 4'096;

int64_t whole(uint64_t value) {
  return static_cast<int64_t>(std::min<uint64_t>(value, uint64_t{INT64_MAX}));
}

std::string_view short_text(const std::string& text) {
  return std::string_view(text).substr(0, kTextMax);
}

// Whether a person would say that nothing has happened in between. Names of programs and people
// matter, times and temperatures change all the while.
bool same_verdict(const Verdict& a, const Verdict& b) {
  if (a.activity != b.activity || a.rule != b.rule || a.why.code != b.why.code) return false;
  const auto names = [](const Message& message) {
    std::vector<std::string> names;
    for (const MessageParameter& parameter : message.parameters) {
      if (const auto* text = std::get_if<std::string>(&parameter)) names.push_back(*text);
    }
    return names;
  };
  return names(a.why) == names(b.why);
}

Resource resource_of(int64_t value) {
  return static_cast<Resource>(std::clamp<int64_t>(value, 0, kResourceCount - 1));
}
Activity activity_of(int64_t value) {
  return static_cast<Activity>(
      std::clamp<int64_t>(value, 0, static_cast<int64_t>(Activity::kOffline)));
}

}  // namespace

Result<void> Records::State::recover() {
  SHOAL_TRY_ASSIGN(seen, mark("alive_at_ms"));
  if (!seen) return {};                                     // A new file.
  const int64_t alive = std::min(*seen, started_at.count);  // The clock may have been set back.
  SHOAL_TRY(database->query("UPDATE span SET end_ms = max(start_ms, ?) WHERE end_ms = ?")
                .bind(alive)
                .bind(kLasts)
                .run());
  if (alive < started_at.count) {
    for (int resource = 0; resource < kResourceCount; ++resource) {
      SHOAL_TRY(database
                    ->query("INSERT INTO span (resource, start_ms, end_ms, activity, rule, why, "
                            "remedy) VALUES (?, ?, ?, ?, '', ?, '')")
                    .bind(int64_t{resource})
                    .bind(alive)
                    .bind(started_at.count)
                    .bind(static_cast<int64_t>(Activity::kOffline))
                    .bind(std::string_view(message_to_text({"trace.not_running", {}})))
                    .run());
    }
  }
  // From then on nobody watched.
  return database->query("INSERT OR IGNORE INTO condition (start_ms, readings) VALUES (?, x'')")
      .bind(alive + 1)
      .run();
}

void Records::State::begin_span(Resource resource, const OpenSpan& span) {
  later([this, resource, span]() -> Result<void> {
    const auto number = static_cast<int64_t>(resource);
    SHOAL_TRY(database
                  ->query("UPDATE span SET end_ms = max(start_ms, ?1) WHERE end_ms = ?2 AND "
                          "resource = ?3 AND start_ms <> ?1")
                  .bind(span.start.count)
                  .bind(kLasts)
                  .bind(number)
                  .run());
    Query query = database->query(
        "INSERT INTO span (resource, start_ms, end_ms, activity, rule, why, remedy, "
        "changes_at_ms) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 WHERE NOT EXISTS (SELECT 1 FROM "
        "span WHERE end_ms = ?3 AND resource = ?1)");
    query.bind(number).bind(span.start.count).bind(kLasts);
    query.bind(static_cast<int64_t>(span.verdict.activity));
    query.bind(short_text(span.verdict.rule));
    query.bind(std::string_view(message_to_text(span.verdict.why)));
    query.bind(std::string_view(message_to_text(span.verdict.remedy)));
    if (span.verdict.changes_at) {
      query.bind(span.verdict.changes_at->count);
    } else {
      query.bind_null();
    }
    return query.run();
  });
}

void Records::State::end_spans(Millis at) {
  later([this, at]() -> Result<void> {
    return database->query("UPDATE span SET end_ms = max(start_ms, ?) WHERE end_ms = ?")
        .bind(at.count)
        .bind(kLasts)
        .run();
  });
}

void Records::note_verdict(Resource resource, const Verdict& verdict) {
  std::optional<State::OpenSpan>& open = state_->open_spans[static_cast<size_t>(resource)];
  if (open && same_verdict(open->verdict, verdict)) return;
  Millis start = state_->now();
  // Two within a millisecond, or after the clock was set back, still have an order.
  if (open && start == open->start) ++start.count;
  open = {verdict, start};
  state_->begin_span(resource, *open);
  static_cast<void>(state_->write_waiting());  // Else it waits, and problem() says why.
}

Result<std::vector<TraceSpan>> Records::trace(Millis from, Millis to, size_t count_max) {
  return state_->noted([&]() -> Result<std::vector<TraceSpan>> {
    SHOAL_TRY_ASSIGN(database, state_->readable());
    Query query = database->query(
        "SELECT resource, start_ms, end_ms, activity, rule, why, remedy, changes_at_ms FROM span "
        "WHERE end_ms > ? AND start_ms < ? ORDER BY end_ms DESC, id DESC LIMIT ?");
    query.bind(from.count).bind(to.count).bind(whole(count_max));
    std::vector<TraceSpan> spans;
    while (true) {
      SHOAL_TRY_ASSIGN(more, query.row());
      if (!more) break;
      TraceSpan span;
      span.resource = resource_of(query.integer(0));
      span.start = {query.integer(1)};
      if (query.integer(2) != kLasts) span.end = Millis{query.integer(2)};
      span.verdict.activity = activity_of(query.integer(3));
      span.verdict.rule = query.text(4);
      span.verdict.why = message_from_text(query.text(5));
      span.verdict.remedy = message_from_text(query.text(6));
      if (!query.is_null(7)) span.verdict.changes_at = Millis{query.integer(7)};
      spans.push_back(std::move(span));
    }
    std::ranges::reverse(spans);  // Those of the same moment in the order in which they came.
    std::ranges::stable_sort(spans, {}, &TraceSpan::start);
    return spans;
  }());
}

void Records::note_conditions(const Readings& readings, double own_gpu_load) {
  const Millis at = state_->now();
  std::optional<Millis> input;
  if (readings.idle) {
    input = Millis{std::max<int64_t>(at.count - std::max<int64_t>(readings.idle->count, 0), 0)};
    const std::optional<Millis>& last = state_->last_input;
    if (last && std::abs(input->count - last->count) < kInputJitterMs) input = last;
  }
  state_->last_input = input;
  ByteVector bytes = condition_to_bytes({readings, input, spent(), own_gpu_load});
  if (bytes == state_->last_condition) return;
  state_->last_condition = bytes;
  state_->later([state = state_.get(), at, bytes = std::move(bytes)]() -> Result<void> {
    return state->database
        ->query("INSERT OR REPLACE INTO condition (start_ms, readings) VALUES (?, ?)")
        .bind(at.count)
        .bind(ByteSpan(bytes))
        .run();
  });
}

Result<std::vector<WatchedSpan>> Records::conditions(Millis from, Millis to) {
  return state_->noted([&]() -> Result<std::vector<WatchedSpan>> {
    SHOAL_TRY_ASSIGN(database, state_->readable());
    int64_t first = from.count;
    {
      Query query = database->query(
          "SELECT start_ms FROM condition WHERE start_ms <= ? "
          "ORDER BY start_ms DESC LIMIT 1");
      query.bind(from.count);
      SHOAL_TRY_ASSIGN(some, query.row());
      if (some) first = query.integer(0);
    }
    Query query = database->query(
        "SELECT start_ms, readings FROM condition WHERE start_ms >= ? AND start_ms < ? "
        "ORDER BY start_ms");
    query.bind(first).bind(to.count);
    std::vector<WatchedSpan> conditions;
    bool watched = false;  // Whether the last of `conditions` has its end to come.
    const auto end_last = [&](int64_t at) {
      if (watched) conditions.back().end = {std::min(at, to.count)};
      watched = false;
    };
    while (true) {
      SHOAL_TRY_ASSIGN(more, query.row());
      if (!more) break;
      const int64_t stored = query.integer(0);
      end_last(stored);
      const ByteVector bytes = query.blob(1);
      if (bytes.empty()) continue;
      Result<StoredCondition> condition = condition_from_bytes(bytes);
      if (!condition.ok()) continue;  // Of another version: as if nobody had watched.
      const Millis start{std::max(stored, from.count)};
      Readings& readings = condition.value().readings;
      if (const auto& input = condition.value().last_input) {
        readings.idle = Millis{std::max<int64_t>(start.count - input->count, 0)};
      }
      conditions.push_back({start, start, std::move(readings), condition.value().spent,
                            condition.value().own_gpu_load});
      watched = true;
    }
    end_last(std::max(state_->now().count, conditions.empty() ? 0 : conditions.back().start.count));
    std::erase_if(conditions, [](const WatchedSpan& c) { return c.end <= c.start; });
    return conditions;
  }());
}

void Records::note_work(const PastWork& work) {
  state_->later([state = state_.get(), work]() -> Result<void> {
    return state->database
        ->query(
            "INSERT INTO past_work (lease_id, session_id, coordinator, device, job_kind, model, "
            "anchored, first_fragment, last_fragment, started_ms, ended_ms, steps, rows_done, why, "
            "unit_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        .bind(whole(work.lease))
        .bind(whole(work.session))
        .bind(short_text(work.coordinator))
        .bind(short_text(work.device))
        .bind(short_text(work.job_class.kind))
        .bind(short_text(work.job_class.model))
        .bind(privacy_number(work.job_class))
        .bind(int64_t{work.first_fragment})
        .bind(int64_t{work.last_fragment})
        .bind(work.started.count)
        .bind(work.ended.count)
        .bind(whole(work.steps))
        .bind(whole(work.rows))
        .bind(std::string_view(message_to_text(work.why)))
        .bind(whole(work.unit))
        .run();
  });
}

Result<std::vector<PastWork>> Records::history(size_t count_max) {
  return state_->noted([&]() -> Result<std::vector<PastWork>> {
    SHOAL_TRY_ASSIGN(database, state_->readable());
    Query query = database->query(
        "SELECT lease_id, session_id, coordinator, device, job_kind, model, anchored, "
        "first_fragment, last_fragment, started_ms, ended_ms, steps, rows_done, why, unit_id "
        "FROM past_work ORDER BY id DESC LIMIT ?");
    query.bind(whole(count_max));
    std::vector<PastWork> history;
    while (true) {
      SHOAL_TRY_ASSIGN(more, query.row());
      if (!more) return history;
      history.push_back({.lease = static_cast<uint64_t>(query.integer(0)),
                         .session = static_cast<uint64_t>(query.integer(1)),
                         .coordinator = query.text(2),
                         .device = query.text(3),
                         .job_class = job_class_in(query.text(4), query.text(5), query.integer(6)),
                         .first_fragment = static_cast<uint32_t>(query.integer(7)),
                         .last_fragment = static_cast<uint32_t>(query.integer(8)),
                         .started = {query.integer(9)},
                         .ended = {query.integer(10)},
                         .steps = static_cast<uint64_t>(query.integer(11)),
                         .rows = static_cast<uint64_t>(query.integer(12)),
                         .why = message_from_text(query.text(13)),
                         .unit = static_cast<uint64_t>(query.integer(14))});
    }
  }());
}

void Records::note_yield(const YieldTime& yield) {
  state_->yields.push_back(yield);
  if (state_->yields.size() > static_cast<size_t>(kYieldRowsMax)) state_->yields.pop_front();
  state_->later([state = state_.get(), yield]() -> Result<void> {
    return state->database
        ->query("INSERT INTO yield (at_ms, device, stop_ms, free_ms) VALUES (?, ?, ?, ?)")
        .bind(yield.at.count)
        .bind(short_text(yield.device))
        .bind(yield.stop.count)
        .bind(yield.free.count)
        .run();
  });
}

const std::deque<YieldTime>& Records::yields() const { return state_->yields; }

Result<void> Records::State::load_yields() {
  if (!yields.empty()) return {};  // This process has measured some before the file could be read.
  std::deque<YieldTime> loaded;
  Query query =
      database->query("SELECT at_ms, device, stop_ms, free_ms FROM yield ORDER BY id DESC LIMIT ?");
  query.bind(kYieldRowsMax);
  while (true) {
    SHOAL_TRY_ASSIGN(more, query.row());
    if (!more) break;
    loaded.push_front({{query.integer(0)}, query.text(1), {query.integer(2)}, {query.integer(3)}});
  }
  yields = std::move(loaded);
  return {};
}

Result<void> Records::State::forget_trace() {
  // Rows are numbered as they come, so that the newest are kept even if the clock was set back. A
  // span or condition of the far future, of a clock that was ahead, goes with its number.
  const auto by_number = [this](const char* oldest, const char* forget,
                                int64_t kept) -> Result<void> {
    int64_t newest = 0;
    {
      Query query = database->query(oldest);
      SHOAL_TRY_ASSIGN(some, query.row());
      if (some) newest = query.integer(0);
    }
    return database->query(forget).bind(newest - kept).bind(kRowsForgottenAtOnce).run();
  };
  SHOAL_TRY(by_number("SELECT max(id) FROM span",
                      "DELETE FROM span WHERE id IN (SELECT id FROM span WHERE id <= ? "
                      "ORDER BY id LIMIT ?)",
                      kTraceRowsMax));
  SHOAL_TRY(by_number("SELECT max(id) FROM past_work",
                      "DELETE FROM past_work WHERE id IN (SELECT id FROM past_work WHERE id <= ? "
                      "ORDER BY id LIMIT ?)",
                      kHistoryRowsMax));
  SHOAL_TRY(by_number("SELECT max(id) FROM yield",
                      "DELETE FROM yield WHERE id IN (SELECT id FROM yield WHERE id <= ? "
                      "ORDER BY id LIMIT ?)",
                      kYieldRowsMax));
  SHOAL_TRY(database
                ->query("DELETE FROM span WHERE id IN (SELECT id FROM span WHERE end_ms < ? "
                        "ORDER BY end_ms LIMIT ?)")
                .bind(now().count - kTraceDays * kDay.count)
                .bind(kRowsForgottenAtOnce)
                .run());
  return database
      ->query(
          "DELETE FROM condition WHERE start_ms IN (SELECT start_ms FROM condition WHERE "
          "start_ms < ? ORDER BY start_ms LIMIT ?)")
      .bind(now().count - kConditionDays * kDay.count)
      .bind(kRowsForgottenAtOnce)
      .run();
}

}  // namespace shoal::client
