#include <QElapsedTimer>
#include <QSignalSpy>

#include "tests/ui/ui_support.h"

using namespace shoal;
using ui::AnswerOf;
using ui::LinkState;

namespace {

using Agent = rpc::Agent::Client;
using SettingsAnswer = AnswerOf<&Agent::settingsRequest>;

}  // namespace

class AgentLinkTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  // Goal: whatever state the client is in, the window hears of it and can ask it anything.
  void hears_a_client_that_starts_after_it() {
    UiPlace place;
    QVERIFY(place.wait_for(LinkState::kAbsent));
    FakeAgent agent(place.socket_path(), FakeAgent::Story::kFull);
    QVERIFY(place.wait_for_snapshot());
    QCOMPARE(place.link.state(), LinkState::kConnected);
    QCOMPARE(QString(place.link.snapshot()->reader().getHostName().cStr()), QString("willow"));
  }

  void hears_each_change() {
    UiPlace place;
    FakeAgent agent(place.socket_path(), FakeAgent::Story::kFull);
    QVERIFY(place.wait_for_snapshot());
    QSignalSpy arrived(&place.link, &ui::AgentLink::snapshot_arrived);
    agent.change([](rpc::Snapshot::Builder snapshot) { snapshot.setCacheBytes(123); });
    QVERIFY(arrived.wait());
    QCOMPARE(place.link.snapshot()->reader().getCacheBytes(), uint64_t{123});
  }

  void asks_with_parameters_and_gets_the_answer() {
    UiPlace place;
    FakeAgent agent(place.socket_path(), FakeAgent::Story::kFull);
    QVERIFY(place.wait_for_snapshot());
    bool answered = false;
    place.link.call<&Agent::setModeRequest>(
        this,
        [](auto params) {
          params.setResource(rpc::Resource::GPU);
          params.setMode(rpc::Mode::PAUSED);
          params.setForMs(900'000);
        },
        [&](AnswerOf<&Agent::setModeRequest> answer) { answered = answer.ok(); });
    QTRY_VERIFY(answered);
    QCOMPARE(agent.calls().back(), std::string("setMode gpu paused 900000"));

    uint32_t count = 0;
    place.link.call<&Agent::settingsRequest>(
        this, [](auto) {},
        [&](SettingsAnswer answer) {
          QVERIFY(answer.ok());
          count = answer.value()->reader().getSettings().size();
        });
    QTRY_VERIFY(count > 20);
  }

  void hands_on_the_sentence_of_a_refusal() {
    UiPlace place;
    FakeAgent agent(place.socket_path(), FakeAgent::Story::kFull);
    QVERIFY(place.wait_for_snapshot());
    agent.fail("settings", "not while the moon is full");
    std::string why;
    place.link.call<&Agent::settingsRequest>(
        this, [](auto) {},
        [&](SettingsAnswer answer) { why = answer.ok() ? "none" : answer.error().message; });
    QTRY_COMPARE(why, std::string("not while the moon is full"));
  }

  void fails_calls_at_once_when_no_client_runs() {
    UiPlace place;
    QVERIFY(place.wait_for(LinkState::kAbsent));
    ErrorCode code = ErrorCode::kInvalid;
    place.link.call<&Agent::settingsRequest>(
        this, [](auto) {}, [&](SettingsAnswer answer) { code = answer.error().code; });
    QTRY_COMPARE(code, ErrorCode::kUnavailable);
  }

  void a_call_that_a_hung_client_does_not_answer_ends_by_its_limit() {
    UiPlace place;
    FakeAgent agent(place.socket_path(), FakeAgent::Story::kFull);
    QVERIFY(place.wait_for_snapshot());
    agent.hang();
    ErrorCode code = ErrorCode::kInvalid;
    place.link.call<&Agent::settingsRequest>(
        this, [](auto) {}, [&](SettingsAnswer answer) { code = answer.error().code; }, Millis{200});
    QTRY_COMPARE(code, ErrorCode::kTimeout);
    agent.wake();
  }

  void a_call_in_flight_fails_when_the_client_is_killed() {
    UiPlace place;
    FakeAgent agent(place.socket_path(), FakeAgent::Story::kFull);
    QVERIFY(place.wait_for_snapshot());
    ErrorCode code = ErrorCode::kInvalid;
    place.link.call<&Agent::benchmarkRequest>(
        this, [](auto params) { params.setDeviceId("cpu"); },
        [&](AnswerOf<&Agent::benchmarkRequest> answer) { code = answer.error().code; });
    QTRY_VERIFY(!agent.calls().empty());
    agent.kill();
    QTRY_COMPARE(code, ErrorCode::kUnavailable);
    QVERIFY(place.wait_for(LinkState::kAbsent));
    QVERIFY(place.link.snapshot() == nullptr);
    agent.start();
    QVERIFY(place.wait_for_snapshot());
  }

  // Goal: a client that is slow for a while loses neither its connection nor what it was asked.
  void a_client_that_was_only_slow_keeps_what_it_was_asked() {
    const QTemporaryDir folder;
    const QString socket = folder.filePath("agent.sock");
    FakeAgent agent(socket.toStdString(), FakeAgent::Story::kFull);
    ui::AgentLink link(socket, {.probe_every = Millis{50}, .probe_max = Millis{100}});
    QTRY_VERIFY(link.snapshot() != nullptr);
    int answers = 0;
    bool measured = false;
    link.call<&Agent::benchmarkRequest>(
        this, [](auto params) { params.setDeviceId("cpu"); },
        [&](AnswerOf<&Agent::benchmarkRequest> answer) {
          ++answers;
          measured = answer.ok();
        });
    QTRY_VERIFY(!agent.calls().empty());
    agent.hang();
    QTRY_COMPARE(link.state(), LinkState::kSilent);
    QVERIFY(link.snapshot() == nullptr);
    QCOMPARE(answers, 0);
    agent.wake();
    QTRY_VERIFY(link.snapshot() != nullptr);
    QTRY_COMPARE(answers, 1);
    QVERIFY(measured);
    QCOMPARE(agent.calls().size(), size_t{1});
    QCOMPARE(link.calls_open(), size_t{0});
  }

  void an_answer_for_a_receiver_that_is_gone_is_dropped() {
    UiPlace place;
    FakeAgent agent(place.socket_path(), FakeAgent::Story::kFull);
    QVERIFY(place.wait_for_snapshot());
    bool called = false;
    {
      QObject receiver;
      place.link.call<&Agent::benchmarkRequest>(
          &receiver, [](auto params) { params.setDeviceId("cpu"); },
          [&](AnswerOf<&Agent::benchmarkRequest>) { called = true; });
    }
    // A later call that is answered shows that the first one's answer had its chance.
    bool later = false;
    place.link.call<&Agent::benchmarkRequest>(
        this, [](auto params) { params.setDeviceId("cpu"); },
        [&](AnswerOf<&Agent::benchmarkRequest>) { later = true; });
    QTRY_VERIFY(later);
    QVERIFY(!called);
  }

  void ends_at_once_while_the_client_hangs() {
    FakeAgent* hung = nullptr;
    QElapsedTimer timer;
    auto place = std::make_unique<UiPlace>();
    FakeAgent agent(place->socket_path(), FakeAgent::Story::kFull);
    hung = &agent;
    QVERIFY(place->wait_for_snapshot());
    hung->hang();
    timer.start();
    place.reset();
    QVERIFY(timer.elapsed() < 1'000);
    hung->wake();
  }
};

QTEST_GUILESS_MAIN(AgentLinkTest)
#include "agent_link_test.moc"
