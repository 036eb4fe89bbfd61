// Goal: the chat templates that people use give the same bytes here as in the engines that they
// were written for. Method: seeded conversations through real templates, rendered by npm's
// @huggingface/jinja and by Jinja itself; tests/chat/oracle/fetch brings what npm has. Where the
// two differ we do as Jinja does, as models were taught with it. SHOAL_CONVERSATIONS=2000
// SHOAL_SEED=1 say how many for each template, and which; SHOAL_KIND=plain leaves out what npm's
// engine is known to do in another way, SHOAL_TEMPLATES=a,b takes some templates only,
// SHOAL_SHOW=all shows conversations on which the two differ.

#include <QFile>
#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>

#include <nlohmann/json.hpp>

#include "compute/chat/chat_template.h"

namespace shoal {
namespace {

using Json = nlohmann::json;

// 2026-12-01 00:30:05 UTC, as the other engines are told.
constexpr int64_t kNowMs = 1'796'085'005'000;

QString oracle_folder() { return QStringLiteral(SHOAL_BIN_DIR "/../../oracles/chat"); }

// Runs a program with a file as its input and another as its output.
bool run_program(const QString& program, const QStringList& arguments, const QString& in,
                 const QString& out) {
  QProcess process;
  process.setProcessChannelMode(QProcess::ForwardedErrorChannel);
  if (!in.isEmpty()) process.setStandardInputFile(in);
  process.setStandardOutputFile(out);
  process.start(program, arguments);
  return process.waitForFinished(/*msecs=*/570'000) &&
         process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0;
}

struct Row {
  QByteArray name;
  int conversations = 0;
  int refused = 0;  // By all.
  int npm = 0;      // We agree with Jinja, npm does not.
  int jinja = 0;    // We agree with npm, Jinja does not.
  int ours = 0;     // Nobody agrees with us.
};

}  // namespace

class ChatOracleTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void real_templates_give_the_same_bytes();
  void what_messages_say_makes_no_mark_in_real_vocabularies_data();
  void what_messages_say_makes_no_mark_in_real_vocabularies();
};

void ChatOracleTest::real_templates_give_the_same_bytes() {
  if (!QFile::exists(oracle_folder() + "/complete"))
    QSKIP("no templates to compare with: tests/chat/oracle/fetch brings them (npm, network)");
  const QString node = QStandardPaths::findExecutable("node");
  if (node.isEmpty()) QSKIP("node is not here, so there is no engine to compare with");
  QTemporaryDir folder;
  const QString lines = folder.filePath("lines"), answers = folder.filePath("answers");
  const QString scripts = QStringLiteral(SHOAL_SOURCE_DIR "/tests/chat/oracle/");
  QStringList arguments = {scripts + "conversations.mjs", oracle_folder(),
                           qEnvironmentVariable("SHOAL_CONVERSATIONS", "40"),
                           qEnvironmentVariable("SHOAL_SEED", "1"),
                           qEnvironmentVariable("SHOAL_KIND", "any")};
  arguments += qEnvironmentVariable("SHOAL_TEMPLATES").split(',', Qt::SkipEmptyParts);
  QVERIFY(run_program(node, arguments, {}, lines));
  const bool has_jinja = QProcess::execute("python3", {"-c", "import jinja2.ext"}) == 0 &&
                         run_program("python3", {scripts + "jinja_oracle.py"}, lines, answers);
  if (!has_jinja) QSKIP("Python has no jinja2 here, which says who is right where npm differs");

  QFile given(lines), known(answers);
  QVERIFY(given.open(QIODevice::ReadOnly));
  QVERIFY(known.open(QIODevice::ReadOnly));
  std::vector<Row> rows;
  std::optional<Result<ChatTemplate>> parsed;
  ChatSettings settings;
  settings.now_ms = kNowMs;
  int shown = 0;
  while (!given.atEnd()) {
    const Json line = Json::parse(given.readLine().toStdString());
    if (line.contains("source")) {
      rows.push_back({.name = QByteArray::fromStdString(line["name"].get<std::string>())});
      parsed.emplace(ChatTemplate::parse(line["source"].get<std::string>()));
      settings.bos_token = line["bos"].get<std::string>();
      settings.eos_token = line["eos"].get<std::string>();
      if (!parsed->ok()) qInfo("%s: %s", rows.back().name.data(), parsed->error().message.c_str());
      continue;
    }
    Json ours = nullptr;
    std::string why = parsed->ok() ? "" : parsed->error().message;
    const auto variables = line["variables"].get<std::string>();
    if (parsed->ok()) {
      const auto rendered = parsed->value().render(variables, settings);
      if (rendered.ok()) {
        std::string text;
        for (const TextPart& part : rendered.value()) text += part.text;
        ours = std::move(text);
      } else {
        why = rendered.error().message;
      }
    }
    const Json jinja = Json::parse(known.readLine().toStdString());
    Row& row = rows.back();
    ++row.conversations;
    const bool as_npm = ours == line["text"];
    const bool as_jinja = ours == jinja["text"];
    // Two things Jinja does that we do not: where map() and select() give a list here, it has a
    // generator, which has no JSON; and it escapes for HTML what is joined to a `safe` text.
    const std::string word = jinja[jinja["text"].is_null() ? "why" : "text"].get<std::string>();
    const bool jinja_alone = jinja["text"].is_null() ? word.find("generator") != std::string::npos
                                                     : word.find("&#34;") != std::string::npos;
    if (jinja_alone && !as_npm && !as_jinja) {
      ++row.jinja;
    } else if (as_npm && as_jinja) {
      row.refused += ours.is_null() ? 1 : 0;
    } else if (as_npm) {
      ++row.jinja;
    } else if (as_jinja) {
      ++row.npm;
    } else {
      ++row.ours;
    }
    const bool asked =
        qEnvironmentVariable("SHOAL_SHOW") == "all" ? !(as_npm && as_jinja) : !(as_npm || as_jinja);
    if (asked && shown < 12) {
      ++shown;
      qInfo("%s: %s\n  ours  %s %s\n  npm   %s %s\n  jinja %s", row.name.data(), variables.c_str(),
            ours.dump().c_str(), why.c_str(), line["text"].dump().c_str(),
            line["why"].dump().c_str(), jinja.dump().c_str());
    }
  }
  qInfo("%-52s %7s %8s %12s %14s %6s", "template", "talks", "refused", "npm alone", "Jinja alone",
        "ours");
  int ours = 0;
  for (const Row& row : rows) {
    qInfo("%-52s %7d %8d %12d %14d %6d", row.name.data(), row.conversations, row.refused, row.npm,
          row.jinja, row.ours);
    ours += row.ours;
  }
  QVERIFY(!rows.empty());
  QCOMPARE(ours, 0);
}

void ChatOracleTest::what_messages_say_makes_no_mark_in_real_vocabularies_data() {
  QTest::addColumn<QString>("model");
  QTest::addColumn<QString>("talk");
  QTest::newRow("qwen3") << "qwen3"
                         << "qwen3";
  QTest::newRow("llama3_1") << "llama3_1"
                            << "llama3_1";
  QTest::newRow("gemma3") << "gemma3"
                          << "gemma3";
  QTest::newRow("deepseek_v3") << "deepseek_v3"
                               << "deepseek_v3";
  QTest::newRow("gpt-oss") << "gptoss"
                           << "openai-gpt-oss-120b";
}

// Method: with every message's text replaced by a letter, the special tokens must be the same, in
// the same order; and where messages spell no mark, all tokens must be those of the whole text.
void ChatOracleTest::what_messages_say_makes_no_mark_in_real_vocabularies() {
  QFETCH(QString, model);
  QFETCH(QString, talk);
  const QString vocabulary = oracle_folder() + "/../tokenizer/" + model;
  if (!QFile::exists(oracle_folder() + "/complete") ||
      !QFile::exists(oracle_folder() + "/../tokenizer/complete"))
    QSKIP(
        "no vocabularies here: tests/chat/oracle/fetch and tests/tokenizer/oracle/fetch bring "
        "them");
  const QString node = QStandardPaths::findExecutable("node");
  if (node.isEmpty()) QSKIP("node is not here, which writes the conversations");
  Json definition = {{"format", "huggingface"}, {"eos", Json::array()}};
  for (const auto& [key, name] :
       {std::pair("tokenizer", "/tokenizer.json"), std::pair("config", "/tokenizer_config.json")}) {
    QFile file(vocabulary + name);
    QVERIFY(file.open(QIODevice::ReadOnly));
    definition[key] = Json::parse(file.readAll().toStdString());
  }
  const auto tokenizer = Tokenizer::from_definition(definition.dump());
  QVERIFY2(tokenizer.ok(), tokenizer.ok() ? "" : tokenizer.error().message.c_str());
  definition.clear();
  QTemporaryDir folder;
  const QString lines = folder.filePath("lines");
  QVERIFY(run_program(node,
                      {QStringLiteral(SHOAL_SOURCE_DIR "/tests/chat/oracle/conversations.mjs"),
                       oracle_folder(), qEnvironmentVariable("SHOAL_CONVERSATIONS", "40"),
                       qEnvironmentVariable("SHOAL_SEED", "1"), "any", talk},
                      {}, lines));
  QFile given(lines);
  QVERIFY(given.open(QIODevice::ReadOnly));
  const Json head = Json::parse(given.readLine().toStdString());
  const auto chat = ChatTemplate::parse(head["source"].get<std::string>());
  QVERIFY(chat.ok());
  const auto special = [&](const std::vector<int32_t>& ids) {
    std::vector<int32_t> out;
    for (const int32_t id : ids) {
      // DeepSeek's turns begin with tokens that are not called special.
      const std::string_view text = tokenizer.value().token_text(id);
      if (tokenizer.value().is_special(id) || text.starts_with("<｜")) out.push_back(id);
    }
    return out;
  };
  int talks = 0, whole = 0, spelled = 0;
  while (!given.atEnd()) {
    const auto variables =
        Json::parse(given.readLine().toStdString())["variables"].get<std::string>();
    auto parts = chat.value().render(variables, {.bos_token = tokenizer.value().bos_text(),
                                                 .eos_token = tokenizer.value().eos_text(),
                                                 .now_ms = kNowMs});
    if (!parts.ok()) continue;
    ++talks;
    const std::vector<int32_t> ids = tokenizer.value().encode_parts(parts.value());
    std::string text;
    bool spells = false;
    for (TextPart& part : parts.value()) {
      text += part.text;
      spells = spells || (part.from_message && part.text.find_first_of("<[") != std::string::npos);
      if (part.from_message) part.text.assign(1, 'x');
    }
    const auto plainly = tokenizer.value().encode(text, /*add_bos=*/false, /*parse_special=*/true);
    QVERIFY2(special(ids) == special(tokenizer.value().encode_parts(parts.value())),
             variables.c_str());
    if (!spells) {
      ++whole;
      QVERIFY2(ids == plainly, variables.c_str());
    } else if (special(plainly) != special(ids)) {
      ++spelled;
    }
  }
  qInfo("%s: %d conversations, %d without marks in messages as one text, %d would have made marks",
        qPrintable(model), talks, whole, spelled);
  QVERIFY(whole > 0 && spelled > 0);
}

}  // namespace shoal

QTEST_GUILESS_MAIN(shoal::ChatOracleTest)
#include "chat_oracle_test.moc"
