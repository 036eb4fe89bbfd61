// How many units a second a coordinator can lease, take the results of, check, judge and pay, all
// of it durable. In one process, without the wire: coordinator/jobs on a store on the disk.
//
//   jobs_bench [--folder DIR] [--hosts N] [--seconds S] [--volunteers]

#include <capnp/message.h>
#include <kj/async-io.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "coordinator/jobs/job_service.h"
#include "coordinator/store/model_table.h"
#include "coordinator/store/session_table.h"
#include "schema/require.h"
#include "tests/coordinator/toy_model.h"

namespace shoal {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Bench {
  Bench(const std::filesystem::path& folder, kj::Timer& timer)
      : store(Store::open(folder).value()),
        hosts(*store),
        models(*store),
        sessions(*store),
        ledger_table(*store),
        ledger(ledger_table, clock, key),
        journal(sessions, clock) {
    const test::ToyModel toy = test::make_toy_model("toy", 100, 1'000'000'000);
    ModelRow row;
    row.name = "toy";
    row.manifest = toy.manifest;
    const ModelManifest manifest = read_model_manifest(toy.manifest).value();
    for (const ManifestShard& shard : manifest.shards) {
      row.shards.push_back({shard.digest, shard.sealed_bytes, ByteVector(72)});
    }
    row.id = models.add(row).value();
    model = load_live_model(row).value();
    JobNeeds needs{
        *store,
        timer,
        clock,
        random,
        pool,
        hosts,
        sessions,
        ledger,
        journal,
        stopping,
        {},
        64,
        folder / "jobs",
        [this](const std::string&) -> Result<std::shared_ptr<const LiveModel>> { return model; }};
    needs.options.rules.units_ahead_max = 64;
    jobs = JobService::open(std::move(needs)).value();
  }

  void add_host(int number, bool trusted) {
    HostRow row;
    const SigningKey identity = SigningKey::generate();
    row.public_key = identity.public_key();
    row.name = "host " + std::to_string(number);
    const HostId id = hosts.enrol(row).value();
    const uint64_t login = pool.attach(id, row.name, trusted, rpc::Host::Client(nullptr));
    PoolDevice device;
    device.row.name_on_host = "cpu";
    device.row.plane = "cpu";
    device.row.memory = kGibibyte;
    device.row.flops_per_second = 1e12;
    device.row.weight_bytes_per_second = 1e12;
    device.row.exact = true;
    device.state = DeviceState::kReady;
    device.worker_key = BoxKeyPair::generate().public_key();
    rpc::require(hosts.save_device(id, device.row, clock.now_wall()));
    pool.report(id, login, {device});
    jobs->host_known(id, trusted, false, uint64_t{1000} + static_cast<uint64_t>(number));
    jobs->devices_changed(id);
    places.push_back({id, login, "cpu"});
  }

  void submit(int64_t items) {
    const std::string spec =
        "name = \"bench\"\n[[tasks]]\nname = \"a\"\nkind = \"generate\"\nmodel = \"toy\"\n"
        "input = \"i\"\nmax_tokens = 1\nignore_eos = true\n";
    NewJob job;
    job.spec = spec;
    job.file = read_job_file(spec).value();
    job.models = {model};
    job.tasks.resize(1);
    ItemsWriter writer = ItemsWriter::begin(jobs->folder(), jobs->new_file_name()).value();
    for (int64_t i = 0; i < items; ++i) {
      const WorkItem item =
          read_input_line("{\"prompt\":\"abcdefgh\"}", job.file.tasks[0], *model, i).value();
      job.tasks[0].sums.add(item, TaskKind::kGenerate);
      rpc::require(writer.add(item));
    }
    // Units of one item each.
    job.tasks[0].sums.tokens_max = limits::kTokensPerUnitMax;
    job.tasks[0].items = writer.finish().value();
    rpc::require(jobs->submit_job(std::move(job)));
  }

  SystemClock clock;
  Random random{1};
  SigningKey key = SigningKey::generate();
  std::unique_ptr<Store> store;
  HostTable hosts;
  ModelTable models;
  SessionTable sessions;
  LedgerTable ledger_table;
  Ledger ledger;
  Journal journal;
  Pool pool;
  bool stopping = false;
  std::shared_ptr<const LiveModel> model;
  std::unique_ptr<JobService> jobs;
  std::vector<DevicePlace> places;
};

// The longest time between two turns of a loop that has something to do each millisecond.
kj::Promise<void> tick(kj::Timer& timer, double& last, double& longest) {
  return timer.afterDelay(1 * kj::MILLISECONDS).then([&timer, &last, &longest] {
    const double now = seconds_now();
    longest = std::max(longest, now - last);
    last = now;
    return tick(timer, last, longest);
  });
}

void run(const std::string& folder, int hosts, double seconds, bool volunteers) {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  const TempDir temporary;
  const std::filesystem::path path =
      folder.empty() ? temporary.path() : std::filesystem::path(folder);
  Bench bench(path, io.provider->getTimer());
  for (int i = 0; i < hosts; ++i) bench.add_host(i, !volunteers || i % 20 == 0);
  bench.submit(400'000);
  bench.jobs->stored().wait(io.waitScope);

  capnp::MallocMessageBuilder message;
  auto output = message.initRoot<rpc::UnitOutput>();
  output.initItems(1)[0].initTokens(1).set(0, 40);

  int64_t leased = 0, submitted = 0, batches = 0;
  const double start = seconds_now();
  while (seconds_now() - start < seconds) {
    // All hosts ask in one turn, and all deliver in the next: each turn is one commit.
    std::vector<kj::Promise<LeaseReply>> leases;
    for (const DevicePlace& place : bench.places) {
      leases.push_back(bench.jobs->lease(place, Millis{3'600'000}, 8, false));
    }
    std::vector<std::pair<HostId, LeaseId>> got;
    for (size_t i = 0; i < leases.size(); ++i) {
      const LeaseReply reply = leases[i].wait(io.waitScope);
      for (const LentUnit& unit : reply.units)
        got.emplace_back(bench.places[i].host, unit.grant.lease);
    }
    leased += static_cast<int64_t>(got.size());
    std::vector<kj::Promise<SubmitReply>> submits;
    for (const auto& [host, lease] : got) {
      submits.push_back(bench.jobs->submit(host, lease, output.asReader()));
    }
    for (auto& promise : submits) {
      promise.wait(io.waitScope);
      ++submitted;
    }
    batches += 2;
    if (got.empty()) break;
  }
  const double took = seconds_now() - start;
  // The output of what is there, and how long others wait for their turn while it is made.
  const double output_start = seconds_now();
  double last = output_start, turn_max = 0;
  kj::Promise<void> ticking =
      tick(io.provider->getTimer(), last, turn_max).eagerlyEvaluate(nullptr);
  const TaskOutput made = bench.jobs->output(JobId{1}, "").wait(io.waitScope);
  std::printf(
      "{\"hosts\":%d,\"volunteers\":%s,\"seconds\":%.2f,\"leases\":%lld,\"results\":%lld,"
      "\"commits\":%lld,\"cycles_per_second\":%.0f,\"output_items\":%lld,\"output_seconds\":%.2f,"
      "\"output_turn_ms_max\":%.1f}\n",
      hosts, volunteers ? "true" : "false", took, static_cast<long long>(leased),
      static_cast<long long>(submitted), static_cast<long long>(batches),
      static_cast<double>(submitted) / took, static_cast<long long>(made.items),
      seconds_now() - output_start, turn_max * 1000);
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  CLI::App app("Measures durable lease, result and ledger cycles in one process");
  std::string folder;
  int hosts = 200;
  double seconds = 5;
  bool volunteers = false;
  app.add_option("--folder", folder, "Where the store is; else a folder of its own under TMPDIR");
  app.add_option("--hosts", hosts, "How many");
  app.add_option("--seconds", seconds, "How long");
  app.add_flag("--volunteers", volunteers,
               "Results are checked by other hosts; else all hosts are trusted");
  CLI11_PARSE(app, argc, argv);
  shoal::run(folder, hosts, seconds, volunteers);
  return 0;
}
