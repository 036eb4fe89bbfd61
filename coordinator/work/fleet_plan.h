#pragma once
// Decides how a fleet of cards would run a model over given links, and predicts how fast, how
// costly and bound by what: for people who ask before they buy or invite. Pure arithmetic on
// vendors' figures (hardware.h) and models' shapes (model_shapes.h): nothing here was measured, and
// a plan says so.
//
// The model of time (docs/SOURCES.md 2). A stage is a contiguous range of blocks on one
// card.
//   compute   max(operations / (l_c x peak), bytes / (l_m x bandwidth)) + fixed, for each
//             micro-batch; bytes are the stage's weights, and in generation its cache
//   transfer  bytes at the cut / link rate; every host has the rate in both directions at once, and
//             hosts reach each other directly. Training sends activations one way and their
//             gradients the other, so an inner host sends twice as much
//   rate      a pipeline in its stride is as fast as its slowest stage: max(compute, transfer)
//   where
//             the one hides the other, else their sum
//   delay     what a sequence, a token or an update waits: every stage's compute and transfer, and
//             half a round trip for each hop
// Generation is a closed loop: a sequence's next token starts when its last one is back. So delay
// bounds the rate, unless enough micro-batches are in flight, which cost cache memory.
// Training adds the pipeline's filling at each update, and the replicas' exchange of gradients.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "coordinator/work/hardware.h"
#include "coordinator/work/model_shapes.h"
#include "coordinator/work/reason.h"

namespace shoal {

struct FleetPart {
  const Card* card = nullptr;
  int64_t count = 0;
};

struct FleetLink {
  double bits_per_second = 1e9;
  double rtt_seconds = 0.02;
};
// Cards in one server (PCIe 4.0 x16, 32 GB/s each way): what the data centre's side is given.
constexpr FleetLink kServerLink{256e9, 10e-6};

enum class FleetJob {
  kForward,  // Whole sequences once, with every token's logits: scores, embeddings.
  kTrain,    // Forward, backward, and an update by Adam in mixed precision.
  kBatch,    // Prompts read and texts generated, many at once; nobody waits.
};

// How much of a card's stated rates is reached, and what every step costs besides. Assumed, not
// measured: 0.5 is docs/SOURCES.md 1's 30 of 59.5 TFLOPS.
struct FleetFactors {
  double compute = 0.5;           // l_c
  double memory = 0.7;            // l_m
  double fixed_seconds = 0.5e-3;  // A step on a stage: our goal for a hop.
};

enum class GradientSync {
  kDense,   // After each update, FP16, around a ring.
  kSparse,  // Every 30 updates, 28 MB for a thousand million parameters (docs/SOURCES.md 2).
};

struct FleetRequest {
  const ModelShape* model = nullptr;
  std::vector<FleetPart> fleet;
  FleetLink link;
  FleetJob job = FleetJob::kForward;
  int64_t sequence = 0;                // Forward, train; 0: the model's own, at most 4096.
  int64_t prompt = 512, output = 256;  // Batch: tokens of each sequence.
  int64_t update_tokens = 1 << 20;     // Train: between two updates, over all replicas.
  double weight_bytes = kHalfBytes;    // Of a parameter in memory; training keeps 16 (Adam, mixed).
  double boundary_bytes = kHalfBytes;  // Of a value at a cut.
  bool int8 = false;                   // Compute at the card's int8 rate; not for training.
  bool overlap = true;                 // Transfers run while the next micro-batch computes.
  GradientSync sync = GradientSync::kDense;
  FleetFactors factors;
  double usd_per_kwh = 0.30;
  double years = 3;  // In which the cards' price is written off, at full use.
};

enum class FleetBound {
  kCompute,
  kMemoryRate,
  kFixed,
  kLinkRate,
  kLinkDelay,    // Texts wait for their own last token, on the way for most of the time,
  kCacheMemory,  // or at other stages: more of them would keep all busy, but have no room.
  kFilling,
  kSync,
};

// "compute", "memory bandwidth", ...: for people and JSON.
std::string_view fleet_bound_name(FleetBound bound);
std::string_view fleet_job_name(FleetJob job);

struct FleetStage {
  const Card* card = nullptr;
  int64_t first_block = 0, blocks = 0;
  bool embedding = false, head = false;
  double compute_seconds = 0, transfer_seconds = 0;  // For a micro-batch.
  double memory_bytes = 0;
};

struct FleetPipeline {
  int64_t replicas = 0;  // So many like this.
  std::vector<FleetStage> stages;
  int64_t micro_batch = 0;       // Sequences.
  int64_t in_flight = 0;         // Micro-batches.
  bool recompute = false;        // Training keeps only each block's input, and computes again.
  double tokens_per_second = 0;  // Of one replica; in training before filling and exchange.
  double delay_seconds = 0;      // Of a micro-batch through the pipeline; in generation a token's.
  double filling_seconds = 0;    // Training: at each update.
  FleetBound bound = FleetBound::kCompute;
};

struct FleetPlan {
  std::vector<FleetPipeline> pipelines;
  std::vector<FleetPart> left_out;
  int64_t cards_used = 0;
  double tokens_per_second = 0;  // Read (forward, train) or generated (batch), by the whole fleet.
  double delay_seconds = 0;      // A sequence (forward), a token (batch), an update (train).
  double sync_seconds = 0;       // Training: exchange at each update, on average.
  FleetBound bound = FleetBound::kCompute;
  double model_bytes = 0;  // What must be in memory once: weights, in training the optimizer too.
  double peak_flops = 0;   // Of the cards used, in the arithmetic asked for.
  double utilization = 0;  // Operations done / peak.
  double price_usd = 0, watts = 0;  // Of the cards used, at full board power.
  double joules_per_token = 0;
  double energy_usd_per_million = 0, cards_usd_per_million = 0;  // A million tokens.
  std::vector<PlanReason> why, why_not_split, what_would_help;
};

// The fastest plan found; of plans within a tenth of it, the one with the fewest stages, as what
// fits one card is not split without need. kInvalid when the request makes no sense, kUnavailable
// when the model does not fit the fleet, saying what is missing.
Result<FleetPlan> plan_fleet(const FleetRequest& request);

// "50xRTX3080,4xH100-PCIe"; a name alone is one card.
Result<std::vector<FleetPart>> read_fleet(std::string_view text);
// "1Gbps" or "100Mbps,rtt=20ms".
Result<FleetLink> read_link(std::string_view text);
Result<FleetJob> read_job(std::string_view text);

// What the fleet has in all.
double fleet_flops(const std::vector<FleetPart>& fleet);
double fleet_memory(const std::vector<FleetPart>& fleet);
double fleet_price(const std::vector<FleetPart>& fleet);
double fleet_watts(const std::vector<FleetPart>& fleet);

// The sequence that a request means.
int64_t fleet_sequence(const FleetRequest& request);
// What the model needs in memory at least, wherever it is.
double fleet_model_bytes(const FleetRequest& request);

}  // namespace shoal
