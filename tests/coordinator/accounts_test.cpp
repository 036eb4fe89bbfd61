// Goal: an account answers for its hosts and a ban of it ends what they do; work of a group stays
// in it; every receipt is under the signed root of its day, and credit has a worth where an
// administrator gave it one. Method: the real coordinator and fake hosts in virtual time.

#include <QTest>

#include <kj/debug.h>

#include <map>

#include "coordinator/session/ledger.h"
#include "coordinator/session/ledger_days.h"
#include "coordinator/store/account_table.h"
#include "coordinator/store/host_table.h"
#include "coordinator/store/session_table.h"
#include "schema/ledger_day.h"
#include "tests/coordinator/world.h"

using namespace shoal;
using namespace shoal::test;

namespace {

constexpr int64_t kDayMs = 86'400'000;

std::string failure_of(const std::function<void()>& act) {
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { act(); })) {
    return exception->getDescription().cStr();
  }
  return "";
}

bool has(const std::string& text, const char* part) {
  if (text.find(part) != std::string::npos) return true;
  qWarning("said: \"%s\"", text.c_str());
  return false;
}

// Whose work is worth something.
ToyModel a_model(const std::string& name) { return make_toy_model(name, 100, 1'000'000'000); }

template <class Results, class Request>
capnp::Response<Results> ask(World& world, Request request) {
  return world.run(kj::Promise<capnp::Response<Results>>(request.send()));
}

void create_account(World& world, const std::string& name) {
  auto request = world.admin().createAccountRequest();
  request.setName(name);
  world.run(request.send().ignoreResult());
}

uint32_t ban(World& world, const std::string& name, bool banned) {
  auto request = world.admin().setAccountBannedRequest();
  request.setName(name);
  request.setBanned(banned);
  return ask<rpc::Admin::SetAccountBannedResults>(world, kj::mv(request)).getHostsDropped();
}

void join(World& world, const std::string& account, const std::string& team) {
  auto request = world.admin().joinTeamRequest();
  request.setAccount(account);
  request.setTeam(team);
  world.run(request.send().ignoreResult());
}

std::string invite_for(World& world, const std::string& account, const std::string& group) {
  auto request = world.admin().createInviteRequest();
  request.setLifetimeMs(3'600'000);
  request.setUsesMax(10);
  request.setAccount(account);
  request.setGroup(group);
  const auto response = ask<rpc::Admin::CreateInviteResults>(world, kj::mv(request));
  return rpc::parse_attach_url(response.getUrl().cStr()).value().invite;
}

void set_group(World& world, uint64_t host, const std::string& group) {
  auto request = world.admin().setHostGroupRequest();
  request.setHostId(host);
  request.setGroup(group);
  world.run(request.send().ignoreResult());
}

capnp::Response<rpc::Admin::ListAccountsResults> accounts(World& world) {
  return ask<rpc::Admin::ListAccountsResults>(world, world.admin().listAccountsRequest());
}

capnp::Response<rpc::Admin::ReconcileLedgerResults> reconcile(World& world) {
  return ask<rpc::Admin::ReconcileLedgerResults>(world, world.admin().reconcileLedgerRequest());
}

uint32_t offers_on_the_card(FakeHost& host) {
  const auto response = ask<rpc::HostSession::DescribeResults>(
      host.world, KJ_ASSERT_NONNULL(host.session).describeRequest());
  return response.getCard().getOffers().size();
}

// Books of several hosts without a coordinator: days of many receipts are quick.
struct Books {
  TempDir folder;
  std::unique_ptr<Store> store = Store::open(folder.path()).value();
  ManualClock clock{Millis{1000 * kDayMs + 1}};
  SigningKey key = SigningKey::generate();
  LedgerTable table{*store};
  Ledger ledger{table, clock, key};
  LedgerDays days{table, clock, key};
  std::vector<HostId> hosts;
  SessionId session;

  explicit Books(int count) {
    for (int i = 0; i < count; ++i) {
      HostRow row;
      row.public_key.bytes[0] = static_cast<std::byte>(i);
      hosts.push_back(HostTable(*store).enrol(row).value());
    }
    SessionRow started;
    started.privacy = "public";
    started.state = "running";
    session = SessionTable(*store).start(started).value();
  }
  void add(HostId host) {
    SessionStageRow stage;
    stage.host = host;
    const LeaseId lease = SessionTable(*store).grant_lease(session, stage, Millis{1}).value();
    const LeaseWork work{
        lease, session, host, "cpu", {"generate", "m", false}, 0, 1, 1, Flops{1'000'000'000'000}};
    QVERIFY(ledger.lease_ended(work, judge({.session_over = true})).ok());
  }
  void close_days() {
    while (days.go_on().value()) {
    }
  }
  // All proofs of a host for the first day from this one on, as a client asks for them.
  std::vector<ReceiptProof> proofs(HostId host, int64_t from_day, uint64_t after,
                                   uint32_t at_once) {
    std::vector<ReceiptProof> all;
    while (true) {
      const auto some = days.proofs(host, from_day, after, at_once).value();
      for (const ReceiptProof& proof : some.proofs) all.push_back(proof);
      if (!some.more) return all;
      after = all.back().number;
    }
  }
  LedgerCheck::Report check() {
    LedgerCheck checking(table, key.public_key());
    while (checking.go_on().value()) {
    }
    return checking.report();
  }
};

}  // namespace

class AccountsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_invite_says_whose_a_host_is();
  void credit_is_summed_by_account_and_team();
  void a_ban_ends_what_an_accounts_hosts_do();
  void names_are_checked();
  void work_of_a_group_stays_in_it();
  void a_groups_model_goes_to_its_hosts_alone();
  void who_leaves_a_group_loses_its_stages();
  void each_day_gets_one_root();
  void every_receipt_is_proved_to_be_in_its_day();
  void wrong_clocks_lose_no_receipt();
  void a_clock_that_ran_ahead_stops_no_days();
  void changed_days_are_found();
  void hosts_read_days_over_the_wire();
  void credit_has_a_worth_when_it_is_set();
};

