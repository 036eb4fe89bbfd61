// Goal: hosts whose owners allow it pass their rows on to each other, the coordinator carries
// nothing but tokens, and the text is the same; whatever stands in the way, the coordinator relays.
// Method: real processes on loopback, as kill_test.

#include <signal.h>

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QTcpServer>
#include <QTcpSocket>
#include <QtTest>

#include "tests/support/fleet.h"

class DirectSystemTest : public QObject {
  Q_OBJECT

 private:
  static constexpr int kTokens = 16;
  static constexpr const char* kNames[] = {"a", "b", "c", "d"};

  std::unique_ptr<Fleet> fleet_;
  QString expected_;
  qint64 relayed_ = 0;

  static QStringList request() {
    return {"--model",       "m",
            "--prompt",      "And the king said unto",
            "--max-tokens",  QString::number(kTokens),
            "--temperature", "0.8",
            "--seed",        "11",
            "--stages",      "3",
            "--ignore-eos",  "--stream"};
  }
  static qint64 relayed_bytes(const Generation& generation) {
    return generation.summary.value("relayed_bytes").toInteger();
  }

  QString set_rule(const QString& name, const QString& key, const QString& value) {
    Program program("shoal-client",
                    {"rules", "set", key, value, "--data", fleet_->host(name).data, "--json"},
                    fleet_->folder() + "/logs/rules.log");
    if (program.wait_exit(20'000) && program.exit_code() == 0) return {};
    return key + " was not set: " + program.output() + program.log();
  }

  // Opens all hosts' doors at an address of this machine.
  void open_doors(const QString& address) {
    for (const char* name : kNames) {
      QTcpServer free_port;
      QVERIFY(free_port.listen(QHostAddress(address)));
      const quint16 port = free_port.serverPort();
      free_port.close();
      QCOMPARE(set_rule(name, "network.direct_listen", address + ":" + QString::number(port)),
               QString());
      QCOMPARE(set_rule(name, "network.direct", "true"), QString());
      const bool open = wait_until(
          [&] {
            QTcpSocket socket;
            socket.connectToHost(address, port);
            return socket.waitForConnected(1'000);
          },
          20'000);
      QVERIFY2(open, fleet_->logs());
    }
  }

 private Q_SLOTS:
  void initTestCase() {
    fleet_ = std::make_unique<Fleet>();
    QCOMPARE(fleet_->start_coordinator(), QString());
    QCOMPARE(fleet_->publish(demo_model(), "m"), QString());
    // Those whose streams may be checked have no paths.
    for (const char* name : kNames) QCOMPARE(fleet_->add_host(name, "cpu", true), QString());
    QCOMPARE(fleet_->wait_ready(4), QString());
    const Generation calm = fleet_->generate(request());
    QVERIFY2(calm.exit_code == 0, calm.log + fleet_->logs());
    expected_ = calm.text();
    relayed_ = relayed_bytes(calm);
    QVERIFY(!expected_.isEmpty());
    QVERIFY(relayed_ > 0);
  }
  void cleanupTestCase() { fleet_.reset(); }

  // The coordinator sees its hosts at 127.0.0.1, where nothing listens then.
  void a_firewall_changes_nothing() {
    open_doors("127.0.0.2");
    const Generation got = fleet_->generate(request());
    QVERIFY2(got.exit_code == 0, got.log + fleet_->logs());
    QCOMPARE(got.text(), expected_);
    QCOMPARE(relayed_bytes(got), relayed_);
  }

  void rows_go_from_host_to_host() {
    open_doors("127.0.0.1");
    const Generation got = fleet_->generate(request());
    QVERIFY2(got.exit_code == 0, got.log + fleet_->logs());
    QCOMPARE(got.text(), expected_);
    QVERIFY2(relayed_bytes(got) == 0, fleet_->logs());
    QVERIFY(got.summary.value("failovers").toArray().isEmpty());
  }

  void a_neighbour_that_is_killed_is_replaced() {
    QString victim;
    const Generation got = fleet_->generate(request(), [&](const QByteArray& output) {
      if (!victim.isEmpty() || output.count("{\"id\":") < 3) return;
      for (const QByteArray& line : output.split('\n')) {
        const QJsonArray stages = QJsonDocument::fromJson(line).object().value("stages").toArray();
        if (stages.size() == 3) victim = fleet_->name_of(stages[1].toObject());
      }
      if (!victim.isEmpty()) fleet_->host(victim).client->signal(SIGKILL);
    });
    QVERIFY2(got.exit_code == 0, got.log + fleet_->logs());
    QVERIFY(!victim.isEmpty());
    QCOMPARE(got.text(), expected_);
  }
};

QTEST_GUILESS_MAIN(DirectSystemTest)
#include "direct_system_test.moc"
