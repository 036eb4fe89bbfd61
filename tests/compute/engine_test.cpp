// Goal: a stage's result depends on weights and inputs alone. Method: a small random model with
// each type of weight; the same tokens through any number of threads, steps of any size, two
// sequences in one step or alone, any cut into two stages, must give the same bits. And what a
// stage refuses.

#include <QTest>

#include <array>
#include <limits>
#include <numeric>

#include "compute/backends/cpu/cpu_backend.h"
#include "compute/compute.h"
#include "compute/graph/limits.h"
#include "compute/sample_model.h"

using namespace shoal;
using namespace shoal::compute;

namespace {

constexpr int64_t kContextPositions = 80;
constexpr int kTokens = 70;  // Past two chunks of attention.

std::vector<int32_t> tokens_of(int seed) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < kTokens; ++i) tokens.push_back((i * i * 7 + i * seed + seed) % 50);
  return tokens;
}

std::unique_ptr<Device> open_cpu(int threads, const CpuOptions& options = {}) {
  auto device = make_cpu_backend(options)->open("cpu", threads);
  return device.ok() ? std::move(device).value() : nullptr;
}

// A chain of stages on devices of their own, fed with tokens of one sequence in steps of `step`
// rows. Returns all logits and, if asked, every fragment's outputs, row by row.
struct Run {
  std::vector<float> logits;
  std::vector<std::vector<float>> fragments;
};

class Chain {
 public:
  Chain(std::span<const Fragment> fragments, std::vector<size_t> cuts, int threads,
        const CpuOptions& options = {}) {
    cuts.push_back(fragments.size());
    size_t begin = 0;
    for (const size_t end : cuts) {
      devices_.push_back(open_cpu(threads, options));
      auto stage =
          Stage::open(*devices_.back(), fragments.subspan(begin, end - begin),
                      {.context = kContextPositions, .sequences = 2, .rows_max = 2 * kTokens});
      if (!stage.ok()) {
        error_ = stage.error().message;
        return;
      }
      stages_.push_back(std::move(stage).value());
      begin = end;
    }
  }

  const std::string& error() const { return error_; }

  // All rows' logits. Empty after an error.
  std::vector<float> step(std::span<const RowInfo> rows, std::span<const int32_t> tokens,
                          Run* taps = nullptr) {
    std::vector<uint32_t> all(rows.size());
    std::iota(all.begin(), all.end(), 0u);
    std::vector<float> values;
    size_t fragment_base = 0;
    for (auto& stage : stages_) {
      StepInput input{.rows = rows};
      if (stage->shape().begins_with_tokens)
        input.tokens = tokens;
      else
        input.hidden = values;
      if (stage->shape().ends_with_logits) input.output_rows = all;
      size_t seen = 0;
      const Stage::FragmentTap tap = [&](size_t fragment, std::span<const float> output) {
        seen = std::max(seen, fragment + 1);
        if (taps->fragments.size() <= fragment_base + fragment)
          taps->fragments.resize(fragment_base + fragment + 1);
        auto& all_outputs = taps->fragments[fragment_base + fragment];
        all_outputs.insert(all_outputs.end(), output.begin(), output.end());
      };
      auto result = stage->step(input, taps != nullptr ? &tap : nullptr);
      if (!result.ok()) {
        error_ = result.error().message;
        return {};
      }
      values = std::move(result).value();
      fragment_base += seen;
    }
    return values;
  }

  Run run(int seed, size_t step_rows, bool taps = false, uint32_t sequence = 0) {
    Run run;
    const std::vector<int32_t> tokens = tokens_of(seed);
    for (size_t at = 0; at < tokens.size(); at += step_rows) {
      const size_t count = std::min(step_rows, tokens.size() - at);
      std::vector<RowInfo> rows;
      for (size_t i = 0; i < count; ++i) rows.push_back({sequence, static_cast<uint32_t>(at + i)});
      const auto logits = step(rows, std::span(tokens).subspan(at, count), taps ? &run : nullptr);
      run.logits.insert(run.logits.end(), logits.begin(), logits.end());
    }
    return run;
  }

  Stage& stage(size_t i) { return *stages_[i]; }

 private:
  std::vector<std::unique_ptr<Device>> devices_;  // Outlive the stages.
  std::vector<std::unique_ptr<Stage>> stages_;
  std::string error_;
};

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && !a.empty() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

struct CountingPace final : Pace {
  int64_t rows = 0;
  bool between_ops = false;
  int rests = 0;
  int rests_max = INT32_MAX;

  int64_t rows_max() const override { return rows; }
  bool fine() const override { return between_ops; }
  Result<void> rest() override {
    if (++rests > rests_max) return Error{ErrorCode::kTimeout, "given up"};
    return {};
  }
};

}  // namespace

class EngineTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_bits_depend_on_nothing_but_the_input_data();
  void the_bits_depend_on_nothing_but_the_input();
  void every_device_gives_the_same_bits();
  void taps_see_every_fragment();
  void only_wanted_logits_are_computed();
  void features_are_what_the_head_multiplies();
  void features_are_refused_where_there_are_none();
  void going_back_replaces_what_was_written();
  void no_pace_changes_a_bit();
  void a_pace_that_gives_up_ends_the_step();
  void a_stage_refuses_bad_steps();
  void a_stage_refuses_bad_fragments();
  void a_stage_larger_than_any_number_is_refused();
  void a_stage_that_does_not_fit_says_how_large_it_is();
  void stages_that_do_not_fit_together_are_refused();
  void steps_of_several_stages_run_as_one();
  void a_step_that_fails_beside_others_fails_alone();
  void stages_of_the_same_fragments_share_their_memory();
  void weights_count_as_the_device_lays_them_out();
  void a_failed_step_leaves_the_stage_usable();
  void devices_are_found_by_selector();
  void bench_measures_each_rate();
};

