#include "coordinator/rpc/coordinator_server.h"

#include <kj/debug.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "coordinator/data_folder.h"
#include "coordinator/jobs/job_service.h"
#include "coordinator/rpc/accounts.h"
#include "coordinator/rpc/card.h"
#include "coordinator/rpc/unit_desk.h"
#include "schema/limits.h"
#include "schema/login.h"
#include "schema/message.h"
#include "schema/require.h"

namespace shoal {
namespace {

constexpr size_t kNonceBytes = 32;
constexpr int kPingsMissedMax = 3;
constexpr double kHopSecondsMax = 60;
constexpr uint64_t kAvailableMsMax = uint64_t{366} * 24 * 3600 * 1000;  // More is no end.
// What a card may hold for a stranger, who may ask for several, and for a host.
constexpr size_t kStrangersCardBytesMax = limits::kLoginMessageBytesMax / 2;
constexpr size_t kHostsCardBytesMax = size_t{4} << 20;
constexpr Millis kSeenInterval{
    300'000};  // How often a host's last sign of life is stored while it stays.

// What a machine says of its own speed is a figure, or it is nothing.
double figure(double value) { return std::isfinite(value) && value > 0 ? value : 0; }
int64_t count(uint64_t value) {
  return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX / 4));
}

PoolDevice device_of(rpc::DeviceReport::Reader report, kj::TimePoint now) {
  PoolDevice device;
  const auto info = report.getInfo();
  device.row.name_on_host = rpc::text_of(info.getId(), limits::kNameBytesMax, "device id");
  device.row.selector = rpc::text_of(info.getSelector(), limits::kNameBytesMax, "device selector");
  device.row.plane = rpc::text_of(info.getPlane(), limits::kNameBytesMax, "device plane");
  device.row.name = rpc::text_of(info.getName(), limits::kNameBytesMax, "device name");
  device.row.driver = rpc::text_of(info.getDriver(), limits::kNameBytesMax, "device driver");
  device.row.memory = Bytes{count(info.getMemoryBytes())};
  device.row.software = info.getSoftware();

  const auto benchmark = report.getBenchmark();
  device.row.measured_at = Millis{std::max<int64_t>(benchmark.getMeasuredAtMs(), 0)};
  device.row.decode_rows_per_second = figure(benchmark.getDecodeRowsPerSecond());
  device.row.prefill_rows_per_second = figure(benchmark.getPrefillRowsPerSecond());
  device.row.weight_bytes_per_second = figure(benchmark.getWeightBytesPerSecond());
  device.row.flops_per_second = figure(benchmark.getFlopsPerSecond());
  device.row.copy_bytes_per_second = figure(benchmark.getCopyBytesPerSecond());

  const auto test = report.getSelfTest();
  device.row.exact = test.getExact();
  device.row.samples = test.getSamples();
  device.row.failed = test.getFailed();
  device.row.unsupported = test.getUnsupported();
  device.row.first_failure =
      rpc::text_of(test.getFirstFailure(), limits::kReasonBytesMax, "first failure");

  device.reason = rpc::text_of(report.getReason(), limits::kReasonBytesMax, "device reason");
  if (device.reason.empty()) {
    device.reason = cut_utf8(english(read_message(report.getWhy())), limits::kReasonBytesMax);
  }
  const uint64_t available = report.getAvailableMs();
  if (available > 0 && available < kAvailableMsMax) {
    device.available_until = now + static_cast<int64_t>(available) * kj::MILLISECONDS;
  }
  switch (report.getState()) {
    case rpc::DeviceReport::State::READY: device.state = DeviceState::kReady; break;
    case rpc::DeviceReport::State::STARTING: device.state = DeviceState::kStarting; break;
    case rpc::DeviceReport::State::DRAINING: device.state = DeviceState::kDraining; break;
    case rpc::DeviceReport::State::PAUSED: device.state = DeviceState::kPaused; break;
    default:
      device.state = DeviceState::kFailed;
      break;  // A state newer than we are is no ready one.
  }
  if (const auto key = report.getWorkerKey(); key.size() > 0) {
    device.worker_key = rpc::require(BoxPublicKey::from_bytes(rpc::bytes_of(key)));
  }
  return device;
}

// Addresses of one network: the first 24 bits of IPv4, the first 48 of IPv6.
uint64_t address_block(const std::string& address) {
  std::string block = address;
  if (const size_t dot = block.rfind('.'); dot != std::string::npos) {
    block.resize(dot);
  } else {
    size_t colons = 0, end = 0;
    while (end < block.size() && colons < 3) colons += block[end++] == ':' ? 1 : 0;
    block.resize(end);
  }
  return load_le<uint64_t>(digest_of(as_bytes(block)).bytes.data());
}

// Held by a client while it is connected; its end is the host's leaving.
class HostSessionServer final : public rpc::HostSession::Server {
 public:
  HostSessionServer(Parts& parts, HostId id, uint64_t login, std::string name)
      : parts_(parts),
        id_(id),
        login_(login),
        name_(std::move(name)),
        heard_(parts.timer.now()),
        stored_seen_(parts.clock.now_wall()),
        watch_(watch().eagerlyEvaluate(nullptr)) {}

