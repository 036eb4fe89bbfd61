// Goal: who makes a mistake, or whose disk fails, is told what is wrong and what to do, by the
// programs themselves. Method: real processes; what one can get wrong is got wrong, one by one.

#include <QDir>
#include <QFile>
#include <QJsonDocument>
#include <QTest>

#include <csignal>

#include "tests/support/fleet.h"

namespace {

struct Said {
  int exit_code = -1;
  QString text;  // The message, as a person sees it.
};

}  // namespace

class ErrorsTest : public QObject {
  Q_OBJECT

 private:
  std::unique_ptr<Fleet> fleet_;

  Said say(const QString& program, const QStringList& arguments) {
    const QString log = fleet_->folder() + "/logs/said.log";
    QFile::remove(log);
    Program run(program, arguments, log);
    if (!run.wait_exit(60'000)) return {-1, program + " does not end"};
    return {run.exit_code(), QString::fromUtf8(run.output() + run.log())};
  }
  Said attach(const QString& url) {
    return say("shoal-client", {"--data", fleet_->folder() + "/stranger", "attach", url});
  }
  QString generate_error() {
    const Generation run =
        fleet_->generate({"--model", "m", "--prompt", "Once", "--max-tokens", "3"});
    return run.summary.value("error").toObject().value("message").toString();
  }
  QString url(const QStringList& invite = {}) {
    return fleet_->ctl(QStringList{"invite"} + invite).value("url").toString();
  }

  static void damage(const QString& folder) {
    for (const QFileInfo& info : QDir(folder).entryInfoList(QDir::Files)) {
      if (info.size() < 1000) continue;  // A note to people, no shard.
      QFile file(info.filePath());
      QVERIFY(file.open(QIODevice::ReadWrite));
      QVERIFY(file.seek(500));
      QCOMPARE(file.write("damage"), qint64{6});
    }
  }

  void restart_client(const QString& name) {
    fleet_->host(name).client->signal(SIGTERM);
    QVERIFY(fleet_->host(name).client->wait_exit(20'000));
    QCOMPARE(fleet_->host(name).client->exit_code(), 0);
    QCOMPARE(fleet_->start_host(name), QString());
  }

 private Q_SLOTS:
  void initTestCase() {
    fleet_ = std::make_unique<Fleet>();
    int code = -1;
    fleet_->ctl({"init"}, &code);
    QCOMPARE(code, 0);
    QFile settings(fleet_->coordinator_data() + "/coordinator.toml");
    QVERIFY(settings.open(QIODevice::WriteOnly | QIODevice::Truncate));
    settings.write("[session]\nrepair_wait_ms = 1500\n");
    settings.close();
    QCOMPARE(fleet_->start_coordinator(), QString());
    QCOMPARE(fleet_->publish(demo_model(), "m"), QString());
  }
  void cleanupTestCase() { fleet_.reset(); }

  void a_wrong_attach_url_is_told_from_a_wrong_server_data() {
    QTest::addColumn<QString>("pattern");      // What becomes of the right URL...
    QTest::addColumn<QString>("replacement");  // ...to make the wrong one.
    QTest::addColumn<int>("exit_code");
    QTest::addColumn<QString>("says");
    QTest::newRow("scheme") << "^shoal"
                            << "http" << 2 << "shoal://";
    QTest::newRow("empty") << "^.*$"
                           << "" << 2 << "shoal://";
    QTest::newRow("port") << ":\\d+/"
                          << ":70000/" << 2 << "port";
    QTest::newRow("no pin") << "\\?.*$"
                            << "" << 2 << "pin";
    QTest::newRow("damaged pin") << "pin=..."
                                 << "pin=" << 2 << "pin";
    QTest::newRow("wrong pin") << "pin=[^&]{4}"
                               << "pin=AAAA" << 4 << "wrong pin";
    QTest::newRow("wrong invite") << "invite=.*$"
                                  << "invite=AAAAAAAAAAAAAAAAAAAAAA" << 4 << "invite";
    QTest::newRow("no invite") << "&invite=.*$"
                               << "" << 4 << "carries no invite";
    QTest::newRow("nobody there") << ":\\d+/"
                                  << ":1/" << 5 << "nothing listens at";
  }
  void a_wrong_attach_url_is_told_from_a_wrong_server() {
    QFETCH(QString, pattern);
    QFETCH(QString, replacement);
    QFETCH(int, exit_code);
    QFETCH(QString, says);
    const Said said = attach(url().replace(QRegularExpression(pattern), replacement));
    QVERIFY2(said.exit_code == exit_code && said.text.contains(says), qPrintable(said.text));
  }

  void an_invite_is_used_up() {
    const QString once = url({"--uses", "1"});
    const Said first = say("shoal-client", {"--data", fleet_->folder() + "/first", "attach", once});
    QVERIFY2(first.exit_code == 0, qPrintable(first.text));
    const Said second = attach(once);
    QVERIFY2(second.exit_code == 4 && second.text.contains("as often as it may be"),
             qPrintable(second.text));
  }

  void a_port_in_use_is_named() {
    const QString data = fleet_->folder() + "/second",
                  port = url().section(':', 2).section('/', 0, 0);
    QCOMPARE(say("shoalctl", {"--data", data, "init"}).exit_code, 0);
    const Said said = say("shoal-coordinator", {"--data", data, "--listen", "127.0.0.1:" + port});
    QVERIFY2(said.exit_code == 1 && said.text.contains("port in use") && said.text.contains(port),
             qPrintable(said.text));
  }

  void a_folder_in_use_is_named() {
    const Said said =
        say("shoal-coordinator", {"--data", fleet_->coordinator_data(), "--listen", "127.0.0.1:0"});
    QVERIFY2(said.exit_code == 5 && said.text.contains("is in use by another running coordinator"),
             qPrintable(said.text));
  }

  void a_folder_that_cannot_be_written_is_named() {
    const QString file = fleet_->folder() + "/file", below = file + "/data";
    QFile made(file);
    QVERIFY(made.open(QIODevice::WriteOnly));
    const QList<std::pair<QString, QStringList>> commands = {
        {"shoalctl", {"--data", below, "init"}},
        {"shoal-client", {"--data", below, "run"}},
        {"shoal-client", {"--data", below, "attach", url()}},
        {"shoal-coordinator", {"--data", below}},
    };
    for (const auto& [program, arguments] : commands) {
      const Said said = say(program, arguments);
      QVERIFY2(said.exit_code > 0 && said.exit_code < 8 && said.text.contains(file),
               qPrintable(program + ": " + said.text));
    }
  }

  void names_give_a_terminal_no_orders() {
    for (const char* name : {"a\x1b[31m", "two\nlines",
                             "\xc2\x9b"
                             "31m"}) {
      const QString problem = fleet_->publish(demo_model(), QString::fromUtf8(name));
      QVERIFY2(!problem.isEmpty(), name);
    }
    const Said said =
        say("shoalctl", {"--data", fleet_->coordinator_data(), "model", "remove", "\x1b[31m"});
    QVERIFY2(said.exit_code == 3 && !said.text.contains('\x1b'), qPrintable(said.text));
  }

  void a_damaged_shard_in_a_cache_is_fetched_anew() {
    QCOMPARE(fleet_->add_host("h"), QString());
    QCOMPARE(fleet_->wait_ready(1), QString());
    QCOMPARE(generate_error(), QString());
    damage(fleet_->host("h").data + "/cache/shards");
    QCOMPARE(generate_error(), QString());
    restart_client("h");
    QCOMPARE(fleet_->wait_ready(1), QString());
    damage(fleet_->host("h").data + "/cache/shards");
    QCOMPARE(generate_error(), QString());
  }

  void a_full_cache_is_told_to_the_requester_and_heals() {
    const QString folder = fleet_->host("h").data + "/config";
    QVERIFY(QDir().mkpath(folder));
    QVERIFY(QDir(fleet_->host("h").data + "/cache").removeRecursively());
    QFile settings(folder + "/client.toml");
    QVERIFY(settings.open(QIODevice::WriteOnly | QIODevice::Truncate));
    settings.write("[cache]\nbytes_max = 1048576\n");  // The model has more.
    settings.close();
    restart_client("h");
    QCOMPARE(fleet_->wait_ready(1), QString());
    const QString why = generate_error();
    QVERIFY2(why.contains("shard cache is full"), qPrintable(why) + fleet_->logs());
    QVERIFY(settings.remove());
    restart_client("h");
    QCOMPARE(fleet_->wait_ready(1), QString());
    QCOMPARE(generate_error(), QString());
  }

  void a_damaged_shard_of_the_coordinator_is_named() {
    QVERIFY(QDir(fleet_->host("h").data + "/cache").removeRecursively());
    restart_client("h");
    QCOMPARE(fleet_->wait_ready(1), QString());
    damage(fleet_->coordinator_data() + "/shards");
    const QString why = generate_error();
    QVERIFY2(why.contains("the coordinator's copy of shard") && why.contains("published again"),
             qPrintable(why) + fleet_->logs());
    int code = -1;
    fleet_->ctl({"model", "remove", "m"}, &code);
    QCOMPARE(code, 0);
    QCOMPARE(fleet_->publish(demo_model(), "m"), QString());
    QCOMPARE(generate_error(), QString());
  }
};

QTEST_GUILESS_MAIN(ErrorsTest)
#include "errors_test.moc"
