#include "coordinator/work/fleet_plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "coordinator/work/figures.h"

namespace shoal {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int64_t kSequenceUsualMax = 4096;
constexpr int64_t kTokensMax = int64_t{1} << 24;
constexpr int64_t kCardsMax = 100'000;
constexpr int64_t kMicroBatchMax = 1024;
constexpr int64_t kInFlightMax = 4096;
// Adam in mixed precision: FP16 weights and gradients, FP32 weights and two moments.
constexpr double kTrainBytesPerParameter = 16;
// What a block's backward pass needs of its forward pass, for each value of a hidden row, without
// the attention's square matrix: Korthikanti et al. 2022 (arXiv 2205.05198) [R].
constexpr double kActivationBytesPerValue = 34;
constexpr double kLogitRowsMax = 512;  // Logits are made in pieces of so many rows.
// Sparse exchange: docs/SOURCES.md 2 (28 MB for 1e9 parameters, every 30 updates).
constexpr double kSparseBytesPerParameter = 28e6 / 1e9;
constexpr double kSparseEvery = 30;
constexpr double kSplitGainMin = 1.1;   // More stages only for a tenth more (docs/SOURCES.md 2).
constexpr double kHelpMin = 1.1;        // What is said to help gives at least so much.
constexpr double kSettingSlack = 0.97;  // Of settings that are nearly as fast, the least delay.

// ---- What a micro-batch asks for.

struct Setting {
  int64_t batch = 1;      // Sequences.
  int64_t in_flight = 1;  // Micro-batches: generation; training.
  bool recompute = false;
};

struct Load {
  double block_flops = 0, head_flops = 0;
  double weight_passes = 1;      // How often a micro-batch reads the weights.
  double weight_read_bytes = 0;  // Of a parameter.
  double weight_kept_bytes = 0;  // Likewise, in memory.
  double block_read_bytes = 0;   // Besides weights: the cache.
  double block_kept_bytes = 0;   // Besides weights: caches, activations.
  double stage_kept_bytes = 0;   // Once a stage.
  double head_kept_bytes = 0;
  double cut_bytes = 0;  // One way.
  double tokens = 0;     // That a micro-batch gets done.
};

double as_double(int64_t count) { return static_cast<double>(count); }

Load load_of(const FleetRequest& request, const Setting& setting) {
  const ModelShape& model = *request.model;
  const double sequences = as_double(setting.batch);
  const double width = as_double(model.width);
  Load load;
  load.weight_read_bytes = load.weight_kept_bytes = request.weight_bytes;
  double rows = 0;
  if (request.job == FleetJob::kBatch) {
    // One decoding step of every sequence, and the part of the prompts that comes with it when
    // sequences that end make room for new ones.
    const double prompt_rows = sequences * as_double(request.prompt) / as_double(request.output);
    const double positions = as_double(request.prompt) + as_double(request.output) / 2;
    rows = sequences + prompt_rows;
    load.block_flops = sequences * block_flops(model, positions) +
                       prompt_rows * block_flops(model, mean_positions(model, request.prompt));
    load.head_flops = sequences * head_flops(model);
    load.block_read_bytes = sequences * positions * cache_bytes(model);
    load.block_kept_bytes = sequences * as_double(setting.in_flight) *
                            as_double(request.prompt + request.output) * cache_bytes(model);
    load.tokens = sequences;
  } else {
    const int64_t sequence = fleet_sequence(request);
    rows = load.tokens = sequences * as_double(sequence);
    load.block_flops = rows * block_flops(model, mean_positions(model, sequence));
    load.head_flops = rows * head_flops(model);
  }
  // A hidden row in, a row out, and the widest row between.
  load.stage_kept_bytes = rows * (2 * width + as_double(model.ffn_width)) * kHalfBytes;
  load.head_kept_bytes = std::min(rows, kLogitRowsMax) * as_double(model.vocabulary) * 4;
  load.cut_bytes = rows * boundary_bytes(model, request.boundary_bytes);
  if (request.job == FleetJob::kTrain) {
    load.block_flops *= setting.recompute ? 4 : 3;
    load.head_flops *= 3;
    load.weight_passes = setting.recompute ? 4 : 3;
    load.weight_read_bytes = kHalfBytes;
    load.weight_kept_bytes = kTrainBytesPerParameter;
    const double block_bytes = rows * width * kActivationBytesPerValue;
    load.block_kept_bytes = as_double(setting.in_flight) *
                            (setting.recompute ? rows * width * kHalfBytes : block_bytes);
    load.stage_kept_bytes += setting.recompute ? block_bytes : 0;
  }
  return load;
}

// ---- One stage.

struct StageShape {
  int64_t blocks = 0;
  bool embedding = false, head = false;
};

double kept_parameters(const ModelShape& model, const StageShape& stage) {
  double count = as_double(stage.blocks) * as_double(block_parameters(model));
  if (stage.embedding) count += as_double(embedding_parameters(model));
  if (stage.head) {
    count += as_double(head_parameters(model));
    // A tied head on another card than the embedding needs the matrix there too.
    if (model.tied_head && !stage.embedding) count += as_double(model.vocabulary * model.width);
  }
  return count;
}

double stage_kept_bytes(const FleetRequest& request, const Load& load, const StageShape& stage) {
  return kept_parameters(*request.model, stage) * load.weight_kept_bytes +
         as_double(stage.blocks) * load.block_kept_bytes + load.stage_kept_bytes +
         (stage.head ? load.head_kept_bytes : 0);
}

struct StageTime {
  double compute = 0, memory = 0, fixed = 0;
  double seconds() const { return std::max(compute, memory) + fixed; }
};

StageTime stage_time(const FleetRequest& request, const Load& load, const Card& card,
                     const StageShape& stage) {
  const ModelShape& model = *request.model;
  double flops = as_double(stage.blocks) * load.block_flops;
  double bytes = as_double(stage.blocks) *
                 (as_double(block_parameters(model)) * load.weight_read_bytes * load.weight_passes +
                  load.block_read_bytes);
  if (stage.head) {
    flops += load.head_flops;
    bytes +=
        as_double(model.vocabulary * model.width) * load.weight_read_bytes * load.weight_passes;
  }
  StageTime time;
  time.compute =
      flops / (request.factors.compute * (request.int8 ? card.int8_ops : card.fp16_flops));
  time.memory = bytes / (request.factors.memory * card.bytes_per_second);
  time.fixed = request.factors.fixed_seconds;
  return time;
}

// ---- One pipeline over a group of cards: how many blocks each takes.

// How many cards of each part of the fleet.
using Group = std::vector<int64_t>;

int64_t total(const Group& group) {
  int64_t sum = 0;
  for (const int64_t count : group) sum += count;
  return sum;
}

// A card's role in the search: its part of the fleet, and which end it holds.
struct Seat {
  size_t part = 0;
  bool embedding = false, head = false;
};

class PipelineSearch {
 public:
  PipelineSearch(const FleetRequest& request, const Group& group, const Setting& setting)
      : request_(request), load_(load_of(request, setting)), setting_(setting) {
    seat(group);
  }