  ~HostSessionServer() noexcept(false) { end("host_left", "connection lost"); }

  kj::Promise<void> report(ReportContext context) override {
    require_current();
    const auto reports = context.getParams().getDevices();
    rpc::require_at_most(reports.size(), limits::kDevicesPerHostMax, "devices");
    std::vector<PoolDevice> devices;
    for (const auto report : reports) {
      PoolDevice device = device_of(report, parts_.timer.now());
      const bool twice = std::ranges::any_of(devices, [&](const PoolDevice& other) {
        return other.row.name_on_host == device.row.name_on_host;
      });
      if (twice || device.row.name_on_host.empty()) {
        rpc::throw_error({ErrorCode::kInvalid, "a device is reported twice or without an id"});
      }
      devices.push_back(std::move(device));
    }
    const Millis now = parts_.clock.now_wall();
    rpc::require(parts_.folder.store->transaction([&]() -> Result<void> {
      std::vector<std::string> present;
      bool wrote = false;
      for (const PoolDevice& device : devices) {
        present.push_back(device.row.name_on_host);
        // What is stored already is not written again: a host may report as often as it likes.
        const PoolDevice* const former = parts_.pool.find({id_, login_, device.row.name_on_host});
        if (former != nullptr && former->row == device.row) continue;
        SHOAL_TRY(parts_.hosts.save_device(id_, device.row, now));
        wrote = true;
      }
      return wrote ? parts_.hosts.forget_devices(id_, present, now) : Result<void>();
    }));
    note_changes(devices);
    parts_.pool.report(id_, login_, std::move(devices));
    parts_.jobs->devices_changed(id_);
    return kj::READY_NOW;
  }

  kj::Promise<void> readShard(ReadShardContext context) override {
    require_current();
    const auto params = context.getParams();
    const Digest digest = rpc::require(Digest::from_bytes(rpc::bytes_of(params.getDigest())));
    if (!parts_.pool.may_read(id_, digest)) {
      rpc::throw_error({ErrorCode::kDenied, "this host was not given the shard " + digest.hex()});
    }
    rpc::require_at_most(params.getLength(), limits::kChunkBytesMax, "length");
    parts_.pool.find(id_, login_)->reads += 1;
    const ByteVector bytes =
        rpc::require(parts_.shards.read(digest, params.getOffset(), params.getLength()));
    context.releaseParams();
    context.getResults(capnp::MessageSize{bytes.size() / 8 + 64, 0}).setBytes(rpc::kj_bytes(bytes));
    return kj::READY_NOW;
  }

  kj::Promise<void> ping(PingContext context) override {
    require_current();
    context.getResults().setIntervalMs(
        static_cast<uint32_t>(parts_.folder.settings.ping_interval.count));
    write_standing(parts_, *parts_.pool.find(id_, login_), since_,
                   context.getResults().initStanding());
    const Millis now = parts_.clock.now_wall();
    if (now - stored_seen_ >= kSeenInterval) {
      stored_seen_ = now;
      rpc::require(parts_.hosts.set_last_seen(id_, now));
    }
    return kj::READY_NOW;
  }

