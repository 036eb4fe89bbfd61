#pragma once
// Content digests: the name of a file, a shard or a result by what it holds. BLAKE2b with 256 bits.

#include <array>
#include <compare>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace shoal {

struct Digest {
  std::array<std::byte, 32> bytes{};

  friend auto operator<=>(const Digest&, const Digest&) = default;
  std::string hex() const;
  static Result<Digest> from_hex(std::string_view text);  // 64 hex digits.
  static Result<Digest> from_bytes(ByteSpan bytes);       // 32 bytes.
};

class DigestBuilder {
 public:
  DigestBuilder();

  void update(ByteSpan bytes);
  Digest finish();  // REQUIRES: called once, and no update after it.

 private:
  alignas(64) std::array<std::byte, 384> state_;  // libsodium's crypto_generichash_state.
  bool finished_ = false;
};

Digest digest_of(ByteSpan bytes);
Result<Digest> digest_of_file(const std::filesystem::path& path);

}  // namespace shoal

template <>
struct std::hash<shoal::Digest> {
  size_t operator()(const shoal::Digest& digest) const {
    size_t value;  // The digest is as good as random already.
    std::memcpy(&value, digest.bytes.data(), sizeof value);
    return value;
  }
};
