#pragma once
// The client as a whole: one worker for each lent device, one link for each coordinator, the cache
// between them, and what all of it looks like from outside. Holds the parts and introduces them.
//
// Belongs to the KJ loop's thread.

#include <kj/async-io.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/host.h"
#include "base/secrets.h"
#include "base/settings.h"
#include "client/client_state.h"
#include "client/coordinator_link.h"
#include "client/host_server.h"
#include "client/model_cache.h"
#include "client/shard_fetcher.h"
#include "client/worker_process.h"
#include "schema/agent.capnp.h"

namespace shoal::client {

struct AgentOptions {
  std::vector<DeviceFacts> devices;  // Those that are lent.
  std::vector<std::string> urls;     // Coordinators beside those in the state.
  std::string worker_program;
  std::vector<std::string> worker_arguments;  // Before its own; for tests.
  int threads = 0;
  Bytes worker_memory_max{0};
  Millis worker_hang_max{10'000};
};

class Agent final : private WorkerProcess::Needs,
                    private CoordinatorLink::Needs,
                    private HostServer::Needs {
 public:
  // Everything passed outlives the agent. Starts at once.
  Agent(Loop loop, const Clock& clock, Random& random, const SigningKey& identity,
        ClientState& state, ModelCache& cache, AgentOptions options);
  ~Agent() noexcept(false);
  KJ_DISALLOW_COPY(Agent);

  // Grows with every change that a snapshot shows.
  uint64_t revision() const { return revision_; }
  kj::Promise<void> changed_after(uint64_t revision);
  void write_snapshot(rpc::Snapshot::Builder snapshot);

  // Waits until the device has no stage, then measures it again.
  rpc::Task<Measurement> measure(std::string device_id);
  // Contacts the coordinator, enrols, stays attached; which of the snapshot's connections it is.
  rpc::Task<uint32_t> attach(std::string url);
  rpc::Task<int> detach(std::string url);

  void request_stop();
  kj::Promise<void> stop_requested();
  // Leaves every coordinator, then stops every worker. Takes two seconds at most.
  rpc::Task<void> shut_down();

 private:
  struct Lent {
    DeviceFacts facts;
    DeviceUse use;
    std::optional<Measurement> measurement;
    kj::Own<WorkerProcess> worker;
  };

  void worker_changed(WorkerProcess& worker) override;
  kj::Promise<void> prepare(WorkerProcess& worker, rpc::Worker::Client client,
                            DeviceFacts facts) override;

  const SigningKey& identity() const override { return identity_; }
  rpc::Host::Client make_host(kj::Own<SessionSlot> slot) override;
  void write_report(rpc::HostSession::ReportParams::Builder report) override;
  void link_changed(CoordinatorLink& link) override;

  Result<rpc::Worker::Client> worker_of(const std::string& device_id) override;
  DeviceUse& use_of(const std::string& device_id) override;
  void use_changed() override { changed(); }

  Lent* find(const std::string& device_id);  // Null when it is not lent.
  Lent& lent_of(const WorkerProcess& worker);
  void write_device(Lent& lent, rpc::DeviceReport::Builder report);
  rpc::Task<void> prepare_device(std::string device_id, rpc::Worker::Client client);
  void start_link(const rpc::AttachUrl& url);
  void changed();

  Loop loop_;
  const Clock& clock_;
  Random& random_;
  const SigningKey& identity_;
  ClientState& state_;
  ModelCache& cache_;
  ShardFetcher fetcher_;
  AgentOptions options_;
  uint64_t revision_ = 1;
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> watchers_;
  kj::Own<kj::PromiseFulfiller<void>> stop_fulfiller_;
  kj::ForkedPromise<void> stop_promise_;
  std::vector<std::unique_ptr<Lent>> lent_;
  // Last: what coordinators hold ends before what it uses.
  std::vector<kj::Own<CoordinatorLink>> links_;
};

// Self-test, then benchmark.
rpc::Task<Measurement> measure_worker(kj::Timer& timer, rpc::Worker::Client client);

// Contacts the coordinator once and enrols with the URL's invite. What an attachment is made of.
rpc::Task<Attachment> enrol(Loop loop, rpc::AttachUrl url, const SigningKey& identity);

}  // namespace shoal::client
