// Goal: whole models compute what independent evaluations of the same files computed, and the same
// bits on every plane, with any number of threads, any chunks and any cuts.

#include <QTest>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "compute/models/json_text.h"
#include "compute/models/model.h"
#include "compute/run/generate.h"
#include "compute/run/local_pipeline.h"
#include "compute/shards/cut.h"
#include "compute/shards/shard.h"
#include "compute/tokenizer/tokenizer.h"
#include "tests/models/float64_llama.h"
#include "tests/models/model_maker.h"
#include "tests/models/refused.h"
#include "tests/models/test_device.h"
#include "tests/support/shared_data.h"

using namespace shoal;
using namespace shoal::compute;

namespace {

constexpr int64_t kWindow = 256;

Model opened(const std::filesystem::path& path) {
  auto model = open_model(path);
  if (!model.ok()) qFatal("%s", model.error().message.c_str());
  return std::move(model).value();
}

Json json_file(const std::filesystem::path& path) {
  auto bytes = read_file(path, Bytes{1 << 26});
  if (!bytes.ok()) qFatal("%s", bytes.error().message.c_str());
  return Json::parse(as_text(bytes.value()));
}

std::filesystem::path demo_folder() {
  return std::filesystem::path(SHOAL_SOURCE_DIR) / "models" / "demo";
}

GenerateReport greedy(const Model& model, Device& device, const std::string& prompt, int64_t tokens,
                      GenerateOptions options = {}) {
  options.prompt = prompt;
  options.tokens_max = tokens;
  options.sampling.temperature = 0;
  options.ignore_eos = true;
  auto report = generate(model, device, options, {});
  if (!report.ok()) qFatal("%s", report.error().message.c_str());
  return std::move(report).value();
}

double largest_difference(const std::vector<float>& a, const std::vector<double>& b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return largest;
}

double relative_l2(const std::vector<float>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double difference = 0, length = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - b[i];
    difference += d * d;
    length += b[i] * b[i];
  }
  return std::sqrt(difference / length);
}

bool within(double value, double bound, const char* what) {
  qInfo("%s: %.3g (at most %.3g)", what, value, bound);
  return value <= bound;
}

// What must not change: which tokens came, and every fragment's output.
struct Outcome {
  std::vector<int32_t> ids;
  std::string text;
  Digest digest;
  std::vector<float> last_logits;

  bool operator==(const Outcome&) const = default;
};

Outcome outcome(const Model& model, Device& device, const std::string& prompt, int64_t tokens,
                int64_t chunk, std::vector<size_t> cuts = {}) {
  const GenerateReport report =
      greedy(model, device, prompt, tokens, {.chunk = chunk, .cuts = std::move(cuts)});
  return {report.ids, report.text, report.digest, report.last_logits};
}

}  // namespace

class ModelGoldenTest : public QObject {
  Q_OBJECT

 private:
  std::optional<std::filesystem::path> stories_;  // ../shared/data/stories260K, where it is.

  void check_perplexity(const std::filesystem::path& path, const std::string& text,
                        int64_t windows) {
    const Model model = opened(path);
    const auto tokenizer = Tokenizer::from_definition(model.tokenizer);
    const std::vector<int32_t> ids = tokenizer.value().encode(text, false);
    auto ours = perplexity_of_tokens(model, *device("cpu"), ids, kWindow, windows, 64);
    QVERIFY2(ours.ok(), ours.ok() ? "" : ours.error().message.c_str());
    QCOMPARE(static_cast<int64_t>(ours.value().window_nll.size()), windows);

    auto file = GgufFile::read(model.files.front().bytes(), "file");
    Float64Llama reference(file.value());
    double total = 0;
    for (int64_t w = 0; w < windows; ++w) {
      reference.restart();
      int32_t token = *model.config.bos;
      for (int64_t i = 0; i < kWindow - 1; ++i) {
        const std::vector<double> logits = reference.step(token);
        token = ids[static_cast<size_t>(w * (kWindow - 1) + i)];
        const double largest = *std::max_element(logits.begin(), logits.end());
        double sum = 0;
        for (const double logit : logits) sum += std::exp(logit - largest);
        total += std::log(sum) + largest - logits[static_cast<size_t>(token)];
      }
    }
    const double expected = std::exp(total / static_cast<double>(windows * (kWindow - 1)));
    qInfo("%s: perplexity %.5f, in float64 %.5f, over %lld tokens", path.filename().c_str(),
          ours.value().perplexity, expected, static_cast<long long>(windows * (kWindow - 1)));
    QVERIFY(
        within(std::abs(ours.value().perplexity / expected - 1), 0.005, "perplexity, relative"));
  }

