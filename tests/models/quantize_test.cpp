// Goal: quantising rounds as well as its types allow, says what it cost, and makes files that the
// engine runs as it runs any other.

#include <QTest>

#include <cmath>
#include <map>

#include "base/files.h"
#include "compute/models/model.h"
#include "compute/models/quantize.h"
#include "compute/ops/op.h"
#include "compute/run/local_pipeline.h"
#include "tests/models/model_maker.h"
#include "tests/models/refused.h"
#include "tests/models/tiny_family.h"

using namespace shoal;
using namespace shoal::compute;

namespace {

// About normal: the sum of a few uniform numbers, as weights are.
std::vector<float> weights_like(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    double sum = 0;
    for (int i = 0; i < 6; ++i) sum += random.uniform() - 0.5;
    value = static_cast<float>(sum * 0.05);
  }
  return values;
}

ByteVector f32_bytes(std::span<const float> values) {
  ByteWriter writer;
  for (const float value : values) writer.f32(value);
  return writer.take();
}

TinyFamily tiny_family(const std::string& name) {
  for (const TinyFamily& family : tiny_families()) {
    if (family.name == name) return family;
  }
  qFatal("no such family");
}

double relative_error(DType type, std::span<const float> values) {
  QuantError error;
  const auto bytes = quantise_tensor(DType::kF32, f32_bytes(values), type, error);
  if (!bytes.ok()) return INFINITY;
  // Not by what it says of itself alone: by the elements that the ops read.
  double squares = 0, errors = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double got = static_cast<double>(load_element(type, bytes.value(), int64_t(i)));
    errors += (got - double(values[i])) * (got - double(values[i]));
    squares += double(values[i]) * double(values[i]);
  }
  const double measured = std::sqrt(errors / squares);
  const double said = std::sqrt(error.errors / error.squares);
  return std::fabs(measured - said) < 1e-6 ? measured : INFINITY;
}

}  // namespace

class QuantizeTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void errors_are_what_the_types_allow() {
    const std::vector<float> values = weights_like(70'000 / 256 * 256, 1);
    const std::pair<DType, double> bounds[] = {
        {DType::kQ8_0, 0.006}, {DType::kQ6_K, 0.02}, {DType::kQ4_K, 0.08}, {DType::kQ4_0, 0.11}};
    double before = 0;
    for (const auto& [type, bound] : bounds) {
      const double error = relative_error(type, values);
      qInfo("%s: %.4f", std::string(dtype_name(type)).c_str(), error);
      QVERIFY(error <= bound);
      QVERIFY(error > before);  // Fewer bits cost more.
      before = error;
    }
  }