  // Empty when the model does not fit the group.
  std::optional<FleetPipeline> solve() const {
    const int64_t layers = request_.model->layers;
    // The slowest stage takes as long as some number of blocks on some card: all are tried, by
    // halving. Each card then takes as many blocks as it can in that time.
    std::vector<double> times;
    for (const Seat& seat : kinds_) {
      for (int64_t blocks = 0; blocks <= layers && fits(seat, blocks); ++blocks) {
        times.push_back(seconds(seat, blocks));
      }
    }
    std::ranges::sort(times);
    const auto enough = [&](double limit) { return capacity(limit) >= layers; };
    const auto found = std::ranges::partition_point(times, [&](double t) { return !enough(t); });
    if (found == times.end()) return std::nullopt;
    // Nothing is gained by computing faster than the links send: fewer stages do as well.
    const double sending =
        counts_.size() == 1 || !request_.overlap ? 0 : sends_max() * cut_seconds();
    return built(std::max(*found, sending));
  }

 private:
  void seat(const Group& group) {
    // The card with the most memory holds the head, which is the larger end, the next one the
    // embedding. Blocks are all alike, so nothing else depends on the order.
    Group left = group;
    const auto take = [&] {
      size_t best = left.size();
      for (size_t part = 0; part < left.size(); ++part) {
        if (left[part] == 0) continue;
        if (best == left.size() || card(part).memory_bytes > card(best).memory_bytes) best = part;
      }
      left[best] -= 1;
      return best;
    };
    if (total(group) == 1) {
      kinds_.push_back({take(), true, true});
      counts_.push_back(1);
      return;
    }
    kinds_.push_back({take(), false, true});
    counts_.push_back(1);
    kinds_.push_back({take(), true, false});
    counts_.push_back(1);
    for (size_t part = 0; part < left.size(); ++part) {
      if (left[part] == 0) continue;
      kinds_.push_back({part, false, false});
      counts_.push_back(left[part]);
    }
  }

  double cut_seconds() const { return 8 * load_.cut_bytes / request_.link.bits_per_second; }
  // By a stage that is no end; of two stages, both are ends.
  int sends_max() const { return request_.job == FleetJob::kTrain && (counts_.size() > 2) ? 2 : 1; }

  const Card& card(size_t part) const { return *request_.fleet[part].card; }
  double seconds(const Seat& seat, int64_t blocks) const {
    return stage_time(request_, load_, card(seat.part), {blocks, seat.embedding, seat.head})
        .seconds();
  }
  bool fits(const Seat& seat, int64_t blocks) const {
    return stage_kept_bytes(request_, load_, {blocks, seat.embedding, seat.head}) <=
           card(seat.part).memory_bytes;
  }

