// Goal: each lease is paid once, by the model's graph; every host can prove what it is owed; one
// number is shown everywhere; and an owner's word on his device holds. Method: the real coordinator
// and fake hosts in virtual time, and the ledger's tables by themselves.

#include <QTest>

#include <kj/async-io.h>
#include <kj/debug.h>

#include "coordinator/session/ledger.h"
#include "coordinator/store/host_table.h"
#include "coordinator/store/session_table.h"
#include "schema/message.h"
#include "tests/coordinator/world.h"

using namespace shoal;
using namespace shoal::test;

namespace {

// Of each fragment. Devices say that they do 10^9 a second: a fragment takes a second a row, as the
// planner sees it.
constexpr int64_t kFlopsPerRow = 1'000'000'000;

// The world, with so many hosts.
struct Scene {
  World world;
  explicit Scene(int hosts, std::function<void(CoordinatorSettings&)> adjust = {})
      : world(std::move(adjust)) {
    world.publish(make_toy_model("toy", 100, kFlopsPerRow));
    for (int i = 0; i < hosts; ++i) world.add_host("h" + std::to_string(i));
  }
  FakeHost& named(const std::string& name) {
    for (auto& host : world.hosts) {
      if (host->options.name == name) return *host;
    }
    qFatal("no such host");
  }
};

bool has(const std::string& text, const char* part) {
  if (text.find(part) != std::string::npos) return true;
  qWarning("said: \"%s\"", text.c_str());
  return false;
}

double credit_for(int64_t rows, int64_t fragments) {
  return credit_of(credit_parts(Flops{rows * fragments * kFlopsPerRow}));
}

capnp::Response<rpc::Admin::ReconcileLedgerResults> reconcile(World& world) {
  return world.run(kj::Promise<capnp::Response<rpc::Admin::ReconcileLedgerResults>>(
      world.admin().reconcileLedgerRequest().send()));
}

SigningPublicKey receipt_key(FakeHost& host) {
  const auto response =
      host.world.run(kj::Promise<capnp::Response<rpc::HostSession::DescribeResults>>(
          KJ_ASSERT_NONNULL(host.session).describeRequest().send()));
  return SigningPublicKey::from_bytes(rpc::bytes_of(response.getReceiptKey())).value();
}

std::string code_of(FakeHost& host) {
  const auto response = host.ping();
  return response.getStanding().getDevices()[0].getWhy().getCode().cStr();
}

// A store with a session and leases, as a coordinator has it.
struct Books {
  TempDir folder;
  std::unique_ptr<Store> store;
  ManualClock clock;
  SigningKey key = SigningKey::generate();
  std::optional<LedgerTable> table;
  std::optional<Ledger> ledger;
  HostId host;
  SessionId session;

  Books() {
    open();
    HostRow row;
    row.name = "h";
    host = HostTable(*store).enrol(row).value();
    SessionRow started;
    started.model = "toy";
    started.privacy = "public";
    started.state = "running";
    session = SessionTable(*store).start(started).value();
  }
  void open() {
    ledger.reset();
    table.reset();
    store.reset();
    store = Store::open(folder.path()).value();
    table.emplace(*store);
    ledger.emplace(*table, clock, key);
  }
  LeaseWork work(int64_t rows) {
    SessionStageRow stage;
    stage.host = host;
    stage.device = "cpu";
    const LeaseId lease = SessionTable(*store).grant_lease(session, stage, Millis{1}).value();
    return {lease,
            session,
            host,
            "cpu",
            {"generate", "toy", false},
            0,
            5,
            rows,
            Flops{rows * 1'000'000'000'000}};
  }
  LedgerCheck::Report check() {
    LedgerCheck checking(*table, key.public_key());
    while (checking.go_on().value()) {
    }
    return checking.report();
  }
};

}  // namespace

class LedgerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_session_pays_each_stage_by_the_graph();
  void a_lost_stage_is_paid_for_what_it_answered();
  void a_wrong_answer_is_not_paid();
  void a_session_that_fails_costs_its_hosts_nothing();
  void a_replayed_end_does_not_pay_twice();
  void history_cannot_be_changed();
  void a_changed_receipt_is_not_genuine();
  void what_a_former_run_left_is_settled();
  void a_ledger_that_does_not_agree_is_found();
  void receipts_come_in_bounded_pieces();
  void the_receipt_key_stays();
  void the_card_says_what_is_asked();
  void the_standing_says_why();
  void denied_work_is_not_planned();
  void consent_taken_back_moves_the_stage();
  void a_device_is_used_only_while_its_owner_allows();
  void one_that_leaves_takes_nobodys_place();
  void a_paused_device_gets_nothing_and_fails_nothing();
  void a_device_may_pause_and_come_back();
  void who_leaves_in_order_fails_nothing();
};

void LedgerTest::a_session_pays_each_stage_by_the_graph() {
  Scene scene(3);
  World& world = scene.world;
  const Generated run = world.generate({});
  const auto rows = static_cast<int64_t>(run.prompt_ids.size() + run.ids.size() - 1);
  double all = 0;
  for (size_t stage = 0; stage < 3; ++stage) {
    FakeHost& host = scene.named(run.hosts[stage]);
    const int64_t next = stage == 2 ? kToyFragments : run.first_fragments[stage + 1];
    const double owed = credit_for(rows, next - run.first_fragments[stage]);
    const auto receipts = host.receipts();
    QCOMPARE(receipts.size(), size_t{1});
    const Receipt& receipt = receipts[0];
    QCOMPARE(receipt.number, uint64_t{1});
    QCOMPARE(static_cast<uint64_t>(receipt.host.value), host.id);
    QCOMPARE(receipt.device, std::string("cpu"));
    QVERIFY((receipt.job_class == JobClass{"generate", "toy", false}));
    QCOMPARE(receipt.rows, static_cast<uint64_t>(rows));
    QVERIFY(receipt.credit == owed && owed > 0);
    QVERIFY(receipt.verdict == ReceiptVerdict::kConfirmed);
    QCOMPARE(receipt.reason, std::string());
    QVERIFY(receipt_is_genuine(receipt, receipt_key(host)));
    // The same number wherever one looks.
    const auto standing = host.ping();
    QCOMPARE(standing.getStanding().getNewestReceipt(), uint64_t{1});
    QVERIFY(standing.getStanding().getCreditConfirmed() == owed);
    QVERIFY(standing.getStanding().getCreditPending() == 0);
    all += owed;
  }
  const auto hosts = world.run(kj::Promise<capnp::Response<rpc::Admin::ListHostsResults>>(
      world.admin().listHostsRequest().send()));
  double listed = 0;
  for (const auto host : hosts.getHosts()) listed += host.getCreditConfirmed();
  QVERIFY(listed == all);
  const auto report = reconcile(world);
  QVERIFY(report.getReport().getCreditConfirmed() == all);
  QCOMPARE(report.getReport().getLeases(), uint64_t{3});
  QCOMPARE(report.getReport().getReceipts(), uint64_t{3});
  QCOMPARE(report.getReport().getProblemCount(), uint64_t{0});
}

void LedgerTest::a_lost_stage_is_paid_for_what_it_answered() {
  Scene scene(4);
  World& world = scene.world;
  const Generated first = world.generate({});
  FakeHost& victim = scene.named(first.hosts[1]);
  const auto before = victim.receipts();
  victim.fault = Fault::kStall;  // It comes back within the session: its word is heard.
  victim.fault_at_step = 6;
  std::vector<Receipt> meanwhile;
  const Generated run = world.generate({});
  QCOMPARE(run.ids, first.ids);
  QCOMPARE(run.failovers.size(), size_t{1});
  const auto receipts = victim.receipts(before.size());
  QCOMPARE(receipts.size(), size_t{2});
  QVERIFY(receipts[0].verdict == ReceiptVerdict::kPending);
  QVERIFY(receipts[1].verdict == ReceiptVerdict::kConfirmed);
  QVERIFY(receipts[0].lease == receipts[1].lease);
  QCOMPARE(receipts[1].number, receipts[0].number + 1);
  // The prompt's rows in one step, then five tokens.
  QCOMPARE(receipts[1].rows, first.prompt_ids.size() + 5);
  // Its replacement did those again, and the rest.
  FakeHost& replacement = scene.named(run.hosts[1]);
  QCOMPARE(replacement.receipts().back().rows, run.prompt_ids.size() + run.ids.size() - 1);
  const auto standing = victim.ping();
  QVERIFY(standing.getStanding().getCreditPending() == 0);
  QVERIFY(standing.getStanding().getCreditConfirmed() == before[0].credit + receipts[1].credit);
  QCOMPARE(reconcile(world).getReport().getProblemCount(), uint64_t{0});
}

