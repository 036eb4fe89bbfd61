#pragma once
// What a host signs to prove its identity: said once, for the side that signs and the side that
// checks.

#include <string_view>

#include "base/bytes.h"

namespace shoal::rpc {

// The message of Login.signature: "shoal-login-1", the server's nonce, and the pin's text as the
// attach URL carries it, so that a signature made for one coordinator is worth nothing to another.
inline ByteVector login_message(ByteSpan nonce, std::string_view pin) {
  ByteWriter message;
  message.text("shoal-login-1");
  message.bytes(nonce);
  message.text(pin);
  return message.take();
}

}  // namespace shoal::rpc
