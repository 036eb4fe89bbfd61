// Goal: what comes out of a unit depends on its input alone, whatever the stage's size and wherever
// it was interrupted; and what a coordinator, a worker or a file says is believed only if it can be
// true. Method: a toy model whose answers are plain functions of the tokens before them.

#include "client/unit_work.h"

#include <capnp/message.h>

#include <QTest>

#include "base/files.h"
#include "client/unit_store.h"
#include "schema/limits.h"
#include "tests/client/toy_unit_model.h"

using namespace shoal;
using namespace shoal::client;

namespace {

constexpr StageFacts kToy{true, true, toy::kWidth, toy::kVocabulary};

UnitItem prompt(std::vector<int32_t> tokens, uint32_t tokens_max, uint64_t seed = 0) {
  UnitItem item;
  item.tokens = std::move(tokens);
  item.tokens_max = tokens_max;
  item.temperature = 0.9f;
  item.seed = seed;
  return item;
}

UnitInput input_of(UnitKind kind, uint32_t sequences, uint32_t rows_max) {
  UnitInput input;
  input.kind = kind;
  input.context = 32;
  input.sequences = sequences;
  input.rows_max = rows_max;
  input.shards = {digest_of(as_bytes("a shard"))};
  input.items = {prompt({1, 2, 3}, 5, 7), prompt({4}, 1), prompt({5, 6, 7, 8, 9, 10, 11}, 9, 3),
                 prompt({1, 2, 3}, 5, 8), prompt({12, 13}, 4)};
  for (UnitItem& item : input.items) {
    item.score_from = item.tokens.size() > 3 ? 3 : 1;
    item.repetition_penalty = 1.2f;
  }
  return input;
}

// What must come out, token by token.
std::vector<ItemOutput> truth(const UnitInput& input) {
  std::vector<ItemOutput> outputs;
  for (const UnitItem& item : input.items) {
    ItemOutput output{.done = true};
    const std::span<const int32_t> text = item.tokens;
    std::vector<int32_t> tokens = item.tokens;
    switch (input.kind) {
      case UnitKind::kGenerate:
        while (output.tokens.size() < item.tokens_max) {
          tokens.push_back(toy::draw(tokens, item.seed, tokens.size()));
          output.tokens.push_back(tokens.back());
          if (std::ranges::find(item.stop, tokens.back()) != item.stop.end()) break;
        }
        break;
      case UnitKind::kScore:
        for (size_t i = item.score_from; i < text.size(); ++i) {
          output.numbers.push_back(toy::score(text.first(i), text[i]));
        }
        break;
      case UnitKind::kEmbed:
        for (uint32_t k = 0; k < toy::kWidth; ++k) {
          double sum = 0;
          for (size_t i = 1; i <= text.size(); ++i) sum += toy::feature(text.first(i), k);
          output.numbers.push_back(static_cast<float>(sum / static_cast<double>(text.size())));
        }
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

toy::Stage stage_of(const UnitInput& input) {
  return toy::Stage(input.context, input.sequences, input.rows_max);
}

// One step; false when the stage or the unit refused it.
bool run_step(UnitWork& work, toy::Stage& stage) {
  const UnitStep step = work.next_step();
  capnp::MallocMessageBuilder question, answer;
  auto in = question.initRoot<rpc::StepInput>();
  work.write_step(step, in);
  auto out = answer.initRoot<rpc::StepOutput>();
  const auto ran = stage.step(in.asReader(), out);
  if (!ran.ok()) {
    qWarning("%s", ran.error().message.c_str());
    return false;
  }
  return work.take(step, out.asReader()).ok();
}

UnitCheckpoint checkpoint_of(const UnitWork& work) {
  return {.coordinator = "a pin",
          .coordinator_name = "a name",
          .device = "fake",
          .lease = 7,
          .unit = 8,
          .job_class = {"generate", "m", true},
          .input = work.digest(),
          .kind = work.input().kind,
          .since = Millis{5},
          .estimate = Millis{6},
          .steps = 9,
          .rows = 10,
          .outputs = work.outputs()};
}

struct WireUnit {
  capnp::MallocMessageBuilder message;
  rpc::Unit::Builder unit = message.initRoot<rpc::Unit>();

  explicit WireUnit(UnitKind kind = UnitKind::kGenerate) {
    if (kind == UnitKind::kScore) unit.getKind().setScore();
    if (kind == UnitKind::kEmbed) unit.getKind().setEmbed();
    unit.initJobClass().setKind(std::string(unit_kind_name(kind)));
    auto spec = unit.initSpec();
    spec.setContext(32);
    spec.setSequences(2);
    spec.setRowsMax(8);
    spec.initShards(1)[0].setDigest(rpc::kj_bytes(digest_of(as_bytes("a shard")).bytes));
    auto item = unit.initItems(1)[0];
    auto tokens = item.initTokens(3);
    for (uint32_t i = 0; i < 3; ++i) tokens.set(i, static_cast<int32_t>(i));
    item.setTokensMax(4);
    item.setScoreFrom(1);
  }
};

constexpr UnitKind kKinds[] = {UnitKind::kGenerate, UnitKind::kScore, UnitKind::kEmbed};

}  // namespace

class UnitWorkTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_output_depends_on_the_input_alone() {
    for (const UnitKind kind : kKinds) {
      for (const uint32_t sequences : {1u, 2u, 3u, 8u}) {
        for (const uint32_t rows_max : {1u, 2u, 3u, 7u, 64u}) {
          const UnitInput input = input_of(kind, sequences, rows_max);
          UnitWork work(input);
          toy::Stage stage = stage_of(input);
          QVERIFY(work.begin(kToy).ok());
          while (!work.done()) QVERIFY(run_step(work, stage));
          QVERIFY(work.outputs() == truth(input));
          QCOMPARE(work.fraction(), 1.0);
        }
      }
    }
  }

  void a_stop_token_ends_an_item_and_is_its_last() {
    UnitInput input = input_of(UnitKind::kGenerate, 2, 8);
    const std::vector<int32_t> full = truth(input)[2].tokens;
    input.items[2].stop = {full[3], 99};
    UnitWork work(input);
    toy::Stage stage = stage_of(input);
    QVERIFY(work.begin(kToy).ok());
    while (!work.done()) QVERIFY(run_step(work, stage));
    const auto first = std::ranges::find(full, full[3]) - full.begin();
    QCOMPARE(work.outputs()[2].tokens.size(), size_t(first) + 1);
    QVERIFY(work.outputs() == truth(input));
  }

  void texts_with_nothing_to_score_are_done_at_once() {
    UnitInput input = input_of(UnitKind::kScore, 2, 8);
    input.items = {prompt({1}, 0), prompt({1, 2, 3}, 0)};
    input.items[0].score_from = 1;
    input.items[1].score_from = 3;
    UnitWork work(input);
    QVERIFY(work.begin(kToy).ok());
    QVERIFY(work.done());
    QVERIFY(work.outputs()[1].numbers.empty());
  }

  // Method: after each number of steps the work is thrown away but for its bytes on disk, and goes
  // on from them on a new stage of another size.
  void an_interrupted_unit_ends_as_if_it_had_not_been() {
    for (const UnitKind kind : kKinds) {
      const UnitInput input = input_of(kind, 2, 3);
      for (int steps = 0;; ++steps) {
        UnitWork work(input);
        toy::Stage stage = stage_of(input);
        QVERIFY(work.begin(kToy).ok());
        int ran = 0;
        for (; ran < steps && !work.done(); ++ran) QVERIFY(run_step(work, stage));
        const Result<UnitCheckpoint> kept = read_checkpoint(checkpoint_bytes(checkpoint_of(work)));
        QVERIFY(kept.ok());
        QVERIFY(kept.value().input == work.digest());
        QCOMPARE(kept.value().done(), work.done());

        const UnitInput other = input_of(kind, 3, 5);
        QVERIFY(input_digest(other) == kept.value().input);  // The stage's size is no part of it.
        UnitWork again(other);
        QVERIFY(again.go_on_from(kept.value().outputs).ok());
        QCOMPARE(again.items_done(), work.items_done());
        toy::Stage new_stage = stage_of(other);
        QVERIFY(again.begin(kToy).ok());
        while (!again.done()) QVERIFY(run_step(again, new_stage));
        QVERIFY(again.outputs() == truth(input));
        // And the work itself, on a stage that holds something else.
        QVERIFY(work.begin(kToy).ok());
        while (!work.done()) QVERIFY(run_step(work, stage));
        QVERIFY(work.outputs() == truth(input));
        if (ran < steps) break;
      }
    }
  }

  void a_worker_that_answers_nonsense_changes_nothing() {
    for (const UnitKind kind : kKinds) {
      UnitWork work(input_of(kind, 1, 16));
      QVERIFY(work.begin(kToy).ok());
      const std::vector<ItemOutput> before = work.outputs();
      const UnitStep step = work.next_step();
      const auto refused = [&](auto fill) {
        capnp::MallocMessageBuilder message;
        auto output = message.initRoot<rpc::StepOutput>();
        fill(output);
        const Result<void> taken = work.take(step, output.asReader());
        return !taken.ok() && taken.error().code == ErrorCode::kCorrupt;
      };
      using Output = rpc::StepOutput::Builder;
      QVERIFY(refused([](Output o) { o.initTokens(3); }));
      QVERIFY(refused([](Output o) { o.initHidden(5); }));
      if (kind == UnitKind::kGenerate) {
        QVERIFY(refused([](Output o) { o.initTokens(1).set(0, -1); }));
        QVERIFY(refused([](Output o) { o.initTokens(1).set(0, toy::kVocabulary); }));
        QVERIFY(refused([](Output o) {
          o.initTokens(1);
          o.initLogLikelihoods(1);
        }));
      }
      if (kind == UnitKind::kScore) {
        for (const float bad : {0.5f, std::nanf(""), -std::numeric_limits<float>::infinity()}) {
          QVERIFY(refused([bad](Output o) {
            o.initTokens(0);
            o.initLogLikelihoods(2).set(0, bad);
          }));
        }
      }
      if (kind == UnitKind::kEmbed) {
        QVERIFY(refused([&step](Output o) {
          const float bad = std::nanf("");
          auto hidden = o.initHidden(static_cast<uint32_t>(step.rows.size() * toy::kWidth * 4));
          std::memcpy(hidden.begin(), &bad, 4);
        }));
      }
      QVERIFY(work.outputs() == before);
    }
  }

  void a_unit_that_does_not_fit_its_model_is_refused() {
    UnitInput input = input_of(UnitKind::kGenerate, 1, 8);
    QCOMPARE(UnitWork(input).begin({true, false, 4, 100}).error().code, ErrorCode::kInvalid);
    QCOMPARE(UnitWork(input).begin({false, true, 4, 100}).error().code, ErrorCode::kInvalid);
    QVERIFY(UnitWork(input).begin({true, true, 4, 14}).ok());
    const Result<void> beyond = UnitWork(input).begin({true, true, 4, 13});
    QVERIFY(beyond.error().message.find("item 4: its token 13") != std::string::npos);
    // As many vectors as one message takes, and one more.
    UnitInput embed = input_of(UnitKind::kEmbed, 1, 8);
    embed.items.assign(4, embed.items[0]);
    const uint32_t most = limits::kHiddenBytesMax / 4 / 4;
    QVERIFY(UnitWork(embed).begin({true, true, most, 100}).ok());
    QCOMPARE(UnitWork(embed).begin({true, true, most + 1, 100}).error().code, ErrorCode::kInvalid);
    // What was kept is of another model.
    UnitWork work(input);
    std::vector<ItemOutput> kept(input.items.size());
    kept[0].tokens = {60};
    QVERIFY(work.go_on_from(kept).ok());
    QCOMPARE(work.begin({true, true, 4, 60}).error().code, ErrorCode::kCorrupt);
  }

  void outputs_of_another_input_are_no_start() {
    UnitWork work(input_of(UnitKind::kGenerate, 1, 8));
    std::vector<ItemOutput> kept(5);
    QVERIFY(work.go_on_from(kept).ok());
    const auto refused = [&work](std::vector<ItemOutput> outputs) {
      return work.go_on_from(std::move(outputs)).error().code == ErrorCode::kCorrupt;
    };
    QVERIFY(refused(std::vector<ItemOutput>(4)));
    kept[0].done = true;  // With nothing drawn.
    QVERIFY(refused(kept));
    kept[0] = {.done = false, .tokens = {1, 2, 3, 4, 5}};  // All drawn.
    QVERIFY(refused(kept));
    kept[0] = {.done = true, .tokens = {1, 2, 3, 4, 5, 6}};
    QVERIFY(refused(kept));
    kept[0] = {.done = false, .tokens = {-1}};
    QVERIFY(refused(kept));
    kept[0] = {.done = true, .tokens = {1, 2, 3, 4, 5}};
    QVERIFY(work.go_on_from(kept).ok());
    QCOMPARE(work.items_done(), 1u);
    UnitWork score(input_of(UnitKind::kScore, 1, 8));
    std::vector<ItemOutput> scored(5);
    scored[0] = {.done = true, .numbers = {-1}};  // It has two.
    QCOMPARE(score.go_on_from(scored).error().code, ErrorCode::kCorrupt);
    scored[0] = {.done = true, .numbers = {-1, -2}};
    QVERIFY(score.go_on_from(scored).ok());
  }

  void a_wire_unit_is_read_and_a_wrong_one_refused_by_field() {
    for (const UnitKind kind : kKinds) {
      const WireUnit wire(kind);
      const Result<UnitInput> read = read_unit(wire.unit.asReader());
      QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
      QVERIFY(read.value().kind == kind);
      QCOMPARE(read.value().items[0].tokens, (std::vector<int32_t>{0, 1, 2}));
    }
    const auto refused = [](auto change, const char* part, UnitKind kind = UnitKind::kGenerate) {
      WireUnit wire(kind);
      change(wire.unit);
      const Result<UnitInput> read = read_unit(wire.unit.asReader());
      const bool right = !read.ok() && read.error().message.find(part) != std::string::npos;
      if (!right) qWarning("%s: %s", part, read.ok() ? "taken" : read.error().message.c_str());
      return right;
    };
    using Unit = rpc::Unit::Builder;
    QVERIFY(refused([](Unit u) { u.getSpec().initShards(0); }, "spec.shards"));
    QVERIFY(refused([](Unit u) { u.getSpec().getShards()[0].initDigest(3); }, "shard.digest"));
    QVERIFY(refused([](Unit u) { u.getSpec().setContext(0); }, "spec.context"));
    QVERIFY(refused([](Unit u) { u.getSpec().setSequences(limits::kSequencesMax + 1); },
                    "spec.sequences"));
    QVERIFY(refused([](Unit u) { u.getSpec().setRowsMax(0); }, "spec.rowsMax"));
    QVERIFY(refused([](Unit u) { u.initItems(0); }, "items"));
    QVERIFY(refused([](Unit u) { u.initItems(limits::kItemsPerUnitMax + 1); }, "items"));
    QVERIFY(refused([](Unit u) { u.getItems()[0].initTokens(0); }, "no tokens"));
    QVERIFY(refused([](Unit u) { u.getItems()[0].getTokens().set(1, -1); }, "token -1"));
    QVERIFY(refused([](Unit u) { u.getItems()[0].initTokens(limits::kTokensPerUnitMax + 1); },
                    "tokens of all items"));
    QVERIFY(refused([](Unit u) { u.getItems()[0].setTokensMax(limits::kTokensPerUnitMax + 1); },
                    "tokensMax of all items"));
    QVERIFY(refused([](Unit u) { u.getItems()[0].setTokensMax(0); }, "no token"));
    QVERIFY(refused([](Unit u) { u.getItems()[0].initStop(limits::kStopTokensMax + 1); }, "stop"));
    QVERIFY(
        refused([](Unit u) { u.getItems()[0].initSampling().setTemperature(NAN); }, "temperature"));
    QVERIFY(refused([](Unit u) { u.getItems()[0].initSampling().setTopP(1.5f); }, "topP"));
    QVERIFY(refused([](Unit u) { u.getItems()[0].initSampling().setRepetitionPenalty(0); },
                    "repetitionPenalty"));
    // The last position that there is, and one more.
    QVERIFY(refused([](Unit u) { u.getItems()[0].setTokensMax(31); }, "33 positions"));
    WireUnit full;
    full.unit.getItems()[0].setTokensMax(30);
    QVERIFY(read_unit(full.unit.asReader()).ok());
    QVERIFY(
        refused([](Unit u) { u.getItems()[0].setScoreFrom(0); }, "scoreFrom", UnitKind::kScore));
    QVERIFY(
        refused([](Unit u) { u.getItems()[0].setScoreFrom(4); }, "scoreFrom", UnitKind::kScore));
  }

  void a_digest_is_of_everything_that_the_output_depends_on() {
    const UnitInput input = input_of(UnitKind::kGenerate, 2, 8);
    const Digest digest = input_digest(input);
    const auto differs = [&](auto change) {
      UnitInput other = input;
      change(other);
      return input_digest(other) != digest;
    };
    QVERIFY(differs([](UnitInput& i) { i.kind = UnitKind::kEmbed; }));
    QVERIFY(differs([](UnitInput& i) { i.shards.push_back(i.shards[0]); }));
    QVERIFY(differs([](UnitInput& i) { i.items.pop_back(); }));
    QVERIFY(differs([](UnitInput& i) { i.items[0].tokens[2] = 4; }));
    QVERIFY(differs([](UnitInput& i) { i.items[0].tokens_max = 6; }));
    QVERIFY(differs([](UnitInput& i) { i.items[0].stop = {1}; }));
    QVERIFY(differs([](UnitInput& i) { i.items[0].seed = 1; }));
    QVERIFY(differs([](UnitInput& i) { i.items[0].temperature = 1; }));
    QVERIFY(differs([](UnitInput& i) { i.items[0].repetition_penalty = 1; }));
    QVERIFY(differs([](UnitInput& i) { i.items[0].score_from = 2; }));
    QVERIFY(!differs([](UnitInput& i) { i.rows_max = 9; }));
  }

  void a_checkpoint_that_is_cut_short_or_longer_is_none() {
    UnitWork work(input_of(UnitKind::kGenerate, 2, 8));
    const ByteVector bytes = checkpoint_bytes(checkpoint_of(work));
    QVERIFY(read_checkpoint(bytes).ok());
    for (size_t size = 0; size < bytes.size(); ++size) {
      QCOMPARE(read_checkpoint(ByteSpan(bytes).first(size)).error().code, ErrorCode::kCorrupt);
    }
    ByteVector longer = bytes;
    longer.push_back(std::byte{0});
    QCOMPARE(read_checkpoint(longer).error().code, ErrorCode::kCorrupt);
  }

  void a_checkpoint_is_of_its_job_class() {
    UnitCheckpoint kept = checkpoint_of(UnitWork(input_of(UnitKind::kScore, 2, 8)));
    for (const JobClass& job_class :
         {JobClass{"score", "m", false, false}, JobClass{"score", "m", true, false},
          JobClass{"score", "m", false, true}}) {
      kept.job_class = job_class;
      QVERIFY(read_checkpoint(checkpoint_bytes(kept)).value().job_class == job_class);
    }
  }

  void a_store_gives_back_what_it_kept_and_forgets_what_is_damaged() {
    const TempDir dir;
    const UnitStore store(dir / "units");
    QVERIFY(store.load("fake").empty());
    UnitCheckpoint checkpoint = checkpoint_of(UnitWork(input_of(UnitKind::kGenerate, 2, 8)));
    QVERIFY(store.save(checkpoint).ok());
    checkpoint.outputs[0].tokens = {1};
    QVERIFY(store.save(checkpoint).ok());
    UnitCheckpoint other = checkpoint;
    other.coordinator = "another pin";
    QVERIFY(store.save(other).ok());
    other.device = "another";
    other.lease = 9;
    QVERIFY(store.save(other).ok());
    QCOMPARE(store.load("fake").size(), size_t(2));
    QCOMPARE(store.load("another").size(), size_t(1));
    store.remove("another pin", 7);
    QCOMPARE(store.load("fake").size(), size_t(1));
    QVERIFY(store.load("fake")[0].outputs == checkpoint.outputs);
    // Both generations damaged.
    for (const auto& entry : std::filesystem::directory_iterator(dir / "units")) {
      QVERIFY(write_file_durably(entry.path(), as_bytes("nonsense")).ok());
    }
    QVERIFY(store.load("fake").empty());
    QVERIFY(std::filesystem::is_empty(dir / "units"));
    QVERIFY(!UnitStore("").save(checkpoint).ok());
  }
};

QTEST_GUILESS_MAIN(UnitWorkTest)
#include "unit_work_test.moc"