void EngineTest::the_bits_depend_on_nothing_but_the_input_data() {
  QTest::addColumn<int>("weights");
  QTest::addColumn<int>("states");
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0}) {
    for (const DType states : {DType::kF16, DType::kF32}) {
      QTest::addRow("%s, %s states", dtype_name(dtype).data(), dtype_name(states).data())
          << int(dtype) << int(states);
    }
  }
}

void EngineTest::the_bits_depend_on_nothing_but_the_input() {
  QFETCH(int, weights);
  QFETCH(int, states);
  const SampleModel model = make_sample_model({.weights = DType(weights), .states = DType(states)});
  const std::span<const Fragment> fragments(model.fragments);

  Chain whole(fragments, {}, 1);
  QVERIFY2(whole.error().empty(), whole.error().c_str());
  const Run expected = whole.run(3, kTokens);
  QVERIFY2(whole.error().empty(), whole.error().c_str());
  QCOMPARE(expected.logits.size(), size_t(kTokens * 50));
  const auto [low, high] = std::minmax_element(expected.logits.begin(), expected.logits.end());
  QVERIFY(*high - *low > 0.1f);  // The model says something.

  for (const size_t step : {1, 3, 33}) {
    Chain chain(fragments, {}, 1);
    QVERIFY2(same_bits(chain.run(3, step).logits, expected.logits),
             qPrintable(QString("steps of %1").arg(step)));
  }
  Chain threaded(fragments, {}, 2);
  QVERIFY(same_bits(threaded.run(3, 7).logits, expected.logits));
  for (const CpuKernels kernels : kAllCpuKernels) {
    Chain others(fragments, {}, 2, {kernels});
    QVERIFY(same_bits(others.run(3, 7).logits, expected.logits));
  }

  for (size_t cut = 1; cut < fragments.size(); ++cut) {
    Chain chain(fragments, {cut}, 1);
    QVERIFY2(same_bits(chain.run(3, 11).logits, expected.logits),
             qPrintable(QString("cut before fragment %1").arg(cut)));
  }
  Chain apart(fragments, {1, 2, 3, 4}, 1);
  QVERIFY(same_bits(apart.run(3, 11).logits, expected.logits));

  // Two sequences in every step, their rows interleaved, the second a position behind the first.
  const Run other = Chain(fragments, {}, 1).run(5, kTokens);
  const std::vector<int32_t> first = tokens_of(3), second = tokens_of(5);
  Chain both(fragments, {}, 2);
  Run first_run, second_run;
  for (uint32_t at = 0; at <= kTokens; ++at) {
    std::vector<RowInfo> rows;
    std::vector<int32_t> tokens;
    if (at > 0) rows.push_back({1, at - 1}), tokens.push_back(second[at - 1]);
    if (at < kTokens) rows.push_back({0, at}), tokens.push_back(first[at]);
    const std::vector<float> logits = both.step(rows, tokens);
    for (size_t i = 0; i < rows.size(); ++i) {
      auto& to = rows[i].sequence == 0 ? first_run.logits : second_run.logits;
      to.insert(to.end(), logits.begin() + i * 50, logits.begin() + (i + 1) * 50);
    }
  }
  QVERIFY2(both.error().empty(), both.error().c_str());
  QVERIFY(same_bits(first_run.logits, expected.logits));
  QVERIFY(same_bits(second_run.logits, other.logits));
}

void EngineTest::every_device_gives_the_same_bits() {
  for (const DType weights : {DType::kF16, DType::kQ8_0, DType::kQ4_0}) {
    const SampleModel model = make_sample_model({.weights = weights, .seed = 4});
    const std::vector<int32_t> tokens = tokens_of(3);
    std::vector<RowInfo> rows;
    std::vector<uint32_t> all;
    for (uint32_t i = 0; i < kTokens; ++i) rows.push_back({0, i}), all.push_back(i);
    const Run expected = Chain(model.fragments, {}, 1).run(3, kTokens);
    for (const DeviceInfo& info : list_devices()) {
      auto device = open_device(info.id, 2);
      QVERIFY2(device.ok(), device.ok() ? "" : device.error().message.c_str());
      auto stage = Stage::open(*device.value(), model.fragments,
                               {.context = kContextPositions, .sequences = 2, .rows_max = kTokens});
      QVERIFY2(stage.ok(), stage.ok() ? "" : stage.error().message.c_str());
      std::vector<float> logits;
      for (size_t at = 0; at < kTokens; at += 35) {
        const auto part = stage.value()->step({.rows = std::span(rows).subspan(at, 35),
                                               .tokens = std::span(tokens).subspan(at, 35),
                                               .output_rows = std::span(all).first(35)});
        QVERIFY2(part.ok(), part.ok() ? "" : part.error().message.c_str());
        logits.insert(logits.end(), part.value().begin(), part.value().end());
      }
      QVERIFY2(same_bits(logits, expected.logits), info.selector.c_str());
    }
  }
}

