// Goal: a host joins the coordinator that its URL names and no other, says why it cannot, and comes
// back by itself. Method: a fake coordinator behind real TLS on loopback.

#include <capnp/message.h>

#include <QTest>

#include "base/host.h"
#include "client/agent.h"
#include "client/coordinator_link.h"
#include "schema/reasons.h"
#include "tests/client/fake_coordinator.h"

using namespace shoal;
using namespace shoal::client;

namespace {

class NoHost final : public rpc::Host::Server {};

class Owner final : public CoordinatorLink::Needs {
 public:
  explicit Owner(FakeCoordinator& coordinator) : coordinator_(coordinator) {}

  const SigningKey& identity() const override { return identity_; }
  rpc::Host::Client make_host(CoordinatorLink&, kj::Own<SessionSlot> slot) override {
    slot_ = kj::mv(slot);
    return kj::heap<NoHost>();
  }
  void write_report(rpc::HostSession::ReportParams::Builder report) override {
    report.initDevices(1)[0].initInfo().setId("device " + std::to_string(++reported_));
  }
  void link_changed(CoordinatorLink&) override { coordinator_.changed(); }
  void standing_changed(CoordinatorLink&) override { coordinator_.changed(); }
  std::vector<JobClass> denied(const CoordinatorLink&) override { return denied_; }
  Result<void> receipt_key_shown(const CoordinatorLink&, const SigningPublicKey& key) override {
    if (receipt_key_ && *receipt_key_ != key) {
      return Error{ErrorCode::kDenied, "its receipt key is another one than before"};
    }
    receipt_key_ = key;
    return {};
  }
  std::optional<uint64_t> receipts_wanted(const CoordinatorLink& link) override {
    if (link.standing().newest_receipt <= receipts_.size()) return {};
    return receipts_.size();
  }
  Result<void> receipts_came(const CoordinatorLink&, const std::vector<Receipt>& came) override {
    ++brought_;
    coordinator_.changed();
    if (full_) return Error{ErrorCode::kNoSpace, "the disk is full"};
    receipts_.insert(receipts_.end(), came.begin(), came.end());
    return {};
  }

  std::optional<DayWanted> day_wanted(const CoordinatorLink&) override {
    if (!wants_days_) return {};
    return DayWanted{1, 0};
  }
  Result<void> day_came(const CoordinatorLink&, const LedgerDay&, const std::vector<ReceiptProof>&,
                        bool) override {
    wants_days_ = false;
    coordinator_.changed();
    return {};
  }

  SigningKey identity_ = SigningKey::generate();
  kj::Own<SessionSlot> slot_;
  int reported_ = 0;
  std::vector<JobClass> denied_;
  std::optional<SigningPublicKey> receipt_key_;
  std::vector<Receipt> receipts_;
  int brought_ = 0;    // Batches that came.
  bool full_ = false;  // Stores none.
  bool wants_days_ = false;

 private:
  FakeCoordinator& coordinator_;
};

// A network whose resolver knows no name until it is told to.
class Resolver final : public kj::Network {
 public:
  explicit Resolver(kj::Network& network) : network_(network) {}

  kj::Promise<kj::Own<kj::NetworkAddress>> parseAddress(kj::StringPtr text, uint port) override {
    ++asked;
    if (!knows) return KJ_EXCEPTION(FAILED, "DNS lookup failed.", text);
    return network_.parseAddress(text, port);
  }
  kj::Own<kj::NetworkAddress> getSockaddr(const void* address, uint size) override {
    return network_.getSockaddr(address, size);
  }
  kj::Own<kj::Network> restrictPeers(kj::ArrayPtr<const kj::StringPtr> allow,
                                     kj::ArrayPtr<const kj::StringPtr> deny) override {
    return network_.restrictPeers(allow, deny);
  }

  bool knows = false;
  int asked = 0;