void AccountsTest::an_invite_says_whose_a_host_is() {
  World world;
  create_account(world, "ann");
  QVERIFY(has(failure_of([&] { create_account(world, "ann"); }), "already"));
  QVERIFY(has(failure_of([&] { invite_for(world, "bob", ""); }), "no account bob"));
  FakeHost& hers = world.add_host("h0", {.invite = invite_for(world, "ann", "lab")});
  FakeHost& nobodys = world.add_host("h1");
  const auto response = ask<rpc::Admin::ListHostsResults>(world, world.admin().listHostsRequest());
  for (const auto host : response.getHosts()) {
    const bool is_hers = host.getId() == hers.id;
    QCOMPARE(std::string(host.getAccount().cStr()), std::string(is_hers ? "ann" : ""));
    QCOMPARE(std::string(host.getGroup().cStr()), std::string(is_hers ? "lab" : ""));
  }
  auto standing = hers.ping();
  QCOMPARE(std::string(standing.getStanding().getAccount().cStr()), std::string("ann"));
  QCOMPARE(std::string(standing.getStanding().getGroup().cStr()), std::string("lab"));
  QCOMPARE(nobodys.ping().getStanding().getAccount().size(), size_t{0});
  // It is so after a new login, and with another URL.
  hers.kill();
  hers.options.invite = "none";
  hers.connect();
  QCOMPARE(std::string(hers.ping().getStanding().getAccount().cStr()), std::string("ann"));
  const auto list = accounts(world);
  QCOMPARE(list.getAccounts().size(), 1u);
  QCOMPARE(list.getAccounts()[0].getHosts(), 1u);
  QCOMPARE(list.getAccounts()[0].getHostsConnected(), 1u);
  // An administrator gives it to another.
  create_account(world, "bob");
  auto request = world.admin().setHostAccountRequest();
  request.setHostId(hers.id);
  request.setAccount("bob");
  world.run(request.send().ignoreResult());
  hers.connect();
  QCOMPARE(std::string(hers.ping().getStanding().getAccount().cStr()), std::string("bob"));
  auto unknown = world.admin().setHostAccountRequest();
  unknown.setHostId(999);
  QVERIFY(has(failure_of([&] { world.run(unknown.send().ignoreResult()); }), "no host 999"));
}

