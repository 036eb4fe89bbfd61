#pragma once
// A coordinator for tests of the client: real TLS on loopback, the real schema, and nothing behind
// it. It records what it is told and serves the shards that it was given.

#include <kj/async-io.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/secrets.h"
#include "schema/coordinator.capnp.h"
#include "schema/ledger_day.h"
#include "schema/login.h"
#include "schema/merkle.h"
#include "schema/receipt.h"
#include "schema/transport.h"

namespace shoal::client {

struct FakeCoordinator {
  explicit FakeCoordinator(kj::AsyncIoContext& io) : io(io) {}

  kj::AsyncIoContext& io;
  rpc::Certificate certificate = rpc::make_certificate().value();
  uint16_t port = 0;
  kj::Own<rpc::Listener> listener;

  // How it behaves.
  std::string invite;           // The only good one.
  bool knows_everyone = false;  // No invite is asked for.
  Error refusal;                // What login fails with, when it has a message.
  uint32_t protocol = rpc::PROTOCOL_VERSION;
  std::map<Digest, ByteVector> shards;
  int wrong_reads = 0;                     // So many reads of shards get another content.
  uint64_t reads_until_drop = UINT64_MAX;  // After so many the connection is dropped.
  SigningKey receipt_key = SigningKey::generate();
  std::vector<Receipt> receipts;  // Of the host; signed, numbered from 1.
  double credit_stated = 0;       // Confirmed.
  std::vector<JobClass> offers;   // On its card.
  bool mute = false;              // Answers no ping.

  // Units of jobs. Their lease is 1 more than their place, their id 100 more.
  struct Unit {
    std::function<void(rpc::Unit::Builder unit)> fill;
    bool leased = false, over = false;
  };
  bool knows_units = false;
  std::vector<Unit> units;
  bool leases_slowly = false;  // A question for units gets no answer.
  uint32_t units_per_lease = 8;
  uint64_t until_ms = 600'000;
  uint32_t ask_again_ms = 100;
  bool hands_again = true;  // What a desk has not handed out yet.
  int lost_answers = 0;     // Of so many submits; the connection goes with them.
  rpc::UnitDesk::Outcome outcome = rpc::UnitDesk::Outcome::ACCEPTED;
  std::function<void()> on_submit;  // Called before it is answered.
  // Likewise; what it throws is the answer.
  std::function<void()> on_read_receipts, on_ledger_day;

  struct GivenBack {
    uint64_t lease;
    rpc::UnitDesk::GiveBack reason;
    std::string text;
  };
  std::vector<GivenBack> given_back;
  struct Renewed {
    uint64_t lease;
    uint32_t items_done;
    bool running;
  };
  std::vector<Renewed> renewed;
  std::vector<uint32_t> seconds_asked;
  int submits = 0;
  using Values = std::vector<std::vector<float>>;
  std::map<uint64_t, Values> submitted;  // By lease: the numbers of each item.

  // What it saw.
  int logins = 0, pings = 0, leaves = 0;
  uint64_t reads = 0, bytes_read = 0;
  uint64_t first_offset = UINT64_MAX;  // Of the last run of reads.
  std::string host_name;
  SigningPublicKey host_key;
  kj::Maybe<rpc::Host::Client> host;
  struct Device {
    std::string id, reason, why;
    uint64_t available_ms;
    int64_t memory_bytes;
    rpc::DeviceReport::State state;
    size_t key_bytes;
    ByteVector key;
    bool exact;
    double decode;
  };
  std::vector<std::vector<Device>> reports;
  LedgerDay day;  // Of all receipts; a count of 0: it is not over.
  int days_asked = 0;
  double credit_rate = 0;
  std::string credit_unit;
  std::vector<std::vector<JobClass>> consents;  // What was denied, each time it was told.
  bool reported_first = false;  // A report came before anything was said of consent.

  rpc::AttachUrl url() const { return {"127.0.0.1", port, rpc::pin_of(certificate.der), invite}; }

  void listen() {
    listener =
        rpc::listen_tls(io.provider->getNetwork(), io.provider->getTimer(), "127.0.0.1", port,
                        certificate, [this](rpc::Peer peer) { return make(kj::mv(peer)); })
            .wait(io.waitScope);
    port = listener->port();
  }
  void drop_everyone() {
    host = nullptr;
    listener = nullptr;
  }

