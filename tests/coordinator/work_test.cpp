// Goal: what work is worth, when it counts, and what is said to a device without work, at each of
// their limits.

#include <QTest>

#include "coordinator/work/credit.h"
#include "coordinator/work/standing.h"
#include "schema/message.h"

using namespace shoal;

class WorkTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void credit_is_counted_in_exact_parts_data();
  void credit_is_counted_in_exact_parts();
  void sums_are_exact_in_any_order();
  void work_is_bounded_whatever_the_manifest_says();
  void what_counts_data();
  void what_counts();
  void why_a_device_has_no_work_data();
  void why_a_device_has_no_work();
  void the_first_thing_in_the_way_is_named();
};

void WorkTest::credit_is_counted_in_exact_parts_data() {
  QTest::addColumn<qlonglong>("flops");
  QTest::addColumn<qlonglong>("parts");
  QTest::newRow("none") << 0ll << 0ll;
  QTest::newRow("less than a part") << 953'674ll << 0ll;
  QTest::newRow("a part") << 953'675ll << 1ll;
  QTest::newRow("almost a credit") << 999'999'999'999ll << (1ll << 20) - 1;
  QTest::newRow("a credit") << 1'000'000'000'000ll << (1ll << 20);
  QTest::newRow("one and a half") << 1'500'000'000'000ll << 3 * (1ll << 19);
  QTest::newRow("the most") << (1ll << 62) << 4835703278458ll;
}
void WorkTest::credit_is_counted_in_exact_parts() {
  QFETCH(qlonglong, flops);
  QFETCH(qlonglong, parts);
  QCOMPARE(credit_parts(Flops{flops}).count, int64_t{parts});
  QCOMPARE(credit_of(CreditParts{parts}), static_cast<double>(parts) / (1 << 20));
}

