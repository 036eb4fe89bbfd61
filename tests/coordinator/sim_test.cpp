// Goal: the broker keeps its promises in simulated fleets, whatever the seed; and the simulator's
// own checker would notice if it did not.

#include <QDir>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>
#include <nlohmann/json.hpp>

#include "coordinator/sim/figures.h"
#include "coordinator/sim/report.h"

namespace shoal::sim {
namespace {

Report run_one(std::string_view name, uint64_t seed, int64_t hosts = 120, double hours = 12) {
  Options options{.scenario = find_scenario(name).value(),
                  .hosts = hosts,
                  .hours = hours,
                  .warm_hours = hours / 4,
                  .seed = seed};
  return run(options, nullptr);
}

nlohmann::json json_of(const Report& report) {
  return nlohmann::json::parse(report_json(report, 1.5));
}

TaskSpec task_of(int64_t items) { return {.task = {1}, .items = items, .flops_per_item = {1}}; }

}  // namespace

class SimTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:

  void no_unit_is_lost_or_counted_twice_in_any_scenario_data() {
    QTest::addColumn<QString>("name");
    for (const Scenario& scenario : scenarios()) {
      QTest::newRow(scenario.name.data()) << QString::fromUtf8(scenario.name.data());
    }
  }
  void no_unit_is_lost_or_counted_twice_in_any_scenario() {
    QFETCH(QString, name);
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      const QByteArray replay = "replay with --scenario " + name.toUtf8() +
                                " --hosts 120 --hours 12 --seed " + QByteArray::number(seed);
      const Report report = run_one(name.toStdString(), seed);
      const Truth& truth = report.truth;
      QVERIFY2(report.jobs_unfinished == 0, replay);
      QVERIFY2(truth.units_done() > 1000, replay);
      QVERIFY2(truth.units_lost() == 0, replay);
      QVERIFY2(truth.items_missing() == 0, replay);
      QVERIFY2(truth.counted_twice() == 0, replay);
      QVERIFY2(truth.broken_rules() == 0, replay);
      QVERIFY2(truth.honest_quarantined() == 0, replay);
      if (name != "sly" && name != "pairs") {
        QVERIFY2(truth.confirmed_wrong() == 0 && truth.paid_wrong() == 0, replay);
      }
      if (name == "liars" || name == "careful") {
        QVERIFY2(truth.lies() > 50 && truth.convictions() > 5, replay);
      }
    }
  }

  void the_sly_stay_below_the_bound() {
    int64_t wrong = 0, units = 0;
    double bound = 0;
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const Report report = run_one("sly", seed, 300, 24);
      wrong += report.lies_confirmed_steady;
      units += report.units_steady;
      bound = figures(report).sly_bound_share;
    }
    QVERIFY(wrong > 0);  // They are there, and this is no promise that they find no gap.
    QVERIFY(double(wrong) / double(units) < bound);
  }

  void more_audits_catch_the_sly_sooner() {
    int64_t wrong[2] = {0, 0};
    for (const int more : {0, 1}) {
      for (uint64_t seed = 1; seed <= 2; ++seed) {
        Options options{.scenario = find_scenario("sly").value(),
                        .hosts = 200,
                        .hours = 480,
                        .warm_hours = 24,
                        .seed = seed,
                        .job_hours = 48};
        options.rules.audit_floor = more != 0 ? 0.08 : 0.02;
        wrong[more] += run(options, nullptr).truth.confirmed_wrong();
      }
    }
    QVERIFY2(4 * wrong[1] < 3 * wrong[0],
             qPrintable(QString("%1, %2").arg(wrong[0]).arg(wrong[1])));
  }

  void a_seed_replays_a_run_and_another_is_another() {
    auto first = json_of(run_one("liars", 5)), second = json_of(run_one("liars", 5));
    QCOMPARE(QString::fromStdString(first.dump()), QString::fromStdString(second.dump()));
    QVERIFY(json_of(run_one("liars", 6)) != first);
  }

  void an_old_fleet_pays_little_for_audits() {
    double audits = 0, waste = 0;  // Of one run they are a tenth more or less, by chance.
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      const Figures found = figures(run_one("home", seed, 300, 96));
      audits += found.audit_share / 4;
      waste += found.waste_share / 4;
    }
    QVERIFY(audits < 0.05);
    QVERIFY(audits > 0.02);
    QVERIFY(waste < 0.05);
  }

  void an_outage_costs_time_and_no_unit() {
    const Report report = run_one("outage", 3);
    const Report other = run_one("home", 3);
    QVERIFY(report.truth.units_done() > other.truth.units_done() / 2);
    QCOMPARE(report.truth.units_lost(), 0);
  }

  // ---- The checker ----

  void the_checker_notices_a_lie_that_is_confirmed() {
    Truth truth;
    truth.hosts(1);
    truth.job({.job = {1}, .tasks = {task_of(10)}});
    truth.apply({UnitCut{{1}, {1}, 0, 10}, LeaseGranted{{1}, {1}, {1}, {1}}}, {});
    truth.computed({1}, Millis{60'000}, /*lie=*/true);
    Digest wrong;
    truth.apply({ResultReceived{{1}, {1}, wrong, 1}, ResultConfirmed{{1}, {1}, {1}},
                 UnitDone{{1}, {1}, {1}, wrong}},
                {});
    QCOMPARE(truth.confirmed_wrong(), 1);
    QCOMPARE(truth.paid_wrong(), 1);
    QCOMPARE(truth.units_done(), 1);
    QCOMPARE(truth.items_missing(), 0);
    QCOMPARE(truth.counted_twice(), 0);
    QCOMPARE(truth.spent().useful, 60.0);
  }

  void the_checker_notices_what_is_counted_twice_or_lost() {
    const auto fresh = [] {
      Truth truth;
      truth.hosts(1);
      truth.job({.job = {1}, .tasks = {task_of(10)}});
      truth.apply({UnitCut{{1}, {1}, 0, 5}, LeaseGranted{{1}, {1}, {1}, {1}}}, {});
      return truth;
    };
    const Digest right = Truth::right_digest({1});
    Truth twice_done = fresh();
    twice_done.apply({ResultReceived{{1}, {1}, right, 1}, ResultConfirmed{{1}, {1}, {1}},
                      UnitDone{{1}, {1}, {1}, right}, UnitDone{{1}, {1}, {1}, right}},
                     {});
    QCOMPARE(twice_done.counted_twice(), 1);
    QCOMPARE(twice_done.units_done(), 1);
    Truth twice_paid = fresh();
    twice_paid.apply({ResultReceived{{1}, {1}, right, 1}, ResultConfirmed{{1}, {1}, {1}},
                      ResultConfirmed{{1}, {1}, {1}}},
                     {});
    QCOMPARE(twice_paid.counted_twice(), 1);
    Truth overlap = fresh();
    overlap.apply({UnitCut{{2}, {1}, 4, 5}}, {});
    QCOMPARE(overlap.counted_twice(), 1);
    Truth too_many = fresh();
    too_many.apply({UnitCut{{2}, {1}, 5, 6}}, {});
    QCOMPARE(too_many.counted_twice(), 1);
    Truth lost = fresh();
    QCOMPARE(lost.units_lost(), 1);
    QCOMPARE(lost.items_missing(), 10);
    lost.apply({UnitPoisoned{{1}, {1}}}, {});
    QCOMPARE(lost.units_lost(), 0);
    QCOMPARE(lost.items_missing(), 5);
    Truth stranger = fresh();
    stranger.apply({LeaseGranted{{7}, {1}, {1}, {1}}}, {});
    QCOMPARE(stranger.broken_rules(), 1);
  }

  void the_checker_knows_repairs_from_audits() {
    Truth truth;
    truth.hosts(1);
    truth.job({.job = {1}, .tasks = {task_of(10)}});
    truth.apply({UnitCut{{1}, {1}, 0, 10}, LeaseGranted{{1}, {1}, {1}, {1}}}, {});
    truth.lost({1}, Millis{1'000}, /*silently=*/true);
    truth.apply({LeaseGranted{{2}, {1}, {1}, {1}, Purpose::kWork, Millis{61'000}}}, {});
    QCOMPARE(truth.repairs().count(), 1);
    QVERIFY(std::abs(truth.repairs().percentile(0.5) - 60) < 3);
    truth.lost({1}, Millis{70'000}, true);
    truth.resumed({1});
    truth.apply({LeaseGranted{{3}, {1}, {1}, {1}, Purpose::kWork, Millis{90'000}}}, {});
    QCOMPARE(truth.repairs().count(), 1);
  }

  void the_checker_counts_what_was_computed_in_vain_once() {
    Truth truth;
    truth.hosts(1);
    truth.job({.job = {1}, .tasks = {task_of(10)}});
    truth.apply({UnitCut{{1}, {1}, 0, 10}, LeaseGranted{{1}, {1}, {1}, {1}},
                 LeaseGranted{{2}, {1}, {1}, {1}}},
                {});
    for (const LeaseId lease : {LeaseId{1}, LeaseId{2}}) {
      truth.computed(lease, Millis{60'000}, /*lie=*/false);
    }
    truth.apply({ResultReceived{{1}, {1}, Truth::right_digest({1}), 1}}, {});
    truth.refused({1});  // A message that came twice: its first copy was taken.
    QCOMPARE(truth.spent().all(), 0.0);
    truth.refused({2});
    truth.refused({2});
    QCOMPARE(truth.spent().repeat, 60.0);
  }

  void percentiles_are_close() {
    Durations durations;
    QCOMPARE(durations.percentile(0.5), 0.0);
    for (int i = 1; i <= 1000; ++i) durations.add(Millis{i * 1000});
    QVERIFY(std::abs(durations.percentile(0.5) - 500) < 25);
    QVERIFY(std::abs(durations.percentile(0.99) - 990) < 50);
    durations.add(Millis{0});
    durations.add(Millis{INT64_MAX});
    QCOMPARE(durations.count(), 1002);
  }

  // ---- The program ----

  void the_program_ends_with_one_object_and_refuses_nonsense() {
    const auto start = [](QStringList arguments, QByteArray* out) {
      QProcess process;
      process.start(QString(SHOAL_BIN_DIR) + "/shoal-sim", arguments);
      process.waitForFinished(60'000);
      *out = process.readAllStandardOutput();
      return process.exitCode();
    };
    QByteArray out;
    QTemporaryDir folder;
    QCOMPARE(start({"--scenario", "sly", "--hosts", "50", "--hours", "6", "--seed", "3", "--json",
                    "--plots", folder.path() + "/plots"},
                   &out),
             0);
    const auto object = nlohmann::json::parse(out.toStdString());
    for (const char* key :
         {"units_done", "units_lost", "counted_twice", "confirmed_wrong", "audit_share",
          "waste_share", "repair_p50_s", "repair_p99_s", "wall_s"}) {
      QVERIFY2(object.contains(key), key);
    }
    QCOMPARE(out.count('\n'), 1);
    const QStringList plots = QDir(folder.path() + "/plots").entryList({"*.svg"});
    QCOMPARE(plots.size(), 5);
    for (const QString& name : plots) {
      QFile file(folder.path() + "/plots/" + name);
      QVERIFY(file.open(QIODevice::ReadOnly));
      const QByteArray svg = file.readAll();
      QVERIFY(svg.startsWith("<svg") && svg.endsWith("</svg>\n") && !svg.contains("nan"));
    }
    QCOMPARE(start({"--help"}, &out), 0);
    QVERIFY(out.contains("flash-crowd"));
    QCOMPARE(start({"--hosts", "50", "--hours", "2"}, &out), 0);
    QVERIFY(out.contains("confirmed wrong"));
    QCOMPARE(start({"--scenario", "nobody"}, &out), 3);
    QCOMPARE(start({"--hosts", "9"}, &out), 2);
    QCOMPARE(start({"--hosts", "1000001"}, &out), 2);
    QCOMPARE(start({"--hours", "0"}, &out), 2);
    QCOMPARE(start({"--hours", "2", "--warm", "2"}, &out), 2);
    QCOMPARE(start({"--nonsense"}, &out), 2);
    QCOMPARE(start({"--hosts", "50", "--hours", "1", "--plots", "/proc/none"}, &out), 1);
  }
};

}  // namespace shoal::sim

QTEST_GUILESS_MAIN(shoal::sim::SimTest)
#include "sim_test.moc"
