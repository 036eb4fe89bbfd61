#pragma once
// The hosts' door (schema/coordinator.capnp): who may come in, what a host reports, the shards it
// may read, whether it is still alive. Checks all input against schema/limits.h.

#include "coordinator/rpc/parts.h"
#include "schema/coordinator.capnp.h"
#include "schema/transport.h"

namespace shoal {

// The bootstrap capability of one connection. `parts` outlives it.
rpc::Coordinator::Client make_coordinator_server(Parts& parts, rpc::Peer peer);

}  // namespace shoal
