// Goal: a session's text is the same whatever happens to its hosts, nothing hangs, and nothing
// leaks. Method: the real coordinator, fake hosts with a toy model over real RPC in one thread,
// virtual time.

#include <QTest>

#include <set>

#include "coordinator/session/kept_inputs.h"
#include "coordinator/work/stage_audit.h"
#include "tests/coordinator/faulty_vfs.h"
#include "tests/coordinator/unit_host.h"
#include "tests/coordinator/world.h"

using namespace shoal;
using namespace shoal::test;

namespace {

void with_checks(CoordinatorSettings& settings) {
  settings.session.audits_max = 4;
  settings.session.rows_max = 5;
}

void with_standbys(CoordinatorSettings& settings) { settings.session.standbys_max = 16; }

// The world, with a published model and so many hosts.
struct Scene {
  World world;
  explicit Scene(int hosts, std::function<void(CoordinatorSettings&)> adjust = {})
      : world(std::move(adjust)) {
    world.publish(make_toy_model("toy"));
    for (int i = 0; i < hosts; ++i) world.add_host("h" + std::to_string(i));
  }
  FakeHost& host_of_stage(const Generated& reference, size_t stage) {
    for (auto& host : world.hosts) {
      if (host->options.name == reference.hosts.at(stage)) return *host;
    }
    qFatal("no such host");
  }
  // Leases that its host was told are pending, and nothing later. What the toy's rows are worth
  // rounds to no credit at all.
  size_t pending_of(FakeHost& host) {
    std::set<LeaseId> pending;
    for (const Receipt& receipt : host.receipts()) {
      if (receipt.verdict == ReceiptVerdict::kPending) {
        pending.insert(receipt.lease);
      } else {
        pending.erase(receipt.lease);
      }
    }
    return pending.size();
  }
  static int count_in(const std::string& text, const std::string& what) {
    int count = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
      ++count;
    return count;
  }
  // A unit of a job that is to be handed out.
  void submit_job() {
    auto request = world.admin().submitJobRequest();
    request.setSpec(
        "name = \"one\"\n[[tasks]]\nname = \"write\"\nkind = \"generate\"\nmodel = \"toy\"\n"
        "input = \"prompts.jsonl\"\nmax_tokens = 12\n");
    auto begun =
        world.run(kj::Promise<capnp::Response<rpc::Admin::SubmitJobResults>>(request.send()));
    auto write = begun.getUpload().writeRequest();
    write.setBytes(rpc::kj_bytes(as_bytes("{\"id\": \"1\", \"prompt\": \"hello\"}\n")));
    world.run(write.send());
    world.run(begun.getUpload().finishRequest().send().ignoreResult());
  }
  int stages_open() {
    world.settle();
    int open = 0;
    for (auto& host : world.hosts) open += host->stages_open;
    return open;
  }
};

}  // namespace

class SessionTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_text_is_the_models();
  void every_cut_gives_the_same_text();
  void a_chat_is_put_by_the_models_template();
  void stops_at_the_models_end_unless_told_otherwise();
  void stops_when_the_context_is_full();
  void anchored_sessions_keep_their_ends_on_trusted_hosts();
  void trust_taken_back_in_mid_session_moves_the_ends();
  void refuses_what_cannot_be();
  void a_lost_host_changes_nothing_data();
  void a_lost_host_changes_nothing();
  void a_prompt_keeps_several_stages_busy();
  void a_host_lost_while_others_work_on_the_prompt_changes_nothing();
  void a_lie_found_while_others_work_on_the_prompt_is_undone();
  void a_call_dropped_in_the_midst_of_a_prompt_frees_everything();
  void a_host_that_is_killed_between_tokens_changes_nothing();
  void several_losses_at_once_and_in_repair_change_nothing();
  void a_host_may_come_back();
  void without_a_replacement_it_fails_in_time_and_says_why();
  void an_input_that_all_refuse_fails_the_session();
  void an_owners_no_fails_nobodys_session();
  void a_store_that_fails_at_the_end_pays_later();
  void a_liar_is_left_alone();
  void without_checks_a_wrong_unit_takes_nothing_of_live_sessions();
  void checks_and_standbys_are_off_at_first();
  void honest_stages_are_checked_and_confirmed_later();
  void a_liar_in_the_chain_is_named_data();
  void a_liar_in_the_chain_is_named();
  void a_lie_that_is_found_late_is_told_and_ends_the_liars_work();
  void a_liar_that_checks_is_named_itself();
  void without_a_trusted_host_two_outvote_one();
  void a_lie_inside_a_block_is_taken_back_from_where_it_begins();
  void two_liars_cost_no_honest_host_anything();
  void a_neighbour_of_a_liar_is_not_blamed_for_it();
  void a_liars_other_stages_are_looked_at();
  void a_finding_at_the_sessions_end_frees_the_check();
  void what_a_liar_did_is_rejected_at_once();
  void a_store_that_fails_in_a_check_pays_later();
  void units_that_nobody_could_take_stop_no_check();
  void a_check_gives_way();
  void a_check_leaves_a_device_that_its_owner_wants();
  void a_check_waits_for_one_who_could();
  void who_was_right_often_is_checked_seldom();
  void a_restart_in_a_check_costs_nobody_anything();
  void auditors_are_strangers_of_another_network_first();
  void three_answers_say_who_was_wrong();
  void a_loaded_standby_takes_over_without_opening();
  void a_standby_that_has_gone_is_replaced();
  void a_standby_follows_a_long_stream();
  void a_standby_that_answers_otherwise_is_not_paid();
  void a_standby_gives_way();
  void a_device_that_was_lent_has_time_to_make_room();
  void nobody_hands_over_to_one_who_leaves_as_well();
  void a_device_that_is_wanted_back_is_left_between_two_tokens_data();
  void a_device_that_is_wanted_back_is_left_between_two_tokens();
  void plans_use_what_steps_measured();
  void what_was_predicted_is_kept_beside_what_was_measured();
  void a_plan_says_what_would_be_and_why();
  void two_sessions_share_the_devices();
  void dropping_the_call_frees_everything();
  void a_restart_marks_what_was_running();
  void kept_inputs_spill_and_come_back();
  void a_spill_that_fails_fails_one_session();
  void nothing_stored_holds_the_prompt();
  void nothing_stored_holds_what_a_peer_says_of_tokens();
  void a_device_left_out_of_a_report_keeps_its_promises();
  void keys_leave_only_under_a_lease();
};

void SessionTest::the_text_is_the_models() {
  Scene scene(3);
  size_t tokens = 0;
  const Generated run = scene.world.generate({.on_token = [&](size_t count) { tokens = count; }});
  QCOMPARE(run.ids, toy_tokens(run.prompt_ids, 12, 5));
  QCOMPARE(run.streamed, run.ids);
  QCOMPARE(run.streamed_text, run.text);
  QCOMPARE(run.text.size(), size_t{12});
  QCOMPARE(tokens, size_t{12});
  QCOMPARE(run.finish_reason, std::string("length"));
  QCOMPARE(run.hosts.size(), size_t{3});
  QCOMPARE(std::set<std::string>(run.hosts.begin(), run.hosts.end()).size(), size_t{3});
  QVERIFY(run.failovers.empty());
  // Every position but the last token's crosses two cuts.
  const size_t positions = run.prompt_ids.size() + run.ids.size() - 1;
  QCOMPARE(run.relayed_bytes, uint64_t{positions * 2 * kToyWidth * 4});
  QCOMPARE(scene.stages_open(), 0);
  // Same seed, same text; another seed, another text.
  QCOMPARE(scene.world.generate({}).ids, run.ids);
  QVERIFY(scene.world.generate({.seed = 6}).ids != run.ids);
}

void SessionTest::every_cut_gives_the_same_text() {
  Scene scene(6);
  const Generated whole = scene.world.generate({.stages_min = 1});
  QCOMPARE(whole.hosts.size(), size_t{1});
  QCOMPARE(whole.relayed_bytes, uint64_t{0});
  for (uint32_t cut = 1; cut < kToyFragments; ++cut) {
    const Generated run = scene.world.generate({.stages_min = 0, .cuts = {cut}});
    QCOMPARE(run.ids, whole.ids);
    QCOMPARE(run.first_fragments, (std::vector<uint32_t>{0, cut}));
  }
  const Generated all = scene.world.generate({.cuts = {1, 2, 3, 4, 5}});
  QCOMPARE(all.ids, whole.ids);
  QCOMPARE(all.hosts.size(), size_t{6});
}

void SessionTest::a_chat_is_put_by_the_models_template() {
  Scene scene(3);
  World& world = scene.world;
  const Generated told = world.generate({.prompt = "system:be brief;user:who wrote this?;"});
  const Generated asked =
      world.generate({.prompt = "", .chat = {{"system", "be brief"}, {"user", "who wrote this?"}}});
  QCOMPARE(asked.prompt_ids, told.prompt_ids);
  QCOMPARE(asked.ids, told.ids);
  // What is said stays text: it ends nothing.
  const Generated marked = world.generate({.prompt = "", .chat = {{"user", "</s>"}}});
  QCOMPARE(std::ranges::count(marked.prompt_ids, kToyEos), 0);
  QCOMPARE(marked.prompt_ids.size(), size_t{1} + std::string("user:</s>;").size());
  QVERIFY(world.refusal_of({.prompt = "both", .chat = {{"user", "hi"}}}).find("only one of them") !=
          std::string::npos);
  QVERIFY(world.refusal_of({.prompt = "", .chat = {{std::string(300, 'r'), "hi"}}})
              .find("chat: role") != std::string::npos);
  QVERIFY(world.refusal_of({.prompt = "", .chat = {{"user", std::string(kToyContext, 'x')}}})
              .find("the model's context") != std::string::npos);
  const std::vector<std::pair<std::string, std::string>> many(4097, {"user", ""});
  QVERIFY(world.refusal_of({.prompt = "", .chat = many}).find("chat") != std::string::npos);
}

void SessionTest::stops_at_the_models_end_unless_told_otherwise() {
  Scene scene(3);
  const Generated run = scene.world.generate({.tokens_max = 100, .seed = kToyEosSeed});
  QCOMPARE(run.finish_reason, std::string("stop"));
  QCOMPARE(run.ids.back(), kToyEos);
  QCOMPARE(run.prompt_ids.size() + run.ids.size(), size_t{kToyEosPosition + 1});
  QCOMPARE(run.text.size(), run.ids.size() - 1);  // The mark itself is no text.
  const Generated on =
      scene.world.generate({.tokens_max = 40, .seed = kToyEosSeed, .ignore_eos = true});
  QCOMPARE(on.ids.size(), size_t{40});
  QCOMPARE(on.finish_reason, std::string("length"));
}

