#pragma once
// Holds a tokenizer against the answers of another library, which a script of this folder writes:
// for the tests of tokenizers alone.

#include <QByteArray>
#include <QFile>
#include <QProcess>
#include <QStandardPaths>
#include <QString>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "compute/tokenizer/split.h"
#include "compute/tokenizer/tokenizer.h"

namespace shoal {

// Where tests/tokenizer/oracle/fetch puts what it brings.
inline QString oracle_folder() { return QStringLiteral(SHOAL_BIN_DIR "/../../oracles/tokenizer"); }

// Why nothing can be compared here; empty: it can.
inline QString why_no_oracle() {
  if (!QFile::exists(oracle_folder() + "/complete"))
    return "no vocabularies here: tests/tokenizer/oracle/fetch brings them (npm, network)";
  if (QStandardPaths::findExecutable("node").isEmpty())
    return "node is not here, so there is no library to compare with";
  return {};
}

// A script's lines: SHOAL_STRINGS of them (200) from SHOAL_SEED. Empty when it failed.
inline QList<QByteArray> oracle_answers(const char* script, const QString& of) {
  QProcess process;
  process.setProcessChannelMode(QProcess::ForwardedErrorChannel);
  process.start("node", {QStringLiteral(SHOAL_SOURCE_DIR "/tests/tokenizer/oracle/") + script,
                         oracle_folder(), of, qEnvironmentVariable("SHOAL_STRINGS", "200"),
                         qEnvironmentVariable("SHOAL_SEED", "1")});
  if (!process.waitForFinished(/*msecs=*/300'000) || process.exitCode() != 0) return {};
  return process.readAllStandardOutput().split('\n');
}

struct Compared {
  int encoded = 0, decoded = 0;
  int differ = 0;
  // Strings with characters that PCRE2 10.42, which knows Unicode 14, calls unassigned, and the
  // other library letters or digits: they are cut in another way.
  int newer = 0;
  int excused = 0;
};

// `excuse` says of a string on which the two differ whether that is known, and right.
template <class Excuse>
Compared compare(const Tokenizer& tokenizer, const QList<QByteArray>& answers,
                 const Excuse& excuse) {
  using Json = nlohmann::json;
  constexpr int kShown = 5;
  const auto unassigned = Pattern::compile("\\p{Cn}");
  SHOAL_CHECK(unassigned.ok());
  Compared result;
  const auto show = [&](const std::string& what, const Json& line) {
    if (++result.differ <= kShown)
      qWarning("%s: %s", what.c_str(), line.dump().substr(0, 600).c_str());
  };
  for (const QByteArray& bytes : answers) {
    if (bytes.isEmpty()) continue;
    const Json line = Json::parse(bytes.toStdString());
    const auto ids = line["ids"].get<std::vector<int32_t>>();
    if (line.contains("text")) {
      ++result.encoded;
      const auto text = line["text"].get<std::string>();
      std::string given = text;  // Or bytes that are no UTF-8, of which `text` is what is left.
      if (line.contains("bytes")) {
        const auto bytes_given = line["bytes"].get<std::vector<uint8_t>>();
        given.assign(bytes_given.begin(), bytes_given.end());
      }
      const auto ours = tokenizer.encode(given, /*add_bos=*/false, /*parse_special=*/true);
      bool complete = true;
      if (ours != ids) {
        if (excuse(text)) {
          ++result.excused;
        } else if (!unassigned.value().find_all(text, complete).empty()) {
          ++result.newer;
        } else {
          show("encoded " + Json(ours).dump(), line);
        }
      }
    }
    if (!line.contains("decoded")) continue;
    ++result.decoded;
    Detokenizer detokenizer(tokenizer, Detokenizer::Begin::kText, /*show_special=*/true);
    std::string text;
    for (const int32_t id : ids) text += detokenizer.push(id);
    text += detokenizer.finish();
    if (text != line["decoded"].get<std::string>()) show("decoded " + Json(text).dump(), line);
  }
  return result;
}

}  // namespace shoal
