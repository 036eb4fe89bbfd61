// Settings files and the frame of command line programs.

#include <CLI/CLI.hpp>
#include <QTest>

#include "base/cli.h"
#include "base/files.h"
#include "base/settings.h"

using namespace shoal;

namespace {

const SettingSpec kTable[] = {
    {.key = "mode",
     .fallback = std::string("rules"),
     .help = "When to work.",
     .choices = {"always", "rules", "paused"}},
    {.key = "cache.bytes_max",
     .fallback = int64_t{1000},
     .help = "The cache's size.\nIn bytes.",
     .min = 0,
     .max = 1e15},
    {.key = "cache.verify", .fallback = true, .help = "Check what lies there."},
    {.key = "limits.load_max", .fallback = 0.5, .help = "Other load.", .min = 0, .max = 1},
    {.key = "limits.programs",
     .fallback = std::vector<std::string>{},
     .help = "Programs that come first."},
};

std::string refusal(std::string_view text) {
  const auto parsed = Settings::parse(kTable, text, "shoal.toml");
  return parsed.ok() ? "accepted" : parsed.error().message;
}

}  // namespace

class SettingsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void defaults_hold_until_something_is_said();
  void file_is_read();
  void refusals_name_file_line_and_key();
  void limits_from_both_sides();
  void command_line_texts_are_read();
  void document_reads_back();
  void absent_file_is_not_found();
  void command_line_runs_the_command_asked_for();
  void command_line_errors_have_their_exit_codes();
};

void SettingsTest::defaults_hold_until_something_is_said() {
  const Settings settings(kTable);
  QCOMPARE(settings.text("mode"), std::string("rules"));
  QCOMPARE(settings.integer("cache.bytes_max"), int64_t{1000});
  QVERIFY(settings.flag("cache.verify"));
  QVERIFY(settings.list("limits.programs").empty());
}

void SettingsTest::file_is_read() {
  const auto parsed = Settings::parse(kTable,
                                      "mode = 'always'\n[cache]\nbytes_max = 5\nverify = false\n"
                                      "[limits]\nload_max = 1\nprograms = ['a', 'b c']\n",
                                      "shoal.toml");
  QVERIFY2(parsed.ok(), parsed.ok() ? "" : parsed.error().message.c_str());
  const Settings& settings = parsed.value();
  QCOMPARE(settings.text("mode"), std::string("always"));
  QCOMPARE(settings.integer("cache.bytes_max"), int64_t{5});
  QVERIFY(!settings.flag("cache.verify"));
  QCOMPARE(settings.real("limits.load_max"), 1.0);  // Written as a whole number.
  QCOMPARE(settings.list("limits.programs").size(), size_t{2});
  QCOMPARE(refusal("cache.bytes_max = 7"), std::string("accepted"));
}

