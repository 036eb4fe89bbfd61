// Goal: nobody from another machine gets in unless the owner paired him, and nobody stays when the
// owner unpairs him. Method: the agent with its remote door on loopback, real TLS, clients that
// know the pairing URL, or guess.

#include <QTest>

#include "client/remote_door.h"
#include "schema/pairing_url.h"
#include "tests/client/agent_world.h"

using namespace shoal;
using namespace shoal::client;

class RemoteDoorTest : public QObject {
  Q_OBJECT

 public:
  ~RemoteDoorTest() noexcept override {}  // kj's own may throw, Qt's may not.

 private:
  kj::AsyncIoContext io_ = kj::setupAsyncIo();

  struct Opened {
    kj::Own<rpc::Connection> connection;
    rpc::Agent::Client agent;
    std::string token;
  };

  struct DoorWorld : World {
    explicit DoorWorld(kj::AsyncIoContext& io, bool listens = true)
        : World(io), address(free_address(io)) {
      if (listens) chosen = {{"remote.listen", address}};
      start();
      door = kj::heap<RemoteDoor>(*agent, dir / "remote");
      while (listens && door->port() == 0)
        io.provider->getTimer().afterDelay(1 * kj::MILLISECONDS).wait(io.waitScope);
    }
    ~DoorWorld() noexcept(false) {
      door = nullptr;
      stop();
    }

    rpc::AttachUrl invitation() {
      return rpc::parse_pairing_url(door->invite().value().url).value();
    }
    Opened open(const rpc::AttachUrl& url, const std::string& token) {
      kj::Own<rpc::Connection> connection =
          rpc::dial_tls(io.provider->getNetwork(), io.provider->getTimer(), url).wait(io.waitScope);
      auto request = connection->bootstrap().castAs<rpc::RemoteAgent>().openRequest();
      request.setToken(token);
      request.setName("a laptop");
      auto answer = request.send().wait(io.waitScope);
      return {kj::mv(connection), answer.getAgent(), answer.getToken().cStr()};
    }
    Error refusal(const rpc::AttachUrl& url, const std::string& token) {
      try {
        (void)open(url, token);
      } catch (const kj::Exception& exception) {
        return rpc::error_of(exception);
      }
      return {ErrorCode::kInvalid, "it was let in"};
    }
    bool answers(Opened& opened) {
      auto asked = opened.agent.settingsRequest().send().then(
          [](auto&&) { return true; }, [](kj::Exception&&) { return false; });
      return asked.wait(io.waitScope);
    }

    static std::string free_address(kj::AsyncIoContext& io) {
      auto address = io.provider->getNetwork().parseAddress("127.0.0.1:0").wait(io.waitScope);
      return "127.0.0.1:" + std::to_string(address->listen()->getPort());
    }

    const std::string address;
    kj::Own<RemoteDoor> door;
  };

 private Q_SLOTS:
  void initTestCase() { ignore_broken_pipes(); }

  void it_is_closed_unless_the_owner_opens_it() {
    DoorWorld world(io_, /*listens=*/false);
    QCOMPARE(world.door->port(), uint16_t(0));
    const auto invited = world.door->invite();
    QVERIFY(!invited.ok());
    QVERIFY(invited.error().message.find("remote.listen") != std::string::npos);
    QVERIFY(!std::filesystem::exists(world.dir / "remote"));
  }

  void a_token_pairs_once_and_the_next_one_stays() {
    DoorWorld world(io_);
    const rpc::AttachUrl url = world.invitation();
    Opened first = world.open(url, url.invite);
    QVERIFY(world.answers(first));
    QVERIFY(first.token != url.invite);
    QCOMPARE(world.refusal(url, url.invite).code, ErrorCode::kDenied);  // Used up.
    Opened again = world.open(url, first.token);
    QVERIFY(world.answers(again));
    QCOMPARE(again.token, first.token);

    const std::vector<Pairing>& pairings = world.state->memory().pairings;
    QCOMPARE(pairings.size(), size_t(1));
    QCOMPARE(pairings[0].name, std::string("a laptop"));
    QVERIFY(pairings[0].token_digest.find(first.token) == std::string::npos);

    QVERIFY(!world.door->unpair(pairings[0].id + 1).ok());
    QVERIFY(world.door->unpair(pairings[0].id).ok());
    QVERIFY(!world.answers(first));  // Those that are open end, too.
    QVERIFY(!world.answers(again));
    QCOMPARE(world.refusal(url, first.token).code, ErrorCode::kDenied);
  }