void AccountsTest::credit_is_summed_by_account_and_team() {
  World world;
  world.publish(a_model("toy"));
  create_account(world, "ann");
  create_account(world, "bob");
  for (const char* const team : {"reds", "blues"}) {
    auto request = world.admin().createTeamRequest();
    request.setName(team);
    world.run(request.send().ignoreResult());
  }
  QVERIFY(has(failure_of([&] { join(world, "ann", "greens"); }), "no team greens"));
  QVERIFY(has(failure_of([&] { join(world, "eve", "reds"); }), "no account eve"));
  join(world, "ann", "reds");
  join(world, "bob", "reds");
  world.add_host("h0", {.invite = invite_for(world, "ann", "")});
  world.add_host("h1", {.invite = invite_for(world, "ann", "")});
  world.add_host("h2", {.invite = invite_for(world, "bob", "")});
  world.generate({});
  double of_ann = 0, of_bob = 0;
  for (auto& host : world.hosts) {
    (host->options.name == "h2" ? of_bob : of_ann) +=
        host->ping().getStanding().getCreditConfirmed();
  }
  QVERIFY(of_ann > 0 && of_bob > 0);
  const auto list = accounts(world);
  QVERIFY(list.getAccounts()[0].getCreditConfirmed() == of_ann);
  QVERIFY(list.getAccounts()[1].getCreditConfirmed() == of_bob);
  const auto teams = [&] {
    return ask<rpc::Admin::ListTeamsResults>(world, world.admin().listTeamsRequest());
  };
  auto both = teams();
  QCOMPARE(both.getTeams().size(), 2u);  // By name.
  QVERIFY(both.getTeams()[0].getCreditConfirmed() == 0);
  QCOMPARE(both.getTeams()[1].getMembers().size(), 2u);
  QVERIFY(both.getTeams()[1].getCreditConfirmed() == of_ann + of_bob);
  // Who joins another leaves the first one.
  join(world, "bob", "blues");
  join(world, "ann", "");
  auto after = teams();
  QVERIFY(after.getTeams()[0].getCreditConfirmed() == of_bob);
  QCOMPARE(after.getTeams()[1].getMembers().size(), 0u);
}

void AccountsTest::a_ban_ends_what_an_accounts_hosts_do() {
  World world;
  world.publish(a_model("toy"));
  create_account(world, "eve");
  const std::string invite = invite_for(world, "eve", "");
  FakeHost& first = world.add_host("h0", {.invite = invite});
  const Generated before = world.generate({.stages_min = 1});
  const double paid = first.ping().getStanding().getCreditConfirmed();
  QVERIFY(paid > 0);
  FakeHost& other = world.add_host("h1");
  other.options.state = rpc::DeviceReport::State::PAUSED;  // Until it is needed.
  other.report();
  // In mid-session: another host takes over, and what the banned one did counts nothing.
  bool banned = false;
  kj::Promise<void> coming = kj::READY_NOW;
  auto request = world.admin().setAccountBannedRequest();
  request.setName("eve");
  request.setBanned(true);
  const Generated run = world.generate({.stages_min = 1, .on_token = [&](size_t count) {
                                          if (count != 4 || std::exchange(banned, true)) return;
                                          other.options.state = rpc::DeviceReport::State::READY;
                                          coming = other.report_promise().then(
                                              [&] { return request.send().ignoreResult(); });
                                          coming = coming.eagerlyEvaluate(nullptr);
                                        }});
  QVERIFY(run.ids == before.ids);
  QCOMPARE(run.hosts, std::vector<std::string>{"h1"});
  QVERIFY(has(failure_of([&] { first.report(); }), "login is over"));
  QVERIFY(has(failure_of([&] { first.connect(); }), "account that this host belongs to is banned"));
  QVERIFY(has(failure_of([&] { world.add_host("h2", {.invite = invite}); }), "banned"));
  QVERIFY(has(failure_of([&] { invite_for(world, "eve", ""); }), "account unban"));
  const auto list = accounts(world);
  QVERIFY(list.getAccounts()[0].getBanned());
  QCOMPARE(list.getAccounts()[0].getHostsConnected(), 0u);
  QVERIFY(list.getAccounts()[0].getCreditConfirmed() == paid);  // What was confirmed stays.
  QVERIFY(list.getAccounts()[0].getCreditPending() == 0);
  QVERIFY(list.getAccounts()[0].getCreditRejected() > 0);
  QCOMPARE(reconcile(world).getReport().getProblemCount(), uint64_t{0});
  QCOMPARE(ban(world, "eve", false), 0u);
  QCOMPARE(failure_of([&] { first.connect(); }), std::string());
  QCOMPARE(first.receipts().back().reason, std::string("credit.host_banned"));
  // Who is not banned loses nothing by the end of a ban.
  QCOMPARE(ban(world, "eve", false), 0u);
  QCOMPARE(failure_of([&] { first.report(); }), std::string());
  QCOMPARE(ban(world, "eve", true), 1u);
  QVERIFY(has(failure_of([&] { ban(world, "adam", true); }), "no account adam"));
}

