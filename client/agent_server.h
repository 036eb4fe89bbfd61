#pragma once
// agent.capnp for user interfaces and the command line: translates between the wire and the agent.
//
// Belongs to the KJ loop's thread.

#include <string>

#include "client/agent.h"
#include "schema/agent.capnp.h"

namespace shoal::client {

// Who lets user interfaces of other machines in.
class Pairer {
 public:
  struct Invitation {
    std::string url;
    Millis expires{0};  // Wall time.
  };
  virtual ~Pairer() noexcept(false) = default;
  virtual Result<Invitation> invite() = 0;
  virtual Result<void> unpair(uint64_t id) = 0;
};

// Who asks: the owner on this machine, or a user interface that he paired on another one. The
// second does not choose what runs here, where files go, and who else comes in.
enum class Asker { kOwner, kGuest };

class AgentServer final : public rpc::Agent::Server {
 public:
  // Both outlive the server.
  AgentServer(Agent& agent, Pairer& pairer, Asker asker = Asker::kOwner)
      : agent_(agent), pairer_(pairer), asker_(asker) {}

  kj::Promise<void> snapshot(SnapshotContext context) override;
  kj::Promise<void> benchmark(BenchmarkContext context) override;
  kj::Promise<void> stop(StopContext context) override;
  kj::Promise<void> attach(AttachContext context) override;
  kj::Promise<void> detach(DetachContext context) override;
  kj::Promise<void> previewAttach(PreviewAttachContext context) override;
  kj::Promise<void> setMode(SetModeContext context) override;
  kj::Promise<void> resume(ResumeContext context) override;
  kj::Promise<void> setLeaveBy(SetLeaveByContext context) override;
  kj::Promise<void> settings(SettingsContext context) override;
  kj::Promise<void> changeSettings(ChangeSettingsContext context) override;
  kj::Promise<void> trace(TraceContext context) override;
  kj::Promise<void> whatIf(WhatIfContext context) override;
  kj::Promise<void> statistics(StatisticsContext context) override;
  kj::Promise<void> history(HistoryContext context) override;
  kj::Promise<void> receipts(ReceiptsContext context) override;
  kj::Promise<void> verifyReceipts(VerifyReceiptsContext context) override;
  kj::Promise<void> setConsent(SetConsentContext context) override;
  kj::Promise<void> setDeviceLent(SetDeviceLentContext context) override;
  kj::Promise<void> log(LogContext context) override;
  kj::Promise<void> bundle(BundleContext context) override;
  kj::Promise<void> testSensor(TestSensorContext context) override;
  kj::Promise<void> pair(PairContext context) override;
  kj::Promise<void> pairings(PairingsContext context) override;
  kj::Promise<void> unpair(UnpairContext context) override;

 private:
  Agent& agent_;
  Pairer& pairer_;
  const Asker asker_;

  void require_owner() const;
};

}  // namespace shoal::client