void LedgerTest::a_wrong_answer_is_not_paid() {
  Scene scene(4);
  World& world = scene.world;
  const Generated reference = world.generate({});
  FakeHost& liar = scene.named(reference.hosts[1]);
  const double honest = liar.ping().getStanding().getCreditConfirmed();
  liar.fault = Fault::kNonFinite;
  liar.fault_at_step = 4;
  const Generated run = world.generate({});
  QCOMPARE(run.ids, reference.ids);
  const Receipt receipt = liar.receipts().back();
  QVERIFY(receipt.verdict == ReceiptVerdict::kRejected);
  QCOMPARE(receipt.reason, std::string("credit.wrong_answer"));
  QVERIFY(receipt.rows > 0 && receipt.credit > 0);
  const auto standing = liar.ping();
  QVERIFY(standing.getStanding().getCreditConfirmed() == honest);
  QVERIFY(standing.getStanding().getCreditRejected() == receipt.credit);
  // The others are paid.
  QVERIFY(scene.named(run.hosts[0]).receipts().back().verdict == ReceiptVerdict::kConfirmed);
  // A first answer that is wrong is told, too.
  liar.steps = 0;
  liar.fault_at_step = 0;
  world.generate({});
  const Receipt second = liar.receipts().back();
  QVERIFY(second.number > receipt.number && second.verdict == ReceiptVerdict::kRejected);
  QCOMPARE(second.rows, uint64_t{0});
  QCOMPARE(reconcile(world).getReport().getProblemCount(), uint64_t{0});
}

void LedgerTest::a_session_that_fails_costs_its_hosts_nothing() {
  Scene scene(3, [](CoordinatorSettings& settings) { settings.session.kept_memory_max = 300; });
  World& world = scene.world;
  // A file where the folder would be: the session fails in its middle, by nobody's fault.
  QVERIFY(write_file_durably(world.folder / "data" / "spill", as_bytes("x")).ok());
  QVERIFY(!world.refusal_of({.tokens_max = 40}).empty());
  for (auto& host : world.hosts) {
    const auto receipts = host->receipts();
    QCOMPARE(receipts.size(), size_t{1});
    QVERIFY(receipts[0].verdict == ReceiptVerdict::kConfirmed && receipts[0].credit > 0);
  }
  // Who asked goes away.
  for (auto& host : world.hosts) {
    host->fault = Fault::kStall;
    host->steps = 0;
    host->fault_at_step = 2;
  }
  {
    kj::Promise<Generated> running = world.generate_promise({.prompt = "hi", .tokens_max = 9});
    world.pass_time(Millis{50});
  }
  world.settle();
  for (auto& host : world.hosts) {
    const Receipt last = host->receipts().back();
    QVERIFY(last.number == 2 && last.verdict == ReceiptVerdict::kConfirmed);
  }
}

void LedgerTest::a_replayed_end_does_not_pay_twice() {
  Books books;
  const LeaseWork work = books.work(3);
  QVERIFY(books.ledger->lease_ended(work, judge({})).ok());
  QVERIFY(books.ledger->lease_ended(work, judge({})).ok());
  LeaseWork more = work;
  more.rows = 100;
  more.flops = Flops{100'000'000'000'000};
  QVERIFY(books.ledger->lease_ended(more, judge({.session_over = true})).ok());
  auto standing = books.ledger->standing(books.host).value();
  QVERIFY(standing.pending == 3 && standing.confirmed == 0 && standing.newest_receipt == 1);
  QVERIFY(books.ledger->settle(books.session, {}).ok());
  QVERIFY(books.ledger->settle(books.session, {}).ok());
  QVERIFY(books.ledger->settle(books.session, {books.host}).ok());
  standing = books.ledger->standing(books.host).value();
  QVERIFY(standing.pending == 0 && standing.confirmed == 3 && standing.rejected == 0);
  QCOMPARE(standing.newest_receipt, uint64_t{2});
  QVERIFY(books.ledger->lease_ended(work, judge({.wrong_answer = true})).ok());
  QVERIFY(books.ledger->standing(books.host).value().rejected == 0);
  // What the host did beside a lie, in the same session, is withheld.
  QVERIFY(books.ledger->lease_ended(books.work(5), judge({})).ok());
  QVERIFY(books.ledger->settle(books.session, {books.host}).ok());
  standing = books.ledger->standing(books.host).value();
  QVERIFY(standing.rejected == 5 && standing.confirmed == 3);
  QCOMPARE(books.check().problem_count, int64_t{0});
}

