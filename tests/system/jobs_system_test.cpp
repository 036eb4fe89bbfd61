// Goal: a job over several machines gives what one process gives prompt by prompt, though a host
// and the coordinator are killed in the middle. Method: `shoal-run` in one process is the oracle of
// what was written; scores and features are computed in this one, in one step a text, to the bit.

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QTest>
#include <csignal>

#include "compute/compute.h"
#include "compute/models/model.h"
#include "compute/sampling/likelihood.h"
#include "compute/tokenizer/tokenizer.h"
#include "tests/support/fleet.h"
#include "tests/support/shared_data.h"

namespace {

constexpr int kPrompts = 40;
constexpr int kTokens = 16;

QString prompt_of(int i) { return QString("Once upon a time number %1 went").arg(i); }

// Units of a second, so that there are many.
bool hurry(const QString& settings_path) {
  QFile file(settings_path);
  if (!file.open(QIODevice::ReadOnly)) return false;
  QString text = QString::fromUtf8(file.readAll());
  file.close();
  const QList<QPair<QString, int>> values = {{"unit_ms", 200},          {"lease_slack_ms", 4000},
                                             {"ask_again_ms_min", 100}, {"ask_again_ms_max", 500},
                                             {"claim_ms", 3000},        {"gather_ms", 1000},
                                             {"gone_grace_ms", 2000},   {"sequences_max", 4}};
  for (const auto& [key, value] : values) {
    const QRegularExpression line("^#? ?" + key + " = .*$", QRegularExpression::MultilineOption);
    if (!text.contains(line)) return false;
    text.replace(line, key + " = " + QString::number(value));
  }
  return file.open(QIODevice::WriteOnly | QIODevice::Truncate) && file.write(text.toUtf8()) > 0;
}

QList<QJsonObject> lines_of(const QString& path) {
  QFile file(path);
  QList<QJsonObject> lines;
  if (!file.open(QIODevice::ReadOnly)) return lines;
  for (const QByteArray& line : file.readAll().trimmed().split('\n'))
    lines += QJsonDocument::fromJson(line).object();
  return lines;
}

// The model in this process.
class Alone {
 public:
  explicit Alone(const QString& path)
      : model_(shoal::compute::open_model(path.toStdString()).value()),
        tokenizer_(shoal::Tokenizer::from_definition(model_.tokenizer).value()),
        device_(shoal::compute::open_device("cpu", 1).value()),
        stage_(shoal::compute::Stage::open(
                   *device_, model_.fragments,
                   {.context = model_.config.context, .rows_max = model_.config.context})
                   .value()) {}

  QJsonArray grade(const QString& text) {
    const std::vector<int32_t> tokens = tokens_of(text, 2);
    const std::vector<float> logits = step(tokens, /*features=*/false);
    const auto width = static_cast<size_t>(stage_->shape().vocabulary);
    QJsonArray grades;
    for (size_t i = 1; i < tokens.size(); ++i) {
      const auto row = std::span(logits).subspan((i - 1) * width, width);
      grades += shoal::log_likelihood(row, tokens[i]).value();
    }
    return grades;
  }

  QJsonArray place(const QString& text) {
    const std::vector<int32_t> tokens = tokens_of(text, 1);
    const std::vector<float> features = step(tokens, /*features=*/true);
    const auto width = static_cast<size_t>(stage_->shape().width);
    QJsonArray vector;
    for (size_t k = 0; k < width; ++k) {
      double sum = 0;
      for (size_t i = 0; i < tokens.size(); ++i) sum += double{features[i * width + k]};
      vector += static_cast<float>(sum / static_cast<double>(tokens.size())) + 0.0f;
    }
    return vector;
  }

