// Goal: what befalls a volunteer's computer costs him nothing: a freeze, as in a sleep that nothing
// announced, and a full disk. Method: real processes; the client alone is stopped, or lives on a
// file system of 16 MB that is filled to the last byte.

#include <signal.h>
#include <sys/mount.h>

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QtTest>

#include "tests/support/fleet.h"

class FaultsTest : public QObject {
  Q_OBJECT

 private:
  static QStringList request(int tokens = 40) {
    return {"--model",       "m",
            "--prompt",      "And the king said unto",
            "--max-tokens",  QString::number(tokens),
            "--temperature", "0.8",
            "--seed",        "11",
            "--ignore-eos",  "--stream"};
  }
  static int tokens_seen(const QByteArray& output) { return int(output.count("{\"id\":")); }

  // The coordinator notices a host that is silent after so many ping intervals of `ping_ms`.
  static void start(Fleet& fleet, int ping_ms) {
    int code = -1;
    fleet.ctl({"init"}, &code);
    QCOMPARE(code, 0);
    QFile file(fleet.coordinator_data() + "/coordinator.toml");
    QVERIFY(file.open(QIODevice::ReadWrite));
    QByteArray text = file.readAll();
    QVERIFY(text.contains("#ping_interval_ms = 2000"));
    text.replace("#ping_interval_ms = 2000", "ping_interval_ms = " + QByteArray::number(ping_ms));
    file.resize(0);
    file.write(text);
    file.close();
    QCOMPARE(fleet.start_coordinator(), QString());
    QCOMPARE(fleet.publish(demo_model(), "m"), QString());
  }

