// Hours of a week: what a text means, what is refused and where, and how a week is written again.

#include <QTest>

#include "base/random.h"
#include "schema/week_hours.h"

using namespace shoal;

namespace {

using Texts = std::vector<std::string>;

WeekHours read(const Texts& texts) {
  Result<WeekHours> hours = WeekHours::parse(texts);
  return hours.ok() ? std::move(hours).value() : WeekHours::never();
}

std::string joined(const Texts& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : "; ") + text;
  return all;
}

}  // namespace

class WeekHoursTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void windows_hold_their_first_minute_and_not_their_last() {
    const WeekHours hours = read({"mon-tue 08:00-12:00 13:30-17:00"});
    QVERIFY(!hours.contains(0, 8 * 60 - 1));
    QVERIFY(hours.contains(0, 8 * 60));
    QVERIFY(hours.contains(1, 12 * 60 - 1));
    QVERIFY(!hours.contains(1, 12 * 60));
    QVERIFY(!hours.contains(1, 13 * 60 + 29));
    QVERIFY(hours.contains(1, 13 * 60 + 30));
    QVERIFY(!hours.contains(2, 9 * 60));
  }

  void windows_go_over_midnight_and_over_the_week() {
    const WeekHours night = read({"sun 22:00-06:00"});
    QVERIFY(night.contains(6, 22 * 60));
    QVERIFY(night.contains(6, 23 * 60 + 59));
    QVERIFY(night.contains(0, 0));
    QVERIFY(night.contains(0, 6 * 60 - 1));
    QVERIFY(!night.contains(0, 6 * 60));
    QVERIFY(!night.contains(6, 22 * 60 - 1));
    const WeekHours weekend = read({"Sat-Mon 00:00-24:00"});
    QVERIFY(weekend.contains(5, 0) && weekend.contains(0, 1439));
    QVERIFY(!weekend.contains(1, 0) && !weekend.contains(4, 1439));
  }

  void no_texts_are_always_and_never_is_a_word() {
    QVERIFY(read({}) == WeekHours::always());
    QVERIFY(WeekHours::always().contains(0, 0) && WeekHours::always().contains(6, 1439));
    QVERIFY(WeekHours::parse(Texts{"never"}).value() == WeekHours::never());
    QVERIFY(!WeekHours::never().contains(3, 77));
    QVERIFY(!WeekHours::parse(Texts{"never", "mon 08:00-09:00"}).ok());
    QVERIFY(read({"mon-sun 00:00-24:00"}) == WeekHours::always());
  }

  void refusals_name_text_and_place_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<int>("place");
    QTest::newRow("empty") << "" << 1;
    QTest::newRow("no day") << "08:00-09:00" << 1;
    QTest::newRow("no such day") << "mon-fry 08:00-09:00" << 5;
    QTest::newRow("no space") << "mon08:00-09:00" << 4;
    QTest::newRow("day alone") << "mon" << 4;
    QTest::newRow("no time") << "mon " << 5;
    QTest::newRow("no minutes") << "mon 8-9" << 5;
    QTest::newRow("one digit") << "mon 08:0-09:00" << 8;
    QTest::newRow("minute 60") << "mon 08:60-09:00" << 8;
    QTest::newRow("hour 25") << "mon 08:00-25:00" << 11;
    QTest::newRow("after 24:00") << "mon 08:00-24:01" << 11;
    QTest::newRow("from 24:00") << "mon 24:00-06:00" << 5;
    QTest::newRow("empty window") << "mon 08:00-08:00" << 5;
    QTest::newRow("no end") << "mon 08:00" << 10;
    QTest::newRow("no space behind") << "mon 08:00-09:00x" << 16;
    QTest::newRow("word behind") << "mon 08:00-09:00 x" << 17;
    QTest::newRow("second window") << "mon 08:00-09:00 10:00-1:00:0" << 27;
  }
  void refusals_name_text_and_place() {
    QFETCH(QString, text);
    QFETCH(int, place);
    const Result<WeekHours> hours = WeekHours::parse(Texts{text.toStdString()});
    QVERIFY(!hours.ok());
    QCOMPARE(hours.error().code, ErrorCode::kInvalid);
    const QString said = QString::fromStdString(hours.error().message);
    QVERIFY2(said.startsWith("'" + text + "'"), qPrintable(said));
    QVERIFY2(said.endsWith(QString(" at character %1").arg(place)), qPrintable(said));
  }

  void the_next_change_is_found_over_the_week() {
    const WeekHours hours = read({"mon 00:00-01:00", "sun 23:00-24:00"});
    QCOMPARE(hours.until_change(0, 0), std::optional(60));
    QCOMPARE(hours.until_change(0, 60), std::optional(kMinutesOfWeek - 120));
    QCOMPARE(hours.until_change(6, 23 * 60), std::optional(120));  // Through midnight.
    QCOMPARE(read({"mon 00:00-01:00"}).until_change(0, 61), std::optional(kMinutesOfWeek - 61));
    QCOMPARE(read({"sun 23:00-24:00"}).until_change(6, 1439), std::optional(1));
    QCOMPARE(read({"sun 23:00-24:00"}).until_change(0, 0), std::optional(kMinutesOfWeek - 60));
    QVERIFY(!WeekHours::always().until_change(2, 2));
    QVERIFY(!WeekHours::never().until_change(2, 2));
  }

  void weeks_are_written_shortly() {
    const auto written = [](const Texts& texts) { return joined(read(texts).format()); };
    QCOMPARE(written({"mon 22:00-06:00", "tue 22:00-06:00", "wed-fri 22:00-06:00"}),
             std::string("mon-fri 22:00-06:00"));
    QCOMPARE(written({"mon-sun 22:00-24:00", "mon-sun 00:00-06:00"}),
             std::string("mon-sun 22:00-06:00"));
    QCOMPARE(written({"sat-sun 00:00-24:00"}), std::string("sat-sun 00:00-24:00"));
    QCOMPARE(written({"fri 18:00-24:00", "sat-sun 00:00-24:00", "mon 00:00-08:00"}),
             std::string("mon 00:00-08:00; fri 18:00-24:00; sat-sun 00:00-24:00"));
    QCOMPARE(written({"sat-mon 08:00-12:00 14:00-16:00"}),
             std::string("sat-mon 08:00-12:00; sat-mon 14:00-16:00"));
    QCOMPARE(joined(WeekHours::never().format()), std::string("never"));
    QCOMPARE(joined(WeekHours::always().format()), std::string());
  }

  // Goal: what is written is read as the same week, for the editor's grids and for odd minutes.
  void what_is_written_is_read_again() {
    Random random(3);
    for (int i = 0; i < 200; ++i) {
      WeekHours::Grid grid{};
      const uint64_t runs = 1 + random.below(12);
      for (uint64_t run = 0; run < runs; ++run) {
        const uint64_t from = random.below(7 * 48);
        const uint64_t length = 1 + random.below(run == 0 ? 150 : 20);
        for (uint64_t cell = from; cell < from + length; ++cell) {
          grid[cell / 48 % 7][cell % 48] = true;
        }
      }
      const WeekHours hours = WeekHours::of_grid(grid);
      QVERIFY(hours.grid() == grid);
      QVERIFY(hours.fits_grid());
      const Result<WeekHours> again = WeekHours::parse(hours.format());
      QVERIFY2(again.ok() && again.value() == hours, joined(hours.format()).c_str());
    }
    const WeekHours odd = read({"tue 08:10-09:00"});
    QVERIFY(!odd.fits_grid());
    QVERIFY(!odd.grid()[1][16] && odd.grid()[1][17]);
    QVERIFY(read(odd.format()) == odd);
    QVERIFY(WeekHours::never().fits_grid() && WeekHours::always().fits_grid());
  }

  void a_window_leaves_what_stands_behind_it() {
    const Result<WeekWindow> window = parse_week_window("mon 08:00-09:00 10:00-11:00  0.21");
    QVERIFY(window.ok());
    QCOMPARE(std::string(window.value().rest), std::string("0.21"));
    QCOMPARE(window.value().rest_at, size_t{29});
    QVERIFY(window.value().hours == read({"mon 08:00-09:00 10:00-11:00"}));
  }
};

QTEST_GUILESS_MAIN(WeekHoursTest)
#include "week_hours_test.moc"