  kj::Promise<void> leave(LeaveContext context) override {
    const std::string reason =
        rpc::text_of(context.getParams().getReason(), limits::kReasonBytesMax, "reason");
    end("host_left", reason.empty() ? "goodbye" : reason, /*in_order=*/true);
    return kj::READY_NOW;
  }

  kj::Promise<void> setConsent(SetConsentContext context) override {
    require_current();
    const auto list = context.getParams().getDenied();
    rpc::require_at_most(list.size(), limits::kJobClassesMax, "denied");
    std::vector<JobClass> denied;
    for (const auto job_class : list) denied.push_back(read_job_class(job_class));
    parts_.pool.set_denied(id_, login_, denied);
    parts_.jobs->devices_changed(id_);
    return kj::READY_NOW;
  }

  kj::Promise<void> readReceipts(ReadReceiptsContext context) override {
    require_current();
    const auto params = context.getParams();
    const std::vector<Receipt> receipts = rpc::require(parts_.ledger.receipts(
        id_, params.getAfterNumber(),
        std::min<uint32_t>(params.getCountMax(), limits::kReceiptsPerCallMax)));
    auto out = context.getResults().initReceipts(static_cast<uint>(receipts.size()));
    for (uint i = 0; i < out.size(); ++i) write_receipt(receipts[i], out[i]);
    return kj::READY_NOW;
  }

  kj::Promise<void> describe(DescribeContext context) override {
    require_current();
    auto results = context.getResults();
    write_card(parts_, results.initCard(), kHostsCardBytesMax,
               parts_.pool.find(id_, login_)->membership.group);
    results.setReceiptKey(rpc::kj_bytes(parts_.ledger.receipt_key().bytes));
    return kj::READY_NOW;
  }

  kj::Promise<void> units(UnitsContext context) override {
    require_current();
    // The desk keeps the session: as long as the host holds it, it is here.
    context.getResults().setDesk(make_unit_desk(parts_, id_, login_, keys_,
                                                [this, self = thisCap()] { require_current(); }));
    return kj::READY_NOW;
  }

  kj::Promise<void> ledgerDay(LedgerDayContext context) override {
    require_current();
    const auto params = context.getParams();
    const LedgerDays::Proofs proofs = rpc::require(
        parts_.days.proofs(id_, params.getFromDay(), params.getAfterNumber(),
                           std::min<uint32_t>(params.getCountMax(), limits::kProofsPerCallMax)));
    auto results = context.getResults();
    write_ledger_day(proofs.day, results.initDay());
    auto out = results.initProofs(static_cast<uint>(proofs.proofs.size()));
    for (uint i = 0; i < out.size(); ++i) write_receipt_proof(proofs.proofs[i], out[i]);
    results.setMore(proofs.more);
    return kj::READY_NOW;
  }

 private:
  // Every call is a sign of life, and none is heard after the session's end.
  void require_current() {
    if (!parts_.pool.is_current(id_, login_)) {
      kj::throwFatalException(
          KJ_EXCEPTION(DISCONNECTED,
                       "this login is over (another one of the same host, or too long a silence)"));
    }
    heard_ = parts_.timer.now();
  }

  void end(const char* event, const std::string& reason, bool in_order = false) {
    if (!parts_.pool.is_current(id_, login_)) return;
    parts_.pool.detach(id_, login_, in_order);
    parts_.jobs->host_gone(id_);
    const Result<void> seen = parts_.hosts.set_last_seen(id_, parts_.clock.now_wall());
    if (!seen.ok()) log_error("coordinator", "last_seen_not_stored", {{"why", seen.error()}});
    parts_.journal.note_of_host(event, name_ + ": " + reason, id_);
  }

  void note_changes(const std::vector<PoolDevice>& devices) {
    const Pool::Host* const host = parts_.pool.find(id_, login_);
    for (const PoolDevice& device : devices) {
      const auto former = std::ranges::find_if(host->devices, [&](const PoolDevice& other) {
        return other.row.name_on_host == device.row.name_on_host;
      });
      if (former != host->devices.end() && former->state == device.state) continue;
      const char* const kind = device.state == DeviceState::kReady      ? "device_ready"
                               : device.state == DeviceState::kFailed   ? "device_failed"
                               : device.state == DeviceState::kDraining ? "device_draining"
                               : device.state == DeviceState::kPaused   ? "device_paused"
                                                                        : "device_starting";
      parts_.journal.note_of_host(kind,
                                  name_ + ": " + device.row.name_on_host +
                                      (device.reason.empty() ? "" : ": " + device.reason),
                                  id_);
    }
  }

