#include "coordinator/sim/scenario.h"

namespace shoal::sim {

std::span<const Scenario> scenarios() {
  static const Scenario kScenarios[] = {
      {.name = "home",
       .summary =
           "Home computers all over the world: evenings and idle hours, sleep, some crashes"},
      {.name = "region",
       .summary = "The same in one time zone: most are there at the same hours",
       .day_swing = 0.9},
      {.name = "flash-crowd",
       .summary = "Nine of ten hosts are new and come within half an hour",
       .late_share = 0.9,
       .experienced = 0.9},
      {.name = "outage",
       .summary = "The coordinator is away three times for an hour",
       .outages = 3,
       .outage_hours = 1},
      {.name = "liars",
       .summary =
           "A fifth of the hosts lies on every unit from some point on, half with false serials",
       .experienced = 0.5,
       .liars = 0.2},
      {.name = "sly",
       .summary = "A tenth of the hosts lies on 5 % of its units",
       .experienced = 0.5,
       .sly = 0.1},
      {.name = "careful",
       .summary =
           "A fifth lies on all from some point on, but never on a copy made to check another",
       .experienced = 0.5,
       .careful = 0.2},
      {.name = "pairs",
       .summary =
           "A tenth of the hosts lies in pairs that back each other, also under leases given back",
       .experienced = 0.5,
       .pairs = 0.1},
  };
  return kScenarios;
}

Result<Scenario> find_scenario(std::string_view name) {
  std::string names;
  for (const Scenario& scenario : scenarios()) {
    if (scenario.name == name) return scenario;
    names += names.empty() ? "" : ", ";
    names += scenario.name;
  }
  return Error{ErrorCode::kNotFound,
               "there is no scenario \"" + std::string(name) + "\"; there are " + names};
}

}  // namespace shoal::sim
