// Goal: a job's output is what one machine alone would compute, whoever lies, dies or repeats
// itself, and whenever the coordinator stops. Method: a real coordinator and fake hosts over
// in-process pipes, time moved by hand.

#include <QTest>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "coordinator/jobs/items_file.h"
#include "coordinator/jobs/job_file.h"
#include "coordinator/store/store.h"
#include "coordinator/work/manifest.h"
#include "schema/limits.h"
#include "tests/coordinator/faulty_vfs.h"
#include "tests/coordinator/unit_host.h"

using namespace shoal;
using namespace shoal::test;
using Json = nlohmann::json;

namespace {

constexpr int kPrompts = 40;

// Units of some items, so that there is something to share out.
void small_units(CoordinatorSettings& settings) {
  settings.jobs.rules.ask_again_min = Millis{20};
  settings.jobs.rules.ask_again_max = Millis{200};
  settings.jobs.rules.claim_max = Millis{2000};
  settings.jobs.rules.lease_slack = Millis{5000};
  settings.jobs.rules.unit_items_max = 5;
  settings.jobs.rules.gather = Millis{1000};
}

std::string prompts(int count = kPrompts) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines +=
        Json{{"id", "line " + std::to_string(i)}, {"prompt", "prompt number " + std::to_string(i)}}
            .dump() +
        "\n";
  }
  return lines;
}

const std::string kGenerate =
    "name = \"stories\"\nseed = 11\n[[tasks]]\nname = \"write\"\nkind = \"generate\"\n"
    "model = \"toy\"\ninput = \"prompts.jsonl\"\nmax_tokens = 12\n";

struct Submitted {
  uint64_t id = 0;
  std::string state;
};

Submitted submit_job(World& world, const std::string& spec,
                     const std::map<std::string, std::string>& files) {
  auto request = world.admin().submitJobRequest();
  request.setSpec(spec);
  auto begun =
      world.run(kj::Promise<capnp::Response<rpc::Admin::SubmitJobResults>>(request.send()));
  auto upload = begun.getUpload();
  const auto inputs = begun.getInputs();
  for (uint i = 0; i < inputs.size(); ++i) {
    const std::string& text = files.at(inputs[i].cStr());
    for (size_t from = 0; from < text.size(); from += 1000) {
      auto write = upload.writeRequest();
      write.setInput(i);
      const std::string piece = text.substr(from, 1000);
      write.setBytes(rpc::kj_bytes(as_bytes(piece)));
      world.run(write.send());
    }
  }
  const auto response = world.run(
      kj::Promise<capnp::Response<rpc::JobUpload::FinishResults>>(upload.finishRequest().send()));
  return {response.getJob().getId()};
}

std::string refusal_of_job(World& world, const std::string& spec,
                           const std::map<std::string, std::string>& files) {
  try {
    submit_job(world, spec, files);
  } catch (const kj::Exception& exception) {
    return rpc::error_of(exception).message;
  }
  return "";
}

Json job_of(World& world, uint64_t id) {
  auto request = world.admin().showJobRequest();
  request.setJobId(id);
  const auto response =
      world.run(kj::Promise<capnp::Response<rpc::Admin::ShowJobResults>>(request.send()));
  const auto job = response.getJob();
  static const char* const kStates[] = {"queued", "running", "paused",
                                        "done",   "failed",  "cancelled"};
  Json tasks = Json::array();
  for (const auto task : job.getTasks()) {
    tasks.push_back({{"name", task.getName().cStr()},
                     {"state", task.getState().cStr()},
                     {"items", task.getItems()},
                     {"done", task.getItemsDone()},
                     {"pending", task.getItemsPending()},
                     {"leased", task.getItemsLeased()},
                     {"quarantined", task.getItemsQuarantined()},
                     {"digest", task.getDigest().cStr()}});
  }
  return {{"state", kStates[static_cast<int>(job.getState())]},
          {"reason", job.getReason().cStr()},
          {"credit", job.getCredit()},
          {"tasks", tasks}};
}

std::string state_of(World& world, uint64_t id) {
  return job_of(world, id)["state"].get<std::string>();
}

class Sink final : public rpc::ByteSink::Server {
 public:
  explicit Sink(std::string& out) : out_(out) {}
  kj::Promise<void> write(WriteContext context) override {
    out_ += as_text(rpc::bytes_of(context.getParams().getBytes()));
    return kj::READY_NOW;
  }

 private:
  std::string& out_;
};

struct Output {
  std::string text, digest;
  std::vector<Json> lines;
};
Output output_of(World& world, uint64_t id, const std::string& task = "") {
  Output output;
  auto request = world.admin().jobResultsRequest();
  request.setJobId(id);
  request.setTask(task);
  request.setSink(kj::heap<Sink>(output.text));
  const auto response =
      world.run(kj::Promise<capnp::Response<rpc::Admin::JobResultsResults>>(request.send()));
  output.digest = response.getDigest().cStr();
  size_t from = 0;
  for (size_t end; (end = output.text.find('\n', from)) != std::string::npos; from = end + 1)
    output.lines.push_back(Json::parse(output.text.substr(from, end - from)));
  return output;
}

void change(World& world, uint64_t id, rpc::Admin::JobChange what) {
  auto request = world.admin().changeJobRequest();
  request.setJobId(id);
  request.setChange(what);
  world.run(request.send().ignoreResult());
}

// As the toy's tokenizer has it: a space is the three bytes of its sign.
std::vector<int32_t> toy_prompt(const std::string& text) {
  std::vector<int32_t> tokens = {1};
  for (const char byte : text) {
    if (byte == ' ') {
      for (const int sign : {0xe2, 0x96, 0x81}) tokens.push_back(3 + sign);
    } else {
      tokens.push_back(3 + static_cast<unsigned char>(byte));
    }
  }
  return tokens;
}

// What one machine alone computes.
std::vector<int32_t> expected_tokens(const std::string& prompt, int64_t count, uint64_t seed) {
  return toy_tokens(toy_prompt(prompt), count, seed);
}

QByteArray wrong_lines(const Output& output, int count = kPrompts) {
  if (output.lines.size() != static_cast<size_t>(count))
    return "another number of lines: " + QByteArray::number(qulonglong(output.lines.size()));
  for (int i = 0; i < count; ++i) {
    const Json& line = output.lines[static_cast<size_t>(i)];
    if (line["id"] != "line " + std::to_string(i)) return "another order: " + QByteArray::number(i);
    if (line["tokens"].get<std::vector<int32_t>>() !=
        expected_tokens("prompt number " + std::to_string(i), 12, item_seed(11, i))) {
      return "other tokens: " + QByteArray::fromStdString(line.dump());
    }
  }
  return "";
}

void set_group(World& world, UnitHost& host, const char* group) {
  auto request = world.admin().setHostGroupRequest();
  request.setHostId(host.host.id);
  request.setGroup(group);
  world.run(request.send().ignoreResult());
  host.host.connect();  // It comes back as what it is now.
}

void set_standing(World& world, const UnitHost& host, rpc::HostInfo::Standing standing) {
  auto request = world.admin().setHostStandingRequest();
  request.setHostId(host.host.id);
  request.setStanding(standing);
  world.run(request.send().ignoreResult());
}

// All hosts work in turns until nothing is left to do; time passes between.
void work_all(World& world, const std::vector<UnitHost*>& hosts, int turns = 400) {
  for (int turn = 0; turn < turns; ++turn) {
    int done = 0;
    for (UnitHost* host : hosts) {
      if (host->host.connected()) done += host->work(1);
    }
    world.pass_time(Millis{done == 0 ? 500 : 10});
  }
}

rpc::LedgerReport::Reader report_of(capnp::Response<rpc::Admin::ReconcileLedgerResults>& response) {
  return response.getReport();
}
capnp::Response<rpc::Admin::ReconcileLedgerResults> reconcile(World& world) {
  return world.run(kj::Promise<capnp::Response<rpc::Admin::ReconcileLedgerResults>>(
      world.admin().reconcileLedgerRequest().send()));
}

}  // namespace

class JobsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_job_is_computed_by_several_hosts();
  void tasks_follow_one_another();
  void a_liar_is_found_out_and_changes_nothing();
  void a_host_that_dies_loses_nothing();
  void nothing_is_counted_twice();
  void a_late_result_is_paid_once_to_an_owner();
  void what_a_banned_host_holds_goes_to_others_at_once();
  void what_is_no_result_is_refused();
  void a_lost_answer_strands_no_unit();
  void a_late_result_can_be_the_one_that_counts();
  void a_units_answer_fits_into_a_message();
  void a_kill_loses_nothing();
  void a_kill_between_an_output_and_its_items_stops_no_task();
  void a_job_that_lacks_something_stops_no_other();
  void a_job_can_be_paused_resumed_and_cancelled();
  void a_device_without_work_is_told_why();
  void what_fails_everywhere_is_put_aside_and_tried_again();
  void a_retry_reaches_what_was_made_of_it();
  void what_was_paid_before_a_retry_is_not_paid_again();
  void a_lost_result_fails_its_job_and_a_retry_computes_it_again();
  void a_job_that_fails_everywhere_fails();
  void large_results_are_files_for_as_long_as_they_count();
  void an_output_that_cannot_be_written_is_not_tried_all_the_time();
  void a_full_disk_at_any_write_loses_nothing();
  void work_of_a_group_goes_to_its_hosts_alone();
  void who_left_a_group_without_a_device_keeps_nothing_of_it();
  void a_banned_host_is_owed_nothing_more();
  void wrong_files_are_refused_by_line();
};

void JobsTest::a_job_is_computed_by_several_hosts() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost first(world.add_host("first")), second(world.add_host("second")),
      third(world.add_host("third"));
  const uint64_t id = submit_job(world, kGenerate, {{"prompts.jsonl", prompts()}}).id;
  QCOMPARE(state_of(world, id), std::string("queued"));
  {
    const GotUnits got = first.lease(600, 1);
    QCOMPARE(got.units.size(), size_t{1});
    const GotUnit& unit = got.units[0];
    QVERIFY(unit.items.size() <= 5);
    QCOMPARE(unit.shards, size_t{kToyFragments});
    QVERIFY(unit.lease >= (uint64_t{1} << 40));
    QVERIFY(unit.until_ms >= 5000);
    QCOMPARE(unit.items[0].tokens_max, 12u);
    QCOMPARE(state_of(world, id), std::string("running"));
    QCOMPARE(first.submit(unit), std::string("accepted"));
    QCOMPARE(job_of(world, id)["tasks"][0]["pending"].get<size_t>(), unit.items.size());
  }
  work_all(world, {&first, &second, &third}, 60);
  const Json job = job_of(world, id);
  QVERIFY2(job["state"] == "done", job.dump().c_str());
  QVERIFY(job["credit"].get<double>() > 0);
  const Output output = output_of(world, id);
  QCOMPARE(wrong_lines(output), QByteArray());
  QCOMPARE(output.digest, digest_of(as_bytes(output.text)).hex());
  QCOMPARE(job["tasks"][0]["digest"].get<std::string>(), output.digest);
  QCOMPARE(output.lines[0]["finish_reason"].get<std::string>(), std::string("length"));
  // What hosts were told is genuine, and nothing is left open.
  auto response = reconcile(world);
  const auto report = report_of(response);
  QCOMPARE(report.getProblemCount(), uint64_t{0});
  QCOMPARE(report.getPending(), uint64_t{0});
  QVERIFY(report.getLeases() >= 8);
  QVERIFY(report.getCreditConfirmed() > 0);
  QCOMPARE(report.getCreditRejected(), 0.0);
  const auto receipts = first.host.receipts();
  QVERIFY(!receipts.empty());
  QCOMPARE(receipts[0].job_class.kind, std::string("generate"));
  QVERIFY(receipts[0].rows > 0);
}

void JobsTest::tasks_follow_one_another() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost trusted(world.add_host("trusted"));
  set_standing(world, trusted, rpc::HostInfo::Standing::TRUSTED);
  const std::string spec =
      kGenerate +
      "[[tasks]]\nname = \"grade\"\nkind = \"score\"\nmodel = \"toy\"\ninput = \"@write\"\n"
      "template = \"so: {text}\"\n"
      "[[tasks]]\nname = \"place\"\nkind = \"embed\"\nmodel = \"toy\"\ninput = \"@write\"\n"
      "after = [\"grade\"]\n"
      "[[tasks]]\nname = \"own\"\nkind = \"score\"\nmodel = \"toy\"\ninput = \"texts.jsonl\"\n";
  const std::string texts =
      "{\"text\":\"abc\"}\n\n{\"text\":\"defg\",\"prompt\":\"xy\",\"id\":7}\n";
  const uint64_t id =
      submit_job(world, spec, {{"prompts.jsonl", prompts(7)}, {"texts.jsonl", texts}}).id;
  QCOMPARE(job_of(world, id)["tasks"][1]["state"].get<std::string>(), std::string("waiting"));
  work_all(world, {&trusted}, 40);
  QVERIFY2(job_of(world, id)["state"] == "done", job_of(world, id).dump().c_str());
  const Output written = output_of(world, id, "write"), graded = output_of(world, id, "grade"),
               placed = output_of(world, id, "place"), own = output_of(world, id);
  QCOMPARE(wrong_lines(written, 7), QByteArray());
  QCOMPARE(graded.lines.size(), size_t{7});
  QCOMPARE(graded.lines[3]["id"].get<std::string>(), std::string("line 3"));
  const std::string text = "so: " + written.lines[3]["text"].get<std::string>();
  QCOMPARE(graded.lines[3]["log_likelihoods"].size(), toy_prompt(text).size() - 1);
  QCOMPARE(graded.lines[3]["log_likelihoods"][0].get<double>(),
           -0.5 - (3 + static_cast<unsigned char>('s')) % 7);
  QCOMPARE(placed.lines[6]["vector"].size(), size_t{kToyWidth});
  QCOMPARE(own.lines.size(), size_t{2});
  QCOMPARE(own.lines[0]["id"].get<int>(), 1);
  QCOMPARE(own.lines[0]["log_likelihoods"].size(), size_t{3});
  QCOMPARE(own.lines[1]["id"].get<int>(), 7);
  QCOMPARE(own.lines[1]["log_likelihoods"].size(), size_t{4});
}

void JobsTest::a_liar_is_found_out_and_changes_nothing() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost liar(world.add_host("liar")), second(world.add_host("second")),
      third(world.add_host("third"));
  liar.lies = true;
  const uint64_t id = submit_job(world, kGenerate, {{"prompts.jsonl", prompts()}}).id;
  work_all(world, {&liar, &second, &third}, 150);
  QVERIFY2(job_of(world, id)["state"] == "done", job_of(world, id).dump().c_str());
  QCOMPARE(wrong_lines(output_of(world, id)), QByteArray());
  QCOMPARE(liar.lease().why, std::string("batch.quarantined"));
  auto response = reconcile(world);
  const auto report = report_of(response);
  QCOMPARE(report.getProblemCount(), uint64_t{0});
  QVERIFY(report.getCreditRejected() > 0);
  const auto receipts = liar.host.receipts();
  QVERIFY(std::ranges::any_of(receipts, [](const Receipt& receipt) {
    return receipt.verdict == ReceiptVerdict::kRejected && receipt.reason == "batch.wrong_result";
  }));
  QVERIFY(std::ranges::none_of(receipts, [](const Receipt& receipt) {
    return receipt.verdict == ReceiptVerdict::kConfirmed;
  }));
}

