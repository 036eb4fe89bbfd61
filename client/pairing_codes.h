#pragma once
// Decides whether a stranger at the remote door may come in: by a token that its owner just asked
// for, once, or by the one that it was given then. Holds digests only. No clock, no I/O.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "client/client_state.h"

namespace shoal::client {

// 128 bits, in hex.
std::string make_token();
std::string token_digest(const std::string& token);

class PairingCodes {
 public:
  static constexpr Millis kOpenFor{10 * 60'000};

  // A token that pairs one user interface until `kOpenFor` from now; an earlier one ends.
  std::string open(Millis now);
  // Forgets the open token.
  void close() { digest_.clear(); }

  // Whether `token` is the open one, which is used up by that. Wrong ones are for others to count:
  // if they ended it, any stranger could.
  bool use(const std::string& token, Millis now);

 private:
  std::string digest_;  // Empty: nothing is open.
  Millis expires_{0};   // Monotonic.
};

// The one whose token this is; null when there is none. Looks at all of them, in the same time.
const Pairing* find_pairing(const std::vector<Pairing>& pairings, const std::string& token);

}  // namespace shoal::client
