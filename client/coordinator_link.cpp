#include "client/coordinator_link.h"

#include "base/host.h"
#include "base/log.h"
#include "schema/limits.h"
#include "schema/login.h"
#include "schema/require.h"

namespace shoal::client {
namespace {

constexpr kj::Duration kLoginMax = 20 * kj::SECONDS;
constexpr kj::Duration kLeaveMax = 1 * kj::SECONDS;
constexpr uint32_t kPingMsMin = 100, kPingMsMax = 60'000;

std::string where(const rpc::AttachUrl& url) { return url.host + ":" + std::to_string(url.port); }

}  // namespace

HostCard own_host_card() {
#if defined(__aarch64__)
  const char* const system = "linux aarch64";
#else
  const char* const system = "linux x86_64";
#endif
  return {host_name(), system, SHOAL_VERSION};
}

LoginFailure login_failure_of(const kj::Exception& exception) {
  LoginFailure failure{rpc::error_of(exception)};
  switch (failure.error.code) {
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout:
    case ErrorCode::kNoSpace:
    case ErrorCode::kNotFound:  // A name that DNS does not know today it may know tomorrow.
      failure.refused = false;
      break;
    default: failure.refused = true;
  }
  return failure;
}

rpc::Task<LoggedIn> log_in(kj::Network& network, kj::Timer& timer, rpc::AttachUrl url,
                           const SigningKey& identity, HostCard card, rpc::Host::Client host) {
  kj::Promise<kj::Own<rpc::Connection>> dialled = rpc::dial_tls(network, timer, url);
  kj::Own<rpc::Connection> connection = co_await kj::mv(dialled);
  auto coordinator = connection->bootstrap().castAs<rpc::Coordinator>();

  auto hello = coordinator.helloRequest();
  hello.setProtocolVersion(rpc::PROTOCOL_VERSION);
  kj::Promise<capnp::Response<rpc::Coordinator::HelloResults>> greeted = hello.send();
  const auto greeting = co_await timer.timeoutAfter(kLoginMax, kj::mv(greeted));
  if (greeting.getProtocolVersion() != rpc::PROTOCOL_VERSION) {
    rpc::throw_error({ErrorCode::kUnsupported,
                      "the coordinator at " + where(url) + " speaks version " +
                          std::to_string(greeting.getProtocolVersion()) +
                          " of the protocol, this client " + std::to_string(rpc::PROTOCOL_VERSION) +
                          ": update the older of the two"});
  }
  rpc::require_at_most(greeting.getNonce().size(), limits::kKeyBytesMax, "hello.nonce");

  auto request = coordinator.loginRequest();
  auto login = request.initLogin();
  const Signature signature =
      identity.sign(rpc::login_message(rpc::bytes_of(greeting.getNonce()), url.pin));
  login.setPublicKey(rpc::kj_bytes(identity.public_key().bytes));
  login.setSignature(rpc::kj_bytes(signature));
  login.setInvite(url.invite);
  login.setHostName(card.name);
  login.setSystem(card.system);
  login.setVersion(card.version);
  request.setHost(kj::mv(host));
  kj::Promise<capnp::Response<rpc::Coordinator::LoginResults>> asked = request.send();
  auto answer = co_await timer.timeoutAfter(kLoginMax, kj::mv(asked));
  std::string name = rpc::text_of(greeting.getName(), limits::kNameBytesMax, "hello.name");
  co_return LoggedIn{kj::mv(connection), answer.getSession(), std::move(name), answer.getHostId(),
                     answer.getTrusted()};
}

CoordinatorLink::CoordinatorLink(kj::Network& network, kj::Timer& timer, const Clock& clock,
                                 Random& random, Needs& needs, rpc::AttachUrl url, Waits waits)
    : network_(network),
      timer_(timer),
      clock_(clock),
      needs_(needs),
      url_(std::move(url)),
      waits_(waits),
      back_off_(waits.first, waits.most, random),
      refused_back_off_(waits.refused_first, waits.refused_most, random),
      life_(keep_connected().promise().eagerlyEvaluate([](kj::Exception&& exception) {
        log_error("link", "gave_up", {{"cause", exception.getDescription().cStr()}});
      })) {}

CoordinatorLink::~CoordinatorLink() {
  life_ = nullptr;
  drop_connection();
}

Millis CoordinatorLink::retry_in() const {
  if (state_ != State::kWaiting && state_ != State::kRefused) return Millis{0};
  return std::max(retry_at_ - clock_.now_monotonic(), Millis{0});
}

void CoordinatorLink::drop_connection() {
  if (slot_.get() != nullptr) slot_->session = nullptr;
  slot_ = nullptr;
  report_wanted_ = nullptr;
  logged_in_ = nullptr;
}

void CoordinatorLink::devices_changed() {
  report_due_ = true;
  KJ_IF_MAYBE (wanted, report_wanted_) {
    auto fulfiller = kj::mv(*wanted);
    report_wanted_ = nullptr;
    fulfiller->fulfill();
  }
}

void CoordinatorLink::set_state(State state, std::string reason) {
  state_ = state;
  reason_ = std::move(reason);
  needs_.link_changed(*this);
}

rpc::Task<void> CoordinatorLink::keep_connected() {
  // Not inside the constructor: what needs us is not built yet.
  co_await kj::evalLater([] {});
  while (true) {
    set_state(State::kConnecting, "");
    LoginFailure failure{{ErrorCode::kUnavailable, "the coordinator closed the connection"}};
    try {
      co_await be_connected();
    } catch (const kj::Exception& exception) {
      failure = login_failure_of(exception);
      // Once logged in, whatever ends the connection is a loss, not a refusal.
      if (logged_in_ != nullptr) failure.refused = false;
    }
    drop_connection();
    const Millis wait = failure.refused ? refused_back_off_.next() : back_off_.next();
    retry_at_ = clock_.now_monotonic() + wait;
    log_warning("link", failure.refused ? "refused" : "lost",
                {{"coordinator", where(url_)}, {"cause", failure.error}, {"retry_in_ms", wait}});
    set_state(failure.refused ? State::kRefused : State::kWaiting, failure.error.message);
    co_await timer_.afterDelay(wait.count * kj::MILLISECONDS);
  }
}

rpc::Task<void> CoordinatorLink::be_connected() {
  slot_ = kj::refcounted<SessionSlot>();
  kj::Promise<LoggedIn> asked = log_in(network_, timer_, url_, needs_.identity(), own_host_card(),
                                       needs_.make_host(kj::addRef(*slot_)));
  logged_in_ = co_await kj::mv(asked);
  LoggedIn& logged_in = KJ_ASSERT_NONNULL(logged_in_);
  slot_->session = logged_in.session;
  name_ = logged_in.coordinator_name;
  host_id_ = logged_in.host_id;
  trusted_ = logged_in.trusted;
  back_off_.reset();
  refused_back_off_.reset();
  log_info("link", "connected",
           {{"coordinator", where(url_)},
            {"name", name_},
            {"host_id", host_id_},
            {"trusted", trusted_}});
  set_state(State::kConnected, "");
  report_due_ = true;
  kj::Promise<void> over =
      logged_in.connection->closed().exclusiveJoin(report_changes()).exclusiveJoin(show_life());
  co_await kj::mv(over);
}

rpc::Task<void> CoordinatorLink::report_changes() {
  while (true) {
    if (!report_due_) {
      auto pair = kj::newPromiseAndFulfiller<void>();
      report_wanted_ = kj::mv(pair.fulfiller);
      co_await kj::mv(pair.promise);
    }
    report_due_ = false;  // What changes while this report travels is the next one's.
    auto request = KJ_ASSERT_NONNULL(logged_in_).session.reportRequest();
    needs_.write_report(request);
    kj::Promise<void> answered = request.send().ignoreResult();
    co_await timer_.timeoutAfter(waits_.answer_max, kj::mv(answered));
  }
}

rpc::Task<void> CoordinatorLink::show_life() {
  while (true) {
    kj::Promise<capnp::Response<rpc::HostSession::PingResults>> asked =
        KJ_ASSERT_NONNULL(logged_in_).session.pingRequest().send();
    const auto answer = co_await timer_.timeoutAfter(waits_.answer_max, kj::mv(asked));
    const uint32_t interval_ms = std::clamp(answer.getIntervalMs(), kPingMsMin, kPingMsMax);
    co_await timer_.afterDelay(interval_ms * kj::MILLISECONDS);
  }
}

kj::Promise<void> CoordinatorLink::leave(std::string reason) {
  kj::Promise<void> left = kj::READY_NOW;
  KJ_IF_MAYBE (logged_in, logged_in_) {
    auto request = logged_in->session.leaveRequest();
    request.setReason(reason);
    left = timer_.timeoutAfter(kLeaveMax, request.send().ignoreResult());
  }
  // Whether the goodbye arrived or not.
  return left.catch_([](kj::Exception&&) {}).then([this] {
    life_ = nullptr;
    drop_connection();
  });
}

}  // namespace shoal::client