void EngineTest::taps_see_every_fragment() {
  const SampleModel model = make_sample_model({.weights = DType::kQ8_0});
  Chain whole(model.fragments, {}, 1), cut(model.fragments, {2}, 1);
  const Run a = whole.run(3, kTokens, /*taps=*/true);
  const Run b = cut.run(3, 5, /*taps=*/true);
  const Run without = Chain(model.fragments, {}, 1).run(3, kTokens);
  QCOMPARE(a.fragments.size(), size_t(4));  // Embedding and blocks; not the head.
  QCOMPARE(b.fragments.size(), size_t(4));
  for (size_t i = 0; i < 4; ++i) {
    QCOMPARE(a.fragments[i].size(), size_t(kTokens * 64));
    QVERIFY(same_bits(a.fragments[i], b.fragments[i]));
  }
  QVERIFY(same_bits(a.logits, without.logits));
  QVERIFY(same_bits(b.logits, without.logits));
}

void EngineTest::only_wanted_logits_are_computed() {
  const SampleModel model = make_sample_model({});
  auto device = open_cpu(1);
  auto opened =
      Stage::open(*device, model.fragments, {.context = 16, .sequences = 1, .rows_max = 8});
  QVERIFY2(opened.ok(), opened.ok() ? "" : opened.error().message.c_str());
  Stage& stage = *opened.value();
  QVERIFY(stage.shape().begins_with_tokens && stage.shape().ends_with_logits);
  QCOMPARE(stage.shape().width, int64_t(64));
  QCOMPARE(stage.shape().vocabulary, int64_t(50));
  const std::vector<int32_t> tokens{4, 5, 6, 7};
  const std::vector<RowInfo> rows{{0, 0}, {0, 1}, {0, 2}, {0, 3}};
  const std::vector<uint32_t> all{0, 1, 2, 3}, some{1, 3};
  const auto every = stage.step({.rows = rows, .tokens = tokens, .output_rows = all});
  const auto picked = stage.step({.rows = rows, .tokens = tokens, .output_rows = some});
  const auto none = stage.step({.rows = rows, .tokens = tokens});
  QVERIFY(every.ok() && picked.ok() && none.ok());
  QVERIFY(none.value().empty());
  QCOMPARE(picked.value().size(), size_t(100));
  QVERIFY(same_bits(std::span(picked.value()).first(50), std::span(every.value()).subspan(50, 50)));
  QVERIFY(same_bits(std::span(picked.value()).last(50), std::span(every.value()).last(50)));
}

// Method: against a norm in doubles of what the blocks give; and the same bits on every device,
// whole, in pieces and with rests. The step after it gives logits as if there had been none.
void EngineTest::features_are_what_the_head_multiplies() {
  for (const DType weights : {DType::kF32, DType::kQ8_0}) {
    const SampleModel model = make_sample_model({.weights = weights, .seed = 9});
    const std::vector<int32_t> tokens{4, 5, 6, 7, 8};
    const std::vector<RowInfo> rows{{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 0}};
    const std::vector<uint32_t> wanted{1, 3, 4};
    const StageOptions options{.context = 16, .sequences = 2, .rows_max = 8};
    auto cpu = open_cpu(1);
    const auto hidden =
        Stage::open(*cpu, std::span(model.fragments).first(model.fragments.size() - 1), options)
            .value()
            ->step({.rows = rows, .tokens = tokens})
            .value();
    const Fragment& head = model.fragments.back();
    const auto norm = std::ranges::find_if(
        head.graph.ops, [](const Op& op) { return op.kind == OpKind::kRmsNorm; });
    std::vector<float> scale(64);
    std::memcpy(scale.data(), head.weights.at(head.graph.values[norm->inputs[1]].name).data(), 256);
    std::vector<double> expected;
    for (const uint32_t row : wanted) {
      double squares = 0;
      for (size_t i = 0; i < 64; ++i)
        squares += double(hidden[row * 64 + i]) * hidden[row * 64 + i];
      for (size_t i = 0; i < 64; ++i) {
        expected.push_back(hidden[row * 64 + i] / std::sqrt(squares / 64 + 1e-5) * scale[i]);
      }
    }

    std::vector<float> first;
    for (const DeviceInfo& info : list_devices()) {
      auto device = open_device(info.id, 2).value();
      auto stage = Stage::open(*device, model.fragments, options).value();
      const StepInput asked{
          .rows = rows, .tokens = tokens, .output_rows = wanted, .wants_features = true};
      const std::vector<float> features = stage->step(asked).value();
      QCOMPARE(features.size(), expected.size());
      for (size_t i = 0; i < features.size(); ++i) {
        QVERIFY(std::abs(features[i] - expected[i]) <= 1e-5 * std::max(1.0, std::abs(expected[i])));
      }
      if (first.empty()) first = features;
      QVERIFY2(same_bits(features, first), info.selector.c_str());
      CountingPace pace;
      pace.rows = 2;
      pace.between_ops = true;
      QVERIFY(same_bits(stage->step(asked, nullptr, &pace).value(), first));
      const StepInput logits{.rows = rows, .tokens = tokens, .output_rows = wanted};
      QVERIFY(same_bits(stage->step(logits).value(),
                        Stage::open(*cpu, model.fragments, options).value()->step(logits).value()));
    }
  }
}

