// The comfort governor over simulated devices, the energy meter, and the price of a kilowatt-hour.

#include <QTest>
#include <cmath>
#include <limits>

#include "client/rules/energy.h"
#include "client/rules/governor.h"
#include "client/rules/tariff.h"
#include "client/settings.h"

using namespace shoal;
using namespace shoal::client;

namespace {

constexpr Millis kSecond{1'000};

// A device that goes to its end temperature by a first-order law.
struct Plant {
  double ambient = 30;
  double rise = 50;  // Above ambient at full duty.
  double seconds = 60;
  double temperature = 30;

  void step(double duty, double elapsed) {
    const double end = ambient + rise * duty;
    temperature = end + (temperature - end) * std::exp(-elapsed / seconds);
  }
};

}  // namespace

class ComfortTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void temperature_is_held_without_swinging_data() {
    QTest::addColumn<double>("seconds");
    QTest::addColumn<double>("rise");
    QTest::addColumn<double>("target");
    QTest::addColumn<bool>("whole_degrees");  // As NVML tells them.
    QTest::addColumn<int>("each");            // Seconds between readings.
    for (const double seconds : {4.0, 15.0, 60.0, 150.0, 300.0}) {
      for (const double rise : {25.0, 40.0, 60.0}) {
        for (const bool whole : {false, true}) {
          const std::string name = std::to_string(seconds) + " s, " + std::to_string(rise) +
                                   " degrees" + (whole ? ", whole" : "");
          for (const int each : {1, 2}) {
            QTest::newRow((name + ", each " + std::to_string(each)).c_str())
                << seconds << rise << 30 + rise * 0.6 << whole << each;
          }
        }
      }
    }
  }
  // Goal: the target is neither passed by more than two degrees nor swung around by more, and is
  // reached. Method: an hour of a simulated device from cold at full duty, then one
  // in which its room warms by five degrees.
  void temperature_is_held_without_swinging() {
    QFETCH(double, seconds);
    QFETCH(double, rise);
    QFETCH(double, target);
    QFETCH(bool, whole_degrees);
    QFETCH(int, each);
    Plant plant{.rise = rise, .seconds = seconds};
    Governor governor;
    double most = 0;
    double low = 1'000, high = 0;  // Of the last quarter.
    for (int second = 0; second < 7'200; second += each) {
      if (second >= 3'600 && second < 4'800) plant.ambient += 5.0 * each / 1'200;
      const double told = whole_degrees ? std::floor(plant.temperature) : plant.temperature;
      const Pace pace = governor.update({.temperature_c = target}, told, {}, Millis{each * 1'000});
      QVERIFY(pace.duty >= 0.05 && pace.duty <= 1);
      plant.step(pace.duty, each);
      most = std::max(most, plant.temperature);
      if (second >= 5'400) {
        low = std::min(low, plant.temperature);
        high = std::max(high, plant.temperature);
      }
    }
    QVERIFY2(most <= target + 2, std::to_string(most - target).c_str());
    QVERIFY2(high - low <= 2, std::to_string(high - low).c_str());
    QVERIFY2(std::abs((high + low) / 2 - target) <= 1.5, std::to_string(low - target).c_str());
  }

  // Goal: power is held although its reading is a mean over two seconds.
  void power_is_held_without_swinging() {
    for (const double full : {90.0, 200.0, 450.0}) {
      Governor governor;
      double watts = 20, told = 20, low = 1'000, high = 0;
      for (int second = 0; second < 600; ++second) {
        const Pace pace = governor.update({.watts = 80}, {}, told, kSecond);
        watts = 20 + (full - 20) * pace.duty;
        told += (watts - told) * 0.5;
        if (second < 300) continue;
        low = std::min(low, watts);
        high = std::max(high, watts);
      }
      QVERIFY2(low > 76 && high < 84, std::to_string(full).c_str());
    }
  }

  void a_device_that_stays_cool_is_not_slowed() {
    Plant plant{.rise = 20};
    Governor governor;
    Pace pace;
    for (int second = 0; second < 1'000; ++second) {
      pace = governor.update({.temperature_c = 60, .watts = 300}, plant.temperature, 100, kSecond);
      plant.step(pace.duty, 1);
    }
    QCOMPARE(pace.duty, 1.0);
    QCOMPARE(pace.rows_max, 0u);
    QCOMPARE(pace.duty_percent(), 100u);
    QVERIFY(pace.why.empty());
  }

  void what_no_duty_can_cool_stays_at_the_least() {
    Governor governor;
    Pace pace;
    double temperature = 90;
    for (int second = 0; second < 1'000; ++second) {
      pace = governor.update({.temperature_c = 60}, temperature, {}, kSecond);
    }
    QCOMPARE(pace.duty, 0.05);
    QCOMPARE(pace.rows_max, 16u);
    QCOMPARE(pace.why.code, std::string("pace.temperature"));
    // It did not run away below: a degree under the target it rises again within minutes.
    for (int second = 0; second < 600; ++second) {
      pace = governor.update({.temperature_c = 60}, 59, {}, kSecond);
    }
    QVERIFY(pace.duty > 0.15);
  }

  void the_strictest_target_holds() {
    Governor governor;
    Pace pace;
    for (int second = 0; second < 600; ++second) {
      pace = governor.update({.temperature_c = 80, .watts = 100, .duty_max = 0.9}, 50.0,
                             200 * pace.duty, kSecond);
    }
    QVERIFY(std::abs(pace.duty - 0.5) < 0.02);
    QCOMPARE(pace.why.code, std::string("pace.watts"));
    QCOMPARE(pace.rows_max, 64u + 64u);
    pace = governor.update({.duty_max = 0.3}, 50.0, 60.0, kSecond);
    QCOMPARE(pace.duty, 0.3);
    QCOMPARE(pace.why.code, std::string("pace.duty"));
    pace = governor.update({.duty_max = -4}, 50.0, 60.0, kSecond);
    QCOMPARE(pace.duty, 0.05);
  }

  void without_a_sensor_the_duty_limit_holds_and_says_so() {
    Governor governor;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const std::optional<double>& nothing : {std::optional<double>(), std::optional(nan)}) {
      Pace pace = governor.update({.temperature_c = 60, .duty_max = 0.7}, nothing, 10, kSecond);
      QCOMPARE(pace.duty, 0.7);
      QCOMPARE(pace.why.code, std::string("pace.no_temperature"));
      pace = governor.update({.watts = 60, .duty_max = 0.6}, 50, nothing, kSecond);
      QCOMPARE(pace.duty, 0.6);
      QCOMPARE(pace.why.code, std::string("pace.no_watts"));
    }
    for (const char* code :
         {"pace.no_temperature", "pace.no_watts", "pace.duty", "pace.watts", "pace.temperature"}) {
      QVERIFY2(find_message(code) != nullptr, code);
    }
  }

  void a_sleep_is_no_step_of_the_control() {
    Governor governor;
    for (int second = 0; second < 60; ++second) {
      governor.update({.temperature_c = 60}, 65, {}, kSecond);
    }
    const double before = governor.update({.temperature_c = 60}, 65, {}, kSecond).duty;
    QVERIFY(before < 1 && before > 0.05);
    // Eight hours of cold, and a clock that stood still, move nothing.
    QCOMPARE(governor.update({.temperature_c = 60}, 20, {}, Millis{8 * 3'600'000}).duty, before);
    QCOMPARE(governor.update({.temperature_c = 60}, 90, {}, Millis{0}).duty, before);
  }

  void targets_come_from_the_settings() {
    Settings settings(settings_table());
    QCOMPARE(GovernorTargets::of(settings).duty_max, 1.0);
    QCOMPARE(GovernorTargets::of(settings).temperature_c, 0.0);
    QVERIFY(settings.set("comfort.temperature_target", int64_t{65}).ok());
    QVERIFY(settings.set("comfort.watts_target", int64_t{120}).ok());
    QVERIFY(settings.set("comfort.duty_percent_max", int64_t{40}).ok());
    QCOMPARE(GovernorTargets::of(settings).temperature_c, 65.0);
    QCOMPARE(GovernorTargets::of(settings).watts, 120.0);
    QCOMPARE(GovernorTargets::of(settings).duty_max, 0.4);
  }

  void a_counter_is_believed_less_what_the_device_draws_at_rest() {
    EnergyMeter meter;
    // The first reading only says where the counter stands.
    QVERIFY(!meter.add({.joules = 1'000}, kSecond, Millis{0}, 100).measured());
    QCOMPARE(meter.add({.joules = 1'020}, kSecond, Millis{0}, 100).joules, 0.0);  // 20 W at rest.
    const EnergySlice busy = meter.add({.joules = 1'170}, kSecond, kSecond, 100);
    QVERIFY(busy.measured());
    QCOMPARE(busy.joules, 150.0);
    // Half of the time at 150 W, half at rest.
    QCOMPARE(meter.add({.joules = 1'255}, kSecond, Millis{500}, 100).joules, 75.0);
    QCOMPARE(EnergySlice{.joules = 3.6e6}.kilowatt_hours(), 1.0);
  }

  void what_was_estimated_while_the_counter_was_away_is_not_counted_again() {
    EnergyMeter meter;
    meter.add({.joules = 0}, kSecond, Millis{0}, 100);
    QCOMPARE(meter.add({.joules = 200}, kSecond, kSecond, 100).joules, 200.0);
    QCOMPARE(*meter.calibrated_watts(), 200.0);
    // Away for two seconds: the calibrated watts, not the owner's guess.
    for (int i = 0; i < 2; ++i) {
      const EnergySlice slice = meter.add({}, kSecond, kSecond, 100);
      QCOMPARE(slice.source, EnergySource::kEstimate);
      QCOMPARE(slice.joules, 200.0);
    }
    // Back after a third second: 630 in all, of which 400 were counted.
    const EnergySlice back = meter.add({.joules = 830}, kSecond, kSecond, 100);
    QVERIFY(back.measured());
    QCOMPARE(back.joules, 230.0);
    // When the estimate was too high, the sum is not made lower again.
    meter.add({}, kSecond, kSecond, 100);
    QCOMPARE(meter.add({.joules = 840}, kSecond, kSecond, 100).joules, 0.0);
  }

  // What the governor holds a device at is what its owner sees on a meter, and not our part of it.
  void the_whole_power_is_told_beside_our_part() {
    EnergyMeter meter;
    meter.add({.joules = 1'000}, kSecond, Millis{0}, 100);
    const EnergySlice rest = meter.add({.joules = 1'030}, kSecond, Millis{0}, 100);
    QCOMPARE(rest.joules, 0.0);
    QCOMPARE(*rest.whole_watts, 30.0);
    const EnergySlice half = meter.add({.joules = 1'145}, kSecond, Millis{500}, 100);
    QCOMPARE(half.joules, 100.0);
    QCOMPARE(*half.whole_watts, 115.0);
    QVERIFY(!meter.add({}, kSecond, kSecond, 100).whole_watts);
    QCOMPARE(*EnergyMeter().add({.watts = 80}, kSecond, Millis{0}, 100).whole_watts, 80.0);
  }

  void a_counter_that_jumps_is_survived() {
    EnergyMeter meter;
    meter.add({.joules = 5'000}, kSecond, Millis{0}, 100);
    const EnergySlice back = meter.add({.joules = 10}, kSecond, kSecond, 80);  // Begun anew.
    QCOMPARE(back.source, EnergySource::kEstimate);
    QCOMPARE(back.joules, 80.0);
    QCOMPARE(meter.add({.joules = 70}, kSecond, kSecond, 80).joules, 60.0);
    const EnergySlice jump = meter.add({.joules = 1e9}, kSecond, kSecond, 80);  // A gigawatt.
    QCOMPARE(jump.source, EnergySource::kEstimate);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    QVERIFY(!meter.add({.joules = nan, .watts = nan}, kSecond, kSecond, 80).measured());
    // Times that cannot be: more work than time, time that ran backwards.
    QCOMPARE(EnergyMeter().add({}, kSecond, Millis{5'000}, 80).joules, 80.0);
    QCOMPARE(EnergyMeter().add({}, Millis{-5}, kSecond, 80).joules, 0.0);
  }

  void what_happened_in_a_gap_is_not_ours() {
    EnergyMeter meter;
    meter.add({.joules = 0}, kSecond, Millis{0}, 100);
    meter.add({.joules = 20}, kSecond, Millis{0}, 100);
    meter.restart();
    // The first reading after it only says where the counter stands.
    QVERIFY(!meter.add({.joules = 900}, kSecond, Millis{0}, 100).measured());
    QCOMPARE(meter.add({.joules = 1'050}, kSecond, kSecond, 100).joules, 150.0);
    QCOMPARE(meter.add({.joules = 1'135}, kSecond, Millis{500}, 100).joules,
             75.0);  // 20 W at rest.
  }

  void power_is_used_where_there_is_no_counter() {
    EnergyMeter meter;
    const EnergySlice slice = meter.add({.watts = 120}, Millis{2'000}, Millis{2'000}, 50);
    QCOMPARE(slice.source, EnergySource::kWatts);
    QCOMPARE(slice.joules, 240.0);
    QCOMPARE(meter.add({.watts = 30}, kSecond, Millis{0}, 50).joules, 0.0);
    QCOMPARE(meter.add({}, kSecond, kSecond, 50).joules, 120.0);  // It calibrated the estimate.
    QVERIFY(!meter.add({.watts = 1e7}, kSecond, kSecond, 50).measured());
  }

  void the_first_hours_that_fit_set_the_price() {
    const std::vector<std::string> texts = {"mon-sun 22:00-06:00 0.21", "sat-sun 00:00-24:00 0.25"};
    const Result<Tariff> tariff = Tariff::parse(0.30, texts);
    QVERIFY(tariff.ok());
    QCOMPARE(tariff.value().price_at(0, 21 * 60 + 59), 0.30);
    QCOMPARE(tariff.value().price_at(0, 22 * 60), 0.21);
    QCOMPARE(tariff.value().price_at(5, 23 * 60), 0.21);  // Not the weekend's.
    QCOMPARE(tariff.value().price_at(5, 12 * 60), 0.25);
    QCOMPARE(tariff.value().until_crossing(0, 12 * 60, 0.25), std::optional(10 * 60));
    QCOMPARE(tariff.value().until_crossing(0, 23 * 60, 0.25), std::optional(7 * 60));
    QCOMPARE(tariff.value().until_crossing(6, 12 * 60, 0.25), std::optional(18 * 60));  // Monday.
    QVERIFY(!tariff.value().until_crossing(0, 0, 0.30));
    QVERIFY(!Tariff::flat(1).until_crossing(0, 0, 0.5));
    QCOMPARE(Tariff().price_at(3, 3), 0.0);
    QCOMPARE(cost_of(2, 0.25), 0.5);
  }

  void tariffs_that_cannot_be_read_are_refused_with_their_place() {
    const std::pair<std::string, int> cases[] = {
        {"mon-sun 22:00-06:00", 20},     {"mon-sun 22:00-06:00 free", 21},
        {"mon-sun 22:00-06:00 -1", 21},  {"mon-sun 22:00-06:00 1001", 21},
        {"mon-sun 22:00-06:00 nan", 21}, {"mon-sun 22:00-06:00 0.2 0.3", 21},
        {"22:00-06:00 0.2", 1},
    };
    for (const auto& [text, place] : cases) {
      const Result<Tariff> tariff = Tariff::parse(0.3, std::vector<std::string>{text});
      QVERIFY2(!tariff.ok(), text.c_str());
      QVERIFY2(tariff.error().message.ends_with("character " + std::to_string(place)),
               tariff.error().message.c_str());
    }
    QVERIFY(Tariff::parse(0.3, std::vector<std::string>{"mon-sun 22:00-06:00 1000 "}).ok());
  }
};

QTEST_GUILESS_MAIN(ComfortTest)
#include "comfort_test.moc"