 private Q_SLOTS:
  void initTestCase() {
    if (const auto data = shared_data()) stories_ = *data / "stories260K";
  }

  void stories_f32_equals_the_float64_evaluation() {
    if (!stories_) QSKIP("../shared/data is absent");
    const Json reference = json_file(*stories_ / "reference.json");
    const auto cpu = device("cpu");
    for (const char* name : {"hf", "stories260K-f32.gguf"}) {
      const Model model = opened(*stories_ / name);
      QVERIFY(model.config.state_dtype == DType::kF32);
      for (const Json& prompt : reference["prompts"]) {
        const GenerateReport report = greedy(model, *cpu, prompt["prompt"].get<std::string>(), 64);
        QVERIFY(report.prompt_ids == prompt["prompt_ids"].get<std::vector<int32_t>>());
        QVERIFY(within(largest_difference(report.last_logits,
                                          prompt["last_logits"].get<std::vector<double>>()),
                       1e-4, "logits, largest difference"));
        QVERIFY(report.ids == prompt["greedy_ids"].get<std::vector<int32_t>>());
        QVERIFY(report.text == prompt["llamacpp_f32"]["text"].get<std::string>());
      }
    }
  }

  void stories_quantised_is_near_llama_cpp() {
    if (!stories_) QSKIP("../shared/data is absent");
    const Json reference = json_file(*stories_ / "reference.json");
    const auto cpu = device("cpu");
    for (const std::string type : {"q8_0", "q4_0"}) {
      const Model model = opened(*stories_ / ("stories260K-" + type + ".gguf"));
      for (const Json& prompt : reference["prompts"]) {
        const GenerateReport report = greedy(model, *cpu, prompt["prompt"].get<std::string>(), 1);
        const auto expected = prompt["llamacpp_" + type]["last_logits"].get<std::vector<double>>();
        QVERIFY(within(relative_l2(report.last_logits, expected), 0.02, type.c_str()));
      }
    }
  }

  void stories_perplexity_is_that_of_float64() {
    if (!stories_) QSKIP("../shared/data is absent");
    // What the f32 model itself tells: text of the kind that it knows.
    const Model model = opened(*stories_ / "hf");
    const auto cpu = device("cpu");
    std::string text;
    const auto tokenizer = Tokenizer::from_definition(model.tokenizer);
    // 40 windows are over 10,000 tokens.
    constexpr int64_t kWindows = 40;
    for (uint64_t seed = 0; seed < 60; ++seed) {
      GenerateOptions options{
          .prompt = "Once upon a time", .tokens_max = 480, .ignore_eos = true, .digest = false};
      options.sampling.temperature = 1;
      options.sampling.seed = seed;
      auto story = generate(model, *cpu, options, {});
      QVERIFY(story.ok());
      text += options.prompt + story.value().text + "\n";
      if (static_cast<int64_t>(tokenizer.value().encode(text, false).size()) > kWindows * kWindow)
        break;
    }
    check_perplexity(*stories_ / "stories260K-q8_0.gguf", text, kWindows);
    check_perplexity(*stories_ / "stories260K-q4_0.gguf", text, kWindows);
    check_perplexity(*stories_ / "stories260K-f32.gguf", text, 4);
  }

  void stories_is_the_same_bits_everywhere() {
    if (!stories_) QSKIP("../shared/data is absent");
    const auto one = device("cpu", 1), two = device("cpu", 2);
    for (const std::string name : {"hf", "stories260K-q8_0.gguf", "stories260K-q4_0.gguf"}) {
      const Model model = opened(*stories_ / name);
      const std::string prompt = "One day, Tom and Lily went to the park.";
      const Outcome expected = outcome(model, *one, prompt, 24, 64);
      for (const int64_t chunk : {1, 7, 64}) {
        QVERIFY(outcome(model, *two, prompt, 24, chunk) == expected);
        for (size_t cut = 1; cut < model.fragments.size(); ++cut) {
          QVERIFY(outcome(model, *one, prompt, 24, chunk, {cut}) == expected);
        }
      }
      QVERIFY(outcome(model, *one, prompt, 24, 7, {1, 2, 3, 4, 5, 6}) == expected);
      if (has_vulkan()) {
        const auto vulkan = device("vulkan");
        QVERIFY(outcome(model, *vulkan, prompt, 8, 64).digest ==
                outcome(model, *one, prompt, 8, 64).digest);
        QVERIFY(outcome(model, *vulkan, prompt, 8, 7, {3}) == outcome(model, *one, prompt, 8, 64));
      }
    }
  }