  // What the host's own client says of itself.
  static QJsonObject ask(const Fleet& fleet, const QString& data, const QStringList& arguments,
                         int* exit_code = nullptr) {
    Program program("shoal-client", arguments + QStringList{"--data", data, "--json"},
                    fleet.folder() + "/logs/asks.log");
    const bool ended = program.wait_exit(20'000);
    if (exit_code != nullptr) *exit_code = ended ? program.exit_code() : -1;
    return QJsonDocument::fromJson(program.output().trimmed()).object();
  }
  static QString why(const Fleet& fleet, const QString& data) {
    const QJsonObject overall = ask(fleet, data, {"status"}).value("overall").toObject();
    return overall.value("why").toObject().value("code").toString();
  }
  static QJsonObject host_row(Fleet& fleet) {
    return fleet.ctl({"host", "list"}).value("hosts").toArray().at(0).toObject();
  }

 private Q_SLOTS:
  // F6. The coordinator has long given it up when it wakes; nothing else can take the stage.
  void a_frozen_host_takes_its_work_up_again_at_once() {
    Fleet fleet;
    start(fleet, 400);
    QCOMPARE(fleet.add_host("a", "cpu", /*trusted=*/true), QString());
    FleetHost& host = fleet.host("a");
    host.client->signal(SIGTERM);
    QVERIFY(host.client->wait_exit(10'000));
    host.arguments = {"--gap-ms", "2000"};
    QCOMPARE(fleet.start_host("a"), QString());
    QCOMPARE(fleet.wait_ready(1), QString());
    const Generation calm = fleet.generate(request());
    QVERIFY2(calm.exit_code == 0, calm.log + fleet.logs());

    host.tap->set_delay_ms(4);
    qint64 frozen_ms = -1, back_ms = -1;
    QElapsedTimer since;
    const auto connected = [&] { return fleet.ctl({"status"}).value("hosts_connected").toInt(); };
    const Generation hurt = fleet.generate(request(), [&](const QByteArray& output) {
      if (frozen_ms < 0 && tokens_seen(output) >= 8) {
        host.client->signal(SIGSTOP);
        since.start();
        frozen_ms = 0;
      }
      if (frozen_ms == 0 && since.elapsed() > 3'500 && connected() == 0) {
        frozen_ms = since.elapsed();
        host.client->signal(SIGCONT);
        since.restart();
      }
      if (frozen_ms > 0 && back_ms < 0 && connected() == 1) back_ms = since.elapsed();
    });
    QVERIFY2(hurt.exit_code == 0, hurt.log + fleet.logs());
    QVERIFY2(frozen_ms > 0, hurt.log + fleet.logs());
    QCOMPARE(hurt.text(), calm.text());
    qInfo("frozen for %lld ms, connected again after %lld ms", frozen_ms, back_ms);
    // At once, and not when a wait of the back-off is over.
    QVERIFY2(back_ms >= 0 && back_ms < 3'000, fleet.logs());
    QVERIFY2(host.client->log().contains("woke"), host.client->log());
    // No trust is lost: the device is as good as before, and all that it did counts.
    QCOMPARE(fleet.wait_ready(1), QString());
    QVERIFY(wait_until(
        [&] {
          const QJsonObject row = host_row(fleet);
          return row.value("standing") == "trusted" &&
                 row.value("credit_confirmed").toDouble() > 0 &&
                 row.value("credit_pending").toDouble() == 0 &&
                 row.value("credit_rejected").toDouble() == 0;
        },
        10'000));
    const Generation after = fleet.generate(request());
    QCOMPARE(after.text(), calm.text());
    QVERIFY(after.summary.value("failovers").toArray().isEmpty());
  }

  // F14.
  void a_full_disk_pauses_work_and_loses_nothing() {
    Fleet fleet;
    start(fleet, 400);
    const QString data = fleet.folder() + "/a";
    QVERIFY(QDir().mkpath(data));
    const QByteArray path = data.toUtf8();
    if (mount("tmpfs", path.constData(), "tmpfs", 0, "size=16m,mode=0700") != 0) {
      QSKIP("needs the right to mount; agent_rules_test fills a disk that is none");
    }
    const auto unmount = qScopeGuard([&] { umount2(path.constData(), MNT_DETACH); });
    QVERIFY(QDir().mkpath(data + "/config"));
    QFile settings(data + "/config/client.toml");
    QVERIFY(settings.open(QIODevice::WriteOnly));
    // So little is not left for other programs: that rule would pause it first.
    settings.write("[cache]\nfree_bytes_min = 0\n");
    settings.close();
    QCOMPARE(fleet.add_host("a"), QString());
    QCOMPARE(fleet.wait_ready(1), QString());
    const Generation calm = fleet.generate(request());
    QVERIFY2(calm.exit_code == 0, calm.log + fleet.logs());
    const auto receipts = [&] {
      return ask(fleet, data, {"receipts"}).value("receipts").toArray().size();
    };
    QVERIFY(wait_until([&] { return receipts() == 1; }, 10'000));

    QFile filler(data + "/filler");
    QVERIFY(filler.open(QIODevice::WriteOnly | QIODevice::Unbuffered));
    for (qsizetype piece = 1 << 20; piece > 0; piece /= 2) {
      while (filler.write(QByteArray(piece, 'x')) == piece) {
      }
    }
    filler.close();
    // What is there computes on; the receipt that follows finds no room.
    const Generation full = fleet.generate(request());
    QVERIFY2(full.exit_code == 0, full.log + fleet.logs());
    QCOMPARE(full.text(), calm.text());
    QVERIFY2(wait_until([&] { return why(fleet, data) == "attention.disk_full"; }, 15'000),
             fleet.logs());
    QVERIFY(wait_until([&] { return fleet.ctl({"status"}).value("devices_ready").toInt(-1) == 0; },
                       10'000));
    // What cannot be kept is refused, with the reason, and is not half done.
    int code = 0;
    const QJsonObject refused =
        ask(fleet, data, {"rules", "set", "rules.idle_seconds", "60"}, &code);
    QCOMPARE(code, 6);
    QVERIFY(!refused.value("error").toObject().value("message").toString().isEmpty());
    const qint64 log_bytes = QFileInfo(fleet.folder() + "/logs/a.log").size();

    QVERIFY(filler.remove());
    QCOMPARE(fleet.wait_ready(1), QString());
    // Not a line for each try.
    QVERIFY(QFileInfo(fleet.folder() + "/logs/a.log").size() < log_bytes + 20'000);
    const Generation again = fleet.generate(request());
    QCOMPARE(again.text(), calm.text());
    // The one that found no room is asked for again, half a minute later at most.
    QVERIFY2(wait_until([&] { return receipts() == 3; }, 45'000), fleet.logs());
    // Every signature and total, checked by the client against what the coordinator says.
    ask(fleet, data, {"receipts", "--verify"}, &code);
    QCOMPARE(code, 0);
    // And it is the same host after a restart.
    const qint64 id = fleet.host("a").id;
    fleet.host("a").client->signal(SIGTERM);
    QVERIFY(fleet.host("a").client->wait_exit(10'000));
    QCOMPARE(fleet.start_host("a"), QString());
    QCOMPARE(fleet.wait_ready(1), QString());
    QCOMPARE(host_row(fleet).value("id").toInteger(), id);
    QCOMPARE(ask(fleet, data, {"rules", "get", "rules.idle_seconds"}).value("value").toInt(), 180);
  }
};

QTEST_GUILESS_MAIN(FaultsTest)
#include "faults_test.moc"
