// Goal: rows that neighbours pass on to each other give the same text as those that the coordinator
// relays, whatever fails on the way, and who fails is told from who does not. Method: as
// session_test: the real coordinator, fake hosts with a toy model, virtual time.

#include <QtTest>

#include "tests/coordinator/world.h"

using namespace shoal;
using namespace shoal::test;

namespace {

struct Scene {
  World world;
  explicit Scene(int hosts, HostOptions options = {.direct = true, .listens = true},
                 std::function<void(CoordinatorSettings&)> adjust = {})
      : world([adjust](CoordinatorSettings& settings) {
          settings.session.rows_max = 5;
          if (adjust) adjust(settings);
        }) {
    world.publish(make_toy_model("toy"));
    for (int i = 0; i < hosts; ++i) world.add_host("h" + std::to_string(i), options);
  }
  FakeHost& host_of_stage(const Generated& reference, size_t stage) {
    for (auto& host : world.hosts) {
      if (host->options.name == reference.hosts.at(stage)) return *host;
    }
    qFatal("no such host");
  }
  int events(const std::string& kind) {
    const std::string text = world.events_text();
    int count = 0;
    for (size_t at = text.find(kind); at != std::string::npos; at = text.find(kind, at + 1))
      ++count;
    return count;
  }
};

}  // namespace

class DirectTest : public QObject {
  Q_OBJECT

 private:
  Generated relayed_;  // As the coordinator relays it.
  const std::vector<int32_t>& expected() const { return relayed_.ids; }

 private Q_SLOTS:
  void initTestCase();
  void rows_go_from_host_to_host();
  void without_a_way_the_coordinator_relays_data();
  void without_a_way_the_coordinator_relays();
  void one_door_is_enough();
  void a_lost_host_changes_nothing_data();
  void a_lost_host_changes_nothing();
  void who_fails_is_lost_and_nobody_else_data();
  void who_fails_is_lost_and_nobody_else();
  void what_fails_on_the_way_is_nobodys_failure_data();
  void what_fails_on_the_way_is_nobodys_failure();
  void who_hands_out_other_rows_is_not_believed();
  void who_hands_out_nothing_computes_again();
  void a_path_is_opened_again_for_another_device();
  void where_streams_are_looked_at_only_the_trusted_have_paths();
};

void DirectTest::initTestCase() {
  Scene scene(3, {});
  relayed_ = scene.world.generate({});
  QVERIFY(!relayed_.ids.empty());
  QVERIFY(relayed_.relayed_bytes > 0);
}

void DirectTest::rows_go_from_host_to_host() {
  Scene scene(3);
  const Generated direct = scene.world.generate({});
  QCOMPARE(direct.ids, expected());
  QCOMPARE(direct.text, relayed_.text);
  QCOMPARE(direct.relayed_bytes, uint64_t{0});
  QCOMPARE(direct.failovers.size(), size_t{0});
  QCOMPARE(scene.events("path_opened"), 2);
  // All rows of both paths: the prompt's, and those of every token but the last.
  int64_t passed = 0;
  for (const auto& host : scene.world.hosts) passed += host->passed_rows;
  QCOMPARE(passed, int64_t(2 * (direct.prompt_ids.size() + direct.ids.size() - 1)));
}

void DirectTest::without_a_way_the_coordinator_relays_data() {
  QTest::addColumn<bool>("direct");
  QTest::addColumn<bool>("listens");
  QTest::addColumn<bool>("unreachable");
  QTest::addColumn<bool>("allowed");
  QTest::newRow("old hosts") << false << false << false << true;
  QTest::newRow("nobody listens") << true << false << false << true;
  QTest::newRow("a firewall") << true << true << true << true;
  QTest::newRow("the administrator does not want it") << true << true << false << false;
}

