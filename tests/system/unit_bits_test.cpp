// Goal: a unit that a client computes on a real worker gives the tokens of `shoal-run generate`,
// also when the client was killed on the way, and the same scores and features on any size of
// stage. Method: a small model file; generate() in this process is the oracle.

#include <QTest>

#include "base/secrets.h"
#include "client/unit_store.h"
#include "compute/run/generate.h"
#include "compute/shards/shard.h"
#include "tests/client/agent_world.h"
#include "tests/models/model_maker.h"

using namespace shoal;
using namespace shoal::client;

namespace {

struct Shard {
  SecretBytes key;
  Digest digest;
  uint64_t size = 0;
};

Shard seal(const compute::Fragment& fragment, FakeCoordinator& coordinator) {
  ByteVector plain;
  const Result<void> written =
      compute::write_shard(fragment, [&plain](ByteSpan bytes) -> Result<void> {
        plain.insert(plain.end(), bytes.begin(), bytes.end());
        return {};
      });
  SHOAL_CHECK(written.ok());
  Shard shard{random_key()};
  ByteVector sealed = seal_stream(shard.key, plain);
  shard.digest = digest_of(sealed);
  shard.size = sealed.size();
  coordinator.shards[shard.digest] = std::move(sealed);
  return shard;
}

}  // namespace

class UnitBitsTest : public QObject {
  Q_OBJECT

 public:
  ~UnitBitsTest() noexcept override {}  // kj's own may throw, Qt's may not.

 private:
  static constexpr uint32_t kTokens = 90;

  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  ByteVector file_;
  compute::Model model_;
  std::vector<std::vector<int32_t>> prompts_;
  FakeCoordinator::Values expected_;
  std::string device_;  // The id of the one that computes.

  struct UnitWorld : World {
    explicit UnitWorld(kj::AsyncIoContext& io, const compute::Model& model) : World(io) {
      coordinator.knows_units = true;
      worker_arguments.emplace();
      for (const compute::Fragment& fragment : model.fragments) {
        shards.push_back(seal(fragment, coordinator));
      }
      chosen.push_back({"work.checkpoint_seconds", int64_t{0}});
      chosen.push_back({"compute.devices", std::vector<std::string>{"cpu"}});
      chosen.push_back({"compute.threads", int64_t{1}});
    }
    void fill_spec(rpc::StageSpec::Builder spec, uint32_t sequences, uint32_t rows_max) {
      spec.setContext(128);
      spec.setSequences(sequences);
      spec.setRowsMax(rows_max);
      auto list = spec.initShards(static_cast<uint32_t>(shards.size()));
      const BoxPublicKey key = BoxPublicKey::from_bytes(coordinator.reports.back()[0].key).value();
      for (uint32_t i = 0; i < list.size(); ++i) {
        list[i].setDigest(rpc::kj_bytes(shards[i].digest.bytes));
        list[i].setSealedBytes(shards[i].size);
        list[i].setSealedKey(rpc::kj_bytes(seal_to(key, shards[i].key.view()).value()));
      }
    }
    uint64_t add(const std::vector<std::vector<int32_t>>& prompts, uint32_t sequences,
                 uint32_t rows_max, std::function<void(rpc::Unit::Builder)> change) {
      coordinator.units.push_back({[=, this](rpc::Unit::Builder unit) {
        unit.setEstimateMs(60'000);
        unit.initJobClass().setKind("generate");
        unit.getJobClass().setModel("m");
        fill_spec(unit.initSpec(), sequences, rows_max);
        auto items = unit.initItems(static_cast<uint32_t>(prompts.size()));
        for (uint32_t i = 0; i < items.size(); ++i) {
          auto tokens = items[i].initTokens(static_cast<uint32_t>(prompts[i].size()));
          for (uint32_t k = 0; k < tokens.size(); ++k) tokens.set(k, prompts[i][k]);
          items[i].setTokensMax(kTokens);
          items[i].setScoreFrom(2);
          auto sampling = items[i].initSampling();
          sampling.setTemperature(0.9f);
          sampling.setTopP(0.95f);
          sampling.setTopK(40);
          sampling.setMinP(0.05f);
          sampling.setRepetitionPenalty(1.1f);
          sampling.setSeed(7 + i);
        }
        change(unit);
      }});
      return coordinator.units.size();
    }
    std::vector<Shard> shards;
  };