 private:
  // As a task has it that goes on from another.
  std::vector<int32_t> tokens_of(const QString& text, size_t least) {
    std::vector<int32_t> tokens = tokenizer_.encode(text.toStdString(), tokenizer_.adds_bos());
    while (tokens.size() < least) tokens.insert(tokens.begin(), tokenizer_.bos().value_or(0));
    return tokens;
  }
  std::vector<float> step(const std::vector<int32_t>& tokens, bool features) {
    std::vector<shoal::compute::RowInfo> rows;
    std::vector<uint32_t> all;
    for (uint32_t i = 0; i < tokens.size(); ++i) {
      rows.push_back({.sequence = 0, .position = i});
      all.push_back(i);
    }
    return stage_
        ->step({.rows = rows, .tokens = tokens, .output_rows = all, .wants_features = features})
        .value();
  }

  shoal::compute::Model model_;
  shoal::Tokenizer tokenizer_;
  std::unique_ptr<shoal::compute::Device> device_;
  std::unique_ptr<shoal::compute::Stage> stage_;
};

// Numbers as the shortest text of an f32 has them, and as the f32 itself.
bool same_numbers(const QJsonArray& got, const QJsonArray& alone) {
  return std::ranges::equal(got, alone, [](const auto& a, const auto& b) {
    return static_cast<float>(a.toDouble()) == static_cast<float>(b.toDouble());
  });
}

}  // namespace

class JobsSystemTest : public QObject {
  Q_OBJECT

 private:
  std::unique_ptr<Fleet> fleet_;
  QString model_;

