#include "client/coordinator_link.h"

#include <algorithm>
#include <utility>

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

// As many as the records take at once.
constexpr uint32_t kReceiptsPerCall = 32;
static_assert(kReceiptsPerCall <= limits::kReceiptsPerCallMax);
// After a ping: a coordinator that never comes to an end fills no disk at a stroke.
constexpr int kReceiptCallsPerPing = 8;

void pass_if_unknown(kj::Exception&& exception) {
  if (exception.getType() != kj::Exception::Type::UNIMPLEMENTED) {
    kj::throwFatalException(kj::mv(exception));
  }
}

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

rpc::Task<CoordinatorCard> preview(kj::Network& network, kj::Timer& timer, rpc::AttachUrl url) {
  kj::Promise<kj::Own<rpc::Connection>> dialled = rpc::dial_tls(network, timer, url);
  kj::Own<rpc::Connection> connection = co_await kj::mv(dialled);
  auto coordinator = connection->bootstrap().castAs<rpc::Coordinator>();
  kj::Promise<capnp::Response<rpc::Coordinator::DescribeResults>> asked =
      coordinator.describeRequest().send();
  const auto answer = co_await timer.timeoutAfter(kLoginMax, kj::mv(asked));
  co_return read_card(answer.getCard());
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
      receipts_off_{{waits.refused_first, waits.refused_most, random}},
      days_off_{{waits.refused_first, waits.refused_most, random}},
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

kj::Maybe<rpc::HostSession::Client> CoordinatorLink::session() {
  if (slot_.get() == nullptr) return nullptr;
  return slot_->session;
}

void CoordinatorLink::drop_connection() {
  if (slot_.get() != nullptr) slot_->session = nullptr;
  slot_ = nullptr;
  report_wanted_.drop();
  tend_wanted_.drop();
  introduced_ = nullptr;
  probe_ = nullptr;
  reporting_ = false;
  logged_in_ = nullptr;
  connected_since_ = Millis{0};
  for (auto& fulfiller : std::exchange(report_waiting_, {})) fulfiller->fulfill();
}

void CoordinatorLink::devices_changed() {
  report_due_ = true;
  report_wanted_.give();
}

void CoordinatorLink::consent_changed() {
  consent_due_ = true;
  tend_wanted_.give();
}

void CoordinatorLink::card_outdated() {
  card_due_ = consent_due_ = true;
  tend_wanted_.give();
}

void CoordinatorLink::look_now() {
  look_wanted_.give();
  KJ_IF_MAYBE (logged_in, logged_in_) {
    probe_ =
        timer_
            .timeoutAfter(waits_.probe_max, logged_in->session.pingRequest().send().ignoreResult())
            .catch_([this](kj::Exception&& exception) { broken_->reject(kj::mv(exception)); })
            .eagerlyEvaluate(nullptr);
  }
}

kj::Promise<void> CoordinatorLink::reported() {
  if (logged_in_ == nullptr || (!report_due_ && !reporting_)) return kj::READY_NOW;
  auto pair = kj::newPromiseAndFulfiller<void>();
  report_waiting_.push_back(kj::mv(pair.fulfiller));
  return kj::mv(pair.promise);
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
    set_state(State::kConnecting, reason_);  // Why it is not connected still holds.
    LoginFailure failure{{ErrorCode::kUnavailable, "the coordinator closed the connection"}};
    try {
      co_await be_connected();
    } catch (const kj::Exception& exception) {
      failure = login_failure_of(exception);
      // Once logged in, whatever ends the connection is a loss, not a refusal.
      if (logged_in_ != nullptr) failure.refused = std::exchange(refused_, false);
    }
    drop_connection();
    const Millis wait = failure.refused ? refused_back_off_.next() : back_off_.next();
    retry_at_ = clock_.now_monotonic() + wait;
    log_warning("link", failure.refused ? "refused" : "lost",
                {{"coordinator", where(url_)}, {"cause", failure.error}, {"retry_in_ms", wait}});
    set_state(failure.refused ? State::kRefused : State::kWaiting, failure.error.message);
    kj::Promise<void> waited =
        timer_.afterDelay(wait.count * kj::MILLISECONDS).exclusiveJoin(look_wanted_.wait());
    co_await kj::mv(waited);
    look_wanted_.drop();
  }
}

