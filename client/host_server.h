#pragma once
// What a coordinator may ask of this host (coordinator.capnp, Host): checks each lease against what
// the owner lends, brings the shards, feeds the worker, and hands out stages that end with their
// lease. It never sees a key or a plain weight: sealed keys pass through.
//
// Belongs to the KJ loop's thread.

#include <kj/async.h>
#include <kj/timer.h>

#include <string>

#include "base/result.h"
#include "client/coordinator_link.h"
#include "client/model_cache.h"
#include "client/shard_fetcher.h"
#include "schema/coordinator.capnp.h"
#include "schema/task.h"
#include "schema/worker.capnp.h"

namespace shoal::client {

// What is counted for each device, for its owner to see.
struct DeviceUse {
  uint32_t stages = 0;  // Now.
  uint64_t steps = 0, rows = 0;
};

class HostServer final : public rpc::Host::Server {
 public:
  class Needs {
   public:
    virtual ~Needs() noexcept(false) = default;
    // The worker of a device that may be given work now; why not, otherwise.
    virtual Result<rpc::Worker::Client> worker_of(const std::string& device_id) = 0;
    virtual DeviceUse& use_of(
        const std::string& device_id) = 0;  // REQUIRES: worker_of() was ok once.
    virtual void use_changed() = 0;
  };

  // What is borrowed outlives every connection.
  HostServer(kj::Timer& timer, ModelCache& cache, ShardFetcher& fetcher, Needs& needs,
             kj::Own<SessionSlot> slot)
      : timer_(timer), cache_(cache), fetcher_(fetcher), needs_(needs), slot_(kj::mv(slot)) {}

  kj::Promise<void> openStage(OpenStageContext context) override;
  kj::Promise<void> fetchShards(FetchShardsContext context) override;
  kj::Promise<void> ping(PingContext) override { return kj::READY_NOW; }

 private:
  rpc::Task<void> open_stage(OpenStageContext context);
  rpc::Task<void> fetch_all(std::vector<ShardFetcher::Wanted> wanted);
  // Feeds the worker from the cache.
  rpc::Task<rpc::Stage::Client> load(rpc::Worker::Client worker, OpenStageContext context,
                                     std::vector<ShardFetcher::Wanted> wanted);

  kj::Timer& timer_;
  ModelCache& cache_;
  ShardFetcher& fetcher_;
  Needs& needs_;
  kj::Own<SessionSlot> slot_;
};

}  // namespace shoal::client