void WorkTest::sums_are_exact_in_any_order() {
  double forwards = 0, backwards = 0;
  CreditParts sum;
  for (int64_t i = 1; i <= 10'000; ++i) {
    const CreditParts parts = credit_parts(Flops{i * 12'345'678'901});
    sum += parts;
    forwards += credit_of(parts);
    backwards += credit_of(credit_parts(Flops{(10'001 - i) * 12'345'678'901}));
  }
  QVERIFY(forwards == credit_of(sum) && backwards == forwards);
}

void WorkTest::work_is_bounded_whatever_the_manifest_says() {
  const FragmentCost usual{.flops_per_row = Flops{1'000'000}};
  const std::vector<FragmentCost> two = {usual, usual};
  QCOMPARE(work_flops(two, 25), Flops{50'000'000});
  QCOMPARE(work_flops(two, 0), Flops{0});
  QCOMPARE(work_flops({}, 25), Flops{0});
  const std::vector<FragmentCost> odd(1024, FragmentCost{.flops_per_row = Flops{int64_t{1} << 60}});
  QCOMPARE(work_flops(odd, INT64_MAX), Flops{int64_t{1} << 62});
  QCOMPARE(work_flops(std::span(odd).first(1), 3), Flops{3 * (int64_t{1} << 60)});
  QCOMPARE(work_flops(std::span(odd).first(1), 5), Flops{int64_t{1} << 62});
}

void WorkTest::what_counts_data() {
  QTest::addColumn<LeaseEnd>("end");
  QTest::addColumn<Verdict>("verdict");
  QTest::addColumn<QString>("reason");
  const Verdict rejected = Verdict::kRejected;
  QTest::newRow("lost in mid-session") << LeaseEnd{} << Verdict::kPending << "";
  QTest::newRow("session over") << LeaseEnd{.session_over = true} << Verdict::kConfirmed << "";
  QTest::newRow("wrong") << LeaseEnd{.wrong_answer = true} << rejected << "credit.wrong_answer";
  QTest::newRow("wrong, over") << LeaseEnd{.wrong_answer = true, .session_over = true} << rejected
                               << "credit.wrong_answer";
  QTest::newRow("a liar's other stage") << LeaseEnd{.host_distrusted = true, .session_over = true}
                                        << rejected << "credit.host_distrusted";
  QTest::newRow("forgotten") << LeaseEnd{.forgotten = true} << rejected
                             << "credit.coordinator_restarted";
  QTest::newRow("banned") << LeaseEnd{.host_banned = true, .session_over = true} << rejected
                          << "credit.host_banned";
}
void WorkTest::what_counts() {
  QFETCH(LeaseEnd, end);
  QFETCH(Verdict, verdict);
  QFETCH(QString, reason);
  const Judgement judgement = judge(end);
  QCOMPARE(judgement.verdict, verdict);
  QCOMPARE(QString(judgement.reason), reason);
  QVERIFY(reason.isEmpty() || find_message(judgement.reason) != nullptr);
}

void WorkTest::why_a_device_has_no_work_data() {
  QTest::addColumn<int>("state");
  QTest::addColumn<int>("stages");
  QTest::addColumn<QString>("word");
  QTest::addColumn<QString>("code");
  const auto row = [](const char* name, DeviceState state, int stages, const char* word,
                      const char* code) {
    QTest::newRow(name) << int(state) << stages << QString(word) << QString(code);
  };
  row("works", DeviceState::kReady, 1, "working", "");
  row("pooled", DeviceState::kReady, 0, "pooled", "standing.no_request");
  row("starts", DeviceState::kStarting, 0, "sleeping", "standing.starting");
  row("failed", DeviceState::kFailed, 0, "quarantined", "standing.device_failed");
  row("draining", DeviceState::kDraining, 1, "draining", "standing.draining");
  row("paused", DeviceState::kPaused, 0, "paused", "standing.paused");
}
void WorkTest::why_a_device_has_no_work() {
  QFETCH(int, state);
  QFETCH(int, stages);
  QFETCH(QString, word);
  QFETCH(QString, code);
  DeviceSituation device{.state = static_cast<DeviceState>(state),
                         .stages = stages,
                         .has_worker = true,
                         .exact = true,
                         .memory_free = Bytes{100}};
  QCOMPARE(QString::fromStdString(std::string(state_word(device.state, stages))), word);
  const std::string_view why =
      why_no_work(device, {.has_models = true, .smallest_need = Bytes{100}});
  QCOMPARE(QString::fromStdString(std::string(why)), code);
  QVERIFY(why.empty() || find_message(why) != nullptr);
}

// Each thing that is put right uncovers the next.
void WorkTest::the_first_thing_in_the_way_is_named() {
  DeviceSituation device{.state = DeviceState::kReady,
                         .all_denied = true,
                         .memory_free = Bytes{99},
                         .available = Millis{599'999}};
  CoordinatorSituation coordinator{.stopping = true, .smallest_need = Bytes{100}};
  const auto says = [&](std::string_view code) {
    const std::string_view why = why_no_work(device, coordinator);
    if (why != code) qWarning("said %s", std::string(why).c_str());
    return why == code && find_message(why) != nullptr;
  };
  QVERIFY(says("standing.stopping"));
  coordinator.stopping = false;
  QVERIFY(says("standing.no_worker"));
  device.has_worker = true;
  QVERIFY(says("standing.not_exact"));
  device.exact = true;
  QVERIFY(says("standing.no_model"));
  coordinator.has_models = true;
  QVERIFY(says("standing.denied"));
  device.all_denied = false;
  QVERIFY(says("standing.model_too_large"));
  device.memory_free = Bytes{100};
  QVERIFY(says("standing.leaving"));
  device.available = Millis{600'000};
  QVERIFY(says("standing.no_request"));
  coordinator.has_sessions = true;
  QVERIFY(says("standing.others_work"));
  device.available.reset();
  QVERIFY(says("standing.others_work"));
}

QTEST_GUILESS_MAIN(WorkTest)
#include "work_test.moc"