void LedgerTest::history_cannot_be_changed() {
  Books books;
  QVERIFY(books.ledger->lease_ended(books.work(3), judge({})).ok());
  const auto refused = [&](const char* sql, const char* why) {
    const Result<void> done = books.store->query(sql).run();
    return !done.ok() && has(done.error().message, why);
  };
  QVERIFY(refused("UPDATE ledger SET row_count = 9", "append-only"));
  QVERIFY(refused("DELETE FROM ledger", "append-only"));
  QVERIFY(refused("UPDATE receipt SET number = 9", "append-only"));
  QVERIFY(refused("DELETE FROM receipt", "append-only"));
  QVERIFY(refused(
      "INSERT INTO ledger SELECT 9, lease_id, session_id, unit_id, host_id, device, kind, model, "
      "privacy, first_fragment, last_fragment, row_count, flops, credit_parts, "
      "ended_at_ms, group_name FROM ledger",
      "UNIQUE"));
  QVERIFY(books.ledger->settle(books.session, {}).ok());
  QVERIFY(
      refused("INSERT INTO receipt SELECT 9, host_id, 9, ledger_id, 'rejected', 'x', at_ms, "
              "signature, 0, 0, 0 FROM receipt WHERE verdict = 'confirmed'",
              "UNIQUE"));
}

void LedgerTest::a_changed_receipt_is_not_genuine() {
  Books books;
  QVERIFY(books.ledger->lease_ended(books.work(3), judge({.session_over = true})).ok());
  const Receipt receipt = books.ledger->receipts(books.host, 0, 10).value()[0];
  const SigningPublicKey key = books.key.public_key();
  QVERIFY(receipt_is_genuine(receipt, key));
  QVERIFY(!receipt_is_genuine(receipt, SigningKey::generate().public_key()));
  for (size_t i = 0; i < receipt.signature.size(); ++i) {
    Receipt changed = receipt;
    changed.signature[i] ^= std::byte{1};
    QVERIFY(!receipt_is_genuine(changed, key));
  }
  const std::function<void(Receipt&)> kChanges[] = {
      [](Receipt& r) { r.number += 1; },
      [](Receipt& r) { r.host.value += 1; },
      [](Receipt& r) { r.lease.value += 1; },
      [](Receipt& r) { r.device += "x"; },
      [](Receipt& r) { r.job_class.kind = "merge"; },
      [](Receipt& r) { r.job_class.model += "x"; },
      [](Receipt& r) { r.job_class.anchored = true; },
      [](Receipt& r) { r.rows += 1; },
      [](Receipt& r) { r.credit = std::nextafter(r.credit, 100.0); },
      [](Receipt& r) { r.verdict = ReceiptVerdict::kPending; },
      [](Receipt& r) { r.reason = "credit.wrong_answer"; },
      [](Receipt& r) { r.at.count += 1; },
  };
  for (const auto& change : kChanges) {
    Receipt changed = receipt;
    change(changed);
    QVERIFY(!receipt_is_genuine(changed, key));
  }
}

void LedgerTest::what_a_former_run_left_is_settled() {
  Books books;
  QVERIFY(books.ledger->lease_ended(books.work(3), judge({})).ok());  // Lost in mid-session.
  books.work(0);                                                      // A lease that goes on.
  books.open();                                                       // As after kill -9.
  QVERIFY(books.ledger->settle_former_run().ok());
  QVERIFY(SessionTable(*books.store).fail_unfinished(Millis{9}, "coordinator restarted").ok());
  const auto standing = books.ledger->standing(books.host).value();
  QVERIFY(standing.confirmed == 3 && standing.pending == 0 && standing.rejected == 0);
  const auto receipts = books.ledger->receipts(books.host, 0, 10).value();
  QCOMPARE(receipts.size(), size_t{3});
  QVERIFY(std::ranges::any_of(receipts, [](const Receipt& receipt) {
    return receipt.reason == "credit.coordinator_restarted" && receipt.rows == 0;
  }));
  QVERIFY(books.ledger->settle_former_run().ok());
  QCOMPARE(books.ledger->receipts(books.host, 0, 10).value().size(), size_t{3});
  QCOMPARE(books.check().problem_count, int64_t{0});
}

