// Goal: the programs start, refuse and stop as they should, and a coordinator that is killed at any
// time leaves a store that opens whole. Method: the real programs as children.

#include <QProcess>
#include <QTest>

#include <signal.h>

#include <fstream>
#include <memory>

#include "base/files.h"
#include "base/random.h"
#include "coordinator/store/session_table.h"
#include "coordinator/store/store.h"

using namespace shoal;

namespace {

struct Answer {
  int code = -1;
  std::string out, err;
};

class Folder {
 public:
  std::filesystem::path data() const { return folder_ / "data"; }
  std::filesystem::path temporary() const { return folder_ / "tmp"; }

  std::unique_ptr<QProcess> spawn(const char* program, const QStringList& arguments) {
    auto process = std::make_unique<QProcess>();
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert("SHOAL_LOG", "warning");
    environment.insert("TMPDIR", QString::fromStdString(temporary().string()));
    std::filesystem::create_directory(temporary());
    process->setProcessEnvironment(environment);
    process->start(QString(SHOAL_BIN_DIR) + "/" + program,
                   QStringList{"--data", QString::fromStdString(data().string())} + arguments);
    process->waitForStarted();
    return process;
  }

  Answer run(const char* program, const QStringList& arguments) {
    const auto process = spawn(program, arguments);
    if (!process->waitForFinished(30'000)) return {};
    return {process->exitCode(), process->readAllStandardOutput().toStdString(),
            process->readAllStandardError().toStdString()};
  }

  // A coordinator that listens; its first line is in `line`.
  std::unique_ptr<QProcess> start(std::string& line, const QString& listen = "127.0.0.1:0") {
    auto process = spawn("shoal-coordinator", {"--listen", listen});
    if (process->waitForReadyRead(30'000)) line = process->readLine().trimmed().toStdString();
    return process;
  }

 private:
  TempDir folder_;
};

bool has(const std::string& text, const char* part) {
  if (text.find(part) != std::string::npos) return true;
  qWarning("said: \"%s\"", text.c_str());
  return false;
}

}  // namespace

class ProcessTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void tells_what_to_do_first();
  void starts_answers_and_stops_in_order();
  void refuses_a_second_coordinator_and_a_port_in_use();
  void publishing_says_what_is_wrong();
  void publishing_that_is_told_to_stop_leaves_nothing();
  void killed_at_any_time_it_leaves_a_whole_store();
};

void ProcessTest::tells_what_to_do_first() {
  Folder folder;
  Answer answer = folder.run("shoal-coordinator", {});
  QCOMPARE(answer.code, 3);
  QVERIFY(has(answer.err, "shoalctl --data"));
  answer = folder.run("shoalctl", {"status"});
  QCOMPARE(answer.code, 3);
  QVERIFY(has(answer.err, "init"));
  QVERIFY(!std::filesystem::exists(folder.data()));

  answer = folder.run("shoalctl", {"init"});
  QCOMPARE(answer.code, 0);
  QVERIFY(has(answer.out, "shoal-client attach 'shoal://"));
  QVERIFY(has(answer.out, "invite="));
  answer = folder.run("shoalctl", {"init"});
  QVERIFY(answer.code != 0);
  QVERIFY(has(answer.err, "already"));
  answer = folder.run("shoalctl", {"status"});
  QCOMPARE(answer.code, 5);
  QVERIFY(has(answer.err, "not running: start shoal-coordinator --data"));
  answer = folder.run("shoalctl", {"status", "--json"});
  QCOMPARE(answer.code, 5);
  QVERIFY(has(answer.out, "{\"error\":{\"code\":\"unavailable\""));
  QCOMPARE(folder.run("shoalctl", {"generate"}).code, 2);
  QCOMPARE(folder.run("shoal-coordinator", {"--listen", "nonsense"}).code, 2);
}

void ProcessTest::starts_answers_and_stops_in_order() {
  Folder folder;
  QCOMPARE(folder.run("shoalctl", {"init"}).code, 0);
  std::string line;
  const auto coordinator = folder.start(line);
  QVERIFY(has(line, "shoal://127.0.0.1:"));
  QVERIFY(has(line, "pin="));
  QVERIFY(line.find("invite") == std::string::npos);
  std::string address;
  std::ifstream(folder.data() / "address") >> address;
  QVERIFY(has(line, address.c_str()));

  QVERIFY(has(folder.run("shoalctl", {"invite"}).out, address.c_str()));
  QVERIFY(has(folder.run("shoalctl", {"status"}).out, "0 connected"));
  QVERIFY(has(folder.run("shoalctl", {"--json", "status"}).out, "\"hosts_connected\":0"));
  QVERIFY(has(folder.run("shoalctl", {"host", "list"}).out, "No hosts yet"));
  QVERIFY(has(folder.run("shoalctl", {"session", "list"}).out, "No sessions yet"));
  QVERIFY(has(folder.run("shoalctl", {"event", "list"}).out, "coordinator_started"));
  QCOMPARE(folder.run("shoalctl", {"host", "trust", "7"}).code, 3);
  QVERIFY(has(folder.run("shoalctl", {"ledger", "list"}).out, "No hosts yet"));
  QCOMPARE(folder.run("shoalctl", {"ledger", "show", "7"}).code, 3);
  QVERIFY(has(folder.run("shoalctl", {"ledger", "reconcile"}).out, "signatures agree"));
  QVERIFY(has(folder.run("shoalctl", {"ledger", "list", "--csv"}).out, "host_id,host,account,"));
  QVERIFY(has(folder.run("shoalctl", {"ledger", "root"}).out, "No day"));
  QCOMPARE(folder.run("shoalctl", {"ledger", "root", "--day", "2026-02-30"}).code, 2);
  QCOMPARE(folder.run("shoalctl", {"ledger", "root", "--day", "2026-02-28"}).code, 3);
  QVERIFY(has(folder.run("shoalctl", {"account", "list"}).out, "No accounts yet"));
  QCOMPARE(folder.run("shoalctl", {"account", "create", "ann"}).code, 0);
  QCOMPARE(folder.run("shoalctl", {"team", "create", "reds"}).code, 0);
  QCOMPARE(folder.run("shoalctl", {"team", "join", "ann", "reds"}).code, 0);
  QVERIFY(has(folder.run("shoalctl", {"account", "list"}).out, "reds"));
  QVERIFY(has(folder.run("shoalctl", {"team", "list"}).out, "ann"));
  // Nobody is taken out by a word that was left out.
  QCOMPARE(folder.run("shoalctl", {"team", "join", "ann"}).code, 2);
  QVERIFY(has(folder.run("shoalctl", {"team", "leave", "ann"}).out, "in no team"));
  for (const char* const word : {"account", "group"}) {
    QCOMPARE(folder.run("shoalctl", {"host", word, "7"}).code, 2);
    QCOMPARE(folder.run("shoalctl", {"host", word, "7", "ann", "--none"}).code, 2);
    QCOMPARE(folder.run("shoalctl", {"host", word, "7", "ann"}).code, 3);
    QCOMPARE(folder.run("shoalctl", {"host", word, "7", "--none"}).code, 3);
  }
  QCOMPARE(folder.run("shoalctl", {"invite", "--account", "eve"}).code, 3);
  QVERIFY(has(folder.run("shoalctl", {"invite", "--account", "ann", "--group", "lab"}).out,
              address.c_str()));
  QVERIFY(has(folder.run("shoalctl", {"account", "ban", "ann"}).out, "banned"));
  QCOMPARE(folder.run("shoalctl", {"invite", "--account", "ann"}).code, 4);
  QVERIFY(has(folder.run("shoalctl", {"account", "list"}).out, "banned"));
  QVERIFY(has(folder.run("shoalctl", {"account", "unban", "ann"}).out, "not banned"));
  QVERIFY(
      has(folder.run("shoalctl", {"--json", "ledger", "reconcile"}).out, "\"problem_count\":0"));
  const Answer none = folder.run("shoalctl", {"generate", "--model", "m", "--prompt", "p"});
  QCOMPARE(none.code, 3);
  QVERIFY(has(none.err, "there is no model m"));

  coordinator->terminate();
  QVERIFY(coordinator->waitForFinished(20'000));
  QCOMPARE(coordinator->exitStatus(), QProcess::NormalExit);
  QCOMPARE(coordinator->exitCode(), 0);
  QVERIFY(!std::filesystem::exists(folder.data() / "address"));
  QVERIFY(!std::filesystem::exists(folder.data() / "admin.sock"));
  const auto store = Store::open(folder.data());
  QVERIFY(store.ok());
  const auto events = SessionTable(*store.value()).events(0, 100).value();
  QCOMPARE(events.back().kind, std::string("coordinator_stopped"));
}

void ProcessTest::refuses_a_second_coordinator_and_a_port_in_use() {
  Folder folder, other;
  QCOMPARE(folder.run("shoalctl", {"init"}).code, 0);
  QCOMPARE(other.run("shoalctl", {"init"}).code, 0);
  std::string line, address;
  const auto coordinator = folder.start(line);
  std::ifstream(folder.data() / "address") >> address;
  Answer answer = folder.run("shoal-coordinator", {"--listen", "127.0.0.1:0"});
  QCOMPARE(answer.code, 5);
  QVERIFY(has(answer.err, ("process " + std::to_string(coordinator->processId())).c_str()));
  answer = other.run("shoal-coordinator", {"--listen", QString::fromStdString(address)});
  QVERIFY(answer.code != 0);
  QVERIFY(has(answer.err, "in use"));
  answer = folder.run("shoalctl", {"init"});
  QCOMPARE(answer.code, 5);
  QVERIFY(has(folder.run("shoalctl", {"status"}).out, "0 connected"));  // Undisturbed.
  coordinator->kill();
  coordinator->waitForFinished();
}

void ProcessTest::publishing_says_what_is_wrong() {
  Folder folder;
  QCOMPARE(folder.run("shoalctl", {"init"}).code, 0);
  std::string line;
  const auto coordinator = folder.start(line);
  Answer answer = folder.run("shoalctl", {"model", "publish", "/nonexistent.gguf"});
  QCOMPARE(answer.code, 3);
  QVERIFY(has(answer.err, "/nonexistent.gguf"));
  const std::filesystem::path junk = folder.data() / "junk.gguf";
  std::ofstream(junk) << "GGUF and nothing more";
  answer = folder.run("shoalctl", {"model", "publish", QString::fromStdString(junk.string())});
  QVERIFY(answer.code != 0);
  QVERIFY(has(answer.err, "cannot cut"));

  const QString model = SHOAL_SOURCE_DIR "/models/demo/shoal-demo-q8_0.gguf";
  answer = folder.run(
      "shoalctl", {"model", "publish", model, "--name", "demo", "--purpose", "To tell stories"});
  QVERIFY2(answer.code == 0, answer.err.c_str());
  QVERIFY(has(folder.run("shoalctl", {"model", "list"}).out, "demo"));
  QVERIFY(has(folder.run("shoalctl", {"model", "list"}).out, "To tell stories"));
  answer = folder.run("shoalctl", {"model", "publish", model, "--name", "demo"});
  QCOMPARE(answer.code, 1);
  QVERIFY(has(answer.err, "already"));
  answer = folder.run("shoalctl", {"generate", "--model", "demo", "--prompt", "p"});
  QCOMPARE(answer.code, 5);
  QVERIFY(has(answer.err, "no device is ready"));
  QCOMPARE(folder.run("shoalctl", {"model", "remove", "demo"}).code, 0);
  QVERIFY(std::filesystem::is_empty(folder.data() / "shards"));
  coordinator->terminate();
  QVERIFY(coordinator->waitForFinished(20'000));
}

void ProcessTest::publishing_that_is_told_to_stop_leaves_nothing() {
  Folder folder;
  QCOMPARE(folder.run("shoalctl", {"init"}).code, 0);
  std::string line;
  const auto coordinator = folder.start(line);
  const auto pid = static_cast<pid_t>(coordinator->processId());
  for (const int signal : {SIGINT, SIGTERM}) {
    kill(pid, SIGSTOP);  // So that the upload does not get far.
    const auto publishing = folder.spawn(
        "shoalctl", {"model", "publish", SHOAL_SOURCE_DIR "/models/demo/shoal-demo-q8_0.gguf"});
    QTRY_VERIFY_WITH_TIMEOUT(!std::filesystem::is_empty(folder.temporary()), 20'000);
    kill(static_cast<pid_t>(publishing->processId()), signal);
    QVERIFY(publishing->waitForFinished(20'000));
    QCOMPARE(publishing->exitStatus(), QProcess::NormalExit);
    QVERIFY(publishing->exitCode() != 0);
    QVERIFY(std::filesystem::is_empty(folder.temporary()));
    kill(pid, SIGCONT);
  }
  QVERIFY(has(folder.run("shoalctl", {"model", "list"}).out, "No models yet"));
  QVERIFY(std::filesystem::is_empty(folder.data() / "shards"));
  coordinator->terminate();
  QVERIFY(coordinator->waitForFinished(20'000));
}

void ProcessTest::killed_at_any_time_it_leaves_a_whole_store() {
  Folder folder;
  QCOMPARE(folder.run("shoalctl", {"init"}).code, 0);
  Random random(11);
  int promised = 0;
  for (int round = 0; round < 6; ++round) {
    std::string line;
    const auto coordinator = folder.start(line);
    QVERIFY(!line.empty());
    // Requests that write, one on another's heels; the kill comes between, or into, any of them.
    std::vector<std::unique_ptr<QProcess>> asking;
    for (int i = 0; i < 4; ++i) asking.push_back(folder.spawn("shoalctl", {"invite"}));
    asking[random.below(asking.size())]->waitForFinished(20'000);
    coordinator->kill();
    coordinator->waitForFinished();
    for (auto& process : asking) {
      process->waitForFinished(20'000);
      promised += process->exitCode() == 0;
    }
    const auto store = Store::open(folder.data());
    QVERIFY2(store.ok(), store.ok() ? "" : store.error().message.c_str());
    QVERIFY(store.value()->check_integrity().ok());
    Query invites = store.value()->query("SELECT count(*) FROM invite");
    QVERIFY(invites.row().value());
    QVERIFY(invites.integer(0) >= promised + 1);  // Nothing that somebody was told is lost.
  }
  QVERIFY(promised >= 6);
}

QTEST_GUILESS_MAIN(ProcessTest)
#include "process_test.moc"
