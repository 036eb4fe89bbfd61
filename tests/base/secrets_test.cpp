// Signatures, sealed messages and streams, wrapped keys: what must open, and everything that must
// not.

#include <QTest>

#include "base/random.h"
#include "base/secrets.h"

using namespace shoal;

namespace {

constexpr size_t kChunk = kSealedChunkPlainBytes;
constexpr size_t kSealedChunk = kSealedChunkPlainBytes + kSealedChunkExtraBytes;

ByteVector random_bytes(size_t size, uint64_t seed) {
  ByteVector bytes(size);
  Random(seed).fill(bytes);
  return bytes;
}

template <class T>
constexpr bool kPrintable = requires(std::ostream& out, const T& value) {
  out << value;
};

}  // namespace

class SecretsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void secrets_move_and_cannot_be_printed_or_copied();
  void signature_holds_for_its_message_and_key_alone();
  void signing_key_comes_back_from_its_seed();
  void sealed_message_opens_for_its_receiver_alone();
  void stream_round_trips_around_chunk_borders();
  void stream_may_come_in_any_pieces();
  void stream_refuses_truncation_at_every_place();
  void stream_refuses_change_reordering_and_more();
  void stream_hands_on_its_sinks_error();
  void wrapped_key_opens_under_its_master_alone();
  void passphrase_makes_the_same_key_again();
};

void SecretsTest::secrets_move_and_cannot_be_printed_or_copied() {
  static_assert(!kPrintable<SecretBytes> && !kPrintable<SigningKey> && !kPrintable<BoxKeyPair>);
  static_assert(!std::is_copy_constructible_v<SecretBytes>);
  SecretBytes a(as_bytes("secret"));
  SecretBytes b = std::move(a);
  QVERIFY(a.size() == 0 && as_text(b.view()) == "secret");
  b = SecretBytes(as_bytes("other"));
  QVERIFY(same_secret(b.view(), as_bytes("other")));
  QVERIFY(!same_secret(b.view(), as_bytes("othe")));
  QVERIFY(!same_secret(b.view(), as_bytes("0ther")));
  QVERIFY(!same_secret(random_key().view(), random_key().view()));
}

void SecretsTest::signature_holds_for_its_message_and_key_alone() {
  const SigningKey key = SigningKey::generate();
  Signature signature = key.sign(as_bytes("nonce"));
  QVERIFY(verify(key.public_key(), as_bytes("nonce"), signature));
  QVERIFY(!verify(key.public_key(), as_bytes("nonce2"), signature));
  QVERIFY(!verify(SigningKey::generate().public_key(), as_bytes("nonce"), signature));
  QVERIFY(!verify(key.public_key(), as_bytes("nonce"), ByteSpan(signature).first(63)));
  signature[10] ^= std::byte{1};
  QVERIFY(!verify(key.public_key(), as_bytes("nonce"), signature));
  QVERIFY(verify(key.public_key(), {}, key.sign({})));
}

void SecretsTest::signing_key_comes_back_from_its_seed() {
  const SigningKey key = SigningKey::generate();
  const auto again = SigningKey::from_seed(key.seed().view());
  QVERIFY(again.ok() && again.value().public_key() == key.public_key());
  QVERIFY(!SigningKey::from_seed(key.seed().view().first(31)).ok());
  // RFC 8032, test 1.
  const auto seed =
      hex_decode("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60").value();
  QCOMPARE(hex_encode(SigningKey::from_seed(seed).value().public_key().bytes),
           std::string("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"));
}

void SecretsTest::sealed_message_opens_for_its_receiver_alone() {
  const BoxKeyPair receiver = BoxKeyPair::generate();
  ByteVector sealed = seal_to(receiver.public_key(), as_bytes("key")).value();
  QVERIFY(as_text(open_sealed(receiver, sealed).value().view()) == "key");
  QVERIFY(open_sealed(BoxKeyPair::generate(), sealed).error().code == ErrorCode::kDenied);
  QVERIFY(!open_sealed(receiver, ByteSpan(sealed).first(20)).ok());
  QVERIFY(!open_sealed(receiver, ByteSpan(sealed).first(sealed.size() - 1)).ok());
  sealed.back() ^= std::byte{1};
  QVERIFY(!open_sealed(receiver, sealed).ok());
  QVERIFY(!seal_to(BoxPublicKey{}, as_bytes("key")).ok());  // All zero: everybody's key.
  QVERIFY(!BoxPublicKey::from_bytes(as_bytes("short")).ok());
}

void SecretsTest::stream_round_trips_around_chunk_borders() {
  const SecretBytes key = random_key();
  for (const size_t size :
       {size_t{0}, size_t{1}, kChunk - 1, kChunk, kChunk + 1, 2 * kChunk, 2 * kChunk + 77}) {
    const ByteVector plain = random_bytes(size, size);
    const ByteVector sealed = seal_stream(key, plain);
    QCOMPARE(uint64_t{sealed.size()}, sealed_size(size));
    const auto opened = open_stream(key, sealed);
    QVERIFY(opened.ok() && opened.value() == plain);
  }
  QVERIFY(open_stream(random_key(), seal_stream(key, {})).error().code == ErrorCode::kCorrupt);
}

