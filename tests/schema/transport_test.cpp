// The transport against real sockets and real TLS on loopback.

#include <capnp/serialize-async.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <QTest>

#include "base/files.h"
#include "schema/coordinator.capnp.h"
#include "schema/pairing_url.h"
#include "schema/task.h"
#include "schema/transport.h"

using namespace shoal;
using namespace shoal::rpc;

namespace {

// Answers hello with its name; nothing else.
class Greeter final : public rpc::Coordinator::Server {
 public:
  explicit Greeter(Peer peer) : peer_(kj::mv(peer)) {}
  kj::Promise<void> hello(HelloContext context) override {
    require_at_most(context.getParams().getProtocolVersion(), 1000, "protocolVersion");
    context.getResults().setName("greeter for " + peer_.address);
    return kj::READY_NOW;
  }
  kj::Promise<void> login(LoginContext) override {
    throw_error({ErrorCode::kDenied, "this host is banned"});
  }

 private:
  Peer peer_;
};

// Whoever asks it gets more than he sent.
class Talker final : public rpc::Coordinator::Server {
 public:
  explicit Talker(int& answered) : answered_(answered) {}
  kj::Promise<void> hello(HelloContext context) override {
    ++answered_;
    context.getResults().setName(std::string(20'000, 'x'));
    return kj::READY_NOW;
  }

 private:
  int& answered_;
};

// A peer's end that reads nothing until it is told to.
class DeafStream final : public kj::AsyncIoStream {
 public:
  explicit DeafStream(kj::Own<kj::AsyncIoStream> inner) : inner_(kj::mv(inner)), hears_(nullptr) {
    auto pair = kj::newPromiseAndFulfiller<void>();
    hear_ = kj::mv(pair.fulfiller);
    hears_ = pair.promise.fork();
  }
  void hear() { hear_->fulfill(); }
  kj::Promise<size_t> tryRead(void* buffer, size_t least, size_t most) override {
    return hears_.addBranch().then(
        [this, buffer, least, most] { return inner_->tryRead(buffer, least, most); });
  }
  kj::Promise<void> write(const void* buffer, size_t size) override {
    return inner_->write(buffer, size);
  }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    return inner_->write(pieces);
  }
  kj::Promise<void> whenWriteDisconnected() override { return inner_->whenWriteDisconnected(); }
  void shutdownWrite() override { inner_->shutdownWrite(); }

 private:
  kj::Own<kj::AsyncIoStream> inner_;
  kj::Own<kj::PromiseFulfiller<void>> hear_;
  kj::ForkedPromise<void> hears_;
};

capnp::Capability::Client make_greeter(Peer peer) { return kj::heap<Greeter>(kj::mv(peer)); }

}  // namespace

class TransportTest : public QObject {
  Q_OBJECT

 public:
  ~TransportTest() noexcept override {}  // kj's own may throw, Qt's may not.

 private:
  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  Certificate certificate_ = make_certificate().value();

  kj::Network& network() { return io_.provider->getNetwork(); }
  kj::Timer& timer() { return io_.provider->getTimer(); }

  kj::Own<Listener> listen(ListenLimits limits = {}) {
    return listen_tls(network(), timer(), "127.0.0.1", 0, certificate_, &make_greeter, limits)
        .wait(io_.waitScope);
  }
  AttachUrl url_of(Listener& listener) {
    return {"127.0.0.1", listener.port(), pin_of(certificate_.der), ""};
  }
  kj::String hello(Connection& connection, uint32_t version = 1) {
    auto request = connection.bootstrap().castAs<rpc::Coordinator>().helloRequest();
    request.setProtocolVersion(version);
    return kj::str(request.send().wait(io_.waitScope).getName());
  }
  // What a promise fails with.
  template <class T>
  Error error_from(kj::Promise<T> promise) {
    Error error{ErrorCode::kInvalid, "it did not fail"};
    promise.then([](T&&) {}, [&](kj::Exception&& e) { error = error_of(e); }).wait(io_.waitScope);
    return error;
  }

