// Goal: what was counted is neither lost nor doubled by levels, restarts, local days and clocks
// that jump; what was noted comes back as it was, and no more of it than is promised.

#include <QTest>

#include "base/random.h"
#include "client/records/condition_bytes.h"
#include "client/records/levels.h"
#include "tests/client/records_fixture.h"

using namespace shoal;
using namespace shoal::test;
using namespace shoal::client;

namespace {

Verdict verdict(Activity activity, Message why, std::string rule = "") {
  return {.activity = activity, .why = std::move(why), .rule = std::move(rule)};
}

Usage some_usage(Random& random) {
  Usage usage{.worked_ms = static_cast<int64_t>(random.below(60'000)),
              .allowed_ms = static_cast<int64_t>(random.below(60'000)),
              .rows = static_cast<int64_t>(random.below(5'000)),
              .steps = static_cast<int64_t>(random.below(500)),
              .joules = random.uniform() * 9'000,
              .cost = random.uniform() / 100,
              .bytes_down = static_cast<int64_t>(random.below(1 << 30)),
              .bytes_up = static_cast<int64_t>(random.below(1 << 20)),
              .lasted_ms = 60'000};
  if (random.below(4) != 0) usage.watts = random.uniform() * 300;
  if (random.below(4) != 0) usage.temperature_c = 20 + random.uniform() * 70;
  return usage;
}

}  // namespace

class RecordsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { live_in_berlin(); }
  void local_days_begin_at_midnight_data();
  void local_days_begin_at_midnight();
  void sums_are_the_same_at_every_level();
  void sums_survive_clocks_that_jump();
  void absurd_figures_count_as_nothing();
  void today_and_the_month_end_with_them();
  void steps_are_what_was_asked_for();
  void steps_are_coarser_where_only_that_is_kept();
  void ten_years_are_small();
  void verdicts_become_spans();
  void open_spans_end_where_the_process_was_last_seen();
  void old_and_many_spans_are_forgotten();
  void conditions_come_back_without_what_is_nobodys_business();
  void conditions_have_gaps_where_nobody_watched();
  void damaged_conditions_are_refused();
  void work_and_yields_are_kept_to_their_number();
  void consents_are_durable();
};

void RecordsTest::local_days_begin_at_midnight_data() {
  QTest::addColumn<qint64>("at");
  QTest::addColumn<qint64>("start");
  // Winter time is an hour, summer time two hours ahead of UTC.
  QTest::newRow("winter") << qint64(1'773'000'000'000) << qint64(1'772'924'400'000);
  QTest::newRow("the day of 23 hours, before")
      << qint64(1'774'738'800'000 + kHourMs) << qint64(1'774'738'800'000);
  QTest::newRow("the day of 23 hours, after")
      << qint64(1'774'738'800'000 + 20 * kHourMs) << qint64(1'774'738'800'000);
  QTest::newRow("its last minute")
      << qint64(1'774'738'800'000 + 23 * kHourMs - 1) << qint64(1'774'738'800'000);
  QTest::newRow("the day after") << qint64(1'774'738'800'000 + 23 * kHourMs)
                                 << qint64(1'774'738'800'000 + 23 * kHourMs);
  QTest::newRow("the day of 25 hours, its last minute")
      << qint64(1'792'879'200'000 + 25 * kHourMs - 1) << qint64(1'792'879'200'000);
  QTest::newRow("the day after that")
      << qint64(1'792'879'200'000 + 25 * kHourMs) << qint64(1'792'879'200'000 + 25 * kHourMs);
  QTest::newRow("1970") << qint64(0) << qint64(-kHourMs);
}

void RecordsTest::local_days_begin_at_midnight() {
  QFETCH(qint64, at);
  QFETCH(qint64, start);
  QCOMPARE(qint64(day_start({at}).count), start);
  QCOMPARE(local_time(day_start({at})).minute_of_day, 0);
}

// Method: four months of work, with restarts in between, so that every level but the last forgets;
// what is counted here beside it must be what each level says.
void RecordsTest::sums_are_the_same_at_every_level() {
  const TempDir folder;
  Random random(3);
  ManualClock clock(kSpring);
  Sums expected, expected_gpu;
  auto records = std::make_unique<Records>(folder.path(), clock);
  const auto add = [&](const std::string& device, const Usage& usage) {
    records->add(device, usage);
    const Sums sums = sums_of(usage);
    expected.add(sums);
    if (device == "gpu") expected_gpu.add(sums);
  };
  for (int day = 0; day < 120; ++day) {
    for (int i = 0; i < 8; ++i) {
      add("gpu", some_usage(random));
      add("cpu", some_usage(random));
      add("", {.bytes_down = 100, .bytes_up = 1});
      clock.advance({3 * kHourMs - 7 * kMinuteMs + static_cast<int64_t>(random.below(120'000))});
    }
    if (day % 10 == 3) {
      records.reset();
      records = std::make_unique<Records>(folder.path(), clock);
    }
    if (day % 3 == 0) records->flush();
    if (day % 30 != 29) continue;
    QCOMPARE(records->ever(), expected);
    for (const int64_t step :
         {kMinuteMs, 10 * kMinuteMs, 30 * kMinuteMs, kHourMs, 5 * kHourMs, kDayMs, 7 * kDayMs}) {
      QCOMPARE(by_step(*records, {step}), expected);
    }
  }
  for (int i = 0; i < 50; ++i) records->flush();
  QCOMPARE(by_step(*records, {kMinuteMs}), expected);
  Sums gpu;
  const auto days = records->statistics({0}, {INT64_MAX}, {kDayMs}).value();
  for (const StatisticsRow& row : days) {
    if (row.device == "gpu") gpu.add(row.sums);
  }
  QCOMPARE(gpu, expected_gpu);

  // Two halves of the time are the whole, wherever a midnight cuts it.
  for (const int days_ago : {1, 3, 20, 40, 90}) {
    const Millis cut = day_start({clock.now_wall().count - days_ago * kDayMs});
    Sums halves = total(records->statistics({0}, cut, {kDayMs}).value());
    halves.add(total(records->statistics(cut, {INT64_MAX}, {kMinuteMs}).value()));
    QCOMPARE(halves, expected);
  }
}

void RecordsTest::sums_survive_clocks_that_jump() {
  const TempDir folder;
  ManualClock clock(kSpring);
  Sums expected;
  Random random(5);
  auto records = std::make_unique<Records>(folder.path(), clock);
  // An hour and a year back, to 1970 and before, to 2038, and the last moment there is.
  const int64_t jumps[] = {kSpring.count - kHourMs,
                           kSpring.count - 365 * kDayMs,
                           0,
                           -5 * kDayMs,
                           2'145'916'800'000,
                           INT64_MAX,
                           kSpring.count,
                           kSpring.count + 2 * kDayMs};
  for (const int64_t jump : jumps) {
    for (int i = 0; i < 3; ++i) {
      const Usage usage = some_usage(random);
      records->add("cpu", usage);
      expected.add(sums_of(usage));
      records->note_verdict(Resource::kCpu, verdict(Activity::kWaiting, {"working.idle", {}}));
      clock.advance({kMinuteMs});
    }
    records->flush();
    clock.set_wall({jump});
    records->flush();
    QCOMPARE(records->ever(), expected);
    if (jump % 2 == 0) {
      records.reset();
      records = std::make_unique<Records>(folder.path(), clock);
    }
    for (const int64_t step : {kMinuteMs, kHourMs, kDayMs}) {
      QCOMPARE(by_step(*records, {step}), expected);
    }
    QVERIFY(records->today().worked_ms >= 0);
  }
  // Years in the future were forgotten at their finest; a day later minutes are whole again.
  clock.set_wall({kSpring.count + 3 * kDayMs});
  records->flush();
  clock.set_wall({kSpring.count + 4 * kDayMs});
  records->add("cpu", {.worked_ms = 5});
  clock.advance({10 * kMinuteMs});
  records->add("cpu", {.worked_ms = 6});
  records->flush();
  const auto rows = records->statistics({kSpring.count + 4 * kDayMs}, clock.now_wall(), {1});
  QVERIFY(rows.ok());
  QCOMPARE(rows.value().size(), size_t{1});
  QCOMPARE(rows.value()[0].sums.worked_ms, int64_t{5});
}

void RecordsTest::absurd_figures_count_as_nothing() {
  QVERIFY(sums_of({}).empty());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  QVERIFY(sums_of({.worked_ms = -1,
                   .rows = INT64_MIN,
                   .joules = -5,
                   .cost = nan,
                   .temperature_c = nan,
                   .watts = nan,
                   .lasted_ms = 10})
              .empty());
  QVERIFY(sums_of({.temperature_c = 5000}).empty());
  QVERIFY(sums_of({.watts = 10, .lasted_ms = -10}).empty());
  const Sums huge = sums_of({.rows = INT64_MAX, .joules = 1e300});
  QCOMPARE(huge.rows, kSumMax);
  QCOMPARE(huge.microjoules, kSumMax);

  // As many of them as there may be, in memory and in the file.
  const TempDir folder;
  const ManualClock clock(kSpring);
  for (int i = 0; i < 3; ++i) {
    Records records(folder.path(), clock);
    records.add("cpu", {.worked_ms = INT64_MAX, .rows = 1, .watts = 1e300, .lasted_ms = INT64_MAX});
    records.flush();
    records.add("cpu", {.worked_ms = INT64_MAX, .rows = 1});
    records.flush();
    QVERIFY(records.problem().empty());
    QCOMPARE(records.ever().worked_ms, kSumMax);
    QCOMPARE(by_step(records, {kMinuteMs}).worked_ms, kSumMax);
    QCOMPARE(by_step(records, {kDayMs}).rows, int64_t{2 * i + 2});
  }
}

void RecordsTest::today_and_the_month_end_with_them() {
  const TempDir folder;
  // 30 March, 23:58 in Berlin.
  ManualClock clock(Millis{1'774'907'880'000});
  QCOMPARE(format_local_minute(clock.now_wall()), std::string("2026-03-30 23:58"));
  Records records(folder.path(), clock);
  records.add("cpu", {.worked_ms = 100, .joules = 3.6e6});
  records.add("", {.bytes_down = 10, .bytes_up = 5});
  clock.advance({kMinuteMs});
  QCOMPARE(records.today().worked_ms, int64_t{100});
  QCOMPARE(records.today("cpu").bytes_down, int64_t{0});
  QCOMPARE(records.today("gpu"), Sums());
  QCOMPARE(records.spent().kilowatt_hours_today, 1.0);

  clock.advance({kMinuteMs});  // 31 March.
  QCOMPARE(records.today(), Sums());
  QCOMPARE(records.spent().kilowatt_hours_today, 0.0);
  QCOMPARE(records.spent().kilowatt_hours_month, 1.0);
  QCOMPARE(records.spent().transferred_month, Bytes{15});
  records.add("cpu", {.worked_ms = 7, .joules = 1.8e6});
  QCOMPARE(records.spent().kilowatt_hours_month, 1.5);
  {
    Records again(folder.path(), clock);  // What waits in the first is not in the file yet.
    QVERIFY(again.problem().empty());
  }
  records.flush();
  clock.advance({kDayMs});  // 1 April.
  QCOMPARE(records.spent().kilowatt_hours_month, 0.0);
  QCOMPARE(records.spent().transferred_month, Bytes{0});
  QCOMPARE(records.ever().worked_ms, int64_t{107});
  clock.set_wall({clock.now_wall().count - kDayMs});  // And back.
  QCOMPARE(records.today().worked_ms, int64_t{7});
  QCOMPARE(records.spent().kilowatt_hours_month, 1.5);
}

void RecordsTest::steps_are_what_was_asked_for() {
  const TempDir folder;
  ManualClock clock(day_start(kSpring));
  Records records(folder.path(), clock);
  QVERIFY(records.statistics({0}, {INT64_MAX}, {kDayMs}).value().empty());
  for (int i = 0; i < 3 * 24 * 6; ++i) {
    records.add("cpu", {.worked_ms = 1});
    if (i % 6 == 0) records.add("gpu", {.rows = 1, .temperature_c = 50.0 + i % 5});
    clock.advance({10 * kMinuteMs});
  }
  const auto rows = [&](Millis from, Millis to, int64_t step) {
    return records.statistics(from, to, {step}).value();
  };
  const Millis start = day_start(kSpring);
  const Millis end{start.count + 3 * kDayMs};
  QCOMPARE(rows(start, end, 10 * kMinuteMs).size(), size_t{3 * 24 * 7});
  QCOMPARE(rows(start, end, kHourMs).size(), size_t{3 * 24 * 2});
  QCOMPARE(rows(start, end, 6 * kHourMs).size(), size_t{3 * 4 * 2});
  QCOMPARE(rows(start, end, kDayMs).size(), size_t{3 * 2});
  QCOMPARE(rows(start, end, 2 * kDayMs).size(), size_t{2 * 2});
  QCOMPARE(rows(start, end, 2 * kDayMs)[2].start.count, start.count + 2 * kDayMs);
  const auto hours = rows(start, {start.count + kHourMs}, kHourMs);
  QCOMPARE(hours.size(), size_t{2});
  QCOMPARE(hours[0].device, std::string("cpu"));
  QCOMPARE(hours[0].start.count, start.count);
  QCOMPARE(hours[0].sums.worked_ms, int64_t{6});
  QCOMPARE(hours[1].sums.temperature_max, std::optional<double>(50));
  // The end is not in it; nor is a time that ends before it begins.
  QCOMPARE(rows(start, {start.count + 10 * kMinuteMs}, 10 * kMinuteMs).size(), size_t{2});
  QVERIFY(rows(end, start, kHourMs).empty());
  QVERIFY(rows({INT64_MIN}, {INT64_MIN}, INT64_MIN).empty());
  // A step that would make too many rows becomes coarser, and the sums stay.
  clock.advance({1'000 * kDayMs});
  records.add("cpu", {.worked_ms = 1});
  QVERIFY(rows({0}, {INT64_MAX}, kMinuteMs).size() <= size_t{2 * kStatisticsStepsMax});
  QCOMPARE(by_step(records, {kMinuteMs}).worked_ms, int64_t{3 * 24 * 6 + 1});
}

void RecordsTest::steps_are_coarser_where_only_that_is_kept() {
  const TempDir folder;
  ManualClock clock(kSpring);
  Records records(folder.path(), clock);
  const auto first_rows = [&](int64_t step) {
    return records.statistics(kSpring, {kSpring.count + 2 * kHourMs}, {step}).value().size();
  };
  for (int i = 0; i < 60; ++i) {
    records.add("cpu", {.worked_ms = 1});
    clock.advance({kMinuteMs});
  }
  records.flush();
  QCOMPARE(first_rows(kMinuteMs), size_t{60});
  clock.set_wall({day_start({kSpring.count + 4 * kDayMs}).count - 1});
  records.flush();
  QCOMPARE(first_rows(kMinuteMs), size_t{60});
  clock.advance({1});
  records.flush();
  QCOMPARE(first_rows(kMinuteMs), size_t{6});
  clock.set_wall({day_start({kSpring.count + 31 * kDayMs}).count - 1});
  records.flush();
  QCOMPARE(first_rows(kMinuteMs), size_t{6});
  clock.advance({2 * kHourMs});  // The clocks have changed in between.
  records.flush();
  QCOMPARE(first_rows(kMinuteMs), size_t{1});
  QCOMPARE(first_rows(kHourMs), size_t{1});
  clock.set_wall({day_start({kSpring.count + 401 * kDayMs}).count + 2 * kHourMs});
  records.flush();
  const auto rows = records.statistics({0}, {INT64_MAX}, {kMinuteMs}).value();
  QCOMPARE(rows.size(), size_t{1});
  QCOMPARE(rows[0].start, day_start(kSpring));
  QCOMPARE(rows[0].sums.worked_ms, int64_t{60});
}

// Method: what ten years leave behind of one device and of none, each row with figures of a usual
// size; four devices leave two and a half times as much. SHOAL_RECORDS_DEVICES=4 does it at full
// scale.
void RecordsTest::ten_years_are_small() {
  const int devices = std::max(qEnvironmentVariableIntValue("SHOAL_RECORDS_DEVICES"), 1);
  const TempDir folder;
  Random random(9);
  const int64_t end = kSpring.count + 3'650 * kDayMs;
  ManualClock clock(kSpring);
  {
    Records records(folder.path(), clock);
    while (clock.now_wall().count < end) {
      const int64_t left = end - clock.now_wall().count;
      const int64_t minutes = left > 400 * kDayMs  ? 1'440
                              : left > 30 * kDayMs ? 60
                              : left > 3 * kDayMs  ? 10
                                                   : 1;
      for (int device = 0; device < devices; ++device) {
        Usage usage = some_usage(random);
        for (int64_t* figure : {&usage.worked_ms, &usage.allowed_ms, &usage.rows, &usage.steps})
          *figure *= minutes;
        usage.joules *= static_cast<double>(minutes);
        usage.bytes_down = usage.bytes_up = 0;
        records.add("vulkan:0123456789abcdef0123456789abcde" + std::to_string(device), usage);
      }
      records.add("", {.bytes_down = static_cast<int64_t>(random.below(1 << 24)) * minutes,
                       .bytes_up = static_cast<int64_t>(random.below(1 << 24)) * minutes});
      if (minutes >= 60 || local_time(clock.now_wall()).minute_of_day % 30 == 0) records.flush();
      clock.advance({minutes * kMinuteMs});
    }
    for (int i = 0; i < 50; ++i) records.flush();
    QVERIFY(records.problem().empty());
  }
  const auto bytes = std::filesystem::file_size(folder / "records.db");
  const auto limit = int64_t{20'000'000} * (devices + 1) / 5;
  qInfo("ten years of %d devices: %lld bytes", devices, static_cast<long long>(bytes));
  QVERIFY2(static_cast<int64_t>(bytes) < limit, std::to_string(bytes).c_str());
}

void RecordsTest::verdicts_become_spans() {
  const TempDir folder;
  ManualClock clock(kSpring);
  Records records(folder.path(), clock);
  Verdict active =
      verdict(Activity::kWaiting, {"rule.owner_active", {Millis{3'000}}}, "rules.gpu_when_in_use");
  active.remedy = {"rule.owner_active.remedy", {Millis{180'000}}};
  active.changes_at = Millis{kSpring.count + 180'000};
  records.note_verdict(Resource::kGpu, active);
  records.note_verdict(Resource::kCpu, verdict(Activity::kPaused, {"mode.paused", {}}));
  clock.advance({10'000});
  active.why.parameters = {Millis{13'000}};
  records.note_verdict(Resource::kGpu, active);  // The same, but for a figure.
  clock.advance({5'000});
  const auto program = [](const char* name) {
    return verdict(Activity::kWaiting, {"rule.program", {std::string(name)}}, "rules.programs");
  };
  records.note_verdict(Resource::kGpu, program("blender"));
  clock.advance({1'000});
  records.note_verdict(Resource::kGpu, program("game"));
  records.note_verdict(Resource::kGpu, program("another"));  // Within the same millisecond.

  const auto spans = records.trace({0}, {INT64_MAX}, 100).value();
  QCOMPARE(spans.size(), size_t{5});
  QCOMPARE(spans[0].resource, Resource::kGpu);
  QCOMPARE(spans[0].start, kSpring);
  QCOMPARE(spans[0].end, std::optional(Millis{kSpring.count + 15'000}));
  QCOMPARE(spans[0].verdict.rule, std::string("rules.gpu_when_in_use"));
  QCOMPARE(english(spans[0].verdict.why.parameters[0]), std::string("3 s"));
  QCOMPARE(spans[0].verdict.remedy.code, std::string("rule.owner_active.remedy"));
  QCOMPARE(spans[0].verdict.changes_at, active.changes_at);
  QCOMPARE(spans[1].verdict.activity, Activity::kPaused);
  QVERIFY(!spans[1].end);
  QCOMPARE(std::get<std::string>(spans[2].verdict.why.parameters[0]), std::string("blender"));
  QVERIFY(!spans[4].end);

  // Only what touches the time, and the newest of it.
  QCOMPARE(records.trace({0}, kSpring, 100).value().size(), size_t{0});
  QCOMPARE(records.trace({0}, {kSpring.count + 1}, 100).value().size(), size_t{2});
  QCOMPARE(records.trace({kSpring.count + 15'000}, {INT64_MAX}, 100).value().size(), size_t{4});
  const auto newest = records.trace({0}, {INT64_MAX}, 2).value();
  QCOMPARE(newest.size(), size_t{2});
  QVERIFY(!newest[0].end && !newest[1].end);
}

void RecordsTest::open_spans_end_where_the_process_was_last_seen() {
  const TempDir folder, copy;
  ManualClock clock(kSpring);
  {
    Records records(folder.path(), clock);
    records.note_verdict(Resource::kCpu, verdict(Activity::kWorking, {"working.idle", {}}));
    clock.advance({kMinuteMs});
    records.flush();
    // As kill -9 leaves it.
    std::filesystem::copy(folder.path(), copy.path(), std::filesystem::copy_options::recursive);
    clock.advance({kMinuteMs});
  }
  clock.advance({kHourMs});
  for (const bool killed : {true, false}) {
    Records records(killed ? copy.path() : folder.path(), clock);
    const Millis seen{kSpring.count + (killed ? 1 : 2) * kMinuteMs};
    const auto spans = records.trace({0}, {INT64_MAX}, 100).value();
    QCOMPARE(spans.size(), size_t{4});
    QVERIFY(records.notices().empty());
    QCOMPARE(spans[0].end, std::optional(seen));
    for (size_t i = 1; i < 4; ++i) {
      QCOMPARE(spans[i].start, seen);
      QCOMPARE(spans[i].end, std::optional(clock.now_wall()));
      QCOMPARE(spans[i].verdict.why.code, std::string("trace.not_running"));
      QCOMPARE(spans[i].verdict.activity, Activity::kOffline);
    }
    records.note_verdict(Resource::kCpu, verdict(Activity::kWorking, {"working.idle", {}}));
    QCOMPARE(records.trace({0}, {INT64_MAX}, 100).value().size(), size_t{5});
  }
  // A clock that was set back: no span of a negative length, and none of the future.
  clock.set_wall({kSpring.count - kHourMs});
  Records records(folder.path(), clock);
  const auto spans = records.trace({0}, {INT64_MAX}, 100).value();
  for (const TraceSpan& span : spans) {
    QVERIFY(span.end && *span.end >= span.start);
  }
}

void RecordsTest::old_and_many_spans_are_forgotten() {
  const TempDir folder;
  ManualClock clock(kSpring);
  Records records(folder.path(), clock);
  const auto note = [&](const char* name) {
    records.note_verdict(Resource::kCpu, verdict(Activity::kWaiting, {"x", {std::string(name)}}));
  };
  note("a");
  clock.advance({1'000});
  note("b");
  const auto count = [&] { return records.trace({0}, {INT64_MAX}, 100).value().size(); };
  clock.set_wall({kSpring.count + 1'000 + kTraceDays * kDayMs});
  records.flush();
  QCOMPARE(count(), size_t{2});
  clock.advance({1});
  records.flush();
  QCOMPARE(count(), size_t{1});  // What lasts is never too old.
}

void RecordsTest::conditions_come_back_without_what_is_nobodys_business() {
  const TempDir folder;
  ManualClock clock(kSpring);
  Records records(folder.path(), clock);
  Readings readings{
      .idle = Millis{30'000},
      .idle_source = "mutter",
      .locked = false,
      .inhibitors = std::vector<Inhibitor>{{"mpv", "a film that nobody needs to know"}},
      .on_battery = true,
      .battery_percent = 71.4,
      .power_profile = "balanced",
      .sleeping = true,
      .other_cpu_load = 0.254,
      .programs = std::vector<std::string>{"blender"},
      .memory_available = Bytes{5 << 30},
      .gpus = std::vector<GpuReading>{{.pci_address = "0000:01:00.0",
                                       .uuid = "ab",
                                       .name = "A GPU",
                                       .temperature_c = 66.6,
                                       .load = 0.5,
                                       .memory_total = kGibibyte}},
      .cpu_temperature_c = 55,
      .online = true,
  };
  records.add("cpu", {.joules = 3.6e6});
  records.note_conditions(readings, 0.3);
  for (int minute = 1; minute < 10; ++minute) {
    clock.advance({kMinuteMs});
    *readings.idle += Millis{kMinuteMs + (minute % 3 - 1) * 900};  // The owner stays away.
    *readings.other_cpu_load += 0.0001;
    readings.gpus->at(0).joules = minute * 1000;
    records.note_conditions(readings, 0.3);
  }
  clock.advance({kMinuteMs});
  readings.idle = Millis{1'000};
  records.note_conditions(readings, 0.3);
  clock.advance({kMinuteMs});

  const auto spans = records.conditions({0}, {INT64_MAX}).value();
  QCOMPARE(spans.size(), size_t{2});
  const WatchedSpan& first = spans[0];
  QCOMPARE(first.start, kSpring);
  QCOMPARE(first.end.count, kSpring.count + 10 * kMinuteMs);
  QCOMPARE(spans[1].start, first.end);
  QCOMPARE(spans[1].end, clock.now_wall());
  QCOMPARE(first.spent.kilowatt_hours_today, 1.0);
  QCOMPARE(first.own_gpu_load, 0.3);
  const Readings& r = first.readings;
  QCOMPARE(r.idle, std::optional(Millis{30'000}));
  QCOMPARE(spans[1].readings.idle, std::optional(Millis{1'000}));
  QCOMPARE(r.inhibitors->at(0).who, std::string("mpv"));
  QVERIFY(r.inhibitors->at(0).why.empty());
  QCOMPARE(r.locked, std::optional(false));
  QCOMPARE(r.on_battery, std::optional(true));
  QVERIFY(!r.game_mode && !r.metered && !r.cache_disk_free);
  QCOMPARE(r.online, std::optional(true));
  QCOMPARE(r.battery_percent, std::optional(71.0));
  QCOMPARE(r.power_profile, std::optional<std::string>("balanced"));
  QVERIFY(r.sleeping);
  QCOMPARE(r.other_cpu_load, std::optional(0.25));
  QCOMPARE(r.programs->at(0), std::string("blender"));
  QCOMPARE(r.memory_available, std::optional(Bytes{5 << 30}));
  QCOMPARE(r.cpu_temperature_c, std::optional(55.0));
  QCOMPARE(r.gpus->at(0).pci_address, std::string("0000:01:00.0"));
  QCOMPARE(r.gpus->at(0).temperature_c, std::optional(67.0));
  QCOMPARE(r.gpus->at(0).memory_total, std::optional(kGibibyte));
  QVERIFY(!r.gpus->at(0).memory_used);

  // From the middle of a span, the owner has been away for longer.
  const auto later = records.conditions({kSpring.count + 5 * kMinuteMs}, {INT64_MAX}).value();
  QCOMPARE(later[0].start.count, kSpring.count + 5 * kMinuteMs);
  QCOMPARE(later[0].readings.idle, std::optional(Millis{30'000 + 5 * kMinuteMs}));
  // What was unknown stays so.
  records.note_conditions({});
  clock.advance({1});
  const Readings unknown = records.conditions({0}, {INT64_MAX}).value().back().readings;
  QVERIFY(!unknown.idle && !unknown.gpus && !unknown.programs && !unknown.inhibitors);
  QVERIFY(!unknown.locked && !unknown.battery_percent && !unknown.power_profile);
}

void RecordsTest::conditions_have_gaps_where_nobody_watched() {
  const TempDir folder;
  ManualClock clock(kSpring);
  {
    Records records(folder.path(), clock);
    records.note_conditions({.on_battery = false});
    clock.advance({kMinuteMs});
  }
  clock.advance({kHourMs});
  Records records(folder.path(), clock);
  records.note_conditions({.on_battery = false});
  clock.advance({kMinuteMs});
  const auto spans = records.conditions({0}, {INT64_MAX}).value();
  QCOMPARE(spans.size(), size_t{2});
  QVERIFY(spans[0].end.count <= kSpring.count + kMinuteMs + 1);
  QCOMPARE(spans[1].start.count, kSpring.count + kMinuteMs + kHourMs);
  QCOMPARE(spans[1].end, clock.now_wall());

  clock.set_wall({kSpring.count + (kConditionDays + 1) * kDayMs});
  records.flush();
  QVERIFY(records.conditions({0}, {kSpring.count + kDayMs}).value().empty());
}

void RecordsTest::damaged_conditions_are_refused() {
  const StoredCondition whole{{.inhibitors = std::vector<Inhibitor>{{"a", ""}},
                               .programs = std::vector<std::string>{"b"},
                               .gpus = std::vector<GpuReading>{{.name = "c"}}},
                              Millis{1},
                              {},
                              0};
  const ByteVector bytes = condition_to_bytes(whole);
  QVERIFY(condition_from_bytes(bytes).ok());
  for (size_t length = 0; length < bytes.size(); ++length) {
    QVERIFY(!condition_from_bytes(ByteSpan(bytes).first(length)).ok());
  }
  ByteVector later_form = bytes;
  later_form[0] = std::byte{9};
  QCOMPARE(condition_from_bytes(later_form).error().code, ErrorCode::kUnsupported);
}

void RecordsTest::work_and_yields_are_kept_to_their_number() {
  const TempDir folder;
  const ManualClock clock(kSpring);
  PastWork work{.lease = 1,
                .session = 2,
                .coordinator = "demo",
                .device = "cpu",
                .job_class = {"generate", "m", true},
                .first_fragment = 3,
                .last_fragment = 4,
                .started = {5},
                .ended = {6},
                .steps = 7,
                .rows = 8,
                .why = {"mode.paused_until", {WallTime{Millis{9}}}}};
  {
    Records records(folder.path(), clock);
    for (int i = 0; i < kHistoryRowsMax + 50; ++i) {
      work.lease = static_cast<uint64_t>(i);
      records.note_work(work);
      if (i % 2'000 == 0) records.flush();
    }
    for (int i = 0; i < kYieldRowsMax + 50; ++i) records.note_yield({{i}, "cpu", {i}, {2 * i}});
    QCOMPARE(records.yields().size(), size_t{kYieldRowsMax});
    for (int i = 0; i < 3; ++i) records.flush();
  }
  Records records(folder.path(), clock);
  const auto history = records.history(SIZE_MAX).value();
  QCOMPARE(history.size(), size_t{kHistoryRowsMax});
  QCOMPARE(history[0].lease, uint64_t{kHistoryRowsMax + 49});
  QCOMPARE(history.back().lease, uint64_t{50});
  QCOMPARE(history[0].coordinator, std::string("demo"));
  QCOMPARE(history[0].job_class, work.job_class);
  QCOMPARE(history[0].last_fragment, uint32_t{4});
  QCOMPARE(history[0].ended, Millis{6});
  QCOMPARE(history[0].rows, uint64_t{8});
  QCOMPARE(std::get<WallTime>(history[0].why.parameters[0]).at, Millis{9});
  QCOMPARE(records.history(3).value().size(), size_t{3});
  const auto yields = records.yields();
  QCOMPARE(yields.size(), size_t{kYieldRowsMax});
  QCOMPARE(yields.front().at, Millis{50});
  QCOMPARE(yields.back().free, Millis{2 * (kYieldRowsMax + 49)});
}

void RecordsTest::consents_are_durable() {
  const TempDir folder;
  const ManualClock clock(kSpring);
  const JobClass one{"generate", "m", false}, anchored{"generate", "m", true};
  {
    Records records(folder.path(), clock);
    QVERIFY(!records.consent("pin", one));
    QVERIFY(records.set_consent("pin", one, false).ok());
    QVERIFY(records.set_consent("pin", anchored, false).ok());
    QVERIFY(records.set_consent("pin", anchored, true).ok());
  }
  {
    const Records records(folder.path(), clock);
    QCOMPARE(records.consent("pin", one), std::optional(false));
    QCOMPARE(records.consent("pin", anchored), std::optional(true));
    QVERIFY(!records.consent("another", one));
    QCOMPARE(records.denied("pin"), std::vector<JobClass>{one});
    QVERIFY(records.denied("another").empty());
    QVERIFY(records.notices().empty());
  }
  // A damaged file and no good copy: the owner hears of it.
  QVERIFY(write_file_durably(folder / "consents.state", as_bytes("x")).ok());
  QVERIFY(write_file_durably(folder / "consents.state.good", as_bytes("x")).ok());
  Records records(folder.path(), clock);
  QCOMPARE(records.notices().size(), size_t{1});
  QCOMPARE(records.notices()[0].code, std::string("records.consents_lost"));
  QVERIFY(records.consents_lost().has_value());
  // Over what is judged since, and over a restart, until the owner chooses anew.
  QVERIFY(records.set_consent("pin", {"generate", "m", false}, true).ok());
  {
    Records again(folder.path(), clock);
    QVERIFY(again.consents_lost().has_value());
    QCOMPARE(again.consent("pin", {"generate", "m", false}), std::optional<bool>(true));
    QVERIFY(again.forget_lost_consents().ok());
    QVERIFY(!again.consents_lost().has_value() && again.notices().empty());
  }
  QVERIFY(!Records(folder.path(), clock).consents_lost().has_value());
}

QTEST_GUILESS_MAIN(RecordsTest)
#include "records_test.moc"
