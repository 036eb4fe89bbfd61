// Goal: keys that were used leave no copy in memory that was given back. Method: this program's own
// free() looks for the key, as bytes and as text, in every block before it goes.

#include <malloc.h>

#include <QTest>

#include <cstring>

#include "base/files.h"
#include "coordinator/ctl/cut_answer.h"
#include "coordinator/store/shard_store.h"
#include "tests/coordinator/world.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHOAL_OTHER_HEAP  // The sanitizer's: its free() cannot be ours.
#endif

namespace {

const void* wanted = nullptr;  // Null: free() does not look.
size_t wanted_size = 0;
int found = 0;

}  // namespace

#ifndef SHOAL_OTHER_HEAP
extern "C" void __libc_free(void* block);
extern "C" void free(void* block) noexcept {
  if (wanted != nullptr && block != nullptr &&
      memmem(block, malloc_usable_size(block), wanted, wanted_size) != nullptr) {
    ++found;
  }
  __libc_free(block);
}
#endif

using namespace shoal;
using namespace shoal::test;

namespace {

// How many blocks with `secret` in them are given back while `act` runs.
int left_by(ByteSpan secret, const std::function<void()>& act) {
  wanted = secret.data();
  wanted_size = secret.size();
  found = 0;
  act();
  wanted = nullptr;
  return found;
}

}  // namespace

class SecretsLeftTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() {
#ifdef SHOAL_OTHER_HEAP
    QSKIP("the sanitizer's heap cannot be watched");
#endif
  }

  void the_watch_finds_what_is_there() {
    const std::string secret = "0123456789abcdef0123456789abcdef";
    const SecretBytes kept(as_bytes(secret));
    QCOMPARE(left_by(kept.view(), [&] { const ByteVector copy = to_vector(kept.view()); }), 1);
    QCOMPARE(left_by(kept.view(), [&] { const SecretBytes copy(kept.view()); }), 0);
  }

  void the_answer_of_cut_leaves_no_keys() {
    const SecretBytes first = random_key(), second = random_key();
    const auto output = [&](const char* before, const char* after) {
      return std::string("a line of warnings\n") + before + "\"keys\":[\"" +
             hex_encode(first.view()) + "\",\"" + hex_encode(second.view()) + "\"]" + after + "\n";
    };
    std::string text = output("{", ",\"manifest\":{\"name\":\"m \\\"keys\\\":[\\\"no\\\"]\"}}");
    const SecretBytes second_hex(as_bytes(hex_encode(second.view())));
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(text));
    for (const ByteSpan secret : {second.view(), second_hex.view()}) {
      SecretBytes line(ByteSpan{bytes});
      QCOMPARE(
          left_by(secret,
                  [&] {
                    const auto answer = ctl::read_cut_answer(line.edit());
                    QVERIFY(answer.ok());
                    QCOMPARE(answer.value().keys.size(), size_t{2});
                    QVERIFY(same_secret(answer.value().keys[1].view(), second.view()));
                    QVERIFY(answer.value().json["manifest"]["name"].get<std::string>().starts_with(
                        "m"));
                  }),
          0);
    }
  }

  void an_odd_answer_of_cut_is_refused_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<bool>("ok");
    QTest::addColumn<int>("keys");
    const QByteArray key(64, 'a');
    QTest::newRow("empty") << QByteArray("") << true << 0;
    QTest::newRow("an error") << QByteArray("{\"error\":{\"message\":\"x\"}}") << true << 0;
    QTest::newRow("no keys") << QByteArray("{\"keys\":[]}") << true << 0;
    QTest::newRow("one") << "{\"keys\":[\"" + key + "\"]}" << true << 1;
    QTest::newRow("short") << "{\"keys\":[\"" + key.left(62) + "\"]}" << false << 0;
    QTest::newRow("long") << "{\"keys\":[\"" + key + "aa\"]}" << false << 0;
    QTest::newRow("no hex") << "{\"keys\":[\"" + key.left(63) + "x\"]}" << false << 0;
    QTest::newRow("open end") << "{\"keys\":[\"" + key + "\"" << false << 0;
    QTest::newRow("a gap") << "{\"keys\":[\"" + key + "\",,\"" + key + "\"]}" << false << 0;
    QTest::newRow("a number") << QByteArray("{\"keys\":[7]}") << false << 0;
  }
  void an_odd_answer_of_cut_is_refused() {
    QFETCH(QByteArray, text);
    QFETCH(bool, ok);
    QFETCH(int, keys);
    const auto answer = ctl::read_cut_answer(
        std::as_writable_bytes(std::span(text.data(), static_cast<size_t>(text.size()))));
    QCOMPARE(answer.ok(), ok);
    if (ok) QCOMPARE(static_cast<int>(answer.value().keys.size()), keys);
  }

  void publishing_leaves_no_keys_with_the_coordinator() {
    World world;
    const ToyModel model = make_toy_model("toy");
    const ByteSpan secret = model.keys[2].view();
    auto request = world.admin().publishModelRequest();
    request.setManifest(model.manifest);
    auto keys = request.initKeys(static_cast<uint>(model.keys.size()));
    for (uint i = 0; i < keys.size(); ++i) keys.set(i, rpc::kj_bytes(model.keys[i].view()));
    QCOMPARE(left_by(secret,
                     [&] {
                       auto response =
                           world.run(kj::Promise<capnp::Response<rpc::Admin::PublishModelResults>>(
                               request.send()));
                     }),
             0);
  }

  void a_master_key_that_is_read_leaves_none() {
    const TempDir folder;
    QVERIFY(make_master_key(folder.path(), "").ok());
    const SecretBytes key = load_master_key(folder.path(), "").value();
    QCOMPARE(left_by(key.view(), [&] { QVERIFY(load_master_key(folder.path(), "").ok()); }), 0);
  }

  void secret_state_leaves_none() {
    const TempDir folder;
    const SecretBytes seed = random_key();
    const StateFile file(folder / "identity");
    QCOMPARE(left_by(seed.view(),
                     [&] {
                       for (int i = 0; i < 3; ++i) QVERIFY(file.save(seed.view()).ok());
                       auto loaded = file.load();
                       QVERIFY(loaded.ok());
                       QVERIFY(same_secret(loaded.value().bytes, seed.view()));
                       wipe(loaded.value().bytes);
                     }),
             0);
  }
};

QTEST_GUILESS_MAIN(SecretsLeftTest)
#include "secrets_left_test.moc"