 private Q_SLOTS:
  void calls_go_over_tls() {
    auto listener = listen();
    auto connection = dial_tls(network(), timer(), url_of(*listener)).wait(io_.waitScope);
    QCOMPARE(hello(*connection).cStr(), "greeter for 127.0.0.1");
    QCOMPARE(listener->connections(), size_t(1));
    connection = nullptr;
    for (int i = 0; i < 1000 && listener->connections() > 0; ++i) {
      timer().afterDelay(1 * kj::MILLISECONDS).wait(io_.waitScope);
    }
    QCOMPARE(listener->connections(), size_t(0));
  }

  void a_wrong_pin_is_refused_before_tls() {
    auto listener = listen();
    AttachUrl url = url_of(*listener);
    url.pin = pin_of(make_certificate().value().der);
    const Error error = error_from(dial_tls(network(), timer(), url));
    QCOMPARE(error.code, ErrorCode::kDenied);
    QVERIFY2(error.message.find("pin") != std::string::npos, error.message.c_str());
  }

  void nothing_listening_and_unknown_names_are_told_apart() {
    uint16_t free_port = 0;
    {
      auto listener = listen();
      free_port = listener->port();
    }
    AttachUrl url{"127.0.0.1", free_port, pin_of(certificate_.der), ""};
    Error error = error_from(dial_tls(network(), timer(), url));
    QCOMPARE(error.code, ErrorCode::kUnavailable);
    QVERIFY2(error.message.find("refused") != std::string::npos, error.message.c_str());

    url.host = "no-such-host.invalid";
    error = error_from(dial_tls(network(), timer(), url));
    QCOMPARE(error.code, ErrorCode::kNotFound);
  }

  void a_port_in_use_is_named() {
    auto listener = listen();
    const Error error = error_from(
        listen_tls(network(), timer(), "127.0.0.1", listener->port(), certificate_, &make_greeter));
    QCOMPARE(error.code, ErrorCode::kExists);
    QVERIFY2(error.message.find(std::to_string(listener->port())) != std::string::npos,
             error.message.c_str());
  }

  void a_peers_error_keeps_its_code_and_words() {
    auto listener = listen();
    auto connection = dial_tls(network(), timer(), url_of(*listener)).wait(io_.waitScope);
    auto request = connection->bootstrap().castAs<rpc::Coordinator>().loginRequest();
    const Error error = error_from<capnp::Response<rpc::Coordinator::LoginResults>>(request.send());
    QCOMPARE(error.code, ErrorCode::kDenied);
    QCOMPARE(error.message, std::string("this host is banned"));
    // The connection outlives a refused call.
    QCOMPARE(hello(*connection).cStr(), "greeter for 127.0.0.1");
  }

  // Goal: a peer that has not logged in cannot make the server hold a large message.
  void a_large_message_before_login_ends_the_connection() {
    auto listener = listen();
    auto connection = dial_tls(network(), timer(), url_of(*listener)).wait(io_.waitScope);
    auto request = connection->bootstrap().castAs<rpc::Coordinator>().loginRequest();
    request.initLogin().initPublicKey(limits::kLoginMessageBytesMax + 1024);
    const Error error = error_from<capnp::Response<rpc::Coordinator::LoginResults>>(request.send());
    QVERIFY(error.code != ErrorCode::kDenied);  // Never reached the method.
    auto again = dial_tls(network(), timer(), url_of(*listener)).wait(io_.waitScope);
    QCOMPARE(hello(*again).cStr(), "greeter for 127.0.0.1");
  }

  // Goal: strangers that speak something else, or nothing, cost a bounded time and no crash.
  void garbage_and_silence_are_dropped() {
    ListenLimits limits;
    limits.handshake = 50 * kj::MILLISECONDS;
    auto listener = listen(limits);
    auto address = network().parseAddress("127.0.0.1", listener->port()).wait(io_.waitScope);
    for (const char* greeting :
         {"", "GET / HTTP/1.1\r\n\r\n", "shoal/1\n", "shoal/1\n\x16\x03\x01 junk"}) {
      auto stream = address->connect().wait(io_.waitScope);
      if (*greeting) stream->write(greeting, strlen(greeting)).wait(io_.waitScope);
      kj::byte sink[8192];
      // Reads until the server closes: it must, whatever was said.
      for (;;) {
        size_t got = 0;
        stream->tryRead(sink, 1, sizeof(sink))
            .then([&](size_t n) { got = n; }, [](kj::Exception&&) {})
            .wait(io_.waitScope);
        if (got == 0) break;
      }
    }
    auto connection = dial_tls(network(), timer(), url_of(*listener)).wait(io_.waitScope);
    QCOMPARE(hello(*connection).cStr(), "greeter for 127.0.0.1");
  }

