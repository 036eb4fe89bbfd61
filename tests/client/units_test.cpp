// Goal: units of jobs are computed, kept, handed in and given back as the coordinator, the owner
// and the machine's accidents demand, and no unit hurts another. Method: a fake coordinator over
// real TLS, real processes of fake_worker with a toy model whose answers are known, a real folder
// for what is kept; a kill is a client that is gone without a word.

#include <QTest>
#include <fstream>

#include "client/unit_store.h"
#include "tests/client/agent_world.h"
#include "tests/client/toy_unit_model.h"

using namespace shoal;
using namespace shoal::client;

namespace {

using GiveBack = rpc::UnitDesk::GiveBack;
using Prompts = std::vector<std::vector<int32_t>>;

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// An even context: no trouble, whatever the tokens. An odd one: what they are for.
constexpr uint32_t kCalm = 64, kTroubled = 65;

struct UnitWorld : World {
  explicit UnitWorld(kj::AsyncIoContext& io) : World(io, "model") {
    coordinator.knows_units = true;
    chosen.push_back({"work.checkpoint_seconds", int64_t{0}});
    shard = add_shard(1000, 3);
  }

  // A unit that draws six tokens for each prompt.
  size_t add_unit(
      Prompts prompts, uint32_t context = kCalm,
      std::function<void(rpc::Unit::Builder)> change = [](rpc::Unit::Builder) {}) {
    contexts.push_back(context);
    const size_t place = coordinator.units.size();
    coordinator.units.push_back({[=, this](rpc::Unit::Builder unit) {
      unit.setEstimateMs(60'000);
      const JobClass job_class{"generate", "m", false};
      write_job_class(job_class, unit.initJobClass());
      auto spec = unit.initSpec();
      spec.setContext(contexts[place]);
      spec.setSequences(1);
      spec.setRowsMax(4);
      auto to = spec.initShards(1)[0];
      to.setDigest(rpc::kj_bytes(shard.bytes));
      to.setSealedBytes(1000);
      const auto& device = coordinator.reports.back().at(0);
      const Result<BoxPublicKey> key = BoxPublicKey::from_bytes(device.key);
      if (key.ok()) to.setSealedKey(rpc::kj_bytes(seal_to(key.value(), as_bytes("key")).value()));
      auto items = unit.initItems(static_cast<uint32_t>(prompts.size()));
      for (uint32_t i = 0; i < items.size(); ++i) {
        auto tokens = items[i].initTokens(static_cast<uint32_t>(prompts[i].size()));
        for (uint32_t k = 0; k < tokens.size(); ++k) tokens.set(k, prompts[i][k]);
        items[i].setTokensMax(6);
        items[i].initSampling().setSeed(i);
      }
      change(unit);
    }});
    return place + 1;  // Its lease.
  }

  static FakeCoordinator::Values truth(const Prompts& prompts) {
    FakeCoordinator::Values values;
    for (size_t i = 0; i < prompts.size(); ++i) {
      std::vector<int32_t> tokens = prompts[i];
      values.emplace_back();
      while (values.back().size() < 6) {
        tokens.push_back(toy::draw(tokens, i, tokens.size()));
        values.back().push_back(static_cast<float>(tokens.back()));
      }
    }
    return values;
  }

  void wait_submitted(uint64_t lease) {
    coordinator.wait_until([&] { return coordinator.submitted.contains(lease); });
  }
  const FakeCoordinator::GivenBack* returned(uint64_t lease) const {
    for (const auto& back : coordinator.given_back) {
      if (back.lease == lease) return &back;
    }
    return nullptr;
  }
  const FakeCoordinator::GivenBack& wait_returned(uint64_t lease) {
    coordinator.wait_until([&] { return returned(lease) != nullptr; });
    return *returned(lease);
  }
  // Of the snapshot; no entry: nothing.
  struct Seen {
    std::string state;
    uint32_t done = 0;
    uint64_t steps = 0;
  };
  void wait_seen(uint64_t lease, const std::function<bool(const std::optional<Seen>&)>& done) {
    wait_for_agent([&](rpc::Snapshot::Reader snapshot) {
      std::optional<Seen> seen;
      for (const auto work : snapshot.getWork()) {
        if (work.getLeaseId() != lease || work.getUnit().getId() == 0) continue;
        seen = Seen{work.getState().cStr(), work.getUnit().getItemsDone(), work.getSteps()};
      }
      return done(seen);
    });
  }
  void wait_items(uint64_t lease, uint32_t done) {
    wait_seen(lease, [done](const auto& seen) { return seen && seen->done == done; });
  }
  void wait_gone(uint64_t lease) {
    wait_seen(lease, [](const auto& seen) { return !seen; });
  }
  // The client is killed.
  void kill() {
    agent = nullptr;
    cache = nullptr;
    records = nullptr;
    coordinator.reports.clear();
    coordinator.renewed.clear();
  }
  std::vector<UnitCheckpoint> kept() const { return UnitStore(dir / "units").load("fake"); }

  Digest shard;
  std::vector<uint32_t> contexts;  // Of each unit, as it is handed out next.
};

// Two items that go, and one that stops the worker for ever.
const Prompts kStuck = {{1, 2, 3}, {4, 5}, {6, toy::kHangs}, {7}};

}  // namespace

class UnitsTest : public QObject {
  Q_OBJECT

