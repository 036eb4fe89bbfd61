// What a coordinator does for hosts that are really connected: a shoal-coordinator process, and
// hosts over TLS on this machine that share the processors with it. Prints one JSON object.
//
//   wire_bench [--hosts N] [--seconds S] [--volunteers] [--ahead N]   cycles of lease and submit
//   wire_bench --idle N [--slow N]                                    memory of idle connections

#include <kj/async-io.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/files.h"
#include "base/host.h"
#include "tests/swarm/job_calls.h"
#include "tests/swarm/load_host.h"

namespace shoal::test {
namespace {

// Units of one item each: a device is thought to need longer than a unit for it.
const char* const kSettings =
    "[hosts]\nping_interval_ms = 600000\n"
    "[jobs]\nunit_ms = 100\nask_again_ms_min = 10\nask_again_ms_max = 20\ngather_ms = 0\n";
const char* const kJob =
    "name = \"bench\"\n[[tasks]]\nname = \"a\"\nkind = \"generate\"\nmodel = \"toy\"\n"
    "input = \"i\"\nmax_tokens = 1\nignore_eos = true\n";

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double at_part(std::vector<double>& times, double part) {
  if (times.empty()) return 0;
  std::ranges::sort(times);
  return times[std::min(times.size() - 1, static_cast<size_t>(part * double(times.size())))];
}

struct Measured {
  std::vector<double> lease_ms, submit_ms;
  int64_t cycles = 0, refused = 0, empty = 0;
};

// One host's day: leases, and hands in what it got, until the time is over.
rpc::Task<void> work(LoadHost& host, uint32_t ahead, const bool& over, kj::Timer& timer,
                     Measured& into) {
  while (!over) {
    const double asked = now_seconds();
    kj::Promise<std::vector<LoadHost::Got>> leasing = host.lease(ahead);
    const std::vector<LoadHost::Got> got = co_await kj::mv(leasing);
    into.lease_ms.push_back((now_seconds() - asked) * 1000);
    if (got.empty()) {
      ++into.empty;
      co_await timer.afterDelay(20 * kj::MILLISECONDS);
    }
    for (const LoadHost::Got& unit : got) {
      const double began = now_seconds();
      kj::Promise<bool> submitting = host.submit(unit);
      const bool taken = co_await kj::mv(submitting);
      into.submit_ms.push_back((now_seconds() - began) * 1000);
      taken ? ++into.cycles : ++into.refused;
    }
  }
}

template <class T>
T wait_for(rpc::Task<T> task, kj::AsyncIoContext& io) {
  return kj::mv(task).promise().wait(io.waitScope);
}

// At most so many handshakes at once: as they come in life, and no peer waits for its turn longer
// than a coordinator waits for peers.
void connect_all(std::vector<std::unique_ptr<LoadHost>>& hosts, const rpc::AttachUrl& url,
                 bool reports, kj::AsyncIoContext& io) {
  constexpr size_t kAtOnce = 32;
  for (size_t from = 0; from < hosts.size(); from += kAtOnce) {
    std::vector<kj::Promise<void>> some;
    for (size_t i = from; i < std::min(hosts.size(), from + kAtOnce); ++i)
      some.push_back(hosts[i]->connect(url, reports));
    for (auto& one : some) one.wait(io.waitScope);
  }
}

void bench_cycles(int hosts_count, double seconds, bool volunteers, uint32_t ahead) {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  const TempDir folder;
  CoordinatorProcess coordinator(io, folder / "data", kSettings);
  coordinator.start();
  wait_for(publish_toy(coordinator.admin(), make_toy_model("toy", 100, 1'000'000'000)), io);
  std::string prompts;
  for (int i = 0; i < 200'000; ++i) prompts += "{\"prompt\":\"abcdefgh\"}\n";
  wait_for(submit_job(coordinator.admin(), kJob, std::move(prompts)), io);
  std::vector<std::unique_ptr<LoadHost>> hosts;
  for (int i = 0; i < hosts_count; ++i)
    hosts.push_back(std::make_unique<LoadHost>(io, "host " + std::to_string(i)));
  const double dialled = now_seconds();
  connect_all(hosts, coordinator.url(), true, io);
  const double connect_seconds = now_seconds() - dialled;
  for (int i = 0; i < hosts_count; ++i) {
    if (volunteers && i % 20 != 0) continue;
    wait_for(trust_host(coordinator.admin(), hosts[static_cast<size_t>(i)]->id()), io);
  }

  Measured measured;
  bool over = false;
  kj::Timer& timer = io.provider->getTimer();
  std::vector<kj::Promise<void>> working;
  const double start = now_seconds(), cpu = coordinator.cpu_seconds();
  for (auto& host : hosts) working.push_back(work(*host, ahead, over, timer, measured));
  timer.afterDelay(static_cast<int64_t>(seconds * 1000) * kj::MILLISECONDS).wait(io.waitScope);
  over = true;
  for (auto& one : working) one.wait(io.waitScope);
  const double took = now_seconds() - start;
  const double used = coordinator.cpu_seconds() - cpu;
  std::printf(
      "{\"hosts\":%d,\"volunteers\":%s,\"ahead\":%u,\"seconds\":%.2f,\"cycles\":%lld,"
      "\"refused\":%lld,\"empty_leases\":%lld,\"cycles_per_second\":%.0f,"
      "\"lease_p50_ms\":%.1f,\"lease_p99_ms\":%.1f,\"submit_p50_ms\":%.1f,\"submit_p99_ms\":%.1f,"
      "\"coordinator_cpu_ms_per_cycle\":%.3f,\"logins_per_second\":%.0f}\n",
      hosts_count, volunteers ? "true" : "false", ahead, took,
      static_cast<long long>(measured.cycles), static_cast<long long>(measured.refused),
      static_cast<long long>(measured.empty), static_cast<double>(measured.cycles) / took,
      at_part(measured.lease_ms, 0.5), at_part(measured.lease_ms, 0.99),
      at_part(measured.submit_ms, 0.5), at_part(measured.submit_ms, 0.99),
      used * 1000 / static_cast<double>(std::max<int64_t>(measured.cycles, 1)),
      hosts_count / connect_seconds);
}

void bench_idle(int idle_count, int slow_count) {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  kj::Network& network = io.provider->getNetwork();
  kj::Timer& timer = io.provider->getTimer();
  const TempDir folder;
  CoordinatorProcess coordinator(io, folder / "data", kSettings);
  coordinator.start("[::]:0");
  // A coordinator takes so many connections from one address: half of them come from the other one.
  rpc::AttachUrl one = coordinator.url(), other = one;
  other.host = "::1";
  const auto connect_more = [&](std::vector<std::unique_ptr<LoadHost>>& hosts, int count) {
    for (int from = 0; from < count; from += 200) {
      std::vector<std::unique_ptr<LoadHost>> some;
      for (int i = 0; i < std::min(200, count - from); ++i)
        some.push_back(std::make_unique<LoadHost>(io, "host " + std::to_string(from + i)));
      connect_all(some, from / 200 % 2 == 0 ? one : other, true, io);
      for (auto& host : some) hosts.push_back(std::move(host));
    }
  };
  // The first ones pay for what is there once.
  std::vector<std::unique_ptr<LoadHost>> first, idle;
  connect_more(first, 100);
  const Bytes before = coordinator.memory(), own_before = own_memory();
  const double dialled = now_seconds();
  connect_more(idle, idle_count);
  const double took = now_seconds() - dialled;
  const Bytes after = coordinator.memory(), own_after = own_memory();

  // Peers that send one byte of their greeting and no more, beside it all.
  std::vector<kj::Own<kj::AsyncIoStream>> slow;
  std::vector<kj::Promise<size_t>> ends;
  char byte = 0;
  const double slow_began = now_seconds();
  double shed_seconds = 0;
  for (int i = 0; i < slow_count; ++i) {
    const kj::String where = kj::str("127.0.0.1:", one.port);
    auto stream = network.parseAddress(where).wait(io.waitScope)->connect().wait(io.waitScope);
    stream->write("s", 1).wait(io.waitScope);
    ends.push_back(stream->tryRead(&byte, 1, 1));
    slow.push_back(kj::mv(stream));
  }
  const Bytes with_slow = coordinator.memory();
  int shed = 0;
  for (auto& end : ends) {
    shed += timer.timeoutAfter(60 * kj::SECONDS, kj::mv(end))
                    .then([](size_t count) { return count == 0; },
                          [](kj::Exception&&) { return false; })
                    .wait(io.waitScope)
                ? 1
                : 0;
  }
  if (slow_count > 0) shed_seconds = now_seconds() - slow_began;
  // All of them are still heard.
  int heard = 0;
  for (size_t from = 0; from < idle.size(); from += 200) {
    std::vector<kj::Promise<void>> pings;
    for (size_t i = from; i < std::min(idle.size(), from + 200); ++i)
      pings.push_back(idle[i]->ping());
    for (auto& ping : pings) {
      ping.wait(io.waitScope);
      ++heard;
    }
  }
  std::printf(
      "{\"idle_hosts\":%d,\"kb_per_idle_host\":%.1f,\"coordinator_mb\":%.1f,"
      "\"own_kb_per_host\":%.1f,\"logins_per_second\":%.0f,\"heard\":%d,\"slow_peers\":%d,"
      "\"kb_per_slow_peer\":%.1f,\"slow_shed\":%d,\"shed_seconds\":%.1f}\n",
      idle_count, static_cast<double>((after - before).count) / 1024 / idle_count,
      static_cast<double>(after.count) / 1024 / 1024,
      static_cast<double>((own_after - own_before).count) / 1024 / idle_count, idle_count / took,
      heard, slow_count,
      slow_count == 0 ? 0.0 : static_cast<double>((with_slow - after).count) / 1024 / slow_count,
      shed, shed_seconds);
}

}  // namespace
}  // namespace shoal::test

int main(int argc, char** argv) {
  CLI::App app("Measures a shoal-coordinator with hosts that are connected over TLS");
  int hosts = 200, idle = 0, slow = 0;
  double seconds = 5;
  bool volunteers = false;
  uint32_t ahead = 1;
  app.add_option("--hosts", hosts, "How many")->check(CLI::Range(1, 4000));
  app.add_option("--seconds", seconds, "How long");
  app.add_option("--ahead", ahead, "Units in one lease call")->check(CLI::Range(1, 64));
  app.add_flag("--volunteers", volunteers,
               "Results are checked by other hosts; else all hosts are trusted");
  app.add_option("--idle", idle,
                 "Hosts that are connected and do nothing: their memory is measured")
      ->check(CLI::Range(0, 8000));
  app.add_option("--slow", slow, "With --idle: peers that never end their greeting")
      ->check(CLI::Range(0, 2000));
  CLI11_PARSE(app, argc, argv);
  shoal::ignore_broken_pipes();
  try {
    if (idle > 0) {
      shoal::test::bench_idle(idle, slow);
    } else {
      shoal::test::bench_cycles(hosts, seconds, volunteers, ahead);
    }
  } catch (const kj::Exception& exception) {
    std::fprintf(stderr, "wire_bench: %s\n", exception.getDescription().cStr());
    return 1;
  }
  return 0;
}