void JobsTest::a_host_that_dies_loses_nothing() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost mortal(world.add_host("mortal")), second(world.add_host("second")),
      third(world.add_host("third"));
  const uint64_t id = submit_job(world, kGenerate, {{"prompts.jsonl", prompts()}}).id;
  const GotUnits taken = mortal.lease(600, 4);
  QVERIFY(!taken.units.empty());
  QCOMPARE(taken.units.size(), size_t{2});
  mortal.host.kill();
  work_all(world, {&second, &third}, 150);
  QVERIFY2(job_of(world, id)["state"] == "done", job_of(world, id).dump().c_str());
  QCOMPARE(wrong_lines(output_of(world, id)), QByteArray());
  // It comes back, and what it brings is too late, but it is paid for what agrees.
  mortal.host.connect();
  QCOMPARE(mortal.submit(taken.units[0]), std::string("notNeeded"));
  QCOMPARE(mortal.last_why, std::string("batch.late"));
  QCOMPARE(mortal.submit(taken.units[0]), std::string("repeated"));
  QCOMPARE(mortal.submit(taken.units[1], [](auto& results) { results[0].tokens[0] = 99; }),
           std::string("notNeeded"));
  const auto receipts = mortal.host.receipts();
  QCOMPARE(receipts.size(), size_t{2});
  QVERIFY(receipts[0].verdict == ReceiptVerdict::kConfirmed && receipts[0].credit > 0);
  QVERIFY(receipts[1].verdict == ReceiptVerdict::kRejected);
  auto response = reconcile(world);
  QCOMPARE(report_of(response).getProblemCount(), uint64_t{0});
}

void JobsTest::nothing_is_counted_twice() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost first(world.add_host("first")), second(world.add_host("second"));
  const uint64_t id = submit_job(world, kGenerate, {{"prompts.jsonl", prompts(10)}}).id;
  const GotUnits got = first.lease(600, 1);
  QCOMPARE(got.units.size(), size_t{1});
  QCOMPARE(first.submit(got.units[0]), std::string("accepted"));
  QCOMPARE(first.submit(got.units[0]), std::string("repeated"));
  // Another result for the same lease changes nothing: the first one counts.
  QCOMPARE(first.submit(got.units[0], [](auto& results) { results[0].tokens[0] = 99; }),
           std::string("repeated"));
  // Nobody submits for another.
  QVERIFY_EXCEPTION_THROWN(second.submit(got.units[0]), kj::Exception);
  second.give_back(got.units[0].lease, rpc::UnitDesk::GiveBack::FAILED);
  QCOMPARE(second.renew({got.units[0].lease, 5})[0], uint64_t{0});
  work_all(world, {&first, &second}, 60);
  QCOMPARE(state_of(world, id), std::string("done"));
  QCOMPARE(first.submit(got.units[0]), std::string("repeated"));
  auto response = reconcile(world);
  QCOMPARE(report_of(response).getProblemCount(), uint64_t{0});
  QCOMPARE(wrong_lines(output_of(world, id), 10), QByteArray());
}

// The broker has forgotten the unit, and its rows answer: who had it twice is paid once.
void JobsTest::a_late_result_is_paid_once_to_an_owner() {
  World world([](CoordinatorSettings& settings) {
    small_units(settings);
    settings.jobs.rules.known_units_max = 0;  // Else it remembers what a trusted host computed.
  });
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost first(world.add_host("first")), second(world.add_host("second"));
  submit_job(world, kGenerate, {{"prompts.jsonl", prompts()}});
  const auto lose = [&](UnitHost& host) {
    const GotUnits got = host.lease(600, 1);
    world.pass_time(Millis{static_cast<int64_t>(got.units.at(0).until_ms) + 1000});
    return got.units[0];
  };
  const GotUnit lost = lose(first), others = lose(second);
  QCOMPARE(others.id, lost.id);
  const GotUnits again = first.lease(600, 1);
  QCOMPARE(again.units.size(), size_t{1});
  QCOMPARE(again.units[0].id, lost.id);
  QCOMPARE(first.submit(again.units[0]), std::string("accepted"));
  UnitHost third(world.add_host("third"));
  set_standing(world, third, rpc::HostInfo::Standing::TRUSTED);
  // The others let the check pass to the third, who is drawn for it in the end.
  for (int turn = 0; turn < 40; ++turn) {
    for (const GotUnit& unit : third.lease(600, 1).units) {
      if (unit.id == lost.id) third.submit(unit);
      if (unit.id != lost.id) third.give_back(unit.lease, rpc::UnitDesk::GiveBack::OWNER);
    }
    world.pass_time(Millis{500});
  }
  QCOMPARE(first.submit(lost), std::string("notNeeded"));
  QCOMPARE(first.last_why, std::string("batch.not_needed"));
  QCOMPARE(second.submit(others), std::string("notNeeded"));
  QCOMPARE(second.last_why, std::string("batch.late"));
  QCOMPARE(second.submit(others), std::string("repeated"));
  auto response = reconcile(world);
  QCOMPARE(report_of(response).getProblemCount(), uint64_t{0});
}

void JobsTest::what_a_banned_host_holds_goes_to_others_at_once() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost banned(world.add_host("banned")), second(world.add_host("second")),
      third(world.add_host("third"));
  const uint64_t id = submit_job(world, kGenerate, {{"prompts.jsonl", prompts(10)}}).id;
  const GotUnits held = banned.lease(600, 2);
  QCOMPARE(held.units.size(), size_t{2});  // All that there is.
  QCOMPARE(second.lease().why, std::string("batch.all_out"));
  QCOMPARE(banned.submit(held.units[0]), std::string("accepted"));
  set_standing(world, banned, rpc::HostInfo::Standing::BANNED);
  const GotUnits got = second.lease(600, 1);
  QCOMPARE(got.units.size(), size_t{1});
  QCOMPARE(got.units[0].id, held.units[1].id);
  QCOMPARE(second.submit(got.units[0]), std::string("accepted"));
  work_all(world, {&second, &third}, 60);
  QCOMPARE(state_of(world, id), std::string("done"));
  QCOMPARE(wrong_lines(output_of(world, id), 10), QByteArray());
  auto response = reconcile(world);
  QCOMPARE(report_of(response).getProblemCount(), uint64_t{0});
}

void JobsTest::what_is_no_result_is_refused() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost first(world.add_host("first"));
  submit_job(world, kGenerate, {{"prompts.jsonl", prompts()}});
  using Spoil = std::function<void(std::vector<ToyResult>&)>;
  const Spoil spoils[] = {
      [](auto& results) { results.pop_back(); },
      [](auto& results) { results[0].tokens.pop_back(); },
      [](auto& results) { results[0].tokens.push_back(40); },
      [](auto& results) { results[0].tokens[2] = kToyVocabulary; },
      [](auto& results) { results[0].tokens[2] = -1; },
      [](auto& results) { results[0].tokens[2] = kToyEos; },
      [](auto& results) { results[0].tokens.clear(); },
  };
  // It counts as a failure: after three in a row the device rests before it gets another unit.
  int refused = 0;
  for (const Spoil& spoil : spoils) {
    GotUnits got = first.lease(600, 1);
    QCOMPARE(got.units.empty(), refused >= 3);
    if (got.units.empty()) {
      QCOMPARE(got.why, std::string("batch.enough"));
      world.pass_time(Millis{got.ask_again_ms});
      got = first.lease(600, 1);
    }
    ++refused;
    QCOMPARE(got.units.size(), size_t{1});
    QCOMPARE(first.submit(got.units[0], spoil), std::string("rejected"));
    QCOMPARE(first.last_why, std::string("batch.malformed"));
  }
}

