// Goal: every family computes what its formulas say, from either kind of file, and the same bits on
// every plane and for every cut; what a config asks for that is not there is refused by its name.

#include <QJsonDocument>
#include <QJsonObject>
#include <QtTest>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "compute/models/gguf.h"
#include "compute/models/model.h"
#include "compute/run/local_pipeline.h"
#include "tests/models/refused.h"
#include "tests/models/tiny_family.h"

using namespace shoal;
using namespace shoal::compute;

namespace {

constexpr uint64_t kSeed = 5;

std::vector<int32_t> some_tokens(int count, int64_t vocabulary) {
  Random random(3);
  std::vector<int32_t> tokens;
  for (int i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(vocabulary))));
  return tokens;
}

std::unique_ptr<Device> device(const std::string& selector, int threads = 2) {
  auto found = open_device(selector, threads);
  if (!found.ok()) qFatal("%s", found.error().message.c_str());
  return std::move(found).value();
}

struct Outcome {
  std::vector<float> logits;
  Digest digest;
  bool operator==(const Outcome&) const = default;
};

Outcome run(const Model& model, Device& on, const std::vector<int32_t>& tokens,
            PipelineOptions options) {
  auto pipeline = LocalPipeline::open(on, model.fragments, options);
  if (!pipeline.ok()) qFatal("%s", pipeline.error().message.c_str());
  auto logits = pipeline.value().run(tokens, 0, LocalPipeline::Logits::kAll);
  if (!logits.ok()) qFatal("%s", logits.error().message.c_str());
  return {std::move(logits).value(), pipeline.value().digest()};
}

double worst(const std::vector<float>& got, const std::vector<std::vector<double>>& wanted) {
  if (wanted.empty() || got.size() != wanted.size() * wanted[0].size()) return INFINITY;
  double largest = 0;
  for (size_t row = 0; row < wanted.size(); ++row) {
    for (size_t i = 0; i < wanted[row].size(); ++i) {
      largest = std::max(largest, std::fabs(static_cast<double>(got[row * wanted[row].size() + i]) -
                                            wanted[row][i]));
    }
  }
  return largest;
}

}  // namespace

class FamiliesTest : public QObject {
  Q_OBJECT

 private:
  std::vector<TinyFamily> families_ = tiny_families();

 private Q_SLOTS:
  void every_family_computes_its_formulas_data() {
    QTest::addColumn<int>("which");
    QTest::addColumn<bool>("gguf");
    for (size_t i = 0; i < families_.size(); ++i) {
      QTest::addRow("%s, folder", families_[i].name.c_str()) << int(i) << false;
      if (!families_[i].gguf.empty())
        QTest::addRow("%s, gguf", families_[i].name.c_str()) << int(i) << true;
    }
  }

  void every_family_computes_its_formulas() {
    QFETCH(int, which);
    QFETCH(bool, gguf);
    const TinyFamily& family = families_[static_cast<size_t>(which)];
    const TinyWeights weights = tiny_weights(family, kSeed);
    TempDir folder;
    const ByteVector bytes = gguf ? gguf_of(family, weights).bytes() : ByteVector();
    if (!gguf) write_folder(folder.path(), family, weights);
    auto model = gguf ? model_of_gguf(bytes, "tiny.gguf") : open_model(folder.path());
    QVERIFY2(model.ok(), model.ok() ? "" : model.error().message.c_str());
    QVERIFY(model.value().config.state_dtype == DType::kF32);

    const std::vector<int32_t> tokens = some_tokens(45, family.vocabulary);
    const auto cpu = device("cpu");
    for (const int64_t context : {int64_t{46}, family.context}) {  // Short and long, for longrope.
      const Outcome got = run(model.value(), *cpu, tokens, {.context = context, .chunk = 45});
      const double error = worst(got.logits, float64_logits(family, weights, tokens, context));
      qInfo("context %lld: largest difference %.2e", static_cast<long long>(context), error);
      QVERIFY(error <= 1e-4);
    }

    // The same bits in any steps, and for every cut.
    const Outcome whole = run(model.value(), *cpu, tokens, {.context = 46, .chunk = 64});
    for (size_t cut = 1; cut < model.value().fragments.size(); ++cut) {
      QVERIFY(run(model.value(), *cpu, tokens,
                  {.cuts = {cut}, .context = 46, .chunk = cut % 2 == 0 ? 7 : 1}) == whole);
    }
  }

  void a_sample_is_the_same_bits_on_vulkan() {
    const auto devices = list_devices();
    if (std::none_of(devices.begin(), devices.end(),
                     [](const DeviceInfo& info) { return info.plane == "vulkan"; })) {
      QSKIP("no Vulkan driver here");
    }
    const auto cpu = device("cpu", 1), vulkan = device("vulkan");
    for (const TinyFamily& family : families_) {
      if (family.gguf.empty()) continue;
      const TinyWeights weights = tiny_weights(family, kSeed + 1);
      const ByteVector bytes = gguf_of(family, weights).bytes();
      auto model = model_of_gguf(bytes, "tiny.gguf");
      QVERIFY(model.ok());
      const std::vector<int32_t> tokens = some_tokens(12, family.vocabulary);
      QVERIFY2(run(model.value(), *vulkan, tokens, {.cuts = {2}, .context = 16, .chunk = 5}) ==
                   run(model.value(), *cpu, tokens, {.context = 16, .chunk = 64}),
               family.name.c_str());
    }
  }