 private:
  kj::Network& network_;
};

// What a hotel's network answers, whatever it is asked.
class Portal {
 public:
  Portal(kj::AsyncIoContext& io, uint16_t port)
      : io_(io), serving_(serve(port).promise().eagerlyEvaluate(nullptr)) {}

  std::string heard;

 private:
  rpc::Task<void> serve(uint16_t port) {
    auto address = co_await io_.provider->getNetwork().parseAddress("127.0.0.1", port);
    auto receiver = address->listen();
    while (true) {
      auto stream = co_await receiver->accept();
      char bytes[256];
      kj::Promise<size_t> reading = stream->tryRead(bytes, 1, sizeof bytes);
      const size_t size = co_await kj::mv(reading);
      heard.append(bytes, size);
      const kj::StringPtr page = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>";
      kj::Promise<void> writing = stream->write(page.begin(), page.size());
      co_await kj::mv(writing);
    }
  }

  kj::AsyncIoContext& io_;
  kj::Promise<void> serving_;
};

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

class CoordinatorLinkTest : public QObject {
  Q_OBJECT

 public:
  ~CoordinatorLinkTest() noexcept override {}  // kj's own may throw, Qt's may not.

 private:
  using State = CoordinatorLink::State;
  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  Loop loop_{io_, io_.provider->getTimer()};
  SystemClock clock_;
  Random random_{1};
  SigningKey identity_ = SigningKey::generate();