void LedgerTest::a_ledger_that_does_not_agree_is_found() {
  const struct {
    const char* sql;
    const char* says;
  } kDamage[] = {
      {"UPDATE ledger SET credit_parts = credit_parts + 1 WHERE id = 2", "another credit"},
      {"UPDATE ledger SET row_count = row_count + 1 WHERE id = 2", "signature"},
      {"UPDATE receipt SET confirmed_parts_sum = 7 WHERE id = 3", "other sums"},
      {"UPDATE receipt SET number = 9 WHERE id = 3", "comes after number 2"},
      {"UPDATE receipt SET reason = 'x' WHERE id = 1", "reason"},
      {"UPDATE receipt SET signature = zeroblob(64) WHERE id = 4", "signature"},
      {"DELETE FROM receipt WHERE id = 5", "receipts speak of 2"},
  };
  for (const auto& damage : kDamage) {
    Books books;
    for (int i = 0; i < 3; ++i) {
      QVERIFY(books.ledger->lease_ended(books.work(1 + i), judge({.session_over = i == 2})).ok());
      if (i == 1) QVERIFY(books.ledger->settle(books.session, {}).ok());
    }
    QCOMPARE(books.check().problem_count, int64_t{0});
    QCOMPARE(books.check().leases, int64_t{3});
    for (const char* trigger :
         {"DROP TRIGGER ledger_is_never_changed", "DROP TRIGGER receipt_is_never_changed",
          "DROP TRIGGER receipt_is_never_removed"}) {
      QVERIFY(books.store->query(trigger).run().ok());
    }
    QVERIFY(books.store->query(damage.sql).run().ok());
    const LedgerCheck::Report report = books.check();
    QVERIFY2(report.problem_count > 0, damage.sql);
    QVERIFY(std::ranges::any_of(report.problems, [&](const std::string& problem) {
      return problem.find(damage.says) != std::string::npos;
    }));
  }
}

void LedgerTest::receipts_come_in_bounded_pieces() {
  Scene scene(1);
  FakeHost& host = *scene.world.hosts[0];
  for (int i = 0; i < 5; ++i) scene.world.generate({.tokens_max = 2, .stages_min = 1});
  QCOMPARE(host.receipts().size(), size_t{5});
  QCOMPARE(host.receipts(0, 2).size(), size_t{2});
  QCOMPARE(host.receipts(2, 2)[0].number, uint64_t{3});
  QCOMPARE(host.receipts(5).size(), size_t{0});
  QCOMPARE(host.receipts(UINT64_MAX).size(), size_t{0});
  QCOMPARE(host.receipts(0, UINT32_MAX).size(), size_t{5});
  // Another host's are nobody's business.
  FakeHost& other = scene.world.add_host("other");
  QCOMPARE(other.receipts().size(), size_t{0});
}

void LedgerTest::the_receipt_key_stays() {
  Scene scene(1);
  World& world = scene.world;
  FakeHost& host = *world.hosts[0];
  world.generate({.stages_min = 1});
  const SigningPublicKey key = receipt_key(host);
  world.stop();
  // Wrapped: the store does not show it.
  const auto store = read_file(world.folder / "data" / "store.sqlite", kGibibyte).value();
  {
    const DataFolder folder = open_data_folder(world.folder / "data", "").value();
    const SecretBytes seed = folder.receipt_key->seed();
    QVERIFY(as_text(store).find(as_text(seed.view())) == std::string_view::npos);
    QVERIFY(as_text(store).find(hex_encode(seed.view())) == std::string_view::npos);
  }
  world.start();
  host.connect();
  QVERIFY(receipt_key(host) == key);
  QVERIFY(receipt_is_genuine(host.receipts()[0], key));
  QVERIFY(host.ping().getStanding().getCreditConfirmed() > 0);
}

