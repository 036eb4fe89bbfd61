// Holds the sources against the house's rules, and the rules against planted offences.

#include <QTest>

#include <array>

#include "base/digest.h"
#include "base/files.h"
#include "tests/tidy/rules.h"

using namespace shoal;

namespace {

const std::filesystem::path kRoot = SHOAL_SOURCE_DIR;
constexpr std::string_view kRooms[] = {"base",        "schema", "shaders", "compute",
                                       "coordinator", "client", "ui",      "tests"};
constexpr std::string_view kEndings[] = {".h", ".cpp", ".cu", ".cuh"};

std::vector<SourceText> sources(std::span<const std::string_view> rooms,
                                std::span<const std::string_view> endings) {
  std::vector<SourceText> files;
  for (const std::string_view room : rooms) {
    if (!std::filesystem::exists(kRoot / room)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / room)) {
      const std::string ending = entry.path().extension().string();
      if (!entry.is_regular_file() || std::ranges::find(endings, ending) == endings.end()) continue;
      files.push_back({entry.path().lexically_relative(kRoot).generic_string(),
                       std::string(as_text(read_file(entry.path(), kGibibyte).value()))});
    }
  }
  return files;
}

// Offences that are known and owed: they warn. The list only ever gets shorter.
struct Owed {
  std::string_view path, rule, instead;
};
constexpr std::array<Owed, 0> kOwed{};

bool is_owed(const Finding& finding) {
  for (const Owed& owed : kOwed) {
    if (finding.path != owed.path || finding.rule != owed.rule) continue;
    std::fprintf(stderr, "owed: %s\n      %s\n", finding.text().c_str(), owed.instead.data());
    return true;
  }
  return false;
}

// One line each: Qt cuts a long message short.
bool none(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) std::fprintf(stderr, "%s\n", finding.text().c_str());
  return findings.empty();
}

std::string texts_of(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += "\n" + finding.text();
  return text;
}

bool finds(std::string_view path, std::string_view content, std::string_view rule) {
  const auto findings = check_source(path, content);
  return std::ranges::any_of(findings, [rule](const Finding& f) { return f.rule == rule; });
}

}  // namespace

class TidyTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void sources_keep_the_rules();
  void migrations_are_not_edited();

  void includes_are_held_against_the_table_data();
  void includes_are_held_against_the_table();
  void every_hazard_is_found_where_it_is_planted();
  void hazards_are_allowed_in_their_place();
  void comments_and_texts_are_no_code();
  void headers_say_what_they_hold();
  void a_to_do_needs_a_kind();
  void changed_migrations_are_found();
};

void TidyTest::sources_keep_the_rules() {
  const auto files = sources(kRooms, kEndings);
  QVERIFY(files.size() > 20);  // It looks where the sources are.
  std::vector<Finding> all;
  for (const SourceText& file : files) {
    for (Finding& finding : check_source(file.path, file.content)) {
      if (!is_owed(finding)) all.push_back(std::move(finding));
    }
  }
  QVERIFY2(none(all), "the findings are above");
}

void TidyTest::migrations_are_not_edited() {
  const auto record = read_file(kRoot / "tests/tidy/migrations.txt", kMebibyte);
  QVERIFY(record.ok());
  constexpr std::string_view kWhere[] = {"client", "coordinator"};
  constexpr std::string_view kSql[] = {".sql"};
  const auto findings = check_migrations(as_text(record.value()), sources(kWhere, kSql));
  QVERIFY2(none(findings), "the findings are above");
}

void TidyTest::includes_are_held_against_the_table_data() {
  QTest::addColumn<QString>("path");
  QTest::addColumn<QString>("include");
  QTest::addColumn<bool>("allowed");
  const auto row = [](const char* path, const char* include, bool allowed) {
    QTest::addRow("%s %s", path, include) << path << include << allowed;
  };
  row("base/log.cpp", "<vector>", true);
  row("base/log.cpp", "<unistd.h>", false);
  row("base/host_linux.cpp", "<unistd.h>", true);
  row("base/log.cpp", "\"schema/limits.h\"", false);
  row("base/log.cpp", "<kj/async.h>", false);
  row("schema/task.h", "<kj/async.h>", true);
  row("schema/task.h", "\"compute/compute.h\"", false);
  row("schema/login.h", "<sodium.h>", false);
  row("schema/certificate.cpp", "<openssl/evp.h>", true);
  row("compute/graph/graph.cpp", "\"compute/ops/op.h\"", false);
  row("compute/ops/op.cpp", "\"compute/graph/graph.h\"", true);
  row("compute/ops/op.cpp", "\"compute/models/model.h\"", false);
  row("compute/engine.cpp", "\"compute/models/model.h\"", false);
  row("compute/engine.cpp", "<kj/async.h>", false);
  row("compute/engine.cpp", "\"schema/limits.h\"", false);
  row("compute/backends/vulkan/vulkan_device.cpp", "<volk.h>", true);
  row("compute/engine.cpp", "<volk.h>", false);
  row("compute/backends/cpu/cpu_backend.cpp", "<vulkan/vulkan.h>", false);
  row("compute/worker/main.cpp", "\"compute/compute.h\"", true);
  row("compute/worker/main.cpp", "\"compute/engine.h\"", false);
  row("compute/worker/main.cpp", "\"client/client.h\"", false);
  row("coordinator/rpc/session_server.cpp", "<sqlite3.h>", false);
  row("coordinator/store/store.cpp", "<sqlite3.h>", false);
  row("client/records/records.cpp", "<sqlite3.h>", false);
  row("base/sqlite/database.cpp", "<sqlite3.h>", true);
  row("coordinator/rpc/session_server.cpp", "\"compute/compute.h\"", false);
  row("coordinator/rpc/session_server.cpp", "\"compute/tokenizer/tokenizer.h\"", true);
  row("coordinator/rpc/session_server.cpp", "\"compute/tokenizer/bpe.h\"", false);
  row("coordinator/work/planner.cpp", "<kj/async.h>", false);
  row("coordinator/work/planner.cpp", "\"coordinator/store/store.h\"", false);
  row("client/agent.cpp", "\"coordinator/coordinator.h\"", false);
  row("client/agent.cpp", "\"compute/compute.h\"", false);
  row("client/agent.cpp", "<kj/async.h>", true);
  row("client/agent.cpp", "<QString>", false);
  row("client/agent.cpp", "\"agent.h\"", false);
  row("client/agent.cpp", "\"../base/log.h\"", false);
  row("ui/pages/overview_page.cpp", "<QWidget>", true);
  row("ui/pages/overview_page.cpp", "<kj/async.h>", false);
  row("ui/pages/overview_page.cpp", "\"client/client.h\"", false);
  row("ui/main.cpp", "\"client/client.h\"", true);
  row("ui/main.cpp", "\"client/agent.h\"", false);
  row("tests/client/agent_test.cpp", "\"client/agent.h\"", true);
  row("tests/client/agent_test.cpp", "\"coordinator/coordinator.h\"", false);
  row("tests/client/agent_test.cpp", "\"tests/support/fleet.h\"", true);
  row("tests/sim/swarm.cpp", "\"coordinator/coordinator.h\"", true);
  row("tests/sim/swarm_test.cpp", "\"swarm_test.moc\"", true);
}

