#pragma once
// What this coordinator asks of hosts, and how one host stands with it: what the hosts' door tells
// owners about work and its worth.

#include "coordinator/rpc/parts.h"
#include "schema/coordinator.capnp.h"

namespace shoal {

// The published models that can be used; read anew after forget_offered_models().
const std::vector<OfferedModel>& offered_models(Parts& parts);
void forget_offered_models(Parts& parts);

// As many offers as `bytes_max` holds, roughly. What is for a group's hosts alone is told to them
// alone.
void write_card(Parts& parts, rpc::CoordinatorCard::Builder out, size_t bytes_max,
                const std::string& group = {});

// Since when a host's devices are as they are.
struct StandingSince {
  std::string state, code;
  Millis since;  // Wall clock.
};

// Why each device of the host gets no work, and the sums of its ledger. `since` is kept from one
// call to the next.
void write_standing(Parts& parts, const Pool::Host& host,
                    std::map<std::string, StandingSince>& since, rpc::HostStanding::Builder out);

}  // namespace shoal
