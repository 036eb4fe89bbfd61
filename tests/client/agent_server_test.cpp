// Goal: everything that a user interface may ask (agent.capnp) is answered, and what makes no sense
// is refused with a sentence. Method: the server of a whole agent, called without a wire.

#include <QTest>

#include "base/log.h"
#include "client/agent_server.h"
#include "tests/client/agent_world.h"

using namespace shoal;
using namespace shoal::client;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class NoPairer final : public Pairer {
 public:
  Result<Invitation> invite() override { return Error{ErrorCode::kUnavailable, "no door"}; }
  Result<void> unpair(uint64_t) override { return Error{ErrorCode::kNotFound, "nobody"}; }
};

}  // namespace

class AgentServerTest : public QObject {
  Q_OBJECT

 public:
  ~AgentServerTest() noexcept override {}  // kj's own may throw, Qt's may not.

 private:
  kj::AsyncIoContext io_ = kj::setupAsyncIo();

  struct ServedWorld : World {
    explicit ServedWorld(kj::AsyncIoContext& io) : World(io) {
      set_log_sink([this](LogLevel level, std::string_view line) { ring.add(level, line); });
      start_mode = Mode::kByRules;
      sensors.now = all_is_well();
      coordinator.offers = {{"generate", "m", false}};
      for (int i = 0; i < 3; ++i) coordinator.add_receipt(2);
      start();
      wait_ready();
      client = kj::heap<AgentServer>(*agent, pairer);
    }
    ~ServedWorld() noexcept(false) {
      stop();
      set_log_sink(nullptr);
    }
    template <class Request>
    auto ask(Request request) {
      return request.send().wait(io.waitScope);
    }
    template <class Request>
    Error refusal(Request request) {
      return rpc::error_of(failure(kj::Promise<void>(request.send().ignoreResult())));
    }

    NoPairer pairer;
    rpc::Agent::Client client = nullptr;
  };

 private Q_SLOTS:
  void initTestCase() { ignore_broken_pipes(); }