  void awkward_blocks_stay_finite() {
    for (const DType type : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_K, DType::kQ6_K}) {
      std::vector<float> values(512, 0.0f);
      QuantError error;
      auto zeros = quantise_tensor(DType::kF32, f32_bytes(values), type, error);
      QVERIFY(zeros.ok() && error.errors == 0);
      for (int64_t i = 0; i < 512; ++i) QCOMPARE(load_element(type, zeros.value(), i), 0.0f);
      const float single[] = {1e-30f, -1e30f, 3.0f, -3.0f};
      for (const float value : single) {
        values.assign(512, 0.0f);
        values[17] = value;
        auto one = quantise_tensor(DType::kF32, f32_bytes(values), type, error);
        QVERIFY(one.ok());
        for (int64_t i = 0; i < 512; ++i)
          QVERIFY(std::isfinite(load_element(type, one.value(), i)));
        if (std::fabs(value) == 3.0f)
          QVERIFY(std::fabs(load_element(type, one.value(), 17) - value) < 0.1f);
      }
      values.assign(512, 0.25f);  // All alike.
      auto alike = quantise_tensor(DType::kF32, f32_bytes(values), type, error);
      for (int64_t i = 0; i < 512; ++i)
        QVERIFY(std::fabs(load_element(type, alike.value(), i) - 0.25f) < 0.02f);
      values[300] = INFINITY;
      QVERIFY(refused(quantise_tensor(DType::kF32, f32_bytes(values), type, error),
                      {"element 300", "finite"}, ErrorCode::kUnsupported));
    }
  }

  void types_follow_the_mode() {
    QVERIFY(quant_mode("q4_k_m").value() == QuantMode::kQ4_K_M);
    QVERIFY(refused(quant_mode("q3_k"), {"q3_k", "q8_0"}, ErrorCode::kInvalid));
    const auto type = [](QuantMode mode, std::string_view role, int64_t block, int64_t columns) {
      return quant_type(mode, role, block, 16, columns);
    };
    constexpr auto kM = QuantMode::kQ4_K_M;
    QVERIFY(type(kM, "query", 5, 512) == DType::kQ4_K);
    QVERIFY(type(kM, "output", 0, 512) == DType::kQ6_K);
    QVERIFY(type(kM, "down", 0, 512) == DType::kQ6_K);
    QVERIFY(type(kM, "down", 2, 512) == DType::kQ4_K);
    QVERIFY(type(kM, "down", 4, 512) == DType::kQ6_K);
    QVERIFY(type(kM, "value", 15, 512) == DType::kQ6_K);
    QVERIFY(type(kM, "query", 5, 96) == DType::kQ8_0);
    QVERIFY(!type(kM, "query", 5, 80).has_value());
    QVERIFY(!type(QuantMode::kQ8_0, "router", 5, 512).has_value());
    QVERIFY(!type(QuantMode::kNone, "query", 5, 512).has_value());
  }

  void a_quantised_model_runs_and_tells_its_cost() {
    TempDir folder;
    write_tiny_folder(folder.path(), {.width = 256,
                                      .intermediate = 512,
                                      .heads = 4,
                                      .head_dim = 64,
                                      .tied = false,
                                      .spread = 0.08f,  // Calm, as trained models are.
                                      .type = "BF16"});
    const auto cpu = open_device("cpu", 2);
    QVERIFY(cpu.ok());
    const std::vector<int32_t> tokens = {1, 5, 9, 60, 33, 2};
    const auto logits = [&](QuantMode mode) {
      auto model = open_model(folder.path(), {.quantise = mode});
      if (!model.ok()) qFatal("%s", model.error().message.c_str());
      auto pipeline = LocalPipeline::open(*cpu.value(), model.value().fragments, {.context = 8});
      return pipeline.value().run(tokens, 0, LocalPipeline::Logits::kAll).value();
    };
    const std::vector<float> plain = logits(QuantMode::kNone);
    double before = 0;
    const std::pair<QuantMode, double> bounds[] = {
        {QuantMode::kQ8_0, 0.02}, {QuantMode::kQ4_K_M, 0.2}, {QuantMode::kQ4_0, 0.25}};
    for (const auto& [mode, bound] : bounds) {
      const std::vector<float> got = logits(mode);
      double errors = 0, squares = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        errors += double(got[i] - plain[i]) * double(got[i] - plain[i]);
        squares += double(plain[i]) * double(plain[i]);
      }
      const double error = std::sqrt(errors / squares);
      qInfo("logits differ by %.4f", error);
      QVERIFY(error > before && error < bound);
      before = error;
    }
    auto model = open_model(folder.path(), {.quantise = QuantMode::kQ4_K_M});
    QVERIFY(model.ok());
    QCOMPARE(model.value().quantised.size(), size_t{9});  // Seven of a block, the two ends.
    for (const QuantCost::Line& line : model.value().quantised) {
      QVERIFY2(line.relative_error > 0.001 && line.relative_error < 0.1, line.role.c_str());
      QVERIFY(line.worst >= line.relative_error * 0.99 && !line.worst_tensor.empty());
    }
    for (const Value& value : model.value().fragments[1].graph.values) {
      if (value.kind == ValueKind::kWeight && value.shape.size() == 2)
        QVERIFY(value.dtype == DType::kQ4_K || value.dtype == DType::kQ6_K);
    }
    QVERIFY(open_model(folder.path()).value().quantised.empty());
  }

  // Of a head that is the embedding's matrix, and of experts that a folder holds one by one: each
  // is rounded once, and nothing is kept beside what was made of it.
  void nothing_is_rounded_or_kept_twice_data() {
    QTest::addColumn<QString>("name");
    for (const char* name : {"qwen 2.5", "mixtral", "qwen 3 moe"}) QTest::newRow(name) << name;
  }

  void nothing_is_rounded_or_kept_twice() {
    QFETCH(QString, name);
    const TinyFamily family = tiny_family(name.toStdString());
    TempDir folder;
    write_folder(folder.path(), family, tiny_weights(family, 1));
    auto model = open_model(folder.path(), {.quantise = QuantMode::kQ8_0});
    QVERIFY2(model.ok(), model.ok() ? "" : model.error().message.c_str());
    std::map<const std::byte*, size_t> rounded;
    for (const Fragment& fragment : model.value().fragments) {
      for (const Value& value : fragment.graph.values) {
        if (value.kind != ValueKind::kWeight || !is_quantised_weight(value.dtype)) continue;
        const ByteSpan bytes = fragment.weights.at(value.name);
        rounded[bytes.data()] = bytes.size();
      }
    }
    size_t used = 0, kept = 0;
    for (const auto& [at, size] : rounded) used += size;
    for (const ByteVector& bytes : model.value().converted) kept += bytes.size();
    QVERIFY(used > 0);
    QCOMPARE(kept, used);
    const auto& ends = model.value().fragments;
    QCOMPARE(ends.front().weights.at("token_embedding").data() ==
                 ends.back().weights.at("output").data(),
             family.tied);
  }

  void an_expert_that_can_not_be_rounded_is_named() {
    const TinyFamily family = tiny_family("qwen 3 moe");
    TinyWeights weights = tiny_weights(family, 1);
    weights.at("up.0")[size_t(family.inner * family.width)] = INFINITY;  // The second expert's.
    TempDir folder;
    write_folder(folder.path(), family, weights);
    QVERIFY(refused(open_model(folder.path(), {.quantise = QuantMode::kQ8_0}),
                    {"layers.0.", "experts.1.up_proj", "element 0", "finite"}));
  }
};

QTEST_GUILESS_MAIN(QuantizeTest)
#include "quantize_test.moc"