void SessionTest::stops_when_the_context_is_full() {
  Scene scene(3);
  const Generated run = scene.world.generate({.tokens_max = 10'000});
  QCOMPARE(run.finish_reason, std::string("length"));
  QCOMPARE(run.prompt_ids.size() + run.ids.size(), size_t{kToyContext + 1});
  QCOMPARE(run.ids, toy_tokens(run.prompt_ids, 10'000, 5));
  const std::string why = scene.world.refusal_of({.prompt = std::string(kToyContext, 'x')});
  QVERIFY2(why.find("context holds 200") != std::string::npos, why.c_str());
  QCOMPARE(scene.world.generate({.prompt = std::string(kToyContext - 1, 'x')}).ids.size(),
           size_t{1});
}

void SessionTest::anchored_sessions_keep_their_ends_on_trusted_hosts() {
  Scene scene(4);
  World& world = scene.world;
  std::string why = world.refusal_of({.anchored = true});
  QVERIFY2(why.find("trusted host") != std::string::npos, why.c_str());
  for (const size_t i : {size_t{1}, size_t{3}}) {
    auto request = world.admin().setHostStandingRequest();
    request.setHostId(world.hosts[i]->id);
    request.setStanding(rpc::HostInfo::Standing::TRUSTED);
    world.run(request.send().ignoreResult());
  }
  const Generated run = world.generate({.anchored = true});
  const std::set<std::string> ends = {run.hosts.front(), run.hosts.back()};
  QCOMPARE(ends, (std::set<std::string>{"h1", "h3"}));
  QVERIFY(run.hosts[1] == "h0" || run.hosts[1] == "h2");
  // A lost end moves to a trusted host only, here to the other one.
  FakeHost& tail = scene.host_of_stage(run, 2);
  const Generated again = world.generate({.anchored = true, .on_token = [&](size_t count) {
                                            if (count == 3) tail.kill();
                                          }});
  QCOMPARE(again.ids, run.ids);
  QCOMPARE(again.hosts.back(), again.hosts.front());
}

void SessionTest::trust_taken_back_in_mid_session_moves_the_ends() {
  Scene scene(4);
  World& world = scene.world;
  const auto set_standing = [&](size_t host, rpc::HostInfo::Standing standing) {
    auto request = world.admin().setHostStandingRequest();
    request.setHostId(world.hosts[host]->id);
    request.setStanding(standing);
    return request.send().ignoreResult();
  };
  world.run(set_standing(1, rpc::HostInfo::Standing::TRUSTED));
  world.run(set_standing(3, rpc::HostInfo::Standing::TRUSTED));
  const Generated before = world.generate({.anchored = true});
  const Generated run =
      world.generate({.anchored = true, .on_token = [&](size_t count) {
                        if (count == 3)
                          world.tasks().add(set_standing(1, rpc::HostInfo::Standing::VOLUNTEER));
                      }});
  QCOMPARE(run.ids, before.ids);
  QCOMPARE(run.hosts.front(), std::string("h3"));
  QCOMPARE(run.hosts.back(), std::string("h3"));
  QCOMPARE(run.failovers.size(), size_t{1});
  QCOMPARE(run.failovers.front().cause, std::string("its host is no longer trusted"));
}

void SessionTest::refuses_what_cannot_be() {
  Scene scene(2);
  World& world = scene.world;
  const auto refuses = [&](GenerateAsk ask, const char* because) {
    const std::string why = world.refusal_of(std::move(ask));
    if (why.find(because) == std::string::npos) qWarning("answered: %s", why.c_str());
    return why.find(because) != std::string::npos;
  };
  QVERIFY(refuses({.model = "none"}, "there is no model none"));
  QVERIFY(refuses({.stages_min = 3}, "3 stages were asked for, but only 2"));
  QVERIFY(refuses({.stages_min = 7}, "only 6 fragments"));
  QVERIFY(refuses({.cuts = {3, 2}}, "cut 2"));
  QVERIFY(refuses({.cuts = {6}}, "cut 6"));
  QVERIFY(refuses({.tokens_max = 0}, "maxTokens"));
  QVERIFY(refuses({.temperature = 0.001f}, "temperature"));
  QVERIFY(refuses({.temperature = std::numeric_limits<float>::quiet_NaN()}, "temperature"));
  QVERIFY(refuses({.repetition_penalty = 0}, "repetition_penalty"));
  QCOMPARE(world.generate({.stages_min = 2}).ids.size(), size_t{12});
  for (auto& host : world.hosts) host->kill();
  world.settle();
  QVERIFY(refuses({.stages_min = 1}, "no device is ready"));
}

void SessionTest::a_lost_host_changes_nothing_data() {
  QTest::addColumn<int>("stage");
  QTest::addColumn<int>("step");
  QTest::addColumn<int>("fault");
  QTest::addColumn<QString>("cause");
  const struct {
    const char* name;
    Fault fault;
    const char* cause;
  } kFaults[] = {{"drop", Fault::kDrop, "connection lost"},
                 {"hang", Fault::kHang, "no answer in time"},
                 {"stall", Fault::kStall, "no answer in time"},
                 {"refuse", Fault::kRefuse, "refused"},
                 {"short", Fault::kShort, "wrong size"},
                 {"non-finite", Fault::kNonFinite, "not finite"},
                 {"token", Fault::kToken, "beyond the vocabulary"}};
  for (const auto& fault : kFaults) {
    for (int stage = 0; stage < 3; ++stage) {
      const bool for_hidden = fault.fault == Fault::kShort || fault.fault == Fault::kNonFinite;
      if ((for_hidden && stage == 2) || (fault.fault == Fault::kToken && stage != 2)) continue;
      // Steps 0 to 2 are the prompt's chunks, then come the tokens.
      for (const int step : {0, 1, 2, 3, 8, 13}) {
        if (fault.fault == Fault::kToken && step < 2) continue;  // Nothing is drawn yet.
        // Before its first step a stage gets more time than a host may be silent.
        const bool silent_first = fault.fault == Fault::kHang && step == 0;
        const std::string name = std::string(fault.name) + ", stage " + std::to_string(stage) +
                                 ", step " + std::to_string(step);
        QTest::newRow(name.c_str()) << stage << step << int(fault.fault)
                                    << QString(silent_first ? "connection lost" : fault.cause);
      }
    }
  }
}

void SessionTest::a_lost_host_changes_nothing() {
  QFETCH(int, stage);
  QFETCH(int, step);
  QFETCH(int, fault);
  QFETCH(QString, cause);
  Scene scene(4, [](CoordinatorSettings& settings) { settings.session.rows_max = 5; });
  const Generated reference = scene.world.generate({});
  QCOMPARE(reference.prompt_ids.size(), size_t{14});  // Three chunks.
  FakeHost& victim = scene.host_of_stage(reference, static_cast<size_t>(stage));
  victim.fault = static_cast<Fault>(fault);
  victim.fault_at_step = step;
  const Generated run = scene.world.generate({});
  QCOMPARE(run.ids, reference.ids);
  QCOMPARE(run.text, reference.text);
  QCOMPARE(run.streamed, run.ids);
  QCOMPARE(run.failovers.size(), size_t{1});
  QCOMPARE(run.streamed_failovers.size(), size_t{1});
  QCOMPARE(run.failovers[0].stage, static_cast<uint32_t>(stage));
  QCOMPARE(run.failovers[0].at_token, static_cast<uint32_t>(std::max(step - 2, 0)));
  QVERIFY2(QString::fromStdString(run.failovers[0].cause).contains(cause),
           run.failovers[0].cause.c_str());
  QVERIFY(run.failovers[0].replacement != victim.options.name);
  QVERIFY2(run.failovers[0].gap_ms <= 10'500, qPrintable(QString::number(run.failovers[0].gap_ms)));
  if (victim.fault != Fault::kHang && victim.fault != Fault::kStall)
    QVERIFY(run.failovers[0].gap_ms < 500);
  QCOMPARE(scene.stages_open(), 0);
}

// Goal: a stage gets its next block while later stages are still at the one before. Method: a stage
// answers no block of the prompt before the stage ahead of it has been asked for the next one, so
// one block at a time would never end.
void SessionTest::a_prompt_keeps_several_stages_busy() {
  Scene scene(3, [](CoordinatorSettings& settings) { settings.session.rows_max = 5; });
  World& world = scene.world;
  const Generated reference = world.generate({});
  QCOMPARE(reference.prompt_ids.size(), size_t{14});  // Three blocks.
  constexpr uint32_t kLastBlock = 10;
  std::array<std::set<uint32_t>, 3> asked;
  struct Wait {
    size_t stage;
    uint32_t first;
    kj::Own<kj::PromiseFulfiller<void>> end;
  };
  std::vector<Wait> waits;
  for (size_t stage = 0; stage < 3; ++stage) {
    scene.host_of_stage(reference, stage).before_answer =
        [&, stage](uint32_t first) -> kj::Promise<void> {
      asked[stage].insert(first);
      for (Wait& wait : waits) {
        if (wait.stage == stage && wait.first == first) wait.end->fulfill();
      }
      if (stage == 0 || first >= kLastBlock || asked[stage - 1].contains(first + 5)) {
        return kj::READY_NOW;
      }
      auto pair = kj::newPromiseAndFulfiller<void>();
      waits.push_back({stage - 1, first + 5, kj::mv(pair.fulfiller)});
      return kj::mv(pair.promise);
    };
  }
  const Generated run = world.generate({});
  QCOMPARE(run.ids, reference.ids);
  QCOMPARE(run.hosts, reference.hosts);
  QVERIFY(run.failovers.empty());
  QCOMPARE(run.relayed_bytes, reference.relayed_bytes);
  for (const std::set<uint32_t>& firsts : asked) {
    QVERIFY(firsts.contains(0) && firsts.contains(5) && firsts.contains(kLastBlock));
  }
}

// Goal: as above, whichever stage is lost at whichever block, and when two are lost at once.
void SessionTest::a_host_lost_while_others_work_on_the_prompt_changes_nothing() {
  const std::string prompt = "a prompt of several blocks, in which hosts leave";
  for (const auto& [stage, block, two] :
       {std::tuple(0, 0, false), std::tuple(0, 4, false), std::tuple(1, 4, false),
        std::tuple(2, 1, false), std::tuple(2, 9, false), std::tuple(0, 4, true),
        std::tuple(1, 3, true)}) {
    Scene scene(6, [](CoordinatorSettings& settings) { settings.session.rows_max = 5; });
    World& world = scene.world;
    const Generated reference = world.generate({.prompt = prompt});
    QVERIFY(reference.prompt_ids.size() > 45);  // Ten blocks.
    for (auto& host : world.hosts) host->step_ms = 20;
    // So that there is always something ahead of it and behind it.
    scene.host_of_stage(reference, 1).step_ms = 30;
    FakeHost& victim = scene.host_of_stage(reference, static_cast<size_t>(stage));
    victim.fault = Fault::kDrop;
    victim.fault_at_step = block;
    FakeHost& next = scene.host_of_stage(reference, static_cast<size_t>((stage + 1) % 3));
    if (two) {
      next.fault = Fault::kDrop;
      next.fault_at_step = block - 1;
    }
    const Generated run = world.generate({.prompt = prompt});
    const std::string name = "stage " + std::to_string(stage) + ", block " + std::to_string(block);
    QVERIFY2(run.ids == reference.ids, name.c_str());
    QVERIFY2(run.failovers.size() == (two ? 2 : 1), name.c_str());
    QVERIFY2(run.failovers[0].at_token == 0, name.c_str());
    QCOMPARE(scene.stages_open(), 0);
  }
}

// Goal: what a check finds while a prompt is still on its way is undone in all stages, those that
// are ahead of it as well, and nothing wrong was sent.
void SessionTest::a_lie_found_while_others_work_on_the_prompt_is_undone() {
  for (const auto& [stage, tail_ms] : {std::pair(0, 40), std::pair(1, 40), std::pair(1, 200)}) {
    Scene scene(6, with_checks);
    World& world = scene.world;
    for (size_t i = 0; i < 3; ++i) world.hosts[i]->options.bytes_per_second = 4e9;
    for (auto& host : world.hosts) host->report();
    world.trust(*world.hosts[5]);
    const GenerateAsk ask{.prompt = std::string(120, 'p')};
    const Generated reference = world.generate(ask);
    world.pass_time(Millis{20'000});
    FakeHost& liar = scene.host_of_stage(reference, static_cast<size_t>(stage));
    liar.lies_from = 7;
    for (auto& host : world.hosts) host->step_ms = 40;
    scene.host_of_stage(reference, 2).step_ms = static_cast<uint64_t>(tail_ms);
    const Generated run = world.generate(ask);
    QCOMPARE(run.ids, reference.ids);
    QCOMPARE(run.streamed, run.ids);
    QCOMPARE(run.failovers.size(), size_t{1});
    QCOMPARE(run.failovers[0].at_token, 0u);
    world.pass_time(Millis{30'000});
    QCOMPARE(scene.count_in(world.events_text(), "liar_found"), 1);
    for (auto& host : world.hosts) QCOMPARE(scene.pending_of(*host), size_t{0});
    QCOMPARE(scene.stages_open(), 0);
  }
}

void SessionTest::a_call_dropped_in_the_midst_of_a_prompt_frees_everything() {
  Scene scene(3, [](CoordinatorSettings& settings) { settings.session.rows_max = 5; });
  for (auto& host : scene.world.hosts) host->step_ms = 50;
  {
    kj::Promise<Generated> running =
        scene.world.generate_promise({.prompt = std::string(100, 'p')});
    scene.world.pass_time(Millis{400});
    QCOMPARE(scene.stages_open(), 3);
  }
  scene.world.pass_time(Millis{200});
  QCOMPARE(scene.stages_open(), 0);
  for (auto& host : scene.world.hosts) host->step_ms = 0;
  const Generated run = scene.world.generate({});
  QCOMPARE(run.ids, toy_tokens(run.prompt_ids, 12, 5));
}

void SessionTest::a_host_that_is_killed_between_tokens_changes_nothing() {
  Scene scene(4);
  const Generated reference = scene.world.generate({});
  for (size_t stage = 0; stage < 3; ++stage) {
    for (const size_t at : {size_t{1}, size_t{6}, size_t{11}, size_t{12}}) {
      // What was measured meanwhile may have changed the plan.
      const Generated planned = scene.world.generate({});
      FakeHost& victim = scene.host_of_stage(planned, stage);
      const Generated run = scene.world.generate({.on_token = [&](size_t count) {
        if (count == at) victim.kill();
      }});
      QCOMPARE(run.ids, reference.ids);
      QCOMPARE(run.failovers.size(), size_t{at < 12 ? 1u : 0u});
      victim.connect();
    }
  }
}

void SessionTest::several_losses_at_once_and_in_repair_change_nothing() {
  Scene scene(8);
  const Generated reference = scene.world.generate({});
  // Two at once.
  Generated run = scene.world.generate({.on_token = [&](size_t count) {
    if (count != 4) return;
    scene.host_of_stage(reference, 0).kill();
    scene.host_of_stage(reference, 2).kill();
  }});
  QCOMPARE(run.ids, reference.ids);
  QCOMPARE(run.failovers.size(), size_t{2});
  // All at once, and the first replacements fail in turn while they are given the inputs again.
  for (auto& host : scene.world.hosts) {
    if (!host->connected()) host->connect();
  }
  const Generated second = scene.world.generate({});
  std::set<std::string> used(second.hosts.begin(), second.hosts.end());
  int faulty = 0;
  for (auto& host : scene.world.hosts) {
    if (used.contains(host->options.name) || faulty == 3) continue;
    host->fault = Fault::kDrop;
    host->fault_at_step = 0;
    host->steps = 0;
    ++faulty;
  }
  run = scene.world.generate({.on_token = [&](size_t count) {
    if (count != 7) return;
    for (size_t stage = 0; stage < 3; ++stage) scene.host_of_stage(second, stage).kill();
  }});
  QCOMPARE(run.ids, reference.ids);
  QVERIFY(run.failovers.size() >= 3);
  QCOMPARE(scene.stages_open(), 0);
}

void SessionTest::a_host_may_come_back() {
  Scene scene(3);
  const Generated reference = scene.world.generate({});
  FakeHost& victim = scene.host_of_stage(reference, 1);
  // With nobody else there: the other two have no room for another stage.
  for (auto& host : scene.world.hosts) {
    host->options.memory = 3'000'000;
    host->report();
  }
  const Generated tight = scene.world.generate({});
  QCOMPARE(tight.hosts.size(), size_t{3});
  FakeHost& lost = scene.host_of_stage(tight, 1);
  kj::Promise<Generated> running = scene.world.generate_promise({.on_token = [&](size_t count) {
    if (count == 5) lost.kill();
  }});
  scene.world.pass_time(Millis{5'000});
  lost.connect();
  const Generated run = scene.world.run(kj::mv(running));
  QCOMPARE(run.ids, reference.ids);
  QCOMPARE(run.failovers.size(), size_t{1});
  QCOMPARE(run.failovers[0].replacement, lost.options.name);
  QVERIFY(run.failovers[0].gap_ms >= 4'900 && run.failovers[0].gap_ms < 6'000);
  Q_UNUSED(victim);
}

void SessionTest::without_a_replacement_it_fails_in_time_and_says_why() {
  Scene scene(3);
  scene.world.generate({});
  const Millis before = scene.world.clock.now_monotonic();
  const std::string why = scene.world.refusal_of({.on_token = [&](size_t count) {
    if (count != 5) return;
    for (auto& host : scene.world.hosts) host->kill();
  }});
  QVERIFY2(why.find("no device could take fragments") != std::string::npos, why.c_str());
  QVERIFY2(why.find("connection lost") != std::string::npos, why.c_str());
  const Millis took = scene.world.clock.now_monotonic() - before;
  QVERIFY(took >= Millis{20'000} && took < Millis{22'000});
  auto request = scene.world.admin().listSessionsRequest();
  request.setEndedMax(1);
  const auto response = scene.world.run(
      kj::Promise<capnp::Response<rpc::Admin::ListSessionsResults>>(request.send()));
  QCOMPARE(response.getSessions().size(), 1u);
  QCOMPARE(std::string(response.getSessions()[0].getState().cStr()), std::string("failed"));
  QCOMPARE(response.getSessions()[0].getTokens(), 5u);
}

void SessionTest::an_input_that_all_refuse_fails_the_session() {
  Scene scene(4);
  for (auto& host : scene.world.hosts) {
    host->fault = Fault::kRefuse;
    host->fault_at_step = 0;
  }
  const std::string why = scene.world.refusal_of({});
  QVERIFY2(why.find("several devices refused") != std::string::npos, why.c_str());
  QVERIFY2(why.find("infinity") != std::string::npos, why.c_str());
  // A device that only will not open a stage is passed over.
  for (auto& host : scene.world.hosts) host->fault = Fault::kNone;
  scene.world.hosts[0]->fault = Fault::kNoOpen;
  const Generated run = scene.world.generate({});
  QCOMPARE(run.ids, toy_tokens(run.prompt_ids, 12, 5));
  QVERIFY(run.failovers.empty());
  // When none opens, the reason is the device's own.
  for (auto& host : scene.world.hosts) host->fault = Fault::kNoOpen;
  const std::string none = scene.world.refusal_of({});
  QVERIFY2(none.find("no room on this device") != std::string::npos, none.c_str());
}

void SessionTest::an_owners_no_fails_nobodys_session() {
  Scene scene(5);
  const Generated reference = scene.world.generate({});
  // As many as would put the blame on the input.
  int denying = 0;
  for (size_t stage = 0; stage < 2; ++stage) {
    scene.host_of_stage(reference, stage).fault = Fault::kDeny;
    ++denying;
  }
  const Generated run = scene.world.generate({});
  QCOMPARE(denying, 2);
  QCOMPARE(run.ids, reference.ids);
  for (const std::string& host : run.hosts) {
    QVERIFY(host != reference.hosts[0] && host != reference.hosts[1]);
  }
  const std::string events = scene.world.events_text();
  QVERIFY(events.find("stage_given_back") != std::string::npos);
  QVERIFY(events.find("stage_not_opened") == std::string::npos);
}

// Goal: a full disk at the end of a session costs no host what it earned.
void SessionTest::a_store_that_fails_at_the_end_pays_later() {
  Scene scene(3);
  scene.world.stop();
  scene.world.store_vfs = faulty_vfs();
  fail_writes_after(-1);
  scene.world.start();
  for (auto& host : scene.world.hosts) host->connect();
  const Generated run = scene.world.generate({.on_token = [](size_t count) {
    if (count == 12) fail_writes_after(0);
  }});
  QCOMPARE(run.ids.size(), size_t{12});
  for (auto& host : scene.world.hosts) QVERIFY(host->receipts().empty());
  scene.world.pass_time(Millis{5'000});
  for (auto& host : scene.world.hosts) QVERIFY(host->receipts().empty());
  fail_writes_after(-1);
  scene.world.pass_time(Millis{5'000});
  for (auto& host : scene.world.hosts) {
    const std::vector<Receipt> receipts = host->receipts();
    QCOMPARE(receipts.size(), size_t{1});  // Once.
    QCOMPARE(receipts[0].verdict, ReceiptVerdict::kConfirmed);
    QVERIFY(receipts[0].rows > 0);
  }
}

void SessionTest::a_liar_is_left_alone() {
  Scene scene(4);
  const Generated reference = scene.world.generate({});
  FakeHost& liar = scene.host_of_stage(reference, 0);
  liar.fault = Fault::kNonFinite;
  liar.fault_at_step = 2;
  const Generated run = scene.world.generate({.on_token = [&](size_t count) {
    // Now the liar is the only one without a stage; it is not taken, the other stages' devices are.
    if (count == 8) scene.host_of_stage(reference, 1).kill();
  }});
  QCOMPARE(run.ids, reference.ids);
  QCOMPARE(run.failovers.size(), size_t{2});
  for (const auto& failover : run.failovers) QVERIFY(failover.replacement != liar.options.name);
}

// Goal: where nothing of streams is checked, a unit's check says nothing of them: what was answered
// stays answered and is paid. The host only gets no new stage.
void SessionTest::without_checks_a_wrong_unit_takes_nothing_of_live_sessions() {
  Scene scene(3, [](CoordinatorSettings& settings) {
    settings.jobs.rules.ask_again_min = Millis{20};
    settings.jobs.rules.ask_again_max = Millis{200};
    settings.jobs.rules.gather = Millis{100};
  });
  World& world = scene.world;
  FakeHost& worker = *world.hosts[0];
  worker.options.devices = {"cpu", "gpu"};
  worker.options.bytes_per_second = 4e9;
  worker.report();
  world.trust(*world.hosts[2]);
  const Generated reference = world.generate({.tokens_max = 60, .stages_min = 1});
  QCOMPARE(reference.hosts[0], std::string("h0"));
  worker.step_ms = 200;
  kj::Promise<Generated> running = world.generate_promise({.tokens_max = 60, .stages_min = 1});
  world.pass_time(Millis{500});
  QCOMPARE(worker.stages_open, 1);
  scene.submit_job();
  UnitHost liar(worker), other(*world.hosts[1]), judge(*world.hosts[2]);
  liar.lies = true;
  std::string why;
  for (int i = 0; i < 50 && why != "batch.quarantined"; ++i) {
    const GotUnits got = liar.lease(600, 4, "gpu");
    why = got.why;
    for (const GotUnit& unit : got.units) liar.submit(unit);
    if (i > 5) {
      other.work();
      judge.work();
    }
    world.pass_time(Millis{50});
  }
  QCOMPARE(why, std::string("batch.quarantined"));
  QCOMPARE(worker.stages_open, 1);
  const Generated run = world.run(kj::mv(running));
  QCOMPARE(run.ids, reference.ids);
  QVERIFY(run.failovers.empty());
  QCOMPARE(run.hosts, reference.hosts);
  int confirmed = 0;
  for (const Receipt& receipt : worker.receipts()) {
    if (receipt.verdict == ReceiptVerdict::kRejected) {
      QCOMPARE(receipt.reason, std::string("batch.wrong_result"));
    } else if (receipt.verdict == ReceiptVerdict::kConfirmed) {
      ++confirmed;
    }
  }
  QCOMPARE(confirmed, 2);  // Each session's stage.
  worker.step_ms = 0;
  QVERIFY(world.generate({.stages_min = 1}).hosts[0] != "h0");
}

void SessionTest::checks_and_standbys_are_off_at_first() {
  const TempDir folder;
  QVERIFY(write_file_durably(folder / "coordinator.toml", {}).ok());
  const SessionOptions read = load_coordinator_settings(folder.path()).value().session;
  const SessionOptions made;
  QCOMPARE(read.audits_max, int64_t{0});
  QCOMPARE(read.standbys_max, int64_t{0});
  QCOMPARE(made.audits_max, read.audits_max);
  QCOMPARE(made.standbys_max, read.standbys_max);
}

// Goal: a check changes nothing for those who are honest but when they are paid, and the one who
// checks is paid as well.
void SessionTest::honest_stages_are_checked_and_confirmed_later() {
  Scene scene(5, with_checks);
  const Generated run = scene.world.generate({});
  QCOMPARE(run.ids, toy_tokens(run.prompt_ids, 12, 5));
  const size_t positions = run.prompt_ids.size() + run.ids.size() - 1;
  QCOMPARE(run.relayed_bytes, uint64_t{positions * 2 * kToyWidth * 4});  // Without the checks'.
  for (size_t stage = 0; stage < 3; ++stage) {
    const std::vector<Receipt> receipts = scene.host_of_stage(run, stage).receipts();
    QVERIFY(!receipts.empty());
    QCOMPARE(receipts[0].verdict, ReceiptVerdict::kPending);
  }
  scene.world.pass_time(Millis{10'000});
  uint64_t rows = 0;
  for (auto& host : scene.world.hosts) {
    QCOMPARE(scene.pending_of(*host), size_t{0});
    for (const Receipt& receipt : host->receipts()) {
      QVERIFY(receipt.verdict != ReceiptVerdict::kRejected);
      if (receipt.verdict == ReceiptVerdict::kConfirmed) rows += receipt.rows;
    }
  }
  QCOMPARE(rows, uint64_t{2 * 3 * positions});  // Each stage twice.
  const std::string events = scene.world.events_text();
  QVERIFY(events.find("check_differs") == std::string::npos);
  QVERIFY(events.find("liar_found") == std::string::npos);
  QCOMPARE(scene.stages_open(), 0);
}

void SessionTest::a_liar_in_the_chain_is_named_data() {
  QTest::addColumn<int>("stage");
  QTest::addColumn<int>("from");
  for (int stage = 0; stage < 3; ++stage) {
    // In the prompt, at the first token, and later on.
    for (const int from : {3, 13, 14, 25}) {
      const std::string name = "stage " + std::to_string(stage) + " from " + std::to_string(from);
      QTest::newRow(name.c_str()) << stage << from;
    }
  }
}

// Goal: the session of a liar ends with the right text, and says what was wrong. Method: steps that
// take time, so that a check follows the stream.
void SessionTest::a_liar_in_the_chain_is_named() {
  QFETCH(int, stage);
  QFETCH(int, from);
  Scene scene(6, with_checks);
  // The fastest are planned; the trusted one, of the others, is there to judge.
  for (size_t i = 0; i < 3; ++i) scene.world.hosts[i]->options.bytes_per_second = 4e9;
  for (auto& host : scene.world.hosts) host->report();
  scene.world.trust(*scene.world.hosts[5]);
  const Generated reference = scene.world.generate({.tokens_max = 40});
  scene.world.pass_time(Millis{10'000});
  FakeHost& liar = scene.host_of_stage(reference, static_cast<size_t>(stage));
  QVERIFY(!scene.world.hosts[5]->steps || &liar != scene.world.hosts[5].get());
  liar.lies_from = from;
  for (auto& host : scene.world.hosts) host->step_ms = 20;
  const Generated run = scene.world.generate({.tokens_max = 40});
  QCOMPARE(run.ids, reference.ids);
  QCOMPARE(run.text, reference.text);
  QCOMPARE(run.failovers.size(), size_t{1});
  QCOMPARE(run.failovers[0].stage, static_cast<uint32_t>(stage));
  // What was sent up to where the text was taken up again is right, and then all of it.
  const size_t good = run.failovers[0].at_token;
  const size_t wrong = run.streamed.size() - run.ids.size();
  QVERIFY(good <= static_cast<size_t>(std::max(from - 13, 0)));
  const std::string cause = run.failovers[0].cause;
  QVERIFY2(cause.find("a check found wrong answers") == 0, cause.c_str());
  QCOMPARE(cause.find("sent") != std::string::npos, wrong > 0);
  if (wrong > 1) {
    QVERIFY2(cause.find("the last " + std::to_string(wrong) + " tokens") != std::string::npos,
             cause.c_str());
  }
  for (size_t i = 0; i < good; ++i) QCOMPARE(run.streamed[i], run.ids[i]);
  for (size_t i = good; i < run.ids.size(); ++i) QCOMPARE(run.streamed[i + wrong], run.ids[i]);
  scene.world.pass_time(Millis{30'000});
  const std::string events = scene.world.events_text();
  QCOMPARE(scene.count_in(events, "liar_found"), 1);
  QVERIFY2(events.find(": " + liar.options.name + " cpu answered wrongly from position " +
                       std::to_string(stage == 2 ? std::max(from, 13) : from) + " on") !=
               std::string::npos,
           events.c_str());
  for (auto& host : scene.world.hosts) {
    QCOMPARE(scene.pending_of(*host), size_t{0});
    bool rejected = false;
    for (const Receipt& receipt : host->receipts()) {
      rejected |= receipt.verdict == ReceiptVerdict::kRejected;
    }
    QCOMPARE(rejected, host.get() == &liar);
  }
  QCOMPARE(scene.stages_open(), 0);
  QVERIFY(events.find(run.text) == std::string::npos);
}

void SessionTest::a_lie_that_is_found_late_is_told_and_ends_the_liars_work() {
  Scene scene(6, with_checks);
  scene.world.trust(*scene.world.hosts[5]);
  const Generated reference = scene.world.generate({});
  scene.world.pass_time(Millis{10'000});
  FakeHost& liar = scene.host_of_stage(reference, 1);
  liar.lies_from = 20;
  const Generated run = scene.world.generate({});
  QVERIFY(run.ids != reference.ids);  // Nothing takes time here: it is over before it is checked.
  QVERIFY(run.failovers.empty());
  scene.world.pass_time(Millis{10'000});
  const std::string events = scene.world.events_text();
  QCOMPARE(scene.count_in(events, "liar_found"), 1);
  QVERIFY2(events.find(liar.options.name + " cpu answered wrongly from position 20 on") !=
               std::string::npos,
           events.c_str());
  QVERIFY2(events.find("the last 5 tokens of the session's answer, which has been given, are "
                       "wrong") != std::string::npos,
           events.c_str());
  QCOMPARE(liar.receipts().back().verdict, ReceiptVerdict::kRejected);
  QCOMPARE(liar.receipts().back().reason, std::string("credit.wrong_answer"));
  // It gets no work for a day.
  const int opened = liar.stages_opened;
  QCOMPARE(scene.world.generate({}).ids, reference.ids);
  scene.world.pass_time(Millis{10'000});
  QCOMPARE(liar.stages_opened, opened);
}

void SessionTest::a_liar_that_checks_is_named_itself() {
  Scene scene(5, with_checks);
  for (size_t i = 0; i < 3; ++i) scene.world.hosts[i]->options.bytes_per_second = 4e9;
  for (auto& host : scene.world.hosts) host->report();
  const Generated reference = scene.world.generate({});
  scene.world.pass_time(Millis{10'000});
  for (const std::string& name : reference.hosts) QVERIFY(name < "h3");
  // Only it is free to check, and the trusted one.
  FakeHost& liar = *scene.world.hosts[3];
  liar.lies_from = 6;
  scene.world.trust(*scene.world.hosts[4]);
  for (int i = 0; i < 8; ++i) {
    QCOMPARE(scene.world.generate({}).ids, reference.ids);
    scene.world.pass_time(Millis{10'000});
  }
  const std::string events = scene.world.events_text();
  // It may have checked two stages before the first finding.
  QVERIFY(scene.count_in(events, "liar_found") >= 1);
  QCOMPARE(scene.count_in(events, "liar_found"),
           scene.count_in(events, "h3, which was to check it"));
  QVERIFY2(
      events.find("h3, which was to check it, answered wrongly at position ") != std::string::npos,
      events.c_str());
  for (auto& host : scene.world.hosts) {
    QCOMPARE(scene.pending_of(*host), size_t{0});
    for (const Receipt& receipt : host->receipts()) {
      if (host.get() != &liar) QVERIFY(receipt.verdict != ReceiptVerdict::kRejected);
    }
  }
}

void SessionTest::without_a_trusted_host_two_outvote_one() {
  Scene scene(6, with_checks);
  const Generated reference = scene.world.generate({});
  scene.world.pass_time(Millis{10'000});
  FakeHost& liar = scene.host_of_stage(reference, 0);
  liar.lies_from = 9;
  scene.world.generate({});
  scene.world.pass_time(Millis{10'000});
  const std::string events = scene.world.events_text();
  QVERIFY2(events.find(liar.options.name + " cpu answered wrongly from position 9 on") !=
               std::string::npos,
           events.c_str());
  QCOMPARE(scene.count_in(events, "liar_found"), 1);
}

// Goal: a lie is undone though later stages have not come to its rows yet.
void SessionTest::a_lie_inside_a_block_is_taken_back_from_where_it_begins() {
  Scene scene(6, with_checks);
  for (size_t i = 0; i < 3; ++i) scene.world.hosts[i]->options.bytes_per_second = 4e9;
  for (auto& host : scene.world.hosts) host->report();
  scene.world.trust(*scene.world.hosts[5]);
  const Generated reference = scene.world.generate({});
  scene.world.pass_time(Millis{10'000});
  FakeHost& liar = scene.host_of_stage(reference, 0);
  liar.lies_from = 7;
  scene.host_of_stage(reference, 1).step_ms = 1'500;
  const Generated run = scene.world.generate({});
  QCOMPARE(run.ids, reference.ids);
  QCOMPARE(run.streamed, run.ids);
  QVERIFY(run.hosts[0] != liar.options.name);
  scene.world.pass_time(Millis{10'000});
  QCOMPARE(scene.count_in(scene.world.events_text(), "liar_found"), 1);
  QCOMPARE(scene.stages_open(), 0);
}

// Goal: what one finding takes back is no proof in another dispute. Method: one judge for two
// disputes, so that one of them waits.
void SessionTest::two_liars_cost_no_honest_host_anything() {
  for (const char* const prompt : {"hello there", "another one", "a third one", "and so on"}) {
    Scene scene(8, with_checks);
    for (size_t i = 0; i < 3; ++i) scene.world.hosts[i]->options.bytes_per_second = 4e9;
    for (auto& host : scene.world.hosts) host->report();
    const Generated reference = scene.world.generate({.prompt = prompt, .tokens_max = 40});
    scene.world.pass_time(Millis{10'000});
    scene.world.trust(*scene.world.hosts[7]);
    FakeHost& first = scene.host_of_stage(reference, 0);
    FakeHost& second = scene.host_of_stage(reference, 1);
    first.lies_from = second.lies_from = 20;
    for (auto& host : scene.world.hosts) host->step_ms = 20;
    const size_t before[] = {first.receipts().size(), second.receipts().size()};
    const Generated run = scene.world.generate({.prompt = prompt, .tokens_max = 40});
    scene.world.pass_time(Millis{30'000});
    QCOMPARE(run.ids, reference.ids);
    QVERIFY(first.receipts().size() > before[0]);  // Both have worked in it.
    QVERIFY(second.receipts().size() > before[1]);
    const std::string events = scene.world.events_text();
    QVERIFY2(events.find("which was to check it") == std::string::npos, events.c_str());
    for (auto& host : scene.world.hosts) {
      QCOMPARE(scene.pending_of(*host), size_t{0});
      if (host.get() == &first || host.get() == &second) continue;
      for (const Receipt& receipt : host->receipts()) {
        QVERIFY(receipt.verdict != ReceiptVerdict::kRejected);
      }
    }
  }
}

// Goal: when a liar is checked by one who lies as it does, the honest host that took over from it
// is not the one who is blamed.
void SessionTest::a_neighbour_of_a_liar_is_not_blamed_for_it() {
  Scene scene(4, with_checks);
  World& world = scene.world;
  FakeHost &liar = *world.hosts[0], &heir = *world.hosts[1], &friend_of_liar = *world.hosts[2],
           &judge = *world.hosts[3];
  liar.options.bytes_per_second = 8e9;
  heir.options.bytes_per_second = 4e9;
  judge.options.state = rpc::DeviceReport::State::PAUSED;
  for (auto& host : world.hosts) host->report();
  world.trust(judge);
  liar.lies_from = friend_of_liar.lies_from = 0;
  const Generated run = world.generate({.stages_min = 1, .on_token = [&](size_t count) {
                                          if (count == 3) liar.kill();
                                        }});
  QCOMPARE(run.hosts[0], heir.options.name);
  world.pass_time(Millis{5'000});
  QVERIFY(world.events_text().find("h1 and h2 differ") != std::string::npos);
  judge.options.state = rpc::DeviceReport::State::READY;
  judge.report();
  world.pass_time(Millis{10'000});
  const std::string events = world.events_text();
  QVERIFY2(events.find("h0 cpu answered wrongly from position 13") != std::string::npos,
           events.c_str());
  QVERIFY2(events.find("h2, which was to check it") != std::string::npos, events.c_str());
  QCOMPARE(scene.count_in(events, "liar_found"), 2);
  for (const Receipt& receipt : heir.receipts()) {
    QVERIFY(receipt.verdict != ReceiptVerdict::kRejected);
  }
  QCOMPARE(scene.pending_of(heir), size_t{0});
}

void SessionTest::a_liars_other_stages_are_looked_at() {
  Scene scene(4, with_checks);
  World& world = scene.world;
  FakeHost& liar = *world.hosts[0];
  liar.options.devices = {"cpu", "gpu"};
  liar.options.bytes_per_second = 4e9;
  liar.report();
  world.trust(*world.hosts[3]);
  liar.lies_from = 15;
  const Generated run = world.generate({.stages_min = 2});
  QCOMPARE(run.hosts, (std::vector<std::string>{"h0", "h0"}));
  world.pass_time(Millis{20'000});
  const std::string events = world.events_text();
  QVERIFY(events.find("h0 cpu answered wrongly from position 15") != std::string::npos);
  QVERIFY2(events.find("h0 gpu answered wrongly from position 15") != std::string::npos,
           events.c_str());
  QCOMPARE(scene.count_in(events, "liar_found"), 2);
}

// Goal: a session that ends before it has undone what a check found leaves no device on loan.
void SessionTest::a_finding_at_the_sessions_end_frees_the_check() {
  Scene scene(6, with_checks);
  World& world = scene.world;
  for (size_t i = 0; i < 3; ++i) world.hosts[i]->options.bytes_per_second = 4e9;
  for (auto& host : world.hosts) host->report();
  world.trust(*world.hosts[5]);
  const Generated reference = world.generate({});
  world.pass_time(Millis{10'000});
  FakeHost& liar = scene.host_of_stage(reference, 0);
  liar.lies_from = 7;
  scene.host_of_stage(reference, 1).step_ms = 4'000;
  {
    kj::Promise<Generated> running = world.generate_promise({});
    const auto found = [&] { return scene.count_in(world.events_text(), "liar_found") > 0; };
    for (int i = 0; i < 1'000 && !found(); ++i) world.pass_time(Millis{10});
    QVERIFY(found());
  }
  world.pass_time(Millis{10'000});
  QCOMPARE(scene.stages_open(), 0);
  for (auto& host : world.hosts) QCOMPARE(scene.pending_of(*host), size_t{0});
  QCOMPARE(liar.receipts().back().verdict, ReceiptVerdict::kRejected);
}

// Goal: a coordinator that stops after a finding confirms nothing of the liar at its next start.
void SessionTest::what_a_liar_did_is_rejected_at_once() {
  Scene scene(6, with_checks);
  World& world = scene.world;
  world.trust(*world.hosts[5]);
  const Generated reference = world.generate({});
  world.pass_time(Millis{10'000});
  FakeHost& liar = scene.host_of_stage(reference, 1);
  liar.lies_from = 7;
  world.generate({});
  for (auto& host : world.hosts) host->step_ms = 200;
  const auto found = [&] { return scene.count_in(world.events_text(), "liar_found") > 0; };
  for (int i = 0; i < 1'000 && !found(); ++i) world.pass_time(Millis{10});
  QVERIFY(found());
  world.stop();
  world.start();
  for (auto& host : world.hosts) host->connect();
  QCOMPARE(scene.pending_of(liar), size_t{0});
  QCOMPARE(liar.receipts().back().verdict, ReceiptVerdict::kRejected);
  QCOMPARE(liar.receipts().back().reason, std::string("credit.wrong_answer"));
}

void SessionTest::a_store_that_fails_in_a_check_pays_later() {
  Scene scene(6, with_checks);
  World& world = scene.world;
  world.stop();
  world.store_vfs = faulty_vfs();
  fail_writes_after(-1);
  world.start();
  for (auto& host : world.hosts) host->connect();
  const Generated run = world.generate({});
  for (auto& host : world.hosts) host->step_ms = 500;
  world.pass_time(Millis{1'000});  // The checks are open.
  QCOMPARE(scene.stages_open(), 3);
  fail_writes_after(0);
  world.pass_time(Millis{20'000});
  QCOMPARE(scene.stages_open(), 0);
  for (size_t stage = 0; stage < 3; ++stage) {
    QCOMPARE(scene.pending_of(scene.host_of_stage(run, stage)), size_t{1});
  }
  fail_writes_after(-1);
  world.pass_time(Millis{10'000});
  uint64_t rows = 0;
  for (auto& host : world.hosts) {
    QCOMPARE(scene.pending_of(*host), size_t{0});
    for (const Receipt& receipt : host->receipts()) {
      if (receipt.verdict == ReceiptVerdict::kConfirmed) rows += receipt.rows;
    }
  }
  const size_t positions = run.prompt_ids.size() + run.ids.size() - 1;
  QCOMPARE(rows, uint64_t{2 * 3 * positions});  // Each stage twice, and once for each.
}

// Goal: units that others hold, or that are only not confirmed yet, keep no stream from being
// followed; one that a device could be given does.
void SessionTest::units_that_nobody_could_take_stop_no_check() {
  for (const bool is_held : {true, false}) {
    Scene scene(3, with_checks);
    World& world = scene.world;
    world.hosts[0]->options.bytes_per_second = 4e9;
    world.hosts[0]->report();
    for (auto& host : world.hosts) host->step_ms = 100;
    scene.submit_job();
    UnitHost other(*world.hosts[2]);
    if (is_held) {
      for (int i = 0; i < 20 && other.lease().units.empty(); ++i) world.pass_time(Millis{1'000});
    }
    kj::Promise<Generated> running = world.generate_promise({.tokens_max = 60, .stages_min = 1});
    world.pass_time(Millis{4'000});
    QCOMPARE(scene.stages_open(), is_held ? 2 : 1);
    world.run(kj::mv(running));
  }
}

// Goal: a session gets the device that a check is on, at once, and the check is made up for later.
void SessionTest::a_check_gives_way() {
  Scene scene(2, with_checks);
  World& world = scene.world;
  for (auto& host : world.hosts) host->options.memory = 12'000'000;  // Room for one stage each.
  for (auto& host : world.hosts) host->report();
  const Generated first = world.generate({.stages_min = 1});
  // The other one checks, and takes its time.
  FakeHost& worker = scene.host_of_stage(first, 0);
  FakeHost& checker = world.hosts[0].get() == &worker ? *world.hosts[1] : *world.hosts[0];
  checker.step_ms = 2'000;
  world.pass_time(Millis{1'000});
  QCOMPARE(checker.stages_open, 1);
  checker.step_ms = 0;
  const Generated second = world.generate({.stages_min = 2});
  QCOMPARE(second.ids, first.ids);
  QVERIFY(second.failovers.empty());
  world.pass_time(Millis{30'000});
  for (auto& host : world.hosts) QCOMPARE(scene.pending_of(*host), size_t{0});
  QVERIFY(world.events_text().find("check_differs") == std::string::npos);
  QCOMPARE(scene.stages_open(), 0);
}

void SessionTest::a_check_leaves_a_device_that_its_owner_wants() {
  Scene scene(2, with_checks);
  World& world = scene.world;
  const Generated run = world.generate({.stages_min = 1});
  FakeHost& worker = scene.host_of_stage(run, 0);
  FakeHost& checker = world.hosts[0].get() == &worker ? *world.hosts[1] : *world.hosts[0];
  checker.step_ms = 100;
  world.pass_time(Millis{350});
  QCOMPARE(checker.stages_open, 1);
  checker.options.state = rpc::DeviceReport::State::DRAINING;
  checker.report();
  world.pass_time(Millis{250});
  QCOMPARE(scene.stages_open(), 0);
  QCOMPARE(scene.pending_of(worker), size_t{1});
  // It is as good a checker as before.
  checker.options.state = rpc::DeviceReport::State::READY;
  checker.report();
  world.pass_time(Millis{5'000});
  QCOMPARE(checker.stages_opened, 2);
  QCOMPARE(scene.pending_of(worker), size_t{0});
}

// Goal: that nobody can check at a session's end does not mean that nobody will.
void SessionTest::a_check_waits_for_one_who_could() {
  Scene scene(2, with_checks);
  World& world = scene.world;
  FakeHost& other = *world.hosts[1];
  other.options.state = rpc::DeviceReport::State::PAUSED;
  other.report();
  world.generate({.stages_min = 1});
  world.pass_time(Millis{5'000});
  QCOMPARE(scene.pending_of(*world.hosts[0]), size_t{1});
  other.options.state = rpc::DeviceReport::State::READY;
  other.report();
  world.pass_time(Millis{5'000});
  QCOMPARE(other.stages_opened, 1);
  QCOMPARE(scene.pending_of(*world.hosts[0]), size_t{0});
  // A device that is too small never will.
  other.options.memory = 1'000;
  other.report();
  world.generate({.stages_min = 1});
  world.pass_time(Millis{1'000});
  QCOMPARE(scene.pending_of(*world.hosts[0]), size_t{0});
}

void SessionTest::who_was_right_often_is_checked_seldom() {
  Scene scene(2, [](CoordinatorSettings& settings) {
    with_checks(settings);
    settings.jobs.rules.newcomer_units = 5;
    settings.jobs.rules.audit_floor = 0;
  });
  scene.world.hosts[0]->options.bytes_per_second = 4e9;
  scene.world.hosts[0]->report();
  const auto checks = [&] { return scene.world.hosts[1]->stages_opened; };
  for (int i = 0; i < 5; ++i) {
    scene.world.generate({.stages_min = 1});
    scene.world.pass_time(Millis{2'000});
    QCOMPARE(checks(), i + 1);
  }
  for (int i = 0; i < 40; ++i) {
    scene.world.generate({.stages_min = 1});
    scene.world.pass_time(Millis{2'000});
  }
  // Of the n-th one in n is expected: the sum is below four more.
  QVERIFY2(checks() >= 6 && checks() <= 20, qPrintable(QString::number(checks())));
}

void SessionTest::a_restart_in_a_check_costs_nobody_anything() {
  Scene scene(4, with_checks);
  const Generated run = scene.world.generate({});
  FakeHost& worker = scene.host_of_stage(run, 1);
  QVERIFY(scene.pending_of(worker) > 0);
  scene.world.stop();
  scene.world.start();
  for (auto& host : scene.world.hosts) host->connect();
  QCOMPARE(scene.pending_of(worker), size_t{0});
  QCOMPARE(worker.receipts().back().verdict, ReceiptVerdict::kConfirmed);
}

void SessionTest::auditors_are_strangers_of_another_network_first() {
  const FragmentCost cost = {.weights = Bytes{1000}, .flops_per_row = Flops{100}};
  const AuditorRequest request{.fragments = {&cost, 1}, .context = 10, .rows_max = 1};
  const Bytes needed = stage_memory(request.fragments, 10, 1);
  AuditorCandidate good;
  good.device.exact = true;
  good.device.memory_free = needed;
  const auto best = [&](std::vector<AuditorCandidate> candidates, bool trusted_only = false) {
    AuditorRequest asked = request;
    asked.trusted_only = trusted_only;
    return best_auditors(asked, candidates);
  };
  const auto with = [&](auto change) {
    AuditorCandidate candidate = good;
    change(candidate);
    return candidate;
  };
  const AuditorCandidate near = with([](auto& it) { it.same_address = true; });
  const AuditorCandidate inside = with([](auto& it) { it.in_session = true; });
  QCOMPARE(best({good}), (std::vector<size_t>{0}));
  QCOMPARE(best({near, inside, good, good}), (std::vector<size_t>{2, 3}));  // Drawn of these.
  QCOMPARE(best({near, inside}), (std::vector<size_t>{1}));
  QCOMPARE(best({near}), (std::vector<size_t>{0}));
  QVERIFY(best({with([](auto& it) { it.busy = true; })}).empty());
  QVERIFY(best({with([](auto& it) { it.barred = true; })}).empty());
  QVERIFY(best({with([](auto& it) { it.same_owner = true; })}).empty());
  QVERIFY(best({with([](auto& it) { it.device.exact = false; })}).empty());
  QVERIFY(best({with([](auto& it) { it.device.denied = true; })}).empty());
  QVERIFY(best({with([](auto& it) { it.device.memory_free.count -= 1; })}).empty());
  QVERIFY(best({good}, /*trusted_only=*/true).empty());
  const AuditorCandidate trusted = with([](auto& it) { it.device.trusted = true; });
  QCOMPARE(best({good, trusted}, /*trusted_only=*/true), (std::vector<size_t>{1}));
  QVERIFY(best({}).empty());
}

void SessionTest::three_answers_say_who_was_wrong() {
  const Digest a = digest_of(as_bytes("a")), b = digest_of(as_bytes("b")),
               c = digest_of(as_bytes("c"));
  for (const bool trusted : {false, true}) {
    QCOMPARE(settle(a, b, a, trusted), Settlement::kAuditor);
    QCOMPARE(settle(a, b, b, trusted), Settlement::kAccused);
  }
  QCOMPARE(settle(a, b, c, true), Settlement::kBoth);
  QCOMPARE(settle(a, b, c, false), Settlement::kOpen);
}

void SessionTest::a_loaded_standby_takes_over_without_opening() {
  Scene scene(6, with_standbys);
  for (auto& host : scene.world.hosts) host->step_ms = 20;
  const Generated reference = scene.world.generate({});
  scene.world.settle();
  std::map<std::string, int> opened;
  const Generated run = scene.world.generate({.on_token = [&](size_t count) {
    if (count != 6) return;
    for (auto& host : scene.world.hosts) {
      QCOMPARE(host->stages_open, 1);  // One works, or stands by, on each.
      opened[host->options.name] = host->stages_opened;
    }
    scene.host_of_stage(reference, 1).kill();
  }});
  QCOMPARE(run.ids, reference.ids);
  QCOMPARE(run.failovers.size(), size_t{1});
  for (auto& host : scene.world.hosts) {
    if (host->options.name != run.failovers[0].replacement) continue;
    QCOMPARE(host->stages_opened, opened[host->options.name]);
  }
  // What it replays comes in one step: the prompt's 14 and five tokens.
  QVERIFY2(run.failovers[0].gap_ms <= 3 * 20 + 20 + 30,
           qPrintable(QString::number(run.failovers[0].gap_ms)));
  QCOMPARE(scene.stages_open(), 0);
  for (auto& host : scene.world.hosts) {
    if (!host->connected()) continue;
    QCOMPARE(scene.pending_of(*host), size_t{0});
    for (const Receipt& receipt : host->receipts()) QVERIFY(receipt.rows > 0);
  }
}

void SessionTest::a_standby_that_has_gone_is_replaced() {
  Scene scene(3, with_standbys);
  World& world = scene.world;
  world.hosts[0]->options.bytes_per_second = 4e9;
  for (auto& host : world.hosts) {
    host->step_ms = 100;
    host->report();
  }
  kj::Promise<Generated> running = world.generate_promise({.tokens_max = 80, .stages_min = 1});
  world.pass_time(Millis{500});
  QCOMPARE(scene.stages_open(), 2);
  FakeHost& standby = *world.hosts[world.hosts[1]->stages_open == 1 ? 1 : 2];
  standby.kill();
  world.pass_time(Millis{3'000});
  QCOMPARE(scene.stages_open(), 2);
  world.hosts[0]->kill();
  const Generated run = world.run(kj::mv(running));
  QCOMPARE(run.failovers.size(), size_t{1});
  QVERIFY(run.failovers[0].replacement != standby.options.name);
  QVERIFY2(run.failovers[0].gap_ms <= 300, qPrintable(QString::number(run.failovers[0].gap_ms)));
}

// Goal: however long the stream is, a failover replays no more than about a step.
void SessionTest::a_standby_follows_a_long_stream() {
  Scene scene(6, [](CoordinatorSettings& settings) {
    with_standbys(settings);
    settings.session.rows_max = 16;
  });
  World& world = scene.world;
  for (auto& host : world.hosts) {
    host->step_ms = 20;
    host->options.bytes_per_second = host->options.name < "h3" ? 4e9 : 1e6;
    host->report();
  }
  const Generated reference = world.generate({.tokens_max = 170});
  FakeHost& lost = scene.host_of_stage(reference, 1);
  const Generated run = world.generate({.tokens_max = 170, .on_token = [&](size_t count) {
                                          if (count == 160) lost.kill();
                                        }});
  QCOMPARE(run.ids, reference.ids);
  QCOMPARE(run.failovers.size(), size_t{1});
  QVERIFY2(run.failovers[0].gap_ms <= 3 * 20 + 3 * 20 + 30,
           qPrintable(QString::number(run.failovers[0].gap_ms)));
}

// Goal: who only says that he follows gets nothing for it, and does no harm.
void SessionTest::a_standby_that_answers_otherwise_is_not_paid() {
  for (const uint32_t stages : {1u, 2u}) {
    Scene scene(static_cast<int>(stages) + 1, [](CoordinatorSettings& settings) {
      with_standbys(settings);
      settings.session.rows_max = 16;
    });
    World& world = scene.world;
    FakeHost& liar = *world.hosts.back();
    for (auto& host : world.hosts) {
      host->step_ms = 20;
      host->options.bytes_per_second = host.get() == &liar ? 1e6 : 4e9;
      host->report();
    }
    liar.lies_from = 5;
    const Generated run = world.generate({.tokens_max = 100, .stages_min = stages});
    QCOMPARE(run.ids, toy_tokens(run.prompt_ids, 100, 5));
    QVERIFY(run.failovers.empty());
    const std::string events = world.events_text();
    QVERIFY2(events.find("h" + std::to_string(stages) + ", which stood by, gave other answers") !=
                 std::string::npos,
             events.c_str());
    QCOMPARE(scene.pending_of(liar), size_t{0});
    for (const Receipt& receipt : liar.receipts()) {
      QVERIFY(receipt.verdict != ReceiptVerdict::kConfirmed || receipt.rows == 0);
    }
    QCOMPARE(scene.stages_open(), 0);
  }
}

// Goal: a loan that ends costs the session nothing, though its memory is free only moments later.
void SessionTest::a_device_that_was_lent_has_time_to_make_room() {
  Scene scene(2, with_standbys);
  World& world = scene.world;
  world.hosts[0]->options.bytes_per_second = 4e9;
  for (auto& host : world.hosts) {
    host->options.memory = 8'000'000;
    host->report();
    host->step_ms = 50;
  }
  kj::Promise<Generated> first = world.generate_promise({.tokens_max = 60, .stages_min = 1});
  world.pass_time(Millis{300});
  QCOMPARE(scene.stages_open(), 2);
  world.hosts[1]->full_opens = 2;
  const Generated second = world.generate({.stages_min = 1});
  QCOMPARE(second.hosts[0], std::string("h1"));
  QCOMPARE(world.hosts[1]->full_opens, 0);
  QVERIFY(world.events_text().find("stage_not_opened") == std::string::npos);
  world.run(kj::mv(first));
  QCOMPARE(scene.stages_open(), 0);
}

// Goal: two whose time is nearly over do not pass a stage to and fro.
void SessionTest::nobody_hands_over_to_one_who_leaves_as_well() {
  Scene scene(2, with_standbys);
  World& world = scene.world;
  FakeHost &first = *world.hosts[0], &second = *world.hosts[1];
  first.options.bytes_per_second = 4e9;
  second.options.available_ms = 20'000;
  for (auto& host : world.hosts) {
    host->step_ms = 20;
    host->report();
  }
  const Generated run =
      world.generate({.tokens_max = 60, .stages_min = 1, .on_token = [&](size_t count) {
                        if (count != 5) return;
                        first.options.available_ms = 20'000;
                        world.tasks().add(first.report_promise());
                      }});
  QCOMPARE(run.ids, toy_tokens(run.prompt_ids, 60, 5));
  QCOMPARE(scene.count_in(world.events_text(), "stage_handed_over"), 0);
}

void SessionTest::a_standby_gives_way() {
  Scene scene(4, with_standbys);
  World& world = scene.world;
  const Generated reference = world.generate({});
  for (auto& host : world.hosts) {
    host->options.memory = 8'000'000;
    host->report();
    host->step_ms = 50;
  }
  kj::Promise<Generated> first = world.generate_promise({});
  world.pass_time(Millis{300});
  QCOMPARE(scene.stages_open(), 4);
  // The whole model fits only the device that stands by.
  const Generated second = world.generate({.stages_min = 1});
  QCOMPARE(second.ids, reference.ids);
  const Generated run = world.run(kj::mv(first));
  QCOMPARE(run.ids, reference.ids);
  QVERIFY(run.failovers.empty());
  QVERIFY(std::ranges::find(run.hosts, second.hosts[0]) == run.hosts.end());
  QCOMPARE(scene.stages_open(), 0);
}

void SessionTest::a_device_that_is_wanted_back_is_left_between_two_tokens_data() {
  QTest::addColumn<int>("stage");
  QTest::addColumn<int>("available_ms");
  for (int stage = 0; stage < 3; ++stage) {
    QTest::newRow(("drains, stage " + std::to_string(stage)).c_str()) << stage << 0;
    QTest::newRow(("in ten seconds, stage " + std::to_string(stage)).c_str()) << stage << 10'000;
  }
}

// Goal: no token waits for it, and nothing of it counts as a failure.
void SessionTest::a_device_that_is_wanted_back_is_left_between_two_tokens() {
  QFETCH(int, stage);
  QFETCH(int, available_ms);
  Scene scene(4, with_standbys);
  World& world = scene.world;
  for (auto& host : world.hosts) {
    host->step_ms = 20;
    // Those three are planned, whatever was measured of the way to them.
    host->options.bytes_per_second = host == world.hosts.back() ? 1e6 : 4e9;
    host->report();
  }
  const Generated reference = world.generate({.tokens_max = 40});
  FakeHost& wanted = scene.host_of_stage(reference, static_cast<size_t>(stage));
  std::vector<Millis> at;
  const Generated run =
      world.generate({.tokens_max = 40, .on_token = [&](size_t count) {
                        at.push_back(world.clock.now_monotonic());
                        if (count != 5) return;
                        if (available_ms == 0) {
                          wanted.options.state = rpc::DeviceReport::State::DRAINING;
                        } else {
                          wanted.options.available_ms = static_cast<uint64_t>(available_ms);
                        }
                        world.tasks().add(wanted.report_promise());
                      }});
  QCOMPARE(run.ids, reference.ids);
  QCOMPARE(run.streamed, run.ids);
  QVERIFY(run.failovers.empty());
  QVERIFY(std::ranges::find(run.hosts, wanted.options.name) == run.hosts.end());
  for (size_t i = 1; i < at.size(); ++i) {
    QVERIFY2((at[i] - at[i - 1]).count <= 3 * 20 + 30, qPrintable(QString::number(i)));
  }
  const std::string events = world.events_text();
  QVERIFY2(events.find("stage_handed_over: fragments") != std::string::npos, events.c_str());
  QVERIFY(events.find("stage_lost") == std::string::npos);
  QCOMPARE(scene.pending_of(wanted), size_t{0});
  for (const Receipt& receipt : wanted.receipts()) {
    QVERIFY(receipt.verdict != ReceiptVerdict::kRejected);
  }
  QCOMPARE(scene.stages_open(), 0);
}

// Goal: a device that says too much of itself gets the next session no more, once its steps have
// shown how slow it is.
void SessionTest::plans_use_what_steps_measured() {
  World world;
  world.publish(make_toy_model("toy"));
  FakeHost& boaster = world.add_host("boaster", {.bytes_per_second = 2e9});
  FakeHost& modest = world.add_host("modest", {.bytes_per_second = 1e9});
  boaster.step_ms = 500;
  modest.step_ms = 10;
  const GenerateAsk ask{.tokens_max = 30, .stages_min = 1, .ignore_eos = true};
  const Generated first = world.generate(ask);
  QCOMPARE(first.hosts, std::vector<std::string>{"boaster"});
  const Generated second = world.generate(ask);
  QCOMPARE(second.hosts, std::vector<std::string>{"modest"});
  QCOMPARE(second.ids, first.ids);
}

void SessionTest::what_was_predicted_is_kept_beside_what_was_measured() {
  Scene scene(3, [](CoordinatorSettings& settings) { settings.session.rows_max = 5; });
  World& world = scene.world;
  for (auto& host : world.hosts) host->step_ms = 20;
  const Generated run = world.generate({});
  QCOMPARE(run.prompt_ids.size(), size_t{14});
  const auto show = [&](uint64_t id) {
    auto request = world.admin().showSessionRequest();
    request.setSessionId(id);
    return world.run(kj::Promise<capnp::Response<rpc::Admin::ShowSessionResults>>(request.send()));
  };
  for (const bool restarted : {false, true}) {
    if (restarted) {
      world.stop();
      world.start();
    }
    const auto shown = show(1);
    QCOMPARE(shown.getSession().getStages().size(), 3u);
    const auto figures = shown.getFigures();
    QCOMPARE(figures.getBlockRows(), 5u);
    // Two fragments of a million bytes at 1e9 a second each, and no way.
    QCOMPARE(figures.getPredicted().getStages().size(), 3u);
    for (const auto stage : figures.getPredicted().getStages()) {
      QCOMPARE(stage.getRowSeconds(), 0.002);
      QCOMPARE(stage.getBlockSeconds(), 0.002);
      QCOMPARE(stage.getRowSteps(), 0u);
    }
    QCOMPARE(figures.getPredicted().getTokensPerSecond(), 1 / 0.006);
    // Time goes in steps of ten milliseconds.
    const auto measured = figures.getMeasured();
    QCOMPARE(measured.getStages().size(), 3u);
    for (const auto stage : measured.getStages()) {
      QCOMPARE(stage.getBlockSteps(), 2u);  // Of three: the last block is shorter.
      QCOMPARE(stage.getRowSteps(), 11u);   // The first token came of the prompt.
      QVERIFY(stage.getRowSeconds() >= 0.02 && stage.getRowSeconds() <= 0.03);
      QVERIFY(stage.getBlockSeconds() >= 0.02 && stage.getBlockSeconds() <= 0.03);
    }
    // Five steps long, as three blocks are in three stages at a time; not nine.
    QVERIFY(measured.getPrefillMs() >= 100 && measured.getPrefillMs() <= 150);
    QVERIFY(measured.getTokensPerSecond() >= 1 / 0.09 && measured.getTokensPerSecond() <= 1 / 0.06);
  }
  try {
    show(999);
    QVERIFY(false);
  } catch (const kj::Exception& exception) {
    QCOMPARE(rpc::error_of(exception).code, ErrorCode::kNotFound);
  }
}

void SessionTest::a_plan_says_what_would_be_and_why() {
  Scene scene(3);
  World& world = scene.world;
  const auto plan = [&](uint32_t prompt, uint32_t stages, const char* group = "") {
    auto call = world.admin().planSessionRequest();
    auto request = call.initRequest();
    request.setModel("toy");
    request.setMaxTokens(12);
    request.setStagesMin(stages);
    if (*group != '\0') {
      request.setPrivacy(rpc::Privacy::GROUP);
      request.setGroup(group);
    }
    auto sampling = request.initSampling();
    sampling.setRepetitionPenalty(1);
    sampling.setTopP(1);
    call.setPromptTokens(prompt);
    return world.run(kj::Promise<capnp::Response<rpc::Admin::PlanSessionResults>>(call.send()));
  };
  const auto one = plan(14, 1);
  QCOMPARE(one.getPlan().getStages().size(), 1u);
  QCOMPARE(one.getPlan().getStages()[0].getLastFragment(), 5u);
  QCOMPARE(std::string(one.getPlan().getWhy()[0].getCode().cStr()), std::string("fits_one"));
  const std::string text = one.getPlan().getWhy()[0].getText().cStr();
  QVERIFY2(text.find(one.getPlan().getStages()[0].getHostName().cStr()) != std::string::npos,
           text.c_str());
  QCOMPARE(one.getPlan().getWhyNotSplit().size(), 1u);
  QCOMPARE(one.getPlan().getFigures().getPredicted().getTokensPerSecond(), 1 / 0.006);
  const auto three = plan(14, 3);
  QCOMPARE(three.getPlan().getStages().size(), 3u);
  QCOMPARE(three.getPlan().getWhyNotSplit().size(), 0u);
  // What a session would be refused, a plan is refused.
  const auto refuses = [&](uint32_t prompt, uint32_t stages, const char* group, const char* part) {
    try {
      plan(prompt, stages, group);
    } catch (const kj::Exception& exception) {
      const std::string said = rpc::error_of(exception).message;
      if (said.find(part) == std::string::npos) qWarning("said %s", said.c_str());
      return said.find(part) != std::string::npos;
    }
    return false;
  };
  QVERIFY(refuses(0, 1, "", "promptTokens"));
  QVERIFY(refuses(kToyContext + 1, 1, "", "context holds 200"));
  QCOMPARE(plan(kToyContext, 1).getPlan().getStages().size(), 1u);
  QVERIFY(refuses(14, 4, "", "4 stages were asked for, but only 3"));
  QVERIFY(refuses(14, 1, "nobody", "no device of the group nobody"));
  QCOMPARE(scene.stages_open(), 0);
  const std::string events = world.events_text();
  QVERIFY(events.find("session_started") == std::string::npos);
}

void SessionTest::two_sessions_share_the_devices() {
  Scene scene(3);
  const Generated first = scene.world.generate({});
  const Generated second = scene.world.generate({.prompt = "another one", .seed = 9});
  kj::Promise<Generated> a = scene.world.generate_promise({});
  kj::Promise<Generated> b = scene.world.generate_promise({.prompt = "another one", .seed = 9});
  QCOMPARE(scene.world.run(kj::mv(a)).ids, first.ids);
  QCOMPARE(scene.world.run(kj::mv(b)).ids, second.ids);
  QVERIFY(first.ids != second.ids);
  QCOMPARE(scene.stages_open(), 0);
}

void SessionTest::dropping_the_call_frees_everything() {
  Scene scene(3);
  for (auto& host : scene.world.hosts) {
    host->fault = Fault::kStall;
    host->fault_at_step = 4;
  }
  {
    kj::Promise<Generated> running = scene.world.generate_promise({});
    scene.world.pass_time(Millis{100});
    QCOMPARE(scene.stages_open(), 3);
  }
  QCOMPARE(scene.stages_open(), 0);
  auto request = scene.world.admin().listSessionsRequest();
  request.setEndedMax(1);
  const auto response = scene.world.run(
      kj::Promise<capnp::Response<rpc::Admin::ListSessionsResults>>(request.send()));
  QCOMPARE(std::string(response.getSessions()[0].getState().cStr()), std::string("cancelled"));
  QVERIFY(response.getSessions()[0].getEndedAtMs() != 0);
}

void SessionTest::a_restart_marks_what_was_running() {
  Scene scene(3);
  World& world = scene.world;
  for (auto& host : world.hosts) {
    host->fault = Fault::kStall;
    host->fault_at_step = 4;
  }
  // As kill -9 leaves it: the store's bytes while the session runs, copied aside and put back.
  const std::filesystem::path data = world.folder / "data";
  const std::filesystem::path copy = world.folder / "copy";
  {
    kj::Promise<Generated> running = world.generate_promise({});
    world.pass_time(Millis{100});
    std::filesystem::create_directory(copy);
    for (const char* name : {"store.sqlite", "store.sqlite-wal"}) {
      std::filesystem::copy_file(data / name, copy / name);
    }
  }
  world.stop();
  for (const char* name : {"store.sqlite", "store.sqlite-wal"}) {
    std::filesystem::copy_file(copy / name, data / name,
                               std::filesystem::copy_options::overwrite_existing);
  }
  world.start();
  auto request = world.admin().listSessionsRequest();
  request.setEndedMax(10);
  const auto response =
      world.run(kj::Promise<capnp::Response<rpc::Admin::ListSessionsResults>>(request.send()));
  QCOMPARE(response.getSessions().size(), 1u);
  QCOMPARE(std::string(response.getSessions()[0].getState().cStr()), std::string("failed"));
  QCOMPARE(std::string(response.getSessions()[0].getReason().cStr()),
           std::string("coordinator restarted"));
  // The hosts know it, and it knows them.
  for (auto& host : world.hosts) {
    host->options.invite = "none";
    host->fault = Fault::kNone;
    host->connect();
  }
  QCOMPARE(world.generate({}).ids.size(), size_t{12});
}

void SessionTest::kept_inputs_spill_and_come_back() {
  const TempDir folder;
  KeptInputs kept(8, 40, folder / "spill");
  ByteVector all;
  Random random(3);
  for (int i = 0; i < 20; ++i) {
    ByteVector rows(8 * (1 + random.below(3)));
    random.fill(rows);
    all.insert(all.end(), rows.begin(), rows.end());
    QVERIFY(kept.append(rows).ok());
    QCOMPARE(kept.rows() * 8, all.size());
    const uint64_t first = random.below(kept.rows());
    const uint64_t count = random.below(kept.rows() - first + 1);
    const auto got = kept.read(first, count);
    QVERIFY(got.ok());
    QVERIFY(std::ranges::equal(got.value(), std::span(all).subspan(first * 8, count * 8)));
  }
  // What is taken back, in memory or in the file, is gone, and others can follow.
  for (const uint64_t rows :
       {kept.rows(), kept.rows() - 3, uint64_t{6}, uint64_t{5}, uint64_t{2}}) {
    QVERIFY(kept.truncate(rows).ok());
    QCOMPARE(kept.rows(), rows);
    all.resize(8 * rows);
    ByteVector more(16);
    random.fill(more);
    all.insert(all.end(), more.begin(), more.end());
    QVERIFY(kept.append(more).ok());
    QVERIFY(std::ranges::equal(kept.read(0, kept.rows()).value(), all));
  }
  // Nothing to find, and nothing to leave behind.
  QVERIFY(std::filesystem::is_empty(folder / "spill"));

  Scene scene(4, [](CoordinatorSettings& settings) { settings.session.kept_memory_max = 50; });
  const Generated reference = scene.world.generate({});
  const Generated run = scene.world.generate({.on_token = [&](size_t count) {
    if (count == 9) scene.host_of_stage(reference, 1).kill();
  }});
  QCOMPARE(run.ids, reference.ids);
  QCOMPARE(run.ids, toy_tokens(run.prompt_ids, 12, 5));
}

void SessionTest::a_spill_that_fails_fails_one_session() {
  Scene scene(3, [](CoordinatorSettings& settings) { settings.session.kept_memory_max = 300; });
  QCOMPARE(scene.world.generate({.prompt = "hi", .tokens_max = 2}).ids.size(), size_t{2});
  // A file where the folder would be: nobody, root included, can spill.
  QVERIFY(write_file_durably(scene.world.folder / "data" / "spill", as_bytes("x")).ok());
  const std::string why = scene.world.refusal_of({.tokens_max = 40});
  QVERIFY2(why.find("keeping a session's inputs") != std::string::npos, why.c_str());
  QCOMPARE(scene.world.generate({.prompt = "hi", .tokens_max = 2}).ids.size(), size_t{2});
  QCOMPARE(scene.stages_open(), 0);
}

void SessionTest::nothing_stored_holds_the_prompt() {
  Scene scene(4);
  const std::string prompt = "zebra-stripes-9731";
  const Generated reference = scene.world.generate({.prompt = prompt});
  scene.world.generate({.prompt = prompt, .on_token = [&](size_t count) {
                          if (count == 5) scene.host_of_stage(reference, 1).kill();
                        }});
  scene.world.refusal_of({.prompt = prompt, .stages_min = 9});
  const std::string events = scene.world.events_text();
  QVERIFY(events.find("failover") != std::string::npos);
  QVERIFY(events.find("stage_lost") != std::string::npos);
  QVERIFY(events.find("zebra") == std::string::npos);
  QVERIFY(events.find(reference.text) == std::string::npos);
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(scene.world.folder / "data")) {
    if (!entry.is_regular_file()) continue;
    const ByteVector bytes = read_file(entry.path(), kGibibyte).value();
    QVERIFY2(as_text(bytes).find("zebra-stripes") == std::string_view::npos, entry.path().c_str());
    QVERIFY2(as_text(bytes).find(reference.text) == std::string_view::npos, entry.path().c_str());
  }
}

// Goal: a host that sees tokens cannot put them into the store by the text of its errors, but who
// asked is told. A stage in the middle sees none: what it says helps the administrator.
void SessionTest::nothing_stored_holds_what_a_peer_says_of_tokens() {
  for (size_t stage = 0; stage < 3; ++stage) {
    for (const Fault fault : {Fault::kRefuse, Fault::kNoOpen}) {
      Scene scene(4);
      const Generated reference = scene.world.generate({});
      const std::string marker = "zebra-stripes-9731";
      FakeHost& liar = scene.host_of_stage(reference, stage);
      liar.refusal = marker;
      liar.fault = fault;
      liar.fault_at_step = 3;
      const Generated run = scene.world.generate({});
      QCOMPARE(run.ids, reference.ids);
      if (fault == Fault::kRefuse) {
        QCOMPARE(run.failovers.size(), size_t{1});
        QVERIFY(run.failovers[0].cause.find(marker) != std::string::npos);
      }
      // When all refuse, the session's own reason is stored too.
      for (auto& host : scene.world.hosts) {
        host->refusal = marker;
        host->fault = fault;
        host->fault_at_step = 0;
        host->steps = 0;
      }
      QVERIFY(scene.world.refusal_of({.stages_min = 1}).find(marker) != std::string::npos);
      const std::string events = scene.world.events_text();
      QVERIFY(events.find(fault == Fault::kRefuse
                              ? "refused: a result would not be finite"
                              : "refused: it has no room") != std::string::npos);
      QCOMPARE(events.find(marker) != std::string::npos, stage == 1);
      auto request = scene.world.admin().listSessionsRequest();
      request.setEndedMax(10);
      const auto sessions = scene.world.run(
          kj::Promise<capnp::Response<rpc::Admin::ListSessionsResults>>(request.send()));
      for (const auto session : sessions.getSessions()) {
        QVERIFY(std::string(session.getReason().cStr()).find(marker) == std::string::npos);
      }
      scene.world.stop();
      if (stage == 1) continue;
      for (const char* name : {"store.sqlite", "store.sqlite-wal"}) {
        const std::filesystem::path path = scene.world.folder / "data" / name;
        if (!std::filesystem::exists(path)) continue;
        const ByteVector bytes = read_file(path, kGibibyte).value();
        QVERIFY(as_text(bytes).find(marker) == std::string_view::npos);
      }
    }
  }
}

// Goal: memory that a stage holds is promised to nobody else, whatever the host reports meanwhile.
void SessionTest::a_device_left_out_of_a_report_keeps_its_promises() {
  Scene scene(1);
  FakeHost& host = *scene.world.hosts[0];
  host.options.memory = 8'000'000;  // Room for the model once.
  host.report();
  host.fault = Fault::kStall;
  host.fault_at_step = 1;
  kj::Promise<Generated> running = scene.world.generate_promise({.stages_min = 1});
  scene.world.pass_time(Millis{100});
  QCOMPARE(host.stages_open, 1);
  QVERIFY(scene.world.refusal_of({.stages_min = 1}).find("free together") != std::string::npos);
  host.options.devices = {"another"};
  host.options.memory = 1000;
  host.report();
  host.options.devices = {"cpu"};
  host.options.memory = 8'000'000;
  host.report();
  QVERIFY(scene.world.refusal_of({.stages_min = 1}).find("free together") != std::string::npos);
  running = nullptr;
  host.fault = Fault::kNone;
  scene.world.settle();
  QCOMPARE(scene.world.generate({.stages_min = 1}).ids.size(), size_t{12});
}

void SessionTest::keys_leave_only_under_a_lease() {
  World world;
  const ToyModel model = make_toy_model("toy");
  world.publish(model);
  for (int i = 0; i < 3; ++i) world.add_host("h" + std::to_string(i));
  QVERIFY(world.hosts[0]->keys_seen.empty());
  world.generate({.cuts = {2, 4}});
  size_t keys = 0;
  for (const auto& host : world.hosts) {
    QCOMPARE(host->keys_seen.size(), size_t{2});  // Of its own two fragments, and no other.
    for (const SecretBytes& seen : host->keys_seen) {
      for (const SecretBytes& key : model.keys) keys += same_secret(seen.view(), key.view());
    }
  }
  QCOMPARE(keys, size_t{6});
  // The wrapped key in the store is not the key.
  const ByteVector store = read_file(world.folder / "data" / "store.sqlite", kGibibyte).value();
  for (const SecretBytes& key : model.keys) {
    QVERIFY(as_text(store).find(as_text(key.view())) == std::string_view::npos);
  }
}

QTEST_GUILESS_MAIN(SessionTest)
#include "session_test.moc"
