// Goal: a device is busy for the part of the time that its owner allows and not much less, in every
// 200 ms; nobody waits for a rest whose reason is gone.

#include <QTest>
#include <atomic>
#include <thread>

#include "base/random.h"
#include "compute/worker/pacer.h"

using namespace shoal;
using namespace shoal::worker;

namespace {

std::atomic<int64_t> fake_micros = 0;
int64_t fake_now() { return fake_micros; }

}  // namespace

class PacerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() { fake_micros = 0; }
  void keeps_the_duty_in_every_window_data();
  void keeps_the_duty_in_every_window();
  void idle_time_is_rest_but_cannot_be_saved_up();
  void a_changed_duty_forgives();
  void rests_are_no_part_of_a_steps_time();
  void a_dropped_step_ends_its_rest();
  void steps_that_run_as_one_rest_until_nobody_waits_for_any();
  void a_new_pace_ends_a_rest();
  void full_pace_never_rests();
};

void PacerTest::keeps_the_duty_in_every_window_data() {
  QTest::addColumn<uint32_t>("duty");
  QTest::addColumn<int>("op_micros_max");
  for (const uint32_t duty : {1u, 5u, 10u, 25u, 50u, 75u, 90u, 97u, 99u, 100u}) {
    for (const int op : {50, 1'000, 20'000, 500'000}) {
      QTest::addRow("%u percent, ops of up to %d us", duty, op) << duty << op;
    }
  }
}

// Method: ops of random length one after another for a while, with rests as they are due, which
// last a little longer than asked for, as on a busy machine.
void PacerTest::keeps_the_duty_in_every_window() {
  QFETCH(uint32_t, duty);
  QFETCH(int, op_micros_max);
  constexpr int64_t kWindow = 200'000;
  Random random(duty * 1'000u + static_cast<uint32_t>(op_micros_max));
  PaceBudget budget;
  budget.set_duty(duty);
  struct Span {
    int64_t start, end;
  };
  std::vector<Span> busy;
  int64_t now = 0, worked = 0;
  const int64_t end = 5'000'000 + 200 * int64_t{op_micros_max} * 100 / duty;
  while (now < end) {
    if (const int64_t due = budget.due(); due > 0) {
      const int64_t rested = due + static_cast<int64_t>(random.below(100));
      budget.rested(rested);
      now += rested;
      continue;
    }
    const int64_t op = 1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(op_micros_max)));
    busy.push_back({now, now + op});
    now += op;
    worked += op;
    budget.worked(op);
  }
  // The busiest window begins with some work.
  int64_t most = 0;
  for (size_t i = 0, last = 0; i < busy.size(); ++i) {
    const int64_t limit = busy[i].start + kWindow;
    int64_t sum = 0;
    for (last = i; last < busy.size() && busy[last].start < limit; ++last) {
      sum += std::min(busy[last].end, limit) - busy[last].start;
      if (last - i > 10'000) break;
    }
    most = std::max(most, sum);
    if (i > 2'000) break;
  }
  const int64_t allowed = kWindow * duty / 100 + 5'000 + op_micros_max;
  QVERIFY2(most <= allowed, QByteArray::number(qint64(most)));
  const double share = static_cast<double>(worked) / static_cast<double>(now);
  QVERIFY2(share <= duty / 100.0 * 1.02 + 0.002, QByteArray::number(share));
  QVERIFY2(share >= duty / 100.0 * 0.97, QByteArray::number(share));
}

void PacerTest::idle_time_is_rest_but_cannot_be_saved_up() {
  PaceBudget budget;
  budget.set_duty(50);
  budget.worked(20'000);
  QCOMPARE(budget.due(), int64_t{20'000});
  budget.rested(12'000);
  QCOMPARE(budget.due(), int64_t{8'000});
  budget.rested(3'600'000'000);
  QCOMPARE(budget.due(), int64_t{0});
  budget.worked(7'000);  // An hour of rest is worth a millisecond.
  QCOMPARE(budget.due(), int64_t{6'000});
  budget.worked(-5);
  budget.rested(-5);
  QCOMPARE(budget.due(), int64_t{6'000});
}

void PacerTest::a_changed_duty_forgives() {
  PaceBudget budget;
  budget.set_duty(1);
  budget.worked(1'000'000);
  QCOMPARE(budget.due(), int64_t{99'000'000});
  budget.set_duty(1);  // The same again is no change.
  QCOMPARE(budget.due(), int64_t{99'000'000});
  budget.set_duty(80);
  QCOMPARE(budget.due(), int64_t{0});
}

void PacerTest::rests_are_no_part_of_a_steps_time() {
  Pacer pacer(fake_now);
  QVERIFY(!pacer.fine());
  pacer.set(50, 3);
  QVERIFY(pacer.fine());
  QCOMPARE(pacer.rows_max(), int64_t{3});
  fake_micros = 1'000'000;
  const auto step = pacer.expect_step();
  QVERIFY(pacer.begin(step).ok());
  fake_micros += 4'000;  // Too little for a rest.
  QVERIFY(pacer.rest().ok());
  fake_micros += 1'500;
  pacer.end();
  QCOMPARE(pacer.micros(), uint64_t{5'500});
  pacer.drop_step(step);
  fake_micros += 100'000;  // Until the next one comes.
  const auto next = pacer.expect_step();
  QVERIFY(pacer.begin(next).ok());
  QCOMPARE(pacer.micros(), uint64_t{0});
}

// Method: 99 seconds of rest are due, which by the real clock would be waited for.
void PacerTest::a_dropped_step_ends_its_rest() {
  Pacer pacer(fake_now);
  pacer.set(1, 0);
  const auto step = pacer.expect_step();
  QVERIFY(pacer.begin(step).ok());
  fake_micros += 1'000'000;
  Result<void> rested;
  std::thread compute([&] { rested = pacer.rest(); });
  pacer.drop_step(step);
  compute.join();
  QVERIFY(!rested.ok());
  QCOMPARE(rested.error().code, ErrorCode::kTimeout);
  // One that was dropped before it began does not begin.
  const auto next = pacer.expect_step();
  pacer.drop_step(next);
  QVERIFY(!pacer.begin(next).ok());
}

void PacerTest::steps_that_run_as_one_rest_until_nobody_waits_for_any() {
  Pacer pacer(fake_now);
  const auto one = pacer.expect_step(), other = pacer.expect_step();
  QVERIFY(pacer.begin(std::vector{one, other}).ok());
  pacer.drop_step(one);
  QVERIFY(pacer.rest().ok());
  pacer.drop_step(other);
  QCOMPARE(pacer.rest().error().code, ErrorCode::kTimeout);
}

void PacerTest::a_new_pace_ends_a_rest() {
  Pacer pacer(fake_now);
  pacer.set(1, 0);
  const auto step = pacer.expect_step();
  QVERIFY(pacer.begin(step).ok());
  fake_micros += 1'000'000;
  Result<void> rested = Error{};
  std::thread compute([&] { rested = pacer.rest(); });
  pacer.set(100, 0);
  compute.join();
  QVERIFY(rested.ok());
}

void PacerTest::full_pace_never_rests() {
  Pacer pacer(fake_now);
  const auto step = pacer.expect_step();
  QVERIFY(pacer.begin(step).ok());
  fake_micros += 3'600'000'000;
  QVERIFY(pacer.rest().ok());
  QCOMPARE(pacer.micros(), uint64_t{3'600'000'000});
  QVERIFY(!pacer.fine());
}

QTEST_GUILESS_MAIN(PacerTest)
#include "pacer_test.moc"