void EngineTest::features_are_refused_where_there_are_none() {
  SampleModel model = make_sample_model({});
  auto device = open_cpu(1);
  const std::vector<RowInfo> rows{{0, 0}};
  const std::vector<int32_t> tokens{4};
  const std::vector<uint32_t> wanted{0};
  const StageOptions options{.context = 16};
  auto front = Stage::open(*device, std::span(model.fragments).first(3), options).value();
  QCOMPARE(front->step({.rows = rows, .tokens = tokens, .wants_features = true}).error().code,
           ErrorCode::kInvalid);

  // A head that gives the rows themselves.
  Graph head;
  head.values = {{.kind = ValueKind::kInput, .shape = {kRows, 64}}, {.shape = {kOutputs, 64}}};
  head.ops = {{.kind = OpKind::kSelectRows, .inputs = {0}, .output = 1}};
  head.output = 1;
  model.fragments.back() = {head, {}};
  auto odd = Stage::open(*device, model.fragments, options);
  QVERIFY2(odd.ok(), odd.ok() ? "" : odd.error().message.c_str());
  const StepInput asked{
      .rows = rows, .tokens = tokens, .output_rows = wanted, .wants_features = true};
  QCOMPARE(odd.value()->step(asked).error().code, ErrorCode::kUnsupported);
  QVERIFY(odd.value()->step({.rows = rows, .tokens = tokens, .output_rows = wanted}).ok());
}

void EngineTest::going_back_replaces_what_was_written() {
  const SampleModel model = make_sample_model({});
  Chain chain(model.fragments, {}, 1);
  const Run undisturbed = Chain(model.fragments, {}, 1).run(3, kTokens);
  chain.run(5, 9);  // Another text, to the end.
  const Run again = chain.run(3, 9);
  QVERIFY(same_bits(again.logits, undisturbed.logits));
}

// Method: the step as it comes, and in pieces of each size with and without rests in them, on every
// device; its rows in an order in which some come before those that they look back on.
void EngineTest::no_pace_changes_a_bit() {
  const SampleModel model = make_sample_model({});
  const std::vector<RowInfo> rows = {{0, 4}, {1, 1}, {0, 0}, {0, 3}, {1, 0}, {0, 1}, {0, 2}};
  const std::vector<int32_t> tokens = {9, 8, 7, 6, 5, 4, 3};
  const std::vector<uint32_t> wanted = {0, 3, 4};
  std::vector<float> expected;
  for (const DeviceInfo& info : list_devices()) {
    auto device = open_device(info.id, 2);
    QVERIFY(device.ok());
    for (const bool fine : {false, true}) {
      for (const int64_t piece : {0, 1, 2, 3, 6, 7, 100}) {
        auto stage = Stage::open(*device.value(), model.fragments,
                                 {.context = 16, .sequences = 2, .rows_max = 8});
        QVERIFY(stage.ok());
        CountingPace pace;
        pace.rows = piece;
        pace.between_ops = fine;
        const auto logits = stage.value()->step(
            {.rows = rows, .tokens = tokens, .output_rows = wanted}, nullptr, &pace);
        QVERIFY2(logits.ok(), info.id.c_str());
        if (expected.empty()) expected = logits.value();
        QVERIFY(same_bits(logits.value(), expected));
        const int pieces = piece == 0 ? 1 : static_cast<int>((7 + piece - 1) / piece);
        if (fine) {
          QVERIFY(pace.rests >= pieces * (static_cast<int>(model.fragments.size()) - 1));
        } else {
          QCOMPARE(pace.rests, pieces - 1);
        }
      }
    }
  }
}

void EngineTest::a_pace_that_gives_up_ends_the_step() {
  const SampleModel model = make_sample_model({});
  auto device = open_cpu(1);
  auto stage =
      Stage::open(*device, model.fragments, {.context = 16, .sequences = 1, .rows_max = 8}).value();
  const std::vector<RowInfo> rows = {{0, 0}, {0, 1}, {0, 2}};
  const std::vector<int32_t> tokens = {1, 2, 3};
  CountingPace pace;
  pace.rows = 1;
  pace.rests_max = 1;
  const auto ended = stage->step({.rows = rows, .tokens = tokens}, nullptr, &pace);
  QVERIFY(!ended.ok());
  QCOMPARE(ended.error().code, ErrorCode::kTimeout);
  QCOMPARE(pace.rests, 2);
  // All else is as it was: position 1 still comes before position 0 was written.
  const std::vector<RowInfo> second = {{0, 1}};
  const std::vector<int32_t> one = {2};
  QCOMPARE(stage->step({.rows = second, .tokens = one}).error().code, ErrorCode::kInvalid);
  QVERIFY(stage->step({.rows = rows, .tokens = tokens}).ok());
}