void JobsTest::a_lost_answer_strands_no_unit() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  world.stop();
  world.store_vfs = faulty_vfs();
  fail_writes_after(-1);
  world.start();
  UnitHost first(world.add_host("first"));
  first.keep_desk();
  const uint64_t id = submit_job(world, kGenerate, {{"prompts.jsonl", prompts()}}).id;
  // The answer never comes: neither is the first on this desk, nor one of later.
  fail_writes_after(0);
  QVERIFY_EXCEPTION_THROWN(first.lease(600, 1), kj::Exception);
  fail_writes_after(-1);
  world.pass_time(Millis{3000});
  const GotUnits got = first.lease(600, 1);
  QCOMPARE(got.units.size(), size_t{1});
  QCOMPARE(job_of(world, id)["tasks"][0]["leased"].get<size_t>(), got.units[0].items.size());
  const GotUnits again = first.lease(600, 1);
  QCOMPARE(again.units.size(), size_t{1});
  QCOMPARE(again.units[0].lease, got.units[0].lease);
  // It speaks of the unit, so it has it: then it gets another one.
  QVERIFY(first.renew({got.units[0].lease})[0] > 0);
  const GotUnits other = first.lease(600, 1);
  QCOMPARE(other.units.size(), size_t{1});
  QVERIFY(other.units[0].lease != got.units[0].lease);
  QCOMPARE(first.lease(600, 2).units[0].lease, other.units[0].lease);
  // Two answers to one login are enough: it holds all that it may.
  QVERIFY(first.lease(600, 2).units.empty());
}

