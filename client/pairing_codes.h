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
  static constexpr int kTriesMax = 5;

  // A token that pairs one user interface until `kOpenFor` from now; an earlier one ends.
  std::string open(Millis now);
  Millis expires() const { return expires_; }
  // Forgets the open token.
  void close() { digest_.clear(); }

  // Whether `token` is the open one, which is used up by that. A wrong one counts as a try.
  bool use(const std::string& token, Millis now);

 private:
  std::string digest_;  // Empty: nothing is open.
  Millis expires_{0};   // Monotonic.
  int tries_ = 0;
};

// The one whose token this is; null when there is none. Looks at all of them, in the same time.
const Pairing* find_pairing(const std::vector<Pairing>& pairings, const std::string& token);

}  // namespace shoal::client
