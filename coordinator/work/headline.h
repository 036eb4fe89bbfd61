#pragma once
// Decides when FusionAI's headline holds ("50 RTX 3080 reach the throughput of 4 H100", arXiv
// 2309.01172) and by how much links break it. Pure; docs/SOURCES.md 1 is the derivation.
//
// Three questions, each with its own arithmetic:
//   peaks   the sums of dense FP16 peak rates. This is the headline, and all of it: it says nothing
//           of links or memory.
//   cut     the paper's way: every model is cut evenly over the cards, a block or a part of one on
//           each, one sequence after the other, by the short rule of two operations for each
//           parameter. What links do then is the larger of computing and sending at each stage.
//   plan    what plan_fleet() makes of the same cards: it replicates what fits one card, sends
//           larger micro-batches, and refuses what does not fit.

#include <vector>

#include "coordinator/work/fleet_plan.h"

namespace shoal {

struct HeadlineSide {
  std::vector<FleetPart> fleet;
  double flops = 0, memory_bytes = 0, price_usd = 0, watts = 0;
};

struct HeadlineRow {
  const ModelShape* model = nullptr;
  FleetJob job = FleetJob::kForward;
  double bits_per_second = 0;

  // The cut. For a sequence (forward, train) or a decoding step of kHeadlineStreams (batch).
  int64_t stages = 0;
  double boundary_bytes = 0;      // That a stage sends on; in training twice, there and back.
  double compute_seconds = 0;     // Of a stage.
  double transfer_seconds = 0;    // Of a stage.
  double network_factor = 0;      // transfer / compute: above 1 the links bound it.
  double share = 0;               // Of what the rivals do when nothing binds them but their rates.
  double share_links_hidden = 0;  // Likewise, if transfers took no time.

  // Memory, in whole: weights, in training with the optimizer.
  double model_bytes = 0;
  bool fleet_holds = false, rivals_hold = false;

  // The plans; 0 where the model does not fit.
  double plan_tokens_per_second = 0, rival_tokens_per_second = 0;
  int64_t plan_stages = 0;  // Of the longest pipeline.
  FleetBound plan_bound = FleetBound::kCompute;
};

struct Headline {
  HeadlineSide fleet;
  std::vector<HeadlineSide> rivals;  // The first is the one of the rows.
  std::vector<HeadlineRow> rows;
};

constexpr int64_t kHeadlineStreams = 64;

// REQUIRES: the fleet is of one kind of card, and so are the rivals.
Headline headline(const std::vector<FleetPart>& fleet,
                  const std::vector<std::vector<FleetPart>>& rivals,
                  const std::vector<const ModelShape*>& models,
                  const std::vector<double>& bits_per_second, const FleetFactors& factors);

// The paper's: 50 RTX 3080 against 4 H100 (PCIe, then SXM), Bert-Large, GPT-3 with 24 layers and
// whole, Llama-70B, links of 100 Mb/s, 1 Gb/s and 10 Gb/s.
Headline headline();

}  // namespace shoal