void AccountsTest::names_are_checked() {
  World world;
  QVERIFY(has(failure_of([&] { create_account(world, ""); }), "at least one character"));
  QVERIFY(has(failure_of([&] { create_account(world, "a\nb"); }), "cannot be shown"));
  QVERIFY(has(failure_of([&] { create_account(world, " ann"); }), "space at its ends"));
  QVERIFY(has(failure_of([&] { create_account(world, "ann "); }), "space at its ends"));
  QCOMPARE(failure_of([&] { create_account(world, "ann lee"); }), std::string());
  QVERIFY(has(failure_of([&] { create_account(world, std::string(257, 'a')); }), "name"));
  QCOMPARE(failure_of([&] { create_account(world, std::string(256, 'a')); }), std::string());
  QVERIFY(has(failure_of([&] { invite_for(world, "", "a\x1b[1m"); }), "group"));
  QVERIFY(has(failure_of([&] { set_group(world, 1, "x"); }), "no host 1"));
  GenerateAsk asked;
  asked.group = "a\tb";
  QVERIFY(has(world.refusal_of(asked), "cannot be shown"));
}

void AccountsTest::work_of_a_group_stays_in_it() {
  World world;
  world.publish(a_model("toy"));
  FakeHost& inside = world.add_host("in", {.invite = invite_for(world, "", "lab")});
  world.add_host("out");
  world.add_host("elsewhere", {.invite = invite_for(world, "", "other")});
  GenerateAsk asked{.stages_min = 1};
  asked.group = "lab";
  for (int i = 0; i < 3; ++i) {
    QCOMPARE(world.generate(asked).hosts, std::vector<std::string>{"in"});
  }
  const Receipt receipt = inside.receipts().back();
  QVERIFY(receipt.job_class.group && !receipt.job_class.anchored);
  // Nobody else helps out, however many there are.
  asked.stages_min = 2;
  QVERIFY(!world.refusal_of(asked).empty());
  asked.stages_min = 1;
  inside.kill();
  world.settle();
  QVERIFY(has(world.refusal_of(asked), "no device of the group lab is ready"));
  inside.connect();
  world.run(inside.deny_promise({{"generate", "toy", false, true}}));
  QVERIFY(!world.refusal_of(asked).empty());
  QCOMPARE(world.generate({.stages_min = 3}).hosts.size(), size_t{3});  // Public work goes on.
  world.run(inside.deny_promise({}));
  inside.fault = Fault::kDrop;
  inside.fault_at_step = inside.steps + 3;
  QVERIFY(!world.refusal_of(asked).empty());  // Lost in mid-session: no stranger replaces it.
  const auto sessions = ask<rpc::Admin::ListSessionsResults>(world, [&] {
    auto request = world.admin().listSessionsRequest();
    request.setEndedMax(1);
    return request;
  }());
  QVERIFY(sessions.getSessions()[0].getPrivacy() == rpc::Privacy::GROUP);
  QCOMPARE(std::string(sessions.getSessions()[0].getGroup().cStr()), std::string("lab"));
  QCOMPARE(reconcile(world).getReport().getProblemCount(), uint64_t{0});
}

void AccountsTest::a_groups_model_goes_to_its_hosts_alone() {
  World world;
  const ToyModel model = a_model("secret");
  world.publish(model, "", "lab");
  FakeHost& inside = world.add_host("in", {.invite = invite_for(world, "", "lab")});
  FakeHost& outside = world.add_host("out");
  QCOMPARE(offers_on_the_card(inside), 1u);
  QCOMPARE(offers_on_the_card(outside), 0u);
  QCOMPARE(std::string(outside.ping().getStanding().getDevices()[0].getWhy().getCode().cStr()),
           std::string("standing.no_model"));
  // Whatever level was asked for, it is this one.
  const Generated run = world.generate({.model = "secret", .stages_min = 1});
  QCOMPARE(run.hosts, std::vector<std::string>{"in"});
  QVERIFY(inside.receipts().back().job_class.group);
  QCOMPARE(outside.stages_opened, 0);
  GenerateAsk other{.model = "secret", .stages_min = 1};
  other.group = "other";
  QVERIFY(has(world.refusal_of(other), "alone"));
  QVERIFY(has(world.refusal_of({.model = "secret", .stages_min = 1, .anchored = true}), "alone"));
  world.publish(a_model("open"));
  QCOMPARE(offers_on_the_card(inside), 4u);
  QCOMPARE(offers_on_the_card(outside), 2u);
}