void EngineTest::a_stage_refuses_bad_steps() {
  const SampleModel model = make_sample_model({});
  auto device = open_cpu(1);
  auto opened =
      Stage::open(*device, model.fragments, {.context = 16, .sequences = 2, .rows_max = 3});
  QVERIFY(opened.ok());
  Stage& stage = *opened.value();
  auto blocks = Stage::open(*device, std::span(model.fragments).subspan(1, 2),
                            {.context = 16, .rows_max = 3});
  QVERIFY(blocks.ok());
  QCOMPARE(blocks.value()->shape().width, int64_t(64));

  const auto refuses = [](Stage& of, const StepInput& input, const char* word) {
    const auto result = of.step(input);
    const bool right = !result.ok() && result.error().code == ErrorCode::kInvalid &&
                       result.error().message.find(word) != std::string::npos;
    if (!right)
      qWarning("%s: %s", word, result.ok() ? "was accepted" : result.error().message.c_str());
    return right;
  };
  using Rows = std::vector<RowInfo>;
  using Tokens = std::vector<int32_t>;
  const Rows one{{0, 0}};
  const Tokens token{1};
  QVERIFY(refuses(stage, {}, "rows"));
  QVERIFY(refuses(
      stage, {.rows = Rows{{0, 0}, {0, 1}, {0, 2}, {0, 3}}, .tokens = Tokens{1, 2, 3, 4}}, "rows"));
  QVERIFY(refuses(stage, {.rows = Rows{{2, 0}}, .tokens = token}, "sequence 2"));
  QVERIFY(refuses(stage, {.rows = Rows{{0, 16}}, .tokens = token}, "position 16"));
  QVERIFY(
      refuses(stage, {.rows = Rows{{0, 1}}, .tokens = token}, "position 1"));  // Nothing at 0 yet.
  QVERIFY(refuses(stage, {.rows = Rows{{0, 0}, {0, 2}}, .tokens = Tokens{1, 2}}, "position 2"));
  QVERIFY(refuses(stage, {.rows = Rows{{0, 0}, {0, 0}}, .tokens = Tokens{1, 2}}, "twice"));
  QVERIFY(refuses(stage, {.rows = one, .tokens = Tokens{50}}, "token 50"));
  QVERIFY(refuses(stage, {.rows = one, .tokens = Tokens{-1}}, "token -1"));
  QVERIFY(refuses(stage, {.rows = one}, "tokens"));
  QVERIFY(
      refuses(stage, {.rows = one, .tokens = token, .hidden = std::vector<float>(64)}, "hidden"));
  QVERIFY(refuses(stage, {.rows = one, .tokens = token, .output_rows = std::vector<uint32_t>{1}},
                  "output rows"));
  QVERIFY(refuses(stage,
                  {.rows = Rows{{0, 0}, {0, 1}},
                   .tokens = Tokens{1, 2},
                   .output_rows = std::vector<uint32_t>{1, 1}},
                  "output rows"));
  QVERIFY(refuses(*blocks.value(), {.rows = one, .tokens = token, .hidden = std::vector<float>(64)},
                  "tokens"));
  QVERIFY(refuses(*blocks.value(), {.rows = one, .hidden = std::vector<float>(63)}, "hidden"));
  QVERIFY(refuses(
      *blocks.value(),
      {.rows = one, .hidden = std::vector<float>(64), .output_rows = std::vector<uint32_t>{0}},
      "output rows"));
  std::vector<float> infinite(64, 1.0f);
  infinite[63] = std::numeric_limits<float>::infinity();
  QVERIFY(refuses(*blocks.value(), {.rows = one, .hidden = infinite}, "hidden value 63"));
  infinite[63] = std::numeric_limits<float>::quiet_NaN();
  QVERIFY(refuses(*blocks.value(), {.rows = one, .hidden = infinite}, "hidden value 63"));

  // After all that, the last rows, positions and tokens that are allowed.
  QVERIFY(stage.step({.rows = Rows{{0, 0}, {0, 1}, {1, 0}}, .tokens = Tokens{49, 0, 49}}).ok());
  for (uint32_t position = 2; position < 16; ++position) {
    QVERIFY(stage.step({.rows = Rows{{0, position}}, .tokens = token}).ok());
  }
  infinite[63] = -std::numeric_limits<float>::denorm_min();
  QVERIFY(blocks.value()->step({.rows = one, .hidden = infinite}).ok());
}

void EngineTest::a_stage_refuses_bad_fragments() {
  auto device = open_cpu(1);
  const SampleModel model = make_sample_model({});
  const auto refuses = [&](std::vector<Fragment> fragments, const char* word,
                           StageOptions options = {}) {
    const auto result = Stage::open(*device, fragments, options);
    const bool right = !result.ok() && result.error().message.find(word) != std::string::npos;
    if (!right)
      qWarning("%s: %s", word, result.ok() ? "was accepted" : result.error().message.c_str());
    return right;
  };
  const std::vector<Fragment>& good = model.fragments;
  QVERIFY(refuses({}, "no fragments"));
  QVERIFY(refuses({good[1], good[0]}, "fragment 1"));
  QVERIFY(refuses({good[0], good[4], good[1]}, "fragment 1"));
  std::vector<Fragment> fragments = good;
  fragments[2].weights.erase("q");
  QVERIFY(refuses(fragments, "fragment 2: weight q is missing"));
  fragments = good;
  fragments[2].weights["q"] = fragments[2].weights["q"].subspan(1);
  QVERIFY(refuses(fragments, "fragment 2: weight q has"));
  fragments = good;
  fragments[3].graph.ops[0].inputs[0] = 9999;
  QVERIFY(refuses(fragments, "fragment 3: op 0 (rms_norm)"));
  const SampleModel wider = make_sample_model({.width = 96});
  QVERIFY(refuses({good[0], wider.fragments[1]}, "fragment 1: a hidden row of 96 meets one of 64"));
  QVERIFY(refuses(good, "context", {.context = 0}));
  QVERIFY(refuses(good, "context", {.context = (1 << 20) + 1}));
  QVERIFY(refuses(good, "sequences", {.sequences = 0}));
  QVERIFY(refuses(good, "rows_max", {.rows_max = 65537}));
}

// A graph whose caches, each within its limits, together take more than an int64_t counts.
Fragment fragment_of_many_caches() {
  Graph graph;
  const int64_t width = limits::kWidthMax;
  graph.values.push_back({.kind = ValueKind::kInput, .shape = {kRows, width}});
  for (ValueId state = 1; state <= 64; ++state) {
    graph.values.push_back({.kind = ValueKind::kState, .shape = {kSequences, kContext, width}});
    graph.ops.push_back({.kind = OpKind::kCacheAppend, .inputs = {0, state}, .output = state});
  }
  graph.output = static_cast<ValueId>(graph.values.size());
  graph.values.push_back({.shape = {kRows, width}});
  graph.ops.push_back({.kind = OpKind::kAdd, .inputs = {0, 0}, .output = graph.output});
  return {std::move(graph), {}};
}

