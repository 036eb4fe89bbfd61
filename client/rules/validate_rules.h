#pragma once
// Whether the texts among the settings mean something: hours, prices, addresses, programs. What the
// table of settings can check by itself is not asked again.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/settings.h"

namespace shoal::client {

// The error names the key, the text and the place in it.
Result<void> validate_rules(const Settings& settings);

struct ListenAddress {
  std::string host;  // A name or an address, without brackets.
  uint16_t port = 0;
};
// "0.0.0.0:7411", "[::]:7411", "name:7411".
Result<ListenAddress> parse_listen_address(std::string_view text);

}  // namespace shoal::client
