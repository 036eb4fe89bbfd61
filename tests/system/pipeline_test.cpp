// Goal: a model split over several processes that speak TLS gives the bits of one process, wherever
// it is cut. Method: `shoal-run` in one process is the oracle; the fleet's text and ids must equal
// its own.

#include <QJsonArray>
#include <QJsonDocument>
#include <QTest>
#include <algorithm>

#include "tests/support/fleet.h"
#include "tests/support/shared_data.h"

class PipelineTest : public QObject {
  Q_OBJECT

 private:
  std::unique_ptr<Fleet> fleet_;
  QString model_;

  QJsonObject one_process(const QString& prompt, const QStringList& more = {}) {
    Program run("shoal-run",
                QStringList{"generate", "--model", model_, "--device", "cpu", "--threads", "1",
                            "--prompt", prompt, "--max-tokens", "24", "--json"} +
                    more,
                fleet_->folder() + "/logs/shoal-run.log");
    run.wait_exit(60'000);
    return QJsonDocument::fromJson(run.output().trimmed().split('\n').last()).object();
  }

  Generation several(const QString& prompt, const QStringList& more = {}) {
    return fleet_->generate(QStringList{"--model", "m", "--prompt", prompt, "--max-tokens", "24"} +
                            more);
  }

 private Q_SLOTS:
  void initTestCase() {
    const auto data = shoal::shared_data();
    model_ = data ? QString::fromStdString((*data / "stories260K/stories260K-f32.gguf").string())
                  : demo_model();
    fleet_ = std::make_unique<Fleet>();
    QCOMPARE(fleet_->start_coordinator(), QString());
    QCOMPARE(fleet_->publish(model_, "m"), QString());
    QCOMPARE(fleet_->add_host("anchor", "cpu", true), QString());
    QCOMPARE(fleet_->add_host("one"), QString());
    QCOMPARE(fleet_->add_host("two"), QString());
    QCOMPARE(fleet_->wait_ready(3), QString());
  }
  void cleanupTestCase() { fleet_.reset(); }

  void every_cut_gives_the_bits_of_one_process() {
    const QString prompt = "Once upon a time there was";
    const QJsonObject expected = one_process(prompt);
    QVERIFY(!expected.value("ids").toArray().isEmpty());

    const QJsonArray models = fleet_->ctl({"model", "list"}).value("models").toArray();
    QCOMPARE(models.size(), 1);
    const int fragments = models[0].toObject().value("fragments").toInt();
    QVERIFY(fragments >= 7);
    for (int cut = 1; cut < fragments; ++cut) {
      const Generation split = several(prompt, {"--cut", QString::number(cut), "--ignore-eos"});
      QVERIFY2(split.exit_code == 0, split.log + fleet_->logs());
      QCOMPARE(split.summary.value("stages").toArray().size(), 2);
      QCOMPARE(split.summary.value("ids"), expected.value("ids"));
      QCOMPARE(split.text(), expected.value("text").toString());
    }
  }

  void three_hosts_and_sampling_give_the_bits_of_one_process() {
    const QString prompt = "The little dog";
    const QStringList sampling{"--temperature", "0.9", "--top-p", "0.95", "--seed", "7"};
    const QJsonObject expected = one_process(prompt, sampling);
    const Generation split =
        several(prompt, QStringList{"--stages", "3", "--ignore-eos"} + sampling);
    QVERIFY2(split.exit_code == 0, split.log + fleet_->logs());
    QCOMPARE(split.summary.value("hosts").toInt(), 3);
    QCOMPARE(split.summary.value("ids"), expected.value("ids"));
    QVERIFY(split.summary.value("relayed_bytes").toDouble() > 0);
  }

  void an_anchored_session_keeps_tokens_on_the_trusted_host() {
    const Generation split = several("Once", {"--privacy", "anchored", "--stages", "3"});
    QVERIFY2(split.exit_code == 0, split.log + fleet_->logs());
    const QJsonArray stages = split.summary.value("stages").toArray();
    QCOMPARE(fleet_->name_of(stages.first().toObject()), QString("anchor"));
    QCOMPARE(fleet_->name_of(stages.last().toObject()), QString("anchor"));
    for (int i = 1; i + 1 < stages.size(); ++i) {
      QVERIFY(fleet_->name_of(stages[i].toObject()) != "anchor");
    }
  }

  void a_model_that_fits_is_not_split() {
    const Generation whole = several("Once");
    QVERIFY2(whole.exit_code == 0, whole.log + fleet_->logs());
    QCOMPARE(whole.summary.value("stages").toArray().size(), 1);
  }

  void what_was_done_is_paid_and_agrees() {
    const Generation split = several("Once", {"--stages", "3"});
    QVERIFY2(split.exit_code == 0, split.log + fleet_->logs());
    // Hosts that are new here are checked: what that needs stays pending until it is over.
    QJsonArray hosts;
    QVERIFY2(wait_until(
                 [&] {
                   hosts = fleet_->ctl({"ledger", "list"}).value("hosts").toArray();
                   return std::ranges::all_of(hosts, [](const QJsonValue& host) {
                     return host.toObject().value("credit_pending").toDouble() == 0;
                   });
                 },
                 30'000),
             fleet_->logs());
    QCOMPARE(hosts.size(), 3);
    double confirmed = 0;
    for (const QJsonValue& value : hosts) {
      const QJsonObject host = value.toObject();
      QVERIFY(host.value("credit_confirmed").toDouble() > 0);
      QCOMPARE(host.value("credit_rejected").toDouble(), 0.0);
      confirmed += host.value("credit_confirmed").toDouble();
      const QString id = QString::number(host.value("host_id").toInt());
      const QJsonArray receipts = fleet_->ctl({"ledger", "show", id}).value("receipts").toArray();
      QCOMPARE(receipts.size(), host.value("receipts").toInt());
      double sum = 0;
      for (const QJsonValue& receipt : receipts) {
        QVERIFY(receipt.toObject().value("genuine").toBool());
        if (receipt.toObject().value("verdict").toString() == "pending") continue;
        sum += receipt.toObject().value("credit").toDouble();
      }
      QCOMPARE(sum, host.value("credit_confirmed").toDouble());
    }
    int code = -1;
    const QJsonObject report = fleet_->ctl({"ledger", "reconcile"}, &code);
    QCOMPARE(code, 0);
    QCOMPARE(report.value("problem_count").toInt(), 0);
    QCOMPARE(report.value("credit_confirmed").toDouble(), confirmed);
  }

  void what_cannot_be_done_is_said() {
    Generation refused = several("Once", {"--stages", "5"});
    QVERIFY(refused.exit_code != 0);
    QVERIFY2(
        refused.summary.value("error").toObject().value("message").toString().contains("device"),
        QJsonDocument(refused.summary).toJson() + refused.log);
    refused = fleet_->generate({"--model", "absent", "--prompt", "x", "--max-tokens", "4"});
    QVERIFY(refused.exit_code != 0);
    QVERIFY2(
        refused.summary.value("error").toObject().value("message").toString().contains("absent"),
        refused.log);
  }
};

QTEST_GUILESS_MAIN(PipelineTest)
#include "pipeline_test.moc"
