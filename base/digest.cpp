#include "base/digest.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/files.h"
#include "base/sodium_start.h"

namespace shoal {
namespace {

crypto_generichash_state* as_state(std::array<std::byte, 384>& storage) {
  static_assert(sizeof(crypto_generichash_state) <= 384);
  static_assert(alignof(crypto_generichash_state) <= 64);
  return reinterpret_cast<crypto_generichash_state*>(storage.data());
}

}  // namespace

std::string Digest::hex() const { return hex_encode(bytes); }

Result<Digest> Digest::from_hex(std::string_view text) {
  const Result<ByteVector> decoded = hex_decode(text);
  if (!decoded.ok()) return with_context(decoded.error(), "digest");
  return from_bytes(decoded.value());
}

Result<Digest> Digest::from_bytes(ByteSpan bytes) {
  Digest digest;
  if (bytes.size() != digest.bytes.size()) {
    return Error{ErrorCode::kInvalid,
                 "digest has " + std::to_string(bytes.size()) + " bytes where 32 are expected"};
  }
  std::copy(bytes.begin(), bytes.end(), digest.bytes.begin());
  return digest;
}

DigestBuilder::DigestBuilder() {
  start_sodium();
  crypto_generichash_init(as_state(state_), nullptr, 0, sizeof(Digest::bytes));
}

void DigestBuilder::update(ByteSpan bytes) {
  SHOAL_CHECK(!finished_);
  crypto_generichash_update(as_state(state_), reinterpret_cast<const unsigned char*>(bytes.data()),
                            bytes.size());
}

Digest DigestBuilder::finish() {
  SHOAL_CHECK(!finished_);
  finished_ = true;
  Digest digest;
  crypto_generichash_final(as_state(state_), reinterpret_cast<unsigned char*>(digest.bytes.data()),
                           digest.bytes.size());
  return digest;
}

Digest digest_of(ByteSpan bytes) {
  DigestBuilder builder;
  builder.update(bytes);
  return builder.finish();
}

Result<Digest> digest_of_file(const std::filesystem::path& path) {
  DigestBuilder builder;
  SHOAL_TRY(read_file_in_pieces(path, [&builder](ByteSpan piece) { builder.update(piece); }));
  return builder.finish();
}

}  // namespace shoal
