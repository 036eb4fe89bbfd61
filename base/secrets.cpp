#include "base/secrets.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>

#include "base/random.h"
#include "base/sodium_start.h"

namespace shoal {
namespace {

static_assert(kSealedHeaderBytes == crypto_secretstream_xchacha20poly1305_HEADERBYTES);
static_assert(kSealedChunkExtraBytes == crypto_secretstream_xchacha20poly1305_ABYTES);
static_assert(kKeyBytes == crypto_secretstream_xchacha20poly1305_KEYBYTES);
static_assert(kKeyBytes == crypto_secretbox_KEYBYTES);
static_assert(sizeof(PassphraseSalt) == crypto_pwhash_SALTBYTES);
static_assert(sizeof(Signature) == crypto_sign_BYTES);

constexpr size_t kSealedChunkBytes = kSealedChunkPlainBytes + kSealedChunkExtraBytes;

// Any range of bytes as libsodium wants it.
template <class Range>
auto raw(Range&& range) {
  using Element = std::remove_pointer_t<decltype(range.data())>;
  using Raw = std::conditional_t<std::is_const_v<Element>, const unsigned char, unsigned char>;
  return reinterpret_cast<Raw*>(range.data());
}

template <class Key>
Result<Key> public_key_from(ByteSpan bytes) {
  Key key;
  if (bytes.size() != key.bytes.size()) {
    return Error{ErrorCode::kInvalid,
                 "public key has " + std::to_string(bytes.size()) + " bytes where 32 are expected"};
  }
  std::copy(bytes.begin(), bytes.end(), key.bytes.begin());
  return key;
}

}  // namespace

SecretBytes::SecretBytes(size_t size) : size_(size) {
  if (size == 0) return;
  start_sodium();
  data_ = static_cast<std::byte*>(sodium_malloc(size));
  SHOAL_CHECK(data_ != nullptr);
  std::memset(data_, 0, size);
}

SecretBytes::SecretBytes(ByteSpan source) : SecretBytes(source.size()) {
  std::copy(source.begin(), source.end(), data_);
}

SecretBytes::SecretBytes(SecretBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

SecretBytes& SecretBytes::operator=(SecretBytes&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

SecretBytes::~SecretBytes() {
  if (data_ != nullptr) sodium_free(data_);
}

void wipe(std::span<std::byte> bytes) { sodium_memzero(bytes.data(), bytes.size()); }

bool same_secret(ByteSpan a, ByteSpan b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

SecretBytes random_key() {
  SecretBytes key(kKeyBytes);
  fill_secret(key.edit());
  return key;
}

Result<SigningPublicKey> SigningPublicKey::from_bytes(ByteSpan bytes) {
  return public_key_from<SigningPublicKey>(bytes);
}
Result<BoxPublicKey> BoxPublicKey::from_bytes(ByteSpan bytes) {
  return public_key_from<BoxPublicKey>(bytes);
}

SigningKey SigningKey::generate() {
  SecretBytes seed(crypto_sign_SEEDBYTES);
  fill_secret(seed.edit());
  return from_seed(seed.view()).value();
}

Result<SigningKey> SigningKey::from_seed(ByteSpan seed) {
  if (seed.size() != crypto_sign_SEEDBYTES) {
    return Error{ErrorCode::kInvalid, "signing key's seed has " + std::to_string(seed.size()) +
                                          " bytes where 32 are expected"};
  }
  SigningKey key;
  key.secret_ = SecretBytes(crypto_sign_SECRETKEYBYTES);
  crypto_sign_seed_keypair(raw(key.public_key_.bytes), raw(key.secret_.edit()), raw(seed));
  return key;
}

SecretBytes SigningKey::seed() const {
  SecretBytes seed(crypto_sign_SEEDBYTES);
  crypto_sign_ed25519_sk_to_seed(raw(seed.edit()), raw(secret_.view()));
  return seed;
}

Signature SigningKey::sign(ByteSpan message) const {
  Signature signature;
  crypto_sign_detached(raw(signature), nullptr, raw(message), message.size(), raw(secret_.view()));
  return signature;
}

bool verify(const SigningPublicKey& public_key, ByteSpan message, ByteSpan signature) {
  start_sodium();
  return signature.size() == sizeof(Signature) &&
         crypto_sign_verify_detached(raw(signature), raw(message), message.size(),
                                     raw(public_key.bytes)) == 0;
}

BoxKeyPair BoxKeyPair::generate() {
  BoxKeyPair keys;
  keys.secret_ = SecretBytes(crypto_box_SECRETKEYBYTES);
  crypto_box_keypair(raw(keys.public_key_.bytes), raw(keys.secret_.edit()));
  return keys;
}

Result<ByteVector> seal_to(const BoxPublicKey& public_key, ByteSpan plain) {
  start_sodium();
  ByteVector sealed(plain.size() + crypto_box_SEALBYTES);
  if (crypto_box_seal(raw(sealed), raw(plain), plain.size(), raw(public_key.bytes)) != 0) {
    return Error{ErrorCode::kInvalid, "the receiver's public key is a weak one"};
  }
  return sealed;
}

Result<SecretBytes> open_sealed(const BoxKeyPair& keys, ByteSpan sealed) {
  if (sealed.size() < crypto_box_SEALBYTES) {
    return Error{ErrorCode::kCorrupt, "sealed message ends inside its header"};
  }
  SecretBytes plain(sealed.size() - crypto_box_SEALBYTES);
  if (crypto_box_seal_open(raw(plain.edit()), raw(sealed), sealed.size(),
                           raw(keys.public_key().bytes), raw(keys.secret_key())) != 0) {
    return Error{ErrorCode::kDenied, "sealed message was changed, or is for another key"};
  }
  return plain;
}

uint64_t sealed_size(uint64_t plain_size) {
  // The last chunk is full when the plain bytes fill it exactly; no bytes at all make one empty
  // chunk.
  const uint64_t chunks = plain_size == 0 ? 1 : (plain_size - 1) / kSealedChunkPlainBytes + 1;
  return kSealedHeaderBytes + plain_size + chunks * kSealedChunkExtraBytes;
}

struct SealedWriter::State {
  ByteSink sink;
  crypto_secretstream_xchacha20poly1305_state stream;
  ByteVector header;  // Until the first chunk goes out.
  ByteVector plain;   // Held back: the last chunk must know that it is the last.
  ByteVector sealed;
  bool finished = false;

  ~State() {
    sodium_memzero(&stream, sizeof stream);
    wipe(plain);
  }

  Result<void> push(ByteSpan chunk, unsigned char tag) {
    if (!header.empty()) {
      SHOAL_TRY(sink(header));
      header.clear();
    }
    sealed.resize(chunk.size() + kSealedChunkExtraBytes);
    crypto_secretstream_xchacha20poly1305_push(&stream, raw(sealed), nullptr, raw(chunk),
                                               chunk.size(), nullptr, 0, tag);
    return sink(sealed);
  }
};

SealedWriter::SealedWriter(const SecretBytes& key, ByteSink sink)
    : state_(std::make_unique<State>()) {
  SHOAL_CHECK(key.size() == kKeyBytes);
  state_->sink = std::move(sink);
  state_->header.resize(kSealedHeaderBytes);
  state_->plain.reserve(kSealedChunkPlainBytes);
  crypto_secretstream_xchacha20poly1305_init_push(&state_->stream, raw(state_->header),
                                                  raw(key.view()));
}

SealedWriter::SealedWriter(SealedWriter&&) noexcept = default;
SealedWriter::~SealedWriter() = default;

Result<void> SealedWriter::write(ByteSpan plain) {
  SHOAL_CHECK(!state_->finished);
  while (!plain.empty()) {
    if (state_->plain.size() == kSealedChunkPlainBytes) {
      SHOAL_TRY(state_->push(state_->plain, 0));
      state_->plain.clear();
    }
    const ByteSpan part =
        plain.first(std::min(plain.size(), kSealedChunkPlainBytes - state_->plain.size()));
    state_->plain.insert(state_->plain.end(), part.begin(), part.end());
    plain = plain.subspan(part.size());
  }
  return {};
}

Result<void> SealedWriter::finish() {
  SHOAL_CHECK(!state_->finished);
  state_->finished = true;
  return state_->push(state_->plain, crypto_secretstream_xchacha20poly1305_TAG_FINAL);
}

struct SealedReader::State {
  ByteSink sink;
  SecretBytes key;
  crypto_secretstream_xchacha20poly1305_state stream;
  bool started = false;  // The header has been read.
  bool ended = false;    // The chunk marked as the last has been read.
  uint64_t chunks = 0;
  ByteVector sealed;
  SecretBytes plain = SecretBytes(kSealedChunkPlainBytes);
  std::optional<Error> failed;

  ~State() { sodium_memzero(&stream, sizeof stream); }

  Result<void> fail(Error error) {
    failed = error;
    return error;
  }

  Result<void> start() {
    started = true;
    if (crypto_secretstream_xchacha20poly1305_init_pull(&stream, raw(sealed), raw(key.view())) !=
        0) {
      return fail({ErrorCode::kCorrupt, "sealed stream's header is not valid"});
    }
    sealed.clear();
    return {};
  }

  Result<void> pull() {
    if (ended) return fail({ErrorCode::kCorrupt, "sealed stream goes on after its last chunk"});
    unsigned char tag = 0;
    if (sealed.size() < kSealedChunkExtraBytes ||
        crypto_secretstream_xchacha20poly1305_pull(&stream, raw(plain.edit()), nullptr, &tag,
                                                   raw(sealed), sealed.size(), nullptr, 0) != 0) {
      return fail({ErrorCode::kCorrupt, "chunk " + std::to_string(chunks) +
                                            " of the sealed stream was cut, changed or moved, or "
                                            "the key is another's"});
    }
    ended = tag == crypto_secretstream_xchacha20poly1305_TAG_FINAL;
    ++chunks;
    const size_t plain_bytes = sealed.size() - kSealedChunkExtraBytes;
    sealed.clear();
    if (auto taken = sink(plain.view().first(plain_bytes)); !taken.ok()) return fail(taken.error());
    return {};
  }
};

SealedReader::SealedReader(const SecretBytes& key, ByteSink sink)
    : state_(std::make_unique<State>()) {
  SHOAL_CHECK(key.size() == kKeyBytes);
  state_->sink = std::move(sink);
  state_->key = SecretBytes(key.view());
  state_->sealed.reserve(kSealedChunkBytes);
}

SealedReader::SealedReader(SealedReader&&) noexcept = default;
SealedReader::~SealedReader() = default;

Result<void> SealedReader::feed(ByteSpan sealed) {
  if (state_->failed) return *state_->failed;
  while (!sealed.empty()) {
    const size_t wanted = state_->started ? kSealedChunkBytes : kSealedHeaderBytes;
    const ByteSpan part = sealed.first(std::min(sealed.size(), wanted - state_->sealed.size()));
    state_->sealed.insert(state_->sealed.end(), part.begin(), part.end());
    sealed = sealed.subspan(part.size());
    if (state_->sealed.size() < wanted) break;
    SHOAL_TRY(state_->started ? state_->pull() : state_->start());
  }
  return {};
}

Result<void> SealedReader::finish() {
  if (state_->failed) return *state_->failed;
  if (!state_->started) {
    return state_->fail({ErrorCode::kCorrupt, "sealed stream ends inside its header"});
  }
  if (!state_->sealed.empty()) SHOAL_TRY(state_->pull());
  if (!state_->ended) {
    return state_->fail({ErrorCode::kCorrupt, "sealed stream ends before its last chunk"});
  }
  return {};
}

ByteVector seal_stream(const SecretBytes& key, ByteSpan plain) {
  ByteVector sealed;
  sealed.reserve(sealed_size(plain.size()));
  SealedWriter writer(key, [&sealed](ByteSpan bytes) -> Result<void> {
    sealed.insert(sealed.end(), bytes.begin(), bytes.end());
    return {};
  });
  SHOAL_CHECK(writer.write(plain).ok());  // Memory does not refuse bytes.
  SHOAL_CHECK(writer.finish().ok());
  return sealed;
}

Result<ByteVector> open_stream(const SecretBytes& key, ByteSpan sealed) {
  ByteVector plain;
  plain.reserve(sealed.size());
  SealedReader reader(key, [&plain](ByteSpan bytes) -> Result<void> {
    plain.insert(plain.end(), bytes.begin(), bytes.end());
    return {};
  });
  SHOAL_TRY(reader.feed(sealed));
  SHOAL_TRY(reader.finish());
  return plain;
}

ByteVector wrap_key(const SecretBytes& master, const SecretBytes& key) {
  SHOAL_CHECK(master.size() == kKeyBytes);
  ByteVector wrapped(crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES + key.size());
  const std::span<std::byte> nonce = std::span(wrapped).first(crypto_secretbox_NONCEBYTES);
  const std::span<std::byte> box = std::span(wrapped).subspan(crypto_secretbox_NONCEBYTES);
  fill_secret(nonce);
  crypto_secretbox_easy(raw(box), raw(key.view()), key.size(), raw(nonce), raw(master.view()));
  return wrapped;
}

Result<SecretBytes> unwrap_key(const SecretBytes& master, ByteSpan wrapped) {
  SHOAL_CHECK(master.size() == kKeyBytes);
  constexpr size_t kExtra = crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES;
  if (wrapped.size() < kExtra)
    return Error{ErrorCode::kCorrupt, "wrapped key ends inside its header"};
  SecretBytes key(wrapped.size() - kExtra);
  const ByteSpan box = wrapped.subspan(crypto_secretbox_NONCEBYTES);
  if (crypto_secretbox_open_easy(raw(key.edit()), raw(box), box.size(), raw(wrapped),
                                 raw(master.view())) != 0) {
    return Error{ErrorCode::kDenied, "wrapped key was changed, or the master key is another one"};
  }
  return key;
}

PassphraseSalt random_salt() {
  PassphraseSalt salt;
  fill_secret(salt);
  return salt;
}

Result<SecretBytes> derive_key_from_passphrase(std::string_view passphrase,
                                               const PassphraseSalt& salt) {
  if (passphrase.empty()) return Error{ErrorCode::kInvalid, "passphrase is empty"};
  SecretBytes key(kKeyBytes);
  // Argon2id's figures are part of every key made with them: they may never change.
  if (crypto_pwhash(raw(key.edit()), kKeyBytes, passphrase.data(), passphrase.size(), raw(salt),
                    /*opslimit=*/2, /*memlimit=*/size_t{64} << 20,
                    crypto_pwhash_ALG_ARGON2ID13) != 0) {
    return Error{ErrorCode::kNoSpace,
                 "not enough memory (64 MiB) to derive a key from the passphrase"};
  }
  return key;
}

}  // namespace shoal
