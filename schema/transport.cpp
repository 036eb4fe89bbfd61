#include "schema/transport.h"

#include <arpa/inet.h>
#include <capnp/rpc-twoparty.h>
#include <capnp/serialize-async.h>
#include <kj/compat/tls.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "base/log.h"
#include "schema/task.h"

namespace shoal::rpc {
namespace {

constexpr std::string_view kGreeting = "shoal/1\n";
constexpr size_t kCertificateBytesMax = 4096;
constexpr kj::Duration kDialMax = 15 * kj::SECONDS;
constexpr kj::Duration kUnreadMax =
    60 * kj::SECONDS;  // A local peer that reads nothing for so long.

// TLS 1.2 could only use these suites, and none of them works with an Ed25519 certificate: so
// TLS 1.3 it is. kj-tls 0.9 cannot ask for 1.3 in another way.
constexpr const char* kNoTls12Suites = "AES256-GCM-SHA384";

// kj-tls shows nobody the context that it makes. The name of a private member may stand in an
// explicit instantiation, and there alone.
SSL_CTX* openssl_context(kj::TlsContext& tls);
template <void* kj::TlsContext::*kContext>
struct ContextOf {
  friend SSL_CTX* openssl_context(kj::TlsContext& tls) {
    return static_cast<SSL_CTX*>(tls.*kContext);
  }
};
template struct ContextOf<&kj::TlsContext::ctx>;

// A coordinator holds thousands of connections that are idle: none of them keeps OpenSSL's buffers,
// 33 KB, or what only a second handshake of the same peer would need.
void keep_little(kj::TlsContext& tls) {
  SSL_CTX* const context = openssl_context(tls);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
}

// Does not hear who does not listen: while a peer lets what it is answered lie, nothing more is
// read of it, or its answers would pile up here; after a while it is left.
class PatientStream final : public kj::AsyncIoStream {
 public:
  PatientStream(kj::Own<kj::AsyncIoStream> inner, kj::Timer& timer)
      : inner_(kj::mv(inner)), timer_(timer), left_(nullptr) {
    auto pair = kj::newPromiseAndFulfiller<void>();
    leave_ = kj::mv(pair.fulfiller);
    left_ = pair.promise.fork();
  }

  kj::Promise<size_t> tryRead(void* buffer, size_t least, size_t most) override {
    kj::Promise<size_t> left = left_.addBranch().then([]() -> size_t { KJ_UNREACHABLE; });
    if (writing_ == 0) return inner_->tryRead(buffer, least, most).exclusiveJoin(kj::mv(left));
    auto pair = kj::newPromiseAndFulfiller<void>();
    written_ = kj::mv(pair.fulfiller);
    return pair.promise.then([this, buffer, least, most] { return tryRead(buffer, least, most); })
        .exclusiveJoin(kj::mv(left));
  }
  kj::Promise<void> write(const void* buffer, size_t size) override {
    return watched(inner_->write(buffer, size));
  }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    return watched(inner_->write(pieces));
  }
  kj::Promise<void> whenWriteDisconnected() override { return inner_->whenWriteDisconnected(); }
  void shutdownWrite() override { inner_->shutdownWrite(); }

 private:
  kj::Promise<void> watched(kj::Promise<void> write) {
    ++writing_;
    return timer_.timeoutAfter(kUnreadMax, kj::mv(write))
        .catch_([this](kj::Exception&& exception) {
          log_warning("transport", "left_unread", {{"cause", exception.getDescription().cStr()}});
          leave_->reject(KJ_EXCEPTION(DISCONNECTED, "the peer does not read its answers"));
          kj::throwFatalException(kj::mv(exception));
        })
        .attach(kj::defer([this] {
          if (--writing_ == 0 && written_.get() != nullptr) written_->fulfill();
        }));
  }

  kj::Own<kj::AsyncIoStream> inner_;
  kj::Timer& timer_;
  int writing_ = 0;
  kj::Own<kj::PromiseFulfiller<void>> written_;  // Of the read that waits.
  kj::Own<kj::PromiseFulfiller<void>> leave_;
  kj::ForkedPromise<void> left_;
};

// Reads messages under a limit that can rise while the connection lives.
class LimitedMessages final : public capnp::MessageStream {
 public:
  LimitedMessages(kj::AsyncIoStream& stream, kj::Own<ReceiveLimit> limit)
      : inner_(stream), limit_(kj::mv(limit)) {}

  kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> tryReadMessage(
      kj::ArrayPtr<kj::AutoCloseFd> fds, capnp::ReaderOptions options,
      kj::ArrayPtr<capnp::word> scratch) override {
    options.traversalLimitInWords = limit_->bytes / sizeof(capnp::word);
    options.nestingLimit = limits::kNestingMax;
    return inner_.tryReadMessage(fds, options, scratch)
        .then([this](kj::Maybe<capnp::MessageReaderAndFds>&& message) {
          // A call whose answer the peer never lets go of leaves it behind: of a stranger only so
          // many.
          if (limit_->bytes <= limits::kLoginMessageBytesMax &&
              ++before_login_ > limits::kLoginMessagesMax) {
            kj::throwFatalException(
                KJ_EXCEPTION(DISCONNECTED, "the peer sent too many messages before its login"));
          }
          return kj::mv(message);
        });
  }
  kj::Promise<void> writeMessage(
      kj::ArrayPtr<const int> fds,
      kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) override {
    return inner_.writeMessage(fds, segments);
  }
  kj::Promise<void> writeMessages(
      kj::ArrayPtr<kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>> messages) override {
    return inner_.writeMessages(messages);
  }
  kj::Maybe<int> getSendBufferSize() override { return inner_.getSendBufferSize(); }
  kj::Promise<void> end() override { return inner_.end(); }

 private:
  capnp::AsyncIoMessageStream inner_;
  kj::Own<ReceiveLimit> limit_;
  uint32_t before_login_ = 0;  // Messages.
};

std::string address_of_peer(kj::AsyncIoStream& stream) {
  struct sockaddr_storage address {};
  kj::uint length = sizeof(address);
  stream.getpeername(reinterpret_cast<struct sockaddr*>(&address), &length);
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const struct sockaddr_in*>(&address);
    inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
  } else if (address.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const struct sockaddr_in6*>(&address);
    inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
  } else {
    return "local";
  }
  return text;
}

// Small replies must not wait for an acknowledgement of the one before.
void send_at_once(kj::AsyncIoStream& stream) {
  int on = 1;
  stream.setsockopt(IPPROTO_TCP, /*TCP_NODELAY=*/1, &on, sizeof(on));
}