// The first result of a unit is wrong, the second late: when a third agrees with the second, the
// unit's result is that of the earliest lease.
void JobsTest::a_late_result_can_be_the_one_that_counts() {
  World world([](CoordinatorSettings& settings) {
    small_units(settings);
    settings.jobs.rules.unit_items_max = 1;
    settings.jobs.rules.newcomer_units = 0;
    settings.jobs.rules.audit_floor = 0;
  });
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost believed(world.add_host("believed")), slow(world.add_host("slow")),
      judge(world.add_host("judge"));
  set_standing(world, judge, rpc::HostInfo::Standing::TRUSTED);
  const uint64_t before = submit_job(world, kGenerate, {{"prompts.jsonl", prompts(100)}}).id;
  work_all(world, {&believed, &judge}, 80);
  QCOMPARE(state_of(world, before), std::string("done"));

  const uint64_t id = submit_job(world, kGenerate, {{"prompts.jsonl", prompts(5)}}).id;
  const GotUnits wrong = believed.lease(600, 1);
  QCOMPARE(wrong.units.size(), size_t{1});
  world.pass_time(Millis{20'000});
  const GotUnits late = slow.lease(600, 1);
  QCOMPARE(late.units.size(), size_t{1});
  QCOMPARE(late.units[0].id, wrong.units[0].id);
  world.pass_time(Millis{20'000});
  QCOMPARE(believed.submit(wrong.units[0], [](auto& results) { results[0].tokens[0] = 99; }),
           std::string("accepted"));
  QCOMPARE(slow.submit(late.units[0]), std::string("notNeeded"));
  QCOMPARE(slow.last_why, std::string("batch.late"));
  work_all(world, {&judge}, 20);
  QVERIFY2(state_of(world, id) == "done", job_of(world, id).dump().c_str());
  const Output output = output_of(world, id);
  QCOMPARE(wrong_lines(output, 5), QByteArray());
  QVERIFY(!output.digest.empty());
}

void JobsTest::a_units_answer_fits_into_a_message() {
  const auto most = [](TaskKind kind, int64_t tokens, int64_t width) {
    return unit_items_max(kind, tokens, width);
  };
  QCOMPARE(most(TaskKind::kEmbed, 10, 8192), int64_t{1024});
  QVERIFY(most(TaskKind::kEmbed, 10, 8192) * 8192 * 4 <= int64_t{limits::kHiddenBytesMax});
  QCOMPARE(most(TaskKind::kEmbed, 10, int64_t{1} << 30), int64_t{1});
  QCOMPARE(most(TaskKind::kEmbed, 10, 64), int64_t{limits::kItemsPerUnitMax});
  QCOMPARE(most(TaskKind::kScore, 10, 8192), int64_t{limits::kItemsPerUnitMax});
  QCOMPARE(most(TaskKind::kGenerate, 4096, 64), int64_t{limits::kTokensPerUnitMax} / 4096);
}

void JobsTest::a_kill_loses_nothing() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost first(world.add_host("first")), second(world.add_host("second")),
      third(world.add_host("third"));
  const std::string spec = kGenerate +
                           "[[tasks]]\nname = \"place\"\nkind = \"embed\"\nmodel = \"toy\"\n"
                           "input = \"@write\"\n";
  const uint64_t id = submit_job(world, spec, {{"prompts.jsonl", prompts()}}).id;
  for (int turn = 0; turn < 30; ++turn) {
    const GotUnits held = first.lease(600, 1);
    second.work(1);
    third.work(1);
    const Json before = job_of(world, id)["tasks"];
    world.kill();
    // Long enough for every lease to end, had the coordinator been there.
    world.clock.advance(Millis{100'000});
    world.start();
    // What was counted as it came is what the rows say.
    QCOMPARE(job_of(world, id)["tasks"].dump(), before.dump());
    for (UnitHost* host : {&first, &second, &third}) host->host.connect();
    if (!held.units.empty()) {
      const std::string said = first.submit(held.units[0]);
      QVERIFY2(said == "accepted" || said == "notNeeded", said.c_str());
    }
    world.pass_time(Millis{300});
  }
  work_all(world, {&first, &second, &third}, 60);
  QVERIFY2(job_of(world, id)["state"] == "done", job_of(world, id).dump().c_str());
  QCOMPARE(wrong_lines(output_of(world, id, "write")), QByteArray());
  QCOMPARE(output_of(world, id).lines.size(), size_t{kPrompts});
  auto response = reconcile(world);
  QCOMPARE(report_of(response).getProblemCount(), uint64_t{0});
  QCOMPARE(report_of(response).getCreditRejected(), 0.0);
}

void JobsTest::a_kill_between_an_output_and_its_items_stops_no_task() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost first(world.add_host("first")), second(world.add_host("second"));
  const std::string spec = kGenerate +
                           "[[tasks]]\nname = \"place\"\nkind = \"embed\"\nmodel = \"toy\"\n"
                           "input = \"@write\"\n";
  const uint64_t id = submit_job(world, spec, {{"prompts.jsonl", prompts(7)}}).id;
  for (int turn = 0; turn < 60 && output_of(world, id, "write").digest.empty(); ++turn) {
    for (UnitHost* host : {&first, &second}) host->work(1);
    world.pass_time(Millis{100});
  }
  QVERIFY(job_of(world, id)["state"] == "running");
  world.kill();
  {  // As it was before the last of both was stored.
    const auto store = Store::open(world.folder / "data").value();
    Query query = store->query("UPDATE task SET items_digest = x'' WHERE position = 1");
    QVERIFY(query.run().ok());
    QCOMPARE(store->changes(), int64_t{1});
  }
  world.start();
  for (UnitHost* host : {&first, &second}) host->host.connect();
  work_all(world, {&first, &second}, 60);
  QVERIFY2(job_of(world, id)["state"] == "done", job_of(world, id).dump().c_str());
  QCOMPARE(output_of(world, id).lines.size(), size_t{7});
}

void JobsTest::a_job_that_lacks_something_stops_no_other() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  world.publish(make_toy_model("other", 100, 1'000'000));
  UnitHost first(world.add_host("first")), second(world.add_host("second"));
  const auto remove_model = [&](const char* name) {
    auto request = world.admin().removeModelRequest();
    request.setName(name);
    world.run(request.send().ignoreResult());
  };
  // A result of a job that is over waits for its check, and the job's model goes.
  std::string of_other = kGenerate;
  of_other.replace(of_other.find("\"toy\""), 5, "\"other\"");
  const uint64_t cancelled = submit_job(world, of_other, {{"prompts.jsonl", prompts()}}).id;
  const GotUnits got = first.lease(600, 1);
  QCOMPARE(first.submit(got.units.at(0)), std::string("accepted"));
  QVERIFY_EXCEPTION_THROWN(remove_model("other"), kj::Exception);
  change(world, cancelled, rpc::Admin::JobChange::CANCEL);
  remove_model("other");
  // Of a job that runs, the items are damaged.
  const uint64_t damaged = submit_job(world, kGenerate, {{"prompts.jsonl", prompts()}}).id;
  const std::filesystem::path jobs = world.folder / "data" / "jobs";
  std::filesystem::path items;
  for (const auto& entry : std::filesystem::directory_iterator(jobs)) {
    // That of the cancelled job is the same.
    if (entry.path().extension() == ".items") items = entry.path();
  }
  const uint64_t whole = submit_job(world, kGenerate, {{"prompts.jsonl", prompts(10)}}).id;
  QCOMPARE(first.lease(600, 1).units.size(), size_t{1});
  world.kill();
  std::filesystem::rename(items, world.folder / "items");
  world.start();
  for (UnitHost* host : {&first, &second}) host->host.connect();
  QCOMPARE(state_of(world, cancelled), std::string("cancelled"));
  const Json job = job_of(world, damaged);
  QCOMPARE(job["state"].get<std::string>(), std::string("failed"));
  QVERIFY2(job["reason"].get<std::string>().find("cannot go on") != std::string::npos,
           job.dump().c_str());
  work_all(world, {&first, &second}, 60);
  QVERIFY2(state_of(world, whole) == "done", job_of(world, whole).dump().c_str());
  QCOMPARE(wrong_lines(output_of(world, whole), 10), QByteArray());
  // It is refused while it is as it was, and nothing of the refusal stays.
  QVERIFY_EXCEPTION_THROWN(change(world, damaged, rpc::Admin::JobChange::RETRY), kj::Exception);
  QCOMPARE(state_of(world, damaged), std::string("failed"));
  std::filesystem::rename(world.folder / "items", items);
  change(world, damaged, rpc::Admin::JobChange::RETRY);
  work_all(world, {&first, &second}, 60);
  QVERIFY2(state_of(world, damaged) == "done", job_of(world, damaged).dump().c_str());
  QCOMPARE(wrong_lines(output_of(world, damaged)), QByteArray());
}

void JobsTest::a_job_can_be_paused_resumed_and_cancelled() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost first(world.add_host("first"));
  const uint64_t id = submit_job(world, kGenerate, {{"prompts.jsonl", prompts()}}).id;
  change(world, id, rpc::Admin::JobChange::PAUSE);
  QCOMPARE(state_of(world, id), std::string("paused"));
  QVERIFY(!job_of(world, id)["reason"].get<std::string>().empty());
  QCOMPARE(first.lease().why, std::string("batch.no_jobs"));
  change(world, id, rpc::Admin::JobChange::RESUME);
  const GotUnits got = first.lease(600, 1);
  QCOMPARE(got.units.size(), size_t{1});
  QCOMPARE(first.renew({got.units[0].lease}).size(), size_t{1});
  QVERIFY(first.renew({got.units[0].lease})[0] > 0);
  // A model that a job uses is not removed.
  {
    auto request = world.admin().removeModelRequest();
    request.setName("toy");
    QVERIFY_EXCEPTION_THROWN(world.run(request.send().ignoreResult()), kj::Exception);
  }
  change(world, id, rpc::Admin::JobChange::CANCEL);
  QCOMPARE(state_of(world, id), std::string("cancelled"));
  QCOMPARE(first.renew({got.units[0].lease})[0], uint64_t{0});
  // Nobody can check it any more: it is not paid, and counts against nobody.
  QCOMPARE(first.submit(got.units[0]), std::string("notNeeded"));
  QCOMPARE(first.last_why, std::string("batch.not_needed"));
  QCOMPARE(first.host.receipts().size(), size_t{0});
  QVERIFY_EXCEPTION_THROWN(change(world, id, rpc::Admin::JobChange::PAUSE), kj::Exception);
  QVERIFY_EXCEPTION_THROWN(change(world, 99, rpc::Admin::JobChange::CANCEL), kj::Exception);
}

void JobsTest::a_device_without_work_is_told_why() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost first(world.add_host("first"));
  QCOMPARE(first.lease().why, std::string("batch.no_jobs"));
  QVERIFY(first.lease().ask_again_ms > 0);
  submit_job(world, kGenerate, {{"prompts.jsonl", prompts()}});
  QCOMPARE(first.lease(600, 1, "gpu").why, std::string("batch.unknown_device"));
  world.run(first.host.deny_promise({{"generate", "toy", false}}));
  QCOMPARE(first.lease().why, std::string("batch.denied"));
  world.run(first.host.deny_promise({}));
  first.host.options.exact = false;
  first.host.report();
  QCOMPARE(first.lease().why, std::string("batch.not_exact"));
  first.host.options.exact = true;
  first.host.options.memory = 5'000'000;
  first.host.report();
  QCOMPARE(first.lease().why, std::string("batch.too_large"));
  first.host.options.memory = 1'000'000'000;
  first.host.report();
  QCOMPARE(first.lease(600, 1).units.size(), size_t{1});
}

void JobsTest::what_fails_everywhere_is_put_aside_and_tried_again() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost first(world.add_host("first")), second(world.add_host("second")),
      third(world.add_host("third"));
  const uint64_t id = submit_job(world, kGenerate, {{"prompts.jsonl", prompts(10)}}).id;
  uint64_t bad = 0;
  for (UnitHost* host : {&first, &second, &third}) {
    const GotUnits got = host->lease(600, 1);
    QCOMPARE(got.units.size(), size_t{1});
    if (bad == 0) bad = got.units[0].id;
    QCOMPARE(got.units[0].id, bad);
    host->give_back(got.units[0].lease, rpc::UnitDesk::GiveBack::FAILED);
  }
  QVERIFY_EXCEPTION_THROWN(change(world, id, rpc::Admin::JobChange::RETRY), kj::Exception);
  work_all(world, {&first, &second, &third}, 60);
  QCOMPARE(state_of(world, id), std::string("done"));
  const Json task = job_of(world, id)["tasks"][0];
  QCOMPARE(task["quarantined"].get<int>() + task["done"].get<int>(), 10);
  const Output output = output_of(world, id);
  QCOMPARE(output.lines.size(), size_t{10});
  QVERIFY(output.lines[0].contains("error") && !output.lines[0].contains("tokens"));
  QVERIFY(!output.lines[9].contains("error"));
  // Nobody is blamed, and it can be tried again.
  QCOMPARE(first.lease().why, std::string("batch.no_jobs"));
  change(world, id, rpc::Admin::JobChange::RETRY);
  QCOMPARE(state_of(world, id), std::string("running"));
  work_all(world, {&first, &second, &third}, 60);
  QCOMPARE(state_of(world, id), std::string("done"));
  QCOMPARE(wrong_lines(output_of(world, id), 10), QByteArray());
  QVERIFY_EXCEPTION_THROWN(change(world, id, rpc::Admin::JobChange::RETRY), kj::Exception);
  auto response = reconcile(world);
  QCOMPARE(report_of(response).getProblemCount(), uint64_t{0});
}

