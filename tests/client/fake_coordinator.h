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
#include "schema/login.h"
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

  // What it saw.
  int logins = 0, pings = 0, leaves = 0;
  uint64_t reads = 0, bytes_read = 0;
  uint64_t first_offset = UINT64_MAX;  // Of the last run of reads.
  std::string host_name;
  SigningPublicKey host_key;
  kj::Maybe<rpc::Host::Client> host;
  struct Device {
    std::string id, reason;
    rpc::DeviceReport::State state;
    size_t key_bytes;
    bool exact;
    double decode;
  };
  std::vector<std::vector<Device>> reports;

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

  class Session final : public rpc::HostSession::Server {
   public:
    explicit Session(FakeCoordinator& to) : to_(to) {}
    kj::Promise<void> report(ReportContext context) override {
      std::vector<Device> devices;
      for (const auto device : context.getParams().getDevices()) {
        devices.push_back({device.getInfo().getId().cStr(), device.getReason().cStr(),
                           device.getState(), device.getWorkerKey().size(),
                           device.getSelfTest().getExact(),
                           device.getBenchmark().getDecodeRowsPerSecond()});
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
    kj::Promise<void> ping(PingContext context) override {
      ++to_.pings;
      context.getResults().setIntervalMs(100);
      to_.changed();
      return kj::READY_NOW;
    }
    kj::Promise<void> leave(LeaveContext) override {
      ++to_.leaves;
      to_.changed();
      return kj::READY_NOW;
    }

   private:
    FakeCoordinator& to_;
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