 private Q_SLOTS:
  void initTestCase() {
    ignore_broken_pipes();
    compute::TinyModel tiny;
    tiny.vocabulary = 259;
    tiny.type = "Q8_0";
    file_ = compute::tiny_gguf(tiny).bytes();
    model_ = compute::model_of_gguf(file_, "tiny.gguf").value();
    auto device = compute::open_device("cpu", 1).value();
    for (const char* text :
         {"Once upon a time", "The dog", "x", "There was a girl who", "One day"}) {
      compute::GenerateOptions options;
      options.prompt = text;
      options.tokens_max = kTokens;
      options.ignore_eos = true;
      options.digest = false;
      options.sampling = {.temperature = 0.9f,
                          .top_k = 40,
                          .top_p = 0.95f,
                          .min_p = 0.05f,
                          .repetition_penalty = 1.1f,
                          .seed = 7 + expected_.size()};
      const auto report = compute::generate(model_, *device, options, {});
      QVERIFY2(report.ok(), report.ok() ? "" : report.error().message.c_str());
      prompts_.push_back(report.value().prompt_ids);
      expected_.emplace_back(report.value().ids.begin(), report.value().ids.end());
      QCOMPARE(expected_.back().size(), size_t(kTokens));
    }
  }

  void a_real_worker_draws_what_shoal_run_draws() {
    UnitWorld world(io_, model_);
    world.add(prompts_, 3, 8, [](rpc::Unit::Builder) {});
    // Scores and features, on two sizes of stage.
    for (const auto& [sequences, rows_max] : {std::pair(1u, 3u), std::pair(4u, 64u)}) {
      world.add(prompts_, sequences, rows_max, [](rpc::Unit::Builder unit) {
        unit.getJobClass().setKind("score");
        unit.getKind().setScore();
      });
      world.add(prompts_, sequences, rows_max, [](rpc::Unit::Builder unit) {
        unit.getJobClass().setKind("embed");
        unit.getKind().setEmbed();
      });
    }
    world.start();
    world.coordinator.wait_until([&] { return world.coordinator.submitted.size() == 5; });
    auto& submitted = world.coordinator.submitted;
    QCOMPARE(submitted[1], expected_);
    QCOMPARE(submitted[2].size(), prompts_.size());
    QCOMPARE(submitted[2][0].size(), prompts_[0].size() - 2);
    QVERIFY(submitted[2] == submitted[4]);
    QCOMPARE(submitted[3][0].size(), size_t(64));
    QVERIFY(submitted[3] == submitted[5]);
    QVERIFY(world.coordinator.given_back.empty());
    world.stop();
  }

  // Method: killed as soon as the first item is done, wherever the others are then.
  void a_killed_client_goes_on_with_the_same_tokens() {
    UnitWorld world(io_, model_);
    world.add(prompts_, 1, 8, [](rpc::Unit::Builder) {});
    world.start();
    world.wait_for_agent([this](rpc::Snapshot::Reader snapshot) {
      if (snapshot.getWork().size() == 0) return false;
      device_ = snapshot.getWork()[0].getDeviceId().cStr();
      return snapshot.getWork()[0].getUnit().getItemsDone() > 0;
    });
    world.agent = nullptr;
    world.cache = nullptr;
    world.records = nullptr;
    world.coordinator.reports.clear();
    world.coordinator.renewed.clear();
    QVERIFY(!world.coordinator.submitted.contains(1));
    // What it had come to is kept, and is the beginning of what is drawn in the end.
    const std::vector<UnitCheckpoint> kept = UnitStore(world.dir / "units").load(device_);
    QCOMPARE(kept.size(), size_t(1));
    uint32_t done = 0;
    for (size_t i = 0; i < kept[0].outputs.size(); ++i) {
      const ItemOutput& output = kept[0].outputs[i];
      done += output.done;
      for (size_t k = 0; k < output.tokens.size(); ++k) {
        QCOMPARE(static_cast<float>(output.tokens[k]), expected_[i][k]);
      }
    }
    QVERIFY(done > 0);
    world.start();
    world.coordinator.wait_until([&] { return world.coordinator.submitted.contains(1); });
    QCOMPARE(world.coordinator.submitted[1], expected_);
    // It went on from there, and did not begin anew.
    // (A quick worker may have done all by then: nothing is left to renew.)
    if (!kept[0].done()) QCOMPARE(world.coordinator.renewed[0].items_done, done);
    world.stop();
  }
};

QTEST_GUILESS_MAIN(UnitBitsTest)
#include "unit_bits_test.moc"
