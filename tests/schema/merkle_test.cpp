// Goal: a root stands for its entries and no others, and proofs show which they are. Method: every
// size on both sides of powers of two, every leaf, every byte changed.

#include <capnp/message.h>

#include <QTest>

#include "schema/ledger_day.h"
#include "schema/merkle.h"

using namespace shoal;

namespace {

std::vector<Digest> leaves_of(size_t count) {
  std::vector<Digest> leaves;
  for (size_t i = 0; i < count; ++i) {
    leaves.push_back(merkle_leaf(as_bytes("entry " + std::to_string(i))));
  }
  return leaves;
}

// The definition, read aloud.
Digest root_by_definition(std::vector<Digest> level) {
  if (level.empty()) return {};
  while (level.size() > 1) {
    std::vector<Digest> above;
    for (size_t i = 0; i < level.size(); i += 2) {
      above.push_back(i + 1 == level.size() ? level[i] : merkle_node(level[i], level[i + 1]));
    }
    level = std::move(above);
  }
  return level.front();
}

LedgerDay a_day(const SigningKey& key) {
  LedgerDay day{20'000, 3, merkle_leaf({}), merkle_leaf(as_bytes("before")), {}};
  sign_ledger_day(day, key);
  return day;
}

}  // namespace

class MerkleTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void leaves_and_nodes_are_of_two_kinds();
  void roots_are_as_defined();
  void every_leaf_is_proved_and_no_other();
  void every_changed_byte_is_refused();
  void a_path_of_another_length_is_refused();
  void chunks_of_a_power_of_two_give_the_same_paths();
  void a_day_with_any_other_field_is_not_genuine();
  void days_and_proofs_survive_the_wire();
  void days_have_names();
};

void MerkleTest::leaves_and_nodes_are_of_two_kinds() {
  const std::byte zero_and_a[] = {std::byte{0}, std::byte{'a'}};
  QCOMPARE(merkle_leaf(as_bytes("a")), digest_of(zero_and_a));
  const Digest left = merkle_leaf(as_bytes("l")), right = merkle_leaf(as_bytes("r"));
  ByteVector both{std::byte{1}};
  both.insert(both.end(), left.bytes.begin(), left.bytes.end());
  both.insert(both.end(), right.bytes.begin(), right.bytes.end());
  QCOMPARE(merkle_node(left, right), digest_of(both));
  QVERIFY(merkle_node(left, right) != merkle_node(right, left));
  // A node cannot be passed off as an entry.
  QVERIFY(merkle_leaf(ByteSpan(both).subspan(1)) != merkle_node(left, right));
}

void MerkleTest::roots_are_as_defined() {
  MerkleRoot growing;
  for (size_t count = 0; count <= 33; ++count) {
    const std::vector<Digest> leaves = leaves_of(count);
    const MerkleTree tree(leaves);
    QCOMPARE(tree.count(), uint64_t{count});
    QCOMPARE(tree.root(), root_by_definition(leaves));
    QCOMPARE(growing.root(), tree.root());
    QCOMPARE(growing.count(), uint64_t{count});
    growing.add(leaves_of(count + 1).back());
  }
}

void MerkleTest::every_leaf_is_proved_and_no_other() {
  for (size_t count = 1; count <= 33; ++count) {
    const std::vector<Digest> leaves = leaves_of(count);
    const MerkleTree tree(leaves);
    for (size_t place = 0; place < count; ++place) {
      const std::vector<Digest> path = tree.path(place);
      QVERIFY(path.size() <= 6);
      for (size_t other = 0; other < count; ++other) {
        QCOMPARE(merkle_path_fits(tree.root(), count, place, leaves[other], path), other == place);
        if (other == place) continue;
        QVERIFY(!merkle_path_fits(tree.root(), count, other, leaves[place], path));
      }
      QVERIFY(!merkle_path_fits(tree.root(), count, count, leaves[place], path));
      QVERIFY(!merkle_path_fits(tree.root(), count, UINT64_MAX, leaves[place], path));
    }
  }
  QVERIFY(!merkle_path_fits(Digest(), 0, 0, Digest(), {}));
}

void MerkleTest::every_changed_byte_is_refused() {
  for (const size_t count : {1, 2, 3, 7, 8, 33}) {
    const std::vector<Digest> leaves = leaves_of(count);
    const MerkleTree tree(leaves);
    for (size_t place = 0; place < count; ++place) {
      const std::vector<Digest> path = tree.path(place);
      for (size_t byte = 0; byte < 32; ++byte) {
        const auto changed = [byte](Digest digest) {
          digest.bytes[byte] ^= std::byte{1};
          return digest;
        };
        QVERIFY(!merkle_path_fits(changed(tree.root()), count, place, leaves[place], path));
        QVERIFY(!merkle_path_fits(tree.root(), count, place, changed(leaves[place]), path));
        for (size_t step = 0; step < path.size(); ++step) {
          std::vector<Digest> wrong = path;
          wrong[step] = changed(wrong[step]);
          QVERIFY(!merkle_path_fits(tree.root(), count, place, leaves[place], wrong));
        }
      }
    }
  }
}

