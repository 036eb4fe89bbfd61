#pragma once
// Opens a stage on a device's worker: brings its shards into the cache and feeds them. It never
// sees a key or a plain weight: sealed keys pass through. Who may ask for a stage is decided
// elsewhere.
//
// Belongs to the KJ loop's thread.

#include <functional>
#include <string>
#include <vector>

#include "client/model_cache.h"
#include "client/shard_fetcher.h"
#include "schema/common.capnp.h"
#include "schema/task.h"
#include "schema/worker.capnp.h"

namespace shoal::client {

// Fails by field what is beyond limits.h. `pin` tells the coordinator that has them.
Result<std::vector<ShardFetcher::Wanted>> read_shards(capnp::List<rpc::SealedShard>::Reader shards,
                                                      const std::string& pin);

class StageLoader {
 public:
  // The session with the coordinator that has the shards, as of now; null while there is none.
  using SessionNow = std::function<kj::Maybe<rpc::HostSession::Client>()>;

  // Both outlive what the methods return.
  StageLoader(ModelCache& cache, ShardFetcher& fetcher) : cache_(cache), fetcher_(fetcher) {}

  // The world's errors are thrown as rpc::throw_error does. All shards are held meanwhile: one must
  // not push out another.
  rpc::Task<void> fetch(SessionNow session, std::vector<ShardFetcher::Wanted> wanted);

  // Fetches, then loads; a shard that was damaged on disk is fetched anew, once. `wanted` are those
  // of `spec`, which outlives the call; the caller holds them in the cache. `loading` is called
  // when the fetching is over.
  rpc::Task<rpc::Stage::Client> open(SessionNow session, rpc::Worker::Client worker,
                                     rpc::StageSpec::Reader spec,
                                     std::vector<ShardFetcher::Wanted> wanted,
                                     std::function<void()> loading);

 private:
  rpc::Task<rpc::Stage::Client> load(rpc::Worker::Client worker, rpc::StageSpec::Reader spec,
                                     std::vector<ShardFetcher::Wanted> wanted);

  ModelCache& cache_;
  ShardFetcher& fetcher_;
};

}  // namespace shoal::client
