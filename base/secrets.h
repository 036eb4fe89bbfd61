#pragma once
// Keys and what is done with them: signatures, sealed messages, sealed streams, wrapped keys.
// Nothing here can be printed or compared by accident; all of it is libsodium's.

#include <array>
#include <compare>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"

namespace shoal {

// Memory for secrets: locked out of swap, between guard pages, zeroed at its end.
class SecretBytes {
 public:
  SecretBytes() = default;
  explicit SecretBytes(size_t size);      // Zeroed.
  explicit SecretBytes(ByteSpan source);  // A copy. The source is the caller's to wipe.
  SecretBytes(SecretBytes&& other) noexcept;
  SecretBytes& operator=(SecretBytes&& other) noexcept;
  ~SecretBytes();

  ByteSpan view() const { return {data_, size_}; }
  std::span<std::byte> edit() { return {data_, size_}; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;  // Null when empty.
  size_t size_ = 0;
};

void wipe(std::span<std::byte> bytes);     // Zeroes, and is not optimised away.
bool same_secret(ByteSpan a, ByteSpan b);  // In a time that depends on the lengths alone.
constexpr size_t kKeyBytes = 32;
SecretBytes random_key();  // kKeyBytes of it.

// Ed25519: who a host or a coordinator is.
struct SigningPublicKey {
  std::array<std::byte, 32> bytes{};
  friend auto operator<=>(const SigningPublicKey&, const SigningPublicKey&) = default;
  static Result<SigningPublicKey> from_bytes(ByteSpan bytes);
};
using Signature = std::array<std::byte, 64>;

class SigningKey {
 public:
  static SigningKey generate();
  static Result<SigningKey> from_seed(ByteSpan seed);  // 32 bytes.
  SecretBytes seed() const;                            // What from_seed takes: to be stored.
  const SigningPublicKey& public_key() const { return public_key_; }
  Signature sign(ByteSpan message) const;

 private:
  SigningKey() = default;
  SecretBytes secret_;
  SigningPublicKey public_key_;
};

// False too for a signature of the wrong length.
bool verify(const SigningPublicKey& public_key, ByteSpan message, ByteSpan signature);

// X25519: who alone may read a message.
struct BoxPublicKey {
  std::array<std::byte, 32> bytes{};
  friend auto operator<=>(const BoxPublicKey&, const BoxPublicKey&) = default;
  static Result<BoxPublicKey> from_bytes(ByteSpan bytes);
};

class BoxKeyPair {
 public:
  static BoxKeyPair generate();
  const BoxPublicKey& public_key() const { return public_key_; }
  ByteSpan secret_key() const { return secret_.view(); }  // For open_sealed.

 private:
  BoxKeyPair() = default;
  SecretBytes secret_;
  BoxPublicKey public_key_;
};

Result<ByteVector> seal_to(const BoxPublicKey& public_key, ByteSpan plain);
Result<SecretBytes> open_sealed(const BoxKeyPair& keys, ByteSpan sealed);

// Sealed streams: a header, then chunks of kSealedChunkPlainBytes, the last one shorter and marked
// as the last. A changed, missing, added or moved chunk is found, and so is a cut at any place.
constexpr size_t kSealedHeaderBytes = 24;
constexpr size_t kSealedChunkPlainBytes = size_t{1} << 20;
constexpr size_t kSealedChunkExtraBytes = 17;
uint64_t sealed_size(uint64_t plain_size);

using ByteSink = std::function<Result<void>(ByteSpan bytes)>;

class SealedWriter {
 public:
  SealedWriter(const SecretBytes& key, ByteSink sink);  // REQUIRES: key has kKeyBytes.
  SealedWriter(SealedWriter&&) noexcept;
  ~SealedWriter();
  Result<void> write(ByteSpan plain);
  Result<void> finish();  // REQUIRES: called once, last. Without it the stream is no stream.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Hands plain chunks to `sink` as they are proved; what it got is to be believed as a whole only
// after finish() was ok.
class SealedReader {
 public:
  SealedReader(const SecretBytes& key, ByteSink sink);
  SealedReader(SealedReader&&) noexcept;
  ~SealedReader();
  Result<void> feed(ByteSpan sealed);  // Pieces of any length. After an error, every call fails.
  Result<void> finish();               // kCorrupt unless the last chunk was marked as the last.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

ByteVector seal_stream(const SecretBytes& key, ByteSpan plain);
Result<ByteVector> open_stream(const SecretBytes& key, ByteSpan sealed);

// A key under a master key, for the store. REQUIRES: master has kKeyBytes.
ByteVector wrap_key(const SecretBytes& master, const SecretBytes& key);
Result<SecretBytes> unwrap_key(const SecretBytes& master, ByteSpan wrapped);

// Argon2id, about 0.1 s and 64 MiB. The salt is no secret; keep it beside what the key wraps.
using PassphraseSalt = std::array<std::byte, 16>;
PassphraseSalt random_salt();
Result<SecretBytes> derive_key_from_passphrase(std::string_view passphrase,
                                               const PassphraseSalt& salt);

}  // namespace shoal