  std::unique_ptr<CoordinatorLink> link(Owner& owner, const rpc::AttachUrl& url,
                                        Millis wait = Millis{5}) {
    return link(owner, url, wait, io_.provider->getNetwork());
  }
  std::unique_ptr<CoordinatorLink> link(Owner& owner, const rpc::AttachUrl& url, Millis wait,
                                        kj::Network& network,
                                        Millis refused_wait = Millis{30'000}) {
    CoordinatorLink::Waits waits;
    waits.refused_first = refused_wait;
    waits.first = wait;
    waits.most = Millis{4 * wait.count};
    waits.probe_max = 50 * kj::MILLISECONDS;
    return std::make_unique<CoordinatorLink>(network, loop_.timer, clock_, random_,
                                             static_cast<CoordinatorLink::Needs&>(owner), url,
                                             waits);
  }

  Error attach_error(const rpc::AttachUrl& url) {
    return enrol(loop_, url, identity_)
        .promise()
        .then(
            [](Attachment) {
              return Error{ErrorCode::kInvalid, ""};
            },
            [](kj::Exception&& exception) { return rpc::error_of(exception); })
        .wait(io_.waitScope);
  }

 private Q_SLOTS:
  void initTestCase() { ignore_broken_pipes(); }

  void an_invite_enrols_and_is_not_kept() {
    FakeCoordinator coordinator(io_);
    coordinator.invite = "welcome";
    coordinator.listen();
    const Attachment attachment =
        enrol(loop_, coordinator.url(), identity_).promise().wait(io_.waitScope);
    QCOMPARE(attachment.name, std::string("fake"));
    QCOMPARE(attachment.host_id, uint64_t(5));
    QVERIFY(!has(attachment.url, "welcome"));
    QVERIFY(coordinator.host_key == identity_.public_key());
    QCOMPARE(coordinator.leaves, 1);  // Nothing that follows is a lost host.
    // Known now: no invite is needed.
    QVERIFY(rpc::parse_attach_url(attachment.url).ok());
    QVERIFY(attach_error(rpc::parse_attach_url(attachment.url).value()).message.empty());
  }

  void each_failure_to_attach_has_its_sentence() {
    FakeCoordinator coordinator(io_);
    coordinator.invite = "welcome";
    coordinator.listen();

    rpc::AttachUrl url = coordinator.url();
    url.invite = "yesterday's";
    Error error = attach_error(url);
    QCOMPARE(error.code, ErrorCode::kDenied);
    QVERIFY2(has(error.message, "expired"), error.message.c_str());

    url = coordinator.url();
    url.pin = rpc::pin_of(rpc::make_certificate().value().der);
    error = attach_error(url);
    QCOMPARE(error.code, ErrorCode::kDenied);
    QVERIFY2(has(error.message, "wrong pin"), error.message.c_str());
    QCOMPARE(coordinator.logins, 1);  // Nothing was said to the stranger.

    coordinator.protocol = 99;
    error = attach_error(coordinator.url());
    QCOMPARE(error.code, ErrorCode::kUnsupported);
    QVERIFY2(has(error.message, "99"), error.message.c_str());
    coordinator.protocol = rpc::PROTOCOL_VERSION;

    coordinator.refusal = {ErrorCode::kDenied, "this host is banned"};
    error = attach_error(coordinator.url());
    QVERIFY2(has(error.message, "this host is banned"), error.message.c_str());

    coordinator.drop_everyone();
    error = attach_error(coordinator.url());
    QCOMPARE(error.code, ErrorCode::kUnavailable);
    QVERIFY2(has(error.message, "nothing listens"), error.message.c_str());
  }

  void reports_at_login_and_at_each_change_and_shows_life() {
    FakeCoordinator coordinator(io_);
    coordinator.knows_everyone = true;
    coordinator.listen();
    Owner owner(coordinator);
    auto link = this->link(owner, coordinator.url());
    coordinator.wait_until([&] { return coordinator.reports.size() == 1; });
    QVERIFY(link->state() == State::kConnected);
    QCOMPARE(link->coordinator_name(), std::string("fake"));
    QCOMPARE(link->host_id(), uint64_t(5));
    QVERIFY(owner.slot_->session != nullptr);
    QCOMPARE(coordinator.host_name, host_name());
    link->devices_changed();
    link->devices_changed();  // One report will do for both.
    coordinator.wait_until([&] { return coordinator.reports.size() == 2; });
    QCOMPARE(coordinator.reports[1][0].id, std::string("device 2"));
    coordinator.wait_until([&] { return coordinator.pings >= 2; });
    QCOMPARE(coordinator.reports.size(), size_t(2));

    link->leave("done").wait(io_.waitScope);
    QCOMPARE(coordinator.leaves, 1);
  }

  void comes_back_after_a_loss() {
    FakeCoordinator coordinator(io_);
    coordinator.knows_everyone = true;
    coordinator.listen();
    Owner owner(coordinator);
    auto link = this->link(owner, coordinator.url());
    for (int times = 1; times <= 3; ++times) {
      coordinator.wait_until([&] { return link->state() == State::kConnected; });
      coordinator.drop_everyone();
      coordinator.wait_until([&] { return link->state() == State::kWaiting; });
      QVERIFY(!link->reason().empty());
      QVERIFY(owner.slot_->session == nullptr);
      QVERIFY(link->retry_in() <= Millis{20});
      coordinator.listen();
    }
    coordinator.wait_until([&] { return link->state() == State::kConnected; });
    QVERIFY(link->reason().empty());
  }

  // F19.
  void a_resolver_that_comes_late_or_dies_later_is_waited_for() {
    FakeCoordinator coordinator(io_);
    coordinator.knows_everyone = true;
    coordinator.listen();
    Owner owner(coordinator);
    Resolver resolver(io_.provider->getNetwork());
    auto link = this->link(owner, coordinator.url(), Millis{5}, resolver);
    for (int times = 1; times <= 2; ++times) {
      const int before = resolver.asked;
      coordinator.wait_until([&] { return resolver.asked >= before + 3; });
      // It is nobody's refusal, and the words say what is amiss.
      coordinator.wait_until([&] { return link->state() == State::kWaiting; });
      QVERIFY2(has(link->reason(), "cannot be resolved"), link->reason().c_str());
      QVERIFY(find_reason(link->reason()));  // So that a window can say it in German.
      QVERIFY(link->retry_in() <= Millis{20});
      const int failed = resolver.asked;
      resolver.knows = true;
      coordinator.wait_until([&] { return link->state() == State::kConnected; });
      QVERIFY(resolver.asked <= failed + 2);  // Each dials twice: for the greeting, then over TLS.
      resolver.knows = false;
      coordinator.drop_everyone();
      coordinator.wait_until([&] { return link->state() == State::kWaiting; });
      coordinator.listen();
    }
  }

  // F20. Who answers in its place hears no more than a greeting, and goes by.
  void what_is_no_coordinator_is_told_from_it_and_outlived() {
    FakeCoordinator coordinator(io_);
    coordinator.invite = "a-secret-invite";
    coordinator.listen();
    Owner owner(coordinator);
    const rpc::AttachUrl url = coordinator.url();
    auto link = this->link(owner, url, Millis{5}, io_.provider->getNetwork(), Millis{5});
    coordinator.wait_until([&] { return link->state() == State::kConnected; });
    for (const bool is_portal : {true, false}) {
      coordinator.drop_everyone();
      std::unique_ptr<Portal> portal;
      const rpc::Certificate own = coordinator.certificate;
      if (is_portal) {
        portal = std::make_unique<Portal>(io_, url.port);
      } else {
        // Another's certificate, as of one who sits in the middle.
        coordinator.certificate = rpc::make_certificate().value();
        coordinator.listen();
      }
      const char* const says = is_portal ? "no Shoal coordinator" : "wrong pin";
      const int logins = coordinator.logins;
      coordinator.wait_until([&] { return has(link->reason(), says); });
      QVERIFY2(find_reason(link->reason()), link->reason().c_str());
      QVERIFY(owner.slot_->session == nullptr);
      QCOMPARE(coordinator.logins, logins);
      if (portal != nullptr) QVERIFY(!portal->heard.empty() && !has(portal->heard, "secret"));
      portal = nullptr;
      coordinator.drop_everyone();
      coordinator.certificate = own;
      coordinator.listen();
      coordinator.wait_until([&] { return link->state() == State::kConnected; });
    }
  }

  void a_refusal_is_shown_and_retried_slowly() {
    FakeCoordinator coordinator(io_);
    coordinator.refusal = {ErrorCode::kDenied, "this host is banned"};
    coordinator.listen();
    Owner owner(coordinator);
    auto link = this->link(owner, coordinator.url());
    coordinator.wait_until([&] { return link->state() == State::kRefused; });
    QCOMPARE(link->reason(), std::string("this host is banned"));
    QVERIFY(link->retry_in() > Millis{10'000});
    link->leave("").wait(io_.waitScope);
    QCOMPARE(coordinator.leaves, 0);
  }

  void says_what_is_denied_and_brings_receipts() {
    FakeCoordinator coordinator(io_);
    coordinator.knows_everyone = true;
    coordinator.offers = {{"generate", "m", false}};
    coordinator.add_receipt(1);
    coordinator.listen();
    Owner owner(coordinator);
    owner.denied_ = {{"generate", "m", true}};
    const auto link = this->link(owner, coordinator.url());
    coordinator.wait_until(
        [&] { return !coordinator.consents.empty() && owner.receipts_.size() == 1; });
    QVERIFY(coordinator.consents.back() == owner.denied_);
    coordinator.wait_until([&] { return !coordinator.reports.empty(); });
    QVERIFY(!coordinator.reported_first);
    QVERIFY(link->knows_card());
    QCOMPARE(link->card().offers.size(), size_t(1));
    QCOMPARE(link->standing().confirmed, 1.0);
    owner.denied_.clear();
    link->consent_changed();
    for (int i = 0; i < 70; ++i) coordinator.add_receipt(1);  // Several calls' worth.
    coordinator.wait_until(
        [&] { return coordinator.consents.back().empty() && owner.receipts_.size() == 71; });
    QVERIFY(receipt_is_genuine(owner.receipts_.back(), *owner.receipt_key_));
  }

  void receipts_that_cannot_be_stored_wait() {
    FakeCoordinator coordinator(io_);
    coordinator.knows_everyone = true;
    coordinator.add_receipt(1);
    coordinator.listen();
    Owner owner(coordinator);
    owner.full_ = true;
    const auto link = this->link(owner, coordinator.url());
    coordinator.wait_until([&] { return owner.brought_ == 1; });
    const int pings = coordinator.pings;
    coordinator.wait_until([&] { return coordinator.pings >= pings + 3; });
    QCOMPARE(owner.brought_, 1);
  }

  // Goal: what a coordinator cannot serve of the past costs a host neither its connection nor the
  // other half of it.
  void a_day_or_receipts_that_cannot_be_served_wait_data() {
    QTest::addColumn<bool>("days");
    QTest::addColumn<int>("type");  // Of kj::Exception; -1: an answer that cannot be read.
    using Type = kj::Exception::Type;
    QTest::newRow("day, failed") << true << int(Type::FAILED);
    QTest::newRow("day, overloaded or late") << true << int(Type::OVERLOADED);
    QTest::newRow("day, unreadable") << true << -1;
    QTest::newRow("receipts, failed") << false << int(Type::FAILED);
    QTest::newRow("receipts, overloaded or late") << false << int(Type::OVERLOADED);
  }
  void a_day_or_receipts_that_cannot_be_served_wait() {
    QFETCH(bool, days);
    QFETCH(int, type);
    FakeCoordinator coordinator(io_);
    coordinator.knows_everyone = true;
    coordinator.add_receipt(1);
    coordinator.close_day();
    int refusals = 0;
    const auto refuse = [&] {
      ++refusals;
      if (type < 0) {
        coordinator.day.signature.resize(limits::kKeyBytesMax + 1);
      } else {
        kj::throwFatalException(
            kj::Exception(static_cast<kj::Exception::Type>(type), "", 0, kj::str("not now")));
      }
    };
    (days ? coordinator.on_ledger_day : coordinator.on_read_receipts) = refuse;
    coordinator.listen();
    Owner owner(coordinator);
    owner.wants_days_ = true;
    const auto link = this->link(owner, coordinator.url());
    coordinator.wait_until([&] { return refusals == 1; });
    coordinator.add_receipt(1);
    const int pings = coordinator.pings;
    coordinator.wait_until([&] {
      return coordinator.pings >= pings + 3 &&
             (days ? owner.receipts_.size() == 2 : !owner.wants_days_);
    });
    QCOMPARE(refusals, 1);
    QCOMPARE(coordinator.logins, 1);
    QVERIFY(link->state() == State::kConnected);
  }

  // A connection that is lost is no answer.
  void a_loss_while_a_day_is_asked_for_is_a_loss() {
    FakeCoordinator coordinator(io_);
    coordinator.knows_everyone = true;
    coordinator.add_receipt(1);
    coordinator.close_day();
    coordinator.on_ledger_day = [&] {
      coordinator.on_ledger_day = nullptr;
      kj::throwFatalException(KJ_EXCEPTION(DISCONNECTED, "gone"));
    };
    coordinator.listen();
    Owner owner(coordinator);
    owner.wants_days_ = true;
    const auto link = this->link(owner, coordinator.url());
    coordinator.wait_until([&] { return coordinator.logins == 2 && !owner.wants_days_; });
    QCOMPARE(coordinator.days_asked, 2);
  }

  void a_ping_brings_so_many_receipts_and_no_more() {
    FakeCoordinator coordinator(io_);
    coordinator.knows_everyone = true;
    for (int i = 0; i < 300; ++i) coordinator.add_receipt(1);
    coordinator.listen();
    Owner owner(coordinator);
    const auto link = this->link(owner, coordinator.url());
    coordinator.wait_until([&] { return owner.brought_ == 8; });
    coordinator.wait_until([&] { return owner.receipts_.size() == 300; });
    QVERIFY(coordinator.pings >= 2);
  }

  void a_card_that_is_outdated_is_read_again() {
    FakeCoordinator coordinator(io_);
    coordinator.knows_everyone = true;
    coordinator.listen();
    Owner owner(coordinator);
    const auto link = this->link(owner, coordinator.url());
    coordinator.wait_until([&] { return coordinator.reports.size() == 1; });
    coordinator.offers = {{"generate", "new", false}};
    const size_t told = coordinator.consents.size();
    link->card_outdated();
    coordinator.wait_until([&] { return coordinator.consents.size() > told; });
    QCOMPARE(link->card().offers.size(), size_t(1));
  }

  void a_card_is_bounded() {
    capnp::MallocMessageBuilder message;
    auto card = message.initRoot<rpc::CoordinatorCard>();
    auto offers = card.initOffers(100);
    for (uint32_t i = 0; i < offers.size(); ++i) {
      offers[i].initJobClass().setModel("m" + std::to_string(i));
      offers[i].setPurpose(std::string(limits::kCardTextBytesMax, 'x'));
    }
    const CoordinatorCard read = read_card(card.asReader());
    QVERIFY(read.offers.size() > 50 && read.offers.size() < 64);
  }

  void another_receipt_key_is_refused() {
    FakeCoordinator coordinator(io_);
    coordinator.knows_everyone = true;
    coordinator.listen();
    Owner owner(coordinator);
    owner.receipt_key_ = SigningKey::generate().public_key();
    const auto link = this->link(owner, coordinator.url());
    coordinator.wait_until([&] { return link->state() == State::kRefused; });
    QVERIFY(has(link->reason(), "receipt key"));
  }

  void after_a_sleep_it_dials_at_once() {
    FakeCoordinator coordinator(io_);
    coordinator.knows_everyone = true;
    coordinator.listen();
    Owner owner(coordinator);
    const auto link = this->link(owner, coordinator.url(), /*wait=*/Millis{3'600'000});
    coordinator.wait_until([&] { return link->state() == State::kConnected; });
    coordinator.drop_everyone();
    coordinator.wait_until([&] { return link->state() == State::kWaiting; });
    coordinator.listen();
    link->look_now();
    coordinator.wait_until([&] { return link->state() == State::kConnected; });
    QVERIFY(link->connected_since().count > 0);
  }

  void after_a_sleep_a_dead_line_is_found_and_a_good_one_kept() {
    FakeCoordinator coordinator(io_);
    coordinator.knows_everyone = true;
    coordinator.listen();
    Owner owner(coordinator);
    const auto link = this->link(owner, coordinator.url());
    coordinator.wait_until([&] { return link->state() == State::kConnected; });
    const int pings = coordinator.pings;
    link->look_now();
    coordinator.wait_until([&] { return coordinator.pings > pings; });
    QCOMPARE(coordinator.logins, 1);  // It answered.
    coordinator.mute = true;
    link->look_now();
    coordinator.wait_until([&] { return coordinator.logins == 2; });
  }

  void leaving_while_it_waits_ends_at_once() {
    FakeCoordinator coordinator(io_);
    coordinator.listen();
    const rpc::AttachUrl url = coordinator.url();
    coordinator.drop_everyone();
    Owner owner(coordinator);
    auto link = this->link(owner, url);
    coordinator.wait_until([&] { return link->state() == State::kWaiting; });
    link->leave("").wait(io_.waitScope);
  }

  void failures_are_the_networks_or_the_coordinators() {
    const auto refused = [](ErrorCode code) {
      kj::Maybe<kj::Exception> thrown = kj::runCatchingExceptions([&] {
        rpc::throw_error({code, "so"});
      });
      return login_failure_of(KJ_ASSERT_NONNULL(thrown)).refused;
    };
    QVERIFY(refused(ErrorCode::kDenied) && refused(ErrorCode::kUnsupported) &&
            refused(ErrorCode::kInvalid));
    QVERIFY(!refused(ErrorCode::kUnavailable) && !refused(ErrorCode::kTimeout) &&
            !refused(ErrorCode::kNotFound));
  }
};

QTEST_GUILESS_MAIN(CoordinatorLinkTest)
#include "coordinator_link_test.moc"