  // Measures the way to the host, and drops it when it is silent for too long.
  kj::Promise<void> watch() {
    const kj::Duration interval = parts_.folder.settings.ping_interval.count * kj::MILLISECONDS;
    measure_hop();
    return parts_.timer.afterDelay(interval).then([this, interval]() -> kj::Promise<void> {
      if (!parts_.pool.is_current(id_, login_)) return kj::READY_NOW;
      if (parts_.timer.now() - heard_ > kPingsMissedMax * interval) {
        end("host_silent", "no sign of life for " + std::to_string(kPingsMissedMax) + " intervals");
        return kj::READY_NOW;
      }
      return watch();
    });
  }

  void measure_hop() {
    Pool::Host* const host = parts_.pool.find(id_, login_);
    if (host == nullptr) return;
    const kj::TimePoint asked = parts_.timer.now();
    hop_ = host->client.pingRequest()
               .send()
               .then(
                   [this, asked](auto&&) {
                     const double seconds =
                         static_cast<double>((parts_.timer.now() - asked) / kj::MICROSECONDS) / 1e6;
                     parts_.pool.note_hop(id_, login_, std::min(seconds, kHopSecondsMax));
                   },
                   [](kj::Exception&&) {})
               .eagerlyEvaluate(nullptr);
  }

  Parts& parts_;
  const HostId id_;
  const uint64_t login_;
  const std::string name_;
  kj::TimePoint heard_;
  Millis stored_seen_;
  std::map<std::string, StandingSince> since_;
  SealedKeys keys_{parts_.shards};
  kj::Promise<void> hop_ = kj::READY_NOW;
  kj::Promise<void> watch_;  // Last: it uses the others.
};

class CoordinatorServer final : public rpc::Coordinator::Server {
 public:
  CoordinatorServer(Parts& parts, rpc::Peer peer) : parts_(parts), peer_(kj::mv(peer)) {}

  kj::Promise<void> hello(HelloContext context) override {
    const uint32_t theirs = context.getParams().getProtocolVersion();
    const uint32_t ours = rpc::PROTOCOL_VERSION;
    if (theirs != ours) {
      rpc::throw_error({ErrorCode::kUnsupported, "the client speaks protocol " +
                                                     std::to_string(theirs) + ", the coordinator " +
                                                     std::to_string(ours) + ": the " +
                                                     (theirs < ours ? "client" : "coordinator") +
                                                     " is older and must be updated"});
    }
    nonce_.resize(kNonceBytes);
    fill_secret(nonce_);
    auto results = context.getResults();
    results.setNonce(rpc::kj_bytes(nonce_));
    results.setProtocolVersion(ours);
    results.setName(parts_.folder.settings.name);
    return kj::READY_NOW;
  }