 public:
  ~UnitsTest() noexcept override {}  // kj's own may throw, Qt's may not.

 private:
  kj::AsyncIoContext io_ = kj::setupAsyncIo();

  // A unit that is stuck after two of its four items, which are stored.
  void begin_stuck(UnitWorld& world) {
    world.add_unit(kStuck, kTroubled);
    world.start();
    world.wait_items(1, 2);
    world.contexts[0] = kCalm;  // When it is handed out again.
  }

  // One unit after another, the first of which comes to nothing for a reason.
  void given_back(std::function<void(UnitWorld&)> add, GiveBack reason, const char* part,
                  const char* why) {
    UnitWorld world(io_);
    add(world);
    const Prompts good = {{5, 6}};
    const size_t next = world.add_unit(good);
    world.start();
    const auto& back = world.wait_returned(1);
    QCOMPARE(int(back.reason), int(reason));
    QVERIFY2(has(back.text, part), back.text.c_str());
    world.wait_submitted(next);
    QCOMPARE(world.coordinator.submitted[next], UnitWorld::truth(good));
    QVERIFY(!world.coordinator.submitted.contains(1));
    world.wait_gone(next);
    const auto history = world.records->history(10).value();
    QCOMPARE(history.size(), size_t(2));
    QCOMPARE(history[1].why.code, std::string(why));
    QCOMPARE(history[0].why.code, std::string("unit.accepted"));
    QVERIFY(world.kept().empty());
    world.stop();
  }

 private Q_SLOTS:
  void initTestCase() { ignore_broken_pipes(); }