  // Goal: a stranger that greets and then says nothing is dropped; one that has logged in stays.
  void who_does_not_log_in_is_dropped() {
    kj::Own<ReceiveLimit> of_last;
    ListenLimits limits;
    limits.login = 50 * kj::MILLISECONDS;
    const auto remember = [&of_last](Peer peer) {
      of_last = kj::addRef(*peer.limit);
      return make_greeter(kj::mv(peer));
    };
    auto listener = listen_tls(network(), timer(), "127.0.0.1", 0, certificate_, remember, limits)
                        .wait(io_.waitScope);
    auto known = dial_tls(network(), timer(), url_of(*listener)).wait(io_.waitScope);
    hello(*known);
    of_last->bytes = limits::kMessageBytesMax;
    auto stranger = dial_tls(network(), timer(), url_of(*listener)).wait(io_.waitScope);
    hello(*stranger);
    timer().timeoutAfter(20 * kj::SECONDS, stranger->closed()).wait(io_.waitScope);
    QCOMPARE(hello(*known).cStr(), "greeter for 127.0.0.1");
  }

  void connections_are_limited() {
    ListenLimits limits;
    limits.connections_per_address_max = 1;
    auto listener = listen(limits);
    auto first = dial_tls(network(), timer(), url_of(*listener)).wait(io_.waitScope);
    QCOMPARE(hello(*first).cStr(), "greeter for 127.0.0.1");
    const Error error = error_from(dial_tls(network(), timer(), url_of(*listener)));
    QCOMPARE(error.code, ErrorCode::kUnavailable);
  }

  void unix_sockets_are_private_and_replace_only_stale_ones() {
    TempDir folder;
    const std::string path = (folder.path() / "admin.sock").string();
    {
      auto listener = listen_unix(network(), timer(), path, &make_greeter).wait(io_.waitScope);
      struct stat status {};
      QCOMPARE(stat(path.c_str(), &status), 0);
      QCOMPARE(int(status.st_mode & 0777), 0600);
      auto connection = dial_unix(network(), timer(), path).wait(io_.waitScope);
      QCOMPARE(hello(*connection).cStr(), "greeter for local");
      const Error error = error_from(listen_unix(network(), timer(), path, &make_greeter));
      QCOMPARE(error.code, ErrorCode::kExists);
    }
    // The file is still there, its server is not.
    QCOMPARE(error_from(dial_unix(network(), timer(), path)).code, ErrorCode::kUnavailable);
    auto listener = listen_unix(network(), timer(), path, &make_greeter).wait(io_.waitScope);
    auto connection = dial_unix(network(), timer(), path).wait(io_.waitScope);
    QCOMPARE(hello(*connection).cStr(), "greeter for local");
  }