std::string network_address(const std::string& host, uint16_t port) {
  const bool ipv6 = host.find(':') != std::string::npos;
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Task<kj::Own<kj::AsyncIoStream>> greet_client(kj::Own<kj::AsyncIoStream> stream,
                                              kj::TlsContext& tls,
                                              const std::vector<std::byte>& certificate) {
  char greeting[kGreeting.size()];
  co_await stream->read(greeting, sizeof(greeting));
  if (std::string_view(greeting, sizeof(greeting)) != kGreeting) {
    throw_error({ErrorCode::kCorrupt, "the peer does not speak shoal/1"});
  }
  kj::Vector<kj::byte> reply;
  reply.add(kj::byte(certificate.size() & 0xFF));
  reply.add(kj::byte(certificate.size() >> 8));
  reply.addAll(kj_bytes(certificate));
  co_await stream->write(reply.begin(), reply.size());
  co_return co_await tls.wrapServer(kj::mv(stream));
}

Task<kj::Own<kj::AsyncIoStream>> greet_server(kj::Own<kj::AsyncIoStream> stream, std::string pin) {
  co_await stream->write(kGreeting.data(), kGreeting.size());
  kj::byte size_bytes[2];
  co_await stream->read(size_bytes, sizeof(size_bytes));
  const size_t size = size_t(size_bytes[0]) | size_t(size_bytes[1]) << 8;
  if (size == 0 || size > kCertificateBytesMax) {
    throw_error({ErrorCode::kCorrupt, "the other side is no Shoal coordinator"});
  }
  auto der = kj::heapArray<kj::byte>(size);
  co_await stream->read(der.begin(), size);
  if (pin_of(bytes_of(der)) != pin) {
    throw_error(
        {ErrorCode::kDenied,
         "the coordinator's certificate does not match the pin of the attach URL (wrong pin): "
         "the URL is for another coordinator, or somebody sits in between"});
  }
  const kj::TlsCertificate trusted(der.asPtr());
  kj::TlsContext::Options options;
  options.useSystemTrustStore = false;
  options.trustedCertificates = kj::arrayPtr(&trusted, 1);
  options.cipherList = kNoTls12Suites;
  kj::TlsContext tls(kj::mv(options));
  keep_little(tls);
  co_return co_await tls.wrapClient(kj::mv(stream), "shoal");
}

// A Unix socket's mode keeps others out, and so does its folder's; this does whatever became of
// those. The superuser may do everything anyway.
bool is_of_this_user(kj::AsyncIoStream& stream) {
  ucred peer{};
  kj::uint size = sizeof(peer);
  stream.getsockopt(SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return size == sizeof(peer) && (peer.uid == geteuid() || peer.uid == 0);
}

// A listener of either kind; `tls` is null for Unix sockets.
class Server final : public Listener, private kj::TaskSet::ErrorHandler {
 public:
  Server(kj::Own<kj::ConnectionReceiver> receiver, kj::Timer& timer,
         BootstrapFactory make_bootstrap, ListenLimits limits,
         kj::Maybe<kj::Own<kj::TlsContext>> tls, std::vector<std::byte> der)
      : receiver_(kj::mv(receiver)),
        timer_(timer),
        make_bootstrap_(kj::mv(make_bootstrap)),
        limits_(limits),
        tls_(kj::mv(tls)),
        der_(std::move(der)),
        port_(uint16_t(receiver_->getPort())),
        tasks_(*this) {
    tasks_.add(accept_all());
  }

  uint16_t port() const override { return port_; }
  size_t connections() const override { return connections_; }

 private:
  // Counts a connection for as long as it lives.
  class Seat {
   public:
    Seat(Server& server, std::string address) : server_(server), address_(std::move(address)) {
      ++server_.connections_;
      ++server_.per_address_[address_];
    }
    ~Seat() {
      --server_.connections_;
      if (--server_.per_address_[address_] == 0) server_.per_address_.erase(address_);
    }
    KJ_DISALLOW_COPY(Seat);

   private:
    Server& server_;
    std::string address_;
  };

  Task<void> accept_all() {
    for (;;) {
      kj::Own<kj::AsyncIoStream> stream;
      bool out_of_files = false;
      try {
        stream = co_await receiver_->accept();
      } catch (const kj::Exception& exception) {
        // Out of file descriptors, usually: the door stays open for when some are free again.
        log_warning("transport", "accept_failed", {{"cause", exception.getDescription().cStr()}});
        out_of_files = true;
      }
      if (out_of_files) {
        co_await timer_.afterDelay(100 * kj::MILLISECONDS);
        continue;
      }
      if (tls_ == nullptr && !is_of_this_user(*stream)) {
        log_warning("transport", "refused_other_user");
        continue;
      }
      std::string address = address_of_peer(*stream);
      const auto same = per_address_.find(address);
      if (connections_ >= limits_.connections_max ||
          (same != per_address_.end() && same->second >= limits_.connections_per_address_max)) {
        log_warning("transport", "refused_too_many", {{"peer", address}});
        continue;
      }
      auto seat = kj::heap<Seat>(*this, address);
      kj::Promise<void> served = serve(kj::mv(stream), std::move(address));
      tasks_.add(served.attach(kj::mv(seat)));
    }
  }

  Task<void> serve(kj::Own<kj::AsyncIoStream> stream, std::string address) {
    const bool over_tls = tls_ != nullptr;
    KJ_IF_MAYBE (tls, tls_) {
      send_at_once(*stream);
      kj::Promise<kj::Own<kj::AsyncIoStream>> greeted = greet_client(kj::mv(stream), **tls, der_);
      stream = co_await timer_.timeoutAfter(limits_.handshake, kj::mv(greeted));
    }
    if (!over_tls) stream = kj::heap<PatientStream>(kj::mv(stream), timer_);
    auto limit = kj::refcounted<ReceiveLimit>(over_tls ? limits::kLoginMessageBytesMax
                                                       : limits::kMessageBytesMax);
    Connection connection(kj::mv(stream), true,
                          make_bootstrap_(Peer{std::move(address), kj::addRef(*limit)}),
                          kj::addRef(*limit));
    kj::Promise<void> over = connection.closed();
    if (over_tls) over = over.exclusiveJoin(login_overdue(*limit));
    co_await kj::mv(over);
  }

  // A stranger may hold a seat, and what its calls left behind, for this long.
  kj::Promise<void> login_overdue(ReceiveLimit& limit) {
    return timer_.afterDelay(limits_.login)
        .then([limit = kj::addRef(limit)]() -> kj::Promise<void> {
          if (limit->bytes > limits::kLoginMessageBytesMax) return kj::NEVER_DONE;
          return KJ_EXCEPTION(DISCONNECTED, "the peer has not logged in in time");
        });
  }

  // One connection's failure is that peer's affair.
  void taskFailed(kj::Exception&& exception) override {
    log_debug("transport", "connection_failed", {{"cause", exception.getDescription().cStr()}});
  }

  kj::Own<kj::ConnectionReceiver> receiver_;
  kj::Timer& timer_;
  BootstrapFactory make_bootstrap_;
  ListenLimits limits_;
  kj::Maybe<kj::Own<kj::TlsContext>> tls_;
  std::vector<std::byte> der_;
  uint16_t port_;
  size_t connections_ = 0;
  std::map<std::string, size_t> per_address_;
  kj::TaskSet tasks_;  // Last, so that connections end before what they use.
};

bool contains(kj::StringPtr text, const char* part) { return strstr(text.cStr(), part) != nullptr; }

// kj's words for a failed dial in a volunteer's words.
Error dial_error(const kj::Exception& exception, const std::string& where) {
  Error known = error_of(exception);
  const kj::StringPtr text = exception.getDescription();
  if (contains(text, "DNS") || contains(text, "no address") || contains(text, "getaddrinfo")) {
    return {ErrorCode::kNotFound, "the name of " + where + " cannot be resolved"};
  }
  if (contains(text, "onnection refused")) {
    return {ErrorCode::kUnavailable, "nothing listens at " + where + " (connection refused)"};
  }
  if (contains(text, "unreachable") || contains(text, "No route")) {
    return {ErrorCode::kUnavailable, "the network does not reach " + where};
  }
  if (contains(text, "timed out")) {
    return {ErrorCode::kTimeout, where + " did not answer within 15 seconds"};
  }
  if (known.code == ErrorCode::kUnavailable &&
      exception.getType() == kj::Exception::Type::DISCONNECTED) {
    return {ErrorCode::kUnavailable,
            where + " closed the connection; it may be no Shoal coordinator"};
  }
  return with_context(std::move(known), where);
}

}  // namespace

struct Connection::Parts {
  Parts(kj::Own<kj::AsyncIoStream> stream_in, bool is_server,
        kj::Maybe<capnp::Capability::Client> offered, kj::Own<ReceiveLimit> limit)
      : stream(kj::mv(stream_in)),
        messages(*stream, kj::mv(limit)),
        network(messages, is_server ? capnp::rpc::twoparty::Side::SERVER
                                    : capnp::rpc::twoparty::Side::CLIENT),
        rpc(capnp::makeRpcServer(network, offered == nullptr
                                              ? capnp::Capability::Client(nullptr)
                                              : kj::mv(KJ_ASSERT_NONNULL(offered)))) {
    rpc.setFlowLimit(limits::kCallsInFlightBytesMax / sizeof(capnp::word));
  }

  kj::Own<kj::AsyncIoStream> stream;
  LimitedMessages messages;
  capnp::TwoPartyVatNetwork network;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> rpc;
};

Connection::Connection(kj::Own<kj::AsyncIoStream> stream, bool is_server,
                       kj::Maybe<capnp::Capability::Client> offered, kj::Own<ReceiveLimit> limit)
    : parts_(kj::heap<Parts>(kj::mv(stream), is_server, kj::mv(offered), kj::mv(limit))) {}

Connection::~Connection() noexcept(false) = default;

capnp::Capability::Client Connection::bootstrap() {
  capnp::word scratch[8];
  memset(scratch, 0, sizeof(scratch));
  capnp::MallocMessageBuilder message(scratch);
  auto vat = message.initRoot<capnp::rpc::twoparty::VatId>();
  // The peer sits on the side that this one does not.
  vat.setSide(parts_->network.getSide() == capnp::rpc::twoparty::Side::SERVER
                  ? capnp::rpc::twoparty::Side::CLIENT
                  : capnp::rpc::twoparty::Side::SERVER);
  return parts_->rpc.bootstrap(vat);
}

kj::Promise<void> Connection::closed() { return parts_->network.onDisconnect(); }

namespace {

Task<kj::Own<Listener>> listen_tls_task(kj::Network& network, kj::Timer& timer, std::string address,
                                        uint16_t port, Certificate certificate,
                                        BootstrapFactory make_bootstrap, ListenLimits limits) {
  const std::string where = network_address(address, port);
  kj::Own<kj::ConnectionReceiver> receiver;
  try {
    auto parsed = co_await network.parseAddress(where.c_str());
    receiver = parsed->listen();
  } catch (const kj::Exception& exception) {
    const kj::StringPtr text = exception.getDescription();
    if (contains(text, "already in use")) {
      throw_error({ErrorCode::kExists, "port in use: another program listens at " + where});
    }
    if (contains(text, "Permission denied")) {
      throw_error({ErrorCode::kDenied, "no permission to listen at " + where});
    }
    throw_error({ErrorCode::kIo, "cannot listen at " + where + ": " + text.cStr()});
  }
  const kj::TlsPrivateKey key(kj::StringPtr(certificate.private_key_pem.c_str()));
  const kj::TlsCertificate chain(kj_bytes(certificate.der));
  const kj::TlsKeypair pair{key, chain};
  kj::TlsContext::Options options;
  options.useSystemTrustStore = false;
  options.defaultKeypair = pair;
  options.cipherList = kNoTls12Suites;
  auto tls = kj::heap<kj::TlsContext>(kj::mv(options));
  keep_little(*tls);
  co_return kj::Own<Listener>(kj::heap<Server>(kj::mv(receiver), timer, kj::mv(make_bootstrap),
                                               limits, kj::mv(tls), std::move(certificate.der)));
}

Task<kj::Own<kj::AsyncIoStream>> connect_and_greet(kj::Network& network, std::string where,
                                                   std::string pin) {
  auto parsed = co_await network.parseAddress(where.c_str());
  auto stream = co_await parsed->connect();
  send_at_once(*stream);
  co_return co_await greet_server(kj::mv(stream), std::move(pin));
}

Task<kj::Own<Connection>> dial_tls_task(kj::Network& network, kj::Timer& timer, AttachUrl url,
                                        kj::Maybe<capnp::Capability::Client> offered) {
  const std::string where = network_address(url.host, url.port);
  kj::Own<kj::AsyncIoStream> stream;
  try {
    kj::Promise<kj::Own<kj::AsyncIoStream>> greeted = connect_and_greet(network, where, url.pin);
    stream = co_await timer.timeoutAfter(kDialMax, kj::mv(greeted));
  } catch (const kj::Exception& exception) {
    throw_error(dial_error(exception, where));
  }
  co_return kj::heap<Connection>(kj::mv(stream), false, kj::mv(offered));
}

// Whether a server answers at a Unix socket. Asked without the loop: it is on this machine.
bool answers(const std::string& path) {
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const kj::AutoCloseFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return connect(fd, reinterpret_cast<const struct sockaddr*>(&address), sizeof(address)) == 0;
}

void require_socket_path(const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    throw_error(
        {ErrorCode::kInvalid, "the socket's path is longer than Unix allows (107 bytes): " + path});
  }
}

Task<kj::Own<Listener>> listen_unix_task(kj::Network& network, kj::Timer& timer, std::string path,
                                         BootstrapFactory make_bootstrap, ListenLimits limits) {
  require_socket_path(path);
  auto parsed = co_await network.parseAddress(("unix:" + path).c_str());
  struct stat status {};
  if (lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode)) {
      throw_error({ErrorCode::kExists, "there is a file where the socket should be: " + path});
    }
    if (answers(path)) throw_error({ErrorCode::kExists, "another program serves " + path});
    unlink(path.c_str());
  }
  kj::Own<kj::ConnectionReceiver> receiver;
  // bind() makes the file with the umask's mode; it must never be open to others, not even shortly.
  const mode_t mask = umask(0177);
  try {
    receiver = parsed->listen();
  } catch (const kj::Exception& exception) {
    umask(mask);
    throw_error(
        {ErrorCode::kIo, "cannot listen at " + path + ": " + exception.getDescription().cStr()});
  }
  umask(mask);
  co_return kj::Own<Listener>(kj::heap<Server>(kj::mv(receiver), timer, kj::mv(make_bootstrap),
                                               limits, nullptr, std::vector<std::byte>()));
}