  kj::Promise<void> login(LoginContext context) override {
    const auto params = context.getParams();
    const auto login = params.getLogin();
    rpc::require_at_most(login.getPublicKey().size(), limits::kKeyBytesMax, "public key");
    rpc::require_at_most(login.getSignature().size(), limits::kKeyBytesMax, "signature");
    const std::string invite = rpc::text_of(login.getInvite(), limits::kInviteBytesMax, "invite");
    HostRow host;
    host.name = rpc::text_of(login.getHostName(), limits::kNameBytesMax, "host name");
    host.system = rpc::text_of(login.getSystem(), limits::kNameBytesMax, "system");
    host.version = rpc::text_of(login.getVersion(), limits::kNameBytesMax, "version");
    host.public_key =
        rpc::require(SigningPublicKey::from_bytes(rpc::bytes_of(login.getPublicKey())));
    if (!params.hasHost()) rpc::throw_error({ErrorCode::kInvalid, "login carries no host"});

    // A nonce is good for one try.
    const ByteVector nonce = std::exchange(nonce_, {});
    if (nonce.empty())
      rpc::throw_error({ErrorCode::kDenied, "login came without a hello before it"});
    if (!verify(host.public_key, rpc::login_message(nonce, parts_.folder.pin),
                rpc::bytes_of(login.getSignature()))) {
      refuse({ErrorCode::kDenied, "the login's signature does not match the host's key"});
    }
    const Result<HostRow> admitted = admit(std::move(host), invite);
    if (!admitted.ok()) refuse(admitted.error());
    const HostRow& known = admitted.value();

    peer_.limit->bytes = limits::kMessageBytesMax;
    const bool trusted = known.standing == Standing::kTrusted;
    const uint64_t number = parts_.pool.attach(known.id, known.name, trusted, params.getHost(),
                                               {known.account, known.group});
    const uint64_t address = address_block(peer_.address);
    parts_.pool.set_whereabouts(known.id, number, owner_of(known).value, address, peer_.address);
    parts_.jobs->host_gone(known.id);  // A former login of it.
    parts_.jobs->host_known(known.id, trusted, false, address, owner_of(known));
    parts_.journal.note_of_host("host_connected", known.name + " from " + peer_.address, known.id);
    auto results = context.getResults();
    results.setSession(kj::heap<HostSessionServer>(parts_, known.id, number, known.name));
    results.setHostId(static_cast<uint64_t>(known.id.value));
    results.setTrusted(trusted);
    return kj::READY_NOW;
  }

  kj::Promise<void> describe(DescribeContext context) override {
    write_card(parts_, context.getResults().initCard(), kStrangersCardBytesMax);
    return kj::READY_NOW;
  }

 private:
  [[noreturn]] void refuse(const Error& error) {
    // Not an event: strangers may not fill the store.
    log_warning("coordinator", "login_refused", {{"address", peer_.address}, {"why", error}});
    rpc::throw_error(error);
  }

  // The host's row, enrolled by its invite when it is new.
  Result<HostRow> admit(HostRow host, const std::string& invite) {
    const Millis now = parts_.clock.now_wall();
    host.last_seen = now;
    SHOAL_TRY_ASSIGN(known, parts_.hosts.find(host.public_key));
    if (known) {
      if (known->standing == Standing::kBanned) {
        return Error{ErrorCode::kDenied, "this host is banned by the coordinator's administrator"};
      }
      host.id = known->id;
      if (known->account_banned) {
        return Error{ErrorCode::kDenied,
                     "the account that this host belongs to is banned by the coordinator's "
                     "administrator"};
      }
      host.standing = known->standing;
      host.account = known->account;
      host.group = known->group;
      SHOAL_TRY(parts_.hosts.update(host));
      return host;
    }
    if (invite.empty()) {
      return Error{ErrorCode::kDenied,
                   "this host is not known here, and its attach URL carries no invite; "
                   "ask the administrator for a new URL"};
    }
    host.enrolled_at = now;
    SHOAL_TRY(parts_.folder.store->transaction([&]() -> Result<void> {
      SHOAL_TRY_ASSIGN(membership, parts_.hosts.use_invite(invite_digest(invite), now));
      host.account = membership.account;
      host.group = std::move(membership.group);
      SHOAL_TRY_ASSIGN(id, parts_.hosts.enrol(host));
      host.id = id;
      return {};
    }));
    parts_.journal.note("host_enrolled", host.name, host.id);
    return host;
  }

  Parts& parts_;
  rpc::Peer peer_;
  ByteVector nonce_;  // Empty before hello, and after it was used.
};

}  // namespace

rpc::Coordinator::Client make_coordinator_server(Parts& parts, rpc::Peer peer) {
  return kj::heap<CoordinatorServer>(parts, kj::mv(peer));
}

std::string attach_url_of(const Parts& parts, const std::string& invite) {
  rpc::AttachUrl url;
  url.host = attach_host(parts.folder.settings);
  url.port = parts.port != 0 ? parts.port : parts.folder.settings.listen_port;
  url.pin = parts.folder.pin;
  url.invite = invite;
  return rpc::format_attach_url(url);
}

}  // namespace shoal
