#pragma once
// Brings shards into the cache: asks the coordinator for chunks, several at a time, goes on where
// an earlier attempt stopped, and proves what it gets. One fetch per shard at a time, however many
// want it.
//
// Belongs to the KJ loop's thread.

#include <kj/async.h>
#include <kj/timer.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "client/model_cache.h"
#include "schema/coordinator.capnp.h"
#include "schema/task.h"

namespace shoal::client {

class ShardFetcher {
 public:
  // Both outlive the fetcher.
  ShardFetcher(ModelCache& cache, kj::Timer& timer) : cache_(cache), timer_(timer) {}

  struct Wanted {
    Digest digest;
    uint64_t size = 0;
  };
  // Resolves when the shard is on disk and proved. The caller holds it in the cache. Throws the
  // world's errors as rpc::throw_error does.
  rpc::Task<void> fetch(rpc::HostSession::Client session, Wanted wanted);

  struct Transfer {
    Digest digest;
    uint64_t done = 0, total = 0;
  };
  std::vector<Transfer> transfers() const;

 private:
  struct Busy {
    uint64_t done = 0, total = 0;
    std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting;
  };
  class Turn;

  kj::Promise<void> breathe();
  rpc::Task<bool> prove(Digest digest);
  rpc::Task<bool> download(rpc::HostSession::Client session, Wanted wanted, uint64_t& progress);

  ModelCache& cache_;
  kj::Timer& timer_;
  std::map<Digest, Busy> busy_;
};

}  // namespace shoal::client
