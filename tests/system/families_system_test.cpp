// Goal: a family other than Llama, and a model that was rounded when it was published, go the whole
// way: over two hosts they give the ids and the text of one process. Method: tiny models that the
// test makes; `shoal-run` is the oracle.

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QTest>

#include "tests/models/tiny_family.h"
#include "tests/support/fleet.h"

using namespace shoal::compute;

class FamiliesSystemTest : public QObject {
  Q_OBJECT

 private:
  std::unique_ptr<Fleet> fleet_;

  // The path of a file of the family that is called `name`.
  QString made(const std::string& name, bool blocks_of_256) {
    for (TinyFamily family : tiny_families()) {
      if (family.name != name) continue;
      if (blocks_of_256) family = in_blocks_of_256(family);
      family.vocabulary = 288;
      GgufMaker maker = gguf_of(family, tiny_weights(family, 5));
      add_byte_tokenizer(maker, family.vocabulary);
      const auto bytes = maker.bytes();
      QFile file(fleet_->folder() + "/" + QString::fromStdString(name).remove(' ') + ".gguf");
      if (!file.open(QIODevice::WriteOnly) ||
          file.write(reinterpret_cast<const char*>(bytes.data()), qint64(bytes.size())) < 0) {
        qFatal("%s", qPrintable(file.errorString()));
      }
      return file.fileName();
    }
    qFatal("no such family");
  }

  // Publishes it, and generates in one process and over two hosts.
  void check(const QString& path, const QString& name, const QStringList& quantize) {
    const QStringList asked{"--prompt", "Once upon a time", "--max-tokens", "20", "--ignore-eos"};
    Program run(
        "shoal-run",
        QStringList{"generate", "--model", path, "--device", "cpu", "--json"} + asked + quantize,
        fleet_->folder() + "/logs/shoal-run.log");
    QVERIFY(run.wait_exit(60'000));
    QVERIFY2(run.exit_code() == 0, run.log() + run.output());
    const QJsonObject expected =
        QJsonDocument::fromJson(run.output().trimmed().split('\n').last()).object();
    QCOMPARE(expected.value("ids").toArray().size(), 20);

    int code = -1;
    const QJsonObject published =
        fleet_->ctl(QStringList{"model", "publish", path, "--name", name} + quantize, &code);
    QVERIFY2(code == 0, fleet_->logs());
    QCOMPARE(published.value("quantised").toArray().isEmpty(), quantize.isEmpty());
    for (const QJsonValue& line : published.value("quantised").toArray()) {
      const double error = line.toObject().value("relative_error").toDouble();
      QVERIFY(error > 0.001 && error < 0.15);
    }
    for (const QString cut : {"1", "3"}) {
      const Generation split = fleet_->generate(QStringList{"--model", name, "--cut", cut} + asked);
      QVERIFY2(split.exit_code == 0, split.log + fleet_->logs());
      QCOMPARE(split.summary.value("hosts").toInt(), 2);
      QCOMPARE(split.summary.value("ids"), expected.value("ids"));
      QCOMPARE(split.text(), expected.value("text").toString());
    }
  }

 private Q_SLOTS:
  void initTestCase() {
    fleet_ = std::make_unique<Fleet>();
    QCOMPARE(fleet_->start_coordinator(), QString());
    QCOMPARE(fleet_->add_host("one"), QString());
    QCOMPARE(fleet_->add_host("two"), QString());
    QCOMPARE(fleet_->wait_ready(2), QString());
  }
  void cleanupTestCase() { fleet_.reset(); }

  void a_mixture_of_experts_runs_over_two_hosts() { check(made("qwen 3 moe", false), "moe", {}); }

  void a_model_that_was_rounded_runs_over_two_hosts() {
    check(made("gemma 3", true), "gemma", {"--quantize", "q4_k_m"});
  }

  void what_cannot_be_rounded_is_refused() {
    int code = 0;
    const QJsonObject unknown =
        fleet_->ctl({"model", "publish", demo_model(), "--name", "x", "--quantize", "q3"}, &code);
    QVERIFY(code != 0);
    QVERIFY(unknown.value("error").toObject().value("message").toString().contains("q4_k_m"));
    const QJsonObject already =
        fleet_->ctl({"model", "publish", demo_model(), "--name", "x", "--quantize", "q4_0"}, &code);
    QVERIFY(code != 0);
    QVERIFY(
        already.value("error").toObject().value("message").toString().contains("16 or 32 bits"));
  }
};

QTEST_GUILESS_MAIN(FamiliesSystemTest)
#include "families_system_test.moc"
