#pragma once
// Holds what a bug report may say and what it may not: no keys, invites, tokens, addresses, and no
// names of people, machines, programs and folders.

#include <string>
#include <string_view>
#include <vector>

#include "schema/task.h"

namespace shoal::client {

// A copy in which every URL, address, long key-like word, and every one of `words` (names of people
// and machines, folders) is replaced by what it is, such as "<address>".
std::string redact(std::string_view text, const std::vector<std::string>& words);

class Agent;
// Versions, devices, settings, states, the last day's trace, the log.
// What it may not say is taken out bit by bit: other events go on meanwhile.
rpc::Task<std::string> make_bundle(Agent& agent);

}  // namespace shoal::client