Task<kj::Own<Connection>> dial_unix_task(kj::Network& network, kj::Timer& timer, std::string path) {
  require_socket_path(path);
  kj::Own<kj::AsyncIoStream> stream;
  try {
    auto parsed = co_await network.parseAddress(("unix:" + path).c_str());
    stream = co_await timer.timeoutAfter(kDialMax, parsed->connect());
  } catch (const kj::Exception& exception) {
    const kj::StringPtr text = exception.getDescription();
    if (contains(text, "Permission denied")) {
      throw_error({ErrorCode::kDenied, "no permission to open " + path});
    }
    throw_error({ErrorCode::kUnavailable, "nothing answers at " + path});
  }
  co_return kj::heap<Connection>(kj::mv(stream), false, nullptr);
}

constexpr std::string_view kErrorMark =
    "shoal-error:";  // Then the code's name, ":" and the message.

kj::Exception::Type kind_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout:
    case ErrorCode::kNoSpace: return kj::Exception::Type::OVERLOADED;
    case ErrorCode::kUnsupported: return kj::Exception::Type::UNIMPLEMENTED;
    default: return kj::Exception::Type::FAILED;
  }
}

}  // namespace

kj::Promise<kj::Own<Listener>> listen_tls(kj::Network& network, kj::Timer& timer,
                                          std::string address, uint16_t port,
                                          const Certificate& certificate,
                                          BootstrapFactory make_bootstrap, ListenLimits limits) {
  return listen_tls_task(network, timer, std::move(address), port, certificate,
                         kj::mv(make_bootstrap), limits);
}

