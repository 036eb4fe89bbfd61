#include "client/path_door.h"

#include <memory>

#include "base/log.h"
#include "client/rules/validate_rules.h"
#include "schema/direct.h"
#include "schema/limits.h"
#include "schema/require.h"

namespace shoal::client {
namespace {

constexpr int kTriesMax = 5;  // Of one connection.
constexpr kj::Duration kMeetMax = 10 * kj::SECONDS;

rpc::ListenLimits door_limits() {
  rpc::ListenLimits limits;
  limits.connections_max = 64;
  limits.connections_per_address_max = 16;
  return limits;
}

}  // namespace

// All that who comes to the door has.
class PathDoor::Visitor final : public rpc::PathDoor::Server {
 public:
  Visitor(PathDoor& door, rpc::Peer peer) : door_(door), peer_(kj::mv(peer)) {}

  kj::Promise<void> meet(MeetContext context) override {
    const auto params = context.getParams();
    const auto token = params.getToken();
    rpc::require_at_most(token.size(), limits::kPathTokenBytes, "token");
    // Nobody guesses 32 bytes; who tries loses his connection.
    const auto found = door_.expected_.find(digest_of(rpc::bytes_of(token)));
    if (met_ || refused_ >= kTriesMax || found == door_.expected_.end()) {
      ++refused_;
      rpc::throw_error({ErrorCode::kDenied, "nobody is expected here with that token"});
    }
    met_ = true;
    Expected expected = kj::mv(found->second);
    door_.expected_.erase(found);
    Meeting meeting;
    if (params.hasInlet()) meeting.inlet = params.getInlet();
    meeting.limit = kj::addRef(*peer_.limit);
    // More than a stranger's, so that the connection stays.
    peer_.limit->bytes = limits::kLoginMessageBytesMax + 1024 + expected.bytes_max;
    KJ_IF_MAYBE (own, expected.own) {
      context.getResults().setInlet(kj::mv(*own));
    }
    expected.met(kj::mv(meeting));
    return kj::READY_NOW;
  }

 private:
  PathDoor& door_;
  rpc::Peer peer_;
  int refused_ = 0;
  bool met_ = false;
};

PathDoor::PathDoor(Loop loop) : loop_(loop) {}
PathDoor::~PathDoor() noexcept(false) = default;

// The listener keeps the connection until the neighbour goes; what he still sends ends it.
PathDoor::Meeting::~Meeting() noexcept(false) {
  if (limit.get() != nullptr) limit->bytes = 0;
}

PathDoor::Expectation::~Expectation() { door_.expected_.erase(token_); }

void PathDoor::act_on(bool allowed, const std::string& listen) {
  allowed_ = allowed;
  const std::string wanted = allowed ? listen : "";
  if (wanted == address_ && (wanted.empty() || listener_.get() != nullptr)) return;
  address_ = wanted;
  opening_ = nullptr;
  listener_ = nullptr;
  pin_.clear();
  if (wanted.empty()) return;
  opening_ = open(wanted).promise().eagerlyEvaluate([](kj::Exception&& exception) {
    log_error("paths", "not_open", {{"cause", rpc::error_of(exception)}});
  });
}

rpc::Task<void> PathDoor::open(std::string text) {
  const ListenAddress address = rpc::require(parse_listen_address(text));
  const rpc::Certificate certificate = rpc::require(rpc::make_certificate());
  kj::Promise<kj::Own<rpc::Listener>> listening = rpc::listen_tls(
      loop_.io.provider->getNetwork(), loop_.timer, address.host, address.port, certificate,
      [this](rpc::Peer peer) -> capnp::Capability::Client {
        return kj::heap<Visitor>(*this, kj::mv(peer));
      },
      door_limits());
  listener_ = co_await kj::mv(listening);
  pin_ = rpc::pin_of(certificate.der);
  log_info("paths", "open", {{"port", int{listener_->port()}}});
}

std::unique_ptr<PathDoor::Expectation> PathDoor::expect(ByteSpan token,
                                                        kj::Maybe<rpc::PathInlet::Client> own,
                                                        size_t bytes_max,
                                                        std::function<void(Meeting)> met) {
  const Digest digest = digest_of(token);
  Expected expected;
  expected.own = kj::mv(own);
  expected.bytes_max = bytes_max;
  expected.met = std::move(met);
  expected_.insert_or_assign(digest, kj::mv(expected));
  return std::make_unique<Expectation>(*this, digest);
}

rpc::Task<PathDoor::Meeting> PathDoor::dial(rpc::AttachUrl url, ByteVector token,
                                            kj::Maybe<rpc::PathInlet::Client> own) {
  kj::Promise<kj::Own<rpc::Connection>> dialled =
      rpc::dial_tls(loop_.io.provider->getNetwork(), loop_.timer, url);
  Meeting meeting;
  meeting.connection = co_await kj::mv(dialled);
  auto request = meeting.connection->bootstrap().castAs<rpc::PathDoor>().meetRequest();
  request.setToken(rpc::kj_bytes(token));
  KJ_IF_MAYBE (inlet, own) {
    request.setInlet(kj::mv(*inlet));
  }
  const kj::TimePoint asked = loop_.timer.now();
  kj::Promise<capnp::Response<rpc::PathDoor::MeetResults>> met = request.send();
  auto answer = co_await loop_.timer.timeoutAfter(kMeetMax, kj::mv(met));
  meeting.round_trip_micros = static_cast<uint32_t>((loop_.timer.now() - asked) / kj::MICROSECONDS);
  if (answer.hasInlet()) meeting.inlet = answer.getInlet();
  co_return kj::mv(meeting);
}

}  // namespace shoal::client