void DirectTest::without_a_way_the_coordinator_relays() {
  QFETCH(bool, direct);
  QFETCH(bool, listens);
  QFETCH(bool, unreachable);
  QFETCH(bool, allowed);
  Scene scene(3, {.direct = direct, .listens = listens},
              [allowed](CoordinatorSettings& settings) { settings.session.direct = allowed; });
  for (auto& host : scene.world.hosts) host->unreachable = unreachable;
  const Generated got = scene.world.generate({});
  QCOMPARE(got.ids, expected());
  QCOMPARE(got.relayed_bytes,
           uint64_t(2 * (got.prompt_ids.size() + got.ids.size() - 1) * kToyWidth * sizeof(float)));
  QCOMPARE(got.failovers.size(), size_t{0});
  QCOMPARE(scene.events("path_opened"), 0);
}

// Whichever of the two it is.
void DirectTest::one_door_is_enough() {
  Generated reference;
  {
    Scene relayed(2, {});
    reference = relayed.world.generate({.stages_min = 2});
  }
  for (const size_t listens : {size_t{0}, size_t{1}}) {
    Scene scene(2, {.direct = true});
    FakeHost& door = scene.host_of_stage(reference, listens);
    door.options.listens = true;
    const Generated got = scene.world.generate({.stages_min = 2});
    QCOMPARE(got.ids, reference.ids);
    QCOMPARE(got.relayed_bytes, uint64_t{0});
    QCOMPARE(door.dialled, 1);
  }
}

void DirectTest::a_lost_host_changes_nothing_data() {
  QTest::addColumn<int>("stage");
  QTest::addColumn<int>("token");
  for (const int stage : {0, 1, 2}) {
    for (const int token : {1, 6}) {
      QTest::addRow("stage %d after token %d", stage, token) << stage << token;
    }
  }
}

void DirectTest::a_lost_host_changes_nothing() {
  QFETCH(int, stage);
  QFETCH(int, token);
  Scene scene(4);
  const Generated reference = scene.world.generate({});
  FakeHost& lost = scene.host_of_stage(reference, static_cast<size_t>(stage));
  const Generated got = scene.world.generate({.on_token = [&](size_t count) {
    if (count == static_cast<size_t>(token)) {
      scene.world.tasks().add(kj::evalLater([&lost] { lost.kill(); }));
    }
  }});
  QCOMPARE(got.ids, expected());
  QCOMPARE(got.failovers.size(), size_t{1});
  QCOMPARE(int(got.failovers[0].stage), stage);
}

void DirectTest::who_fails_is_lost_and_nobody_else_data() {
  QTest::addColumn<int>("stage");
  QTest::addColumn<int>("fault");
  QTest::addColumn<QString>("cause");
  const struct {
    const char* name;
    Fault fault;
    const char* cause;
  } kFaults[] = {{"drop", Fault::kDrop, "connection lost"},
                 {"hang", Fault::kHang, ""},
                 {"non-finite", Fault::kNonFinite, ""},
                 {"token", Fault::kToken, ""}};
  for (const auto& fault : kFaults) {
    for (int stage = 0; stage < 3; ++stage) {
      if (fault.fault == Fault::kNonFinite && stage == 2) continue;
      if (fault.fault == Fault::kToken && stage != 2) continue;
      QTest::addRow("%s, stage %d", fault.name, stage)
          << stage << int(fault.fault) << QString(fault.cause);
    }
  }
}

// A step that errs once: who is gone is replaced, and who is there answers it well by relay.
void DirectTest::who_fails_is_lost_and_nobody_else() {
  QFETCH(int, stage);
  QFETCH(int, fault);
  QFETCH(QString, cause);
  Scene scene(4);
  const Generated reference = scene.world.generate({});
  FakeHost& host = scene.host_of_stage(reference, static_cast<size_t>(stage));
  host.fault = Fault(fault);
  host.fault_at_step = 8;
  host.steps = 0;
  const Generated got = scene.world.generate({});
  QCOMPARE(got.ids, expected());
  for (const auto& failover : got.failovers) {
    QCOMPARE(int(failover.stage), stage);
    QVERIFY2(QString::fromStdString(failover.cause).contains(cause), failover.cause.c_str());
  }
  if (!cause.isEmpty()) QCOMPARE(got.failovers.size(), size_t{1});
}

