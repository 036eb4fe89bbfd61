#pragma once
// What a coordinator may ask of this host (coordinator.capnp, Host): checks each lease against what
// the owner lends and allows, brings the shards, feeds the worker, and hands out stages that end
// with their lease. It never sees a key or a plain weight: sealed keys pass through.
//
// Belongs to the KJ loop's thread.

#include <kj/async.h>
#include <kj/timer.h>

#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "client/coordinator_link.h"
#include "client/model_cache.h"
#include "client/path_door.h"
#include "client/shard_fetcher.h"
#include "client/stage_loader.h"
#include "client/work_list.h"
#include "schema/coordinator.capnp.h"
#include "schema/direct.capnp.h"
#include "schema/task.h"
#include "schema/worker.capnp.h"

namespace shoal::client {

// What one step cost.
struct StepCost {
  uint64_t rows = 0;
  uint64_t device_micros = 0;  // As the worker saw it.
  Bytes received, sent;
};

class HostServer final : public rpc::DirectHost::Server {
 public:
  class Needs {
   public:
    virtual ~Needs() noexcept(false) = default;
    // The worker of a device that may be given work now; why not, otherwise.
    virtual Result<rpc::Worker::Client> worker_of(const std::string& device_id) = 0;
    // Whether the owner lets this coordinator's work of that class in.
    virtual Result<void> consents(const std::string& pin, const JobClass& job_class) = 0;
    // Whether a standby may fetch: a device is lent and allowed, and so is the network.
    virtual Result<void> may_fetch() = 0;
    virtual std::string coordinator_name(const std::string& pin) const = 0;  // As people know it.
    virtual WorkList& work_list() = 0;
    virtual void work_changed() = 0;  // A stage came, went, or is in another state.
    // From the moment when the worker is asked to that when it answered, or need not any more.
    virtual void step_began(const std::string& device_id) = 0;
    virtual void step_ended(const std::string& device_id) = 0;
    virtual void step_ran(const StageWork& work, const StepCost& cost) = 0;
    // Resolves when so much may be sent, by the owner's limit.
    virtual kj::Promise<void> may_send(Bytes bytes) = 0;
    // Where stages meet their neighbours; null: there is no such place.
    virtual PathDoor* path_door() { return nullptr; }
  };

  // What is borrowed outlives every connection. `pin` tells the coordinator.
  HostServer(kj::Timer& timer, const Clock& clock, ModelCache& cache, ShardFetcher& fetcher,
             Needs& needs, std::string pin, kj::Own<SessionSlot> slot)
      : timer_(timer),
        clock_(clock),
        cache_(cache),
        loader_(cache, fetcher),
        needs_(needs),
        pin_(std::move(pin)),
        slot_(kj::mv(slot)) {}

  kj::Promise<void> openStage(OpenStageContext context) override;
  kj::Promise<void> fetchShards(FetchShardsContext context) override;
  kj::Promise<void> ping(PingContext) override { return kj::READY_NOW; }
  kj::Promise<void> door(DoorContext context) override;

 private:
  rpc::Task<void> open_stage(OpenStageContext context, kj::Own<WorkList::Entry> entry);
  kj::Own<WorkList::Entry> enter(rpc::StageLease::Reader lease);
  StageLoader::SessionNow session_now();  // Of this object, which outlives it.

  kj::Timer& timer_;
  const Clock& clock_;
  ModelCache& cache_;
  StageLoader loader_;
  Needs& needs_;
  std::string pin_;
  kj::Own<SessionSlot> slot_;
};

}  // namespace shoal::client
