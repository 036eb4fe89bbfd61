#include "coordinator/sim/report.h"

#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "coordinator/sim/figures.h"

namespace shoal::sim {

std::string report_json(const Report& report, double wall_s) {
  const Options& options = report.options;
  const Scenario& scenario = options.scenario;
  const Truth& truth = report.truth;
  const Figures f = figures(report);
  nlohmann::ordered_json out = {
      {"scenario", scenario.name},
      {"hosts", options.hosts},
      {"hours", options.hours},
      {"warm_hours", options.warm_hours},
      {"seed", options.seed},
      {"units_done", truth.units_done()},
      {"units_lost", truth.units_lost()},
      {"counted_twice", truth.counted_twice()},
      {"confirmed_wrong", truth.confirmed_wrong()},
      {"paid_wrong", truth.paid_wrong()},
      {"audit_share", f.audit_share},
      {"waste_share", f.waste_share},
      {"audit_share_whole", f.audit_share_whole},
      {"waste_share_whole", f.waste_share_whole},
      {"repair_p50_s", truth.repairs().percentile(0.5)},
      {"repair_p99_s", truth.repairs().percentile(0.99)},
      {"repair_silent_p50_s", truth.silent_repairs().percentile(0.5)},
      {"repair_silent_p99_s", truth.silent_repairs().percentile(0.99)},
      {"confirm_p50_s", truth.confirmations().percentile(0.5)},
      {"confirm_p99_s", truth.confirmations().percentile(0.99)},
      {"teraflops", f.flops_per_second / 1e12},
      {"hosts_on", f.hosts_on},
      {"results", truth.results()},
      {"results_pending", truth.pending()},
      {"units_poisoned", truth.units_poisoned()},
      {"items_missing", truth.items_missing()},
      {"lies", truth.lies()},
      {"lies_rejected", truth.lies_rejected()},
      {"honest_rejected", truth.honest_rejected()},
      {"convictions", truth.convictions()},
      {"honest_quarantined", truth.honest_quarantined()},
      {"broken_rules", truth.broken_rules()},
      {"liars", report.liars},
      {"wrong_share", f.wrong_share},
      {"jobs", report.jobs},
      {"jobs_unfinished", report.jobs_unfinished},
      {"drain_hours", report.drain_hours},
      {"live_units_max", report.live_units_max},
      {"messages_lost", report.messages_lost},
      {"messages_twice", report.messages_twice},
      {"sleeps", report.sleeps},
      {"crashes", report.crashes},
      {"events", report.events},
  };
  if (scenario.sly > 0) {
    out["sly_bound_share"] = f.sly_bound_share;
    out["sly_lies_until_caught"] = f.sly_lies;
    out["sly_bound_lies_until_caught"] = f.sly_bound_lies;
  }
  if (scenario.pairs > 0) {
    out["pair_lies_confirmed_each"] = f.pair_lies;
    out["pair_bound_lies_each"] = f.pair_bound_lies;
  }
  out["wall_s"] = wall_s;
  return out.dump();
}

std::string report_table(const Report& report, double wall_s) {
  const Options& options = report.options;
  const Scenario& scenario = options.scenario;
  const Truth& truth = report.truth;
  const Figures f = figures(report);
  std::string out;
  const auto line = [&out](const char* name, const char* format, auto... values) {
    char text[200];
    std::snprintf(text, sizeof text, format, values...);
    char row[300];
    std::snprintf(row, sizeof row, "  %-34s %s\n", name, text);
    out += row;
  };
  const auto count = [](int64_t value) { return static_cast<long long>(value); };
  char head[300];
  std::snprintf(head, sizeof head, "%s: %s\n%lld hosts, %.4g virtual hours, seed %llu\n",
                scenario.name.data(), scenario.summary.data(), count(options.hosts), options.hours,
                static_cast<unsigned long long>(options.seed));
  out += head;
  line("hosts there, on average", "%.0f", f.hosts_on);
  line("throughput", "%.1f TFLOP/s confirmed", f.flops_per_second / 1e12);
  line("units done / put aside / lost", "%lld / %lld / %lld", count(truth.units_done()),
       count(truth.units_poisoned()), count(truth.units_lost()));
  line("counted twice", "%lld", count(truth.counted_twice()));
  line("confirmed wrong", "%lld units, %lld results", count(truth.confirmed_wrong()),
       count(truth.paid_wrong()));
  line("lies told / rejected", "%lld / %lld", count(truth.lies()), count(truth.lies_rejected()));
  line("hosts caught, times", "%lld, of them honest %lld", count(truth.convictions()),
       count(truth.honest_quarantined()));
  line("audits", "%.2f %% of device time (%.2f %% with the first %.4g hours)", 100 * f.audit_share,
       100 * f.audit_share_whole, options.warm_hours);
  const double all = report.steady.all();
  line("waste", "%.2f %% (%.2f %% done twice, %.2f %% left unfinished)", 100 * f.waste_share,
       all > 0 ? 100 * report.steady.repeat / all : 0,
       all > 0 ? 100 * report.steady.lost / all : 0);
  line("repair, half / 99 of 100", "%.0f s / %.0f s", truth.repairs().percentile(0.5),
       truth.repairs().percentile(0.99));
  line("repair after silence, likewise", "%.0f s / %.0f s", truth.silent_repairs().percentile(0.5),
       truth.silent_repairs().percentile(0.99));
  line("result to confirmation, likewise", "%.0f min / %.0f min",
       truth.confirmations().percentile(0.5) / 60, truth.confirmations().percentile(0.99) / 60);
  if (scenario.sly > 0) {
    line("wrong, of all units done", "%.4f %%; the bound is %.4f %%", 100 * f.wrong_share,
         100 * f.sly_bound_share);
    line("lies confirmed until caught", "%.1f; the bound is %.1f", f.sly_lies, f.sly_bound_lies);
  }
  if (scenario.pairs > 0) {
    line("lies confirmed for each of a pair", "%.4f; the bound is %.4f", f.pair_lies,
         f.pair_bound_lies);
  }
  line("jobs", "%lld, %lld unfinished; the last took %.1f h after the end", count(report.jobs),
       count(report.jobs_unfinished), report.drain_hours);
  line("events, units in memory at most", "%lld, %lld", count(report.events),
       count(report.live_units_max));
  line("wall time", "%.1f s", wall_s);
  return out;
}

}  // namespace shoal::sim