  // Until `done` holds after something that a client did. ctest's limit ends a wait for ever.
  void wait_until(const std::function<bool()>& done) {
    while (!done()) {
      auto pair = kj::newPromiseAndFulfiller<void>();
      changed_fulfiller = kj::mv(pair.fulfiller);
      pair.promise.wait(io.waitScope);
    }
  }
  void changed() {
    if (changed_fulfiller.get() != nullptr) changed_fulfiller->fulfill();
  }

  kj::Own<kj::PromiseFulfiller<void>> changed_fulfiller;

  void add_receipt(double credit, HostId host = HostId{5}) {
    Receipt receipt;
    receipt.number = receipts.size() + 1;
    receipt.host = host;
    receipt.lease = LeaseId{static_cast<int64_t>(receipts.size() + 1)};
    receipt.device = "fake";
    receipt.job_class = {"generate", "m", false};
    receipt.rows = 10;
    receipt.credit = credit;
    receipt.verdict = ReceiptVerdict::kConfirmed;
    receipt.at = Millis{1'700'000'000'000};
    sign_receipt(receipt, receipt_key);
    receipts.push_back(std::move(receipt));
    credit_stated += credit;
  }
  // Gives the receipts so far, which are of one day, their root.
  void close_day() {
    std::vector<Digest> leaves;
    for (const Receipt& receipt : receipts) leaves.push_back(receipt_leaf(receipt));
    day = {day_of(receipts.front().at), leaves.size(), MerkleTree(leaves).root(), {}, {}};
    sign_ledger_day(day, receipt_key);
  }
  void write_card(rpc::CoordinatorCard::Builder card) {
    card.setName("fake");
    card.setOperator("a test");
    auto list = card.initOffers(static_cast<uint32_t>(offers.size()));
    for (uint32_t i = 0; i < offers.size(); ++i) {
      write_job_class(offers[i], list[i].initJobClass());
      list[i].setSealedBytes(1'000);
    }
  }

  class Desk final : public rpc::UnitDesk::Server {
   public:
    explicit Desk(FakeCoordinator& to) : to_(to), handed_(1000) {}

    kj::Promise<void> lease(LeaseContext context) override {
      to_.seconds_asked.push_back(context.getParams().getSeconds());
      to_.changed();
      if (to_.leases_slowly) return kj::NEVER_DONE;
      std::vector<size_t> given;
      for (size_t i = 0; i < to_.units.size() && given.size() < to_.units_per_lease; ++i) {
        Unit& unit = to_.units[i];
        if (unit.over || handed_[i] || (unit.leased && !to_.hands_again)) continue;
        unit.leased = handed_[i] = true;
        given.push_back(i);
      }
      auto results = context.getResults();
      auto list = results.initUnits(static_cast<uint32_t>(given.size()));
      for (uint32_t i = 0; i < list.size(); ++i) {
        to_.units[given[i]].fill(list[i]);
        list[i].setLeaseId(given[i] + 1);
        list[i].setId(given[i] + 101);
        list[i].setUntilMs(to_.until_ms);
      }
      results.setAskAgainMs(to_.ask_again_ms);
      results.initWhy().setCode("standing.no_request");
      to_.changed();
      return kj::READY_NOW;
    }
    kj::Promise<void> renew(RenewContext context) override {
      const auto progress = context.getParams().getProgress();
      auto until = context.getResults().initUntilMs(progress.size());
      for (uint32_t i = 0; i < progress.size(); ++i) {
        const uint64_t lease = progress[i].getLeaseId();
        to_.renewed.push_back({lease, progress[i].getItemsDone(), progress[i].getRunning()});
        const Unit* const unit = to_.unit_of(lease);
        until.set(i, unit == nullptr || !unit->leased || unit->over ? 0 : to_.until_ms);
      }
      to_.changed();
      return kj::READY_NOW;
    }
    kj::Promise<void> giveBack(GiveBackContext context) override {
      const auto params = context.getParams();
      to_.given_back.push_back(
          {params.getLeaseId(), params.getReason(), std::string(params.getText().cStr())});
      if (Unit* const unit = to_.unit_of(params.getLeaseId())) unit->over = true;
      to_.changed();
      return kj::READY_NOW;
    }
    kj::Promise<void> submit(SubmitContext context) override {
      const auto params = context.getParams();
      ++to_.submits;
      Values values;
      for (const auto item : params.getOutput().getItems()) {
        values.emplace_back();
        if (item.isTokens()) {
          for (const int32_t token : item.getTokens()) values.back().push_back(float(token));
        } else {
          for (const float number : item.isVector() ? item.getVector() : item.getLogLikelihoods()) {
            values.back().push_back(number);
          }
        }
      }
      const bool repeated = to_.submitted.contains(params.getLeaseId());
      to_.submitted[params.getLeaseId()] = std::move(values);
      if (Unit* const unit = to_.unit_of(params.getLeaseId())) unit->over = true;
      if (to_.on_submit) to_.on_submit();
      to_.changed();
      if (to_.lost_answers > 0) {
        --to_.lost_answers;
        return KJ_EXCEPTION(DISCONNECTED, "the answer is lost");
      }
      context.getResults().setOutcome(repeated ? rpc::UnitDesk::Outcome::REPEATED : to_.outcome);
      return kj::READY_NOW;
    }

   private:
    FakeCoordinator& to_;
    std::vector<bool> handed_;
  };
  Unit* unit_of(uint64_t lease) {
    return lease == 0 || lease > units.size() ? nullptr : &units[lease - 1];
  }

  class Session final : public rpc::HostSession::Server {
   public:
    explicit Session(FakeCoordinator& to) : to_(to) {}
    kj::Promise<void> report(ReportContext context) override {
      if (!told_) to_.reported_first = true;
      std::vector<Device> devices;
      for (const auto device : context.getParams().getDevices()) {
        devices.push_back(
            {device.getInfo().getId().cStr(), device.getReason().cStr(),
             device.getWhy().getCode().cStr(), device.getAvailableMs(),
             static_cast<int64_t>(device.getInfo().getMemoryBytes()), device.getState(),
             device.getWorkerKey().size(), to_vector(rpc::bytes_of(device.getWorkerKey())),
             device.getSelfTest().getExact(), device.getBenchmark().getDecodeRowsPerSecond()});
      }
      to_.reports.push_back(std::move(devices));
      to_.changed();
      return kj::READY_NOW;
    }
    kj::Promise<void> readShard(ReadShardContext context) override {
      const auto params = context.getParams();
      if (to_.reads >= to_.reads_until_drop) {
        kj::throwFatalException(KJ_EXCEPTION(DISCONNECTED, "the fake is gone"));
      }
      const Digest digest = Digest::from_bytes(rpc::bytes_of(params.getDigest())).value();
      const auto found = to_.shards.find(digest);
      if (found == to_.shards.end()) rpc::throw_error({ErrorCode::kNotFound, "no such shard"});
      ++to_.reads;
      to_.bytes_read += params.getLength();
      to_.first_offset = std::min(to_.first_offset, params.getOffset());
      auto bytes = context.getResults().initBytes(params.getLength());
      memcpy(bytes.begin(), found->second.data() + params.getOffset(), params.getLength());
      if (to_.wrong_reads > 0) {
        --to_.wrong_reads;
        bytes[0] ^= 1;
      }
      return kj::READY_NOW;
    }
    kj::Promise<void> units(UnitsContext context) override {
      if (!to_.knows_units) return rpc::HostSession::Server::units(context);
      context.getResults().setDesk(kj::heap<Desk>(to_));
      return kj::READY_NOW;
    }
    kj::Promise<void> ping(PingContext context) override {
      ++to_.pings;
      if (to_.mute) return kj::NEVER_DONE;
      context.getResults().setIntervalMs(100);
      auto standing = context.getResults().initStanding();
      standing.setNewestReceipt(to_.receipts.size());
      standing.setCreditConfirmed(to_.credit_stated);
      standing.setCreditRate(to_.credit_rate);
      standing.setCreditUnit(to_.credit_unit);
      standing.setNewestLedgerDay(to_.day.day);
      auto device = standing.initDevices(1)[0];
      device.setDeviceId("fake");
      device.setState("pooled");
      to_.changed();
      return kj::READY_NOW;
    }
    kj::Promise<void> describe(DescribeContext context) override {
      to_.write_card(context.getResults().initCard());
      context.getResults().setReceiptKey(rpc::kj_bytes(to_.receipt_key.public_key().bytes));
      return kj::READY_NOW;
    }
    kj::Promise<void> setConsent(SetConsentContext context) override {
      std::vector<JobClass> denied;
      for (const auto in : context.getParams().getDenied()) denied.push_back(read_job_class(in));
      told_ = true;
      to_.consents.push_back(std::move(denied));
      to_.changed();
      return kj::READY_NOW;
    }
    kj::Promise<void> readReceipts(ReadReceiptsContext context) override {
      if (to_.on_read_receipts) to_.on_read_receipts();
      const auto params = context.getParams();
      const uint64_t first = std::min<uint64_t>(params.getAfterNumber(), to_.receipts.size());
      const uint64_t count = std::min<uint64_t>(params.getCountMax(), to_.receipts.size() - first);
      auto list = context.getResults().initReceipts(static_cast<uint32_t>(count));
      for (uint32_t i = 0; i < count; ++i) write_receipt(to_.receipts[first + i], list[i]);
      return kj::READY_NOW;
    }
    // Two proofs at a time.
    kj::Promise<void> ledgerDay(LedgerDayContext context) override {
      const auto params = context.getParams();
      ++to_.days_asked;
      if (to_.on_ledger_day) to_.on_ledger_day();
      if (params.getFromDay() > to_.day.day) return kj::READY_NOW;
      auto results = context.getResults();
      write_ledger_day(to_.day, results.initDay());
      std::vector<Digest> leaves;
      for (const Receipt& receipt : to_.receipts) leaves.push_back(receipt_leaf(receipt));
      const MerkleTree tree(leaves);
      const uint64_t first = std::min<uint64_t>(params.getAfterNumber(), leaves.size());
      const uint64_t count = std::min<uint64_t>(2, leaves.size() - first);
      auto list = results.initProofs(static_cast<uint32_t>(count));
      for (uint32_t i = 0; i < count; ++i) {
        write_receipt_proof({first + i + 1, first + i, tree.path(first + i)}, list[i]);
      }
      results.setMore(first + count < leaves.size());
      return kj::READY_NOW;
    }
    kj::Promise<void> leave(LeaveContext) override {
      ++to_.leaves;
      to_.changed();
      return kj::READY_NOW;
    }

   private:
    FakeCoordinator& to_;
    bool told_ = false;  // On this connection.
  };

  class Door final : public rpc::Coordinator::Server {
   public:
    Door(FakeCoordinator& to, rpc::Peer peer) : to_(to), peer_(kj::mv(peer)), nonce_(32) {
      fill_secret(nonce_);
    }
    kj::Promise<void> hello(HelloContext context) override {
      auto results = context.getResults();
      results.setNonce(rpc::kj_bytes(nonce_));
      results.setProtocolVersion(to_.protocol);
      results.setName("fake");
      return kj::READY_NOW;
    }
    kj::Promise<void> describe(DescribeContext context) override {
      to_.write_card(context.getResults().initCard());
      return kj::READY_NOW;
    }
    kj::Promise<void> login(LoginContext context) override {
      const auto login = context.getParams().getLogin();
      ++to_.logins;
      if (!to_.refusal.message.empty()) rpc::throw_error(to_.refusal);
      const SigningPublicKey key =
          SigningPublicKey::from_bytes(rpc::bytes_of(login.getPublicKey())).value();
      const ByteVector message = rpc::login_message(nonce_, rpc::pin_of(to_.certificate.der));
      if (!verify(key, message, rpc::bytes_of(login.getSignature()))) {
        rpc::throw_error({ErrorCode::kDenied, "wrong signature"});
      }
      if (!to_.knows_everyone && to_.invite != login.getInvite().cStr()) {
        rpc::throw_error({ErrorCode::kDenied, "this invite has expired: ask for another"});
      }
      peer_.limit->bytes = limits::kMessageBytesMax;
      to_.knows_everyone = true;
      to_.host_name = login.getHostName().cStr();
      to_.host_key = key;
      to_.host = context.getParams().getHost();
      auto results = context.getResults();
      results.setSession(kj::heap<Session>(to_));
      results.setHostId(5);
      to_.changed();
      return kj::READY_NOW;
    }

   private:
    FakeCoordinator& to_;
    rpc::Peer peer_;
    ByteVector nonce_;
  };

  capnp::Capability::Client make(rpc::Peer peer) { return kj::heap<Door>(*this, kj::mv(peer)); }
};

}  // namespace shoal::client