  void a_local_peer_that_reads_nothing_is_not_heard() {
    TempDir folder;
    const std::string path = (folder.path() / "agent.sock").string();
    int answered = 0;
    auto listener =
        listen_unix(network(), timer(), path, [&answered](Peer) -> capnp::Capability::Client {
          return kj::heap<Talker>(answered);
        }).wait(io_.waitScope);
    auto stream = network()
                      .parseAddress(("unix:" + path).c_str())
                      .wait(io_.waitScope)
                      ->connect()
                      .wait(io_.waitScope);
    auto deaf = kj::heap<DeafStream>(kj::mv(stream));
    DeafStream& ears = *deaf;
    Connection connection(kj::mv(deaf), /*is_server=*/false, nullptr);
    auto peer = connection.bootstrap().castAs<rpc::Coordinator>();
    constexpr int kCalls = 2'000;
    auto calls = kj::heapArrayBuilder<kj::Promise<void>>(kCalls);
    for (int i = 0; i < kCalls; ++i) calls.add(peer.helloRequest().send().ignoreResult());
    kj::Promise<void> all = kj::joinPromises(calls.finish());
    for (int i = 0; i < 10'000; ++i) io_.waitScope.poll();
    // As many as a socket holds, and not what 40 MB of answers take.
    QVERIFY2(answered > 0 && answered < 200, QByteArray::number(answered));
    // Nothing is lost: it only waits.
    ears.hear();
    all.wait(io_.waitScope);
    QCOMPARE(answered, kCalls);
  }

  void attach_urls_round_trip() {
    const std::string pin(43, 'a');
    for (const AttachUrl& url :
         {AttachUrl{"example.org", 7410, pin, ""}, AttachUrl{"10.0.0.1", 1, pin, "inv_-9"},
          AttachUrl{"fe80::1", 65535, pin, "x"}}) {
      auto parsed = parse_attach_url(format_attach_url(url));
      QVERIFY(parsed.ok());
      QCOMPARE(parsed.value().host, url.host);
      QCOMPARE(parsed.value().port, url.port);
      QCOMPARE(parsed.value().pin, url.pin);
      QCOMPARE(parsed.value().invite, url.invite);
    }
  }

  void pairing_urls_round_trip_and_are_no_attach_urls() {
    const std::string pin(43, 'a');
    const std::string text = "shoal+pair://[::1]:7411/?pin=" + pin + "&token=0123abcd";
    const auto parsed = parse_pairing_url(text);
    QVERIFY(parsed.ok());
    QCOMPARE(parsed.value().host, std::string("::1"));
    QCOMPARE(parsed.value().invite, std::string("0123abcd"));
    QCOMPARE(format_pairing_url(parsed.value()), text);
    const std::string known = "shoal+pair://host:1/?pin=" + pin;
    QCOMPARE(parse_pairing_url(known).value().invite, std::string());
    for (const std::string& bad :
         {"shoal://host:1/?pin=" + pin, "shoal+pair://host:1/?pin=" + pin + "&invite=abc",
          std::string("shoal+pair://host:1/"), "shoal+pair://host:1/?pin=" + pin + "&token=a b"}) {
      const auto refused = parse_pairing_url(bad);
      QVERIFY2(!refused.ok(), bad.c_str());
      QVERIFY2(refused.error().message.starts_with("pairing URL: "),
               refused.error().message.c_str());
    }
    QVERIFY(!parse_attach_url(text).ok());
  }

  void bad_attach_urls_name_the_part_data() {
    QTest::addColumn<QString>("url");
    QTest::addColumn<QString>("word");
    const QString pin = QString("?pin=") + QString(43, 'a');
    QTest::newRow("scheme") << "http://h:1/" + pin << "shoal://";
    QTest::newRow("no query") << QString("shoal://h:1/") << "pin";
    QTest::newRow("no port") << "shoal://h/" + pin << "port";
    QTest::newRow("port 0") << "shoal://h:0/" + pin << "port";
    QTest::newRow("port 65536") << "shoal://h:65536/" + pin << "port";
    QTest::newRow("port text") << "shoal://h:12x/" + pin << "port";
    QTest::newRow("no host") << "shoal://:1/" + pin << "host";
    QTest::newRow("bare ipv6") << "shoal://fe80::1:7410/" + pin << "[ ]";
    QTest::newRow("short pin") << QString("shoal://h:1/?pin=abc") << "pin";
    QTest::newRow("odd pin") << "shoal://h:1/?pin=" + QString(43, '!') << "pin";
    QTest::newRow("unknown") << "shoal://h:1/" + pin + "&x=1"
                             << "\"x\"";
    QTest::newRow("invite") << "shoal://h:1/" + pin + "&invite=a%20"
                            << "invite";
    QTest::newRow("space") << "shoal://h:1/" + pin + " "
                           << "space";
    QTest::newRow("long") << "shoal://" + QString(2000, 'h') + ":1/" + pin << "longer";
  }
  void bad_attach_urls_name_the_part() {
    QFETCH(QString, url);
    QFETCH(QString, word);
    auto parsed = parse_attach_url(url.toStdString());
    QVERIFY(!parsed.ok());
    QCOMPARE(parsed.error().code, ErrorCode::kInvalid);
    QVERIFY2(QString::fromStdString(parsed.error().message).contains(word),
             parsed.error().message.c_str());
  }
};

QTEST_GUILESS_MAIN(TransportTest)
#include "transport_test.moc"