  void the_demo_model_equals_its_reference() {
    const Json reference = json_file(demo_folder() / "reference.json");
    const Model model = opened(demo_folder() / "shoal-demo-q8_0.gguf");
    const auto cpu = device("cpu");
    for (const Json& prompt : reference["prompts"]) {
      const GenerateReport report = greedy(model, *cpu, prompt["prompt"].get<std::string>(), 64);
      QVERIFY(report.prompt_ids == prompt["prompt_ids"].get<std::vector<int32_t>>());
      QVERIFY(
          within(relative_l2(report.last_logits, prompt["last_logits"].get<std::vector<double>>()),
                 0.02, "logits, relative"));
      // The file's float64 evaluation keeps activations whole; ours are rounded to 8 bits. Where
      // the two best are near each other either may win, and then the texts go their own ways.
      const auto ids = prompt["greedy_ids"].get<std::vector<int32_t>>();
      const auto margins = prompt["greedy_margins"].get<std::vector<double>>();
      for (size_t i = 0; i < ids.size() && margins[i] > 0.15; ++i) QCOMPARE(report.ids[i], ids[i]);
    }
  }

  void the_demo_model_scores_as_its_reference_does() {
    const Json reference = json_file(demo_folder() / "reference.json")["heldout"];
    const Model model = opened(demo_folder() / "shoal-demo-q8_0.gguf");
    auto text = read_file(demo_folder() / "heldout.txt", Bytes{1 << 20});
    constexpr int64_t kWindows = 40;  // Over 10,000 tokens.
    auto report = perplexity(model, *device("cpu"), as_text(text.value()), kWindow, kWindows, 64);
    QVERIFY2(report.ok(), report.ok() ? "" : report.error().message.c_str());
    const auto expected = reference["window_nll"].get<std::vector<double>>();
    double ours = 0, theirs = 0;
    for (size_t w = 0; w < kWindows; ++w) {
      ours += report.value().window_nll[w];
      theirs += expected[w];
    }
    const double difference = (ours - theirs) / static_cast<double>(report.value().scored_tokens);
    QVERIFY(within(std::abs(std::exp(difference) - 1), 0.005, "perplexity, relative"));
  }

  void tiny_models_are_the_same_bits_everywhere_data() {
    QTest::addColumn<QString>("type");
    QTest::addColumn<QString>("down");
    QTest::addColumn<int>("intermediate");
    QTest::newRow("f32") << "F32"
                         << "" << 80;
    QTest::newRow("f16") << "F16"
                         << "" << 80;
    QTest::newRow("bf16") << "BF16"
                          << "" << 96;
    QTest::newRow("q8_0, down f16") << "Q8_0"
                                    << "F16" << 172;
    QTest::newRow("q4_0") << "Q4_0"
                          << "" << 96;
  }

  void tiny_models_are_the_same_bits_everywhere() {
    QFETCH(QString, type);
    QFETCH(QString, down);
    QFETCH(int, intermediate);
    const ByteVector bytes = tiny_gguf({.intermediate = intermediate,
                                        .vocabulary = 320,
                                        .tied = false,
                                        .type = type.toStdString(),
                                        .down_type = down.toStdString()})
                                 .bytes();
    auto model = model_of_gguf(bytes, "tiny.gguf");
    QVERIFY2(model.ok(), model.ok() ? "" : model.error().message.c_str());
    const std::string prompt =
        "A prompt of more than thirty-two, and of more than sixty-four, tokens here";
    const auto one = device("cpu", 1);
    const Outcome expected = outcome(model.value(), *one, prompt, 6, 128);
    QCOMPARE(expected.ids.size(), size_t{6});

    const auto two = device("cpu", 2);
    for (const int64_t chunk : {1, 7, 64, 128}) {
      QVERIFY(outcome(model.value(), *two, prompt, 6, chunk) == expected);
      for (size_t cut = 1; cut < model.value().fragments.size(); ++cut) {
        QVERIFY(outcome(model.value(), *two, prompt, 6, chunk, {cut}) == expected);
      }
    }
    // Another prompt, another digest: the digest does look at the rows.
    QVERIFY(outcome(model.value(), *one, prompt + "!", 6, 128).digest != expected.digest);

    if (!has_vulkan()) QSKIP("no Vulkan driver here; the cpu plane was compared");
    const auto vulkan = device("vulkan");
    QVERIFY(outcome(model.value(), *vulkan, prompt, 6, 128) == expected);
    QVERIFY(outcome(model.value(), *vulkan, prompt, 6, 7, {1, 2, 3}) == expected);
  }

