#pragma once
// Serves work.capnp's UnitDesk to one connected host: checks what it says, and seals what it gets.

#include <functional>

#include "coordinator/rpc/parts.h"
#include "schema/work.capnp.h"

namespace shoal {

// `check` throws when the login is over; every call begins with it.
rpc::UnitDesk::Client make_unit_desk(Parts& parts, HostId host, uint64_t login,
                                     kj::Function<void()> check);

}  // namespace shoal