rpc::Task<void> CoordinatorLink::be_connected() {
  slot_ = kj::refcounted<SessionSlot>();
  kj::Promise<LoggedIn> asked = log_in(network_, timer_, url_, needs_.identity(), own_host_card(),
                                       needs_.make_host(*this, kj::addRef(*slot_)));
  logged_in_ = co_await kj::mv(asked);
  LoggedIn& logged_in = KJ_ASSERT_NONNULL(logged_in_);
  slot_->session = logged_in.session;
  ++logins_;
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
  connected_since_ = clock_.now_wall();
  report_due_ = consent_due_ = card_due_ = true;
  set_state(State::kConnected, "");
  auto introduced = kj::newPromiseAndFulfiller<void>();
  introduced_ = kj::mv(introduced.fulfiller);
  introduction_ = kj::mv(introduced.promise);
  auto broken = kj::newPromiseAndFulfiller<void>();
  broken_ = kj::mv(broken.fulfiller);
  kj::Promise<void> over = logged_in.connection->closed()
                               .exclusiveJoin(kj::mv(broken.promise))
                               .exclusiveJoin(report_changes())
                               .exclusiveJoin(show_life())
                               .exclusiveJoin(tend());
  co_await kj::mv(over);
}

rpc::Task<void> CoordinatorLink::report_changes() {
  // A coordinator that knows of no device gives none work that the owner denies.
  kj::Promise<void> introduced = kj::mv(introduction_);
  co_await kj::mv(introduced);
  while (true) {
    if (!report_due_) {
      for (auto& fulfiller : std::exchange(report_waiting_, {})) fulfiller->fulfill();
      kj::Promise<void> wanted = report_wanted_.wait();
      co_await kj::mv(wanted);
    }
    report_due_ = false;  // What changes while this report travels is the next one's.
    reporting_ = true;
    auto request = KJ_ASSERT_NONNULL(logged_in_).session.reportRequest();
    needs_.write_report(request);
    kj::Promise<void> answered = request.send().ignoreResult();
    co_await timer_.timeoutAfter(waits_.answer_max, kj::mv(answered));
    reporting_ = false;
  }
}

rpc::Task<void> CoordinatorLink::show_life() {
  while (true) {
    kj::Promise<capnp::Response<rpc::HostSession::PingResults>> asked =
        KJ_ASSERT_NONNULL(logged_in_).session.pingRequest().send();
    uint32_t interval_ms = 0;
    {
      const auto answer = co_await timer_.timeoutAfter(waits_.answer_max, kj::mv(asked));
      interval_ms = std::clamp(answer.getIntervalMs(), kPingMsMin, kPingMsMax);
      if (answer.hasStanding()) {
        standing_ = read_standing(answer.getStanding());
        needs_.standing_changed(*this);
        receipts_due_ = true;
        tend_wanted_.give();
      }
    }
    const Millis wait = until_whole(clock_.now_monotonic(), Millis{interval_ms});
    co_await timer_.afterDelay(wait.count * kj::MILLISECONDS);
  }
}

// What an older coordinator does not know is done without.
rpc::Task<void> CoordinatorLink::tend() {
  while (true) {
    if (card_due_) {
      card_due_ = false;
      kj::Promise<void> described = describe();
      co_await kj::mv(described);
      continue;
    }
    if (consent_due_) {
      consent_due_ = false;
      auto request = KJ_ASSERT_NONNULL(logged_in_).session.setConsentRequest();
      const std::vector<JobClass> denied = needs_.denied(*this);
      auto list = request.initDenied(
          static_cast<uint32_t>(std::min<size_t>(denied.size(), limits::kJobClassesMax)));
      for (uint32_t i = 0; i < list.size(); ++i) write_job_class(denied[i], list[i]);
      kj::Promise<void> told = request.send().ignoreResult().catch_(
          [](kj::Exception&& exception) { pass_if_unknown(kj::mv(exception)); });
      co_await timer_.timeoutAfter(waits_.answer_max, kj::mv(told));
      continue;
    }
    introduced_->fulfill();
    if (receipts_due_) {
      receipts_due_ = false;
      kj::Promise<void> brought = bring_receipts();
      co_await kj::mv(brought);
      kj::Promise<void> days_brought = bring_days();
      co_await kj::mv(days_brought);
      continue;
    }
    kj::Promise<void> wanted = tend_wanted_.wait();
    co_await kj::mv(wanted);
  }
}

