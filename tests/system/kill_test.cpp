// Goal: whatever dies under a generation, the text goes on and is the text of an undisturbed run.
// Method: a tap between each host and the coordinator slows the stream, so that "at the first
// token" can be hit; the victim is the host of the middle stage; a spare host is there to replace
// it.

#include <signal.h>

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QTest>

#include "tests/support/fleet.h"

class KillTest : public QObject {
  Q_OBJECT

 private:
  static constexpr int kTokens = 16;

  std::unique_ptr<Fleet> fleet_;
  QString expected_;
  QStringList gaps_;

  static QStringList request() {
    return {"--model",       "m",
            "--prompt",      "And the king said unto",
            "--max-tokens",  QString::number(kTokens),
            "--temperature", "0.8",
            "--seed",        "11",
            "--stages",      "3",
            "--ignore-eos",  "--stream"};
  }

  // The host of the session's second stage, read from the stream's events.
  QString middle_host(const QByteArray& output) const {
    QString name;
    for (const QByteArray& line : output.split('\n')) {
      const QJsonObject event = QJsonDocument::fromJson(line).object();
      const QJsonArray stages = event.value("stages").toArray();
      if (stages.size() == 3) name = fleet_->name_of(stages[1].toObject());
    }
    return name;
  }
  static int tokens_seen(const QByteArray& output) { return int(output.count("{\"id\":")); }

  void do_harm(const QString& what, const QString& name) {
    FleetHost& host = fleet_->host(name);
    if (what == "worker killed") ::kill(pid_t(fleet_->worker_pid(name)), SIGKILL);
    if (what == "worker frozen") ::kill(pid_t(fleet_->worker_pid(name)), SIGSTOP);
    if (what == "client killed") host.client->signal(SIGKILL);
    if (what == "client frozen") host.client->signal(SIGSTOP);
    if (what == "line cut") host.tap->cut();
    if (what == "line dead") host.tap->set_frozen(true);
  }

  void heal(const QString& what, const QString& name) {
    FleetHost& host = fleet_->host(name);
    if (what == "worker frozen") ::kill(pid_t(fleet_->worker_pid(name)), SIGCONT);
    if (what == "client killed") QCOMPARE(fleet_->start_host(name), QString());
    if (what == "client frozen") host.client->signal(SIGCONT);
    if (what == "line dead") {
      host.tap->set_frozen(false);
      host.tap->cut();
    }
  }

 private Q_SLOTS:
  void initTestCase() {
    fleet_ = std::make_unique<Fleet>();
    // What hangs is given up sooner than usual, or this test would mostly wait: each case is the
    // same.
    int code = -1;
    fleet_->ctl({"init"}, &code);
    QCOMPARE(code, 0);
    QFile settings(fleet_->coordinator_data() + "/coordinator.toml");
    QVERIFY(settings.open(QIODevice::WriteOnly | QIODevice::Truncate));
    settings.write(
        "[session]\nstep_timeout_ms = 700\nfirst_step_timeout_ms = 2000\n"
        "device_rest_ms = 500\n[hosts]\nping_interval_ms = 1000\n");
    settings.close();
    QCOMPARE(fleet_->start_coordinator(), QString());
    QCOMPARE(fleet_->publish(demo_model(), "m"), QString());
    for (const char* name : {"a", "b", "c", "d"}) QCOMPARE(fleet_->add_host(name), QString());
    QCOMPARE(fleet_->wait_ready(4), QString());
    const Generation calm = fleet_->generate(request());
    QVERIFY2(calm.exit_code == 0, calm.log + fleet_->logs());
    expected_ = calm.text();
    QCOMPARE(calm.summary.value("tokens").toInt(), kTokens);
    QVERIFY(calm.summary.value("failovers").toArray().isEmpty());
    for (const char* name : {"a", "b", "c", "d"}) fleet_->host(name).tap->set_delay_ms(4);
  }
  void cleanupTestCase() {
    fleet_.reset();
    qInfo("gaps: %s", qPrintable(gaps_.join("; ")));
  }

  void the_text_goes_on_data() {
    QTest::addColumn<QString>("what");
    QTest::addColumn<int>("at_token");  // -1: while the prompt is being prefilled.
    for (const char* what : {"worker killed", "worker frozen", "client killed", "client frozen",
                             "line cut", "line dead"}) {
      for (const int at : {-1, 1, kTokens / 2, kTokens - 1}) {
        QTest::addRow("%s at %d", what, at) << QString(what) << at;
      }
    }
  }
  void the_text_goes_on() {
    QFETCH(QString, what);
    QFETCH(int, at_token);

    QString victim;
    const Generation hurt = fleet_->generate(request(), [&](const QByteArray& output) {
      if (!victim.isEmpty()) return;
      const QString middle = middle_host(output);
      if (middle.isEmpty() || (at_token > 0 && tokens_seen(output) < at_token)) return;
      victim = middle;
      do_harm(what, victim);
    });
    QVERIFY2(!victim.isEmpty(), "the stream named no hosts: " + hurt.log + fleet_->logs());
    heal(what, victim);
    QVERIFY2(hurt.exit_code == 0, hurt.log + fleet_->logs());
    QCOMPARE(hurt.text(), expected_);
    QCOMPARE(hurt.summary.value("tokens").toInt(), kTokens);
    for (const QJsonValue& failover : hurt.summary.value("failovers").toArray()) {
      gaps_ += QString("%1 at %2: %3 ms")
                   .arg(what)
                   .arg(at_token)
                   .arg(failover.toObject().value("gap_ms").toInt());
    }
    // A loss after the last token's step may go unnoticed; every earlier one must have been
    // repaired.
    if (at_token < kTokens - 1) QVERIFY(!hurt.summary.value("failovers").toArray().isEmpty());
    QCOMPARE(fleet_->wait_ready(4), QString());
  }

  void the_coordinator_killed_leaves_a_sound_store_and_its_hosts_come_back() {
    for (const int at_token : {-1, 1, 5, 12}) {
      bool killed = false;
      const Generation cut = fleet_->generate(request(), [&](const QByteArray& output) {
        if (killed || middle_host(output).isEmpty() || tokens_seen(output) < at_token) return;
        killed = true;
        fleet_->coordinator()->signal(SIGKILL);
      });
      QVERIFY(killed);
      QVERIFY(cut.exit_code != 0);
      QVERIFY(fleet_->coordinator()->wait_exit(5'000));
      QCOMPARE(fleet_->start_coordinator(),
               QString());  // It checks its store's integrity when it opens.
      QCOMPARE(fleet_->wait_ready(4, 30'000), QString());
      const QJsonArray sessions = fleet_->ctl({"session", "list"}).value("sessions").toArray();
      QVERIFY(!sessions.isEmpty());
      QCOMPARE(sessions[0].toObject().value("state").toString(), QString("failed"));
      const Generation again = fleet_->generate(request());
      QVERIFY2(again.exit_code == 0, again.log + fleet_->logs());
      QCOMPARE(again.text(), expected_);
    }
  }

  void a_client_stops_in_order_when_asked() {
    Program* client = fleet_->host("a").client.get();
    const qint64 worker = fleet_->worker_pid("a");
    QVERIFY(worker > 0);
    client->signal(SIGTERM);
    QVERIFY(client->wait_exit(5'000));
    QCOMPARE(client->exit_code(), 0);
    QVERIFY(wait_until([&] { return ::kill(pid_t(worker), 0) != 0; }, 2'000));
  }
};

QTEST_GUILESS_MAIN(KillTest)
#include "kill_test.moc"