  void shards_run_as_the_model_that_was_cut() {
    const Model model = opened(demo_folder() / "shoal-demo-q8_0.gguf");
    TempDir folder;
    auto cut = cut_model(model, folder.path());
    QVERIFY(cut.ok());
    std::vector<PlainShard> shards;
    std::vector<Fragment> fragments;
    for (size_t i = 0; i < cut.value().keys.size(); ++i) {
      const ShardInfo& info = cut.value().manifest.shards[i];
      auto sealed = read_file(folder / shard_file_name(info.digest), Bytes{info.sealed_bytes});
      ShardOpener opener(cut.value().keys[i], info.digest,
                         static_cast<uint64_t>(info.sealed_bytes));
      QVERIFY(opener.feed(sealed.value()).ok());
      auto shard = opener.finish();
      QVERIFY(shard.ok());
      shards.push_back(std::move(shard).value());
    }
    for (const PlainShard& shard : shards) fragments.push_back(shard.fragment());
    const auto cpu = device("cpu");
    const std::vector<int32_t> tokens = {0, 75, 112, 260, 1795, 1252};
    Digest digests[2];
    std::vector<float> logits[2];
    for (int i = 0; i < 2; ++i) {
      auto pipeline =
          LocalPipeline::open(*cpu, i == 0 ? model.fragments : fragments, {.context = 16});
      QVERIFY(pipeline.ok());
      auto rows = pipeline.value().run(tokens, 0, LocalPipeline::Logits::kAll);
      QVERIFY(rows.ok());
      logits[i] = rows.value();
      digests[i] = pipeline.value().digest();
    }
    QVERIFY(logits[0] == logits[1] && digests[0] == digests[1]);
    QCOMPARE(logits[0].size(), tokens.size() * 2048);
  }

  void what_cannot_be_generated_is_refused() {
    const ByteVector bytes = tiny_gguf({.vocabulary = 320, .context = 32}).bytes();
    Model model = model_of_gguf(bytes, "tiny.gguf").value();
    const auto cpu = device("cpu", 1);
    const auto with = [&](GenerateOptions options) { return generate(model, *cpu, options, {}); };
    QVERIFY(
        refused(with({.prompt = std::string(100, 'x')}), {"prompt", "32"}, ErrorCode::kInvalid));
    QVERIFY(refused(with({.prompt = "x", .chunk = 0}), {"chunk"}, ErrorCode::kInvalid));
    for (const std::vector<size_t>& cuts : {std::vector<size_t>{0}, {4}, {2, 2}, {3, 1}}) {
      QVERIFY(refused(with({.prompt = "x", .cuts = cuts}), {"cut"}, ErrorCode::kInvalid));
    }
    GenerateOptions hot{.prompt = "x"};
    hot.sampling.temperature = -1;
    QVERIFY(refused(with(hot), {"temperature"}, ErrorCode::kInvalid));
    QVERIFY(
        refused(perplexity(model, *cpu, "text", 64, 0, 64), {"window", "32"}, ErrorCode::kInvalid));
    QVERIFY(refused(perplexity(model, *cpu, "text", 32, 0, 64), {"text"}, ErrorCode::kInvalid));

    // The context's end stops a text; it is no error.
    auto full = with({.prompt = "abc", .tokens_max = 1000, .ignore_eos = true});
    QVERIFY2(full.ok(), full.ok() ? "" : full.error().message.c_str());
    QCOMPARE(full.value().stop, std::string("context"));
    QCOMPARE(full.value().prompt_ids.size() + full.value().ids.size(), size_t{33});
    auto none = with({.prompt = "abc", .tokens_max = 0});
    QVERIFY(none.ok() && none.value().ids.empty() && none.value().text.empty());

    model.tokenizer.clear();
    QVERIFY(refused(with({.prompt = "x"}), {"tokenizer"}, ErrorCode::kNotFound));
  }
};

QTEST_GUILESS_MAIN(ModelGoldenTest)
#include "model_golden_test.moc"
