#include "client/pairing_codes.h"

#include "base/digest.h"
#include "base/random.h"
#include "base/secrets.h"

namespace shoal::client {
namespace {

constexpr size_t kTokenBytes = 16;

bool same(const std::string& a, const std::string& b) {
  return same_secret(as_bytes(a), as_bytes(b));
}

}  // namespace

std::string make_token() {
  ByteVector bytes(kTokenBytes);
  fill_secret(bytes);
  return hex_encode(bytes);
}

std::string token_digest(const std::string& token) {
  return digest_of(as_bytes("shoal-pairing-1:" + token)).hex();
}

std::string PairingCodes::open(Millis now) {
  std::string token = make_token();
  digest_ = token_digest(token);
  expires_ = now + kOpenFor;
  return token;
}

bool PairingCodes::use(const std::string& token, Millis now) {
  if (digest_.empty()) return false;
  if (now >= expires_) {
    close();
    return false;
  }
  if (!same(token_digest(token), digest_)) return false;
  close();
  return true;
}

const Pairing* find_pairing(const std::vector<Pairing>& pairings, const std::string& token) {
  const std::string digest = token_digest(token);
  const Pairing* found = nullptr;
  for (const Pairing& pairing : pairings) {
    if (same(pairing.token_digest, digest)) found = &pairing;
  }
  return found;
}

}  // namespace shoal::client