void LedgerTest::the_card_says_what_is_asked() {
  Scene scene(1, [](CoordinatorSettings& settings) {
    settings.name = "A library";
    settings.operator_text = "The city's library, for its readers.";
  });
  World& world = scene.world;
  const auto check = [](rpc::CoordinatorCard::Reader card) {
    QCOMPARE(std::string(card.getName().cStr()), std::string("A library"));
    QVERIFY(has(card.getOperator().cStr(), "for its readers"));
    QCOMPARE(card.getOffers().size(), 2u);
    const auto offer = card.getOffers()[0];
    QVERIFY((read_job_class(offer.getJobClass()) == JobClass{"generate", "toy", false}));
    QVERIFY(read_job_class(card.getOffers()[1].getJobClass()).anchored);
    QVERIFY(offer.getSealedBytes() > 6 * 100);
    QVERIFY(offer.getCreditPerRow() == credit_for(1, kToyFragments));
  };
  const auto response = world.run(kj::Promise<capnp::Response<rpc::HostSession::DescribeResults>>(
      KJ_ASSERT_NONNULL(world.hosts[0]->session).describeRequest().send()));
  check(response.getCard());
  // A stranger reads it before he joins; it is no burden, however much there is to say.
  const auto stranger = [&](const std::function<void(rpc::CoordinatorCard::Reader)>& act) {
    rpc::Peer peer{"here", kj::refcounted<rpc::ReceiveLimit>(1)};
    auto door = world.coordinator->host_door(kj::mv(peer)).castAs<rpc::Coordinator>();
    const auto answer = world.run(kj::Promise<capnp::Response<rpc::Coordinator::DescribeResults>>(
        door.describeRequest().send()));
    act(answer.getCard());
  };
  stranger(check);
  for (int i = 0; i < 40; ++i) {
    world.publish(make_toy_model("m" + std::to_string(i)), std::string(1024, 'p'));
  }
  stranger([](rpc::CoordinatorCard::Reader card) {
    QVERIFY(card.totalSize().wordCount * 8 <= limits::kLoginMessageBytesMax);
    QVERIFY(card.getOffers().size() > 10);
    QCOMPARE(card.getOffers()[0].getPurpose().size(), size_t{1024});
  });
  const auto all = world.run(kj::Promise<capnp::Response<rpc::HostSession::DescribeResults>>(
      KJ_ASSERT_NONNULL(world.hosts[0]->session).describeRequest().send()));
  QCOMPARE(all.getCard().getOffers().size(), 82u);
  QVERIFY_THROWS_EXCEPTION(kj::Exception,
                           world.publish(make_toy_model("x"), std::string(1025, 'p')));
  QVERIFY_THROWS_EXCEPTION(kj::Exception, world.publish(make_toy_model("x"), "a\x1b[31m"));
}