  void computes_hands_in_and_remembers() {
    UnitWorld world(io_);
    const Prompts prompts = {{1, 2, 3}, {4}, {5, 6, 7, 8, 9}};
    world.add_unit(prompts);
    world.add_unit({{9}});
    world.start();
    world.wait_submitted(1);
    world.wait_submitted(2);
    QCOMPARE(world.coordinator.submitted[1], UnitWorld::truth(prompts));
    QCOMPARE(world.coordinator.submitted[2], UnitWorld::truth({{9}}));
    world.wait_gone(2);
    QCOMPARE(world.coordinator.seconds_asked[0], 900u);  // Fifteen minutes.
    QCOMPARE(world.coordinator.submits, 2);
    QVERIFY(world.coordinator.given_back.empty());
    QVERIFY(world.kept().empty());
    // The model was brought once and stayed loaded.
    QCOMPARE(world.coordinator.reads, uint64_t(1));
    const auto history = world.records->history(10).value();
    QCOMPARE(history.size(), size_t(2));
    QCOMPARE(history[1].unit, uint64_t(101));
    QCOMPARE(history[1].lease, uint64_t(1));
    QCOMPARE(history[1].session, uint64_t(0));
    QCOMPARE(history[1].job_class.model, std::string("m"));
    QCOMPARE(history[1].why.code, std::string("unit.accepted"));
    // Prompts, and drawn tokens but the last of each.
    QCOMPARE(history[1].rows, uint64_t(3 + 1 + 5 + 3 * 5));
    world.clock.advance(Millis{1'000});
    world.agent->judge();
    QCOMPARE(world.records->today("fake").rows, int64_t(3 + 1 + 5 + 3 * 5 + 1 + 5));
    world.stop();
  }

  void scores_and_embeddings_are_handed_in_as_such() {
    UnitWorld world(io_);
    world.add_unit({{1, 2, 3}}, kCalm, [](rpc::Unit::Builder unit) {
      unit.getJobClass().setKind("score");
      unit.getKind().setScore();
      unit.getItems()[0].setScoreFrom(1);
    });
    world.add_unit({{1, 2}}, kCalm, [](rpc::Unit::Builder unit) {
      unit.getJobClass().setKind("embed");
      unit.getKind().setEmbed();
    });
    world.start();
    world.wait_submitted(2);
    const std::vector<int32_t> text = {1, 2, 3};
    const std::span<const int32_t> tokens = text;
    QCOMPARE(world.coordinator.submitted[1][0],
             (std::vector<float>{toy::score(tokens.first(1), 2), toy::score(tokens.first(2), 3)}));
    QCOMPARE(world.coordinator.submitted[2][0].size(), size_t(toy::kWidth));
    QCOMPARE(world.coordinator.submitted[2][0][1],
             (toy::feature(tokens.first(1), 1) + toy::feature(tokens.first(2), 1)) / 2);
    world.stop();
  }

  void holds_units_ahead_and_asks_when_they_run_low() {
    UnitWorld world(io_);
    world.chosen.push_back({"work.ahead_minutes", int64_t{2}});
    world.coordinator.units_per_lease = 1;
    world.coordinator.ask_again_ms = 3'600'000;
    for (int i = 0; i < 4; ++i) world.add_unit(kStuck, kTroubled);  // A minute each.
    world.start();
    world.wait_items(1, 2);
    world.wait_seen(3, [](const auto& seen) { return seen && seen->state == "ahead"; });
    // Two minutes are held by two, and the work that the first has done makes room for a third.
    QCOMPARE(world.coordinator.seconds_asked, (std::vector<uint32_t>{120, 120, 120}));
    QVERIFY(!world.coordinator.units[3].leased);
    world.stop();
    // What was not begun went back, what was begun is kept.
    QVERIFY(world.returned(2) != nullptr && world.returned(3) != nullptr);
    QCOMPARE(int(world.returned(2)->reason), int(GiveBack::OWNER));
    QVERIFY(world.returned(1) == nullptr);
    QCOMPARE(world.kept().size(), size_t(1));
  }

  void renews_at_a_third_and_drops_what_is_over() {
    UnitWorld world(io_);
    world.coordinator.until_ms = 900;
    begin_stuck(world);
    const size_t before = world.coordinator.renewed.size();
    world.coordinator.wait_until([&] { return world.coordinator.renewed.size() > before + 1; });
    QCOMPARE(world.coordinator.renewed.back().items_done, 2u);
    QVERIFY(world.coordinator.renewed.back().running);
    const size_t next = world.add_unit({{8}});
    world.coordinator.units[0].over = true;
    world.wait_gone(1);
    QVERIFY(world.kept().empty());
    QCOMPARE(world.records->history(1).value()[0].why.code, std::string("unit.over"));
    world.wait_submitted(next);
    QVERIFY(world.returned(1) == nullptr);
    world.stop();
  }

  // Nothing can be renewed while nobody is there, so nothing wakes for it.
  void rests_while_its_coordinator_is_away() {
    UnitWorld world(io_);
    world.coordinator.until_ms = 900;
    begin_stuck(world);
    world.coordinator.drop_everyone();
    world.wait_for_agent([](rpc::Snapshot::Reader snapshot) {
      return std::string("connected") != snapshot.getConnections()[0].getState().cStr();
    });
    world.clock.advance(Millis{5'000});
    io_.waitScope.poll();
    world.timer.asked.clear();
    world.agent->judge();
    io_.waitScope.poll();
    QVERIFY(!world.timer.asked.empty());
    QCOMPARE(world.timer.count(0 * kj::SECONDS, 40 * kj::MILLISECONDS), 0);
    world.stop();
  }

  void a_slow_coordinator_costs_no_lease_of_another() {
    UnitWorld world(io_);
    world.coordinator.until_ms = 900;
    world.coordinator.ask_again_ms = 3'600'000;
    begin_stuck(world);
    FakeCoordinator slow(io_);
    slow.knows_everyone = slow.knows_units = slow.leases_slowly = true;
    slow.listen();
    const std::string url = rpc::format_attach_url(slow.url());
    kj::Promise<uint32_t> attached = world.agent->attach(url, {});
    attached.wait(io_.waitScope);
    slow.wait_until([&] { return !slow.seconds_asked.empty(); });
    const size_t before = world.coordinator.renewed.size();
    world.coordinator.wait_until([&] { return world.coordinator.renewed.size() > before + 2; });
    world.wait_seen(1, [](const auto& seen) { return seen && seen->state == "working"; });
    world.stop();
  }

  void goes_on_after_a_kill_while_its_lease_holds() {
    UnitWorld world(io_);
    begin_stuck(world);
    world.kill();
    QCOMPARE(world.kept().size(), size_t(1));
    QVERIFY(world.kept()[0].outputs[1].done && !world.kept()[0].outputs[2].done);
    world.start();
    world.wait_submitted(1);
    QCOMPARE(world.coordinator.submitted[1], UnitWorld::truth(kStuck));
    // It was asked first whether the lease holds, with what there was.
    QCOMPARE(world.coordinator.renewed[0].lease, uint64_t(1));
    QCOMPARE(world.coordinator.renewed[0].items_done, 2u);
    world.wait_gone(1);
    // Two items before the kill and two after it; no row of the first two ran again.
    QCOMPARE(world.records->history(1).value()[0].rows, uint64_t(3 + 5 + 2 + 5 + 2 + 5 + 1 + 5));
    QVERIFY(world.kept().empty());
    world.stop();
  }

  void an_item_goes_on_in_the_middle_with_one_prefill() {
    UnitWorld world(io_);
    const Prompts prompts = {{1, 2}};
    std::vector<int32_t> drawn;
    const FakeCoordinator::Values all = UnitWorld::truth(prompts);
    for (const float token : all[0]) drawn.push_back(int32_t(token));
    world.add_unit(prompts);
    world.start();
    world.wait_submitted(1);
    world.kill();
    // As a run would have left it after three tokens.
    UnitCheckpoint checkpoint;
    checkpoint.coordinator = world.coordinator.url().pin;
    checkpoint.device = "fake";
    checkpoint.lease = 2;
    checkpoint.unit = 102;
    checkpoint.job_class = {"generate", "m", false};
    checkpoint.input = input_digest([&] {
      UnitInput input;
      input.shards = {world.shard};
      UnitItem item;
      item.tokens = prompts[0];
      item.tokens_max = 6;
      input.items = {item};
      return input;
    }());
    checkpoint.outputs.resize(1);
    checkpoint.outputs[0].tokens.assign(drawn.begin(), drawn.begin() + 3);
    QVERIFY(UnitStore(world.dir / "units").save(checkpoint).ok());
    world.add_unit(prompts);
    world.coordinator.units[1].leased = true;
    world.start();
    world.wait_submitted(2);
    QCOMPARE(world.coordinator.submitted[2], UnitWorld::truth(prompts));
    world.wait_gone(2);
    QCOMPARE(world.records->history(1).value()[0].rows, uint64_t(5 + 2));
    world.stop();
  }

  void is_thrown_away_after_a_kill_when_its_lease_is_over() {
    UnitWorld world(io_);
    begin_stuck(world);
    world.kill();
    world.coordinator.units[0].over = true;
    const size_t next = world.add_unit({{8}});
    world.start();
    world.wait_submitted(next);
    QVERIFY(!world.coordinator.submitted.contains(1));
    world.wait_gone(next);
    QVERIFY(world.kept().empty());
    world.stop();
  }

  void begins_anew_when_the_input_is_another_than_before() {
    UnitWorld world(io_);
    begin_stuck(world);
    world.kill();
    const Prompts other = {{1, 2, 3}, {4, 6}, {6}, {7}};
    const auto fill = world.coordinator.units[0].fill;
    world.coordinator.units[0].fill = [fill](rpc::Unit::Builder unit) {
      fill(unit);
      unit.getItems()[1].getTokens().set(1, 6);
      unit.getItems()[2].initTokens(1).set(0, 6);
    };
    world.start();
    world.wait_submitted(1);
    QCOMPARE(world.coordinator.submitted[1], UnitWorld::truth(other));
    world.stop();
  }

  void is_refused_when_it_comes_again_as_work_of_another_class() {
    UnitWorld world(io_);
    begin_stuck(world);
    world.kill();
    const auto fill = world.coordinator.units[0].fill;
    world.coordinator.units[0].fill = [fill](rpc::Unit::Builder unit) {
      fill(unit);
      unit.getJobClass().setModel("another");
    };
    world.start();
    const auto& back = world.wait_returned(1);
    QCOMPARE(int(back.reason), int(GiveBack::REFUSED));
    QVERIFY2(has(back.text, "job class"), back.text.c_str());
    world.stop();
  }

  void gives_back_what_is_not_handed_out_again() {
    UnitWorld world(io_);
    begin_stuck(world);
    world.kill();
    world.coordinator.hands_again = false;
    world.start();
    QCOMPARE(int(world.wait_returned(1).reason), int(GiveBack::OWNER));
    world.wait_gone(1);
    QVERIFY(world.kept().empty());
    world.stop();
  }

  void is_submitted_until_it_is_answered_and_after_a_kill() {
    UnitWorld world(io_);
    const Prompts prompts = {{1, 2, 3}};
    world.add_unit(prompts);
    world.coordinator.lost_answers = 1'000;
    world.start();
    world.coordinator.wait_until([&] { return world.coordinator.submits >= 2; });
    world.kill();
    QCOMPARE(world.kept().size(), size_t(1));
    QVERIFY(world.kept()[0].done());
    world.coordinator.submitted.clear();
    world.coordinator.lost_answers = 0;
    world.coordinator.outcome = rpc::UnitDesk::Outcome::REPEATED;
    world.start();
    world.wait_submitted(1);
    QCOMPARE(world.coordinator.submitted[1], UnitWorld::truth(prompts));
    world.wait_gone(1);
    QVERIFY(world.kept().empty());
    QCOMPARE(world.records->history(10).value().size(), size_t(1));
    QCOMPARE(world.records->history(1).value()[0].why.code, std::string("unit.accepted"));
    world.stop();
  }

  void what_is_not_needed_or_rejected_is_remembered_as_such() {
    for (const auto& [outcome, code] :
         {std::pair(rpc::UnitDesk::Outcome::NOT_NEEDED, "unit.not_needed"),
          std::pair(rpc::UnitDesk::Outcome::REJECTED, "unit.rejected")}) {
      UnitWorld world(io_);
      world.add_unit({{1}});
      world.coordinator.outcome = outcome;
      world.start();
      world.wait_submitted(1);
      world.wait_gone(1);
      QCOMPARE(world.records->history(1).value()[0].why.code, std::string(code));
      world.stop();
    }
  }

  void hostile_units_are_refused_and_do_no_harm() {
    using Unit = rpc::Unit::Builder;
    const auto with = [](std::function<void(Unit)> change) {
      return [change](UnitWorld& world) { world.add_unit({{1, 2}}, kCalm, change); };
    };
    given_back(with([](Unit u) { u.initItems(limits::kItemsPerUnitMax + 1); }), GiveBack::REFUSED,
               "items", "unit.refused");
    // A kind of work that its owner did not agree to, under the name of one that he did.
    given_back(with([](Unit u) { u.getKind().setEmbed(); }), GiveBack::REFUSED,
               "its kind is embed, and jobClass.kind is 'generate'", "unit.refused");
    given_back(with([](Unit u) { u.getItems()[0].getTokens().set(1, -5); }), GiveBack::REFUSED,
               "token -5", "unit.refused");
    given_back(with([](Unit u) { u.getItems()[0].getTokens().set(1, toy::kVocabulary); }),
               GiveBack::REFUSED, "beyond the vocabulary", "unit.refused");
    given_back(with([](Unit u) { u.getSpec().setRowsMax(limits::kRowsMax + 1); }),
               GiveBack::REFUSED, "spec.rowsMax", "unit.refused");
    given_back(with([](Unit u) { u.getItems()[0].setTokensMax(kCalm); }), GiveBack::REFUSED,
               "positions", "unit.refused");
    given_back(with([](Unit u) { u.getSpec().getShards()[0].initDigest(32); }), GiveBack::REFUSED,
               "no such shard", "unit.refused");
    given_back(with([](Unit u) { u.getSpec().setContext(toy::kContextTooLarge); }),
               GiveBack::REFUSED, "too much memory", "unit.refused");
  }

  void a_unit_that_breaks_the_worker_is_given_back_and_the_next_one_goes() {
    const auto with = [](int32_t token) {
      return [token](UnitWorld& world) { world.add_unit({{1}, {2, token}}, kTroubled); };
    };
    given_back(with(toy::kNonFinite), GiveBack::REFUSED, "the op add", "unit.refused");
    given_back(with(toy::kLies), GiveBack::FAILED, "beyond the vocabulary", "unit.failed");
    // An hour for a quarter of it, where a minute was thought for the whole.
    given_back(
        [](UnitWorld& world) {
          world.add_unit({{1, toy::kIsSlow}, {toy::kHangs}, {3}, {4}}, kTroubled);
        },
        GiveBack::TOO_SLOW, "", "unit.too_slow");
  }

  // Method: the first worker dies on it, and so does the second.
  void a_unit_on_which_two_workers_died_is_the_devices_failure() {
    given_back(
        [](UnitWorld& world) {
          world.add_unit({{1}, {2, toy::kCrashes}}, kTroubled);
        },
        GiveBack::FAILED, "", "unit.failed");
  }

  void a_unit_outlives_one_crash_of_its_worker() {
    UnitWorld world(io_);
    const Prompts prompts = {{1}, {2, toy::kCrashes}};
    world.add_unit(prompts, kTroubled);
    const auto fill = world.coordinator.units[0].fill;
    world.coordinator.units[0].fill = [&world, fill](rpc::Unit::Builder unit) {
      fill(unit);
      world.contexts[0] = kCalm;  // From the second time on.
    };
    world.start();
    world.wait_submitted(1);
    QCOMPARE(world.coordinator.submitted[1], UnitWorld::truth(prompts));
    QVERIFY(world.coordinator.given_back.empty());
    world.stop();
  }

  void what_the_owner_denies_is_given_back() {
    UnitWorld world(io_);
    begin_stuck(world);
    const std::string url = shown_url(world.coordinator.url());
    QVERIFY(world.agent->set_consent(url, {"generate", "m", false}, false).ok());
    QCOMPARE(int(world.wait_returned(1).reason), int(GiveBack::DENIED));
    world.wait_gone(1);
    QCOMPARE(world.records->history(1).value()[0].why.code, std::string("work.class_denied"));
    // And one that comes all the same.
    const size_t next = world.add_unit({{8}});
    QCOMPARE(int(world.wait_returned(next).reason), int(GiveBack::DENIED));
    world.stop();
  }

  void a_pause_drops_the_stage_and_loses_nothing() {
    UnitWorld world(io_);
    world.add_unit(kStuck, kTroubled);
    world.add_unit({{9}});
    world.start();
    world.wait_items(1, 2);
    QVERIFY(world.agent->set_mode(Resource::kCpu, Mode::kPaused, {}).ok());
    // At once in the same turn; what was not begun goes back.
    world.wait_seen(1, [](const auto& seen) { return seen && seen->state == "ahead"; });
    QCOMPARE(int(world.wait_returned(2).reason), int(GiveBack::OWNER));
    world.wait_for_agent(
        [](rpc::Snapshot::Reader snapshot) { return snapshot.getYield().getCount() == 1; });
    // What is only kept is no reason to look each second.
    io_.waitScope.poll();
    world.timer.asked.clear();
    world.sensors.tell();
    io_.waitScope.poll();
    QVERIFY(!world.timer.asked.empty());
    QCOMPARE(world.timer.count(700 * kj::MILLISECONDS, 1'300 * kj::MILLISECONDS), 0);
    QVERIFY(world.returned(1) == nullptr);
    QVERIFY(world.kept()[0].outputs[1].done);
    world.contexts[0] = kCalm;
    world.coordinator.renewed.clear();
    QVERIFY(world.agent->resume(Resource::kCpu).ok());
    world.wait_submitted(1);
    QCOMPARE(world.coordinator.submitted[1], UnitWorld::truth(kStuck));
    QCOMPARE(world.coordinator.renewed[0].items_done, 2u);  // Asked first.
    world.stop();
  }

  void a_paused_unit_goes_back_before_its_lease_ends() {
    UnitWorld world(io_);
    world.coordinator.until_ms = 600'000;
    begin_stuck(world);
    QVERIFY(world.agent->set_mode(Resource::kCpu, Mode::kPaused, {}).ok());
    world.clock.advance(Millis{530'000});
    world.agent->judge();
    world.wait_seen(1, [](const auto& seen) { return seen.has_value(); });
    QVERIFY(world.returned(1) == nullptr);
    world.clock.advance(Millis{20'000});
    world.agent->judge();
    QCOMPARE(int(world.wait_returned(1).reason), int(GiveBack::OWNER));
    world.wait_gone(1);
    QCOMPARE(world.records->history(1).value()[0].why.code, std::string("unit.paused_too_long"));
    world.stop();
  }

  void a_session_goes_first_and_the_unit_goes_on_after_it() {
    UnitWorld world(io_);
    begin_stuck(world);
    {
      auto request = world.open_request({world.shard});
      const BoxPublicKey key =
          BoxPublicKey::from_bytes(world.coordinator.reports.back()[0].key).value();
      request.getLease().getSpec().getShards()[0].setSealedKey(
          rpc::kj_bytes(seal_to(key, as_bytes("key")).value()));
      rpc::Stage::Client stage = request.send().wait(io_.waitScope).getStage();
      world.wait_seen(1, [](const auto& seen) { return seen && seen->state == "ahead"; });
      auto step = stage.stepRequest();
      step.initInput().initTokens(1);
      step.getInput().initSequences(1);
      step.getInput().initPositions(1);
      step.send().wait(io_.waitScope);
      QVERIFY(!world.coordinator.submitted.contains(1));
    }
    // The same worker has its keys, so nothing need be handed out again; but its stage would hang.
    world.wait_seen(1, [](const auto& seen) { return seen && seen->state == "working"; });
    QVERIFY(world.returned(1) == nullptr);
    world.stop();
  }

  void a_measurement_goes_first_too() {
    UnitWorld world(io_);
    begin_stuck(world);
    (void)world.agent->measure("fake").promise().wait(io_.waitScope);
    world.wait_seen(1, [](const auto& seen) { return seen && seen->state == "working"; });
    QVERIFY(world.coordinator.given_back.empty());
    world.stop();
  }

  // As units follow units, there is never a moment without one.
  void a_setting_of_the_worker_acts_though_units_flow() {
    UnitWorld world(io_);
    begin_stuck(world);
    const auto pid = [&world](rpc::Snapshot::Reader snapshot) {
      return snapshot.getDevices()[0].getWorkerPid();
    };
    uint32_t before = 0;
    world.wait_for_agent([&](rpc::Snapshot::Reader snapshot) {
      before = pid(snapshot);
      return before != 0;
    });
    QVERIFY(world.agent->change_settings({{"worker.memory_bytes_max", int64_t{1} << 30}}).ok());
    world.wait_for_agent([&](rpc::Snapshot::Reader snapshot) {
      return pid(snapshot) != 0 && pid(snapshot) != before;
    });
    world.wait_submitted(1);
    QCOMPARE(world.coordinator.submitted[1], UnitWorld::truth(kStuck));
    QVERIFY(world.coordinator.given_back.empty());
    // The owner did not want it back, so this is no time that he waited.
    QCOMPARE(world.records->yields().size(), size_t(0));
    world.stop();
  }

  void a_folder_that_takes_nothing_is_told_and_the_work_goes_on() {
    UnitWorld world(io_);
    std::ofstream(world.dir / "units") << "no folder";
    world.add_unit(kStuck, kTroubled);
    world.start();
    world.wait_for_agent([](rpc::Snapshot::Reader snapshot) {
      for (const auto notice : snapshot.getNotices()) {
        if (notice.getCode() == "unit.not_stored") return true;
      }
      return false;
    });
    world.wait_items(1, 2);
    // Mended: the next one is stored, and the notice goes.
    std::filesystem::remove(world.dir / "units");
    QVERIFY(world.agent->set_mode(Resource::kCpu, Mode::kPaused, {}).ok());
    world.wait_for_agent(
        [](rpc::Snapshot::Reader snapshot) { return snapshot.getNotices().size() == 0; });
    QCOMPARE(world.kept().size(), size_t(1));
    world.stop();
  }

  void a_unit_is_handed_in_though_it_cannot_be_stored() {
    UnitWorld world(io_);
    std::ofstream(world.dir / "units") << "no folder";
    world.add_unit({{1, 2}});
    world.start();
    world.wait_submitted(1);
    QCOMPARE(world.coordinator.submitted[1], UnitWorld::truth({{1, 2}}));
    world.stop();
  }

  void clocks_that_jump_and_a_sleep_do_no_harm() {
    UnitWorld world(io_);
    begin_stuck(world);
    for (const int64_t days : {30, -60, 30}) {
      world.clock.advance_wall(Millis{days * 86'400'000});
      world.coordinator.renewed.clear();
      world.agent->judge();
      // A sleep, for all that it knows: it asks what still holds.
      if (days > 0) {
        world.coordinator.wait_until([&] { return !world.coordinator.renewed.empty(); });
      }
    }
    world.wait_seen(1, [](const auto& seen) { return seen && seen->state == "working"; });
    QVERIFY(world.coordinator.given_back.empty());
    world.stop();
  }

  void a_new_connection_is_asked_what_still_holds() {
    UnitWorld world(io_);
    begin_stuck(world);
    world.coordinator.renewed.clear();
    world.coordinator.drop_everyone();
    world.coordinator.listen();
    world.coordinator.wait_until([&] { return !world.coordinator.renewed.empty(); });
    QCOMPARE(world.coordinator.renewed[0].lease, uint64_t(1));
    QVERIFY(world.coordinator.renewed[0].running);  // It never stopped.
    world.stop();
  }

  void leaving_a_coordinator_gives_its_units_back() {
    UnitWorld world(io_);
    begin_stuck(world);
    (void)world.agent->detach(shown_url(world.coordinator.url())).promise().wait(io_.waitScope);
    QCOMPARE(int(world.wait_returned(1).reason), int(GiveBack::OWNER));
    QVERIFY(world.kept().empty());
    QCOMPARE(world.records->history(1).value()[0].why.code, std::string("unit.left"));
    world.stop();
  }

  void a_leave_by_time_takes_no_more_than_fits() {
    UnitWorld world(io_);
    for (int i = 0; i < 3; ++i) world.add_unit(kStuck, kTroubled);  // A minute each.
    world.start();
    world.wait_items(1, 2);
    world.wait_seen(3, [](const auto& seen) { return seen.has_value(); });
    QVERIFY(world.agent->set_leave_by(world.clock.now_wall() + Millis{100'000}).ok());
    QCOMPARE(int(world.wait_returned(3).reason), int(GiveBack::OWNER));
    QVERIFY(world.returned(1) == nullptr && world.returned(2) == nullptr);
    world.stop();
  }
};

QTEST_GUILESS_MAIN(UnitsTest)
#include "units_test.moc"