  QJsonObject one_process(const QString& prompt, qint64 seed) {
    Program run(
        "shoal-run",
        {"generate", "--model", model_, "--device", "cpu", "--threads", "1", "--prompt", prompt,
         "--max-tokens", QString::number(kTokens), "--seed", QString::number(seed), "--json"},
        fleet_->folder() + "/logs/shoal-run.log");
    run.wait_exit(60'000);
    return QJsonDocument::fromJson(run.output().trimmed().split('\n').last()).object();
  }

  QJsonObject job(qint64 id) { return fleet_->ctl({"job", "show", QString::number(id)}); }
  int items(const QJsonObject& job, const char* which) {
    int sum = 0;
    for (const auto task : job.value("tasks").toArray())
      sum += task.toObject().value(which).toInt();
    return sum;
  }

  QString write_job() {
    const QString folder = fleet_->folder();
    QFile prompts(folder + "/prompts.jsonl");
    QFile spec(folder + "/stories.toml");
    if (!prompts.open(QIODevice::WriteOnly) || !spec.open(QIODevice::WriteOnly)) return {};
    for (int i = 0; i < kPrompts; ++i) {
      const QJsonObject line = {{"id", i}, {"prompt", prompt_of(i)}};
      prompts.write(QJsonDocument(line).toJson(QJsonDocument::Compact) + "\n");
    }
    spec.write(
        "name = \"stories\"\nseed = 11\n"
        "[[tasks]]\nname = \"write\"\nkind = \"generate\"\nmodel = \"m\"\n"
        "input = \"prompts.jsonl\"\nmax_tokens = 16\n"
        "[[tasks]]\nname = \"grade\"\nkind = \"score\"\nmodel = \"m\"\n"
        "input = \"@write\"\n"
        "[[tasks]]\nname = \"place\"\nkind = \"embed\"\nmodel = \"m\"\n"
        "input = \"@write\"\n");
    return spec.fileName();
  }

 private Q_SLOTS:
  void initTestCase() {
    const auto data = shoal::shared_data();
    model_ = data ? QString::fromStdString((*data / "stories260K/stories260K-f32.gguf").string())
                  : demo_model();
    fleet_ = std::make_unique<Fleet>();
    fleet_->ctl({"init"});
    QVERIFY(hurry(fleet_->coordinator_data() + "/coordinator.toml"));
    QCOMPARE(fleet_->start_coordinator(), QString());
    QCOMPARE(fleet_->publish(model_, "m"), QString());
    QCOMPARE(fleet_->add_host("anchor", "cpu", true), QString());
    QCOMPARE(fleet_->add_host("one"), QString());
    QCOMPARE(fleet_->add_host("two"), QString());
    QCOMPARE(fleet_->wait_ready(3), QString());
  }
  void cleanupTestCase() { fleet_.reset(); }

  void a_job_survives_kills_and_gives_what_one_process_gives() {
    int code = -1;
    const QJsonObject submitted = fleet_->ctl({"job", "submit", write_job()}, &code);
    QVERIFY2(code == 0, fleet_->logs());
    const qint64 id = submitted.value("id").toInteger();
    const auto begun = [&] {
      const QJsonObject now = job(id);
      return items(now, "items_done") + items(now, "items_pending") >= 5;
    };
    QVERIFY2(wait_until(begun, 60'000), fleet_->logs());
    // In the middle: much is there, and much is not.
    const QJsonObject before = job(id);
    QCOMPARE(before.value("state").toString(), QString("running"));
    QVERIFY(items(before, "items_done") < items(before, "items"));
    fleet_->host("one").client->signal(SIGKILL);
    QVERIFY(fleet_->host("one").client->wait_exit(5'000));
    fleet_->coordinator()->signal(SIGKILL);
    QVERIFY(fleet_->coordinator()->wait_exit(5'000));
    QCOMPARE(fleet_->start_coordinator(), QString());
    QVERIFY(job(id).value("state").toString() == "running");

    const auto over = [&] { return job(id).value("state").toString() == "done"; };
    QVERIFY2(wait_until(over, 120'000),
             QJsonDocument(job(id)).toJson(QJsonDocument::Compact) + "\n" + fleet_->logs());
    QString out = fleet_->folder() + "/written.jsonl";
    const QJsonObject got = fleet_->ctl(
        {"job", "results", QString::number(id), "--task", "write", "--out", out}, &code);
    QCOMPARE(code, 0);
    QCOMPARE(got.value("items").toInt(), kPrompts);
    // What is there is not written over.
    fleet_->ctl({"job", "results", QString::number(id), "--task", "grade", "--out", out}, &code);
    QVERIFY(code != 0);
    const QList<QJsonObject> written = lines_of(out);
    QCOMPARE(written.size(), kPrompts);
    for (int i = 0; i < kPrompts; ++i) {
      QCOMPARE(written[i].value("id").toInt(), i);
      const QJsonObject alone = one_process(prompt_of(i), written[i].value("seed").toInteger());
      QVERIFY(!alone.value("ids").toArray().isEmpty());
      QCOMPARE(written[i].value("tokens").toArray(), alone.value("ids").toArray());
      QCOMPARE(written[i].value("text").toString(), alone.value("text").toString());
    }
    Alone alone(model_);
    for (const QString task : {"grade", "place"}) {
      out = fleet_->folder() + "/" + task + ".jsonl";
      fleet_->ctl({"job", "results", QString::number(id), "--task", task, "--out", out}, &code);
      QCOMPARE(code, 0);
      const QList<QJsonObject> made = lines_of(out);
      QCOMPARE(made.size(), kPrompts);
      for (int i = 0; i < kPrompts; ++i) {
        QCOMPARE(made[i].value("id").toInt(), i);
        const QString text = written[i].value("text").toString();
        const QString key = task == "grade" ? "log_likelihoods" : "vector";
        const QJsonArray numbers = made[i].value(key).toArray();
        QVERIFY(!numbers.isEmpty());
        QVERIFY2(same_numbers(numbers, task == "grade" ? alone.grade(text) : alone.place(text)),
                 QJsonDocument(made[i]).toJson(QJsonDocument::Compact));
      }
    }
    const QJsonObject report = fleet_->ctl({"ledger", "reconcile"}, &code);
    QCOMPARE(code, 0);
    QCOMPARE(report.value("pending").toInt(), 0);
  }
};

QTEST_GUILESS_MAIN(JobsSystemTest)
#include "jobs_system_test.moc"
