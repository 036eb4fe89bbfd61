#pragma once
// Brings shards into the cache: asks the coordinator for chunks, several at a time, goes on where
// an earlier attempt stopped, and proves what it gets. One fetch per shard at a time, however many
// want it. No faster than its limit, and not at all while the owner's rules forbid the network.
//
// Belongs to the KJ loop's thread.

#include <kj/async.h>
#include <kj/timer.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "client/model_cache.h"
#include "client/rate_limit.h"
#include "schema/coordinator.capnp.h"
#include "schema/task.h"

namespace shoal::client {

class ShardFetcher {
 public:
  // All of these outlive the fetcher.
  ShardFetcher(ModelCache& cache, kj::Timer& timer, const Clock& clock)
      : cache_(cache), timer_(timer), clock_(clock) {}

  struct Wanted {
    Digest digest;
    uint64_t size = 0;
    std::string coordinator;  // Its pin, for who looks at transfers().
  };

  // Whether anything may be fetched. What is on its way stops at its next chunk, and goes on there
  // when it is asked for again.
  void forbid(std::string why) { forbidden_ = std::move(why); }
  void allow() { forbidden_.clear(); }
  void limit(BytesPerSecond rate) { limit_.set(rate); }
  // What arrived since this was last asked.
  Bytes take_received() { return std::exchange(received_, Bytes{0}); }

  // Resolves when the shard is on disk and proved. The caller holds it in the cache. Throws the
  // world's errors as rpc::throw_error does.
  rpc::Task<void> fetch(rpc::HostSession::Client session, Wanted wanted);

  struct Transfer {
    Digest digest;
    uint64_t done = 0, total = 0;
    double bytes_per_second = 0;  // Since it began, this time.
    std::string coordinator;
  };
  std::vector<Transfer> transfers() const;

 private:
  struct Busy {
    uint64_t done = 0, total = 0;
    uint64_t first = 0;  // What was there when the download began.
    Millis began{0};     // Monotonic.
    std::string coordinator;
    std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting;
  };
  class Turn;

  kj::Promise<void> breathe();
  rpc::Task<bool> prove(Digest digest);
  rpc::Task<bool> download(rpc::HostSession::Client session, Wanted wanted);
  void require_allowed() const;

  ModelCache& cache_;
  kj::Timer& timer_;
  const Clock& clock_;
  RateLimit limit_;
  std::string forbidden_;  // Why; empty: allowed.
  Bytes received_;
  std::map<Digest, Busy> busy_;
};

}  // namespace shoal::client
