#include "coordinator/sim/figures.h"

#include <algorithm>

namespace shoal::sim {
namespace {

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

Figures figures(const Report& report) {
  const Options& options = report.options;
  const Scenario& scenario = options.scenario;
  const Truth& truth = report.truth;
  Figures out;
  const auto waste = [](const Spent& spent) { return spent.repeat + spent.lost; };
  out.audit_share = share(report.steady.audit, report.steady.all());
  out.waste_share = share(waste(report.steady), report.steady.all());
  out.audit_share_whole = share(report.whole.audit, report.whole.all());
  out.waste_share_whole = share(waste(report.whole), report.whole.all());
  const double hours = options.hours - options.warm_hours;
  out.flops_per_second = hours > 0 ? report.flops_steady / (hours * 3600) : 0;
  int64_t samples = 0;
  for (const Sample& sample : report.samples) {
    if (sample.hour < options.warm_hours) continue;
    out.hosts_on += static_cast<double>(sample.hosts_on);
    ++samples;
  }
  out.hosts_on = share(out.hosts_on, static_cast<double>(samples));
  out.wrong_share = share(static_cast<double>(report.lies_confirmed_steady),
                          static_cast<double>(report.units_steady));

  const double a = options.rules.audit_floor;
  const double q = scenario.sly_lies;
  const double wrong = static_cast<double>(truth.confirmed_wrong());
  if (scenario.sly > 0) {
    out.sly_bound_share = scenario.sly * q * (1 - q) * (1 - a);
    out.sly_bound_lies = a > 0 ? (1 - q) * (1 - a) / a : 0;
    out.sly_lies = share(wrong, static_cast<double>(truth.convictions()));
  }
  if (scenario.pairs > 0 && a > 0) {
    const double owners = out.hosts_on * (1 - scenario.owners_shared / 2);
    const double f = 1 / std::max(owners - 1, 2.0);
    out.pair_bound_lies = f / ((1 - f) * a);
    out.pair_lies = share(wrong, static_cast<double>(report.liars));
  }
  return out;
}

}  // namespace shoal::sim
