#pragma once
// Derives from a run the figures that its report and plots show, and the bounds that theory sets.

#include "coordinator/sim/world.h"

namespace shoal::sim {

struct Figures {
  double audit_share = 0, waste_share = 0;              // Of device time, after the warm hours.
  double audit_share_whole = 0, waste_share_whole = 0;  // From the first hour on.
  double flops_per_second = 0;                          // Confirmed, after the warm hours.
  double hosts_on = 0;                                  // On average, likewise.
  double wrong_share = 0;                               // Of units done, after the warm hours.

  // A liar of share q of his units, audited at rate a, has a lie confirmed if that one is not
  // audited (1 - a) and the next of his results that is, is honest (1 - q). So of all units at most
  // s q (1 - q) (1 - a) are wrong, s being the liars' share of the hosts: before anybody is caught.
  // One liar has (1 - q) (1 - a) / a lies confirmed until he is caught, on average: twice the rate
  // of audits halves that.
  double sly_bound_share = 0;
  double sly_bound_lies = 0;
  double sly_lies = 0;  // Measured: confirmed lies for each time that a liar was caught.

  // Two who back each other fail only if one is drawn to check the other: of E owners whose
  // devices could be drawn, f = 1 / (E - 1). Each audit that passes so confirms 1 / a results on
  // average, so that a liar has at most f / ((1 - f) a) lies confirmed until he is caught.
  double pair_bound_lies = 0;
  double pair_lies = 0;  // Measured: confirmed lies for each liar.
};

Figures figures(const Report& report);

}  // namespace shoal::sim
