#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <QProcess>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>
#include <QXmlStreamReader>
#include <algorithm>
#include <optional>
#include <set>

#include "schema/message.h"
#include "schema/reasons.h"
#include "ui/format.h"
#include "ui/messages.h"
#include "ui/translations.h"

using namespace shoal;

namespace {

struct Entry {
  QString context, source;
  QStringList forms;
  bool unfinished = false;
};

QList<Entry> read_entries(const QString& path) {
  QList<Entry> entries;
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return entries;
  QXmlStreamReader xml(&file);
  QString context;
  while (!xml.atEnd()) {
    xml.readNext();
    if (!xml.isStartElement()) continue;
    if (xml.name() == u"name") context = xml.readElementText();
    if (xml.name() == u"message") entries.push_back({context, {}, {}, false});
    if (xml.name() == u"source") entries.back().source = xml.readElementText();
    if (xml.name() == u"translation") {
      const auto kind = xml.attributes().value("type");
      entries.back().unfinished = kind == u"unfinished";
      if (kind == u"vanished" || kind == u"obsolete") {
        entries.pop_back();
        continue;
      }
      QString text;
      while (!(xml.isEndElement() && xml.name() == u"translation") && !xml.atEnd()) {
        xml.readNext();
        if (xml.isStartElement() && xml.name() == u"numerusform") {
          entries.back().forms += xml.readElementText();
        } else if (xml.isCharacters()) {
          text += xml.text();
        }
      }
      if (entries.back().forms.isEmpty()) entries.back().forms += text;
    }
  }
  return entries;
}

// The places that a text has to fill: %1, %n, {0}.
std::set<QString> places(const QString& text) {
  static const QRegularExpression kPlace("%\\d|\\{\\d\\}");
  std::set<QString> found;
  for (auto match = kPlace.globalMatch(text); match.hasNext();)
    found.insert(match.next().captured());
  return found;
}

}  // namespace

class TranslationTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  // Goal: no string of the window, the client or a coordinator is without its German, and no
  // English plural reads "2 hour(s)". Method: lupdate over the sources, into a copy.
  void every_string_is_translated_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<bool>("plural_only");
    QTest::newRow("German") << "shoal_de.ts" << false;
    QTest::newRow("English plurals") << "shoal_en.ts" << true;
  }
  void every_string_is_translated() {
    QFETCH(QString, name);
    QFETCH(bool, plural_only);
    const QString root = SHOAL_SOURCE_DIR;
    const QTemporaryDir folder;
    const QString copy = folder.filePath(name);
    QVERIFY(QFile::copy(root + "/ui/i18n/" + name, copy));
    QStringList arguments{"-silent", "-I", root, "-no-obsolete", "-locations", "none"};
    if (plural_only) arguments += "-pluralonly";
    arguments += QString(TRANSLATED).split('|');
    arguments += {"-ts", copy};
    QProcess lupdate;
    lupdate.setWorkingDirectory(root + "/ui");
    lupdate.start(LUPDATE, arguments);
    QVERIFY2(lupdate.waitForFinished(60'000) && lupdate.exitCode() == 0,
             lupdate.readAllStandardError().constData());
    const QList<Entry> entries = read_entries(copy);
    QVERIFY(entries.size() >= (plural_only ? 2 : 300));
    QStringList wrong;
    for (const Entry& entry : entries) {
      const QString where = entry.context + ": " + entry.source;
      if (entry.unfinished || entry.forms.contains(QString()))
        wrong += where + " is not translated";
      for (const QString& form : entry.forms) {
        if (places(form) != places(entry.source) && !entry.unfinished) {
          wrong += where + " has other places than " + form;
        }
        if (plural_only && form.contains("(s)")) wrong += where + " is no plural";
      }
    }
    QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n') +
                                         "\nninja update_translations, then ui/i18n/" + name));
  }

  void every_message_is_said_in_german() {
    const ui::Translations german(*qApp, QLocale("de_DE"));
    for (const MessageSpec& spec : message_table()) {
      Message message{std::string(spec.code), {}};
      for (int i = 0; i < 4; ++i) message.parameters.push_back(std::string("#") + char('0' + i));
      const QString said = ui::sentence(message);
      QVERIFY2(said.toStdString() != english(message), spec.code.data());
      // What the English sentence names, the German one names too.
      for (int i = 0; i < 4; ++i) {
        const std::string place = "#" + std::to_string(i);
        QCOMPARE(said.contains(QString::fromStdString(place)),
                 english(message).find(place) != std::string::npos);
      }
    }
  }

  // Goal: what the client hands on as plain text is said in German too, part by part.
  void every_reason_is_said_in_german() {
    const ui::Translations german(*qApp, QLocale("de_DE"));
    for (const std::string_view sentence : reason_table()) {
      const std::vector<std::string> places{"#0", "#1", "#2"};
      const std::string text = fill_places(sentence, places);
      const std::optional<KnownReason> known = find_reason(text);
      QVERIFY2(known && known->sentence == sentence, text.c_str());
      const QString said = ui::problem_text(text);
      QVERIFY2(said.toStdString() != text, text.c_str());
      for (const std::string& place : places) {
        QCOMPARE(said.contains(QString::fromStdString(place)),
                 text.find(place) != std::string::npos);
      }
    }
    QCOMPARE(ui::problem_text(
                 std::string("the computer may sleep too early: the system bus does not answer")),
             QString("der Computer schläft vielleicht zu früh ein: der Systembus antwortet nicht"));
    QCOMPARE(ui::sentence(Message{"offline.unreachable",
                                  {std::string("x"), std::string("the network does not reach x")}}),
             QString("x ist nicht erreichbar: das Netz reicht nicht bis zu x"));
    // What is not in the table stays as it is, but for what would move a cursor.
    QCOMPARE(ui::problem_text(std::string("the moon\x1b is full")), QString("the moon? is full"));
    QCOMPARE(ui::problem_text(std::string()), QString());
  }

  // Goal: the table and those who write such texts do not part. Method: the sources are read; what
  // stands there in pieces, with figures between them, stands in the table with places.
  void reasons_are_written_as_they_stand_in_the_table() {
    const QString root = SHOAL_SOURCE_DIR;
    QString sources, sensors;
    for (const char* folder : {"/client", "/client/sensors", "/client/records", "/schema",
                               "/coordinator/rpc", "/coordinator/store"}) {
      for (const QFileInfo& info : QDir(root + folder).entryInfoList({"*.cpp"}, QDir::Files)) {
        if (info.fileName() == "reasons.cpp") continue;
        QFile file(info.filePath());
        QVERIFY(file.open(QIODevice::ReadOnly));
        QString text = QString::fromUtf8(file.readAll());
        static const QRegularExpression kBetween("\"\\s*\"");
        text.replace("\\\"", "''");
        text.remove(kBetween);  // One literal in several pieces.
        sources += text;
        if (QString(folder) == "/client/sensors" || info.fileName() == "sensor_process.cpp") {
          sensors += text;
        }
      }
    }
    static const QRegularExpression kPlace("\\{\\d\\}");
    QStringList known;
    for (const std::string_view sentence : reason_table()) {
      QString text = QString::fromUtf8(sentence.data(), qsizetype(sentence.size()));
      text.replace("\"", "''");
      known += text;
      for (QString piece : text.split(kPlace, Qt::SkipEmptyParts)) {
        // with_context() puts that before another's words.
        if (piece.startsWith(": ") && !sources.contains(piece)) piece.remove(0, 2);
        QVERIFY2(sources.contains(piece), qPrintable(text));
      }
    }
    // And what a sensor says as one whole, or begins with, is there.
    static const QRegularExpression kSaid(
        "(?:unknown\\(|problem = |Error\\{ErrorCode::k\\w+,)\\s*\"([^\"]+)\"");
    int said = 0;
    for (auto match = kSaid.globalMatch(sensors); match.hasNext(); ++said) {
      const QString text = match.next().captured(1);
      const bool begins = std::any_of(known.begin(), known.end(),
                                      [&text](const QString& one) { return one.startsWith(text); });
      QVERIFY2(begins || find_reason(text.toStdString()), qPrintable(text));
    }
    QVERIFY(said > 20);
  }

  void a_code_of_a_newer_client_is_still_read() {
    const ui::Translations german(*qApp, QLocale("de_DE"));
    QCOMPARE(ui::sentence(Message{"rule.moon", {std::string("full"), Count{3}}}),
             QString("rule.moon full 3"));
    QCOMPARE(ui::sentence(Message{}), QString());
  }

  void figures_are_written_as_the_reader_writes_them() {
    {
      const ui::Translations english(*qApp, QLocale("en_GB"));
      QCOMPARE(ui::format_duration(Millis{59'999}), QString("59 s"));
      QCOMPARE(ui::format_duration(Millis{60'000}), QString("1 min"));
      QCOMPARE(ui::format_duration(Millis{-5}), QString("0 s"));
      QCOMPARE(ui::format_duration(Millis{(3 * 60 + 20) * 60'000}), QString("3 h 20 min"));
      QCOMPARE(ui::format_duration(Millis{int64_t{72} * 3'600'000}), QString("3 days"));
      QCOMPARE(ui::format_duration(Millis{int64_t{50} * 3'600'000}), QString("2 days 2 h"));
      QCOMPARE(ui::format_countdown(Millis{899'001}), QString("15:00"));
      QCOMPARE(ui::format_countdown(Millis{3'600'000}), QString("1:00:00"));
      QCOMPARE(ui::format_countdown(Millis{-1}), QString("0:00"));
      QCOMPARE(ui::format_bytes(1.5e9), QString("1.50\u00a0GB"));
      QCOMPARE(ui::format_bytes(999), QString("999\u00a0B"));
      QCOMPARE(ui::format_credit(1234.4), QString("1,234"));
      QCOMPARE(ui::format_credit(0.04), QString("0.04"));
      QCOMPARE(ui::format_credit(0.00123), QString("0.0012"));
      QCOMPARE(ui::format_credit(0), QString("0"));
      QCOMPARE(ui::format_money(0.18, "EUR"), QString("€0.18"));
      QCOMPARE(ui::format_energy(0.6104), QString("610\u00a0Wh"));
      QCOMPARE(ui::format_watts(std::numeric_limits<double>::quiet_NaN()), QString("–"));
    }
    const ui::Translations german(*qApp, QLocale("de_DE"));
    QCOMPARE(ui::format_bytes(1.5e9), QString("1,50\u00a0GB"));
    QCOMPARE(ui::format_duration(Millis{int64_t{72} * 3'600'000}), QString("3 Tage"));
    QCOMPARE(ui::format_money(0.18, "EUR"), QString("0,18\u00a0€"));
  }

  void a_time_is_as_short_as_it_is_clear() {
    const ui::Translations english(*qApp, QLocale("en_GB"));
    const auto at = [](int day, int hour) {
      return Millis{QDateTime(QDate(2026, 3, day), QTime(hour, 0)).toMSecsSinceEpoch()};
    };
    const Millis now = at(2, 12);  // A Monday.
    QCOMPARE(ui::format_when(at(2, 18), now), QString("18:00"));
    QCOMPARE(ui::format_when(at(3, 6), now), QString("tomorrow 06:00"));
    QCOMPARE(ui::format_when(at(1, 6), now), QString("yesterday 06:00"));
    QCOMPARE(ui::format_when(at(6, 8), now), QString("Fri 08:00"));
    QCOMPARE(ui::format_when(at(12, 8), now), QString("12 Mar 08:00"));
    QCOMPARE(ui::format_ago(now - Millis{30'000}, now), QString("just now"));
    QCOMPARE(ui::format_ago(now - Millis{300'000}, now), QString("5 min ago"));
  }
};

QTEST_GUILESS_MAIN(TranslationTest)
#include "translation_test.moc"
