// Goal: a shard that is opened is the fragment that was cut, bit for bit; any other bytes, key or
// manifest are refused and say where they are wrong.

#include <QTest>

#include <algorithm>

#include "base/files.h"
#include "compute/models/json_text.h"
#include "compute/models/model.h"
#include "compute/shards/cut.h"
#include "compute/shards/manifest.h"
#include "compute/shards/shard.h"
#include "tests/models/model_maker.h"
#include "tests/models/refused.h"

using namespace shoal;
using namespace shoal::compute;

namespace {

struct OwnedModel {
  ByteVector bytes;
  Model model;
};

OwnedModel tiny(const TinyModel& options) {
  OwnedModel result{tiny_gguf(options).bytes(), {}};
  auto model = model_of_gguf(result.bytes, "tiny.gguf");
  SHOAL_CHECK(model.ok());
  result.model = std::move(model).value();
  return result;
}

ByteVector plain_bytes(const Fragment& fragment) {
  ByteVector bytes;
  const auto written = write_shard(fragment, [&](ByteSpan piece) -> Result<void> {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return {};
  });
  SHOAL_CHECK(written.ok());
  return bytes;
}

bool same(const Fragment& a, const Fragment& b) {
  if (encode(a.graph) != encode(b.graph) || a.weights.size() != b.weights.size()) return false;
  for (const auto& [name, bytes] : a.weights) {
    const auto other = b.weights.find(name);
    if (other == b.weights.end() || !std::ranges::equal(bytes, other->second)) return false;
  }
  return true;
}

Result<PlainShard> open_sealed_shard(ByteSpan sealed, const SecretBytes& key, const Digest& digest,
                                     size_t piece, uint64_t expected) {
  ShardOpener opener(key, digest, expected);
  for (size_t at = 0; at < sealed.size(); at += piece) {
    SHOAL_TRY(opener.feed(sealed.subspan(at, std::min(piece, sealed.size() - at))));
  }
  return opener.finish();
}

SecretBytes copy_of(const SecretBytes& key) { return SecretBytes(key.view()); }

}  // namespace

class ShardsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_plain_shard_is_its_fragment() {
    for (const char* type : {"F32", "F16", "BF16", "Q8_0", "Q4_0"}) {
      const OwnedModel owned = tiny({.type = type});
      for (const Fragment& fragment : owned.model.fragments) {
        const ByteVector bytes = plain_bytes(fragment);
        QCOMPARE(bytes.size(), size_t{shard_size(fragment)});
        auto opened = open_shard(bytes);
        QVERIFY2(opened.ok(), opened.ok() ? "" : opened.error().message.c_str());
        QVERIFY(same(opened.value(), fragment));
        for (const auto& [name, weight] : opened.value().weights) {
          QCOMPARE(static_cast<size_t>(weight.data() - bytes.data()) % kShardAlignment, size_t{0});
        }
      }
    }
  }

  void every_cut_is_refused() {
    const OwnedModel owned =
        tiny({.width = 32, .intermediate = 32, .heads = 2, .kv_heads = 1, .type = "Q8_0"});
    const ByteVector bytes = plain_bytes(owned.model.fragments[1]);
    for (size_t length = 0; length < bytes.size(); length += length < 2048 ? 1 : 61) {
      const ByteVector cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
      QVERIFY2(refused(open_shard(cut), {"shard: "}), qPrintable(QString::number(length)));
    }
    ByteVector longer = bytes;
    longer.push_back(std::byte{0});
    QVERIFY(refused(open_shard(longer), {"size"}));
  }

  // Goal: no changed byte of the head makes another fragment unnoticed, except one that keeps the
  // layout whole: the graph's own numbers, which verify() allows, and the sealing protects.
  void every_changed_byte_of_the_table_is_refused() {
    const OwnedModel owned =
        tiny({.width = 32, .intermediate = 32, .heads = 2, .kv_heads = 1, .type = "Q8_0"});
    const Fragment& fragment = owned.model.fragments[1];
    const ByteVector bytes = plain_bytes(fragment);
    const size_t graph_begin = 8 + 4 + 4 + 8 + 8;
    const size_t graph_end = graph_begin + encode(fragment.graph).size();
    size_t data_begin = bytes.size();
    const Fragment whole = open_shard(bytes).value();
    for (const auto& [name, weight] : whole.weights) {
      data_begin = std::min(data_begin, static_cast<size_t>(weight.data() - bytes.data()));
    }
    for (size_t at = 0; at < data_begin; ++at) {
      for (const int bit : {0, 7}) {
        ByteVector changed = bytes;
        changed[at] ^= std::byte{1} << bit;
        const auto opened = open_shard(changed);
        if (at < graph_begin || at >= graph_end) {
          QVERIFY2(refused(opened, {"shard: "}), qPrintable(QString::number(at)));
        } else {
          QVERIFY(!opened.ok() || !same(opened.value(), fragment));
        }
      }
    }
  }

  void lies_are_refused_by_field() {
    const OwnedModel owned = tiny({});
    const Fragment& fragment = owned.model.fragments.back();
    const ByteVector bytes = plain_bytes(fragment);
    const auto changed = [&](size_t at, auto value) {
      ByteVector copy = bytes;
      store_le(copy.data() + at, value);
      return open_shard(copy);
    };
    const size_t graph_size = encode(fragment.graph).size();
    const size_t table = 32 + graph_size;
    QVERIFY(refused(changed(0, uint8_t{'X'}), {"magic"}));
    QVERIFY(refused(changed(8, uint32_t{2}), {"version", "2"}, ErrorCode::kUnsupported));
    QVERIFY(refused(changed(12, uint32_t{1}), {"weights"}));
    QVERIFY(refused(changed(12, UINT32_MAX), {"weights"}));
    QVERIFY(refused(changed(16, UINT64_MAX), {"size"}));
    QVERIFY(refused(changed(24, UINT64_MAX), {"graph"}));
    QVERIFY(refused(changed(24, uint64_t{0}), {"graph"}));
    QVERIFY(refused(changed(table, UINT16_MAX), {"name"}));
    // The first weight is "output": its name, then type, dimensions, sizes, offset, bytes.
    QCOMPARE(fragment.weights.begin()->first, std::string("output"));
    const size_t entry = table + 2 + 6;
    QVERIFY(refused(changed(table + 2, uint8_t{'x'}), {"name", "no such weight"}));
    QVERIFY(refused(changed(entry, uint8_t{1}), {"weight output", "type"}));
    QVERIFY(refused(changed(entry + 1, uint8_t{200}), {"weight output", "dimensions"}));
    QVERIFY(refused(changed(entry + 2, uint64_t{1}), {"weight output", "dimensions"}));
    QVERIFY(refused(changed(entry + 2, UINT64_MAX), {"weight output", "dimensions"}));
    QVERIFY(refused(changed(entry + 18, UINT64_MAX), {"weight output", "offset"}));
    QVERIFY(refused(changed(entry + 18, uint64_t{0}), {"offset"}));
    QVERIFY(refused(changed(entry + 26, UINT64_MAX), {"weight output", "size"}));
    QVERIFY(refused(changed(entry + 26, uint64_t{4}), {"weight output", "size"}));
  }

  void sealed_shards_open_from_pieces_of_any_length() {
    const OwnedModel owned = tiny({.vocabulary = 8192});  // Over 1 MiB, so several chunks.
    const Fragment& fragment = owned.model.fragments.front();
    const SecretBytes key = random_key();
    const ByteVector sealed = seal_stream(key, plain_bytes(fragment));
    QVERIFY(sealed.size() > kSealedChunkPlainBytes);
    const Digest digest = digest_of(sealed);
    for (const size_t piece : {size_t{997}, size_t{1} << 16, sealed.size()}) {
      auto opened = open_sealed_shard(sealed, key, digest, piece, sealed.size());
      QVERIFY2(opened.ok(), opened.ok() ? "" : opened.error().message.c_str());
      QVERIFY(same(opened.value().fragment(), fragment));
      PlainShard moved = std::move(opened).value();
      QVERIFY(same(moved.fragment(), fragment));
    }
  }

  void one_flipped_byte_anywhere_is_found() {
    // Small, so that every byte can be tried.
    const OwnedModel owned = tiny({.width = 32, .vocabulary = 32, .type = "Q4_0"});
    const Fragment& fragment = owned.model.fragments.front();
    const SecretBytes key = random_key();
    const ByteVector sealed = seal_stream(key, plain_bytes(fragment));
    const Digest digest = digest_of(sealed);
    for (size_t at = 0; at < sealed.size(); ++at) {
      ByteVector changed = sealed;
      changed[at] ^= std::byte{0x10};
      QVERIFY2(refused(open_sealed_shard(changed, key, digest, changed.size(), sealed.size()),
                       {digest.hex()}, ErrorCode::kCorrupt),
               qPrintable(QString::number(at)));
    }
  }

  void wrong_keys_digests_and_lengths_are_refused() {
    const OwnedModel owned = tiny({});
    const SecretBytes key = random_key();
    const ByteVector sealed = seal_stream(key, plain_bytes(owned.model.fragments[1]));
    const Digest digest = digest_of(sealed);
    const auto open = [&](ByteSpan bytes, const SecretBytes& with, const Digest& named,
                          uint64_t expected) {
      return open_sealed_shard(bytes, with, named, 4096, expected);
    };
    QVERIFY(open(sealed, key, digest, sealed.size()).ok());
    QVERIFY(refused(open(sealed, random_key(), digest, sealed.size()), {digest.hex()},
                    ErrorCode::kCorrupt));
    Digest other = digest;
    other.bytes[0] ^= std::byte{1};
    QVERIFY(refused(open(sealed, key, other, sealed.size()), {other.hex(), "digest"}));
    const ByteSpan shorter = ByteSpan(sealed).first(sealed.size() - 1);
    QVERIFY(refused(open(shorter, key, digest, sealed.size()), {"ended after"}));
    QVERIFY(refused(open(shorter, key, digest_of(shorter), shorter.size()), {"shard"},
                    ErrorCode::kCorrupt));
    QVERIFY(refused(open(sealed, key, digest, sealed.size() - 1), {"more than"}));
    QVERIFY(refused(open({}, key, digest_of({}), 0), {"shard"}));
    // Sealed rightly, but what is inside is no shard.
    const ByteVector garbage = seal_stream(key, as_bytes("not a shard at all"));
    QVERIFY(refused(open(garbage, key, digest_of(garbage), garbage.size()), {"magic"}));
  }

  void a_model_is_cut_and_comes_back() {
    const OwnedModel owned = tiny({.vocabulary = 320, .tied = false, .type = "Q8_0"});
    TempDir folder;
    auto cut = cut_model(owned.model, folder / "out");
    QVERIFY2(cut.ok(), cut.ok() ? "" : cut.error().message.c_str());
    const Manifest& m = cut.value().manifest;
    QCOMPARE(m.shards.size(), size_t{4});
    QCOMPARE(cut.value().keys.size(), size_t{4});
    QVERIFY(m.shards[0].kind == FragmentKind::kEmbedding &&
            m.shards[3].kind == FragmentKind::kHead);

    auto read = read_manifest(write_manifest(m));
    QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
    QVERIFY(write_manifest(read.value()) == write_manifest(m));
    QVERIFY(read.value().tokenizer == owned.model.tokenizer && !read.value().tokenizer.empty());
    QVERIFY(read.value().bos == 1 && read.value().eos == std::vector<int32_t>{2});

    for (size_t i = 0; i < m.shards.size(); ++i) {
      auto bytes = read_file(folder / "out" / shard_file_name(m.shards[i].digest), Bytes{1 << 24});
      QVERIFY(bytes.ok());
      QCOMPARE(static_cast<int64_t>(bytes.value().size()), m.shards[i].sealed_bytes);
      auto opened = open_sealed_shard(bytes.value(), cut.value().keys[i], m.shards[i].digest, 1000,
                                      bytes.value().size());
      QVERIFY2(opened.ok(), opened.ok() ? "" : opened.error().message.c_str());
      QVERIFY(same(opened.value().fragment(), owned.model.fragments[i]));
      // Neither the weights nor the key are to be found in what lies on the disk.
      const ByteSpan weight = owned.model.fragments[i].weights.begin()->second.first(64);
      QVERIFY(std::ranges::search(bytes.value(), weight).empty());
      QVERIFY(std::ranges::search(bytes.value(), cut.value().keys[i].view()).empty());
      int64_t weight_bytes = 0;
      for (const auto& [name, span] : owned.model.fragments[i].weights)
        weight_bytes += static_cast<int64_t>(span.size());
      QCOMPARE(m.shards[i].weight_bytes, weight_bytes);
      QVERIFY(m.shards[i].workspace_bytes_per_row > 0);
    }
    QCOMPARE(m.shards[1].state_bytes_per_position,
             int64_t{2 * 2 * 16 * 2});  // k and v, 2 heads of 16, f16.
    QCOMPARE(m.shards[0].state_bytes_per_position, int64_t{0});
    QVERIFY(m.shards[3].flops_per_row >= 2 * 64 * 320);

    // Cut again: other keys, other ciphertext, other names.
    auto again = cut_model(owned.model, folder / "again");
    QVERIFY(again.ok() && again.value().manifest.shards[0].digest != m.shards[0].digest);
    QVERIFY(!same_secret(again.value().keys[0].view(), copy_of(cut.value().keys[0]).view()));
    QVERIFY(refused(cut_model(owned.model, "/proc/nowhere"), {"/proc/nowhere"}));
  }

  void a_manifest_is_refused_by_field() {
    const OwnedModel owned = tiny({.vocabulary = 320});
    TempDir folder;
    const std::string good = write_manifest(cut_model(owned.model, folder.path()).value().manifest);
    const auto changed = [&](auto change) {
      Json json = Json::parse(good);
      change(json);
      return read_manifest(json.dump());
    };
    QVERIFY(read_manifest(good).ok());
    const Json top = Json::parse(good);
    for (const auto& [key, value] : top.items()) {
      const std::string name = key;
      if (name != "bos") {
        QVERIFY2(refused(changed([&](Json& j) { j.erase(name); }), {"manifest", name}),
                 name.c_str());
      }
      QVERIFY2(refused(changed([&](Json& j) {
                         j[name] = {{"x", 1}};
                       }),
                       {"manifest", name}),
               name.c_str());
    }
    for (const auto& [key, value] : top["shards"][1].items()) {
      const std::string name = key;
      QVERIFY2(refused(changed([&](Json& j) { j["shards"][1].erase(name); }), {"shards: 1", name}),
               name.c_str());
      QVERIFY2(refused(changed([&](Json& j) { j["shards"][1][name] = -1; }), {"shards: 1", name}),
               name.c_str());
    }
    QVERIFY(refused(changed([](Json& j) { j["width"] = int64_t{1} << 40; }), {"width"}));
    QVERIFY(refused(changed([](Json& j) { j["manifest_version"] = 2; }), {"manifest_version"},
                    ErrorCode::kUnsupported));
    QVERIFY(refused(changed([](Json& j) { j["eos"] = {320}; }), {"eos"}));
    QVERIFY(refused(changed([](Json& j) { j["bos"] = 320; }), {"bos"}));
    QVERIFY(refused(changed([](Json& j) { j["blocks"] = 3; }), {"shards"}));
    QVERIFY(
        refused(changed([](Json& j) { std::swap(j["shards"][1], j["shards"][2]); }), {"index"}));
    QVERIFY(refused(changed([](Json& j) { j["shards"][0]["digest"] = "00"; }),
                    {"shards: 0", "digest"}));
    QVERIFY(refused(changed([](Json& j) { j["name"] = "other"; }), {"digest"}));
    QVERIFY(refused(changed([](Json& j) { j["extra"] = 1; }), {"digest"}));
    QVERIFY(refused(changed([](Json& j) { j["shards"][0]["extra"] = 1; }), {"digest"}));
    for (size_t length = 0; length < good.size(); length += 97) {
      QVERIFY(refused(read_manifest(std::string_view(good).substr(0, length)), {"manifest"}));
    }
  }
};

QTEST_GUILESS_MAIN(ShardsTest)
#include "shards_test.moc"