  // The most blocks that a card takes within the time; -1 when it cannot even hold its end.
  int64_t most(const Seat& seat, double limit) const {
    const auto can = [&](int64_t blocks) {
      return fits(seat, blocks) && seconds(seat, blocks) <= limit;
    };
    if (!can(0)) return seat.embedding || seat.head ? -1 : 0;
    int64_t low = 0, high = request_.model->layers;
    while (low < high) {
      const int64_t middle = (low + high + 1) / 2;
      if (can(middle)) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  int64_t capacity(double limit) const {
    int64_t sum = 0;
    for (size_t kind = 0; kind < kinds_.size(); ++kind) {
      const int64_t blocks = most(kinds_[kind], limit);
      if (blocks < 0) return -1;
      sum += blocks * counts_[kind];
    }
    return sum;
  }

  FleetPipeline built(double limit) const {
    // Whoever can take most comes first, so the weakest cards are left without blocks, and out.
    struct Card_ {
      size_t kind;
      int64_t most;
    };
    std::vector<Card_> cards;
    for (size_t kind = 0; kind < kinds_.size(); ++kind) {
      for (int64_t i = 0; i < counts_[kind]; ++i)
        cards.push_back({kind, most(kinds_[kind], limit)});
    }
    std::vector<int64_t> taken(cards.size());
    std::vector<size_t> order(cards.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    // The ends are used anyway: they are filled first.
    std::ranges::stable_sort(order, [&](size_t a, size_t b) {
      const Seat &left = kinds_[cards[a].kind], &right = kinds_[cards[b].kind];
      const bool left_end = left.embedding || left.head, right_end = right.embedding || right.head;
      if (left_end != right_end) return left_end;
      return cards[a].most > cards[b].most;
    });
    int64_t rest = request_.model->layers;
    for (const size_t i : order) {
      taken[i] = std::min(rest, cards[i].most);
      rest -= taken[i];
    }

    FleetPipeline pipeline;
    pipeline.micro_batch = setting_.batch;
    pipeline.in_flight = setting_.in_flight;
    pipeline.recompute = setting_.recompute;
    const auto add = [&](size_t i) {
      const Seat& seat = kinds_[cards[i].kind];
      const StageShape shape{taken[i], seat.embedding, seat.head};
      FleetStage stage;
      stage.card = &card(seat.part);
      stage.blocks = taken[i];
      stage.embedding = seat.embedding;
      stage.head = seat.head;
      stage.compute_seconds = stage_time(request_, load_, *stage.card, shape).seconds();
      stage.memory_bytes = stage_kept_bytes(request_, load_, shape);
      pipeline.stages.push_back(stage);
    };
    const auto holds = [&](size_t i, bool embedding, bool head) {
      const Seat& seat = kinds_[cards[i].kind];
      return seat.embedding == embedding && seat.head == head;
    };
    for (size_t i = 0; i < cards.size(); ++i) {
      if (holds(i, true, true) || holds(i, true, false)) add(i);
    }
    for (size_t i = 0; i < cards.size(); ++i) {
      if (holds(i, false, false) && taken[i] > 0) add(i);
    }
    for (size_t i = 0; i < cards.size(); ++i) {
      if (holds(i, false, true)) add(i);
    }
    int64_t next = 0;
    for (FleetStage& stage : pipeline.stages) {
      stage.first_block = next;
      next += stage.blocks;
    }
    return timed(std::move(pipeline));
  }

  FleetPipeline timed(FleetPipeline pipeline) const {
    const size_t count = pipeline.stages.size();
    const bool train = request_.job == FleetJob::kTrain;
    const double cut = count == 1 ? 0 : cut_seconds();
    double slowest = 0, computing = 0;
    const FleetStage* slow = nullptr;
    for (size_t i = 0; i < count; ++i) {
      FleetStage& stage = pipeline.stages[i];
      const int sends = (i + 1 < count ? 1 : 0) + (train && i > 0 ? 1 : 0);
      stage.transfer_seconds = sends * cut;
      computing += stage.compute_seconds;
      const double seconds = request_.overlap
                                 ? std::max(stage.compute_seconds, stage.transfer_seconds)
                                 : stage.compute_seconds + stage.transfer_seconds;
      if (slow == nullptr || seconds > slowest) {
        slowest = seconds;
        slow = &stage;
      }
    }
    const double hops = as_double(static_cast<int64_t>(count) - 1);
    const double hop = cut + request_.link.rtt_seconds / 2;
    pipeline.delay_seconds = computing + hops * hop;
    if (slow->transfer_seconds > slow->compute_seconds) {
      pipeline.bound = FleetBound::kLinkRate;
    } else {
      const StageTime time =
          stage_time(request_, load_, *slow->card, {slow->blocks, slow->embedding, slow->head});
      pipeline.bound = time.fixed > std::max(time.compute, time.memory) ? FleetBound::kFixed
                       : time.memory > time.compute                     ? FleetBound::kMemoryRate
                                                                        : FleetBound::kCompute;
    }
    double seconds = slowest;  // For a micro-batch.
    if (request_.job == FleetJob::kBatch) {
      // The drawn token goes back to the first stage.
      if (count > 1) pipeline.delay_seconds += request_.link.rtt_seconds / 2;
      const double turn = pipeline.delay_seconds / as_double(setting_.in_flight);
      if (count > 1 && turn > seconds) {
        seconds = turn;
        pipeline.bound = pipeline.delay_seconds > 2 * computing ? FleetBound::kLinkDelay
                                                                : FleetBound::kCacheMemory;
      }
    }
    // Until the last stage has its first micro-batch, and the first its last gradient.
    if (train) pipeline.filling_seconds = hops * slowest + 2 * hops * hop;
    pipeline.tokens_per_second = load_.tokens / seconds;
    return pipeline;
  }

  const FleetRequest& request_;
  Load load_;
  Setting setting_;
  std::vector<Seat> kinds_;
  std::vector<int64_t> counts_;
};

// ---- The best pipeline of a group: how large its micro-batches are, and how many in flight.

double update_seconds(const FleetRequest& request, double tokens_per_second, double filling,
                      double sync) {
  return as_double(request.update_tokens) / tokens_per_second + filling + sync;
}

// What a pipeline is worth when `replicas` are like it.
double worth(const FleetRequest& request, const FleetPipeline& pipeline, int64_t replicas) {
  if (request.job != FleetJob::kTrain) return pipeline.tokens_per_second;
  const double all = pipeline.tokens_per_second * as_double(replicas);
  return as_double(request.update_tokens) /
         update_seconds(request, all, pipeline.filling_seconds, 0) / as_double(replicas);
}

std::optional<FleetPipeline> best_pipeline(const FleetRequest& request, const Group& group,
                                           int64_t replicas) {
  std::vector<FleetPipeline> found;
  const auto attempt = [&](const Setting& setting) {
    std::optional<FleetPipeline> pipeline = PipelineSearch(request, group, setting).solve();
    if (pipeline) found.push_back(*std::move(pipeline));
    return pipeline.has_value();
  };
  const int64_t cards = total(group);
  const int64_t sequence = fleet_sequence(request);
  for (int64_t batch = 1; batch <= kMicroBatchMax; batch *= 2) {
    bool fits = false;
    switch (request.job) {
      case FleetJob::kForward: fits = attempt({batch, 1, false}); break;
      case FleetJob::kTrain:
        if (batch > 1 && batch * sequence * replicas > request.update_tokens) break;
        for (const bool recompute : {false, true}) {
          const int64_t in_flight =
              std::clamp<int64_t>(request.update_tokens / (batch * sequence * replicas), 1,
                                  std::min(cards, request.model->layers + 2));
          fits = attempt({batch, in_flight, recompute}) || fits;
        }
        break;
      case FleetJob::kBatch:
        for (int64_t in_flight = 1; in_flight <= kInFlightMax;
             in_flight += std::max<int64_t>(1, in_flight / 4)) {
          if (!attempt({batch, in_flight, false})) break;
          fits = true;
          const FleetBound bound = found.back().bound;
          if (bound != FleetBound::kLinkDelay && bound != FleetBound::kCacheMemory) break;
        }
        break;
    }
    if (!fits) break;
  }
  if (found.empty()) return std::nullopt;
  double best = 0;
  for (const FleetPipeline& pipeline : found) {
    best = std::max(best, worth(request, pipeline, replicas));
  }
  const FleetPipeline* chosen = nullptr;
  for (const FleetPipeline& pipeline : found) {
    if (worth(request, pipeline, replicas) < kSettingSlack * best) continue;
    if (chosen == nullptr || pipeline.delay_seconds < chosen->delay_seconds) chosen = &pipeline;
  }
  return *chosen;
}

// ---- The fleet: which cards form pipelines together.

struct Deal {
  Group group;
  int64_t replicas;
};

// Deals the cards of a group to so many pipelines, each as many of each part as the others, but for
// what does not divide.
std::vector<Deal> deal(const Group& group, int64_t pipelines) {
  std::map<Group, int64_t> dealt;
  std::vector<int64_t> offsets;
  int64_t offset = 0;
  for (const int64_t count : group) {
    offsets.push_back(offset);
    offset = (offset + count % pipelines) % pipelines;
  }
  for (int64_t pipeline = 0; pipeline < pipelines; ++pipeline) {
    Group one;
    for (size_t part = 0; part < group.size(); ++part) {
      const int64_t place = (pipeline - offsets[part] + pipelines) % pipelines;
      one.push_back(group[part] / pipelines + (place < group[part] % pipelines ? 1 : 0));
    }
    dealt[one] += 1;
  }
  std::vector<Deal> deals;
  for (const auto& [one, replicas] : dealt) deals.push_back({one, replicas});
  return deals;
}

struct Option {
  std::vector<FleetPipeline> pipelines;
  double tokens_per_second = 0, update_seconds = 0, sync_seconds = 0;
  size_t stages_max = 0;  // Of a pipeline.
};

double sync_seconds(const FleetRequest& request, const std::vector<FleetPipeline>& pipelines,
                    int64_t replicas) {
  if (request.job != FleetJob::kTrain || replicas < 2) return 0;
  double parameters_max =
      0;  // Every host exchanges its own stage's; the largest one takes longest.
  for (const FleetPipeline& pipeline : pipelines) {
    for (const FleetStage& stage : pipeline.stages) {
      parameters_max =
          std::max(parameters_max,
                   kept_parameters(*request.model, {stage.blocks, stage.embedding, stage.head}));
    }
  }
  const double count = as_double(replicas);
  const double bytes = request.sync == GradientSync::kDense
                           ? parameters_max * kHalfBytes * 2 * (count - 1) / count
                           : parameters_max * kSparseBytesPerParameter / kSparseEvery;
  return 8 * bytes / request.link.bits_per_second;
}

class FleetSearch {
 public:
  explicit FleetSearch(const FleetRequest& request) : request_(request) {}

  // The options in which cards that hold the model work alone, and those in which all are cut.
  struct Found {
    std::optional<Option> best;
    std::optional<Option> split;  // The fastest in which every pipeline has several stages.
  };

  Found run() {
    const size_t parts = request_.fleet.size();
    Group all(parts), alone(parts), rest(parts);
    for (size_t part = 0; part < parts; ++part) {
      Group one(parts);
      one[part] = 1;
      all[part] = request_.fleet[part].count;
      (best(one, 1) ? alone : rest)[part] = all[part];
    }
    if (total(alone) > 0) {
      consider(alone, total(alone), Group(parts), 0);
      for (size_t part = 0; part < parts; ++part) {  // One card needs no exchange with others.
        if (alone[part] == 0) continue;
        Group one(parts);
        one[part] = 1;
        consider(one, 1, Group(parts), 0);
      }
      if (total(rest) > 0) {
        for (const int64_t pipelines : pipeline_counts(total(rest))) {
          consider(alone, total(alone), rest, pipelines);
        }
      }
    }
    for (const int64_t pipelines : pipeline_counts(total(all))) {
      consider(Group(parts), 0, all, pipelines);
    }
    if (parts > 1) consider_apart(all);
    return choose();
  }

 private:
  const std::optional<FleetPipeline>& best(const Group& group, int64_t replicas) {
    const auto key = std::pair(group, request_.job == FleetJob::kTrain ? replicas : 1);
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    return known_.emplace(key, best_pipeline(request_, group, replicas)).first->second;
  }

  // One count for each size of a pipeline.
  std::vector<int64_t> pipeline_counts(int64_t cards) const {
    std::vector<int64_t> counts;
    const int64_t size_max = std::min(cards, request_.model->layers + 2);
    for (int64_t size = 1; size <= size_max; ++size) {
      const int64_t pipelines = cards / size;
      if (counts.empty() || counts.back() != pipelines) counts.push_back(pipelines);
    }
    return counts;
  }

  void consider(const Group& alone, int64_t singles, const Group& together, int64_t pipelines) {
    std::vector<Deal> deals;
    for (size_t part = 0; part < alone.size(); ++part) {
      if (alone[part] == 0) continue;
      Group one(alone.size());
      one[part] = 1;
      deals.push_back({one, alone[part]});
    }
    if (pipelines > 0) {
      for (Deal& next : deal(together, pipelines)) deals.push_back(std::move(next));
    }
    consider(deals, singles + pipelines);
  }

  // Each kind of card in pipelines of its own, as many as are best for it: a strong kind need not
  // wait for a weak one.
  void consider_apart(const Group& all) {
    std::vector<Deal> deals;
    int64_t replicas = 0;
    for (size_t part = 0; part < all.size(); ++part) {
      Group own(all.size());
      own[part] = all[part];
      double most = 0;
      int64_t most_pipelines = 0;
      for (const int64_t pipelines : pipeline_counts(all[part])) {
        double rate = 0;
        for (const Deal& next : deal(own, pipelines)) {
          const std::optional<FleetPipeline>& pipeline = best(next.group, pipelines);
          rate += pipeline ? worth(request_, *pipeline, pipelines) * as_double(next.replicas) : 0;
        }
        if (rate <= most) continue;
        most = rate;
        most_pipelines = pipelines;
      }
      if (most_pipelines == 0) continue;
      replicas += most_pipelines;
      for (Deal& next : deal(own, most_pipelines)) deals.push_back(std::move(next));
    }
    if (!deals.empty()) consider(deals, replicas);
  }

  void consider(const std::vector<Deal>& deals, int64_t replicas) {
    Option option;
    if (request_.job == FleetJob::kTrain &&
        replicas * fleet_sequence(request_) >
            std::max(request_.update_tokens, fleet_sequence(request_))) {
      return;  // Not every replica would have a sequence.
    }
    for (const Deal& next : deals) {
      const std::optional<FleetPipeline>& pipeline = best(next.group, replicas);
      if (!pipeline) return;
      option.pipelines.push_back(*pipeline);
      option.pipelines.back().replicas = next.replicas;
      option.stages_max = std::max(option.stages_max, pipeline->stages.size());
    }
    double filling = 0, tokens = 0;
    for (const FleetPipeline& pipeline : option.pipelines) {
      tokens += pipeline.tokens_per_second * as_double(pipeline.replicas);
      filling = std::max(filling, pipeline.filling_seconds);
    }
    option.tokens_per_second = tokens;
    if (request_.job == FleetJob::kTrain) {
      option.sync_seconds = sync_seconds(request_, option.pipelines, replicas);
      option.update_seconds = update_seconds(request_, tokens, filling, option.sync_seconds);
      option.tokens_per_second = as_double(request_.update_tokens) / option.update_seconds;
    }
    options_.push_back(std::move(option));
  }

  Found choose() const {
    Found found;
    double most = 0;
    for (const Option& option : options_) most = std::max(most, option.tokens_per_second);
    for (const Option& option : options_) {
      const bool all_split = std::ranges::all_of(
          option.pipelines, [](const FleetPipeline& p) { return p.stages.size() > 1; });
      if (all_split && (!found.split || option.tokens_per_second > found.split->tokens_per_second))
        found.split = option;
      if (option.tokens_per_second * kSplitGainMin < most) continue;
      if (!found.best || option.stages_max < found.best->stages_max ||
          (option.stages_max == found.best->stages_max &&
           option.tokens_per_second > found.best->tokens_per_second)) {
        found.best = option;
      }
    }
    return found;
  }

  const FleetRequest& request_;
  std::map<std::pair<Group, int64_t>, std::optional<FleetPipeline>> known_;
  std::vector<Option> options_;
};

// ---- What a plan says about itself.

double flops_per_token(const FleetRequest& request) {
  const ModelShape& model = *request.model;
  if (request.job != FleetJob::kBatch) {
    return forward_flops(model, fleet_sequence(request)) *
           (request.job == FleetJob::kTrain ? 3 : 1);
  }
  const double layers = as_double(model.layers);
  return layers * block_flops(model, as_double(request.prompt) + as_double(request.output) / 2) +
         head_flops(model) +
         as_double(request.prompt) / as_double(request.output) * layers *
             block_flops(model, mean_positions(model, request.prompt));
}

FleetBound bound_of(const FleetRequest& request, const Option& option) {
  const FleetPipeline* largest = nullptr;
  double filling = 0;
  for (const FleetPipeline& pipeline : option.pipelines) {
    filling = std::max(filling, pipeline.filling_seconds);
    if (largest == nullptr || pipeline.tokens_per_second * as_double(pipeline.replicas) >
                                  largest->tokens_per_second * as_double(largest->replicas)) {
      largest = &pipeline;
    }
  }
  if (request.job == FleetJob::kTrain) {
    const double work = option.update_seconds - filling - option.sync_seconds;
    if (option.sync_seconds > std::max(work, filling)) return FleetBound::kSync;
    if (filling > work) return FleetBound::kFilling;
  }
  return largest->bound;
}

std::string card_memory_text(const Card& card) {
  return std::string(card.name) + " has " + unit_text(card.memory_bytes, "B");
}

const Card& largest_card(const FleetRequest& request) {
  return *std::ranges::max_element(request.fleet, {}, [](const FleetPart& part) {
            return part.card->memory_bytes;
          })->card;
}

void explain_why(const FleetRequest& request, FleetPlan& plan) {
  const std::string needs =
      std::string(request.model->name) + " needs " + unit_text(plan.model_bytes, "B") +
      (request.job == FleetJob::kTrain ? " for weights and optimizer" : " for its weights");
  for (const FleetPipeline& pipeline : plan.pipelines) {
    const FleetStage& first = pipeline.stages.front();
    if (pipeline.stages.size() == 1) {
      plan.why.push_back(
          {"fits_one", needs + ", and one " + card_memory_text(*first.card) + ": " +
                           count_text(pipeline.replicas, "card works", "cards work") +
                           " on the whole model" +
                           (pipeline.replicas > 1 ? ", each by itself" : "")});
      continue;
    }
    int64_t most = 0;
    const FleetStage* slow = &first;
    double slowest = 0;
    for (const FleetStage& stage : pipeline.stages) {
      most = std::max(most, stage.blocks);
      const double seconds = std::max(stage.compute_seconds, stage.transfer_seconds);
      if (seconds > slowest) {
        slowest = seconds;
        slow = &stage;
      }
    }
    const bool fits = plan.model_bytes <= largest_card(request).memory_bytes;
    plan.why.push_back(
        {"split",
         needs +
             (fits ? ", which a card holds, but in parts it has more room or less to exchange: "
                   : ", more than the largest card (one " +
                         card_memory_text(largest_card(request)) + "): ") +
             count_text(pipeline.replicas, "pipeline", "pipelines") + " of " +
             std::to_string(pipeline.stages.size()) + " stages with at most " +
             count_text(most, "block", "blocks")});
    plan.why.push_back(
        {"slowest_stage", "The slowest stage (on " + std::string(slow->card->name) +
                              ") computes for " + seconds_text(slow->compute_seconds) +
                              " and sends for " + seconds_text(slow->transfer_seconds) +
                              " for each micro-batch of " +
                              count_text(pipeline.micro_batch, "sequence", "sequences")});
  }
  std::string bound = "It is bound by " + std::string(fleet_bound_name(plan.bound));
  if (plan.bound == FleetBound::kSync) {
    bound += ": the replicas exchange gradients for " + seconds_text(plan.sync_seconds) + " of " +
             seconds_text(plan.delay_seconds) + " at each update";
  }
  plan.why.push_back({"bound", bound});
  for (const FleetPart& part : plan.left_out) {
    plan.why.push_back({"left_out", count_text(part.count, "card", "cards") + " (" +
                                        part.card->name +
                                        ") stay unused: they would add less than a tenth"});
  }
}

void explain_split(const FleetRequest& request, const FleetSearch::Found& found, FleetPlan& plan) {
  const bool split = std::ranges::any_of(
      plan.pipelines, [](const FleetPipeline& p) { return p.stages.size() > 1; });
  if (split) {
    const Card& card = largest_card(request);
    const auto least = static_cast<int64_t>(std::ceil(plan.model_bytes / card.memory_bytes));
    plan.why_not_split.push_back(
        {"fewer_stages",
         least > 1 ? "Fewer than " + std::to_string(least) +
                         " stages cannot hold the model, even on the largest cards"
                   : "A whole model on a card leaves no room for what this job keeps besides, or "
                     "is slower"});
    return;
  }
  if (!found.split) {
    plan.why_not_split.push_back({"one_card", "There is no second card to split it over"});
    return;
  }
  const double part = found.split->tokens_per_second / plan.tokens_per_second;
  size_t stages = found.split->stages_max;
  plan.why_not_split.push_back(
      {"split_slower",
       part < 1 ? "Cut over " + std::to_string(stages) + " cards at best, it would reach " +
                      percent_text(part) + " of this rate"
                : "Cut over " + std::to_string(stages) + " cards it would gain " +
                      percent_text(part - 1) + ", too little for the links and hosts that it needs",
       part});
}

void explain_help(const FleetRequest& request, FleetPlan& plan) {
  const auto attempt = [&](const char* code, const std::string& what, const FleetRequest& changed) {
    const FleetSearch::Found found = FleetSearch(changed).run();
    if (!found.best) return;
    const double factor = found.best->tokens_per_second / plan.tokens_per_second;
    if (factor < kHelpMin) return;
    plan.what_would_help.push_back(
        {code, what + ": " + figure_text(factor) + " times as fast", factor});
  };
  FleetRequest changed = request;
  changed.link.bits_per_second *= 10;
  attempt("link_rate", "Links of " + unit_text(changed.link.bits_per_second, "b/s"), changed);
  changed = request;
  changed.link.rtt_seconds /= 10;
  attempt("link_delay", "Round trips of " + seconds_text(changed.link.rtt_seconds), changed);
  if (request.boundary_bytes > kInt8BlockBytes) {
    changed = request;
    changed.boundary_bytes = kInt8BlockBytes;
    attempt("int8_cuts", "Activations sent as int8 in blocks of 32", changed);
  }
  if (request.job != FleetJob::kTrain && request.weight_bytes > kInt8BlockBytes) {
    changed = request;
    changed.weight_bytes = kInt8BlockBytes;
    attempt("int8_weights", "Weights kept as int8 in blocks of 32", changed);
  }
  if (request.job == FleetJob::kTrain && request.sync == GradientSync::kDense) {
    changed = request;
    changed.sync = GradientSync::kSparse;
    attempt("sparse_sync", "Sparse gradients every 30 updates, which is another training", changed);
  }
  changed = request;
  for (FleetPart& part : changed.fleet) part.count = std::min(2 * part.count, kCardsMax);
  attempt("more_cards", "Twice as many cards", changed);
  std::ranges::stable_sort(plan.what_would_help, std::greater(), &PlanReason::factor);
}

Result<void> check_request(const FleetRequest& request) {
  const auto invalid = [](std::string text) { return Error{ErrorCode::kInvalid, std::move(text)}; };
  SHOAL_CHECK(request.model != nullptr);
  if (request.fleet.empty()) return invalid("the fleet has no cards");
  for (const FleetPart& part : request.fleet) {
    SHOAL_CHECK(part.card != nullptr);
    if (part.count < 1 || part.count > kCardsMax) {
      return invalid("a fleet has 1 to " + std::to_string(kCardsMax) + " cards of a kind");
    }
  }
  const bool rate = std::isfinite(request.link.bits_per_second) && request.link.bits_per_second > 0;
  const bool delay = std::isfinite(request.link.rtt_seconds) && request.link.rtt_seconds >= 0;
  if (!rate || !delay) return invalid("a link has a positive rate and a round trip of 0 or more");
  const auto in_range = [](int64_t tokens) { return tokens >= 1 && tokens <= kTokensMax; };
  if (!in_range(fleet_sequence(request)) || !in_range(request.prompt) ||
      !in_range(request.output) || request.update_tokens < fleet_sequence(request)) {
    return invalid("a sequence, a prompt and a text have 1 to " + std::to_string(kTokensMax) +
                   " tokens, and an update at least a sequence");
  }
  const FleetFactors& factors = request.factors;
  if (!(factors.compute > 0 && factors.compute <= 1 && factors.memory > 0 && factors.memory <= 1 &&
        factors.fixed_seconds >= 0)) {
    return invalid("the parts of a card's rates that are reached are above 0 and at most 1");
  }
  if (!(request.years > 0)) return invalid("a card's price is written off in more than no time");
  if (request.job == FleetJob::kBatch && request.model->family == ModelFamily::kBert) {
    return invalid(std::string(request.model->name) +
                   " does not generate text: ask for --job forward");
  }
  if (request.job == FleetJob::kTrain && request.int8) {
    return invalid("training does not compute in int8");
  }
  return {};
}

Error does_not_fit(const FleetRequest& request) {
  const double needed = fleet_model_bytes(request);
  const double held = fleet_memory(request.fleet);
  const std::string what =
      std::string(request.model->name) + " needs " + unit_text(needed, "B") +
      (request.job == FleetJob::kTrain ? " for weights and optimizer" : " for its weights");
  if (needed > held) {
    return {ErrorCode::kUnavailable, what + ", but the cards have " + unit_text(held, "B") +
                                         " together: " + figure_text(needed / held) +
                                         " times as many such cards would do, or more"};
  }
  return {ErrorCode::kUnavailable,
          what + " and the cards have " + unit_text(held, "B") +
              " together, but with what the job keeps besides (caches, activations, both ends of "
              "the model) it cannot be cut so that every part fits its card"};
}

}  // namespace

std::string_view fleet_bound_name(FleetBound bound) {
  switch (bound) {
    case FleetBound::kCompute: return "compute";
    case FleetBound::kMemoryRate: return "memory bandwidth";
    case FleetBound::kFixed: return "the fixed cost of a step";
    case FleetBound::kLinkRate: return "link rate";
    case FleetBound::kLinkDelay: return "link delay";
    case FleetBound::kCacheMemory: return "memory for more texts at once";
    case FleetBound::kFilling: return "filling the pipeline";
    case FleetBound::kSync: return "the exchange of gradients";
  }
  SHOAL_UNREACHABLE();
}

std::string_view fleet_job_name(FleetJob job) {
  switch (job) {
    case FleetJob::kForward: return "forward";
    case FleetJob::kTrain: return "train";
    case FleetJob::kBatch: return "batch";
  }
  SHOAL_UNREACHABLE();
}

int64_t fleet_sequence(const FleetRequest& request) {
  return request.sequence != 0 ? request.sequence
                               : std::min(request.model->sequence, kSequenceUsualMax);
}

double fleet_model_bytes(const FleetRequest& request) {
  return as_double(parameters(*request.model)) *
         (request.job == FleetJob::kTrain ? kTrainBytesPerParameter : request.weight_bytes);
}

Result<FleetPlan> plan_fleet(const FleetRequest& request) {
  SHOAL_TRY(check_request(request));
  const FleetSearch::Found found = FleetSearch(request).run();
  if (!found.best) return does_not_fit(request);
  const Option& option = *found.best;

  FleetPlan plan;
  plan.pipelines = option.pipelines;
  plan.tokens_per_second = option.tokens_per_second;
  plan.sync_seconds = option.sync_seconds;
  plan.bound = bound_of(request, option);
  plan.model_bytes = fleet_model_bytes(request);
  std::map<const Card*, int64_t> used;
  for (const FleetPipeline& pipeline : plan.pipelines) {
    plan.delay_seconds = std::max(plan.delay_seconds, pipeline.delay_seconds);
    for (const FleetStage& stage : pipeline.stages) used[stage.card] += pipeline.replicas;
  }
  if (request.job == FleetJob::kTrain) plan.delay_seconds = option.update_seconds;
  std::vector<FleetPart> used_parts;
  for (const auto& [card, count] : used) {
    used_parts.push_back({card, count});
    plan.cards_used += count;
  }
  for (const FleetPart& part : request.fleet) {
    int64_t& count = used[part.card];
    const int64_t taken = std::min(count, part.count);
    count -= taken;
    if (taken < part.count) plan.left_out.push_back({part.card, part.count - taken});
  }
  for (const FleetPart& part : used_parts) {
    plan.peak_flops +=
        as_double(part.count) * (request.int8 ? part.card->int8_ops : part.card->fp16_flops);
  }
  plan.utilization = plan.tokens_per_second * flops_per_token(request) / plan.peak_flops;
  plan.price_usd = fleet_price(used_parts);
  plan.watts = fleet_watts(used_parts);
  plan.joules_per_token = plan.watts / plan.tokens_per_second;
  constexpr double kJoulesPerKwh = 3.6e6;
  constexpr double kSecondsPerYear = 365.25 * 24 * 3600;
  plan.energy_usd_per_million = 1e6 * plan.joules_per_token / kJoulesPerKwh * request.usd_per_kwh;
  plan.cards_usd_per_million =
      1e6 * plan.price_usd / (request.years * kSecondsPerYear * plan.tokens_per_second);
  explain_why(request, plan);
  explain_split(request, found, plan);
  explain_help(request, plan);
  return plan;
}

double fleet_flops(const std::vector<FleetPart>& fleet) {
  double sum = 0;
  for (const FleetPart& part : fleet) sum += as_double(part.count) * part.card->fp16_flops;
  return sum;
}

double fleet_memory(const std::vector<FleetPart>& fleet) {
  double sum = 0;
  for (const FleetPart& part : fleet) sum += as_double(part.count) * part.card->memory_bytes;
  return sum;
}

double fleet_price(const std::vector<FleetPart>& fleet) {
  double sum = 0;
  for (const FleetPart& part : fleet) sum += as_double(part.count) * part.card->price_usd;
  return sum;
}

double fleet_watts(const std::vector<FleetPart>& fleet) {
  double sum = 0;
  for (const FleetPart& part : fleet) sum += as_double(part.count) * part.card->watts;
  return sum;
}

// ---- Words into requests.

namespace {

std::vector<std::string_view> split_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.push_back(part);
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

// A number and the word after it; the word is what is not the number.
bool read_number(std::string_view text, double& number, std::string_view& unit) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number)) return false;
  unit = text.substr(static_cast<size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  return true;
}

struct Unit {
  std::string_view name;
  double factor;
};

bool apply_unit(std::string_view name, std::span<const Unit> units, double& number) {
  for (const Unit& unit : units) {
    if (unit.name != name) continue;
    number *= unit.factor;
    return true;
  }
  return false;
}

}  // namespace

Result<std::vector<FleetPart>> read_fleet(std::string_view text) {
  std::vector<FleetPart> fleet;
  for (const std::string_view part : split_commas(text)) {
    FleetPart next{nullptr, 1};
    std::string_view name = part;
    // A card's name has no 'x' after leading digits: that one means "times".
    const size_t digits = part.find_first_not_of("0123456789");
    if (digits != 0 && digits != std::string_view::npos &&
        (part[digits] == 'x' || part[digits] == 'X')) {
      const auto [end, error] = std::from_chars(part.data(), part.data() + digits, next.count);
      if (error != std::errc()) next.count = 0;
      name = part.substr(digits + 1);
    }
    if (next.count < 1 || next.count > kCardsMax) {
      return Error{ErrorCode::kInvalid, "fleet: \"" + std::string(part) + "\" asks for no cards, " +
                                            "or for more than " + std::to_string(kCardsMax)};
    }
    SHOAL_TRY_ASSIGN(card, find_card(name));
    next.card = card;
    const auto same = std::ranges::find(fleet, next.card, &FleetPart::card);
    if (same == fleet.end()) {
      fleet.push_back(next);
    } else {
      same->count = std::min(same->count + next.count, kCardsMax);
    }
  }
  return fleet;
}

Result<FleetLink> read_link(std::string_view text) {
  static constexpr Unit kRates[] = {{"bps", 1},    {"b/s", 1},    {"kbps", 1e3},
                                    {"kb/s", 1e3}, {"Mbps", 1e6}, {"Mb/s", 1e6},
                                    {"Gbps", 1e9}, {"Gb/s", 1e9}, {"Tbps", 1e12}};
  static constexpr Unit kTimes[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  const Error wrong{ErrorCode::kInvalid, "link: \"" + std::string(text) +
                                             "\" is not of the form 1Gbps or 100Mbps,rtt=20ms"};
  FleetLink link;
  const std::vector<std::string_view> parts = split_commas(text);
  std::string_view unit;
  double number = 0;
  if (!read_number(parts[0], number, unit) || !apply_unit(unit, kRates, number) || number <= 0) {
    return wrong;
  }
  link.bits_per_second = number;
  for (size_t i = 1; i < parts.size(); ++i) {
    if (!parts[i].starts_with("rtt=") || !read_number(parts[i].substr(4), number, unit) ||
        !apply_unit(unit, kTimes, number) || number < 0) {
      return wrong;
    }
    link.rtt_seconds = number;
  }
  return link;
}

Result<FleetJob> read_job(std::string_view text) {
  for (const FleetJob job : {FleetJob::kForward, FleetJob::kTrain, FleetJob::kBatch}) {
    if (fleet_job_name(job) == text) return job;
  }
  return Error{ErrorCode::kInvalid,
               "job: \"" + std::string(text) + "\" is none of forward, train, batch"};
}

}  // namespace shoal