void LedgerTest::the_standing_says_why() {
  World world;
  FakeHost& host = world.add_host("h", {.memory = 1'500'000});
  const auto standing = [&] { return host.ping().getStanding().getDevices()[0].getSinceMs(); };
  QCOMPARE(code_of(host), std::string("standing.no_model"));
  const int64_t since = standing();
  world.pass_time(Millis{5'000});
  QCOMPARE(standing(), since);
  world.publish(make_toy_model("toy"));
  QCOMPARE(code_of(host), std::string("standing.no_request"));
  QVERIFY(standing() > since);
  host.options.memory = 100'000;
  host.report();
  QCOMPARE(code_of(host), std::string("standing.model_too_large"));
  {
    const auto response = host.ping();
    const Message message = read_message(response.getStanding().getDevices()[0].getWhy());
    QCOMPARE(message.parameters.size(), size_t{1});
    QVERIFY(has(english(message), "90.0 kB"));
  }
  host.options.memory = 1'000'000'000;
  host.options.exact = false;
  host.report();
  QCOMPARE(code_of(host), std::string("standing.not_exact"));
  host.options.exact = true;
  host.options.has_worker = false;
  host.report();
  QCOMPARE(code_of(host), std::string("standing.no_worker"));
  host.options.has_worker = true;
  host.options.available_ms = 60'000;
  host.report();
  QCOMPARE(code_of(host), std::string("standing.leaving"));
  host.options.available_ms = 0;
  host.options.state = rpc::DeviceReport::State::PAUSED;
  host.report();
  QCOMPARE(code_of(host), std::string("standing.paused"));
  host.options.state = rpc::DeviceReport::State::READY;
  host.report();
  world.run(host.deny_promise({{"generate", "toy", false}}));
  QCOMPARE(code_of(host), std::string("standing.no_request"));
  world.run(host.deny_promise({{"generate", "toy", false}, {"generate", "toy", true}}));
  QCOMPARE(code_of(host), std::string("standing.denied"));
  world.run(host.deny_promise({}));
  host.fault = Fault::kStall;
  kj::Promise<Generated> running = world.generate_promise({.stages_min = 1});
  world.pass_time(Millis{50});
  QCOMPARE(code_of(host), std::string());
  QCOMPARE(std::string(host.ping().getStanding().getDevices()[0].getState().cStr()),
           std::string("working"));
}

void LedgerTest::denied_work_is_not_planned() {
  Scene scene(2);
  World& world = scene.world;
  FakeHost &first = *world.hosts[0], &second = *world.hosts[1];
  world.run(first.deny_promise({{"generate", "toy", false}}));
  for (int i = 0; i < 3; ++i) {
    QCOMPARE(world.generate({.stages_min = 1}).hosts, std::vector<std::string>{"h1"});
  }
  QVERIFY(has(world.refusal_of({.stages_min = 2}),
              "2 stages were asked for, but only 1 devices are ready; 1 more is ready, but its "
              "owner does not allow this class of work"));
  world.run(second.deny_promise({{"generate", "toy", false}}));
  QVERIFY(has(world.refusal_of({.stages_min = 1}),
              "the owners of all 2 devices that are ready do not allow this class of work"));
  // What was said holds when the host comes back, before it says it again.
  second.connect();
  QVERIFY(has(world.refusal_of({.stages_min = 1}), "do not allow this class of work"));
  // Another class is another matter.
  QVERIFY(has(world.refusal_of({.stages_min = 1, .anchored = true}), "trusted host"));
  world.run(first.deny_promise({{"generate", "other", false}, {"merge", "toy", false}}));
  QCOMPARE(world.generate({.stages_min = 1}).hosts, std::vector<std::string>{"h0"});
  QVERIFY_THROWS_EXCEPTION(kj::Exception,
                           world.run(first.deny_promise(std::vector<JobClass>(
                               limits::kJobClassesMax + 1, JobClass{"generate", "toy", false}))));
}

void LedgerTest::consent_taken_back_moves_the_stage() {
  Scene scene(4);
  World& world = scene.world;
  const Generated reference = world.generate({});
  FakeHost& owner = scene.named(reference.hosts[1]);
  const Generated run = world.generate({.on_token = [&](size_t count) {
    if (count == 4) world.tasks().add(owner.deny_promise({{"generate", "toy", false}}));
  }});
  QCOMPARE(run.ids, reference.ids);
  QCOMPARE(run.failovers.size(), size_t{1});
  QVERIFY(has(run.failovers[0].cause, "no longer allows"));
  QVERIFY(owner.receipts().back().verdict == ReceiptVerdict::kConfirmed);
  const std::string events = world.events_text();
  QVERIFY(has(events, "stage_given_back"));
  QVERIFY(events.find("stage_lost") == std::string::npos);
}

// A token takes six seconds here, as predicted: 12 tokens after 14 of the prompt some 200.
void LedgerTest::a_device_is_used_only_while_its_owner_allows() {
  Scene scene(1);
  World& world = scene.world;
  FakeHost& host = *world.hosts[0];
  host.options.available_ms = 150'000;
  host.report();
  QVERIFY(has(world.refusal_of({.stages_min = 1}),
              "the owner of the one device that is ready wants it back before the session would "
              "end"));
  QCOMPARE(world.generate({.tokens_max = 3, .stages_min = 1}).ids.size(), size_t{3});
  host.options.available_ms = 220'000;
  host.report();
  QCOMPARE(world.generate({.stages_min = 1}).ids.size(), size_t{12});
  // Time goes by.
  host.report();
  world.pass_time(Millis{60'000});
  QVERIFY(!world.refusal_of({.stages_min = 1}).empty());
  // No end is no limit, and neither is one beyond all plans.
  for (const uint64_t end : {uint64_t{0}, UINT64_MAX}) {
    host.options.available_ms = end;
    host.report();
    QCOMPARE(world.generate({.stages_min = 1}).ids.size(), size_t{12});
  }
}

void LedgerTest::one_that_leaves_takes_nobodys_place() {
  Scene scene(1);
  World& world = scene.world;
  world.hosts[0]->options.available_ms = 1'000;
  world.hosts[0]->report();
  FakeHost& second = world.add_host("second");
  world.add_host("third");
  const Generated run = world.generate({.stages_min = 1, .on_token = [&](size_t count) {
                                          if (count == 3) second.kill();
                                        }});
  QCOMPARE(run.hosts, std::vector<std::string>{"third"});
}

void LedgerTest::a_paused_device_gets_nothing_and_fails_nothing() {
  for (const auto state : {rpc::DeviceReport::State::PAUSED, rpc::DeviceReport::State::DRAINING}) {
    Scene scene(4);
    World& world = scene.world;
    const Generated reference = world.generate({});
    FakeHost& owner = scene.named(reference.hosts[1]);
    const bool paused = state == rpc::DeviceReport::State::PAUSED;
    const Generated run = world.generate({.on_token = [&](size_t count) {
      if (count != 4) return;
      owner.options.state = state;
      world.tasks().add(owner.report_promise());
      owner.fault = Fault::kStall;  // It ends its stages.
      owner.steps = 0;
      owner.fault_at_step = paused ? 0 : 3;
    }});
    QCOMPARE(run.ids, reference.ids);
    QCOMPARE(run.failovers.size(), size_t{1});
    QVERIFY(run.failovers[0].replacement != owner.options.name);
    if (paused) QVERIFY(has(run.failovers[0].cause, "its owner's rules"));
    QVERIFY(owner.receipts().back().verdict == ReceiptVerdict::kConfirmed);
    const std::string events = world.events_text();
    QVERIFY(has(events, paused ? "device_paused" : "device_draining"));
    QVERIFY(has(events, "stage_given_back"));
    QVERIFY(events.find("stage_lost") == std::string::npos);
    // Nothing new comes to it.
    const int opened = owner.stages_opened;
    owner.fault = Fault::kNone;
    world.generate({});
    QCOMPARE(owner.stages_opened, opened);
  }
}

// Back in mid-session, it is as good as any other: here the only one, and more often than a failing
// device is tried again.
void LedgerTest::a_device_may_pause_and_come_back() {
  Scene alone(1);
  FakeHost& host = *alone.world.hosts[0];
  const Generated reference = alone.world.generate({.tokens_max = 24, .stages_min = 1});
  kj::Promise<Generated> running = alone.world.generate_promise(
      {.tokens_max = 24, .stages_min = 1, .on_token = [&](size_t count) {
         if (count % 2 == 0) return;
         host.options.state = rpc::DeviceReport::State::PAUSED;
         alone.world.tasks().add(host.report_promise());
       }});
  for (int i = 0; i < 16; ++i) {
    alone.world.pass_time(Millis{500});
    host.options.state = rpc::DeviceReport::State::READY;
    host.report();
  }
  const Generated run = alone.world.run(kj::mv(running));
  QCOMPARE(run.ids, reference.ids);
  QVERIFY(run.failovers.size() >= 10);
}

void LedgerTest::who_leaves_in_order_fails_nothing() {
  Scene scene(4);
  World& world = scene.world;
  const Generated reference = world.generate({});
  FakeHost& owner = scene.named(reference.hosts[1]);
  const Generated run = world.generate({.on_token = [&](size_t count) {
    if (count != 4) return;
    auto request = KJ_ASSERT_NONNULL(owner.session).leaveRequest();
    request.setReason("good night");
    world.tasks().add(request.send().ignoreResult());
  }});
  QCOMPARE(run.ids, reference.ids);
  QCOMPARE(run.failovers.size(), size_t{1});
  const std::string events = world.events_text();
  QVERIFY(has(events, "stage_given_back") && events.find("stage_lost") == std::string::npos);
  // Without a word it is another matter.
  FakeHost& rude = scene.named(run.hosts[0]);
  world.generate({.on_token = [&](size_t count) {
    if (count == 4) rude.kill();
  }});
  QVERIFY(has(world.events_text(), "stage_lost"));
}

QTEST_GUILESS_MAIN(LedgerTest)
#include "ledger_test.moc"