  void a_config_that_lies_is_refused_by_its_key_data() {
    QTest::addColumn<QString>("family");
    QTest::addColumn<QString>("change");
    QTest::addColumn<QString>("key");
    const auto row = [](const char* family, const char* change, const char* key) {
      QTest::addRow("%s %s", family, change) << family << change << key;
    };
    row("mistral 0.1", R"("sliding_window":0)", "sliding_window");
    row("mistral 0.1", R"("sliding_window":"x")", "sliding_window");
    row("llama 2", R"("sliding_window":9)", "sliding_window");
    row("llama 2", R"("layer_types":["full_attention"])", "layer_types");
    row("llama 2", R"("layer_types":["sliding_attention","full_attention","full_attention"])",
        "layer_types");
    row("llama 2", R"("attn_logit_softcapping":50.0)", "attn_logit_softcapping");
    row("llama 2", R"("num_experts":4)", "num_experts");
    row("llama 2", R"("use_sliding_window":true)", "use_sliding_window");
    row("llama 2", R"("no_rope_layers":[1,1,1])", "no_rope_layers");
    row("llama 3.2", R"("rope_scaling":{"rope_type":"llama3","factor":0.5})", "factor");
    row("llama 3.2",
        R"("rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":4,)"
        R"("high_freq_factor":4,"original_max_position_embeddings":64})",
        "low_freq_factor");
    row("llama 3.2",
        R"("rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,)"
        R"("high_freq_factor":4})",
        "original_max_position_embeddings");
    row("smollm 3", R"("no_rope_layers":[1,1])", "no_rope_layers");
    row("smollm 3", R"("no_rope_layers":[1,1,1,2,1])", "no_rope_layers");
    row("smollm 3", R"("rope_scaling":{"rope_type":"yarn","factor":4,"beta_slow":99})",
        "beta_slow");
    row("smollm 3", R"("rope_scaling":{"rope_type":"yarn","factor":4,"truncate":false})",
        "truncate");
    row("smollm 3", R"("rope_theta":1,"rope_scaling":{"rope_type":"yarn","factor":4})",
        "rope_theta");
    row("phi 4 mini", R"("partial_rotary_factor":0.05)", "partial_rotary_factor");
    row("phi 4 mini", R"("partial_rotary_factor":1.5)", "partial_rotary_factor");
    row("phi 4 mini", R"("partial_rotary_factor":0.5)", "short_factor");
    row("phi 4 mini", R"("original_max_position_embeddings":null)",
        "original_max_position_embeddings");
    row("phi 4 mini", R"("rope_scaling":{"type":"longrope","short_factor":[1,1,1,1,1,1]})",
        "long_factor");
    row("phi 4 mini",
        R"("rope_scaling":{"type":"longrope","short_factor":[1,1,1,1,1,0],"long_factor":[]})",
        "short_factor");
    row("gemma 2", R"("attn_logit_softcapping":0)", "attn_logit_softcapping");
    row("gemma 2", R"("query_pre_attn_scalar":0)", "query_pre_attn_scalar");
    row("gemma 2", R"("hidden_activation":"silu")", "hidden_activation");
    row("gemma 3", R"("sliding_window_pattern":5)", "sliding_window_pattern");
    row("gemma 3", R"("use_bidirectional_attention":true)", "use_bidirectional_attention");
    row("mixtral", R"("num_local_experts":null)", "num_local_experts");
    row("mixtral", R"("num_local_experts":2000)", "num_local_experts");
    row("mixtral", R"("num_experts_per_tok":5)", "num_experts_per_tok");
    row("mixtral", R"("num_experts_per_tok":0)", "num_experts_per_tok");
    row("qwen 3 moe", R"("decoder_sparse_step":2)", "decoder_sparse_step");
    row("qwen 3 moe", R"("mlp_only_layers":[0])", "mlp_only_layers");
    row("gpt-2", R"("activation_function":"relu")", "activation_function");
    row("gpt-2", R"("scale_attn_by_inverse_layer_idx":true)", "scale_attn_by_inverse_layer_idx");
    row("gpt-2", R"("n_head":5)", "n_head");
    row("gpt-2", R"("n_positions":2000000)", "n_positions");
  }

  void a_config_that_lies_is_refused_by_its_key() {
    QFETCH(QString, family);
    QFETCH(QString, change);
    QFETCH(QString, key);
    const auto found = std::find_if(families_.begin(), families_.end(), [&](const TinyFamily& f) {
      return f.name == family.toStdString();
    });
    QVERIFY(found != families_.end());
    TempDir folder;
    write_folder(folder.path(), *found, tiny_weights(*found, kSeed));
    // The change stands in the place of what has the same key.
    auto text = read_file(folder / "config.json", Bytes{1 << 20});
    QJsonObject config =
        QJsonDocument::fromJson(QByteArray::fromStdString(std::string(as_text(text.value()))))
            .object();
    const QJsonObject changed = QJsonDocument::fromJson("{" + change.toUtf8() + "}").object();
    QVERIFY(!changed.isEmpty());
    for (auto it = changed.begin(); it != changed.end(); ++it) config[it.key()] = it.value();
    const std::string whole = QJsonDocument(config).toJson().toStdString();
    QVERIFY(write_file_durably(folder / "config.json", as_bytes(whole)).ok());
    QVERIFY(refused(open_model(folder.path()), {"config.json", key.toStdString()}));
  }

  void split_files_are_one_model() {
    const TinyFamily& family = families_[0];
    const TinyWeights weights = tiny_weights(family, kSeed);
    TempDir folder;
    const ByteVector whole = gguf_of(family, weights).bytes();
    auto single = GgufFile::read(whole, "whole");
    QVERIFY(single.ok());
    struct Lie {
      int64_t count = 2, number = 1;
      bool twice = false;
    };
    const auto opened = [&](const Lie& lie, const std::string& name = "m-00001-of-00002.gguf") {
      GgufMaker parts[2];
      parts[0].text("general.architecture", family.gguf);
      for (const auto& [key, value] : single.value().values()) {
        if (const auto* number = std::get_if<uint64_t>(&value.value))
          parts[0].u32(key, static_cast<uint32_t>(*number));
        if (const auto* number = std::get_if<double>(&value.value))
          parts[0].f32(key, static_cast<float>(*number));
      }
      parts[0].u32("split.count", static_cast<uint32_t>(lie.count));
      parts[0].u32("split.no", 0);
      parts[0].u32("split.tensors.count",
                   static_cast<uint32_t>(single.value().tensors().size() + (lie.twice ? 1 : 0)));
      parts[1].u32("split.count", 2);
      parts[1].u32("split.no", static_cast<uint32_t>(lie.number));
      size_t i = 0;
      for (const auto& [tensor_name, tensor] : single.value().tensors()) {
        parts[i++ % 2].tensor({tensor_name, tensor.type, tensor.shape, to_vector(tensor.bytes)});
        if (lie.twice && i == 1)
          parts[1].tensor({tensor_name, tensor.type, tensor.shape, to_vector(tensor.bytes)});
      }
      (void)write_file_durably(folder / name, parts[0].bytes());
      (void)write_file_durably(folder / "m-00002-of-00002.gguf", parts[1].bytes());
      return open_model(folder / name);
    };
    auto split = opened({});
    QVERIFY2(split.ok(), split.ok() ? "" : split.error().message.c_str());
    QCOMPARE(split.value().name, std::string("m"));
    auto one = model_of_gguf(whole, "m.gguf");
    const std::vector<int32_t> tokens = some_tokens(9, family.vocabulary);
    const auto cpu = device("cpu", 1);
    QVERIFY(run(split.value(), *cpu, tokens, {.context = 16}) ==
            run(one.value(), *cpu, tokens, {.context = 16}));

    QVERIFY(refused(opened({.number = 0}), {"split.no", "part 1"}));
    QVERIFY(refused(opened({.count = 3}), {"split.count", "00003"}));
    QVERIFY(refused(opened({}, "other.gguf"), {"split.count", "does not end"}));
    QVERIFY(refused(opened({.twice = true}), {"stands in"}));
    QVERIFY(refused(open_model(folder / "m-00002-of-00002.gguf"), {"split.no", "first"}));
    std::filesystem::remove(folder / "m-00002-of-00002.gguf");
    QVERIFY(refused(open_model(folder / "m-00001-of-00002.gguf"), {"m-00002-of-00002.gguf"},
                    ErrorCode::kNotFound));
  }

  void learned_positions_bound_the_context() {
    const auto gpt2 = std::find_if(families_.begin(), families_.end(),
                                   [](const TinyFamily& f) { return f.name == "gpt-2"; });
    const ByteVector bytes = gguf_of(*gpt2, tiny_weights(*gpt2, kSeed)).bytes();
    auto model = model_of_gguf(bytes, "f.gguf");
    QVERIFY(model.ok());
    const auto cpu = device("cpu", 1);
    QVERIFY(LocalPipeline::open(*cpu, model.value().fragments, {.context = 128}).ok());
    QVERIFY(refused(LocalPipeline::open(*cpu, model.value().fragments, {.context = 129}),
                    {"129", "128", "learned"}, ErrorCode::kInvalid));
  }
};

QTEST_GUILESS_MAIN(FamiliesTest)
#include "families_test.moc"
