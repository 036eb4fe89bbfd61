// Goal: what befalls a volunteer's computer costs him nothing: a freeze, as in a sleep that nothing
// announced, a full disk, another program that holds his records, a network that is not there yet
// or is another's. Method: real processes; the client alone is stopped, lives on a file system of
// 16 MB that is filled to the last byte, or dials what is no coordinator.

#include <signal.h>
#include <sys/mount.h>

#include <QDirIterator>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QTcpServer>
#include <QTcpSocket>
#include <QTest>
#include <cerrno>

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
  static QString records_of(const QString& data) {
    QDirIterator files(data, {"records.db"}, QDir::Files, QDirIterator::Subdirectories);
    return files.hasNext() ? files.next() : QString();
  }
  static QJsonObject host_row(Fleet& fleet) {
    return fleet.ctl({"host", "list"}).value("hosts").toArray().at(0).toObject();
  }

 private Q_SLOTS:
  // F6. Frozen for longer than the gap that a client takes for a sleep (agent_judge.cpp: 10 s). The
  // coordinator has long given it up when it wakes; nothing else can take the stage.
  void a_frozen_host_takes_its_work_up_again_at_once() {
    Fleet fleet;
    start(fleet, 400);
    QCOMPARE(fleet.add_host("a", "cpu", /*trusted=*/true), QString());
    FleetHost& host = fleet.host("a");
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
      if (frozen_ms == 0 && since.elapsed() > 11'000 && connected() == 0) {
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
      QSKIP(qPrintable(QString("F14 NOT TESTED: this user may not mount a small disk to fill (%1). "
                               "Run it as root, or with CAP_SYS_ADMIN. What is left untested: real "
                               "ENOSPC of records, receipts and settings; agent_rules_test has the "
                               "same of a store that only says that it is full.")
                           .arg(qt_error_string(errno))));
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

  // F18. The other program is a backup, or an upgrade, that holds the file for good.
  void records_that_another_program_holds_stop_nothing() {
    Fleet fleet;
    start(fleet, 400);
    QCOMPARE(fleet.add_host("a"), QString());
    QCOMPARE(fleet.wait_ready(1), QString());
    const QString data = fleet.host("a").data;
    const Generation calm = fleet.generate(request());
    QVERIFY2(calm.exit_code == 0, calm.log + fleet.logs());
    const auto receipts = [&] {
      return ask(fleet, data, {"receipts"}).value("receipts").toArray().size();
    };
    QVERIFY(wait_until([&] { return receipts() == 1; }, 10'000));

    QProcess other;
    other.start("/usr/bin/python3", {"-c",
                                     "import sqlite3, sys\n"
                                     "db = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
                                     "db.execute('PRAGMA busy_timeout = 10000')\n"
                                     "db.execute('BEGIN EXCLUSIVE')\n"
                                     "print('held', flush=True)\n"
                                     "sys.stdin.read()\n",
                                     records_of(data)});
    QVERIFY(wait_until([&] { return other.bytesAvailable() > 0; }, 15'000));
    const Generation meanwhile = fleet.generate(request());
    QVERIFY2(meanwhile.exit_code == 0, meanwhile.log + fleet.logs());
    QCOMPARE(meanwhile.text(), calm.text());
    // Everything else answers, and nothing waits for the file. (That a person is told, once it has
    // lasted, is records_failure_test's.)
    QCOMPARE(fleet.wait_ready(1), QString());
    QElapsedTimer asking;
    asking.start();
    int code = 0;
    const QJsonObject refused = ask(fleet, data, {"receipts"}, &code);
    QCOMPARE(code, 5);
    QVERIFY(!refused.value("error").toObject().value("message").toString().isEmpty());
    QVERIFY(!ask(fleet, data, {"status"}).isEmpty());
    QVERIFY2(asking.elapsed() < 5'000, qPrintable(QString::number(asking.elapsed())));
    // A second client does not fight for it.
    Program second("shoal-client", {"run", "--data", data}, fleet.folder() + "/logs/second.log");
    QVERIFY(second.wait_exit(10'000));
    QVERIFY(second.exit_code() != 0);
    QVERIFY2(second.log().contains("runs"), second.log());
    QVERIFY(fleet.host("a").client->running());

    other.closeWriteChannel();
    QVERIFY(other.waitForFinished(10'000));
    QCOMPARE(other.exitCode(), 0);
    // The one that could not be stored is asked for again, half a minute later at most.
    QVERIFY2(wait_until([&] { return receipts() == 2; }, 45'000), fleet.logs());
    ask(fleet, data, {"receipts", "--verify"}, &code);
    QCOMPARE(code, 0);
  }

  // F19, without a network: a resolver that is not there is coordinator_link_test's.
  void a_network_that_comes_late_is_found_without_a_restart() {
    Fleet fleet;
    start(fleet, 400);
    QCOMPARE(fleet.add_host("a"), QString());
    QCOMPARE(fleet.wait_ready(1), QString());
    FleetHost& host = fleet.host("a");
    host.client->signal(SIGTERM);
    QVERIFY(host.client->wait_exit(10'000));
    host.tap->set_open(false);
    QCOMPARE(fleet.start_host("a"), QString());
    QVERIFY2(wait_until([&] { return why(fleet, host.data) == "offline.unreachable"; }, 15'000),
             fleet.logs());
    host.tap->set_open(true);
    // One wait of the back-off, of which it has made few.
    QCOMPARE(fleet.wait_ready(1, 15'000), QString());
  }

  // F20. Whatever answers in a coordinator's place is told from it, and learns nothing of the
  // invite.
  void a_captive_portal_is_told_from_a_coordinator() {
    QTcpServer portal;
    QByteArray heard;
    QObject::connect(&portal, &QTcpServer::newConnection, &portal, [&] {
      QTcpSocket* const socket = portal.nextPendingConnection();
      QObject::connect(socket, &QTcpSocket::readyRead, socket, [&heard, socket] {
        heard += socket->readAll();
        const QByteArray page = "<html><body>Accept the terms of the hotel</body></html>";
        socket->write("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: " +
                      QByteArray::number(page.size()) + "\r\n\r\n" + page);
      });
    });
    QVERIFY(portal.listen(QHostAddress::LocalHost));
    Fleet fleet;
    start(fleet, 400);
    const QString url = fleet.ctl({"invite"}).value("url").toString();
    QString through = url;
    through.replace(QRegularExpression("^shoal://[^/]*/"),
                    "shoal://127.0.0.1:" + QString::number(portal.serverPort()) + "/");
    const QString data = fleet.folder() + "/guest";
    const auto attach = [&](const QString& to, int* code) {
      Program program("shoal-client", {"attach", to, "--data", data, "--json"},
                      fleet.folder() + "/logs/guest.log");
      *code = program.wait_exit(30'000) ? program.exit_code() : -1;
      return program.output() + program.log();
    };
    int code = 0;
    const QByteArray said = attach(through, &code);
    QVERIFY2(code > 0 && said.contains("no Shoal coordinator"), said);
    QVERIFY(!heard.isEmpty());
    const QByteArray invite =
        QRegularExpression("invite=([^&]+)").match(url).captured(1).toLatin1();
    QVERIFY(!invite.isEmpty() && !heard.contains(invite));
    // Nor was the invite used up by it.
    const QByteArray joined = attach(url, &code);
    QVERIFY2(code == 0, joined);
  }
};

QTEST_GUILESS_MAIN(FaultsTest)
#include "faults_test.moc"
