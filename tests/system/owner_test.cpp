// Goal: when an owner comes back in mid-sentence, his computer is his within the bound, and the
// text goes on elsewhere as if nothing had been. Method: real processes; one host runs by its
// rules, with sensors that say what a file says.

#include <signal.h>

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QTest>

#include "tests/support/fleet.h"

class OwnerTest : public QObject {
  Q_OBJECT

 private:
  std::unique_ptr<Fleet> fleet_;

  static QStringList request() {
    return {"--model",      "m",       "--prompt",      "And the king said unto",
            "--max-tokens", "40",      "--temperature", "0.8",
            "--seed",       "11",      "--stages",      "3",
            "--ignore-eos", "--stream"};
  }
  static int tokens_seen(const QByteArray& output) { return int(output.count("{\"id\":")); }

  static void write(const QString& path, const QByteArray& text) {
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
    file.write(text);
  }
  void set_idle_ms(const QString& name, int milliseconds) {
    write(fleet_->host(name).data + "/idle", QByteArray::number(milliseconds));
  }

  // From now on this host goes by its rules; nobody has used it for ten minutes.
  void obey_rules(const QString& name) {
    FleetHost& host = fleet_->host(name);
    host.client->signal(SIGTERM);
    QVERIFY(host.client->wait_exit(10'000));
    set_idle_ms(name, 600'000);
    const QString script = host.data + "/sensors.sh";
    write(script, "#!/bin/sh\nwhile :; do\n  idle=$(cat '" + host.data.toUtf8() + R"(/idle')
  cat <<END
{"sensor":"idle","known":true,"backend":"file","idle_ms":$idle,"locked":false,"every_ms":1000}
{"sensor":"inhibitors","known":true,"backend":"file","inhibitors":[],"every_ms":1000}
{"sensor":"power","known":true,"backend":"file","on_battery":false,"every_ms":1000}
{"sensor":"load","known":true,"other_cpu_load":0,"every_ms":1000}
{"sensor":"memory","known":true,"memory_available":8000000000,"every_ms":1000}
{"sensor":"disk","known":true,"cache_disk_free":80000000000,"every_ms":1000}
{"sensor":"programs","known":true,"programs":[],"every_ms":1000}
{"sensor":"gpu","known":true,"gpus":[],"every_ms":1000}
{"sensor":"network","known":true,"online":true,"metered":false,"every_ms":1000}
END
  sleep 0.1
done
)");
    QFile::setPermissions(script, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    QDir().mkpath(host.data + "/config");
    write(host.data + "/config/client.toml", "[sensors]\nprogram = \"" + script.toUtf8() + "\"\n");
    host.mode = "rules";
    QCOMPARE(fleet_->start_host(name), QString());
  }

 private Q_SLOTS:
  void initTestCase() {
    fleet_ = std::make_unique<Fleet>();
    QCOMPARE(fleet_->start_coordinator(), QString());
    QCOMPARE(fleet_->publish(demo_model(), "m"), QString());
    for (const char* name : {"a", "b", "c", "d"}) QCOMPARE(fleet_->add_host(name), QString());
    QCOMPARE(fleet_->wait_ready(4), QString());
    for (const char* name : {"a", "b", "c", "d"}) {
      obey_rules(name);
      fleet_->host(name).tap->set_delay_ms(4);
    }
    QCOMPARE(fleet_->wait_ready(4), QString());
  }
  void cleanupTestCase() { fleet_.reset(); }

  void the_owner_comes_back() {
    const Generation calm = fleet_->generate(request());
    QVERIFY2(calm.exit_code == 0, calm.log + fleet_->logs());
    QVERIFY(calm.summary.value("failovers").toArray().isEmpty());

    QString name;
    qint64 worker = 0;
    QElapsedTimer since;
    qint64 free_after_ms = -1;
    const Generation disturbed = fleet_->generate(request(), [&](const QByteArray& output) {
      if (worker == 0 && tokens_seen(output) >= 8) {
        for (const QByteArray& line : output.split('\n')) {
          const QJsonArray stages =
              QJsonDocument::fromJson(line).object().value("stages").toArray();
          if (stages.size() == 3) name = fleet_->name_of(stages[1].toObject());
        }
        worker = fleet_->worker_pid(name);
        set_idle_ms(name, 0);
        since.start();
      }
      if (worker != 0 && free_after_ms < 0 && ::kill(pid_t(worker), 0) != 0) {
        free_after_ms = since.elapsed();
      }
    });
    QVERIFY2(disturbed.exit_code == 0, disturbed.log + fleet_->logs());
    QCOMPARE(disturbed.text(), calm.text());
    QVERIFY(worker != 0);
    const QJsonArray failovers = disturbed.summary.value("failovers").toArray();
    QCOMPARE(failovers.size(), 1);
    // Seen by the sensor within 0.1 s; then stopped within yield.stop_ms, a second.
    QVERIFY2(free_after_ms >= 0, fleet_->logs());
    QVERIFY2(free_after_ms < 2'000, QByteArray::number(free_after_ms));
    qInfo("free after %lld ms; the stream paused for %d ms", free_after_ms,
          failovers[0].toObject().value("gap_ms").toInt());

    // And it lends again when he leaves.
    set_idle_ms(name, 600'000);
    QCOMPARE(fleet_->wait_ready(4), QString());
  }
};

QTEST_GUILESS_MAIN(OwnerTest)
#include "owner_test.moc"
