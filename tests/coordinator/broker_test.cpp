// Goal: each rule of the batch broker, its refusals, both sides of its limits; and that no unit is
// lost, counted twice or settled on a lie, whatever hosts and messages do.

#include "coordinator/work/broker.h"

#include <QTest>
#include <climits>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>

#include "coordinator/work/audit.h"
#include "coordinator/work/slab.h"
#include "tests/coordinator/row_keeper.h"

namespace shoal {
namespace {

constexpr Millis kSecond{1'000};
constexpr Millis kMinute{60'000};
constexpr Millis kHour{3'600'000};
constexpr Millis kDay{86'400'000};
constexpr Flops kItem{1'000'000'000'000};  // A device of 1e12 FLOP/s takes a second.

Millis times(Millis time, int64_t n) { return {time.count * n}; }

Digest digest_of_number(uint64_t number) {
  Digest digest;
  std::memcpy(digest.bytes.data(), &number, sizeof number);
  return digest;
}

Digest truth(UnitId unit) { return digest_of_number(static_cast<uint64_t>(unit.value)); }
Digest lie(LeaseId lease) {
  return digest_of_number((uint64_t{1} << 40) + static_cast<uint64_t>(lease.value));
}

// A broker, what it made durable, and a time that only this moves. Host n has device 10 n and, if
// nothing else is said, the owner n, the address block n and the class n.
struct Bench {
  explicit Bench(BrokerRules rules = {}, uint64_t seed = 1)
      : rules(rules), broker(rules, Random(seed)) {}

  void host(int n, HostFacts facts = {}) {
    facts.host = {n};
    if (!facts.owner) facts.owner = {n};
    if (facts.address_block == 0) facts.address_block = static_cast<uint64_t>(n);
    keeper.host(facts);
    broker.host_known(facts, now);
    device(n);
  }
  void trusted(int n) { host(n, {.trusted = true}); }
  void device(int n, DeviceFacts facts = {}) {
    facts.device = {10 * n};
    facts.host = {n};
    if (facts.device_class == 0) facts.device_class = static_cast<uint32_t>(n);
    if (facts.memory.count == 0) facts.memory = kGibibyte;
    if (facts.flops_per_second == 0) facts.flops_per_second = 1e12;
    facts.exact = !inexact;
    broker.device_ready(facts, now);
    keep();
  }
  TaskSpec task(int id, int64_t items) {
    return {.task = {id},
            .job_class = {1},
            .model = {1},
            .memory = kMebibyte,
            .items = items,
            .flops_per_item = kItem};
  }
  Result<void> job(JobSpec spec) {
    auto done = broker.submit_job(spec, now);
    if (done.ok()) keeper.job(spec);
    keep();
    return done;
  }
  void job(int id, int64_t items) {
    QVERIFY(job(JobSpec{.job = {id}, .tasks = {task(id * 100, items)}}).ok());
  }
  LeaseAnswer ask(int n, LeaseRequest request = {}) {
    request.device = {10 * n};
    LeaseAnswer answer = broker.lease(request, now);
    keep();
    return answer;
  }
  // One unit; its lease is 0 when there is none.
  Grant one(int n) {
    const LeaseAnswer answer = ask(n, {.wanted = kDay, .units_max = 1});
    return answer.grants.empty() ? Grant{} : answer.grants[0];
  }
  static LeaseName name(int n, const Grant& grant) { return {grant.unit, grant.lease, {n}}; }
  SubmitAnswer submit(int n, const Grant& grant, Digest digest, uint64_t serial = 0) {
    const SubmitAnswer answer = broker.submit({name(n, grant), digest, serial}, now);
    keep();
    return answer;
  }
  SubmitAnswer right(int n, const Grant& grant) { return submit(n, grant, truth(grant.unit)); }
  SubmitAnswer wrong(int n, const Grant& grant) { return submit(n, grant, lie(grant.lease)); }
  bool fail(int n, const Grant& grant) {
    const bool failed = broker.fail(name(n, grant), now);
    keep();
    return failed;
  }
  bool give_back(int n, const Grant& grant) {
    const bool given = broker.give_back(name(n, grant), now);
    keep();
    return given;
  }
  Renewal renew(int n, const Grant& grant) {
    const Renewal renewal = broker.renew(name(n, grant), now);
    keep();
    return renewal;
  }
  void wait(Millis time) {
    now += time;
    broker.tick(now);
    keep();
  }
  void keep() { keeper.apply(broker.take_changes()); }
  ResultState state(const Grant& grant) const { return keeper.leases().at(grant.lease).state; }
  bool done(const Grant& grant) const { return keeper.units().at(grant.unit).row.done; }
  HostChanged record(int n) const { return keeper.hosts().at({n}).record; }
  JobState job_state(int id) const { return keeper.jobs().at({id}).state; }
  Millis until(const Grant& grant) const { return keeper.leases().at(grant.lease).granted.until; }

  // A coordinator that ends and starts again, with nothing but its rows.
  Result<void> restart(std::function<void(BrokerRows&)> edit = nullptr) {
    BrokerRows rows = keeper.rows();
    if (edit) edit(rows);
    broker = Broker(rules, Random(7));
    auto done = broker.restore(rows, now);
    keep();
    return done;
  }
  // Hosts that were right so often that their results are hardly ever audited.
  void experienced() {
    for (const auto& [id, row] : keeper.hosts()) {
      KnownHostRow copy = row;
      copy.record.valid_in_row = 1'000'000'000;
      rows_of_experienced.push_back(copy);
    }
    QVERIFY(restart([&](BrokerRows& rows) { rows.hosts = rows_of_experienced; }).ok());
  }

  BrokerRules rules;
  Millis now{1'000'000};
  bool inexact = false;
  RowKeeper keeper;
  Broker broker;
  std::vector<KnownHostRow> rows_of_experienced;
};

BrokerRules quiet() {
  BrokerRules rules;
  rules.audit_floor = 0;
  rules.speed_weight = 0;
  rules.gather = {};
  rules.known_rate = rules.known_rate_newcomer = 0;
  return rules;
}

// Experienced hosts 1 ... n, whose results nobody audits before a task closes.
void experienced_hosts(Bench& bench, int n, bool with_trusted = false) {
  for (int i = 1; i <= n; ++i) bench.host(i);
  if (with_trusted) bench.trusted(9);
  bench.experienced();
  for (int i = 1; i <= n; ++i) bench.device(i);
  if (with_trusted) bench.device(9);
}

// The unit that is in the other's hands, if a copy of it is drawn for host n.
Grant copy_for(Bench& bench, int n, UnitId unit) {
  for (int i = 0; i < 50; ++i) {
    const Grant grant = bench.one(n);
    if (!grant.lease || grant.unit == unit) return grant;
    bench.give_back(n, grant);
  }
  return {};
}

}  // namespace

class BrokerTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:

  // ---- Cutting and leasing ----

  void a_unit_is_as_long_as_its_device_needs_for_the_target_time() {
    Bench bench(quiet());
    bench.host(1);
    bench.host(2);
    bench.device(2, {.flops_per_second = 5e12});
    bench.job(1, 1'000'000);
    const Grant grant = bench.one(1);
    QCOMPARE(grant.items, 600);
    QCOMPARE(grant.first_item, 0);
    QCOMPARE(grant.expected, times(kMinute, 10));
  }

  // A unit once cut stays as long as it is: nobody shall be able to cut one that nobody can end.
  void what_a_device_says_of_itself_is_not_believed_beyond_others_before_it_has_shown_it() {
    BrokerRules rules = quiet();
    rules.speed_weight = 0.2;
    Bench bench(rules);
    bench.trusted(1);
    bench.device(1, {.flops_per_second = 1e17});
    bench.job(1, 1'000'000);
    const Grant alone = bench.one(1);
    QCOMPARE(alone.items, 4096);  // There is nobody to compare with: the rules' limit.
    QVERIFY(bench.give_back(1, alone));
    bench.host(2);
    bench.host(3);
    const Grant among = copy_for(bench, 1, {2});
    QCOMPARE(among.items, 600);
    bench.wait(times(kMinute, 5));  // It was twice as fast as they, and not more.
    bench.right(1, among);
    const Grant shown = copy_for(bench, 1, {3});
    QVERIFY(shown.items > 600 && shown.items <= 2400);
    bench.device(1, {.flops_per_second = 9e17});
    const Grant told = copy_for(bench, 1, {4});
    QCOMPARE(told.items, shown.items);
  }

  void a_unit_has_one_item_at_least_and_what_is_left_at_most() {
    Bench bench(quiet());
    bench.host(1);
    bench.device(1, {.flops_per_second = 1e9});  // 1000 s for an item.
    bench.job(1, 2);
    const Grant first = bench.one(1);
    QCOMPARE(first.items, 1);
    bench.host(2);
    QCOMPARE(bench.one(2).items, 1);
    QCOMPARE(bench.ask(2, {.units_max = 1}).grants.size(), size_t{0});
  }

  void to_look_at_a_lease_is_no_renewal() {
    BrokerRules rules = quiet();
    rules.renewals_max = 1;
    Bench bench(rules);
    bench.host(1);
    bench.host(2);
    bench.job(1, 10);
    const Grant grant = bench.one(1);
    bench.now += kMinute;
    for (int i = 0; i < 3; ++i) {
      const Renewal held = bench.broker.held(Bench::name(1, grant));
      QVERIFY(held.answer == RenewAnswer::kRenewed);
      QCOMPARE(held.until, grant.until);
    }
    QVERIFY(bench.broker.held(Bench::name(2, grant)).answer == RenewAnswer::kUnknown);
    QCOMPARE(bench.renew(1, grant).until, grant.until + kMinute);
    QVERIFY(bench.give_back(1, grant));
    QVERIFY(bench.broker.held(Bench::name(1, grant)).answer == RenewAnswer::kLost);
  }

  void a_task_that_waits_for_its_input_is_handed_to_nobody() {
    Bench bench(quiet());
    bench.host(1);
    JobSpec spec{.job = {1}, .tasks = {bench.task(100, 10), bench.task(101, 10)}};
    spec.tasks[1].waits_for_input = true;
    QVERIFY(bench.job(spec).ok());
    const Grant first = bench.one(1);
    QCOMPARE(first.task, TaskId{100});
    QCOMPARE(bench.ask(1, {.wanted = kDay}).why, NoWork::kAllOut);
    bench.broker.input_there({999}, bench.now);  // Of a job that is over by now.
    bench.broker.input_there({101}, bench.now);
    QCOMPARE(bench.one(1).task, TaskId{101});
    QVERIFY(
        bench.restart([](BrokerRows& rows) { rows.jobs[0].spec.tasks[1].waits_for_input = true; })
            .ok());
    bench.host(2);
    QCOMPARE(bench.ask(2).grants.size(), size_t{0});
  }

  void a_job_that_lost_a_tasks_output_is_faulted() {
    Bench bench(quiet());
    bench.trusted(1);
    JobSpec spec{.job = {1}, .tasks = {bench.task(100, 1), bench.task(101, 10)}};
    spec.tasks[1].after = {{100}};
    QVERIFY(bench.job(spec).ok());
    bench.right(1, bench.one(1));
    QVERIFY(bench.keeper.tasks().at({100}).state == TaskState::kDone);
    const Grant next = bench.one(1);
    QCOMPARE(next.task, TaskId{101});
    QVERIFY(!bench.broker.fail_job({2}, {100}, bench.now));
    QVERIFY(!bench.broker.fail_job({1}, {999}, bench.now));
    QVERIFY(bench.broker.fail_job({1}, {100}, bench.now));
    bench.keep();
    QVERIFY(bench.job_state(1) == JobState::kFaulted);
    for (const int task : {100, 101})
      QVERIFY(bench.keeper.tasks().at({task}).state == TaskState::kStopped);
    QVERIFY(!bench.keeper.leases().at(next.lease).live);
    QVERIFY(!bench.broker.fail_job({1}, {100}, bench.now));
  }

  // Else a job that failed and is tried again would pay its owner twice.
  void a_unit_that_an_owner_was_paid_for_is_not_handed_to_it_again() {
    Bench bench(quiet());
    bench.host(1, {.owner = {7}});
    bench.host(2, {.owner = {7}});
    bench.host(3);
    BrokerRows rows;
    const JobSpec spec{.job = {1}, .tasks = {bench.task(100, 10)}};
    rows.last_unit = {1};
    rows.last_lease = {5};
    for (const int n : {1, 2, 3}) rows.hosts.push_back(bench.keeper.hosts().at({n}));
    rows.jobs = {{spec, JobState::kRunning}};
    rows.tasks = {{.task = {100}, .state = TaskState::kWaiting, .items_cut = 10}};
    rows.units = {{.cut = {{1}, {100}, 0, 10}}};
    LeaseRow lease;
    lease.granted = {.lease = {5}, .unit = {1}, .host = {1}, .device = {10}};
    lease.live = false;
    lease.state = ResultState::kConfirmed;
    lease.digest = truth({1});
    rows.leases = {lease};
    Broker broker(bench.rules, Random(1));
    QVERIFY(broker.restore(rows, bench.now).ok());
    for (const int n : {1, 2, 3}) {
      broker.device_ready({.device = {10 * n},
                           .host = {n},
                           .device_class = static_cast<uint32_t>(n),
                           .memory = kGibibyte,
                           .flops_per_second = 1e12,
                           .exact = true},
                          bench.now);
    }
    for (const int n : {1, 2}) {
      const LeaseAnswer answer = broker.lease({.device = {10 * n}}, bench.now);
      QVERIFY(answer.grants.empty());
      QCOMPARE(answer.why, NoWork::kAllOut);
    }
    QVERIFY(!broker.only_another_owner_can({100}));
    broker.device_gone({30}, bench.now);
    QVERIFY(broker.only_another_owner_can({100}));
    QVERIFY(!broker.only_another_owner_can({999}));
    broker.device_ready(
        {.device = {30}, .host = {3}, .memory = kGibibyte, .flops_per_second = 1e12, .exact = true},
        bench.now);
    QCOMPARE(broker.lease({.device = {30}}, bench.now).grants.size(), size_t{1});
  }

  void an_item_that_cannot_end_within_the_longest_lease_is_not_given() {
    BrokerRules rules = quiet();
    rules.lease_max = times(kMinute, 3);  // A third of it is a minute.
    Bench bench(rules);
    bench.host(1);
    bench.host(2);
    bench.device(1, {.flops_per_second = 1e12 / 60});
    bench.device(2, {.flops_per_second = 1e12 / 60.1});
    bench.job(1, 10);
    QCOMPARE(bench.ask(2).why, NoWork::kTooLong);
    QCOMPARE(bench.one(1).items, 1);
  }

  void nothing_is_given_that_takes_longer_than_the_owner_leaves() {
    Bench bench(quiet());
    bench.host(1);
    bench.job(1, 100'000);
    QCOMPARE(bench.ask(1, {.available = Millis{999}}).why, NoWork::kTooLong);
    const LeaseAnswer answer = bench.ask(1, {.available = times(kSecond, 30)});
    QCOMPARE(answer.grants.size(), size_t{1});
    QCOMPARE(answer.grants[0].items, 30);
  }

  void a_device_holds_as_much_as_it_wants_and_one_unit_at_least() {
    Bench bench(quiet());
    bench.host(1);
    bench.job(1, 100'000);
    QCOMPARE(bench.ask(1, {.wanted = Millis{1}}).grants.size(), size_t{1});
    QCOMPARE(bench.ask(1, {.wanted = times(kMinute, 10)}).why, NoWork::kEnough);
    QCOMPARE(bench.ask(1, {.wanted = times(kMinute, 11)}).grants.size(), size_t{1});
    QCOMPARE(bench.ask(1, {.wanted = kDay}).why, NoWork::kEnough);  // Two for a beginner.
  }

  void losses_halve_what_a_device_may_hold_and_success_lets_it_grow() {
    Bench bench(quiet());
    bench.host(1);
    bench.job(1, 1'000'000);
    const auto held = [&] { return bench.ask(1, {.wanted = kDay, .units_max = 100}).grants; };
    for (int i = 0; i < 20; ++i) {
      for (const Grant& grant : held()) bench.right(1, grant);
      bench.wait(kSecond);
    }
    QCOMPARE(held().size(), size_t{16});
    bench.wait(times(kDay, 2));  // All expire: 16 halvings.
    auto grants = held();
    QCOMPARE(grants.size(), size_t{1});
    bench.right(1, grants[0]);
    grants = held();
    QCOMPARE(grants.size(), size_t{2});
    QVERIFY(bench.give_back(1, grants[0]));  // Nobody's failure.
    QCOMPARE(held().size(), size_t{1});
  }

  void a_lease_ends_when_its_time_is_over_and_not_before() {
    Bench bench(quiet());
    bench.host(1);
    bench.job(1, 600);
    const Grant grant = bench.one(1);
    QCOMPARE(grant.until, bench.now + times(kMinute, 35));  // Three times the time, and slack.
    QCOMPARE(bench.broker.next_due(), grant.until);
    bench.wait(grant.until - bench.now - Millis{1});
    QVERIFY(bench.keeper.leases().at(grant.lease).live);
    bench.host(2);
    QCOMPARE(bench.ask(2).why, NoWork::kAllOut);
    bench.wait(Millis{1});
    QVERIFY(!bench.keeper.leases().at(grant.lease).live);
    QCOMPARE(bench.keeper.leases().at(grant.lease).why, LeaseEndReason::kExpired);
    const Grant again = bench.one(2);
    QCOMPARE(again.unit, grant.unit);
    QCOMPARE(again.items, grant.items);
    QVERIFY(again.lease != grant.lease);
  }

  void a_lease_is_renewed_by_who_has_it_and_a_bounded_number_of_times() {
    BrokerRules rules = quiet();
    rules.renewals_max = 2;
    Bench bench(rules);
    bench.host(1);
    bench.trusted(2);
    bench.job(1, 600);
    const Grant grant = bench.one(1);
    QCOMPARE(bench.broker.renew({grant.unit, grant.lease, {2}}, bench.now).answer,
             RenewAnswer::kUnknown);
    QCOMPARE(bench.broker.renew({{999}, grant.lease, {1}}, bench.now).answer,
             RenewAnswer::kUnknown);
    for (int i = 1; i <= 2; ++i) {
      bench.wait(times(kMinute, 30));
      QCOMPARE(bench.renew(1, grant).answer, RenewAnswer::kRenewed);
      QCOMPARE(bench.until(grant), bench.now + times(kMinute, 35));
    }
    bench.wait(times(kMinute, 30));
    QCOMPARE(bench.renew(1, grant).until, bench.now + times(kMinute, 5));
    bench.wait(times(kMinute, 5));
    QCOMPARE(bench.renew(1, grant).answer, RenewAnswer::kLost);
    const Grant other = bench.one(2);
    QCOMPARE(other.unit, grant.unit);
    bench.right(2, other);
    bench.right(1, grant);
    QVERIFY(bench.done(grant));
    QCOMPARE(bench.renew(1, grant).answer, RenewAnswer::kUnknown);
  }

  void a_device_that_went_away_has_a_while_to_come_back() {
    for (const bool returns : {true, false}) {
      Bench bench(quiet());
      bench.host(1);
      bench.job(1, 600);
      const Grant grant = bench.one(1);
      bench.broker.device_gone({10}, bench.now);
      bench.wait(times(kMinute, 10) - Millis{1});
      QVERIFY(bench.keeper.leases().at(grant.lease).live);
      if (returns) {
        bench.device(1);
        QCOMPARE(bench.renew(1, grant).answer, RenewAnswer::kRenewed);
      }
      bench.wait(Millis{1});
      QCOMPARE(bench.keeper.leases().at(grant.lease).live, returns);
      QCOMPARE(bench.right(1, grant), SubmitAnswer::kAccepted);
    }
  }

  void who_returns_a_unit_may_have_it_again() {
    Bench bench(quiet());
    bench.host(1);
    bench.job(1, 600);
    const Grant grant = bench.one(1);
    QVERIFY(!bench.broker.give_back({grant.unit, grant.lease, {2}}, bench.now));
    QVERIFY(bench.give_back(1, grant));
    QVERIFY(!bench.give_back(1, grant));
    QCOMPARE(bench.one(1).unit, grant.unit);
  }

  void who_returns_a_unit_twice_leaves_it_to_others_for_a_while() {
    Bench bench(quiet());
    bench.host(1);
    bench.job(1, 600);
    for (int i = 0; i < 2; ++i) {
      const Grant grant = bench.one(1);
      QVERIFY(grant.lease);
      QVERIFY(bench.give_back(1, grant));
    }
    QCOMPARE(bench.ask(1).why, NoWork::kAllOut);
    bench.wait(times(kMinute, 30) - Millis{1});
    QCOMPARE(bench.ask(1).why, NoWork::kAllOut);
    bench.wait(Millis{1});
    QVERIFY(bench.one(1).lease);
  }

  // Leases that are taken and let go cost neither memory nor the time of others.
  void who_takes_units_and_returns_them_has_to_rest() {
    Bench bench(quiet());
    bench.host(1);
    bench.job(1, 1'000'000);
    const auto taken = [&] {
      const Grant grant = bench.one(1);
      return grant.lease && bench.give_back(1, grant);
    };
    for (int i = 0; i < 33; ++i) QVERIFY(taken());
    const LeaseAnswer answer = bench.ask(1);
    QCOMPARE(answer.why, NoWork::kEnough);
    QCOMPARE(answer.ask_again, bench.now + times(kSecond, 10));
    bench.wait(times(kSecond, 10) - Millis{1});
    QVERIFY(!taken());
    bench.wait(Millis{1});
    QVERIFY(taken());
    QCOMPARE(bench.ask(1).ask_again, bench.now + times(kSecond, 20));  // Twice as long.
    bench.wait(kHour);
    QVERIFY(taken());
    QVERIFY(taken());
  }

  void who_fails_again_and_again_has_to_rest() {
    Bench bench(quiet());
    bench.host(1);
    bench.job(1, 1'000'000);
    for (int i = 0; i < 3; ++i) QVERIFY(bench.fail(1, bench.one(1)));
    QCOMPARE(bench.ask(1).why, NoWork::kEnough);
    bench.wait(times(kSecond, 10));
    const Grant grant = bench.one(1);
    bench.right(1, grant);
    for (int i = 0; i < 3; ++i) QVERIFY(bench.fail(1, bench.one(1)));
    QCOMPARE(bench.ask(1).why, NoWork::kEnough);
  }

  // The owner's word counts when the copy is handed out, and not only when it was drawn.
  void a_drawn_copy_is_not_given_against_the_owners_word_or_of_a_paused_job() {
    for (const bool denies : {true, false}) {
      Bench bench(quiet());
      bench.host(1);
      bench.host(2);
      bench.job(1, 600);
      bench.right(1, bench.one(1));  // Host 2 is drawn.
      if (denies) bench.device(2, {.denied = {{1}}});
      if (!denies) QVERIFY(bench.broker.pause_job({1}, true, bench.now));
      QVERIFY(!bench.one(2).lease);
      bench.wait(kHour);
      QVERIFY(!bench.one(2).lease);
      if (denies) bench.device(2);
      if (!denies) QVERIFY(bench.broker.pause_job({1}, false, bench.now));
      bench.wait(kMinute);
      const Grant audit = bench.one(2);
      QCOMPARE(audit.purpose, Purpose::kAudit);
    }
  }

  void units_that_are_not_for_a_device_do_not_hide_others() {
    Bench bench(quiet());
    for (int n = 1; n <= 10; ++n) bench.host(n);
    bench.host(20);
    bench.device(20, {.flops_per_second = 1e11});
    bench.job(1, 600 * 9 + 30);
    std::vector<Grant> grants;
    for (int n = 1; n <= 9; ++n) grants.push_back(bench.one(n));
    const Grant small = bench.one(10);
    QCOMPARE(small.items, 30);
    for (int n = 1; n <= 9; ++n) QVERIFY(bench.give_back(n, grants[static_cast<size_t>(n - 1)]));
    QVERIFY(bench.give_back(10, small));
    QVERIFY(!bench.one(20).lease);  // It has looked at eight that are too long.
    QCOMPARE(bench.one(20).unit, small.unit);
  }

  void an_outage_of_the_coordinator_costs_nobody_a_lease() {
    Bench bench(quiet());
    bench.host(1);
    bench.job(1, 600);
    const Grant grant = bench.one(1);
    const Millis from = bench.now + kMinute;
    bench.now = from + kDay;
    bench.broker.outage(from, bench.now);
    bench.keep();
    QCOMPARE(bench.until(grant), grant.until + kDay);
    bench.wait(grant.until + kDay - bench.now - Millis{1});
    QVERIFY(bench.keeper.leases().at(grant.lease).live);
    bench.wait(Millis{1});
    QVERIFY(!bench.keeper.leases().at(grant.lease).live);
  }

  void a_device_without_work_hears_what_stands_in_the_way() {
    BrokerRules rules = quiet();
    Bench bench(rules);
    QCOMPARE(bench.ask(1).why, NoWork::kUnknownDevice);
    bench.host(1);
    QCOMPARE(bench.ask(1).why, NoWork::kNoJobs);
    QVERIFY(bench.ask(1).ask_again >= bench.now + times(kSecond, 5));
    QVERIFY(bench.ask(1).ask_again <= bench.now + times(kSecond, 15));
    TaskSpec task = bench.task(1, 10);
    task.trusted_only = true;
    QVERIFY(bench.job({.job = {1}, .tasks = {task}}).ok());
    QCOMPARE(bench.ask(1).why, NoWork::kTrustedOnly);
    bench.trusted(9);
    QCOMPARE(bench.one(9).items, 10);
    QCOMPARE(bench.ask(1).why, NoWork::kAllOut);
    task = bench.task(2, 10);
    task.memory = kGibibyte;
    QVERIFY(bench.job({.job = {2}, .tasks = {task}}).ok());
    bench.device(1, {.memory = kGibibyte - Bytes{1}});
    QCOMPARE(bench.ask(1).why, NoWork::kTooLarge);
    bench.device(1, {.memory = kGibibyte, .denied = {{5}, {1}}});
    QCOMPARE(bench.ask(1).why, NoWork::kDenied);
    bench.inexact = true;
    bench.device(1);
    QCOMPARE(bench.ask(1).why, NoWork::kNotExact);
    bench.inexact = false;
    bench.device(1, {.memory = kGibibyte});
    QCOMPARE(bench.one(1).items, 10);
    bench.host(1, {.banned = true});
    QCOMPARE(bench.ask(1).why, NoWork::kBanned);
    bench.broker.device_gone({10}, bench.now);
    QCOMPARE(bench.ask(1).why, NoWork::kUnknownDevice);
    for (int i = 1; i <= static_cast<int>(NoWork::kTooLong); ++i) {
      QVERIFY(no_work_code(static_cast<NoWork>(i)).starts_with("batch."));
    }
    QCOMPARE(no_work_code(NoWork::kNone), std::string_view());
  }

  // ---- The graph ----

  void a_task_begins_when_those_before_it_are_done() {
    Bench bench(quiet());
    bench.trusted(1);
    TaskSpec a = bench.task(1, 600), b = bench.task(2, 0), c = bench.task(3, 600);
    b.after = {{1}};
    c.after = {{2}, {1}};
    QVERIFY(bench.job({.job = {1}, .tasks = {c, b, a}}).ok());
    const Grant first = bench.one(1);
    QCOMPARE(first.task, TaskId{1});
    QCOMPARE(bench.ask(1, {.wanted = kDay}).why, NoWork::kAllOut);
    QCOMPARE(bench.broker.progress({1}).items_out, 600);
    bench.right(1, first);
    QCOMPARE(bench.keeper.tasks().at({2}).state, TaskState::kDone);
    QCOMPARE(bench.broker.progress({1}).items_done, 600);
    const Grant last = bench.one(1);
    QCOMPARE(last.task, TaskId{3});
    QCOMPARE(bench.job_state(1), JobState::kRunning);
    bench.right(1, last);
    QCOMPARE(bench.job_state(1), JobState::kDone);
    QCOMPARE(bench.broker.progress({1}).items, 0);
  }

  void a_job_without_items_is_done_at_once() {
    Bench bench;
    bench.job(1, 0);
    QCOMPARE(bench.job_state(1), JobState::kDone);
  }

  void impossible_jobs_are_refused() {
    Bench bench;
    bench.job(1, 10);
    const auto refused = [&](JobSpec spec) {
      const auto done = bench.broker.submit_job(spec, bench.now);
      return !done.ok() && done.error().code == ErrorCode::kInvalid &&
             bench.broker.take_changes().empty();
    };
    const TaskSpec good = bench.task(7, 10);
    const auto with = [&](auto edit) {
      TaskSpec task = good;
      edit(task);
      return JobSpec{.job = {2}, .tasks = {task}};
    };
    QVERIFY(refused({.job = {1}, .tasks = {good}}));
    QVERIFY(refused({.job = {0}, .tasks = {good}}));
    QVERIFY(refused({.job = {2}}));
    QVERIFY(refused({.job = {2}, .tasks = {good, good}}));
    QVERIFY(refused(with([](TaskSpec& task) { task.task = {100}; })));  // Job 1 has it.
    QVERIFY(refused(with([](TaskSpec& task) { task.task = {}; })));
    QVERIFY(refused(with([](TaskSpec& task) { task.items = -1; })));
    QVERIFY(refused(with([](TaskSpec& task) { task.items = (int64_t{1} << 40) + 1; })));
    QVERIFY(refused(with([](TaskSpec& task) { task.flops_per_item = {}; })));
    QVERIFY(refused(with([](TaskSpec& task) { task.after = {{100}}; })));
    QVERIFY(refused(with([](TaskSpec& task) { task.after = {{7}}; })));
    TaskSpec a = good, b = bench.task(8, 10);
    a.after = {{8}};
    b.after = {{7}};
    QVERIFY(refused({.job = {2}, .tasks = {a, b}}));
    b.after = {};
    QVERIFY(bench.broker.submit_job({.job = {2}, .tasks = {a, b}}, bench.now).ok());
  }

  void urgent_jobs_come_first_and_paused_ones_not_at_all() {
    Bench bench(quiet());
    bench.trusted(1);
    const auto job = [&](int id, int priority, Millis deadline) {
      QVERIFY(bench
                  .job({.job = {id},
                        .priority = priority,
                        .deadline = deadline,
                        .tasks = {bench.task(id, 600)}})
                  .ok());
    };
    job(1, 0, {});
    job(2, 0, bench.now + kDay);
    job(3, 0, bench.now + kHour);
    job(4, 1, {});
    for (const int expected : {4, 3, 2, 1}) {
      const Grant grant = bench.one(1);
      QCOMPARE(grant.task, TaskId{expected});
      bench.right(1, grant);
    }
    job(5, 0, {});
    QVERIFY(bench.broker.pause_job({5}, true, bench.now));
    QCOMPARE(bench.ask(1).why, NoWork::kNoJobs);
    QVERIFY(bench.broker.pause_job({5}, false, bench.now));
    QCOMPARE(bench.one(1).task, TaskId{5});
    QVERIFY(!bench.broker.pause_job({6}, true, bench.now));
    QVERIFY(!bench.broker.cancel_job({6}, bench.now));
  }

  void a_device_stays_with_its_model_among_equal_jobs() {
    Bench bench(quiet());
    bench.host(1);
    bench.job(1, 600);
    const Grant first = bench.one(1);
    bench.right(1, first);
    bench.job(2, 10'000);
    const Grant second = bench.one(1);
    QCOMPARE(second.task, TaskId{200});
    bench.right(1, second);
    Bench other(quiet());
    other.host(1);
    other.job(2, 10'000);
    other.right(1, other.one(1));
    other.job(1, 10'000);  // Goes first by its number.
    QCOMPARE(other.one(1).task, TaskId{200});
  }

  // ---- Results ----

  void a_result_counts_once_however_often_it_comes() {
    Bench bench(quiet());
    bench.trusted(1);
    bench.host(2);
    bench.job(1, 1200);
    const Grant grant = bench.one(1);
    QCOMPARE(bench.submit(2, grant, truth(grant.unit)), SubmitAnswer::kUnknown);
    QCOMPARE(bench.submit(1, {.lease = {99}, .unit = grant.unit}, {}), SubmitAnswer::kUnknown);
    QCOMPARE(bench.submit(1, {.lease = grant.lease, .unit = {99}}, {}), SubmitAnswer::kUnknown);
    QCOMPARE(bench.submit(1, {.lease = {}, .unit = {}}, {}), SubmitAnswer::kUnknown);
    bench.host(3);
    const Grant pending = bench.one(3);
    QCOMPARE(bench.right(3, pending), SubmitAnswer::kAccepted);
    QCOMPARE(bench.right(3, pending), SubmitAnswer::kDuplicate);
    QCOMPARE(bench.wrong(3, pending), SubmitAnswer::kDuplicate);  // The first one counts.
    QCOMPARE(bench.keeper.leases().at(pending.lease).digest, truth(pending.unit));
    QVERIFY(!bench.fail(3, pending));
    QVERIFY(!bench.give_back(3, pending));
    QCOMPARE(bench.renew(3, pending).answer, RenewAnswer::kNotNeeded);
  }

  void rows_answer_for_what_the_broker_has_forgotten() {
    LeaseRow row;
    QCOMPARE(answer_from_rows(nullptr, true), SubmitAnswer::kUnknown);
    QCOMPARE(answer_from_rows(&row, true), SubmitAnswer::kExtra);
    QCOMPARE(answer_from_rows(&row, false), SubmitAnswer::kNotNeeded);
    QCOMPARE(answer_from_rows(&row, true, /*owner_has_result=*/true), SubmitAnswer::kNotNeeded);
    row.live = false;
    for (const auto& [why, answer] :
         {std::pair(LeaseEndReason::kExpired, SubmitAnswer::kExtra),
          std::pair(LeaseEndReason::kGivenBack, SubmitAnswer::kNotNeeded),
          std::pair(LeaseEndReason::kFailed, SubmitAnswer::kNotNeeded)}) {
      row.why = why;
      QCOMPARE(answer_from_rows(&row, true), answer);
    }
    row.state = ResultState::kConfirmed;
    QCOMPARE(answer_from_rows(&row, true), SubmitAnswer::kDuplicate);
  }

  void a_late_result_is_taken_when_it_is_still_needed() {
    Bench bench(quiet());
    bench.host(1);
    bench.host(2);
    bench.job(1, 600);
    const Grant late = bench.one(1);
    bench.wait(kDay);
    QCOMPARE(bench.right(1, late), SubmitAnswer::kAccepted);
    QCOMPARE(bench.state(late), ResultState::kPending);
    const Grant audit = bench.one(2);
    QCOMPARE(audit.unit, late.unit);
    QCOMPARE(audit.purpose, Purpose::kAudit);
    bench.right(2, audit);
    QCOMPARE(bench.state(late), ResultState::kConfirmed);
    QVERIFY(bench.keeper.faults().empty());
  }

  void a_late_result_that_nobody_needs_is_paid_if_it_agrees_and_counts_nothing_twice() {
    for (const bool agrees : {true, false}) {
      Bench bench(quiet());
      bench.host(1);
      bench.trusted(2);
      bench.job(1, 600);
      const Grant late = bench.one(1);
      bench.wait(kDay);
      const Grant quick = bench.one(2);
      bench.host(3);
      bench.wait(kDay);  // The second is late as well, and a third lives.
      const Grant third = bench.one(3);
      QCOMPARE(third.unit, late.unit);
      QCOMPARE(bench.right(2, quick), SubmitAnswer::kAccepted);
      QVERIFY(bench.done(late));
      QCOMPARE(bench.job_state(1), JobState::kDone);
      QVERIFY(bench.restart().ok());  // The third lease keeps the unit in mind.
      QCOMPARE(bench.renew(3, third).answer, RenewAnswer::kNotNeeded);
      QCOMPARE(agrees ? bench.right(1, late) : bench.wrong(1, late), SubmitAnswer::kExtra);
      QCOMPARE(bench.state(late), agrees ? ResultState::kConfirmed : ResultState::kRejected);
      QCOMPARE(bench.keeper.tasks().at({100}).items_done, 600);
      QVERIFY(bench.keeper.faults().empty());
    }
  }

  // ---- Audits ----

  void the_rate_of_audits_falls_with_trust_and_never_to_nothing() {
    const BrokerRules rules;
    QCOMPARE(audit_rate(rules, 0), 1.0);
    QCOMPARE(audit_rate(rules, 9), 1.0);
    QCOMPARE(audit_rate(rules, 10), 0.1);
    QCOMPARE(audit_rate(rules, 49), 1.0 / 49);
    QCOMPARE(audit_rate(rules, 50), 0.02);
    QCOMPARE(audit_rate(rules, INT64_MAX), 0.02);
    QCOMPARE(quarantine_time(rules, 1), kDay);
    QCOMPARE(quarantine_time(rules, 2), times(kDay, 2));
    QCOMPARE(quarantine_time(rules, 5), times(kDay, 16));
    QCOMPARE(quarantine_time(rules, 6), times(kDay, 30));
    QCOMPARE(quarantine_time(rules, 1'000'000'000'000), times(kDay, 30));
  }

  void all_results_of_a_newcomer_are_audited_and_hardly_any_of_an_old_hand() {
    Bench bench(quiet());
    bench.host(1);
    bench.host(2);
    bench.job(1, 1'000'000);
    for (int i = 0; i < 10; ++i) {
      QCOMPARE(bench.record(1).valid_in_row, i);
      const Grant grant = bench.one(1);
      bench.right(1, grant);
      QCOMPARE(bench.keeper.units().at(grant.unit).row.want, UnitWant::kAudit);
      const Grant audit = bench.one(2);
      QCOMPARE(audit.unit, grant.unit);
      QCOMPARE(audit.purpose, Purpose::kAudit);
      bench.right(2, audit);
      QVERIFY(bench.done(grant));
      QCOMPARE(bench.state(audit), ResultState::kConfirmed);  // The auditor is paid as well.
    }
    QCOMPARE(bench.record(2).valid_in_row, 10);
    Bench old(quiet());
    experienced_hosts(old, 2);
    old.job(1, 1'000'000);
    for (int i = 0; i < 100; ++i) {
      const Grant grant = old.one(1);
      QCOMPARE(grant.purpose, Purpose::kWork);
      old.right(1, grant);
      QCOMPARE(old.state(grant), ResultState::kPending);
    }
  }

  void an_audit_goes_to_another_owner_and_if_it_can_to_another_address_and_class() {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      Bench bench(quiet(), seed);
      bench.host(1, {.owner = {1}, .address_block = 5});
      bench.host(2, {.owner = {1}, .address_block = 6});
      bench.host(3, {.owner = {3}, .address_block = 5});
      bench.job(1, 1'000'000);
      const Grant first = bench.one(1);
      bench.right(1, first);
      QVERIFY(bench.one(2).unit != first.unit);  // The same owner, never.
      QCOMPARE(bench.one(3).unit, first.unit);   // The same address, if there is nobody else.
      const Grant second = bench.one(1);
      bench.host(4);
      bench.host(5);
      bench.device(5, {.device_class = 1});  // As host 1 has.
      bench.right(1, second);
      QVERIFY(bench.one(3).unit != second.unit);
      QVERIFY(bench.one(5).unit != second.unit);
      QCOMPARE(bench.one(4).unit, second.unit);
    }
  }

  // Who registers many devices is no likelier to be the one who checks a friend.
  void an_auditor_is_drawn_by_owner_and_not_by_device() {
    for (const int devices : {30, 100}) {  // Fewer than are all looked at, and more.
      int many = 0;
      constexpr int kRounds = 200;
      for (uint64_t seed = 1; seed <= kRounds; ++seed) {
        Bench bench(quiet(), seed);
        for (int n = 1; n <= 4; ++n) bench.host(n);
        for (int k = 1; k < devices; ++k) {
          bench.broker.device_ready({.device = {1000 + k},
                                     .host = {4},
                                     .device_class = 4,
                                     .memory = kGibibyte,
                                     .flops_per_second = 1e12,
                                     .exact = true},
                                    bench.now);
        }
        bench.keep();
        bench.job(1, 600);
        bench.right(1, bench.one(1));
        many += bench.one(2).lease == LeaseId{} && bench.one(3).lease == LeaseId{};
      }
      QVERIFY2(many > kRounds / 5 && many < kRounds / 2, qPrintable(QString::number(many)));
    }
  }

  void an_audit_that_its_device_does_not_claim_goes_to_another() {
    Bench bench(quiet());
    bench.host(1);
    bench.host(2);
    bench.host(3);
    bench.job(1, 1'000'000);
    const Grant grant = bench.one(1);
    bench.right(1, grant);
    // One of them was drawn; whoever it is, the other gets it in the end.
    const bool second = copy_for(bench, 2, grant.unit).unit == grant.unit;
    bench.broker.device_gone({second ? 20 : 30}, bench.now);
    bench.wait(kDay);
    QCOMPARE(copy_for(bench, second ? 3 : 2, grant.unit).unit, grant.unit);
  }

  void an_audit_that_passes_vouches_for_all_that_was_finished_before() {
    Bench bench(quiet());
    experienced_hosts(bench, 2);
    bench.job(1, 600 * 5);
    std::vector<Grant> grants;
    for (int i = 0; i < 5; ++i) {
      grants.push_back(bench.one(1));
      bench.right(1, grants.back());
      for (const Grant& grant : grants) QCOMPARE(bench.state(grant), ResultState::kPending);
    }
    // All is handed out: the newest of its results is audited.
    QCOMPARE(bench.broker.progress({1}).items_pending, 3000);
    const Grant audit = bench.one(2);
    QCOMPARE(audit.unit, grants[4].unit);
    bench.right(2, audit);
    for (const Grant& grant : grants) QCOMPARE(bench.state(grant), ResultState::kConfirmed);
    QCOMPARE(bench.job_state(1), JobState::kDone);
    QVERIFY(bench.keeper.complete({100}));
  }

  // A lie that its message overtook is not vouched for by an honest result that came later.
  void the_order_of_finishing_counts_and_not_that_of_arrival() {
    Bench bench(quiet());
    experienced_hosts(bench, 2);
    bench.job(1, 600 * 2);
    const Grant honest = bench.one(1);
    const Grant lying = bench.one(1);
    bench.submit(1, lying, lie(lying.lease), 2);
    bench.submit(1, honest, truth(honest.unit), 1);
    // The newest is the lie, by the serial: that one is audited.
    const Grant audit = bench.one(2);
    QCOMPARE(audit.unit, lying.unit);
    bench.right(2, audit);
    QCOMPARE(bench.state(lying), ResultState::kPending);  // A dispute.
    QVERIFY(!bench.done(honest));
  }

  // Who lies now and then is not vouched for where a check is still under way.
  void what_is_being_audited_waits_for_its_own_audit() {
    Bench bench(quiet());
    bench.host(1);
    bench.job(1, 1'000'000);
    const Grant first = bench.one(1), second = bench.one(1);
    bench.wrong(1, first);
    bench.right(1, second);
    bench.host(2);
    bench.right(2, copy_for(bench, 2, second.unit));
    QCOMPARE(bench.state(second), ResultState::kConfirmed);
    QCOMPARE(bench.state(first), ResultState::kPending);
  }

  // A copy is told by its size: who is honest with copies alone must gain nothing by it.
  void who_checks_another_is_paid_for_that_and_not_vouched_for() {
    Bench bench(quiet());
    experienced_hosts(bench, 2);
    bench.job(1, 1'000'000);
    const Grant own = bench.one(2);
    bench.right(2, own);
    bench.host(3);
    const Grant grant = bench.one(3);
    bench.right(3, grant);
    bench.broker.device_gone({10}, bench.now);
    const Grant copy = copy_for(bench, 2, grant.unit);
    bench.right(2, copy);
    QCOMPARE(bench.state(copy), ResultState::kConfirmed);
    QCOMPARE(bench.state(own), ResultState::kPending);
  }

  // Two owners in league: the one lets his lease go so that the other gets the unit, and then both
  // say the same. Neither was drawn, so neither checks the other.
  void two_who_came_by_a_unit_of_themselves_do_not_check_each_other() {
    for (const bool gives_back : {true, false}) {
      Bench bench(quiet());
      experienced_hosts(bench, 2);
      bench.job(1, 1'000'000);
      const Grant older = bench.one(2);
      bench.right(2, older);
      const Grant first = bench.one(1);
      if (gives_back) QVERIFY(bench.give_back(1, first));
      if (!gives_back) bench.wait(kHour);
      const Grant second = bench.one(2);
      QCOMPARE(second.unit, first.unit);
      QCOMPARE(second.purpose, Purpose::kWork);
      bench.submit(2, second, lie({1}));
      QCOMPARE(bench.submit(1, first, lie({1})),
               gives_back ? SubmitAnswer::kNotNeeded : SubmitAnswer::kExtra);
      QVERIFY(!bench.done(second));
      QCOMPARE(bench.state(older), ResultState::kPending);
      QCOMPARE(bench.state(second), ResultState::kPending);
      // An honest one who is drawn and one who is trusted find both out.
      bench.host(3);
      bench.trusted(9);
      bench.wait(kDay + kHour);
      for (int round = 0; round < 60 && !bench.done(second); ++round) {
        for (const int n : {3, 9}) {
          for (Grant copy = bench.one(n); copy.lease && copy.unit <= second.unit;
               copy = bench.one(n)) {
            bench.right(n, copy);
          }
        }
        bench.wait(kHour);
      }
      QVERIFY(bench.done(second));
      QCOMPARE(bench.state(second), ResultState::kRejected);
      QCOMPARE(bench.record(2).wrong, 1);
      QCOMPARE(bench.record(1).wrong, gives_back ? 0 : 1);
      QCOMPARE(bench.record(3).wrong, 0);
      QVERIFY(bench.keeper.faults().empty());
    }
  }

  // One who was caught, and a friend who has the unit of itself, are no check either.
  void who_was_caught_and_a_friend_prove_nothing() {
    Bench bench(quiet());
    experienced_hosts(bench, 2);
    bench.job(1, 1'000'000);
    const Grant late = bench.one(1);
    bench.wait(kHour);
    const Grant again = bench.one(2);
    QCOMPARE(again.unit, late.unit);
    bench.submit(2, again, lie({1}));
    QVERIFY(bench
                .restart([](BrokerRows& rows) {
                  for (KnownHostRow& row : rows.hosts) {
                    if (row.facts.host == HostId{1}) row.record.quarantined_until = {INT64_MAX / 2};
                  }
                })
                .ok());
    bench.device(2);
    QCOMPARE(bench.submit(1, late, lie({1})), SubmitAnswer::kExtra);
    QCOMPARE(bench.state(late), ResultState::kSuspect);
    QVERIFY(!bench.done(again));
    QCOMPARE(bench.state(again), ResultState::kPending);
  }

  // A newcomer who repeats what another has sent is audited like any newcomer.
  void who_repeats_another_is_looked_at_himself() {
    Bench bench(quiet());
    experienced_hosts(bench, 2);
    bench.host(3);
    bench.job(1, 1'000'000);
    const Grant late = bench.one(3);
    bench.wait(kHour);
    const Grant again = bench.one(1);
    QCOMPARE(again.unit, late.unit);
    bench.right(1, again);
    QCOMPARE(bench.keeper.units().at(late.unit).row.want, UnitWant::kNothing);
    bench.right(3, late);
    QCOMPARE(bench.keeper.units().at(late.unit).row.want, UnitWant::kAudit);
    bench.right(2, copy_for(bench, 2, late.unit));
    QCOMPARE(bench.state(late), ResultState::kConfirmed);
    QCOMPARE(bench.state(again), ResultState::kConfirmed);
  }

  // The host itself counts its units, and could have lies stand among what was checked long ago.
  void a_serial_that_cannot_be_true_is_replaced_by_the_order_of_arrival() {
    Bench bench(quiet());
    bench.host(1);
    bench.host(2);
    bench.job(1, 1'000'000);
    const auto serial = [&](const Grant& grant) {
      return bench.keeper.leases().at(grant.lease).serial;
    };
    for (uint64_t i = 1; i <= 10; ++i) {
      const Grant grant = bench.one(1);
      bench.submit(1, grant, truth(grant.unit), i);
      bench.right(2, copy_for(bench, 2, grant.unit));
      QCOMPARE(bench.state(grant), ResultState::kConfirmed);
    }
    for (const auto& [said, taken] :
         std::vector<std::pair<uint64_t, uint64_t>>{{1, 11},
                                                    {10, 12},
                                                    {11, 11},
                                                    {13, 13},
                                                    {14 + 1024, 14},
                                                    {14 + 1024, 14 + 1024},
                                                    {uint64_t{1} << 62, 15 + 1024},
                                                    {14, 16 + 1024},
                                                    {16, 17 + 1024},
                                                    {18, 18}}) {
      const Grant grant = bench.one(1);
      bench.submit(1, grant, lie(grant.lease), said);
      QCOMPARE(serial(grant), taken);
      QCOMPARE(bench.state(grant), ResultState::kPending);
    }
  }

  // A host could leave numbers free before an honest result, and give them to lies while that is
  // being checked.
  void what_came_after_the_checked_result_is_not_vouched_for_by_it() {
    Bench bench(quiet());
    experienced_hosts(bench, 2);
    bench.job(1, 1'000'000);
    const Grant older = bench.one(1), honest = bench.one(1);
    bench.submit(1, older, truth(older.unit), 1);
    bench.submit(1, honest, truth(honest.unit), 10);
    const Grant lying = bench.one(1);
    QVERIFY(bench
                .restart([&](BrokerRows& rows) {
                  for (KnownHostRow& row : rows.hosts) row.record.valid_in_row = 1'000'000'000;
                  for (UnitRow& row : rows.units) {
                    if (row.cut.unit == honest.unit) row.want = UnitWant::kAudit;
                  }
                })
                .ok());
    for (const int n : {1, 2}) bench.device(n);
    bench.wait(kSecond);
    bench.submit(1, lying, lie(lying.lease), 5);
    QCOMPARE(bench.keeper.leases().at(lying.lease).serial, uint64_t{5});
    bench.wait(kMinute);
    bench.right(2, copy_for(bench, 2, honest.unit));
    QCOMPARE(bench.state(honest), ResultState::kConfirmed);
    QCOMPARE(bench.state(older), ResultState::kConfirmed);
    QCOMPARE(bench.state(lying), ResultState::kPending);
    QVERIFY(!bench.done(lying));
  }

  void what_was_given_back_or_failed_is_not_paid_even_if_it_agrees() {
    for (const bool fails : {true, false}) {
      for (const bool done : {true, false}) {
        Bench bench(quiet());
        bench.host(1);
        bench.trusted(9);
        bench.job(1, 600);
        const Grant grant = bench.one(1);
        QVERIFY(fails ? bench.fail(1, grant) : bench.give_back(1, grant));
        const Grant again = bench.one(9);
        QCOMPARE(again.unit, grant.unit);
        bench.host(3);
        if (done) bench.right(9, again);
        const SubmitAnswer answer = bench.right(1, grant);
        QCOMPARE(answer, done ? SubmitAnswer::kUnknown : SubmitAnswer::kNotNeeded);
        QCOMPARE(bench.state(grant), ResultState::kNone);
      }
    }
  }

  void an_owner_is_paid_once_for_a_unit() {
    for (const bool other_owner : {false, true}) {
      Bench bench(quiet());
      bench.host(1, {.owner = {1}});
      bench.host(2, {.owner = {other_owner ? 2 : 1}});
      bench.job(1, 1'000'000);
      const Grant late = bench.one(1);
      bench.wait(kHour);
      const Grant again = bench.one(2);
      QCOMPARE(again.unit, late.unit);
      bench.right(2, again);
      QCOMPARE(bench.right(1, late),
               other_owner ? SubmitAnswer::kAccepted : SubmitAnswer::kNotNeeded);
      QCOMPARE(bench.state(late), other_owner ? ResultState::kPending : ResultState::kNone);
      QVERIFY(bench.keeper.faults().empty());
    }
  }

  void a_result_is_taken_for_a_week_after_its_lease_and_not_longer() {
    for (const bool too_late : {false, true}) {
      Bench bench(quiet());
      bench.host(1);
      bench.job(1, 600);
      const Grant late = bench.one(1);
      bench.wait(late.until - bench.now + times(kDay, 7) + Millis{too_late ? 1 : 0});
      QCOMPARE(bench.right(1, late), too_late ? SubmitAnswer::kNotNeeded : SubmitAnswer::kAccepted);
    }
  }

  // Who is late knows that another was asked for the same.
  void a_late_result_that_agrees_vouches_for_nothing() {
    Bench bench(quiet());
    experienced_hosts(bench, 2);
    bench.job(1, 1'000'000);
    const Grant first = bench.one(1);
    bench.right(1, first);
    const Grant late = bench.one(1);
    bench.wait(kHour);
    const Grant again = bench.one(2);
    QCOMPARE(again.unit, late.unit);
    bench.right(2, again);
    QCOMPARE(bench.right(1, late), SubmitAnswer::kExtra);
    QCOMPARE(bench.state(late), ResultState::kPending);  // Nor do the two check each other.
    QCOMPARE(bench.state(again), ResultState::kPending);
    QCOMPARE(bench.state(first), ResultState::kPending);
  }

  // What an audit vouches for waits while an older result is being checked.
  void one_check_under_way_holds_up_what_a_later_one_vouches_for() {
    for (const bool honest : {true, false}) {
      Bench bench(quiet());
      bench.host(1);
      bench.job(1, 1'000'000);
      std::vector<Grant> grants;
      for (int i = 0; i < 2; ++i) {
        grants.push_back(bench.one(1));
        !honest&& i == 0 ? bench.wrong(1, grants[0]) : bench.right(1, grants.back());
      }
      QVERIFY(bench
                  .restart([](BrokerRows& rows) {
                    rows.hosts[0].record.valid_in_row = 1'000'000'000;
                    rows.units[1].want = UnitWant::kNothing;  // Only the first is audited,
                  })
                  .ok());
      bench.device(1);
      grants.push_back(bench.one(1));
      bench.right(1, grants[2]);
      bench.keep();
      bench.wait(kDay + kHour);  // and by and by a later one.
      bench.host(2);
      bench.trusted(9);
      for (int i = 0; i < 20; ++i) {
        const Grant copy = bench.one(2);
        if (!copy.lease || copy.unit > grants[2].unit) break;
        if (copy.unit != grants[0].unit) bench.right(2, copy);
      }
      QCOMPARE(bench.state(grants[1]), ResultState::kPending);
      for (int round = 0; round < 5; ++round) {
        bench.wait(kHour);
        for (const int n : {2, 9}) {
          for (Grant grant = bench.one(n); grant.lease && grant.unit <= grants[2].unit;
               grant = bench.one(n)) {
            bench.right(n, grant);
          }
        }
      }
      QCOMPARE(bench.state(grants[0]), honest ? ResultState::kConfirmed : ResultState::kRejected);
      QVERIFY(honest == (bench.record(1).wrong == 0));
    }
  }

  void after_a_restart_nobody_is_drawn_before_others_had_time_to_come_back() {
    BrokerRules rules = quiet();
    rules.gather = kMinute;
    Bench bench(rules);
    bench.host(1);
    bench.host(2);
    bench.job(1, 600);
    bench.right(1, bench.one(1));
    QVERIFY(bench.restart().ok());
    bench.device(2);
    bench.wait(kMinute - Millis{1});
    QCOMPARE(bench.ask(2).why, NoWork::kAllOut);
    bench.wait(Millis{1});
    bench.ask(2);
    QCOMPARE(bench.keeper.leases().rbegin()->second.granted.purpose, Purpose::kAudit);
  }

  void a_task_that_closes_audits_each_hosts_last_result_once() {
    Bench bench(quiet());
    experienced_hosts(bench, 3);
    bench.job(1, 600 * 4);
    const Grant a = bench.one(1), b = bench.one(1), c = bench.one(2);
    bench.right(1, a);
    bench.right(2, c);
    QCOMPARE(bench.keeper.units().at(c.unit).row.want, UnitWant::kNothing);
    const Grant d = bench.one(3);  // The last of the task.
    QCOMPARE(bench.keeper.units().at(c.unit).row.want, UnitWant::kAudit);
    QCOMPARE(bench.keeper.units().at(a.unit).row.want, UnitWant::kNothing);  // It has another.
    QVERIFY(bench.give_back(1, b));
    QCOMPARE(bench.keeper.units().at(a.unit).row.want, UnitWant::kAudit);
    bench.right(3, d);
    QCOMPARE(bench.keeper.units().at(d.unit).row.want, UnitWant::kAudit);
  }

  void what_was_pending_too_long_is_audited() {
    Bench bench(quiet());
    experienced_hosts(bench, 2);
    bench.job(1, 1'000'000);
    const Grant first = bench.one(1);
    bench.right(1, first);
    bench.wait(kHour);
    const Grant second = bench.one(1);
    bench.right(1, second);
    const auto audited = [&](const Grant& grant) {
      return bench.keeper.units().at(grant.unit).row.want == UnitWant::kAudit;
    };
    bench.wait(kDay - kHour - Millis{1});
    QVERIFY(!audited(first) && !audited(second));
    bench.wait(Millis{1});
    QVERIFY(audited(first) != audited(second));  // One of them, by chance.
    bench.right(2, copy_for(bench, 2, audited(first) ? first.unit : second.unit));
    QCOMPARE(bench.state(first), ResultState::kConfirmed);
  }

  void a_known_answer_checks_a_host_and_costs_nobody_else() {
    for (const bool honest : {true, false}) {
      BrokerRules rules = quiet();
      rules.known_rate_newcomer = 1;
      Bench bench(rules);
      bench.trusted(9);
      bench.host(1);
      bench.job(1, 1'000'000);
      const Grant known = bench.one(9);
      bench.right(9, known);
      QVERIFY(bench.done(known));
      const Grant grant = bench.one(1);
      QCOMPARE(grant.unit, known.unit);
      QCOMPARE(grant.purpose, Purpose::kKnown);
      QCOMPARE(bench.renew(1, grant).answer, RenewAnswer::kRenewed);
      QCOMPARE(honest ? bench.right(1, grant) : bench.wrong(1, grant), SubmitAnswer::kAccepted);
      QCOMPARE(bench.state(grant), honest ? ResultState::kConfirmed : ResultState::kRejected);
      QCOMPARE(bench.record(1).valid_in_row, honest ? 1 : 0);
      QCOMPARE(bench.ask(1).why, honest ? NoWork::kNone : NoWork::kQuarantined);
      QVERIFY(bench.one(1).unit != known.unit);  // Not the same one twice.
      QCOMPARE(bench.keeper.tasks().at({100}).items_done, known.items);
      QVERIFY(bench.keeper.faults().empty());
    }
  }

  // A known answer is as long as its task's other units: others a host could tell.
  void a_known_answer_of_a_task_with_units_of_its_own_length_is_used() {
    BrokerRules rules = quiet();
    rules.known_rate_newcomer = 1;
    Bench bench(rules);
    bench.trusted(9);
    bench.host(1);
    bench.host(2);
    bench.device(2, {.flops_per_second = 1e13});
    TaskSpec task = bench.task(100, 1'000'000);
    task.unit_target = kMinute;
    QVERIFY(bench.job({.job = {1}, .tasks = {task}}).ok());
    const Grant known = bench.one(9);
    QCOMPARE(known.items, 60);
    bench.right(9, known);
    QVERIFY(bench.one(2).purpose != Purpose::kKnown);  // It takes this one six seconds.
    QCOMPARE(bench.one(1).unit, known.unit);
  }

  // ---- Disputes ----

  void a_trusted_device_settles_a_dispute_and_the_liar_pays() {
    for (const bool auditor_lies : {false, true}) {
      Bench bench(quiet());
      experienced_hosts(bench, 2);
      bench.job(1, 600 * 3);
      const int liar = auditor_lies ? 2 : 1;
      Grant grants[3];
      for (Grant& grant : grants) {
        grant = bench.one(1);
        const bool lies = liar == 1 && &grant == &grants[2];
        lies ? bench.wrong(1, grant) : bench.right(1, grant);
      }
      bench.trusted(9);
      const Grant audit = copy_for(bench, 2, grants[2].unit);
      liar == 2 ? bench.wrong(2, audit) : bench.right(2, audit);
      QCOMPARE(bench.keeper.units().at(grants[2].unit).row.want, UnitWant::kJudge);
      QCOMPARE(bench.state(grants[0]), ResultState::kPending);
      const Grant judge = bench.one(9);
      QCOMPARE(judge.unit, grants[2].unit);
      QCOMPARE(judge.purpose, Purpose::kJudge);
      bench.right(9, judge);
      QVERIFY(bench.done(judge));
      QCOMPARE(bench.keeper.units().at(judge.unit).digest, truth(judge.unit));
      QCOMPARE(bench.ask(liar).why, NoWork::kQuarantined);
      QCOMPARE(bench.record(liar).valid_in_row, 0);
      QCOMPARE(bench.record(liar).wrong, 1);
      QCOMPARE(bench.state(liar == 1 ? grants[2] : audit), ResultState::kRejected);
      QCOMPARE(bench.state(liar == 1 ? audit : grants[2]), ResultState::kConfirmed);
      QVERIFY(bench.record(3 - liar).valid_in_row >= 1'000'000'000);  // Untouched, and more.
      QCOMPARE(bench.state(grants[0]), liar == 1 ? ResultState::kSuspect : ResultState::kConfirmed);
      if (liar == 1) {
        // All that it had pending is computed again, and paid where it agrees.
        for (const int n : {2, 9, 2, 9}) {
          const Grant again = bench.one(n);
          if (!again.lease) continue;
          QCOMPARE(again.purpose, Purpose::kRecheck);
          bench.right(n, again);
        }
        for (int i = 0; i < 2; ++i) QCOMPARE(bench.state(grants[i]), ResultState::kConfirmed);
      }
    }
  }

  void pending_results_of_a_liar_count_if_another_agrees_and_else_not() {
    Bench bench(quiet());
    experienced_hosts(bench, 3, /*with_trusted=*/true);
    bench.broker.device_gone({90}, bench.now);
    bench.job(1, 600 * 3);
    const Grant honest = bench.one(1);
    bench.right(1, honest);
    const Grant lying = bench.one(1);
    bench.wrong(1, lying);
    const Grant caught = bench.one(1);
    bench.broker.device_gone({30}, bench.now);
    bench.wrong(1, caught);
    const Grant audit = copy_for(bench, 2, caught.unit);
    bench.right(2, audit);
    bench.device(9);
    bench.right(9, copy_for(bench, 9, caught.unit));
    QCOMPARE(bench.state(caught), ResultState::kRejected);
    QCOMPARE(bench.state(honest), ResultState::kSuspect);
    bench.device(3);
    for (int round = 0; round < 3; ++round) {
      for (const int n : {2, 3, 9}) {
        for (Grant grant = bench.one(n); grant.lease; grant = bench.one(n)) bench.right(n, grant);
      }
      bench.wait(kHour);
    }
    QCOMPARE(bench.state(honest), ResultState::kConfirmed);
    QCOMPARE(bench.state(lying), ResultState::kRejected);
    QCOMPARE(bench.keeper.reason(lying.lease), RejectReason::kWrong);
    QCOMPARE(bench.job_state(1), JobState::kDone);
    QVERIFY(bench.keeper.faults().empty());
  }

  void without_a_trusted_device_two_that_agree_settle_it() {
    Bench bench(quiet());
    experienced_hosts(bench, 3);
    bench.job(1, 600);
    const Grant grant = bench.one(1);
    bench.wrong(1, grant);
    Grant second = bench.one(2);
    const int other = second.lease ? 3 : 2;
    if (!second.lease) second = bench.one(3);
    bench.right(5 - other, second);
    QVERIFY(!bench.done(grant));
    const Grant third = bench.one(other);
    QCOMPARE(third.purpose, Purpose::kJudge);
    bench.right(other, third);
    QVERIFY(bench.done(grant));
    QCOMPARE(bench.state(grant), ResultState::kRejected);
    QCOMPARE(bench.ask(1).why, NoWork::kQuarantined);
    QCOMPARE(bench.state(second), ResultState::kConfirmed);
  }

  void a_unit_of_which_no_two_results_agree_is_put_aside_and_nobody_is_blamed() {
    BrokerRules rules = quiet();
    rules.votes_max = 4;
    Bench bench(rules);
    for (int n = 1; n <= 5; ++n) bench.host(n);
    bench.job(1, 600);
    std::set<int> asked;
    for (int round = 0; round < 20 && bench.job_state(1) == JobState::kRunning; ++round) {
      for (int n = 1; n <= 5; ++n) {
        const Grant grant = bench.one(n);
        if (!grant.lease) continue;
        QVERIFY(asked.insert(n).second);
        bench.wrong(n, grant);
      }
      bench.wait(kHour);
    }
    QCOMPARE(asked.size(), size_t{4});
    QCOMPARE(bench.keeper.tasks().at({100}).items_poisoned, 600);
    QCOMPARE(bench.job_state(1), JobState::kDone);
    for (int n = 1; n <= 5; ++n) QCOMPARE(bench.record(n).wrong, 0);
  }

  void quarantine_ends_and_is_longer_the_second_time() {
    Bench bench(quiet());
    bench.trusted(9);
    bench.host(1);
    bench.job(1, 1'000'000);
    for (const int days : {1, 2, 4}) {
      bench.broker.device_gone({90}, bench.now);
      const Grant grant = bench.one(1);
      const Grant held = bench.one(1);
      QVERIFY(held.lease);
      bench.wrong(1, grant);
      bench.device(9);
      bench.right(9, copy_for(bench, 9, grant.unit));
      QCOMPARE(bench.state(grant), ResultState::kRejected);
      // What it held is taken back; a result of it is not believed, but welcome to be compared.
      QCOMPARE(bench.keeper.leases().at(held.lease).why, LeaseEndReason::kQuarantined);
      QCOMPARE(bench.right(1, held), SubmitAnswer::kAccepted);
      QCOMPARE(bench.state(held), ResultState::kSuspect);
      const LeaseAnswer answer = bench.ask(1);
      QCOMPARE(answer.why, NoWork::kQuarantined);
      QCOMPARE(answer.ask_again, bench.now + times(kDay, days));
      bench.right(9, copy_for(bench, 9, held.unit));
      QCOMPARE(bench.state(held), ResultState::kConfirmed);
      QCOMPARE(bench.record(1).valid_in_row, 0);  // That was no valid one in a row.
      bench.wait(times(kDay, days) - Millis{1});
      QCOMPARE(bench.ask(1).why, NoWork::kQuarantined);
      bench.wait(Millis{1});
    }
  }

  // ---- Failures ----

  void a_unit_that_fails_on_three_owners_hosts_is_poison() {
    Bench bench(quiet());
    bench.host(1);
    bench.host(2);
    bench.host(3, {.owner = {1}});
    bench.job(1, 600);
    Grant grant = bench.one(1);
    QVERIFY(!bench.broker.fail({grant.unit, grant.lease, {2}}, bench.now));
    QVERIFY(bench.fail(1, grant));
    QVERIFY(!bench.fail(1, grant));
    QCOMPARE(bench.ask(3).why, NoWork::kAllOut);  // The same owner: others are asked first.
    bench.wait(kHour);
    QVERIFY(bench.fail(3, bench.one(3)));
    QVERIFY(bench.fail(2, bench.one(2)));
    QCOMPARE(bench.keeper.tasks().at({100}).items_poisoned, 0);  // Two owners.
    bench.host(4);
    QVERIFY(bench.fail(4, bench.one(4)));
    QCOMPARE(bench.keeper.tasks().at({100}).items_poisoned, 600);
    QCOMPARE(bench.job_state(1), JobState::kDone);
    for (const int n : {1, 2, 3, 4}) QCOMPARE(bench.record(n).wrong, 0);
    QCOMPARE(bench.right(1, grant), SubmitAnswer::kUnknown);
  }

  // Devices of one kind share their bugs: others are asked before a unit is put aside.
  void a_unit_is_no_poison_as_long_as_one_kind_of_device_alone_fails_and_another_could_try() {
    enum class Third { kOther, kSameAndOtherIsThere, kSame, kSameAndOtherDenies };
    for (const Third third :
         {Third::kOther, Third::kSameAndOtherIsThere, Third::kSame, Third::kSameAndOtherDenies}) {
      Bench bench(quiet());
      bench.job(1, 600);
      if (third == Third::kSameAndOtherIsThere) bench.host(8);
      if (third == Third::kSameAndOtherDenies) bench.host(8);
      if (third == Third::kSameAndOtherDenies) bench.device(8, {.denied = {{1}}});
      for (int n = 1; n <= 3; ++n) {
        bench.host(n);
        bench.device(n, {.device_class = third != Third::kOther || n < 3 ? 7u : 8u});
        QVERIFY(bench.fail(n, bench.one(n)));
        QCOMPARE(bench.keeper.tasks().at({100}).items_poisoned,
                 n == 3 && third != Third::kSameAndOtherIsThere ? 600 : 0);
      }
      if (third != Third::kSameAndOtherIsThere) continue;
      // Those of this kind do not get it for a while; the other kind decides.
      bench.host(4);
      bench.device(4, {.device_class = 7});
      QCOMPARE(bench.ask(4).why, NoWork::kAllOut);
      const Grant grant = bench.one(8);
      QVERIFY(grant.lease);
      QVERIFY(bench.fail(8, grant));
      QCOMPARE(bench.keeper.tasks().at({100}).items_poisoned, 600);
    }
  }

  // The other kind is there, and never asks.
  void what_fails_on_nine_owners_devices_of_one_kind_is_poison() {
    Bench bench(quiet());
    bench.host(90);
    bench.job(1, 600);
    for (int n = 1; n <= 9; ++n) {
      bench.host(n);
      bench.device(n, {.device_class = 7});
      QCOMPARE(bench.keeper.tasks().at({100}).items_poisoned, 0);
      bench.wait(times(kMinute, 30));
      QVERIFY(bench.fail(n, bench.one(n)));
    }
    QCOMPARE(bench.keeper.tasks().at({100}).items_poisoned, 600);
  }

  void a_unit_that_has_a_result_is_no_poison() {
    BrokerRules rules = quiet();
    rules.poison_hosts = 1;
    Bench bench(rules);
    bench.host(1);
    bench.job(1, 600);
    bench.right(1, bench.one(1));
    for (int n = 2; n <= 4; ++n) {
      bench.host(n);
      bench.wait(kMinute);
      const Grant audit = bench.one(n);
      QCOMPARE(audit.purpose, Purpose::kAudit);
      QVERIFY(bench.fail(n, audit));
      QCOMPARE(bench.keeper.tasks().at({100}).items_poisoned, 0);
    }
    bench.trusted(9);
    bench.wait(kMinute);
    bench.right(9, bench.one(9));
    QCOMPARE(bench.job_state(1), JobState::kDone);
  }

  // Whoever is banned is believed nothing more, and others get what he holds.
  void a_ban_takes_back_what_a_host_holds_and_what_it_is_believed() {
    for (const bool crash : {false, true}) {
      Bench bench(quiet());
      experienced_hosts(bench, 2);
      bench.job(1, 1'000'000);
      const Grant pending = bench.one(1);
      bench.right(1, pending);
      const Grant held = bench.one(1), other = bench.one(1);
      QCOMPARE(bench.state(pending), ResultState::kPending);
      if (crash) {
        // The ban was stored, and nothing else after it.
        QVERIFY(bench.restart([](BrokerRows& rows) { rows.hosts[0].facts.banned = true; }).ok());
        bench.device(1);
        bench.device(2);
      } else {
        bench.host(1, {.banned = true});
      }
      QCOMPARE(bench.state(pending), ResultState::kSuspect);
      for (const Grant& grant : {held, other}) {
        QVERIFY(!bench.keeper.leases().at(grant.lease).live);
        QCOMPARE(bench.renew(1, grant).answer, RenewAnswer::kLost);
      }
      QCOMPARE(bench.ask(1).why, NoWork::kBanned);
      QCOMPARE(bench.right(1, held), SubmitAnswer::kAccepted);
      QCOMPARE(bench.state(held), ResultState::kSuspect);
      Grant taken = bench.one(2);
      for (int i = 0; i < 3 && taken.unit != other.unit; ++i) {
        bench.right(2, taken);  // What is to be computed again comes first.
        taken = bench.one(2);
      }
      QCOMPARE(taken.unit, other.unit);
      bench.right(2, taken);
      QCOMPARE(bench.state(taken), ResultState::kPending);
      QCOMPARE(bench.record(2).wrong, 0);
      QVERIFY(bench.restart().ok());
    }
  }

  // A trusted host that was caught settles nothing until it is believed again.
  void a_trusted_host_in_quarantine_does_not_decide() {
    Bench bench(quiet());
    bench.trusted(9);
    bench.job(1, 1'000'000);
    const Grant grant = bench.one(9);
    QVERIFY(bench
                .restart([](BrokerRows& rows) {
                  rows.hosts[0].record.quarantined_until = {INT64_MAX / 2};
                })
                .ok());
    QCOMPARE(bench.wrong(9, grant), SubmitAnswer::kAccepted);
    QCOMPARE(bench.state(grant), ResultState::kSuspect);
    QVERIFY(!bench.done(grant));
  }

  // One audit that nobody can do does not hold up all the rest for ever.
  void what_nobody_can_check_stands_apart_after_a_day() {
    Bench bench(quiet());
    bench.host(1);
    bench.device(1, {.memory = Bytes{4 * kGibibyte.count}});
    TaskSpec large = bench.task(1, 600);
    large.memory = Bytes{4 * kGibibyte.count};  // Nobody else has so much.
    QVERIFY(bench.job({.job = {1}, .tasks = {large}}).ok());
    const Grant lonely = bench.one(1);
    bench.right(1, lonely);
    bench.host(2);
    bench.job(2, 600);
    const Grant other = bench.one(1);
    QCOMPARE(other.task, TaskId{200});
    bench.right(1, other);
    bench.right(2, bench.one(2));
    QCOMPARE(bench.state(other), ResultState::kConfirmed);  // It was checked itself.
    QVERIFY(
        bench.restart([](BrokerRows& rows) { rows.hosts[0].record.valid_in_row = 1'000'000'000; })
            .ok());
    bench.device(1, {.memory = Bytes{4 * kGibibyte.count}});
    bench.device(2);
    bench.job(3, 1200);
    const Grant first = bench.one(1), second = bench.one(1);
    bench.right(1, first);
    bench.right(1, second);
    bench.right(2, bench.one(2));
    QCOMPARE(bench.state(second), ResultState::kConfirmed);
    QCOMPARE(bench.state(first), ResultState::kPending);  // That of before may be a lie.
    bench.wait(kDay - Millis{1});
    QCOMPARE(bench.state(first), ResultState::kPending);
    bench.wait(times(kHour, 2));
    QCOMPARE(bench.state(first), ResultState::kConfirmed);
    QCOMPARE(bench.state(lonely), ResultState::kPending);
  }

  void a_single_owner_learns_of_poison_as_well() {
    Bench bench(quiet());
    bench.host(1);
    bench.job(1, 600);
    int failures = 0;
    for (; failures < 20 && bench.job_state(1) == JobState::kRunning; ++failures) {
      QVERIFY(bench.fail(1, bench.one(1)));
      bench.wait(kHour);
    }
    QCOMPARE(failures, 9);
  }

  void a_job_with_too_much_poison_is_faulted() {
    for (const int64_t units : {50, 49}) {
      BrokerRules rules = quiet();
      rules.poison_hosts = 1;
      Bench bench(rules);
      bench.host(1);
      bench.job(1, 600 * units);
      for (int i = 1; i <= 5; ++i) {
        QCOMPARE(bench.job_state(1), JobState::kRunning);
        QVERIFY(bench.fail(1, bench.one(1)));
        bench.wait(times(kMinute, 10));
      }
      QCOMPARE(bench.job_state(1), units == 50 ? JobState::kRunning : JobState::kFaulted);
      QCOMPARE(bench.ask(1).why, units == 50 ? NoWork::kNone : NoWork::kNoJobs);
    }
  }

  // ---- Ends of jobs ----

  void who_works_for_a_cancelled_job_is_told_and_paid_for_what_was_done() {
    Bench bench(quiet());
    experienced_hosts(bench, 2);
    bench.job(1, 1'000'000);
    const Grant done = bench.one(1), held = bench.one(1);
    bench.right(1, done);
    QVERIFY(bench.broker.cancel_job({1}, bench.now));
    bench.keep();
    QVERIFY(!bench.broker.cancel_job({1}, bench.now));
    QCOMPARE(bench.job_state(1), JobState::kCancelled);
    QCOMPARE(bench.keeper.leases().at(held.lease).why, LeaseEndReason::kCancelled);
    QVERIFY(bench.renew(1, held).answer != RenewAnswer::kRenewed);
    QCOMPARE(bench.right(1, held), SubmitAnswer::kUnknown);  // The rows say: not needed.
    QCOMPARE(bench.state(done), ResultState::kPending);
    QVERIFY(bench.restart().ok());
    bench.device(1);
    bench.device(2);
    bench.job(2, 600);
    const Grant next = bench.one(1);
    bench.right(1, next);
    bench.right(2, bench.one(2));
    QCOMPARE(bench.state(next), ResultState::kConfirmed);
    QCOMPARE(bench.state(done), ResultState::kConfirmed);
    QCOMPARE(bench.broker.live_units(), size_t{0});
  }

  void what_nobody_can_vouch_for_any_more_is_unproven_in_the_end() {
    Bench bench(quiet());
    experienced_hosts(bench, 1);
    bench.job(1, 1'000'000);
    const Grant done = bench.one(1);
    bench.right(1, done);
    QVERIFY(bench.broker.cancel_job({1}, bench.now));
    bench.wait(times(kDay, 2) - Millis{1});
    QCOMPARE(bench.state(done), ResultState::kPending);
    bench.wait(kHour);
    QCOMPARE(bench.state(done), ResultState::kRejected);
    QCOMPARE(bench.keeper.reason(done.lease), RejectReason::kUnproven);
    QCOMPARE(bench.record(1).wrong, 0);
    QVERIFY(!reject_code(RejectReason::kUnproven).empty());
    QVERIFY(!reject_code(RejectReason::kWrong).empty());
  }

  // ---- Restart ----

  void a_restarted_broker_goes_on_where_it_was() {
    Bench bench(quiet());
    bench.host(1);
    bench.host(2);
    bench.job(1, 600 * 4);
    const Grant audited = bench.one(1), held = bench.one(1);
    bench.right(1, audited);
    QVERIFY(bench.restart().ok());
    QCOMPARE(bench.renew(1, held).answer, RenewAnswer::kRenewed);
    QCOMPARE(bench.right(1, audited), SubmitAnswer::kDuplicate);
    QCOMPARE(bench.ask(1).why, NoWork::kUnknownDevice);
    bench.device(1);
    bench.device(2);
    const Grant audit = bench.one(2);
    QCOMPARE(audit.unit, audited.unit);
    QVERIFY(audit.lease > held.lease);
    bench.right(2, audit);
    QCOMPARE(bench.state(audited), ResultState::kConfirmed);
    QCOMPARE(bench.right(1, held), SubmitAnswer::kAccepted);
    QCOMPARE(bench.broker.progress({1}).items_done, 600);
    QVERIFY(bench.keeper.faults().empty());
  }

  void rows_that_contradict_each_other_are_refused() {
    Bench bench(quiet());
    bench.host(1);
    bench.job(1, 600 * 4);
    const Grant grant = bench.one(1);
    const Grant second = bench.one(1);
    bench.right(1, grant);
    QVERIFY(second.lease);
    const auto corrupt = [&](std::function<void(BrokerRows&)> edit) {
      const auto done = bench.restart(std::move(edit));
      return !done.ok() &&
             (done.error().code == ErrorCode::kCorrupt || done.error().code == ErrorCode::kInvalid);
    };
    QVERIFY(corrupt([](BrokerRows& rows) { rows.hosts.push_back(rows.hosts[0]); }));
    QVERIFY(corrupt([](BrokerRows& rows) { rows.hosts.clear(); }));
    QVERIFY(corrupt([](BrokerRows& rows) { rows.jobs.push_back(rows.jobs[0]); }));
    QVERIFY(corrupt([](BrokerRows& rows) { rows.jobs.clear(); }));
    QVERIFY(corrupt([](BrokerRows& rows) { rows.tasks[0].items_cut = 2401; }));
    QVERIFY(corrupt([](BrokerRows& rows) { rows.tasks[0].items_done = 2400; }));
    QVERIFY(corrupt([](BrokerRows& rows) { rows.units[0].cut.first_item = -1; }));
    QVERIFY(corrupt([](BrokerRows& rows) { rows.units[0].cut.items = 2401; }));
    QVERIFY(corrupt([](BrokerRows& rows) { rows.units[0].cut.task = {999}; }));
    QVERIFY(corrupt([](BrokerRows& rows) { rows.units.push_back(rows.units[0]); }));
    QVERIFY(corrupt([](BrokerRows& rows) { rows.last_unit = {1}; }));
    QVERIFY(corrupt([](BrokerRows& rows) { rows.last_lease = {1}; }));
    QVERIFY(corrupt([](BrokerRows& rows) { rows.leases[0].granted.unit = {999}; }));
    QVERIFY(corrupt([](BrokerRows& rows) { rows.units[1].done = true; }));
    QVERIFY(corrupt([](BrokerRows& rows) { rows.units[0].cut.first_item = INT64_MAX; }));
    QVERIFY(corrupt([](BrokerRows& rows) { rows.tasks[0].items_done = INT64_MAX; }));
    QVERIFY(corrupt([](BrokerRows& rows) { rows.tasks[0].units_poisoned = -1; }));
    QVERIFY(corrupt([](BrokerRows& rows) { rows.leases.push_back(rows.leases[0]); }));
    QVERIFY(corrupt([](BrokerRows& rows) { rows.units[0].done = true; }));
    QVERIFY(bench.restart().ok());
  }

  // A job of which nothing is waited for any more is no reason to stumble.
  void rows_of_a_job_that_is_over_are_taken_and_forgotten() {
    Bench bench(quiet());
    bench.host(1);
    bench.job(1, 600 * 4);
    const Grant held = bench.one(1);
    QVERIFY(held.lease);
    QVERIFY(bench
                .restart([](BrokerRows& rows) {
                  rows.jobs[0].state = JobState::kCancelled;
                  for (LeaseRow& lease : rows.leases) lease.live = false;
                })
                .ok());
    QCOMPARE(bench.broker.progress({1}).items, 0);
    QCOMPARE(bench.broker.live_units(), size_t{0});
  }

  void who_comes_back_after_a_restart_renews_for_no_longer_than_before() {
    Bench bench(quiet());
    bench.host(1);
    bench.job(1, 600);
    const Grant grant = bench.one(1);
    QVERIFY(bench.restart().ok());
    QCOMPARE(bench.renew(1, grant).answer, RenewAnswer::kRenewed);  // Before it says its speed.
    QCOMPARE(bench.until(grant), bench.now + times(kMinute, 35));
  }

  void figures_from_a_wire_cannot_break_it() {
    Bench bench(quiet());
    bench.host(1);
    bench.job(1, 1'000'000);
    for (const double speed : {0.0, -1.0, double(NAN), double(INFINITY), 1e300, 1e-300}) {
      bench.device(1, {.flops_per_second = speed});
      const LeaseAnswer answer = bench.ask(1, {.wanted = kDay, .units_max = 1});
      for (const Grant& grant : answer.grants) {
        QVERIFY(grant.items >= 1 && grant.items <= 1'000'000);
        QVERIFY(grant.until > bench.now && grant.until <= bench.now + kDay);
        QVERIFY(bench.give_back(1, grant));
      }
    }
    bench.device(1);
    for (const Millis odd : {Millis{INT64_MIN}, Millis{-1}, Millis{0}, Millis{INT64_MAX}}) {
      for (const int units : {INT_MIN, -1, 0, 1, INT_MAX}) {
        const LeaseAnswer answer =
            bench.ask(1, {.wanted = odd, .available = odd, .units_max = units});
        QVERIFY(answer.grants.empty() == (units < 1 || odd.count < 1));
        QVERIFY(answer.grants.size() <= 2);
        for (const Grant& grant : answer.grants) QVERIFY(bench.give_back(1, grant));
      }
    }
    for (const uint64_t serial : {UINT64_MAX, uint64_t{1} << 63, uint64_t{1} << 62, uint64_t{1}}) {
      const Grant grant = bench.one(1);
      QCOMPARE(bench.submit(1, grant, truth(grant.unit), serial), SubmitAnswer::kAccepted);
      QVERIFY(bench.keeper.leases().at(grant.lease).serial > 0);
    }
    const Grant grant = bench.one(1);
    QCOMPARE(bench.right(1, grant), SubmitAnswer::kAccepted);
    QVERIFY(bench.keeper.faults().empty());
    QVERIFY(bench.restart().ok());
  }

  void the_clock_never_goes_back() {
    Bench bench(quiet());
    bench.host(1);
    bench.job(1, 600);
    const Grant grant = bench.one(1);
    bench.wait(kDay);
    QVERIFY(!bench.keeper.leases().at(grant.lease).live);
    bench.now = bench.now - times(kDay, 30);
    const Grant again = bench.one(1);
    QVERIFY(again.until > grant.until);
  }

  void slots_are_found_after_many_came_and_went() {
    SlotMap map;
    Random chance(3);
    std::map<int64_t, Slot> model;
    for (int i = 0; i < 20'000; ++i) {
      const auto id = static_cast<int64_t>(1 + chance.below(3000));
      if (model.contains(id)) {
        model.erase(id);
        map.remove(id);
      } else {
        model[id] = static_cast<Slot>(i);
        map.add(id, static_cast<Slot>(i));
      }
      map.remove(5000);  // Not there.
    }
    QCOMPARE(map.size(), model.size());
    for (int64_t id = 0; id <= 3001; ++id) {
      const auto it = model.find(id);
      QCOMPARE(map.find(id), it == model.end() ? kNoSlot : it->second);
    }
  }

  // Goal: whatever comes in whatever order, no unit is lost or counted twice, and no lie of those
  // who always lie from some point on is confirmed. Method: random events from a seed; messages are
  // lost, doubled, delayed, reordered and replayed; devices vanish and return; the coordinator
  // restarts from its rows.
  void nothing_is_lost_counted_twice_or_settled_on_a_lie() {
    for (uint64_t seed = 1; seed <= 150; ++seed) {
      const std::string fault = swarm(seed);
      const std::string replay = fault + "; replay with seed " + std::to_string(seed);
      QVERIFY2(fault.empty(), replay.c_str());
    }
  }

 private:
  std::string swarm(uint64_t seed) {
    Random chance(seed);
    const auto likely = [&](double share) { return chance.uniform() < share; };
    BrokerRules rules;
    rules.newcomer_units = static_cast<int>(chance.below(4));
    rules.audit_floor = 0.1 * chance.uniform();
    rules.known_rate = rules.known_rate_newcomer = 0.1 * chance.uniform();
    rules.pending_max = times(kHour, 1 + static_cast<int64_t>(chance.below(48)));
    rules.quarantine = kHour;
    rules.poison_share_max = 1;
    Bench bench(rules, seed);
    struct Machine {
      bool ready = true, liar = false, trusted = false;
      uint64_t serial = 0, lies_from = UINT64_MAX;
      std::vector<Grant> held;
    };
    const int hosts = 4 + static_cast<int>(chance.below(8));
    const bool any_trusted = likely(0.7);
    std::vector<Machine> machines(static_cast<size_t>(hosts) + 1);
    for (int n = 1; n <= hosts; ++n) {
      Machine& machine = machines[static_cast<size_t>(n)];
      machine.trusted = any_trusted && n == 1;
      // Without a trusted device the honest must be many enough to agree.
      if (!machine.trusted && n > 3 && likely(0.35)) machine.lies_from = chance.below(20);
      // Some owners have two hosts, which tell the same lies.
      bench.host(n, {.owner = {n > 5 ? n - n % 2 : n}, .trusted = machine.trusted});
      bench.device(n, {.flops_per_second = 1e11 * static_cast<double>(1 + chance.below(100))});
    }
    // Experienced hosts are audited seldom, and confirmed late.
    const auto row = [&](BrokerRows& rows) {
      for (KnownHostRow& each : rows.hosts) each.record.valid_in_row = likely(0.7) ? 10'000 : 0;
    };
    if (!bench.restart(row).ok()) return "its own rows are refused";
    for (int n = 1; n <= hosts; ++n) {
      bench.device(n, {.flops_per_second = 1e11 * static_cast<double>(1 + chance.below(100))});
    }
    TaskSpec a = bench.task(1, 5'000 + static_cast<int64_t>(chance.below(60'000)));
    TaskSpec b = bench.task(2, 10'000);
    b.after = {{1}};
    if (!bench.job({.job = {1}, .tasks = {a, b}}).ok()) return "the job is refused";
    struct Message {
      int host;
      Submission submission;
    };
    std::vector<Message> wire;
    std::vector<SubmitAnswer> answers;
    std::map<LeaseId, int> accepted;
    const auto finish = [&](int n) {
      Machine& machine = machines[static_cast<size_t>(n)];
      const size_t i = chance.below(machine.held.size());
      const Grant grant = machine.held[i];
      machine.held.erase(machine.held.begin() + static_cast<ptrdiff_t>(i));
      ++machine.serial;
      const bool lies = machine.serial > machine.lies_from;
      const LeaseId same{grant.unit.value * 100 + (n > 5 ? n - n % 2 : n)};
      wire.push_back(
          {n, {Bench::name(n, grant), lies ? lie(same) : truth(grant.unit), machine.serial}});
    };
    const auto deliver = [&](double again) {
      const size_t i = chance.below(wire.size());
      const Message message = wire[i];
      if (!likely(again)) wire.erase(wire.begin() + static_cast<ptrdiff_t>(i));
      const SubmitAnswer answer = bench.broker.submit(message.submission, bench.now);
      bench.keep();
      if (answer == SubmitAnswer::kAccepted || answer == SubmitAnswer::kExtra) {
        ++accepted[message.submission.name.lease];
      }
    };
    const auto come_back = [&](int n) {
      machines[static_cast<size_t>(n)].ready = true;
      bench.device(n, {.flops_per_second = 1e12});
    };
    for (int step = 0; step < 1500; ++step) {
      const int n = 1 + static_cast<int>(chance.below(static_cast<uint64_t>(hosts)));
      Machine& machine = machines[static_cast<size_t>(n)];
      const uint64_t what = chance.below(100);
      if (what < 30) {
        for (const Grant& grant : bench.ask(n, {.wanted = kHour}).grants) {
          machine.held.push_back(grant);
        }
      } else if (what < 60) {
        if (!machine.held.empty()) finish(n);
      } else if (what < 80) {
        if (!wire.empty()) deliver(0.3);
      } else if (what < 84) {
        if (!machine.held.empty()) bench.renew(n, machine.held[chance.below(machine.held.size())]);
      } else if (what < 86) {
        if (!machine.held.empty() && bench.give_back(n, machine.held.back())) {
          machine.held.pop_back();
        }
      } else if (what < 87) {
        if (!machine.held.empty() && bench.fail(n, machine.held.back())) machine.held.pop_back();
      } else if (what < 89) {  // A crash, or the machine is switched off.
        machine.held.clear();
        bench.broker.device_gone({10 * n}, bench.now);
        machine.ready = false;
      } else if (what < 92) {
        come_back(n);
      } else if (what < 98) {
        bench.wait(times(kMinute, static_cast<int64_t>(chance.below(30))));
      } else if (what == 98) {
        const Millis from = bench.now;
        bench.now += times(kMinute, static_cast<int64_t>(chance.below(300)));
        if (!bench.restart().ok()) return "its own rows are refused";
        bench.broker.outage(from, bench.now);
        bench.keep();
        for (Machine& each : machines) each.ready = false;
      } else if (!wire.empty()) {
        // A replay by another host: not his lease, not his result.
        Submission stolen = wire[chance.below(wire.size())].submission;
        const HostId thief{n};
        if (stolen.name.host != thief) {
          stolen.name.host = thief;
          if (bench.broker.submit(stolen, bench.now) != SubmitAnswer::kUnknown) {
            return "a stolen result is taken";
          }
        }
      }
    }
    // All calms down: everything arrives, everybody works.
    for (int round = 0; round < 3000 && bench.job_state(1) == JobState::kRunning; ++round) {
      for (int n = 1; n <= hosts; ++n) {
        Machine& machine = machines[static_cast<size_t>(n)];
        if (!machine.ready) come_back(n);
        for (const Grant& grant : bench.ask(n).grants) machine.held.push_back(grant);
        while (!machine.held.empty()) finish(n);
        while (!wire.empty()) deliver(0);
      }
      bench.wait(times(kMinute, 20));
    }
    if (bench.job_state(1) != JobState::kDone) return "a unit is lost: the job does not end";
    if (!bench.keeper.complete({1}) || !bench.keeper.complete({2})) return "items are missing";
    if (!bench.keeper.faults().empty()) return bench.keeper.faults().front();
    for (const auto& [lease, times] : accepted) {
      if (times > 1) return "a result is taken twice";
    }
    for (const auto& [id, unit] : bench.keeper.units()) {
      if (unit.row.done && unit.digest != truth(id)) return "a lie is confirmed";
    }
    for (const auto& [id, lease] : bench.keeper.leases()) {
      if (lease.state == ResultState::kConfirmed && lease.digest != truth(lease.granted.unit)) {
        return "a lie is paid";
      }
      if (lease.state == ResultState::kPending) return "a result stays pending for ever";
    }
    for (int n = 1; n <= hosts; ++n) {
      const bool honest = machines[static_cast<size_t>(n)].lies_from == UINT64_MAX;
      if (honest && bench.record(n).wrong > 0) return "an honest host is blamed";
    }
    return "";
  }
};

}  // namespace shoal

QTEST_GUILESS_MAIN(shoal::BrokerTest)
#include "broker_test.moc"