void AccountsTest::who_leaves_a_group_loses_its_stages() {
  World world;
  world.publish(a_model("toy"));
  FakeHost& first = world.add_host("h0", {.invite = invite_for(world, "", "lab")});
  GenerateAsk asked{.stages_min = 1};
  asked.group = "lab";
  QCOMPARE(world.generate(asked).hosts, std::vector<std::string>{"h0"});
  set_group(world, first.id, "");
  QVERIFY(has(failure_of([&] { first.report(); }), "login is over"));
  first.connect();
  QVERIFY(has(world.refusal_of(asked), "no device of the group lab"));
  set_group(world, first.id, "lab");
  first.connect();
  QCOMPARE(world.generate(asked).hosts, std::vector<std::string>{"h0"});
}

void AccountsTest::each_day_gets_one_root() {
  Books books(1);
  books.close_days();
  QCOMPARE(books.days.newest().value(), int64_t{0});
  books.add(books.hosts[0]);
  books.add(books.hosts[0]);
  books.close_days();  // The day is not over.
  QVERIFY(books.table.days(0, 10).value().empty());
  books.clock.set_wall(Millis{1001 * kDayMs - 1});
  books.close_days();
  QVERIFY(books.table.days(0, 10).value().empty());
  books.clock.set_wall(Millis{1001 * kDayMs});
  books.add(books.hosts[0]);  // Of the next day.
  books.close_days();
  QCOMPARE(books.days.newest().value(), int64_t{1000});
  // Days without receipts have none.
  books.clock.set_wall(Millis{1005 * kDayMs + 7});
  books.close_days();
  books.close_days();
  const auto days = books.table.days(0, 10).value();
  QCOMPARE(days.size(), size_t{2});
  QCOMPARE(days[0].receipts, int64_t{2});
  QCOMPARE(days[1].day, int64_t{1001});
  QCOMPARE(days[1].receipts, int64_t{1});
  QCOMPARE(days[0].previous_root, Digest());
  QCOMPARE(days[1].previous_root, days[0].root);
  std::vector<Digest> leaves;
  const auto receipts = books.ledger.receipts(books.hosts[0], 0, 10).value();
  for (const Receipt& receipt : receipts) {
    leaves.push_back(receipt_leaf(receipt));
  }
  QCOMPARE(days[0].root, merkle_node(leaves[0], leaves[1]));
  QCOMPARE(days[1].root, leaves[2]);
  for (const LedgerDayRow& row : days) {
    QVERIFY(ledger_day_is_genuine(ledger_day_from(row), books.key.public_key()));
  }
  QCOMPARE(books.check().days, int64_t{2});
  QCOMPARE(books.check().problem_count, int64_t{0});
  for (const char* const sql : {"UPDATE ledger_day SET day = 9", "DELETE FROM ledger_day"}) {
    QVERIFY(has(books.store->query(sql).run().error().message, "append-only"));
  }
}

