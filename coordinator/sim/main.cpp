// shoal-sim: the coordinator's own broker under virtual time, with thousands of simulated hosts.

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <string>

#include "base/cli.h"
#include "base/clock.h"
#include "coordinator/sim/report.h"

using namespace shoal;
using namespace shoal::sim;

namespace {

std::string list_of_scenarios() {
  std::string text = "Scenarios:\n";
  for (const Scenario& scenario : scenarios()) {
    std::string name(scenario.name);
    name.resize(13, ' ');
    text += "  " + name + std::string(scenario.summary) + "\n";
  }
  return text;
}

struct Given {
  std::string scenario = "home", plots;
  int64_t hosts = 1000;
  double hours = 24, warm = -1, experienced = -1, audit_floor = -1, target_minutes = 0;
  double job_hours = 12;
  uint64_t seed = 1;
  bool progress = false;
};

Result<void> simulate(const Given& given, bool json) {
  SHOAL_TRY_ASSIGN(scenario, find_scenario(given.scenario));
  Options options{.scenario = scenario,
                  .hosts = given.hosts,
                  .hours = given.hours,
                  .seed = given.seed,
                  .job_hours = given.job_hours};
  if (given.experienced >= 0) options.scenario.experienced = given.experienced;
  if (given.audit_floor >= 0) options.rules.audit_floor = given.audit_floor;
  if (given.target_minutes > 0) {
    options.rules.unit_target = {static_cast<int64_t>(given.target_minutes * 60'000)};
    options.rules.unit_max = {2 * options.rules.unit_target.count};
  }
  options.warm_hours = given.warm >= 0 ? given.warm : given.hours / 4;
  if (options.warm_hours >= options.hours) {
    return Error{ErrorCode::kInvalid, "--warm must be less than --hours"};
  }
  const SystemClock clock;
  const Millis began = clock.now_monotonic();
  double told = -1;
  const Report report = run(options, [&](double hour) {
    if (!given.progress || hour < told + 1) return;
    told = std::floor(hour);
    std::fprintf(stderr, "\r%.0f of %.0f hours ", told, options.hours);
    std::fflush(stderr);
  });
  if (given.progress) std::fprintf(stderr, "\n");
  const double wall_s = static_cast<double>((clock.now_monotonic() - began).count) / 1000;
  if (!json) std::fputs(report_table(report, wall_s).c_str(), stdout);
  if (!given.plots.empty()) SHOAL_TRY(write_plots(report, given.plots));
  if (json) std::printf("%s\n", report_json(report, wall_s).c_str());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  CommandLine line("shoal-sim",
                   "Runs the coordinator's broker of batch work under virtual time, with simulated "
                   "hosts that come, go, sleep, crash and lie; a seed replays a run");
  Given given;
  CLI::App& app = line.app();
  app.add_option("--scenario", given.scenario, "What the fleet is like; see below")
      ->capture_default_str();
  app.add_option("--hosts", given.hosts, "How many hosts")
      ->check(CLI::Range(int64_t{10}, int64_t{1'000'000}))
      ->capture_default_str();
  app.add_option("--hours", given.hours, "Virtual hours")
      ->check(CLI::Range(0.1, 8760.0))
      ->capture_default_str();
  app.add_option("--seed", given.seed, "The same seed, the same run")->capture_default_str();
  app.add_option("--warm", given.warm,
                 "Hours that shares leave out, while hosts are newcomers [a quarter of --hours]")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--experienced", given.experienced,
                 "Share of hosts with a history of valid results [by the scenario]")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--audit-floor", given.audit_floor,
                 "Least share of a host's results that is audited [0.02]")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--unit-minutes", given.target_minutes, "How long a unit takes its device [10]")
      ->check(CLI::Range(0.1, 240.0));
  app.add_option("--job-hours", given.job_hours, "Work of the whole fleet that one job is")
      ->check(CLI::Range(0.1, 1000.0))
      ->capture_default_str();
  app.add_option("--plots", given.plots, "A folder for plots (SVG)");
  app.add_flag("--progress", given.progress, "Say on stderr how far it is");
  app.footer(list_of_scenarios());
  line.set_body([&] { return simulate(given, line.json()); });
  return line.run(argc, argv);
}
