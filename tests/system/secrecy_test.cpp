// Goal: a capture of the wire and a scan of the volunteers' disks hold no plain weights, no prompt,
// no generated text and no shard key. Method: real processes, every host behind a tap, then a
// search for pieces of what must not be there. Each search is shown to find its piece where it is
// allowed to be.

#include <QDirIterator>
#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include "coordinator/store/model_table.h"
#include "coordinator/store/shard_store.h"
#include "tests/support/fleet.h"

class SecrecyTest : public QObject {
  Q_OBJECT

 private:
  std::unique_ptr<Fleet> fleet_;
  const QString prompt_ = "Blessed are the quartermasters of Zanzibar";
  QString text_;
  QList<QByteArray> keys_;  // Of the shards, as only the coordinator can know them.

  // Unwraps them with the master key, in a copy of the coordinator's folder: it has its own open.
  static QList<QByteArray> shard_keys(const QString& data) {
    const QTemporaryDir copy;
    QDirIterator it(data, QDir::Files | QDir::Hidden);
    while (it.hasNext()) {
      const QString path = it.next();
      QFile::copy(path, copy.filePath(QFileInfo(path).fileName()));
    }
    const std::filesystem::path folder = copy.path().toStdString();
    const auto master = shoal::load_master_key(folder, "");
    if (!master.ok()) return {};
    auto store = shoal::Store::open(folder);
    if (!store.ok()) return {};
    const auto model = shoal::ModelTable(*store.value()).find("m");
    if (!model.ok() || !model.value()) return {};
    QList<QByteArray> keys;
    for (const shoal::ShardRow& shard : model.value()->shards) {
      const auto key = shoal::unwrap_key(master.value(), shard.wrapped_key);
      if (!key.ok()) return {};
      const shoal::ByteSpan bytes = key.value().view();
      keys += QByteArray(reinterpret_cast<const char*>(bytes.data()), qsizetype(bytes.size()));
    }
    return keys;
  }

  static QByteArray read(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
  }

  // Pieces of the weights: 32 bytes from all over the file's second half, which is tensor data.
  static QList<QByteArray> weight_pieces() {
    const QByteArray model = read(demo_model());
    QList<QByteArray> pieces;
    for (qsizetype at = model.size() / 2; at + 32 < model.size(); at += model.size() / 128) {
      pieces += model.mid(at, 32);
    }
    return pieces;
  }

  // Names of what was found in `haystack`.
  QStringList found_in(const QByteArray& haystack) const {
    QStringList found;
    for (const QByteArray& piece : weight_pieces()) {
      if (haystack.contains(piece)) found += "weights";
    }
    for (const QByteArray& key : keys_) {
      if (haystack.contains(key) || haystack.contains(key.toHex())) found += "key";
    }
    if (haystack.contains(prompt_.toUtf8()) || haystack.contains("quartermasters"))
      found += "prompt";
    if (text_.size() > 12 && haystack.contains(text_.left(12).toUtf8())) found += "text";
    return found;
  }

 private Q_SLOTS:
  void initTestCase() {
    fleet_ = std::make_unique<Fleet>();
    QCOMPARE(fleet_->start_coordinator(), QString());
    QCOMPARE(fleet_->publish(demo_model(), "m"), QString());
    for (const char* name : {"a", "b"}) QCOMPARE(fleet_->add_host(name), QString());
    QCOMPARE(fleet_->wait_ready(2), QString());
    const Generation run = fleet_->generate({"--model", "m", "--prompt", prompt_, "--max-tokens",
                                             "32", "--stages", "2", "--ignore-eos"});
    QVERIFY2(run.exit_code == 0, run.log + fleet_->logs());
    text_ = run.text();
    QVERIFY(text_.size() > 40);
    keys_ = shard_keys(fleet_->coordinator_data());
    QCOMPARE(keys_.size(), 8);  // Embedding, six blocks, head.
    for (const QByteArray& key : keys_) QCOMPARE(key.size(), 32);
  }
  void cleanupTestCase() { fleet_.reset(); }

  void the_search_finds_what_is_there() {
    QCOMPARE(found_in(read(demo_model())).count("weights"), weight_pieces().size());
    QVERIFY(found_in(prompt_.toUtf8() + text_.toUtf8()).contains("prompt"));
    QVERIFY(found_in(text_.toUtf8()).contains("text"));
    QCOMPARE(found_in("key=" + keys_.front().toHex() + keys_.back()), QStringList({"key", "key"}));
  }

  void the_wire_holds_nothing_plain() {
    qsizetype crossed = 0;
    for (const char* name : {"a", "b"}) {
      const QByteArray& wire = fleet_->host(name).tap->captured();
      crossed += wire.size();
      QCOMPARE(found_in(wire), QStringList());
    }
    QVERIFY2(crossed > read(demo_model()).size(),
             "every shard should have crossed to one of the two");
  }

  // The ServerHello's supported_versions extension says what was negotiated: 0x0304 is TLS 1.3.
  void the_wire_is_tls_1_3() {
    const QByteArray& wire = fleet_->host("a").tap->captured();
    const QByteArray extension = QByteArray::fromHex("002b00020304");
    QVERIFY(wire.contains(extension));
  }

  void volunteers_disks_hold_nothing_plain() {
    int files = 0;
    for (const char* name : {"a", "b"}) {
      QDirIterator it(fleet_->host(name).data, QDir::Files | QDir::Hidden,
                      QDirIterator::Subdirectories);
      while (it.hasNext()) {
        const QString path = it.next();
        ++files;
        QVERIFY2(found_in(read(path)).isEmpty(), qPrintable(path));
      }
    }
    QVERIFY(files >= 8);  // Identity, settings and sealed shards of two hosts.
  }

  void logs_and_the_coordinators_store_hold_no_text_and_no_plain_weights() {
    for (const QString& folder : {fleet_->folder() + "/logs", fleet_->coordinator_data()}) {
      QDirIterator it(folder, QDir::Files | QDir::Hidden, QDirIterator::Subdirectories);
      while (it.hasNext()) {
        const QString path = it.next();
        QVERIFY2(found_in(read(path)).isEmpty(), qPrintable(path));
      }
    }
  }
};

QTEST_GUILESS_MAIN(SecrecyTest)
#include "secrecy_test.moc"
