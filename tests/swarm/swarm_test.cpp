// Goal: no unit is lost, none is counted twice and no wrong one is confirmed, whatever the network,
// the machines and a liar do. Method: a real coordinator and real unit runners in one thread, one
// virtual clock, faults drawn from a seed. SHOAL_SEEDS says how many seeds (200: some minutes),
// SHOAL_SEED which is the first one.

#include <QTest>

#include "tests/swarm/swarm.h"

using namespace shoal::test;

class SwarmTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_unit_counts_once_and_right_whatever_happens();
  void a_calm_swarm_wastes_nothing();
};

void SwarmTest::every_unit_counts_once_and_right_whatever_happens() {
  const int asked = qEnvironmentVariableIntValue("SHOAL_SEEDS");  // 0: it is not there.
  const int seeds = asked > 0 ? asked : 4;
  const int first = std::max(qEnvironmentVariableIntValue("SHOAL_SEED"), 1);
  SwarmOutcome sum;
  for (int seed = first; seed < first + seeds; ++seed) {
    const SwarmOutcome out = run_swarm({.seed = static_cast<uint64_t>(seed)});
    QVERIFY2(out.wrong.empty(),
             ("replay with SHOAL_SEEDS=1 SHOAL_SEED=" + std::to_string(seed) + ": " + out.wrong)
                 .c_str());
    sum.lies += out.lies;
    sum.messages_hurt += out.messages_hurt;
    sum.lines_cut += out.lines_cut;
    sum.clients_killed += out.clients_killed;
    sum.workers_killed += out.workers_killed;
    sum.coordinators_stopped += out.coordinators_stopped;
    sum.coordinators_killed += out.coordinators_killed;
    sum.clock_jumps += out.clock_jumps;
    sum.leases += out.leases;
    sum.late += out.late;
    sum.took += out.took;
  }
  qInfo(
      "%d seeds, %.1f virtual hours: %lld leases, %lld ended without a result in time; %d lies, "
      "%d messages hurt, %d lines cut, %d clients and %d workers killed, %d coordinators stopped "
      "and %d killed, %d clock jumps",
      seeds, double(sum.took.count) / 3.6e6, static_cast<long long>(sum.leases),
      static_cast<long long>(sum.late), sum.lies, sum.messages_hurt, sum.lines_cut,
      sum.clients_killed, sum.workers_killed, sum.coordinators_stopped, sum.coordinators_killed,
      sum.clock_jumps);
  // A swarm in which nothing goes wrong would prove nothing.
  QVERIFY(sum.lies > 0 && sum.messages_hurt > 20 && sum.lines_cut > 0 && sum.clients_killed > 0);
  QVERIFY(sum.workers_killed > 0 && sum.coordinators_stopped + sum.coordinators_killed > 0);
}

// Goal: the faults are what makes leases end without a result, and not the machinery itself.
void SwarmTest::a_calm_swarm_wastes_nothing() {
  const SwarmOutcome out = run_swarm({.faults = false});
  QVERIFY2(out.wrong.empty(), out.wrong.c_str());
  QVERIFY(out.leases >= 15);
  QCOMPARE(out.messages_hurt, 0);
}

QTEST_GUILESS_MAIN(SwarmTest)
#include "swarm_test.moc"
