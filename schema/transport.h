#pragma once
// How Cap'n Proto peers meet: TLS 1.3 with a pinned certificate between hosts and a coordinator,
// Unix sockets between programs of one machine, a socket pair to a worker. Holds the limits of a
// connection; knows no interface.
//
// Every object belongs to the thread of the KJ loop that made it.

#include <capnp/capability.h>
#include <kj/async-io.h>
#include <kj/function.h>
#include <kj/refcount.h>
#include <kj/timer.h>

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "schema/limits.h"

namespace shoal::rpc {

// The coordinator's long-lived self-signed certificate (Ed25519, name "shoal") and its private key.
struct Certificate {
  std::vector<std::byte> der;
  std::string private_key_pem;
};
Result<Certificate> make_certificate();

// What an attach URL carries to know the certificate by: base64url of its BLAKE2b-256.
std::string pin_of(ByteSpan certificate_der);

// shoal://host:port/?pin=...[&invite=...]
struct AttachUrl {
  std::string host;  // A name, an IPv4 address, or an IPv6 address without brackets.
  uint16_t port = 0;
  std::string pin;
  std::string invite;
};
Result<AttachUrl> parse_attach_url(
    std::string_view text);  // kInvalid names the part that is wrong.
std::string format_attach_url(const AttachUrl& url);

// How large a received message may be: kLoginMessageBytesMax until the peer has proved who it is,
// and till then at most kLoginMessagesMax of them.
class ReceiveLimit : public kj::Refcounted {
 public:
  explicit ReceiveLimit(size_t bytes) : bytes(bytes) {}
  size_t bytes;
};

// One peer on one stream. Dropping it ends every call in flight.
class Connection {
 public:
  // `offered` is the bootstrap capability that the peer gets, or null for a peer that only asks. A
  // received message over the limit ends the connection.
  Connection(kj::Own<kj::AsyncIoStream> stream, bool is_server,
             kj::Maybe<capnp::Capability::Client> offered,
             kj::Own<ReceiveLimit> limit = kj::refcounted<ReceiveLimit>(limits::kMessageBytesMax));
  ~Connection() noexcept(false);
  KJ_DISALLOW_COPY(Connection);

  capnp::Capability::Client bootstrap();  // The peer's.
  kj::Promise<void> closed();             // When the peer is gone, for whatever reason.

 private:
  struct Parts;
  kj::Own<Parts> parts_;
};

// A server's door. Serves connections until it is dropped.
class Listener {
 public:
  virtual ~Listener() noexcept(false) = default;
  virtual uint16_t port() const = 0;  // 0 for a Unix socket.
  virtual size_t connections() const = 0;
};

// What a server learns of a connection when it comes. The limit starts at kLoginMessageBytesMax on
// TLS; the bootstrap raises it once the peer has proved its identity, within ListenLimits::login.
struct Peer {
  std::string address;  // Without the port.
  kj::Own<ReceiveLimit> limit;
};
using BootstrapFactory = kj::Function<capnp::Capability::Client(Peer peer)>;

struct ListenLimits {
  size_t connections_max = 20'000;
  size_t connections_per_address_max = 4'096;
  // On TLS, a peer that takes longer is dropped.
  kj::Duration handshake = 10 * kj::SECONDS;
  kj::Duration login = 30 * kj::SECONDS;  // From the handshake until its limit is raised.
};

// TLS 1.3. The client sends "shoal/1\n"; the server answers in clear with its certificate, which
// the client holds against the pin; then both start TLS on the same connection. Throws with a
// sentence that names address and cause: port in use, no permission.
kj::Promise<kj::Own<Listener>> listen_tls(kj::Network& network, kj::Timer& timer,
                                          std::string address, uint16_t port,
                                          const Certificate& certificate,
                                          BootstrapFactory make_bootstrap,
                                          ListenLimits limits = {});

// Refuses a certificate that does not match the pin, then starts TLS trusting only that one. Throws
// with a sentence that tells apart: name not found, refused, timeout, wrong pin, TLS.
kj::Promise<kj::Own<Connection>> dial_tls(kj::Network& network, kj::Timer& timer,
                                          const AttachUrl& url,
                                          kj::Maybe<capnp::Capability::Client> offered = nullptr);

// A Unix socket with mode 0600, for peers of the same user alone. A stale file of a dead server is
// replaced; a live one is kExists.
kj::Promise<kj::Own<Listener>> listen_unix(kj::Network& network, kj::Timer& timer, std::string path,
                                           BootstrapFactory make_bootstrap,
                                           ListenLimits limits = {});
kj::Promise<kj::Own<Connection>> dial_unix(kj::Network& network, kj::Timer& timer,
                                           std::string path);

// An exception of a peer or of the network as the world's error: disconnected and overloaded are
// kUnavailable, unimplemented is kUnsupported, failed keeps an Error that throw_error() put in.
Error error_of(const kj::Exception& exception);
[[noreturn]] void throw_error(const Error& error);  // As a failed call; error_of() restores it.

// Throws when a field that came over a wire is longer than its limit.
void require_at_most(size_t size, size_t limit, const char* field);

inline kj::ArrayPtr<const kj::byte> kj_bytes(ByteSpan bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}
inline ByteSpan bytes_of(kj::ArrayPtr<const kj::byte> bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.begin()), bytes.size()};
}

}  // namespace shoal::rpc