void DirectTest::what_fails_on_the_way_is_nobodys_failure_data() {
  QTest::addColumn<int>("fault");
  QTest::addColumn<int>("from");
  for (const int from : {0, 7, 18}) {
    QTest::addRow("other rows from %d", from) << int(PathFault::kOtherRows) << from;
    QTest::addRow("nothing from %d", from) << int(PathFault::kNothing) << from;
  }
}

void DirectTest::what_fails_on_the_way_is_nobodys_failure() {
  QFETCH(int, fault);
  QFETCH(int, from);
  Scene scene(3);
  const Generated reference = scene.world.generate({});
  FakeHost& host = scene.host_of_stage(reference, 1);
  host.path_fault = PathFault(fault);
  host.path_fault_from = from;
  const Generated got = scene.world.generate({});
  QCOMPARE(got.ids, expected());
  QCOMPARE(got.failovers.size(), size_t{0});
  QVERIFY(got.relayed_bytes > 0);
  QVERIFY(scene.events("path_closed") > 0);
}

// It said itself what it had passed on, so that is no accident of the network.
void DirectTest::who_hands_out_other_rows_is_not_believed() {
  Scene scene(5);
  const Generated reference = scene.world.generate({});
  FakeHost& liar = scene.host_of_stage(reference, 0);
  FakeHost& lost = scene.host_of_stage(reference, 1);
  liar.path_fault = PathFault::kHandsOther;
  const Generated got = scene.world.generate({.on_token = [&](size_t count) {
    if (count == 6) scene.world.tasks().add(kj::evalLater([&lost] { lost.kill(); }));
  }});
  QCOMPARE(got.ids, expected());
  QCOMPARE(got.failovers.size(), size_t{2});
  for (const auto& failover : got.failovers) {
    if (failover.stage == 0) QVERIFY(failover.cause.find("other rows") != std::string::npos);
  }
  QVERIFY(got.hosts[0] != liar.options.name);
}

void DirectTest::who_hands_out_nothing_computes_again() {
  Scene scene(4);
  const Generated reference = scene.world.generate({});
  FakeHost& miser = scene.host_of_stage(reference, 0);
  FakeHost& lost = scene.host_of_stage(reference, 1);
  miser.path_fault = PathFault::kHandsNothing;
  const Generated got = scene.world.generate({.on_token = [&](size_t count) {
    if (count == 6) scene.world.tasks().add(kj::evalLater([&lost] { lost.kill(); }));
  }});
  QCOMPARE(got.ids, expected());
  QCOMPARE(got.failovers.size(), size_t{1});
  QCOMPARE(got.hosts[0], miser.options.name);
}

void DirectTest::a_path_is_opened_again_for_another_device() {
  Scene scene(4);
  const Generated reference = scene.world.generate({});
  const int opened = scene.events("path_opened");
  FakeHost& lost = scene.host_of_stage(reference, 1);
  int64_t passed = 0;
  const Generated got = scene.world.generate({.on_token = [&](size_t count) {
    if (count == 3) scene.world.tasks().add(kj::evalLater([&lost] { lost.kill(); }));
    if (count == 6) passed = scene.host_of_stage(reference, 0).passed_rows;
  }});
  QCOMPARE(got.ids, expected());
  QCOMPARE(scene.events("path_opened"), opened + 4);
  QVERIFY(scene.host_of_stage(reference, 0).passed_rows > passed);
}

void DirectTest::where_streams_are_looked_at_only_the_trusted_have_paths() {
  const auto with_checks = [](CoordinatorSettings& settings) { settings.session.audits_max = 4; };
  {
    Scene strangers(4, {.direct = true, .listens = true}, with_checks);
    QCOMPARE(strangers.world.generate({}).ids, expected());
    QCOMPARE(strangers.events("path_opened"), 0);
  }
  Scene friends(3, {.direct = true, .listens = true}, with_checks);
  for (auto& host : friends.world.hosts) friends.world.trust(*host);
  const Generated got = friends.world.generate({});
  QCOMPARE(got.ids, expected());
  QCOMPARE(got.relayed_bytes, uint64_t{0});
}

QTEST_GUILESS_MAIN(DirectTest)
#include "direct_test.moc"