// Goal: what is made of items that are tried again is made anew, and nothing else is.
void JobsTest::a_retry_reaches_what_was_made_of_it() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost first(world.add_host("first")), second(world.add_host("second")),
      third(world.add_host("third"));
  const std::string spec = kGenerate +
                           "[[tasks]]\nname = \"more\"\nkind = \"generate\"\nmodel = \"toy\"\n"
                           "input = \"@write\"\nmax_tokens = 12\n"
                           "[[tasks]]\nname = \"grade\"\nkind = \"score\"\nmodel = \"toy\"\n"
                           "input = \"@more\"\n";
  const uint64_t whole = submit_job(world, spec, {{"prompts.jsonl", prompts(20)}}).id;
  work_all(world, {&first, &second, &third}, 100);
  QCOMPARE(state_of(world, whole), std::string("done"));
  const uint64_t id = submit_job(world, spec, {{"prompts.jsonl", prompts(20)}}).id;
  for (UnitHost* host : {&first, &second, &third}) {
    const GotUnits got = host->lease(600, 1);
    QCOMPARE(got.units.size(), size_t{1});
    host->give_back(got.units[0].lease, rpc::UnitDesk::GiveBack::FAILED);
  }
  work_all(world, {&first, &second, &third}, 100);
  QVERIFY2(state_of(world, id) == "done", job_of(world, id).dump().c_str());
  const auto errors = [&](const char* task) {
    const Output output = output_of(world, id, task);
    return std::ranges::count_if(output.lines,
                                 [](const Json& line) { return line.contains("error"); });
  };
  for (const char* task : {"write", "more", "grade"}) QCOMPARE(errors(task), ptrdiff_t{5});
  const double credit = job_of(world, id)["credit"].get<double>();
  change(world, id, rpc::Admin::JobChange::RETRY);
  // Three quarters of all stay as they are.
  for (const Json& task : job_of(world, id)["tasks"]) {
    QVERIFY2(task["done"] == 15 && task["quarantined"] == 0, task.dump().c_str());
  }
  first.work(1);
  world.kill();
  world.start();
  for (UnitHost* host : {&first, &second, &third}) host->host.connect();
  work_all(world, {&first, &second, &third}, 100);
  QVERIFY2(state_of(world, id) == "done", job_of(world, id).dump().c_str());
  for (const char* task : {"write", "more", "grade"}) {
    QCOMPARE(output_of(world, id, task).text, output_of(world, whole, task).text);
    QCOMPARE(output_of(world, id, task).digest, output_of(world, whole, task).digest);
  }
  QVERIFY(job_of(world, id)["credit"].get<double>() > credit);
  QVERIFY_EXCEPTION_THROWN(change(world, id, rpc::Admin::JobChange::RETRY), kj::Exception);
  auto response = reconcile(world);
  QCOMPARE(report_of(response).getProblemCount(), uint64_t{0});
}

// Goal: who was paid for a unit of a job that failed is not paid for it again when the job is
// retried, and another computes it.
void JobsTest::what_was_paid_before_a_retry_is_not_paid_again() {
  World world([](CoordinatorSettings& settings) {
    small_units(settings);
    settings.jobs.rules.poison_units_min = 1;
  });
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost paid(world.add_host("paid")), second(world.add_host("second")),
      third(world.add_host("third")), fourth(world.add_host("fourth"));
  const uint64_t id = submit_job(world, kGenerate, {{"prompts.jsonl", prompts()}}).id;
  const GotUnits got = paid.lease(600, 1);
  QCOMPARE(paid.submit(got.units.at(0)), std::string("accepted"));
  for (int turn = 0; turn < 100 && state_of(world, id) != "failed"; ++turn) {
    for (UnitHost* host : {&second, &third, &fourth}) {
      for (const GotUnit& unit : host->lease(600, 1).units)
        host->give_back(unit.lease, rpc::UnitDesk::GiveBack::FAILED);
    }
    world.pass_time(Millis{100});
  }
  QCOMPARE(state_of(world, id), std::string("failed"));
  QCOMPARE(job_of(world, id)["credit"].get<double>(), 0.0);
  // It is told how long that can take.
  try {
    change(world, id, rpc::Admin::JobChange::RETRY);
    QFAIL("a retry while a result waits");
  } catch (const kj::Exception& exception) {
    QVERIFY(rpc::error_of(exception).message.find("48 hours") != std::string::npos);
  }
  // A check of the same host in another job speaks for it.
  const uint64_t other = submit_job(world, kGenerate, {{"prompts.jsonl", prompts(20)}}).id;
  work_all(world, {&paid, &second, &third, &fourth}, 60);
  QCOMPARE(state_of(world, other), std::string("done"));
  QVERIFY(job_of(world, id)["credit"].get<double>() > 0);
  change(world, id, rpc::Admin::JobChange::RETRY);
  QCOMPARE(job_of(world, id)["tasks"][0]["pending"].get<int>(), 0);
  const auto refused = [&] {
    for (int turn = 0; turn < 20; ++turn) {
      for (const GotUnit& unit : paid.lease(600, 1).units) {
        if (unit.id == got.units[0].id) return false;
        paid.submit(unit);
      }
      world.pass_time(Millis{100});
    }
    return true;
  };
  QVERIFY(refused());
  for (UnitHost* host : {&second, &third, &fourth}) host->host.kill();
  QVERIFY2(
      job_of(world, id)["reason"].get<std::string>().find("of another owner") != std::string::npos,
      job_of(world, id).dump().c_str());
  world.kill();
  world.start();
  for (UnitHost* host : {&paid, &second, &third, &fourth}) host->host.connect();
  QVERIFY(refused());
  work_all(world, {&paid, &second, &third, &fourth}, 100);
  QVERIFY2(state_of(world, id) == "done", job_of(world, id).dump().c_str());
  QCOMPARE(wrong_lines(output_of(world, id)), QByteArray());
  auto response = reconcile(world);
  QCOMPARE(report_of(response).getProblemCount(), uint64_t{0});
}