// 64 receipts are a chunk: both sides of it, and hosts that share and do not share one.
void AccountsTest::every_receipt_is_proved_to_be_in_its_day() {
  for (const int count : {1, 63, 64, 65, 130, 300}) {
    Books books(3);
    QVERIFY(books.store
                ->transaction([&]() -> Result<void> {
                  for (int day = 0; day < 2; ++day) {
                    for (int i = 0; i < count; ++i) {
                      books.add(books.hosts[i % 7 == 0 ? 1 : 0]);
                    }
                    books.clock.advance(Millis{kDayMs});
                  }
                  return {};
                })
                .ok());
    books.close_days();
    const auto days = books.table.days(0, 10).value();
    QCOMPARE(days.size(), size_t{2});
    for (const HostId host : books.hosts) {
      const auto receipts = books.ledger.receipts(host, 0, 1000).value();
      std::map<uint64_t, Receipt> by_number;
      for (const Receipt& receipt : receipts) by_number[receipt.number] = receipt;
      size_t proved = 0;
      for (const LedgerDayRow& row : days) {
        const LedgerDay day = ledger_day_from(row);
        QCOMPARE(day.count, static_cast<uint64_t>(count));
        for (const ReceiptProof& proof : books.proofs(host, row.day, proved, 10)) {
          QCOMPARE(proof.number, proved + 1);  // In order, none left out.
          QVERIFY(receipt_is_in(day, by_number.at(proof.number), proof));
          Receipt other = by_number.at(proof.number);
          other.credit += 1;
          QVERIFY(!receipt_is_in(day, other, proof));
          ++proved;
        }
      }
      QCOMPARE(proved, receipts.size());
    }
    QCOMPARE(books.check().problem_count, int64_t{0});
    // What is asked of another day, or after the last number, is nothing.
    QVERIFY(books.days.proofs(books.hosts[0], 5000, 0, 10).value().day.count == 0);
    QVERIFY(books.days.proofs(books.hosts[0], 0, UINT64_MAX, 10).value().proofs.empty());
    QVERIFY(books.days.proofs(HostId{99}, 0, 0, 10).value().proofs.empty());
    QVERIFY(books.days.proofs(books.hosts[0], INT64_MIN, 0, 0).value().proofs.empty());
  }
}

void AccountsTest::wrong_clocks_lose_no_receipt() {
  Books books(1);
  for (const int64_t day : {1000, 1030, 1001, 999, 1002, 1002, 1031}) {
    books.clock.set_wall(Millis{day * kDayMs + 5});
    books.add(books.hosts[0]);
    books.close_days();
  }
  books.clock.set_wall(Millis{2000 * kDayMs});
  books.close_days();
  int64_t receipts = 0, last = 0;
  const auto days = books.table.days(0, 100).value();
  for (const LedgerDayRow& row : days) {
    QVERIFY(row.day > last);
    last = row.day;
    receipts += row.receipts;
  }
  QCOMPARE(receipts, int64_t{7});
  QCOMPARE(books.check().problem_count, int64_t{0});
}

// Goal: neither a receipt, nor a root, of a clock that ran ahead keeps the days after it from
// having theirs, and no day is there that clients refuse.
void AccountsTest::a_clock_that_ran_ahead_stops_no_days() {
  {
    Books books(1);
    books.clock.set_wall(Millis{9000 * kDayMs});
    books.add(books.hosts[0]);
    for (const int64_t day : {1000, 1001, 1002, 1003}) {
      books.clock.set_wall(Millis{day * kDayMs + 5});
      books.add(books.hosts[0]);
      books.close_days();
      QVERIFY(books.days.newest().value() < day);
    }
    QCOMPARE(books.days.newest().value(), int64_t{1002});
    const auto days = books.table.days(0, 100).value();
    int64_t receipts = 0;
    for (const LedgerDayRow& row : days) receipts += row.receipts;
    QCOMPARE(receipts, int64_t{4});
    QCOMPARE(books.check().problem_count, int64_t{0});
  }
  {
    Books books(1);
    books.add(books.hosts[0]);
    books.clock.set_wall(Millis{9000 * kDayMs});
    books.add(books.hosts[0]);
    books.clock.set_wall(Millis{9001 * kDayMs});
    books.close_days();
    QCOMPARE(books.days.newest().value(), int64_t{9000});
    // A day is over when it is, whatever number is left for it.
    for (const int64_t day : {1001, 1002, 1003}) {
      books.clock.set_wall(Millis{day * kDayMs + 5});
      books.add(books.hosts[0]);
      books.close_days();
      books.close_days();
      QCOMPARE(books.days.newest().value(), 9000 + day - 1001);
    }
    QCOMPARE(books.check().problem_count, int64_t{0});
  }
  for (const int64_t before : {0, -3}) {
    Books books(1);
    books.clock.set_wall(Millis{before * kDayMs + 7});
    books.add(books.hosts[0]);
    books.close_days();
    books.clock.set_wall(Millis{1 * kDayMs});
    books.close_days();
    QVERIFY(books.table.days(INT64_MIN, 10).value().empty());
    books.clock.set_wall(Millis{2 * kDayMs});
    books.close_days();
    QCOMPARE(books.table.days(INT64_MIN, 10).value().at(0).day, int64_t{1});
  }
}