kj::Promise<kj::Own<Connection>> dial_tls(kj::Network& network, kj::Timer& timer,
                                          const AttachUrl& url,
                                          kj::Maybe<capnp::Capability::Client> offered) {
  return dial_tls_task(network, timer, url, kj::mv(offered));
}

kj::Promise<kj::Own<Listener>> listen_unix(kj::Network& network, kj::Timer& timer, std::string path,
                                           BootstrapFactory make_bootstrap, ListenLimits limits) {
  return listen_unix_task(network, timer, std::move(path), kj::mv(make_bootstrap), limits);
}

kj::Promise<kj::Own<Connection>> dial_unix(kj::Network& network, kj::Timer& timer,
                                           std::string path) {
  return dial_unix_task(network, timer, std::move(path));
}

Error error_of(const kj::Exception& exception) {
  const std::string_view text(exception.getDescription().cStr(), exception.getDescription().size());
  const size_t mark = text.find(kErrorMark);
  if (mark != std::string_view::npos) {
    const std::string_view rest = text.substr(mark + kErrorMark.size());
    const size_t colon = rest.find(':');
    if (colon != std::string_view::npos) {
      for (int code = 0; code <= int(ErrorCode::kIo); ++code) {
        if (error_code_name(ErrorCode(code)) == rest.substr(0, colon)) {
          return {ErrorCode(code), std::string(rest.substr(colon + 1))};
        }
      }
    }
  }
  switch (exception.getType()) {
    case kj::Exception::Type::DISCONNECTED:
    case kj::Exception::Type::OVERLOADED: return {ErrorCode::kUnavailable, std::string(text)};
    case kj::Exception::Type::UNIMPLEMENTED: return {ErrorCode::kUnsupported, std::string(text)};
    case kj::Exception::Type::FAILED: break;
  }
  return {ErrorCode::kIo, std::string(text)};
}

void throw_error(const Error& error) {
  const std::string text =
      std::string(kErrorMark) + std::string(error_code_name(error.code)) + ":" + error.message;
  kj::throwFatalException(kj::Exception(kind_of(error.code), __FILE__, __LINE__,
                                        kj::heapString(text.data(), text.size())));
}

void require_at_most(size_t size, size_t limit, const char* field) {
  if (size > limit) {
    throw_error({ErrorCode::kInvalid, std::string(field) +
                                          " is too large: " + std::to_string(size) + ", at most " +
                                          std::to_string(limit)});
  }
}

}  // namespace shoal::rpc