// Goal: what a disk lost of results that count stops no job for ever, while it runs or when it is
// over.
void JobsTest::a_lost_result_fails_its_job_and_a_retry_computes_it_again() {
  constexpr int kMany = 4000;  // Items of two units: their results are files.
  World world([](CoordinatorSettings& settings) {
    small_units(settings);
    settings.jobs.rules.unit_items_max = kMany / 2;
  });
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost first(world.add_host("first")), second(world.add_host("second"));
  const std::string follower =
      "[[tasks]]\nname = \"place\"\nkind = \"embed\"\nmodel = \"toy\"\n"
      "input = \"@write\"\n";
  for (const std::string& spec : {kGenerate, kGenerate + follower}) {
    const uint64_t id = submit_job(world, spec, {{"prompts.jsonl", prompts(kMany)}}).id;
    const GotUnits got = first.lease(6000, 1);
    QCOMPARE(first.submit(got.units.at(0)), std::string("accepted"));
    // Its output cannot be written yet: the names that its file could get are taken.
    const std::filesystem::path jobs = world.folder / "data" / "jobs";
    const auto taken = [&](int i) { return jobs / ("new-" + std::to_string(i)); };
    for (int i = 1; i <= 30; ++i) std::filesystem::create_directories(taken(i) / "full");
    for (int turn = 0; turn < 60 && job_of(world, id)["tasks"][0]["state"] != "done"; ++turn) {
      for (UnitHost* host : {&second, &first}) {
        for (const GotUnit& unit : host->lease(6000, 1).units) host->submit(unit);
      }
      world.pass_time(Millis{100});
    }
    std::vector<std::filesystem::path> results, inputs;
    for (const auto& entry : std::filesystem::directory_iterator(jobs)) {
      if (entry.path().extension() == ".result") results.push_back(entry.path());
      if (entry.path().extension() == ".items") inputs.push_back(entry.path());
    }
    QCOMPARE(results.size(), size_t{2});
    for (const auto& result : results) std::filesystem::remove(result);
    for (int i = 1; i <= 30; ++i) std::filesystem::remove_all(taken(i));
    // Where all is gone it may be the disk that is: nothing is lost yet.
    for (const auto& input : inputs) std::filesystem::rename(input, input.string() + ".away");
    world.pass_time(Millis{60'000});
    QVERIFY2(state_of(world, id) != "failed", job_of(world, id).dump().c_str());
    for (const auto& input : inputs) std::filesystem::rename(input.string() + ".away", input);
    world.pass_time(Millis{200'000});
    const Json job = job_of(world, id);
    QVERIFY2(job["reason"].get<std::string>().find("was lost") != std::string::npos,
             job.dump().c_str());
    QCOMPARE(job["state"].get<std::string>(), std::string("failed"));
    QCOMPARE(job["tasks"][0]["state"].get<std::string>(), std::string("stopped"));
    change(world, id, rpc::Admin::JobChange::RETRY);
    work_all(world, {&first, &second}, 60);
    QVERIFY2(state_of(world, id) == "done", job_of(world, id).dump().c_str());
    QCOMPARE(wrong_lines(output_of(world, id, "write"), kMany), QByteArray());
  }
  auto response = reconcile(world);
  QCOMPARE(report_of(response).getProblemCount(), uint64_t{0});
}

void JobsTest::a_job_that_fails_everywhere_fails() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost first(world.add_host("first")), second(world.add_host("second")),
      third(world.add_host("third"));
  const uint64_t id = submit_job(world, kGenerate, {{"prompts.jsonl", prompts()}}).id;
  for (int turn = 0; turn < 100 && state_of(world, id) != "failed"; ++turn) {
    for (UnitHost* host : {&first, &second, &third}) {
      for (const GotUnit& unit : host->lease(600, 1).units)
        host->give_back(unit.lease, rpc::UnitDesk::GiveBack::REFUSED);
    }
    world.pass_time(Millis{100});
  }
  QCOMPARE(state_of(world, id), std::string("failed"));
  QVERIFY(!job_of(world, id)["reason"].get<std::string>().empty());
  change(world, id, rpc::Admin::JobChange::RETRY);
  // As it is after a restart, too.
  world.stop();
  world.start();
  for (UnitHost* host : {&first, &second, &third}) host->host.connect();
  work_all(world, {&first, &second, &third}, 300);
  QVERIFY2(state_of(world, id) == "done",
           (job_of(world, id).dump() + first.lease().why + second.lease().why + third.lease().why)
               .c_str());
  QCOMPARE(wrong_lines(output_of(world, id)), QByteArray());
}

void JobsTest::large_results_are_files_for_as_long_as_they_count() {
  constexpr int kMany = 2000;  // Items of one unit: 100 KiB of result, some pieces of output.
  World world([](CoordinatorSettings& settings) {
    small_units(settings);
    settings.jobs.rules.unit_items_max = 4096;
  });
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost first(world.add_host("first")), second(world.add_host("second"));
  const auto files = [&](const char* extension) {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(world.folder / "data" / "jobs")) {
      count += entry.path().extension() == extension ? 1 : 0;
    }
    return count;
  };
  const uint64_t cancelled = submit_job(world, kGenerate, {{"prompts.jsonl", prompts(kMany)}}).id;
  const GotUnits got = first.lease(6000, 1);
  QCOMPARE(got.units.size(), size_t{1});
  QCOMPARE(got.units[0].items.size(), size_t{kMany});
  QCOMPARE(first.submit(got.units[0]), std::string("accepted"));
  QCOMPARE(files(".result"), 1);
  change(world, cancelled, rpc::Admin::JobChange::CANCEL);
  QCOMPARE(files(".result"), 0);

  const uint64_t id = submit_job(world, kGenerate, {{"prompts.jsonl", prompts(kMany)}}).id;
  first.work(1);
  QCOMPARE(files(".result"), 1);
  world.kill();
  world.start();
  for (UnitHost* host : {&first, &second}) host->host.connect();
  QCOMPARE(files(".result"), 1);
  for (int turn = 0; turn < 60 && state_of(world, id) != "done"; ++turn) {
    second.work(1);
    world.pass_time(Millis{100});
  }
  // It is asked for while it is being written.
  const Output output = output_of(world, id);
  QCOMPARE(wrong_lines(output, kMany), QByteArray());
  QCOMPARE(output.digest, digest_of(as_bytes(output.text)).hex());
  QCOMPARE(files(".result"), 0);
  QCOMPARE(files(".jsonl"), 1);
}

void JobsTest::an_output_that_cannot_be_written_is_not_tried_all_the_time() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost first(world.add_host("first")), second(world.add_host("second"));
  const uint64_t id = submit_job(world, kGenerate, {{"prompts.jsonl", prompts(5)}}).id;
  const uint64_t other = submit_job(world, kGenerate, {{"prompts.jsonl", prompts(5)}}).id;
  // The names that the next files get are taken.
  constexpr int kTaken = 15;
  const auto taken = [&](int i) {
    return world.folder / "data" / "jobs" / ("new-" + std::to_string(i));
  };
  for (int i = 1; i <= kTaken; ++i) std::filesystem::create_directories(taken(i) / "full");
  for (int turn = 0; turn < 60 && state_of(world, id) != "done"; ++turn) {
    for (UnitHost* host : {&first, &second}) {
      const GotUnits got = host->lease(600, 1);
      if (!got.units.empty()) host->submit(got.units[0]);
    }
    world.pass_time(Millis{50});
  }
  QCOMPARE(state_of(world, id), std::string("done"));
  // Commits come and go meanwhile.
  for (int i = 0; i < 100; ++i) {
    change(world, other, i % 2 == 0 ? rpc::Admin::JobChange::PAUSE : rpc::Admin::JobChange::RESUME);
    world.pass_time(Millis{100});
  }
  QVERIFY(job_of(world, id)["tasks"][0]["digest"].get<std::string>().empty());
  for (int i = 1; i <= kTaken; ++i) std::filesystem::remove_all(taken(i));
  world.pass_time(Millis{30'000});
  const Output output = output_of(world, id);
  QVERIFY(!output.digest.empty());
  QCOMPARE(wrong_lines(output, 5), QByteArray());
}

void JobsTest::a_full_disk_at_any_write_loses_nothing() {
  bool any_failed = false;
  for (int count = 0; count < 24; count += 2) {
    World world(small_units);
    world.publish(make_toy_model("toy", 100, 1'000'000));
    world.stop();
    world.store_vfs = faulty_vfs();
    fail_writes_after(-1);
    world.start();
    UnitHost first(world.add_host("first")), second(world.add_host("second"));
    const uint64_t id = submit_job(world, kGenerate, {{"prompts.jsonl", prompts(10)}}).id;
    fail_writes_after(count);
    for (UnitHost* host : {&first, &second}) {
      try {  // Whatever fails may be asked again.
        host->work(3);
      } catch (const kj::Exception& exception) {
        any_failed = true;
        QVERIFY(exception.getType() == kj::Exception::Type::OVERLOADED);
      }
    }
    fail_writes_after(-1);
    world.pass_time(Millis{5000});
    work_all(world, {&first, &second}, 40);
    QVERIFY2(state_of(world, id) == "done", job_of(world, id).dump().c_str());
    QCOMPARE(wrong_lines(output_of(world, id), 10), QByteArray());
    auto response = reconcile(world);
    QCOMPARE(report_of(response).getProblemCount(), uint64_t{0});
  }
  QVERIFY(any_failed);
}

void JobsTest::work_of_a_group_goes_to_its_hosts_alone() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost inside(world.add_host("in")), outside(world.add_host("out"));
  set_group(world, inside, "lab");
  set_group(world, outside, "other");
  const std::map<std::string, std::string> files = {{"prompts.jsonl", prompts()}};
  const std::string spec = kGenerate;
  QVERIFY(refusal_of_job(world, "privacy = \"group\"\n" + spec, files).find("group") !=
          std::string::npos);
  QVERIFY(refusal_of_job(world, "group = \"lab\"\n" + spec, files).find("group") !=
          std::string::npos);
  QVERIFY(refusal_of_job(world, "privacy = \"group\"\ngroup = \"a\\tb\"\n" + spec, files)
              .find("cannot be shown") != std::string::npos);
  const uint64_t id = submit_job(world, "privacy = \"group\"\ngroup = \"lab\"\n" + spec, files).id;
  QCOMPARE(outside.lease().why, std::string("batch.denied"));
  const auto waits = [&] { return job_of(world, id)["reason"].get<std::string>(); };
  QCOMPARE(waits(), std::string());
  inside.host.kill();
  QCOMPARE(waits(), std::string("it waits for a host of the group lab; none is connected"));
  inside.host.connect();
  QCOMPARE(inside.lease(600, 1).units.size(), size_t{1});
  QCOMPARE(waits(), std::string());
  // Nor after a restart.
  world.stop();
  world.start();
  for (UnitHost* const host : {&inside, &outside}) host->host.connect();
  QCOMPARE(outside.lease().why, std::string("batch.denied"));
  set_group(world, outside, "lab");
  const GotUnits got = outside.lease(600, 1);
  QCOMPARE(got.units.size(), size_t{1});
  // Who has left is not handed again what it held, and the others get it.
  set_group(world, outside, "other");
  QCOMPARE(outside.lease().why, std::string("batch.denied"));
  QCOMPARE(outside.renew({got.units[0].lease}), std::vector<uint64_t>{0});
  std::set<uint64_t> given;
  for (const GotUnit& unit : inside.lease(100'000, 100).units) given.insert(unit.id);
  QVERIFY(given.contains(got.units[0].id));
  // A model of a group needs no such word, and no other group may have it.
  world.publish(make_toy_model("secret", 100, 1'000'000), "", "closed");
  std::string of_secret = spec;
  of_secret.replace(of_secret.find("\"toy\""), 5, "\"secret\"");
  QVERIFY(refusal_of_job(world, "privacy = \"group\"\ngroup = \"lab\"\n" + of_secret, files)
              .find("closed alone") != std::string::npos);
  QVERIFY(
      refusal_of_job(world, "privacy = \"anchored\"\n" + of_secret, files).find("closed alone") !=
      std::string::npos);
}

void JobsTest::who_left_a_group_without_a_device_keeps_nothing_of_it() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  UnitHost stays(world.add_host("stays")), leaves(world.add_host("leaves"));
  for (UnitHost* const host : {&stays, &leaves}) set_group(world, *host, "lab");
  submit_job(world, "privacy = \"group\"\ngroup = \"lab\"\n" + kGenerate,
             {{"prompts.jsonl", prompts(5)}});
  const GotUnits got = leaves.lease(600, 1);
  QCOMPARE(got.units.size(), size_t{1});
  QCOMPARE(stays.lease(600, 1).why, std::string("batch.all_out"));
  leaves.host.options.devices.clear();
  set_group(world, leaves, "other");
  QCOMPARE(leaves.renew({got.units[0].lease}), std::vector<uint64_t>{0});
  const GotUnits others = stays.lease(600, 1);
  QCOMPARE(others.units.size(), size_t{1});
  QCOMPARE(others.units[0].id, got.units[0].id);
}

void JobsTest::a_banned_host_is_owed_nothing_more() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000'000));
  UnitHost first(world.add_host("first")), second(world.add_host("second")),
      third(world.add_host("third"));
  const Submitted job = submit_job(world, kGenerate, {{"prompts.jsonl", prompts()}});
  const GotUnits got = first.lease(600, 1);
  QVERIFY(!got.units.empty());
  QCOMPARE(first.submit(got.units[0]), std::string("accepted"));
  set_standing(world, first, rpc::HostInfo::Standing::BANNED);
  work_all(world, {&second, &third});
  QCOMPARE(state_of(world, job.id), std::string("done"));
  const auto hosts = world.run(kj::Promise<capnp::Response<rpc::Admin::ListHostsResults>>(
      world.admin().listHostsRequest().send()));
  for (const auto host : hosts.getHosts()) {
    if (host.getId() == first.host.id) {
      QVERIFY(host.getCreditConfirmed() == 0 && host.getCreditPending() == 0);
    } else {
      QVERIFY(host.getCreditConfirmed() > 0);
    }
  }
  auto report = reconcile(world);
  QCOMPARE(report_of(report).getProblemCount(), uint64_t{0});
}

void JobsTest::wrong_files_are_refused_by_line() {
  World world(small_units);
  world.publish(make_toy_model("toy", 100, 1'000'000));
  const std::pair<const char*, const char*> specs[] = {
      {"name = ", "line 1"},
      {"{\"name\": ", "line 1"},
      {"name = \"a\"\n", "tasks"},
      {"[[tasks]]\nname = \"x\"\n", "name"},
      {"name = \"a\"\npriority = 5000\n[[tasks]]\n", "line 2: priority"},
      {"name = \"a\"\n[[tasks]]\nname = \"x\"\nkind = \"dream\"\nmodel = \"toy\"\ninput = \"i\"\n",
       "line 4: tasks[0].kind"},
      {"name = \"a\"\n[[tasks]]\nname = \"x\"\nkind = \"embed\"\nmodel = \"toy\"\ninput = \"@y\"\n",
       "line 6: tasks[0].input"},
      {"name = \"a\"\n[[tasks]]\nname = \"x\"\nkind = \"embed\"\nmodel = \"toy\"\ninput = \"i\"\n"
       "seed = 5\n",
       "tasks[0].seed: there is no such field"},
      {"name = \"a\"\n[[tasks]]\nname = \"x\"\nkind = \"embed\"\nmodel = \"gone\"\ninput = \"i\"\n",
       "task x: there is no model gone"},
      {"name = \"a\"\ndeadline = 2026-12-24\n", "line 2: deadline: a day needs"},
      {"name = \"a\"\n[[tasks]]\nname = \"x\"\nkind = \"generate\"\nmodel = \"toy\"\ninput = "
       "\"i\"\ntop_p = 1.5\n",
       "line 7: tasks[0].top_p: it is not between 0 and 1"},
      {"name = \"a\"\n[[tasks]]\nname = \"x\"\nkind = \"generate\"\nmodel = \"toy\"\ninput = "
       "\"i\"\n"
       "temperature = 500\n",
       "temperature"},
      {"name = \"a\"\n[[tasks]]\nname = \"x\"\nkind = \"generate\"\nmodel = \"toy\"\ninput = "
       "\"i\"\n"
       "stop_tokens = [259]\n",
       "no token 259"},
  };
  for (const auto& [spec, part] : specs) {
    const std::string said = refusal_of_job(world, spec, {{"i", "{\"text\":\"x\"}\n"}});
    QVERIFY2(said.find(part) != std::string::npos, (std::string(spec) + ": " + said).c_str());
  }
  const std::pair<std::string, const char*> lines[] = {
      {"{\"prompt\":\"x\"}\nnonsense\n", "prompts.jsonl, line 2: it is no JSON object"},
      {"[1]\n", "line 1: it is no JSON object"},
      {"\n\n{\"id\":3}\n", "line 3: it has neither"},
      {"{\"prompt\":\"x\",\"text\":\"y\"}", "both"},
      {"{\"prompt\":5}", "not a text"},
      {"{\"prompt\":\"x\",\"max_tokens\":0}", "max_tokens"},
      {"{\"prompt\":\"x\",\"temperature\":-1}", "temperature"},
      {"{\"prompt\":\"x\",\"colour\":1}", "no field \"colour\""},
      {"{\"prompt\":\"x\",\"id\":[1]}", "\"id\""},
      {"{\"prompt\":\"" + std::string(500, 'x') + "\"}", "the model's context holds 200"},
      {"", "it has no items"},
  };
  for (const auto& [text, part] : lines) {
    const std::string said = refusal_of_job(world, kGenerate, {{"prompts.jsonl", text}});
    QVERIFY2(said.find(part) != std::string::npos, (text + ": " + said).c_str());
  }
  // Nothing of all that stays.
  QVERIFY(std::filesystem::is_empty(world.folder / "data" / "jobs"));
}

QTEST_GUILESS_MAIN(JobsTest)
#include "jobs_test.moc"