void SettingsTest::refusals_name_file_line_and_key() {
  QCOMPARE(refusal("\n[cache]\nbytes_mx = 5\n"),
           std::string("shoal.toml:3: unknown setting 'cache.bytes_mx'; did you mean "
                       "'cache.bytes_max'?"));
  QCOMPARE(refusal("zebra = 1"), std::string("shoal.toml:1: unknown setting 'zebra'"));
  QCOMPARE(refusal("mode = 5"), std::string("shoal.toml:1: mode must be a text"));
  QCOMPARE(refusal("mode = 'never'"),
           std::string("shoal.toml:1: mode must be one of always, rules, paused, not 'never'"));
  QCOMPARE(refusal("[limits]\nprograms = ['a', 1]"),
           std::string("shoal.toml:2: limits.programs must be a list of texts"));
  QCOMPARE(refusal("mode = 1979-05-27"), std::string("shoal.toml:1: mode must be a text"));
  QVERIFY(refusal("mode = 'a'\nmode = 'b'").starts_with("shoal.toml:2: "));
  QVERIFY(refusal("= 1").starts_with("shoal.toml:1: "));
  QVERIFY(refusal("[cache.bytes_max]\nx = 1").starts_with("shoal.toml:1: cache.bytes_max must be"));
  QVERIFY(refusal("[other]\nx = 1").starts_with("shoal.toml:1: unknown setting 'other'"));
  QVERIFY(refusal(std::string(100'000, '[')) != "accepted");
}

void SettingsTest::limits_from_both_sides() {
  Settings settings(kTable);
  QVERIFY(settings.set("limits.load_max", 0.0).ok());
  QVERIFY(settings.set("limits.load_max", 1.0).ok());
  QCOMPARE(settings.set("limits.load_max", 1.001).error().message,
           std::string("limits.load_max must be from 0 to 1"));
  QVERIFY(!settings.set("limits.load_max", -0.001).ok());
  QVERIFY(!settings.set("limits.load_max", std::nan("")).ok());
  QVERIFY(!settings.set("cache.bytes_max", int64_t{-1}).ok());
}

void SettingsTest::command_line_texts_are_read() {
  Settings settings(kTable);
  QVERIFY(settings.set_from_text("cache.verify", "false").ok());
  QVERIFY(settings.set_from_text("cache.bytes_max", "12").ok());
  QVERIFY(settings.set_from_text("limits.programs", "a,b").ok());
  QVERIFY(!settings.flag("cache.verify"));
  QCOMPARE(settings.integer("cache.bytes_max"), int64_t{12});
  QVERIFY(settings.list("limits.programs") == std::vector<std::string>({"a", "b"}));
  QVERIFY(!settings.set_from_text("cache.bytes_max", "12k").ok());
  QVERIFY(!settings.set_from_text("cache.bytes_max", "").ok());
  QVERIFY(!settings.set_from_text("cache.verify", "yes").ok());
  QVERIFY(!settings.set_from_text("cache", "yes").ok());
}

void SettingsTest::document_reads_back() {
  Settings settings(kTable);
  QVERIFY(settings.set("mode", std::string("paused")).ok());
  QVERIFY(settings.set("limits.programs", std::vector<std::string>{"a \"b\"\n", "\\"}).ok());
  const std::string document = settings.document();
  QVERIFY(document.find("#bytes_max = 1000") != std::string::npos);
  QVERIFY(document.find("# The cache's size.\n# In bytes.\n") != std::string::npos);
  const auto again = Settings::parse(kTable, document, "document");
  QVERIFY2(again.ok(), document.c_str());
  QCOMPARE(again.value().document(), document);
  QVERIFY(again.value().list("limits.programs") == settings.list("limits.programs"));
}

void SettingsTest::absent_file_is_not_found() {
  const TempDir folder;
  QVERIFY(Settings::load(kTable, folder / "none").error().code == ErrorCode::kNotFound);
}

void SettingsTest::command_line_runs_the_command_asked_for() {
  std::string model;
  bool json = false;
  CommandLine line("shoalctl", "A test");
  CLI::App& models = line.group("model", "Models");
  CLI::App& publish = line.command(models, "publish", "Publish one", [&]() -> Result<void> {
    json = line.json();
    return {};
  });
  publish.add_option("path", model, "The model")->required();
  line.command("status", "Show", []() -> Result<void> {
    return Error{ErrorCode::kTimeout, "late"};
  });
  const char* const argv[] = {"shoalctl", "model", "publish", "/m", "--json"};
  QCOMPARE(line.run(5, argv), 0);
  QVERIFY(json);
  QCOMPARE(model, std::string("/m"));
}

void SettingsTest::command_line_errors_have_their_exit_codes() {
  const auto run = [](std::vector<const char*> argv) {
    CommandLine line("shoalctl", "A test");
    line.command("status", "Show", []() -> Result<void> {
      return Error{ErrorCode::kTimeout, "late"};
    });
    argv.insert(argv.begin(), "shoalctl");
    return line.run(static_cast<int>(argv.size()), argv.data());
  };
  QCOMPARE(run({"status"}), 5);
  QCOMPARE(run({"status", "--json"}), 5);
  QCOMPARE(run({}), 2);
  QCOMPARE(run({"stats"}), 2);
  QCOMPARE(run({"status", "--loud"}), 2);
  QCOMPARE(run({"--help"}), 0);
  QCOMPARE(run({"--version"}), 0);
}

QTEST_GUILESS_MAIN(SettingsTest)
#include "settings_test.moc"