  void shows_all_settings_and_changes_them() {
    ServedWorld world(io_);
    const auto answer = world.ask(world.client.settingsRequest());
    QCOMPARE(size_t(answer.getSettings().size()), settings_table().size());
    bool seen = false;
    for (const auto setting : answer.getSettings()) {
      QVERIFY(setting.getHelp().size() > 0);
      if (std::string("rules.idle_seconds") != setting.getKey().cStr()) continue;
      seen = true;
      QCOMPARE(setting.getValue().getInteger(), int64_t{180});
      QCOMPARE(setting.getMinimum(), 5.0);
      QVERIFY(!setting.getNeedsRestart());
    }
    QVERIFY(seen);

    auto request = world.client.changeSettingsRequest();
    auto change = request.initChanges(1)[0];
    change.setKey("rules.idle_seconds");
    change.initValue().setInteger(60);
    (void)world.ask(kj::mv(request));
    QCOMPARE(world.settings->now().integer("rules.idle_seconds"), int64_t{60});

    auto wrong = world.client.changeSettingsRequest();
    change = wrong.initChanges(1)[0];
    change.setKey("rules.idle_seconds");
    change.initValue().setInteger(1);
    const Error error = world.refusal(kj::mv(wrong));
    QVERIFY2(has(error.message, "rules.idle_seconds"), error.message.c_str());
    auto many = world.client.changeSettingsRequest();
    many.initChanges(10'000);
    QVERIFY(has(world.refusal(kj::mv(many)).message, "changes"));
  }

  void sets_modes_and_refuses_unknown_ones() {
    ServedWorld world(io_);
    auto request = world.client.setModeRequest();
    request.setResource(rpc::Resource::CPU);
    request.setMode(rpc::Mode::PAUSED);
    request.setForMs(900'000);
    (void)world.ask(kj::mv(request));
    const auto snapshot = world.ask(world.client.snapshotRequest());
    const auto cpu = snapshot.getSnapshot().getResources()[1];
    QVERIFY(cpu.getMode() == rpc::Mode::PAUSED);
    QVERIFY(cpu.getModeEndsMs() > world.clock.now_wall().count);
    QVERIFY(cpu.getVerdict().getActivity() == rpc::Activity::PAUSED);

    auto unknown = world.client.setModeRequest();
    unknown.setMode(static_cast<rpc::Mode>(77));
    QCOMPARE(world.refusal(kj::mv(unknown)).code, ErrorCode::kUnsupported);
    auto nowhere = world.client.setModeRequest();
    nowhere.setResource(static_cast<rpc::Resource>(77));
    QCOMPARE(world.refusal(kj::mv(nowhere)).code, ErrorCode::kUnsupported);
    auto endless = world.client.setModeRequest();
    endless.setForMs(UINT64_MAX);
    QCOMPARE(world.refusal(kj::mv(endless)).code, ErrorCode::kInvalid);
  }

  void tells_the_past() {
    ServedWorld world(io_);
    const Digest shard = world.add_shard(1'000, 1);
    {
      rpc::Stage::Client stage = world.open({shard});
      (void)world.step(stage).wait(io_.waitScope);
    }
    world.wait_for_agent(
        [](rpc::Snapshot::Reader snapshot) { return snapshot.getWork().size() == 0; });
    world.clock.advance(Millis{2'000});  // What is counted each second is.
    world.agent->judge();
    const int64_t now = world.clock.now_wall().count;
    auto trace = world.client.traceRequest();
    trace.setFromMs(now - 1'000'000);
    trace.setToMs(now + 1'000'000);
    const auto traced = world.ask(kj::mv(trace));
    for (const rpc::Resource resource :
         {rpc::Resource::GPU, rpc::Resource::CPU, rpc::Resource::NETWORK}) {
      // The last one of each lasts, and says what the snapshot says.
      std::optional<rpc::TraceSpan::Reader> last;
      for (const auto span : traced.getSpans()) {
        if (span.getResource() == resource) last = span;
      }
      QVERIFY(last.has_value());
      QCOMPARE(last->getEndMs(), int64_t{0});
      QVERIFY(last->getVerdict().getActivity() == rpc::Activity::WORKING);
      QVERIFY(last->getVerdict().getSinceMs() > now - 1'000'000);
    }

    auto statistics = world.client.statisticsRequest();
    statistics.setFromMs(now - 1'000'000);
    statistics.setToMs(now + 1'000'000);
    statistics.setStepMs(60'000);
    const auto counted = world.ask(kj::mv(statistics));
    uint64_t rows = 0;
    for (const auto row : counted.getRows()) {
      if (std::string("fake") == row.getDeviceId().cStr()) rows += row.getTotals().getRows();
    }
    QCOMPARE(rows, uint64_t{1});

    auto history = world.client.historyRequest();
    history.setCountMax(10);
    const auto past = world.ask(kj::mv(history));
    QCOMPARE(past.getWork().size(), 1u);
    QCOMPARE(past.getWork()[0].getSteps(), uint64_t{1});
    QCOMPARE(past.getWork()[0].getDeviceId().cStr(), "fake");

    auto what_if = world.client.whatIfRequest();
    what_if.setDays(7);
    QCOMPARE(world.ask(kj::mv(what_if)).getResources().size(), 3u);
    // Conditions are kept for eight days; nobody is told of eight when he asked for more.
    for (const uint32_t days : {0u, 9u, 31u}) {
      auto too_long = world.client.whatIfRequest();
      too_long.setDays(days);
      QVERIFY(has(world.refusal(kj::mv(too_long)).message, "8 days"));
    }
    auto longest = world.client.whatIfRequest();
    longest.setDays(8);
    QCOMPARE(world.ask(kj::mv(longest)).getResources().size(), 3u);
    auto absurd = world.client.whatIfRequest();
    absurd.setDays(1);
    auto change = absurd.initChanges(1)[0];
    change.setKey("rules.nothing");
    change.initValue().setFlag(true);
    QVERIFY(has(world.refusal(kj::mv(absurd)).message, "rules.nothing"));
  }

  void shows_receipts_and_checks_them() {
    ServedWorld world(io_);
    world.wait_for_agent([](rpc::Snapshot::Reader snapshot) {
      return snapshot.getConnections()[0].getReceiptsStored() == 3;
    });
    auto request = world.client.receiptsRequest();
    request.setCountMax(2);
    const auto answer = world.ask(kj::mv(request));
    QCOMPARE(answer.getReceipts().size(), 2u);
    QVERIFY(answer.getReceipts()[0].getGenuine());
    const auto report = world.ask(world.client.verifyReceiptsRequest());
    QCOMPARE(report.getReport().size(), 1u);
    QVERIFY(report.getReport()[0].getAgrees());
    QCOMPARE(report.getReport()[0].getCreditConfirmed(), 6.0);
    QCOMPARE(report.getReport()[0].getDays(), 0u);
  }

  void brings_the_days_of_receipts_and_checks_them() {
    ServedWorld world(io_);
    world.coordinator.credit_rate = 0.5;
    world.coordinator.credit_unit = "points";
    world.coordinator.close_day();
    const auto report = [&] { return world.ask(world.client.verifyReceiptsRequest()); };
    while (report().getReport()[0].getInDays() < 3) {
      const int pings = world.coordinator.pings;
      world.coordinator.wait_until([&] { return world.coordinator.pings > pings; });
    }
    const auto checked = report();
    QVERIFY(checked.getReport()[0].getAgrees());
    QCOMPARE(checked.getReport()[0].getDays(), 1u);
    QCOMPARE(checked.getReport()[0].getNewestDay(), world.coordinator.day.day);
    QCOMPARE(world.coordinator.days_asked, 2);  // It is not asked for again.
    const auto snapshot = world.ask(world.client.snapshotRequest());
    const auto standing = snapshot.getSnapshot().getConnections()[0].getStanding();
    QCOMPARE(standing.getCreditRate(), 0.5);
    QCOMPARE(std::string(standing.getCreditUnit().cStr()), std::string("points"));
  }

  void previews_a_coordinator_without_joining_it() {
    ServedWorld world(io_);
    FakeCoordinator other(io_);
    other.offers = {{"generate", "secret-garden", true}};
    other.listen();
    auto request = world.client.previewAttachRequest();
    request.setUrl(rpc::format_attach_url(other.url()));
    const auto answer = world.ask(kj::mv(request));
    QCOMPARE(std::string(answer.getCard().getOperator().cStr()), std::string("a test"));
    QCOMPARE(answer.getCard().getOffers().size(), 1u);
    QCOMPARE(other.logins, 0);
    auto wrong = world.client.previewAttachRequest();
    wrong.setUrl("http://example.org");
    QCOMPARE(world.refusal(kj::mv(wrong)).code, ErrorCode::kInvalid);
  }

  void a_bundle_and_a_log_name_nobody() {
    ServedWorld world(io_);
    auto request = world.client.logRequest();
    request.setCountMax(1'000);
    const auto log = world.ask(kj::mv(request));
    QVERIFY(log.getLines().size() > 0);
    const auto answer = world.ask(world.client.bundleRequest());
    const std::string text = answer.getText().cStr();
    QVERIFY2(has(text, "Devices\n"), text.c_str());
    QVERIFY2(has(text, "exact yes"), text.c_str());
    QVERIFY(!has(text, "127.0.0.1"));
    QVERIFY(!has(text, world.coordinator.url().pin));
    QVERIFY(!has(text, " " + host_name()));
    QVERIFY(!has(text, world.dir.path().string()));
  }

  void passes_on_the_rest() {
    ServedWorld world(io_);
    auto sensor = world.client.testSensorRequest();
    sensor.setName("idle");
    QVERIFY(world.ask(kj::mv(sensor)).getSensor().getKnown());
    QCOMPARE(world.ask(world.client.pairingsRequest()).getPairings().size(), 0u);
    QVERIFY(has(world.refusal(world.client.pairRequest()).message, "no door"));
    QVERIFY(has(world.refusal(world.client.unpairRequest()).message, "nobody"));

    auto leave_by = world.client.setLeaveByRequest();
    leave_by.setAtMs(1);
    QVERIFY(has(world.refusal(kj::mv(leave_by)).message, "over"));
    auto lent = world.client.setDeviceLentRequest();
    lent.setDeviceId("nothing");
    QCOMPARE(world.refusal(kj::mv(lent)).code, ErrorCode::kNotFound);
    auto consent = world.client.setConsentRequest();
    consent.setUrl("shoal://nowhere:1");
    QCOMPARE(world.refusal(kj::mv(consent)).code, ErrorCode::kNotFound);
    auto measured = world.client.benchmarkRequest();
    measured.setDeviceId("fake");
    QCOMPARE(world.ask(kj::mv(measured)).getReport().getDecodeRowsPerSecond(), 42.0);
  }

  void figures_alone_are_told_once_a_second() {
    ServedWorld world(io_);
    const Digest shard = world.add_shard(1'000, 1);
    rpc::Stage::Client stage = world.open({shard});
    (void)world.step(stage).wait(io_.waitScope);
    const uint64_t before = world.agent->revision();
    for (int i = 0; i < 100; ++i) (void)world.step(stage).wait(io_.waitScope);
    QVERIFY(world.agent->revision() <= before + 2);
    world.wait_for_agent(
        [](rpc::Snapshot::Reader snapshot) { return snapshot.getDevices()[0].getSteps() == 101; });
  }
};

QTEST_GUILESS_MAIN(AgentServerTest)
#include "agent_server_test.moc"
