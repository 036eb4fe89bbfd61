#pragma once
// The administrators' door (schema/admin.capnp): models, hosts, invites, sessions, events,
// generation. Checks all input against schema/limits.h.

#include "coordinator/rpc/parts.h"
#include "schema/admin.capnp.h"

namespace shoal {

rpc::Admin::Client make_admin_server(Parts& parts);  // `parts` outlives it.

}  // namespace shoal