rpc::Task<void> CoordinatorLink::describe() {
  try {
    kj::Promise<capnp::Response<rpc::HostSession::DescribeResults>> asked =
        KJ_ASSERT_NONNULL(logged_in_).session.describeRequest().send();
    const auto answer = co_await timer_.timeoutAfter(waits_.answer_max, kj::mv(asked));
    card_ = read_card(answer.getCard());
    knows_card_ = true;
    const Result<SigningPublicKey> key =
        SigningPublicKey::from_bytes(rpc::bytes_of(answer.getReceiptKey()));
    if (key.ok()) {
      const Result<void> known = needs_.receipt_key_shown(*this, key.value());
      refused_ = !known.ok();
      rpc::require(known);
    }
  } catch (const kj::Exception& exception) {
    if (exception.getType() != kj::Exception::Type::UNIMPLEMENTED) throw;
  }
  needs_.standing_changed(*this);
}

rpc::Task<void> CoordinatorLink::bring_receipts() {
  if (clock_.now_monotonic() < receipts_off_.not_before) co_return;
  try {
    std::optional<uint64_t> before;
    for (int calls = 0; calls < kReceiptCallsPerPing; ++calls) {
      const std::optional<uint64_t> after = needs_.receipts_wanted(*this);
      if (!after) co_return;
      if (after == before) co_return;  // What came was of no use.
      before = after;
      auto request = KJ_ASSERT_NONNULL(logged_in_).session.readReceiptsRequest();
      request.setAfterNumber(*after);
      request.setCountMax(kReceiptsPerCall);
      kj::Promise<capnp::Response<rpc::HostSession::ReadReceiptsResults>> asked = request.send();
      const auto answer = co_await timer_.timeoutAfter(waits_.answer_max, kj::mv(asked));
      std::vector<Receipt> receipts;
      for (const auto in : answer.getReceipts()) {
        if (receipts.size() == kReceiptsPerCall) break;
        receipts.push_back(read_receipt(in));
      }
      if (receipts.empty()) co_return;
      const Result<void> stored = needs_.receipts_came(*this, receipts);
      if (!stored.ok()) {
        put_off(receipts_off_, "receipts_not_stored", stored.error());
        co_return;
      }
      receipts_off_.back_off.reset();
    }
  } catch (const kj::Exception& exception) {
    put_off(receipts_off_, "receipts_not_brought", exception);
  }
}

rpc::Task<void> CoordinatorLink::bring_days() {
  if (clock_.now_monotonic() < days_off_.not_before) co_return;
  try {
    for (int calls = 0; calls < kReceiptCallsPerPing; ++calls) {
      const std::optional<Needs::DayWanted> wanted = needs_.day_wanted(*this);
      if (!wanted) co_return;
      auto request = KJ_ASSERT_NONNULL(logged_in_).session.ledgerDayRequest();
      request.setFromDay(wanted->from_day);
      request.setAfterNumber(wanted->after_number);
      request.setCountMax(kReceiptsPerCall);
      kj::Promise<capnp::Response<rpc::HostSession::LedgerDayResults>> asked = request.send();
      const auto answer = co_await timer_.timeoutAfter(waits_.answer_max, kj::mv(asked));
      const LedgerDay day = read_ledger_day(answer.getDay());
      if (day.count == 0) co_return;
      std::vector<ReceiptProof> proofs;
      for (const auto in : answer.getProofs()) {
        if (proofs.size() == kReceiptsPerCall) break;
        proofs.push_back(read_receipt_proof(in));
      }
      const Result<void> stored = needs_.day_came(*this, day, proofs, answer.getMore());
      if (!stored.ok()) {
        put_off(days_off_, "ledger_day_not_stored", stored.error());
        co_return;
      }
      days_off_.back_off.reset();
    }
  } catch (const kj::Exception& exception) {
    put_off(days_off_, "ledger_day_not_brought", exception);
  }
}

void CoordinatorLink::put_off(PutOff& what, const char* event, const kj::Exception& cause) {
  switch (cause.getType()) {
    case kj::Exception::Type::DISCONNECTED: kj::throwFatalException(kj::cp(cause));
    case kj::Exception::Type::UNIMPLEMENTED: return;
    default: put_off(what, event, rpc::error_of(cause));
  }
}

void CoordinatorLink::put_off(PutOff& what, const char* event, const Error& cause) {
  const Millis wait = what.back_off.next();
  what.not_before = clock_.now_monotonic() + wait;
  log_warning("link", event,
              {{"coordinator", where(url_)}, {"cause", cause}, {"retry_in_ms", wait}});
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