  void guesses_and_late_comers_stay_outside() {
    DoorWorld world(io_);
    rpc::AttachUrl url = world.invitation();
    QCOMPARE(world.refusal(url, "").code, ErrorCode::kDenied);
    QCOMPARE(world.refusal(url, std::string(32, '0')).code, ErrorCode::kDenied);
    QCOMPARE(world.refusal(url, std::string(1'000, '0')).code, ErrorCode::kInvalid);
    // One connection has five tries, and those of strangers do not void the owner's invitation.
    kj::Own<rpc::Connection> guesser =
        rpc::dial_tls(io_.provider->getNetwork(), io_.provider->getTimer(), url)
            .wait(io_.waitScope);
    const auto guess = [&](const std::string& token) {
      auto request = guesser->bootstrap().castAs<rpc::RemoteAgent>().openRequest();
      request.setToken(token);
      return rpc::error_of(world.failure(request.send())).message;
    };
    for (int i = 0; i < 5; ++i) QVERIFY(guess("guess").find("not paired") != std::string::npos);
    QVERIFY(guess(url.invite).find("too many") != std::string::npos);
    Opened good = world.open(url, url.invite);
    QVERIFY(world.answers(good));

    url = world.invitation();
    world.clock.advance(PairingCodes::kOpenFor);
    QCOMPARE(world.refusal(url, url.invite).code, ErrorCode::kDenied);

    url = world.invitation();
    rpc::AttachUrl wrong = url;
    wrong.pin[0] = wrong.pin[0] == 'A' ? 'B' : 'A';
    QCOMPARE(world.refusal(wrong, url.invite).code, ErrorCode::kDenied);
    Opened opened = world.open(url, url.invite);
    QVERIFY(world.answers(opened));
    // Nothing but open() is there for a stranger.
    kj::Own<rpc::Connection> stranger =
        rpc::dial_tls(io_.provider->getNetwork(), io_.provider->getTimer(), url)
            .wait(io_.waitScope);
    auto asked = stranger->bootstrap().castAs<rpc::Agent>().stopRequest().send().ignoreResult();
    QVERIFY(world.failure(kj::mv(asked)).getType() == kj::Exception::Type::UNIMPLEMENTED);
  }

  void it_closes_and_opens_with_the_setting_and_keeps_its_key() {
    DoorWorld world(io_);
    const std::string pin = world.invitation().pin;
    QVERIFY(world.agent->change_settings({{"remote.listen", std::string()}}).ok());
    while (world.door->port() != 0) kj::evalLater([] {}).wait(io_.waitScope);
    QVERIFY(!world.agent->remote_listens());
    QVERIFY(world.agent->change_settings({{"remote.listen", world.address}}).ok());
    while (world.door->port() == 0) {
      io_.provider->getTimer().afterDelay(1 * kj::MILLISECONDS).wait(io_.waitScope);
    }
    QCOMPARE(world.invitation().pin, pin);
    QVERIFY(world.agent->remote_listens());
  }

  void a_guest_does_not_choose_what_runs_here_and_who_comes_in() {
    DoorWorld world(io_);
    const rpc::AttachUrl url = world.invitation();
    Opened guest = world.open(url, url.invite);
    const auto refused = [&](auto request) {
      return rpc::error_of(world.failure(request.send())).code == ErrorCode::kDenied;
    };
    QVERIFY(refused(guest.agent.stopRequest()));
    QVERIFY(refused(guest.agent.pairRequest()));
    QVERIFY(refused(guest.agent.pairingsRequest()));
    QVERIFY(refused(guest.agent.unpairRequest()));
    const auto change = [&](const char* key, const char* value) {
      auto request = guest.agent.changeSettingsRequest();
      auto setting = request.initChanges(1)[0];
      setting.setKey(key);
      setting.initValue().setText(value);
      return request;
    };
    for (const char* key : {"worker.program", "sensors.program", "remote.listen", "network.direct",
                            "network.direct_listen", "cache.folder"}) {
      QVERIFY2(refused(change(key, "")), key);
    }
    QCOMPARE(world.settings->now().text("remote.listen"), world.address);
    change("consent.new_classes", "deny").send().wait(io_.waitScope);
    QCOMPARE(world.settings->now().text("consent.new_classes"), std::string("deny"));
  }

  void a_door_that_closes_in_a_guests_call_lets_the_call_end() {
    DoorWorld world(io_);
    const rpc::AttachUrl url = world.invitation();
    Opened guest = world.open(url, url.invite);
    QVERIFY(world.agent->change_settings({{"remote.listen", std::string()}}).ok());
    QVERIFY(world.door->port() != 0);  // Not before this turn is over.
    while (world.door->port() != 0) kj::evalLater([] {}).wait(io_.waitScope);
    QVERIFY(!world.answers(guest));
  }

  void a_door_that_does_not_open_is_said() {
    auto taken =
        io_.provider->getNetwork().parseAddress("127.0.0.1:0").wait(io_.waitScope)->listen();
    DoorWorld world(io_, /*listens=*/false);
    const std::string address = "127.0.0.1:" + std::to_string(taken->getPort());
    QVERIFY(world.agent->change_settings({{"remote.listen", address}}).ok());
    world.wait_for_agent([](rpc::Snapshot::Reader snapshot) {
      return snapshot.getNotices().size() == 1 &&
             snapshot.getNotices()[0].getCode() == "remote.not_open";
    });
    QVERIFY(world.agent->change_settings({{"remote.listen", std::string()}}).ok());
    world.wait_for_agent(
        [](rpc::Snapshot::Reader snapshot) { return snapshot.getNotices().size() == 0; });
  }
};

QTEST_GUILESS_MAIN(RemoteDoorTest)
#include "remote_door_test.moc"