void TidyTest::includes_are_held_against_the_table() {
  QFETCH(QString, path);
  QFETCH(QString, include);
  QFETCH(bool, allowed);
  const std::string line = "#include " + include.toStdString() + "\n";
  QCOMPARE(finds(path.toStdString(), line, "include"), !allowed);
}

void TidyTest::every_hazard_is_found_where_it_is_planted() {
  for (const Hazard& hazard : hazards()) {
    const std::string head = "#pragma once\n// A room.\n";
    const std::string name(hazard.rule);
    const auto bad = check_source("compute/room.h", head + std::string(hazard.bad) + "\n");
    QVERIFY2(bad.size() == 1 && bad[0].rule == hazard.rule && bad[0].line == 3, name.c_str());
    const auto good = check_source("compute/room.h", head + std::string(hazard.good) + "\n");
    QVERIFY2(good.empty(), (name + texts_of(good)).c_str());
  }
}

void TidyTest::hazards_are_allowed_in_their_place() {
  QVERIFY(!finds("base/clock.cpp", "std::chrono::system_clock::now();", "clock"));
  QVERIFY(!finds("base/host_windows.cpp", "#ifdef _WIN32", "windows"));
  QVERIFY(!finds("compute/worker/worker_server.cpp", "std::thread t(work);", "thread"));
  QVERIFY(finds("compute/worker/main.cpp", "std::thread t(work);", "thread"));
  QVERIFY(!finds("ui/tray.cpp", "auto* menu = new QMenu(this);", "new"));
  QVERIFY(!finds("compute/room.cpp", "using namespace shoal;", "using namespace"));
  QVERIFY(!finds("coordinator/rpc/session_server.cpp", "} catch (...) {", "catch"));
}

void TidyTest::comments_and_texts_are_no_code() {
  for (const char* line : {"// new and delete", "/* new\n new */", "log(\"new unit\");",
                           "text = R\"(new\n\" new)\";", "c = '\"'; // new", "n = 1'000; // new"}) {
    QVERIFY2(check_source("client/room.cpp", line).empty(), line);
  }
  QVERIFY(finds("client/room.cpp", "c = '\\''; auto* x = new X; // '", "new"));
  QVERIFY(finds("client/room.cpp", "n = 1'000; auto* x = new X; m = 2'000;", "new"));
  QVERIFY(!finds("client/room.cpp", "// #include \"compute/compute.h\"", "include"));
}

void TidyTest::headers_say_what_they_hold() {
  QVERIFY(finds("client/room.h", "#include <vector>\n", "head"));
  QVERIFY(finds("client/room.h", "#pragma once\n\n#include <vector>\n", "head"));
  QVERIFY(!finds("client/room.h", "#pragma once\n// Holds a room.\n", "head"));
  QVERIFY(!finds("client/room.cpp", "#include <vector>\n", "head"));
}

void TidyTest::a_to_do_needs_a_kind() {
  QVERIFY(finds("client/room.cpp", "// TODO: later", "todo"));
  QVERIFY(finds("client/room.cpp", "// TODO(ann): later", "todo"));
  QVERIFY(!finds("client/room.cpp", "// TODO(perf): later", "todo"));
}

void TidyTest::changed_migrations_are_found() {
  const std::string first = digest_of(as_bytes("one")).hex();
  const std::string record = "# Comment\n" + first + " m/0001.sql\n";
  QVERIFY(check_migrations(record, {{"m/0002.sql", "two"}, {"m/0001.sql", "one"}}).empty());
  QCOMPARE(check_migrations(record, {{"m/0001.sql", "onE"}}).size(), size_t{1});
  QCOMPARE(check_migrations(record, {{"m/0002.sql", "two"}}).size(), size_t{1});
  QCOMPARE(
      check_migrations(record, {{"m/0001.sql", "one"}, {"m/0002.sql", "two"}, {"m/0003.sql", ""}})
          .size(),
      size_t{1});
  QVERIFY(check_migrations("", {{"m/0001.sql", "one"}}).empty());
}

QTEST_GUILESS_MAIN(TidyTest)
#include "tidy_test.moc"