void EngineTest::a_stage_larger_than_any_number_is_refused() {
  auto device = open_cpu(1);
  const std::vector<Fragment> fragments = {fragment_of_many_caches()};
  const auto result = Stage::open(*device, fragments, {.context = 1 << 20, .sequences = 65536});
  QVERIFY(!result.ok());
  QVERIFY2(result.error().code == ErrorCode::kNoSpace, result.error().message.c_str());
  const std::string most = std::to_string(std::numeric_limits<int64_t>::max());
  QVERIFY2(result.error().message.find(most) != std::string::npos, result.error().message.c_str());
}

void EngineTest::a_stage_that_does_not_fit_says_how_large_it_is() {
  auto device = open_cpu(1);
  const SampleModel model = make_sample_model({});
  const auto result =
      Stage::open(*device, model.fragments, {.context = 1 << 20, .sequences = 65536});
  QVERIFY(!result.ok());
  QCOMPARE(result.error().code, ErrorCode::kNoSpace);
  QVERIFY(result.error().message.find(std::to_string(device->info().memory_bytes)) !=
          std::string::npos);

  const auto fits = Stage::open(*device, model.fragments, {.context = 16});
  QVERIFY(fits.ok());
  int64_t weights = 0;
  for (const Fragment& fragment : model.fragments) {
    for (const auto& [name, bytes] : fragment.weights)
      weights += static_cast<int64_t>(bytes.size());
  }
  QVERIFY(fits.value()->device_bytes() > weights);
  QVERIFY(fits.value()->device_bytes() < weights + 300'000);
}

// The cpu, with so little memory.
class SmallDevice final : public Device {
 public:
  explicit SmallDevice(int64_t memory_bytes) : cpu_(open_cpu(1)), info_(cpu_->info()) {
    info_.memory_bytes = memory_bytes;
  }
  const DeviceInfo& info() const override { return info_; }
  bool supports(OpKind kind, DType variant) const override { return cpu_->supports(kind, variant); }
  Result<std::unique_ptr<Buffer>> allocate(int64_t bytes) override { return cpu_->allocate(bytes); }
  Result<void> upload(Buffer& buffer, int64_t offset, ByteSpan bytes) override {
    return cpu_->upload(buffer, offset, bytes);
  }
  Result<void> download(const Buffer& buffer, int64_t offset, std::span<std::byte> bytes) override {
    return cpu_->download(buffer, offset, bytes);
  }
  int64_t weight_bytes(DType dtype, int64_t rows, int64_t columns) const override {
    return cpu_->weight_bytes(dtype, rows, columns);
  }
  Result<std::unique_ptr<Buffer>> upload_weight(DType dtype, int64_t rows, int64_t columns,
                                                ByteSpan bytes) override {
    return cpu_->upload_weight(dtype, rows, columns, bytes);
  }
  Result<void> run(std::span<const OpCall> calls) override {
    ++runs;
    return cpu_->run(calls);
  }

  int runs = 0;

 private:
  std::unique_ptr<Device> cpu_;
  DeviceInfo info_;
};

void EngineTest::stages_that_do_not_fit_together_are_refused() {
  const SampleModel model = make_sample_model({});
  const StageOptions options{.context = 64, .rows_max = 8};
  auto roomy = open_cpu(1);
  const int64_t bytes = Stage::open(*roomy, model.fragments, options).value()->device_bytes();
  // A 32nd stays free. Two and a half of them, a byte too little for one, and just enough.
  SmallDevice device(bytes * 5 / 2 * 32 / 31);
  auto first = Stage::open(device, model.fragments, options);
  auto second = Stage::open(device, model.fragments, options);
  QVERIFY(first.ok() && second.ok());
  const auto third = Stage::open(device, model.fragments, options);
  QVERIFY(!third.ok());
  QCOMPARE(third.error().code, ErrorCode::kNoSpace);
  for (const int64_t figure : {bytes, device.info().memory_bytes, 2 * bytes}) {
    QVERIFY2(third.error().message.find(std::to_string(figure)) != std::string::npos,
             third.error().message.c_str());
  }
  // One that ends makes room, and one that was refused has taken none.
  first.value().reset();
  QVERIFY(Stage::open(device, model.fragments, options).ok());

  SmallDevice exact((bytes + 30) / 31 * 32);
  QVERIFY(Stage::open(exact, model.fragments, options).ok());
  SmallDevice smaller((bytes - 1) / 31 * 32);
  QVERIFY(!Stage::open(smaller, model.fragments, options).ok());
}

// Method: three stages with caches of their own; each steps alone in another set of stages.
void EngineTest::steps_of_several_stages_run_as_one() {
  const SampleModel model = make_sample_model({.weights = DType::kQ8_0});
  const auto options_of = [](int64_t i) {
    return StageOptions{.context = 40 + 20 * i, .sequences = 1 + i, .rows_max = 8 + i};
  };
  for (const DeviceInfo& info : list_devices()) {
    auto device = open_device(info.id, 2).value();
    for (const bool whole : {true, false}) {  // With both ends, or blocks alone.
      const auto fragments = whole ? std::span<const Fragment>(model.fragments)
                                   : std::span(model.fragments).subspan(1, 3);
      auto loaded = LoadedFragments::load(*device, fragments, options_of(0)).value();
      std::vector<std::unique_ptr<Stage>> stages, others;
      for (int64_t i = 0; i < 3; ++i) {
        stages.push_back(loaded->open(options_of(i)).value());
        others.push_back(Stage::open(*device, fragments, options_of(i)).value());
      }
      std::vector<uint32_t> lengths(3, 0);
      for (int round = 0; round < 12; ++round) {
        // From a decoded row to a piece of a prompt; once more than go together.
        std::vector<std::vector<RowInfo>> rows(3);
        std::vector<std::vector<int32_t>> tokens(3);
        std::vector<std::vector<float>> hidden(3);
        std::vector<std::vector<uint32_t>> wanted(3);
        std::vector<StepInput> inputs(3);
        for (uint32_t i = 0; i < 3; ++i) {
          uint32_t count = (round + i) % 4 == 0 ? 3 : 1;
          if (round % 4 == 3) count = 6;
          if (round == 7) count = 8 + i;
          const uint32_t sequence = round % 2 == 0 ? i : 0;
          const uint32_t first = sequence == 0 ? lengths[i] : static_cast<uint32_t>(round % 2);
          for (uint32_t row = 0; row < count; ++row) {
            rows[i].push_back({sequence, first + row});
            tokens[i].push_back(static_cast<int32_t>((i * 17 + first + row * 3) % 50));
            for (int k = 0; k < 64; ++k) hidden[i].push_back(float(int(i) + k % 7 - 3) * 0.25f);
            if (row % 2 == 0) wanted[i].push_back(row);
          }
          if (sequence == 0) lengths[i] += count;
          inputs[i].rows = rows[i];
          if (whole) {
            inputs[i].tokens = tokens[i];
            inputs[i].output_rows = wanted[i];
            inputs[i].wants_features = round == 5 || (round == 6 && i == 1);
          } else {
            inputs[i].hidden = hidden[i];
          }
        }
        std::vector<LoadedFragments::StageStep> steps;
        for (const size_t i : {2u, 0u, 1u}) steps.push_back({stages[i].get(), &inputs[i]});
        const auto together = loaded->step(steps, nullptr);
        QCOMPARE(together.size(), size_t(3));
        for (size_t k = 0; k < 3; ++k) {
          const size_t i = std::array{2, 0, 1}[k];
          QVERIFY2(together[k].ok(), together[k].ok() ? "" : together[k].error().message.c_str());
          const auto alone = others[i]->step(inputs[i]);
          QVERIFY(same_bits(together[k].value(), alone.value()));
        }
      }
    }
  }
}

void EngineTest::a_step_that_fails_beside_others_fails_alone() {
  const SampleModel model = make_sample_model({.weights = DType::kQ8_0});
  auto device = open_cpu(1);
  const auto blocks = std::span(model.fragments).subspan(1, 3);
  const StageOptions options{.context = 16, .rows_max = 4};
  auto loaded = LoadedFragments::load(*device, blocks, options).value();
  std::vector<std::unique_ptr<Stage>> stages;
  for (int i = 0; i < 3; ++i) stages.push_back(loaded->open(options).value());
  const std::vector<RowInfo> first{{0, 0}}, gap{{0, 1}};
  const std::vector<float> good(64, 0.5f), extreme(64, 3e38f);
  const StepInput fine{.rows = first, .hidden = good};
  const auto expected = Stage::open(*device, blocks, options).value()->step(fine).value();
  for (const StepInput& bad :
       {StepInput{.rows = first, .hidden = extreme}, StepInput{.rows = gap, .hidden = good}}) {
    const auto results = loaded->step(
        std::vector<LoadedFragments::StageStep>{
            {stages[0].get(), &fine}, {stages[1].get(), &bad}, {stages[2].get(), &fine}},
        nullptr);
    QVERIFY(same_bits(results[0].value(), expected));
    QVERIFY(!results[1].ok());
    QVERIFY(same_bits(results[2].value(), expected));
  }
  // One that gives up ends them all.
  CountingPace pace;
  pace.between_ops = true;
  pace.rests_max = 2;
  const auto results = loaded->step(
      std::vector<LoadedFragments::StageStep>{{stages[0].get(), &fine}, {stages[1].get(), &fine}},
      &pace);
  QVERIFY(!results[0].ok() && !results[1].ok());
  QCOMPARE(results[1].error().code, ErrorCode::kTimeout);
}

void EngineTest::stages_of_the_same_fragments_share_their_memory() {
  const SampleModel model = make_sample_model({.width = 256, .inner = 512});
  auto device = open_cpu(1);
  const StageOptions options{.context = 32, .rows_max = 4};
  int64_t one = 0;
  {
    auto loaded = LoadedFragments::load(*device, model.fragments, options).value();
    auto first = loaded->open(options).value();
    one = device->claimed_bytes();
    QCOMPARE(one, first->device_bytes());
    auto second = loaded->open(options).value();
    QVERIFY(device->claimed_bytes() < one + one / 10);
    // More rows need more memory for steps, and only once.
    auto wide = loaded->open({.context = 32, .rows_max = 64}).value();
    const int64_t with_wide = device->claimed_bytes();
    auto narrow = loaded->open({.context = 32, .rows_max = 32}).value();
    QVERIFY(device->claimed_bytes() < with_wide + one / 10);
    const std::vector<RowInfo> rows{{0, 0}};
    const std::vector<int32_t> tokens{7};
    const std::vector<uint32_t> wanted{0};
    const StepInput input{.rows = rows, .tokens = tokens, .output_rows = wanted};
    QVERIFY(same_bits(first->step(input).value(), wide->step(input).value()));
    QVERIFY(!loaded->open({.context = 0}).ok());
  }
  {  // A longest step and others' single rows are one call of the device.
    SmallDevice counting(int64_t{1} << 30);
    auto loaded = LoadedFragments::load(counting, model.fragments, options).value();
    std::vector<std::unique_ptr<Stage>> stages;
    for (int i = 0; i < 3; ++i) stages.push_back(loaded->open(options).value());
    const std::vector<RowInfo> four{{0, 0}, {0, 1}, {0, 2}, {0, 3}}, single{{0, 0}};
    const std::vector<int32_t> tokens{7, 8, 9, 10}, token{7};
    const StepInput prompt{.rows = four, .tokens = tokens}, row{.rows = single, .tokens = token};
    const auto results = loaded->step(
        std::vector<LoadedFragments::StageStep>{
            {stages[0].get(), &row}, {stages[1].get(), &prompt}, {stages[2].get(), &row}},
        nullptr);
    for (const auto& result : results) QVERIFY(result.ok());
    QCOMPARE(counting.runs, 1);
  }
  QCOMPARE(device->claimed_bytes(), int64_t{0});
  QVERIFY(one > 0);
}

// The product of one matrix of 9 rows, which the cpu plane keeps in tiles of 8.
void EngineTest::weights_count_as_the_device_lays_them_out() {
  auto device = open_cpu(1);
  const auto bytes_of_stage = [&](DType type, int64_t rows) {
    Graph g;
    g.values = {{.kind = ValueKind::kInput, .shape = {kRows, 256}},
                {.dtype = DType::kQ8Rows, .shape = {kRows, 256}},
                {.kind = ValueKind::kWeight, .dtype = type, .shape = {rows, 256}, .name = "w"},
                {.shape = {kRows, rows}},
                {.kind = ValueKind::kWeight, .shape = {256, rows}, .name = "v"},
                {.shape = {kRows, 256}}};
    g.ops = {{.kind = OpKind::kQuantize, .inputs = {0}, .output = 1},
             {.kind = OpKind::kMatmul, .inputs = {1, 2}, .output = 3},
             {.kind = OpKind::kMatmul, .inputs = {3, 4}, .output = 5}};
    g.output = 5;
    const ByteVector w(size_t(byte_size(type, {rows, 256}).value()));
    const ByteVector v(size_t(256 * rows * 4));
    const std::vector<Fragment> fragments = {{std::move(g), {{"w", w}, {"v", v}}}};
    auto stage = Stage::open(*device, fragments, {.context = 1, .rows_max = 1});
    if (!stage.ok()) qFatal("%s", stage.error().message.c_str());
    return stage.value()->device_bytes() - int64_t(v.size());
  };
  for (const DType type : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_K, DType::kQ6_K}) {
    const int64_t tile = device->weight_bytes(type, 8, 256);
    QVERIFY(tile >= byte_size(type, {8, 256}).value());
    QCOMPARE(device->weight_bytes(type, 9, 256), 2 * tile);
    // The product stands where the input was, which is longer.
    QCOMPARE(bytes_of_stage(type, 16), bytes_of_stage(type, 9));
    QCOMPARE(bytes_of_stage(type, 17), bytes_of_stage(type, 16) + tile);
  }
}

