#pragma once
// What a client prints so that a user interface or command line on another machine may pair with
// it: shoal+pair://host:port/?pin=...&token=...

#include <string>
#include <string_view>

#include "schema/transport.h"

namespace shoal::rpc {

// As an AttachUrl whose invite is the token; without a token it names a client that is paired
// already.
Result<AttachUrl> parse_pairing_url(std::string_view text);  // kInvalid names what is wrong.
std::string format_pairing_url(const AttachUrl& url);

}  // namespace shoal::rpc
