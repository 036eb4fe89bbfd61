// Goal: a coordinator that is killed at any moment has kept all that it told anybody, and nothing
// by halves. Method: a real process with hosts that lease and hand in over TLS, SIGKILL after a
// time that a seed draws, a third of them while it starts; after each one the store is opened and
// held against what the hosts were told. SHOAL_KILLS says how many (300 take minutes, more than Qt
// allows a test: QTEST_FUNCTION_TIMEOUT=1500000), SHOAL_SEED with which seed.

#include <QTest>

#include <algorithm>
#include <map>
#include <set>

#include "base/files.h"
#include "base/random.h"
#include "coordinator/store/store.h"
#include "schema/require.h"
#include "tests/swarm/job_calls.h"
#include "tests/swarm/load_host.h"

using namespace shoal;
using namespace shoal::test;

namespace {

constexpr int kHosts = 8;
const char* const kSettings =
    "[hosts]\nping_interval_ms = 600000\n"
    "[jobs]\nunit_ms = 100\nask_again_ms_min = 10\nask_again_ms_max = 20\ngather_ms = 0\n"
    "lease_slack_ms = 1000\ngone_grace_ms = 500\n";
const char* const kJob =
    "name = \"kill\"\n[[tasks]]\nname = \"a\"\nkind = \"generate\"\nmodel = \"toy\"\n"
    "input = \"i\"\nmax_tokens = 1\nignore_eos = true\n";

// What hosts were told.
struct Told {
  std::map<uint64_t, uint64_t> leased;  // The unit of a lease.
  std::set<uint64_t> taken;             // Leases whose result was accepted.
};

rpc::Task<void> work(LoadHost& host, Told& told) {
  while (true) {
    kj::Promise<std::vector<LoadHost::Got>> leasing = host.lease(3);
    const std::vector<LoadHost::Got> got = co_await kj::mv(leasing);
    for (const LoadHost::Got& unit : got) told.leased[unit.lease] = unit.unit;
    for (const LoadHost::Got& unit : got) {
      kj::Promise<bool> submitting = host.submit(unit);
      const bool taken = co_await kj::mv(submitting);
      if (taken) told.taken.insert(unit.lease);
    }
  }
}

std::string first_wrong(const std::filesystem::path& data, const Told& told) {
  const auto store = rpc::require(Store::open(data));
  rpc::require(store->check_integrity());
  for (const auto& [lease, unit] : told.leased) {
    Query query = store->query("SELECT unit_id, result FROM unit_lease WHERE id = ?");
    if (!rpc::require(query.bind(static_cast<int64_t>(lease)).row()) ||
        query.integer(0) != static_cast<int64_t>(unit)) {
      return "lease " + std::to_string(lease) + " was given out and is not there";
    }
    if (told.taken.contains(lease) && query.text(1) == "none")
      return "the result of lease " + std::to_string(lease) + " was taken and is not there";
  }
  const std::pair<const char*, const char*> kNone[] = {
      {"a confirmed result is not in the ledger as confirmed",
       "SELECT l.id FROM unit_lease l WHERE l.result = 'confirmed' AND NOT EXISTS "
       "(SELECT 1 FROM ledger g JOIN receipt r ON r.ledger_id = g.id "
       "WHERE g.lease_id = l.id AND r.verdict = 'confirmed')"},
      {"the ledger confirms what no result is",
       "SELECT g.lease_id FROM ledger g JOIN receipt r ON r.ledger_id = g.id "
       "LEFT JOIN unit_lease l ON l.id = g.lease_id "
       "WHERE r.verdict = 'confirmed' AND (l.result IS NULL OR l.result <> 'confirmed')"},
      {"a host's receipts have a gap",
       "SELECT host_id FROM receipt GROUP BY host_id HAVING max(number) <> count(*)"},
      {"a unit that is done has no result that counts",
       "SELECT u.id FROM unit u LEFT JOIN unit_lease l ON l.id = u.lease_id "
       "WHERE u.state = 'done' AND (l.result IS NULL OR l.result <> 'confirmed')"},
      {"items are in two units, or in none",
       "SELECT id FROM (SELECT id, first_item, "
       "lag(first_item + item_count, 1, 0) OVER (ORDER BY first_item) AS before FROM unit) "
       "WHERE first_item <> before"},
  };
  for (const auto& [what, sql] : kNone) {
    Query query = store->query(sql);
    if (rpc::require(query.row()))
      return std::string(what) + ": " + std::to_string(query.integer(0));
  }
  return "";
}

}  // namespace

class CoordinatorKillTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void killed_at_any_moment_it_keeps_what_it_told();
};

void CoordinatorKillTest::killed_at_any_moment_it_keeps_what_it_told() {
  const int asked = qEnvironmentVariableIntValue("SHOAL_KILLS");  // 0: it is not there.
  const int kills = asked > 0 ? asked : 8;
  const int seed = std::max(qEnvironmentVariableIntValue("SHOAL_SEED"), 1);
  Random random(static_cast<uint64_t>(seed));
  kj::AsyncIoContext io = kj::setupAsyncIo();
  kj::Timer& timer = io.provider->getTimer();
  const TempDir folder;
  CoordinatorProcess coordinator(io, folder / "data", kSettings);
  coordinator.start();
  publish_toy(coordinator.admin(), make_toy_model("toy", 100, 1'000'000'000))
      .promise()
      .wait(io.waitScope);
  std::string prompts;
  for (int i = 0; i < 100'000; ++i) prompts += "{\"prompt\":\"abcdefgh\"}\n";
  submit_job(coordinator.admin(), kJob, std::move(prompts)).promise().wait(io.waitScope);
  std::vector<std::unique_ptr<LoadHost>> hosts;
  for (int i = 0; i < kHosts; ++i)
    hosts.push_back(std::make_unique<LoadHost>(io, "host " + std::to_string(i)));

  size_t leased = 0, taken = 0;
  for (int point = 0; point < kills; ++point) {
    const std::string replay =
        "SHOAL_KILLS=" + std::to_string(point + 1) + " SHOAL_SEED=" + std::to_string(seed) + ": ";
    Told told;
    {
      std::vector<kj::Promise<void>> working;
      const rpc::AttachUrl url = coordinator.url();
      for (auto& host : hosts) {
        kj::Promise<void> one = host->connect(url);
        working.push_back(one.then([&host = *host, &told] { return work(host, told).promise(); })
                              .eagerlyEvaluate([](kj::Exception&&) {}));
      }
      if (point == 0) {  // Those whose results need no check.
        timer.afterDelay(500 * kj::MILLISECONDS).wait(io.waitScope);
        for (int i = 0; i < kHosts / 2; ++i)
          trust_host(coordinator.admin(), hosts[size_t(i)]->id()).promise().wait(io.waitScope);
      }
      const auto micros = static_cast<int64_t>(random.below(400'000));
      timer.afterDelay(micros * kj::MICROSECONDS).wait(io.waitScope);
      coordinator.kill();
    }
    for (auto& host : hosts) host->drop();
    leased += told.leased.size();
    taken += told.taken.size();
    const std::string wrong = first_wrong(coordinator.data(), told);
    QVERIFY2(wrong.empty(), (replay + wrong).c_str());
    if (random.below(3) == 0) {  // Once more, while it starts.
      coordinator.spawn();
      const auto micros = static_cast<int64_t>(random.below(60'000));
      timer.afterDelay(micros * kj::MICROSECONDS).wait(io.waitScope);
      coordinator.kill();
      const std::string still = first_wrong(coordinator.data(), told);
      QVERIFY2(still.empty(), (replay + "while it starts: " + still).c_str());
    }
    coordinator.start();
  }
  const auto response = coordinator.admin().reconcileLedgerRequest().send().wait(io.waitScope);
  const auto report = response.getReport();
  QVERIFY2(report.getProblemCount() == 0,
           report.getProblemCount() == 0 ? "" : report.getProblems()[0].cStr());
  qInfo("%d kills; hosts were told of %lld leases and that %lld results were taken", kills,
        static_cast<long long>(leased), static_cast<long long>(taken));
  QVERIFY(leased > size_t(kills) && taken > size_t(kills));
}

QTEST_GUILESS_MAIN(CoordinatorKillTest)
#include "coordinator_kill_test.moc"