void EngineTest::a_failed_step_leaves_the_stage_usable() {
  const SampleModel model = make_sample_model({.weights = DType::kQ8_0});
  auto device = open_cpu(2);
  auto opened = Stage::open(*device, std::span(model.fragments).subspan(1, 3),
                            {.context = 16, .rows_max = 4});
  QVERIFY(opened.ok());
  Stage& stage = *opened.value();
  const std::vector<RowInfo> one{{0, 0}};
  std::vector<float> hidden(64, 0.5f);
  const auto before = stage.step({.rows = one, .hidden = hidden});
  QVERIFY(before.ok());
  std::vector<float> extreme(64, 3e38f);  // Finite, but not its squares.
  const auto failed = stage.step({.rows = one, .hidden = extreme});
  QVERIFY(!failed.ok());
  QCOMPARE(failed.error().code, ErrorCode::kNonFinite);
  QVERIFY2(failed.error().message.find("rms_norm") != std::string::npos,
           failed.error().message.c_str());
  const auto after = stage.step({.rows = one, .hidden = hidden});
  QVERIFY(after.ok());
  QVERIFY(same_bits(before.value(), after.value()));
}

void EngineTest::devices_are_found_by_selector() {
  const std::vector<DeviceInfo> devices = list_devices();
  QVERIFY(!devices.empty());
  QCOMPARE(devices[0].id, std::string("cpu"));
  QVERIFY(!devices[0].name.empty());
  QVERIFY(devices[0].memory_bytes > 0);
  QVERIFY(open_device("cpu", 1).ok());
  const auto none = open_device("cpu:7", 1);
  QVERIFY(!none.ok());
  QCOMPARE(none.error().code, ErrorCode::kNotFound);
  QVERIFY(none.error().message.find("cpu") != std::string::npos);
}

void EngineTest::bench_measures_each_rate() {
  auto device = open_cpu(1);
  const Result<BenchReport> report = bench(*device);
  QVERIFY2(report.ok(), report.ok() ? "" : report.error().message.c_str());
  QVERIFY(report.value().decode_rows_per_second > 0);
  QVERIFY(report.value().prefill_rows_per_second > 0);
  QVERIFY(report.value().weight_bytes_per_second > report.value().decode_rows_per_second);
  QVERIFY(report.value().flops_per_second > report.value().prefill_rows_per_second);
  QVERIFY(report.value().copy_bytes_per_second > 0);
}

QTEST_GUILESS_MAIN(EngineTest)
#include "engine_test.moc"