void AccountsTest::changed_days_are_found() {
  const auto problem = [](const char* sql) {
    Books books(1);
    for (int day = 0; day < 3; ++day) {
      books.add(books.hosts[0]);
      books.clock.advance(Millis{kDayMs});
    }
    books.close_days();
    for (const char* const trigger :
         {"DROP TRIGGER ledger_day_is_never_changed", "DROP TRIGGER ledger_day_is_never_removed"}) {
      if (!books.store->query(trigger).run().ok()) return std::string("no trigger");
    }
    if (!books.store->query(sql).run().ok()) return std::string("not changed");
    const LedgerCheck::Report report = books.check();
    return report.problems.empty() ? std::string() : report.problems.front();
  };
  QCOMPARE(problem("UPDATE ledger_day SET day = day"), std::string());
  QVERIFY(has(problem("UPDATE ledger_day SET root = zeroblob(32) WHERE day = 1000"), "root"));
  QVERIFY(has(problem("UPDATE ledger_day SET receipt_count = 2 WHERE day = 1001"), "receipts"));
  QVERIFY(
      has(problem("UPDATE ledger_day SET signature = zeroblob(64) WHERE day = 1002"), "signature"));
  QVERIFY(has(problem("DELETE FROM ledger_day WHERE day = 1001"), "1972-09-29"));
  QVERIFY(has(problem("UPDATE ledger_day SET previous_root = zeroblob(32) WHERE day = 1002"),
              "follow"));
}

void AccountsTest::hosts_read_days_over_the_wire() {
  World world;
  world.publish(a_model("toy"));
  FakeHost& host = world.add_host("h");
  world.generate({.stages_min = 1});
  QCOMPARE(host.ping().getStanding().getNewestLedgerDay(), int64_t{0});
  const int64_t day = day_of(world.clock.now_wall());
  world.clock.set_wall(Millis{(day + 1) * kDayMs});
  world.pass_time(Millis{61'000});
  QCOMPARE(host.ping().getStanding().getNewestLedgerDay(), day);
  auto request = KJ_ASSERT_NONNULL(host.session).ledgerDayRequest();
  request.setFromDay(day - 10);
  request.setCountMax(1000);
  const auto answer = ask<rpc::HostSession::LedgerDayResults>(world, kj::mv(request));
  const LedgerDay told = read_ledger_day(answer.getDay());
  QCOMPARE(told.day, day);
  const auto listed = ask<rpc::Admin::ListLedgerDaysResults>(world, [&] {
    auto days = world.admin().listLedgerDaysRequest();
    days.setCountMax(10);
    return days;
  }());
  QCOMPARE(listed.getDays().size(), 1u);
  QVERIFY(read_ledger_day(listed.getDays()[0]) == told);
  const auto key = SigningPublicKey::from_bytes(rpc::bytes_of(listed.getReceiptKey())).value();
  QVERIFY(ledger_day_is_genuine(told, key));
  QCOMPARE(answer.getProofs().size(), 1u);
  QVERIFY(!answer.getMore());
  QVERIFY(receipt_is_in(told, host.receipts()[0], read_receipt_proof(answer.getProofs()[0])));
  QCOMPARE(reconcile(world).getReport().getDays(), uint64_t{1});
  QCOMPARE(reconcile(world).getReport().getProblemCount(), uint64_t{0});
  // A restart goes on from there.
  world.stop();
  world.start();
  host.connect();
  QCOMPARE(host.ping().getStanding().getNewestLedgerDay(), day);
}

void AccountsTest::credit_has_a_worth_when_it_is_set() {
  {
    World plain;
    FakeHost& host = plain.add_host("h");
    QCOMPARE(host.ping().getStanding().getCreditUnit().size(), size_t{0});
  }
  World paying([](CoordinatorSettings& settings) {
    settings.credit_rate = 0.25;
    settings.credit_unit = "EUR";
  });
  FakeHost& paid = paying.add_host("h");
  const auto standing = paid.ping();
  QCOMPARE(standing.getStanding().getCreditRate(), 0.25);
  QCOMPARE(std::string(standing.getStanding().getCreditUnit().cStr()), std::string("EUR"));
  const auto status = ask<rpc::Admin::StatusResults>(paying, paying.admin().statusRequest());
  QCOMPARE(status.getStatus().getCreditRate(), 0.25);
  QCOMPARE(std::string(status.getStatus().getCreditUnit().cStr()), std::string("EUR"));
}

QTEST_GUILESS_MAIN(AccountsTest)
#include "accounts_test.moc"
