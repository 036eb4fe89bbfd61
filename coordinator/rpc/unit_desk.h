#pragma once
// Serves work.capnp's UnitDesk to one connected host: checks what it says, and seals what it gets.

#include <map>
#include <utility>
#include <vector>

#include "coordinator/rpc/parts.h"
#include "schema/work.capnp.h"

namespace shoal {

// The keys of models' shards, sealed for the workers of one login: sealing takes longer than all
// the rest of a unit, and is the same for the same worker.
class SealedKeys {
 public:
  explicit SealedKeys(ShardStore& shards) : shards_(shards) {}  // It outlives this.
  // By fragment.
  const std::vector<ByteVector>& of(const LiveModel& model, const BoxPublicKey& worker);

 private:
  static constexpr size_t kKeptMax = 64;  // A worker that restarts has another key.

  ShardStore& shards_;
  std::map<std::pair<decltype(BoxPublicKey::bytes), ModelId>, std::vector<ByteVector>> keys_;
};

// `check` throws when the login is over; every call begins with it, and what it holds keeps `keys`.
rpc::UnitDesk::Client make_unit_desk(Parts& parts, HostId host, uint64_t login, SealedKeys& keys,
                                     kj::Function<void()> check);

}  // namespace shoal