void MerkleTest::a_path_of_another_length_is_refused() {
  const std::vector<Digest> leaves = leaves_of(5);
  const MerkleTree tree(leaves);
  std::vector<Digest> path = tree.path(1);
  path.push_back(Digest());
  QVERIFY(!merkle_path_fits(tree.root(), 5, 1, leaves[1], path));
  path.resize(path.size() - 2);
  QVERIFY(!merkle_path_fits(tree.root(), 5, 1, leaves[1], path));
  QVERIFY(!merkle_path_fits(tree.root(), 5, 1, leaves[1], {}));
  // A count that no store can hold ends all the same.
  QVERIFY(!merkle_path_fits(tree.root(), UINT64_MAX, 1, leaves[1], tree.path(1)));
}

void MerkleTest::chunks_of_a_power_of_two_give_the_same_paths() {
  constexpr size_t kChunk = 4;
  for (size_t count = 1; count <= 33; ++count) {
    const std::vector<Digest> leaves = leaves_of(count);
    const MerkleTree whole(leaves);
    std::vector<Digest> roots;
    std::vector<MerkleTree> chunks;
    for (size_t first = 0; first < count; first += kChunk) {
      const size_t end = std::min(first + kChunk, count);
      chunks.emplace_back(std::vector<Digest>(leaves.begin() + static_cast<ptrdiff_t>(first),
                                              leaves.begin() + static_cast<ptrdiff_t>(end)));
      roots.push_back(chunks.back().root());
    }
    const MerkleTree above(roots);
    QCOMPARE(above.root(), whole.root());
    for (size_t place = 0; place < count; ++place) {
      std::vector<Digest> path = chunks[place / kChunk].path(place % kChunk);
      for (const Digest& digest : above.path(place / kChunk)) path.push_back(digest);
      QVERIFY(path == whole.path(place));
    }
  }
}

void MerkleTest::a_day_with_any_other_field_is_not_genuine() {
  const SigningKey key = SigningKey::generate();
  const LedgerDay day = a_day(key);
  QVERIFY(ledger_day_is_genuine(day, key.public_key()));
  QVERIFY(!ledger_day_is_genuine(day, SigningKey::generate().public_key()));
  const auto refused = [&](const auto& change) {
    LedgerDay other = day;
    change(other);
    return !ledger_day_is_genuine(other, key.public_key());
  };
  QVERIFY(refused([](LedgerDay& d) { d.day += 1; }));
  QVERIFY(refused([](LedgerDay& d) { d.count += 1; }));
  QVERIFY(refused([](LedgerDay& d) { d.signature.pop_back(); }));
  QVERIFY(refused([](LedgerDay& d) { std::swap(d.root, d.previous_root); }));
  for (size_t byte = 0; byte < 32; ++byte) {
    QVERIFY(refused([byte](LedgerDay& d) { d.root.bytes[byte] ^= std::byte{1}; }));
    QVERIFY(refused([byte](LedgerDay& d) { d.previous_root.bytes[byte] ^= std::byte{1}; }));
  }
}

void MerkleTest::days_and_proofs_survive_the_wire() {
  const SigningKey key = SigningKey::generate();
  capnp::MallocMessageBuilder message;
  auto day = message.initRoot<rpc::LedgerDay>();
  write_ledger_day(a_day(key), day);
  QVERIFY(read_ledger_day(day.asReader()) == a_day(key));
  day.setCount(0);  // There is none: nothing else is looked at.
  day.setRoot(kj::ArrayPtr<const kj::byte>());
  QCOMPARE(read_ledger_day(day.asReader()).count, uint64_t{0});
  day.setCount(1);
  const auto refused = [](const auto& read) {
    return kj::runCatchingExceptions([&] { read(); }) != nullptr;
  };
  QVERIFY(refused([&] { read_ledger_day(day.asReader()); }));

  capnp::MallocMessageBuilder second;
  auto proof = second.initRoot<rpc::ReceiptProof>();
  const MerkleTree tree(leaves_of(33));
  write_receipt_proof({7, 20, tree.path(20)}, proof);
  const ReceiptProof back = read_receipt_proof(proof.asReader());
  QCOMPARE(back.number, uint64_t{7});
  QCOMPARE(back.place, uint64_t{20});
  QVERIFY(back.path == tree.path(20));
  const std::vector<kj::byte> bytes(64 * 32 + 32);
  const auto with_path = [&](size_t size) {
    proof.setPath({bytes.data(), size});
    return !refused([&] { read_receipt_proof(proof.asReader()); });
  };
  QVERIFY(with_path(0) && with_path(32) && with_path(64 * 32));
  QVERIFY(!with_path(31) && !with_path(33) && !with_path(64 * 32 + 32));
}

void MerkleTest::days_have_names() {
  QCOMPARE(day_of(Millis{0}), int64_t{0});
  QCOMPARE(day_of(Millis{86'399'999}), int64_t{0});
  QCOMPARE(day_of(Millis{86'400'000}), int64_t{1});
  QCOMPARE(day_of(Millis{-1}), int64_t{-1});
  QCOMPARE(day_text(0), std::string("1970-01-01"));
  QCOMPARE(day_text(20'787), std::string("2026-11-30"));
  QCOMPARE(day_text(INT64_MAX), std::to_string(INT64_MAX));
}

QTEST_GUILESS_MAIN(MerkleTest)
#include "merkle_test.moc"