void SecretsTest::stream_may_come_in_any_pieces() {
  const SecretBytes key = random_key();
  const ByteVector plain = random_bytes(2 * kChunk + 5, 1);
  const ByteVector sealed = seal_stream(key, plain);
  Random random(9);
  ByteVector opened;
  SealedReader reader(key, [&](ByteSpan bytes) -> Result<void> {
    opened.insert(opened.end(), bytes.begin(), bytes.end());
    return {};
  });
  for (ByteSpan rest = sealed; !rest.empty();) {
    const ByteSpan piece = rest.first(std::min<size_t>(rest.size(), random.below(300'000)));
    QVERIFY(reader.feed(piece).ok());
    rest = rest.subspan(piece.size());
  }
  QVERIFY(reader.finish().ok());
  QVERIFY(opened == plain);
}

void SecretsTest::stream_refuses_truncation_at_every_place() {
  const SecretBytes key = random_key();
  const ByteVector short_one = seal_stream(key, random_bytes(40, 1));
  for (size_t cut = 0; cut < short_one.size(); ++cut) {
    QVERIFY(!open_stream(key, ByteSpan(short_one).first(cut)).ok());
  }
  const ByteVector long_one = seal_stream(key, random_bytes(2 * kChunk, 2));
  for (const size_t cut :
       {kSealedHeaderBytes, kSealedHeaderBytes + 1, kSealedHeaderBytes + kSealedChunk,
        kSealedHeaderBytes + kSealedChunk + 1, kSealedHeaderBytes + 2 * kSealedChunk - 1}) {
    const auto refused = open_stream(key, ByteSpan(long_one).first(cut));
    QVERIFY(!refused.ok() && refused.error().code == ErrorCode::kCorrupt);
  }
}

void SecretsTest::stream_refuses_change_reordering_and_more() {
  const SecretBytes key = random_key();
  const ByteVector sealed = seal_stream(key, random_bytes(3 * kChunk, 3));
  ByteVector swapped = sealed;
  const auto first = swapped.begin() + kSealedHeaderBytes;
  std::swap_ranges(first, first + kSealedChunk, first + kSealedChunk);
  QVERIFY(!open_stream(key, swapped).ok());
  for (const size_t place : {size_t{0}, size_t{30}, sealed.size() - 1}) {
    ByteVector changed = sealed;
    changed[place] ^= std::byte{1};
    QVERIFY(!open_stream(key, changed).ok());
  }
  ByteVector dropped = sealed;
  dropped.erase(dropped.begin() + kSealedHeaderBytes,
                dropped.begin() + kSealedHeaderBytes + kSealedChunk);
  QVERIFY(!open_stream(key, dropped).ok());
  ByteVector longer = sealed;
  longer.push_back(std::byte{0});
  QVERIFY(!open_stream(key, longer).ok());

  SealedReader reader(key, [](ByteSpan) -> Result<void> { return {}; });
  QVERIFY(!reader.feed(dropped).ok());
  QVERIFY(!reader.feed(sealed).ok());  // An error is the last word.
  QVERIFY(!reader.finish().ok());
}

void SecretsTest::stream_hands_on_its_sinks_error() {
  const SecretBytes key = random_key();
  const auto full = [](ByteSpan) -> Result<void> { return Error{ErrorCode::kNoSpace, "full"}; };
  SealedWriter writer(key, full);
  QVERIFY(writer.write(as_bytes("x")).ok());  // Held back until it is known to be the last.
  QVERIFY(writer.finish().error().code == ErrorCode::kNoSpace);
  SealedReader reader(key, full);
  const ByteVector sealed = seal_stream(key, as_bytes("x"));
  QVERIFY(reader.feed(sealed).ok());
  QVERIFY(reader.finish().error().code == ErrorCode::kNoSpace);
}

void SecretsTest::wrapped_key_opens_under_its_master_alone() {
  const SecretBytes master = random_key();
  const SecretBytes key = random_key();
  ByteVector wrapped = wrap_key(master, key);
  QVERIFY(wrapped != wrap_key(master, key));  // Each with a nonce of its own.
  QVERIFY(same_secret(unwrap_key(master, wrapped).value().view(), key.view()));
  QVERIFY(unwrap_key(random_key(), wrapped).error().code == ErrorCode::kDenied);
  QVERIFY(!unwrap_key(master, ByteSpan(wrapped).first(39)).ok());
  wrapped[0] ^= std::byte{1};
  QVERIFY(!unwrap_key(master, wrapped).ok());
}

void SecretsTest::passphrase_makes_the_same_key_again() {
  const PassphraseSalt salt = random_salt();
  const auto key = derive_key_from_passphrase("correct horse", salt);
  QVERIFY(key.ok());
  QVERIFY(same_secret(key.value().view(),
                      derive_key_from_passphrase("correct horse", salt).value().view()));
  QVERIFY(!same_secret(key.value().view(),
                       derive_key_from_passphrase("correct horse", random_salt()).value().view()));
  QVERIFY(!derive_key_from_passphrase("", salt).ok());
}

QTEST_GUILESS_MAIN(SecretsTest)
#include "secrets_test.moc"
