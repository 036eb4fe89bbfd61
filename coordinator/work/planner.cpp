#include "coordinator/work/planner.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "base/check.h"
#include "coordinator/work/figures.h"

namespace shoal {
namespace {

constexpr double kUnmeasuredBytesPerSecond = 1e9;
constexpr double kUnmeasuredFlopsPerSecond = 1e9;
constexpr size_t kSubsetDevicesMax = 8;  // Up to here every subset of devices is tried.
// Parts of the whole model's time on the fastest device. The first decides only between plans of
// nearly equal time: for the evener one, and never for more stages, as a stage costs what evenness
// can win at most. Who asks for several stages wants the work shared: then evenness counts for more
// than the time of computing.
constexpr double kEvennessWeight = 0.05;
constexpr double kEvennessWeightAsked = 4.0;
constexpr double kTiePart = 1e-4;
constexpr int kLeavingRoundsMax = 4;   // Then only devices that stay are planned with.
constexpr double kSecondsMin = 1e-12;  // So that nothing is divided by no time at all.
// What a block of a prompt costs besides at each stage, the coordinator's own work for a step: so
// nothing is cut smaller for less.
constexpr double kBlockSeconds = 5e-4;
constexpr double kNever = std::numeric_limits<double>::infinity();

double rate_or(double measured, double cautious) { return measured > 0 ? measured : cautious; }

// What a range of fragments asks for.
struct RangeSum {
  double weights = 0, flops_per_row = 0;
  Bytes kept, workspace;

  void add(const FragmentCost& fragment, int64_t context, int64_t rows_max) {
    weights += static_cast<double>(fragment.weights.count);
    flops_per_row += static_cast<double>(fragment.flops_per_row.count);
    kept += fragment.weights + Bytes{fragment.state_per_position.count * context};
    workspace = std::max(workspace, Bytes{fragment.workspace_per_row.count * rows_max});
  }
  Bytes memory() const { return kept + workspace; }
};

RangeSum sum_of(std::span<const FragmentCost> fragments, int64_t context = 0,
                int64_t rows_max = 0) {
  RangeSum sum;
  for (const FragmentCost& fragment : fragments) sum.add(fragment, context, rows_max);
  return sum;
}

double compute_seconds(const RangeSum& range, const PlanDevice& device, int64_t rows) {
  const double weights =
      range.weights / rate_or(device.weight_bytes_per_second, kUnmeasuredBytesPerSecond);
  const double flops = range.flops_per_row * static_cast<double>(rows) /
                       rate_or(device.flops_per_second, kUnmeasuredFlopsPerSecond);
  const double compute = std::max(weights, flops) + std::max(device.fixed_seconds, 0.0);
  return std::max(compute, kSecondsMin) * (1 + std::max(device.sessions, 0));
}

double compute_seconds(std::span<const FragmentCost> fragments, const PlanDevice& device,
                       int64_t rows) {
  return compute_seconds(sum_of(fragments), device, rows);
}

// Rows come in unless the stage is the first, and go out unless it is the last; tokens weigh
// nothing.
double transfer_seconds(const PlanRequest& request, const PlanDevice& device, size_t first,
                        size_t last, int64_t rows) {
  if (device.link_bytes_per_second <= 0) return 0;
  const int ways = (first > 0 ? 1 : 0) + (last + 1 < request.fragments.size() ? 1 : 0);
  return static_cast<double>(rows * request.width * request.value_bytes) * ways /
         device.link_bytes_per_second;
}

// What a search makes small. For latency, evenness is that of the computing alone: the way to a
// host takes its time whatever the host does. For throughput the way is hidden, except its rate.
double stage_cost(const PlanRequest& request, const RangeSum& range, size_t first, size_t last,
                  const PlanDevice& device, double reference) {
  if (request.objective == PlanObjective::kThroughput) {
    return std::max(compute_seconds(range, device, request.streams),
                    transfer_seconds(request, device, first, last, request.streams));
  }
  const double weight = request.stages_min > 1 ? kEvennessWeightAsked : kEvennessWeight;
  const double compute = compute_seconds(range, device, 1);
  return std::max(device.hop_seconds, 0.0) + compute +
         transfer_seconds(request, device, first, last, 1) +
         weight * (reference + compute * compute / reference);
}

// One stage after the other takes their sum; many texts wait for the slowest. The small part of
// the other makes a search prefer, of equals, less work.
double combined(PlanObjective objective, double before, double stage) {
  if (objective == PlanObjective::kLatency) return before + stage;
  return std::max(before, stage) + kTiePart * std::min(before, stage);
}

// A device that may take a stage; several stand for one device when it may hold both ends.
struct Candidate {
  size_t device;
  Bytes memory;
};

// What the searches share: the cost of every range on every candidate.
class Costs {
 public:
  Costs(const PlanRequest& request, std::span<const PlanDevice> devices,
        const std::vector<Candidate>& candidates, double floor)
      : objective_(request.objective),
        count_(request.fragments.size()),
        table_(candidates.size() * count_ * count_, kNever) {
    double reference = kNever;  // The whole model on the fastest device.
    const RangeSum whole = sum_of(request.fragments);
    for (const Candidate& candidate : candidates) {
      reference = std::min(reference, compute_seconds(whole, devices[candidate.device], 1));
    }
    for (size_t c = 0; c < candidates.size(); ++c) {
      const PlanDevice& device = devices[candidates[c].device];
      for (size_t first = 0; first < count_; ++first) {
        if (!starts_stage(request, first)) continue;
        if (request.anchored && first == 0 && !device.trusted) continue;
        RangeSum range;
        for (size_t last = first; last < count_; ++last) {
          range.add(request.fragments[last], request.context, request.rows_max);
          if (range.memory() > candidates[c].memory) break;
          if (request.anchored && last + 1 == count_ && !device.trusted) break;
          if (!ends_stage(request, first, last)) continue;
          at(c, first, last) =
              std::max(floor, stage_cost(request, range, first, last, device, reference));
        }
      }
    }
  }

  double of(size_t candidate, size_t first, size_t last) const {
    return table_[(candidate * count_ + first) * count_ + last];
  }
  size_t fragments() const { return count_; }
  double with(double before, double stage) const { return combined(objective_, before, stage); }

 private:
  static bool starts_stage(const PlanRequest& request, size_t first) {
    return request.cuts.empty() || first == 0 ||
           std::ranges::binary_search(request.cuts, static_cast<int64_t>(first));
  }
  static bool ends_stage(const PlanRequest& request, size_t first, size_t last) {
    if (request.cuts.empty()) return true;
    const auto next = std::ranges::upper_bound(request.cuts, static_cast<int64_t>(first));
    const size_t end =
        next == request.cuts.end() ? request.fragments.size() : static_cast<size_t>(*next);
    return last + 1 == end;
  }
  double& at(size_t candidate, size_t first, size_t last) {
    return table_[(candidate * count_ + first) * count_ + last];
  }

  PlanObjective objective_;
  size_t count_;
  std::vector<double> table_;
};

struct Found {
  double cost = kNever;
  std::vector<PlanStage> stages;  // `device` is a candidate's place.
};

// A partial plan: a stage and the plan before it.
struct Node {
  int32_t before;  // -1: none.
  uint32_t candidate, first, last;
};

Found trace(const std::vector<Node>& nodes, int32_t end, double cost) {
  Found found{cost, {}};
  for (int32_t at = end; at >= 0; at = nodes[static_cast<size_t>(at)].before) {
    const Node& node = nodes[static_cast<size_t>(at)];
    found.stages.push_back({node.candidate, node.first, node.last});
  }
  std::ranges::reverse(found.stages);
  return found;
}

// Exact: the best plan for each set of candidates used and number of fragments covered.
Found search_subsets(const Costs& costs, size_t candidates, int64_t stages_min) {
  const size_t fragments = costs.fragments();
  const size_t width = fragments + 1;
  struct Best {
    double cost = kNever;
    int32_t node = -1;
  };
  std::vector<Best> best((size_t{1} << candidates) * width);
  std::vector<Node> nodes;
  best[0].cost = 0;
  double answer = kNever;
  int32_t answer_node = -1;
  for (size_t set = 0; set < (size_t{1} << candidates); ++set) {
    for (size_t done = 0; done < fragments; ++done) {
      const Best from = best[set * width + done];
      if (from.cost == kNever) continue;
      for (size_t c = 0; c < candidates; ++c) {
        if ((set >> c & 1) != 0) continue;
        for (size_t last = done; last < fragments; ++last) {
          const double cost = costs.with(from.cost, costs.of(c, done, last));
          Best& to = best[(set | size_t{1} << c) * width + last + 1];
          if (cost >= to.cost) continue;
          nodes.push_back({from.node, static_cast<uint32_t>(c), static_cast<uint32_t>(done),
                           static_cast<uint32_t>(last)});
          to = {cost, static_cast<int32_t>(nodes.size() - 1)};
        }
      }
    }
    const Best& whole = best[set * width + fragments];
    if (std::popcount(set) >= stages_min && whole.cost < answer) {
      answer = whole.cost;
      answer_node = whole.node;
    }
  }
  return trace(nodes, answer_node, answer);
}

// The best plan among those that use the candidates in the given order, each once or not at all.
Found search_order(const Costs& costs, std::span<const size_t> order, int64_t stages_min) {
  const size_t fragments = costs.fragments();
  const size_t width = fragments + 1;
  const auto levels =
      static_cast<size_t>(stages_min);  // Stages so far; the last level is "enough".
  struct Best {
    double cost = kNever;
    int32_t node = -1;
  };
  std::vector<Best> best((levels + 1) * width);
  std::vector<Node> nodes;
  best[0].cost = 0;
  for (const size_t c : order) {
    // From the end backwards, so that what is read does not use this candidate yet.
    for (size_t end = fragments; end >= 1; --end) {
      for (size_t first = 0; first < end; ++first) {
        const double stage = costs.of(c, first, end - 1);
        if (stage == kNever) continue;
        for (size_t level = 0; level <= levels; ++level) {
          const Best from = best[level * width + first];
          if (from.cost == kNever) continue;
          Best& to = best[std::min(level + 1, levels) * width + end];
          const double cost = costs.with(from.cost, stage);
          if (cost >= to.cost) continue;
          nodes.push_back({from.node, static_cast<uint32_t>(c), static_cast<uint32_t>(first),
                           static_cast<uint32_t>(end - 1)});
          to = {cost, static_cast<int32_t>(nodes.size() - 1)};
        }
      }
    }
  }
  const Best& whole = best[levels * width + fragments];
  return trace(nodes, whole.node, whole.cost);
}

// Several orders of the candidates; in an anchored session two trusted ones stand at the ends.
Found search_orders(const PlanRequest& request, std::span<const PlanDevice> devices,
                    const std::vector<Candidate>& candidates, const Costs& costs,
                    int64_t stages_min) {
  std::vector<size_t> by_speed(candidates.size());
  std::iota(by_speed.begin(), by_speed.end(), size_t{0});
  std::vector<size_t> by_memory = by_speed;
  std::ranges::stable_sort(by_speed, {}, [&](size_t c) {
    return stage_seconds(request.fragments, devices[candidates[c].device], 1);
  });
  std::ranges::stable_sort(by_memory, std::greater(),
                           [&](size_t c) { return candidates[c].memory; });
  Found found;
  for (std::vector<size_t> order : {by_speed, by_memory}) {
    for (const bool reversed : {false, true}) {
      if (reversed) std::ranges::reverse(order);
      if (request.anchored) {
        const auto trusted = [&](size_t c) { return devices[candidates[c].device].trusted; };
        const auto first = std::ranges::find_if(order, trusted);
        if (first != order.end()) std::rotate(order.begin(), first, first + 1);
        const auto second = std::find_if(order.begin() + 1, order.end(), trusted);
        if (second != order.end()) std::rotate(second, second + 1, order.end());
      }
      Found next = search_order(costs, order, stages_min);
      if (next.cost < found.cost) found = std::move(next);
    }
  }
  return found;
}

// The slowest stage's time, without what ties are broken by.
double plan_cost_of(const PlanRequest& request, std::span<const PlanDevice> devices,
                    const std::vector<Candidate>& candidates, const Found& found) {
  std::vector<PlanStage> stages = found.stages;
  for (PlanStage& stage : stages) stage.device = candidates[stage.device].device;
  return plan_cost(request, devices, stages);
}

Found search_over(const PlanRequest& request, std::span<const PlanDevice> devices,
                  const std::vector<Candidate>& candidates, int64_t stages_min, double floor) {
  const Costs costs(request, devices, candidates, floor);
  if (candidates.size() <= kSubsetDevicesMax)
    return search_subsets(costs, candidates.size(), stages_min);
  return search_orders(request, devices, candidates, costs, stages_min);
}

Found search(const PlanRequest& request, std::span<const PlanDevice> devices,
             const std::vector<Candidate>& candidates, int64_t stages_min) {
  Found found = search_over(request, devices, candidates, stages_min, 0);
  if (request.objective == PlanObjective::kLatency || found.cost == kNever) return found;
  // Below a floor all stages cost the same, and so fewer of them cost less.
  Found few = search_over(request, devices, candidates, stages_min,
                          plan_cost_of(request, devices, candidates, found) * kStageGainMin);
  return few.stages.size() < found.stages.size() && few.cost != kNever ? few : found;
}

std::span<const FragmentCost> range_of(const PlanRequest& request, const PlanStage& stage) {
  return request.fragments.subspan(
      static_cast<size_t>(stage.first_fragment),
      static_cast<size_t>(stage.last_fragment - stage.first_fragment + 1));
}

double pass_seconds(const PlanRequest& request, std::span<const PlanDevice> devices,
                    std::span<const PlanStage> stages, int64_t rows) {
  double seconds = 0;
  for (const PlanStage& stage : stages) seconds += plan_step_seconds(request, devices, stage, rows);
  return seconds;
}

// How long blocks of a prompt take, the stages' sums being made once.
class BlockTimes {
 public:
  BlockTimes(const PlanRequest& request, std::span<const PlanDevice> devices,
             std::span<const PlanStage> stages)
      : request_(request) {
    for (const PlanStage& stage : stages) {
      const auto same = std::ranges::find(stages, stage.device, &PlanStage::device);
      stages_.push_back({devices[stage.device], stage, sum_of(range_of(request, stage)),
                         static_cast<size_t>(same - stages.begin())});
    }
    busy_.resize(stages.size());
  }

  struct Seconds {
    double all = 0, slowest = 0;  // Of all stages, and of the device that takes longest.
  };
  Seconds of(int64_t rows) {
    Seconds seconds;
    std::ranges::fill(busy_, 0);
    for (const Stage& stage : stages_) {
      const double one =
          std::max(stage.device.hop_seconds, 0.0) + compute_seconds(stage.sum, stage.device, rows) +
          transfer_seconds(request_, stage.device, static_cast<size_t>(stage.range.first_fragment),
                           static_cast<size_t>(stage.range.last_fragment), rows);
      seconds.all += one;
      // A device with two stages does one after the other.
      busy_[stage.slot] += one;
      seconds.slowest = std::max(seconds.slowest, busy_[stage.slot]);
    }
    return seconds;
  }

 private:
  struct Stage {
    const PlanDevice& device;
    PlanStage range;
    RangeSum sum;
    size_t slot;  // The first stage of the same device.
  };
  const PlanRequest& request_;
  std::vector<Stage> stages_;
  std::vector<double> busy_;
};

std::string mebibytes(Bytes bytes) {
  return std::to_string((bytes.count + kMebibyte.count - 1) / kMebibyte.count) + " MiB";
}

Result<void> check_request(const PlanRequest& request) {
  const auto fragments = static_cast<int64_t>(request.fragments.size());
  if (fragments == 0) return Error{ErrorCode::kInvalid, "the model has no fragments"};
  if (request.stages_min > fragments) {
    return Error{ErrorCode::kInvalid, std::to_string(request.stages_min) +
                                          " stages were asked for, but the model has only " +
                                          std::to_string(fragments) + " fragments"};
  }
  int64_t before = 0;
  for (const int64_t cut : request.cuts) {
    if (cut <= before || cut >= fragments) {
      return Error{ErrorCode::kInvalid, "cut " + std::to_string(cut) +
                                            " is not a stage start: cuts ascend from 1 to " +
                                            std::to_string(fragments - 1)};
    }
    before = cut;
  }
  return {};
}

// Devices that could compute, and why they do not take part.
struct LeftOut {
  size_t denied = 0, leaving = 0;

  std::string text() const {
    std::string text;
    if (denied > 0) {
      text += "; " + std::to_string(denied) +
              (denied == 1 ? " more is ready, but its owner does not allow this class of work"
                           : " more are ready, but their owners do not allow this class of work");
    }
    if (leaving > 0) {
      text += "; " + std::to_string(leaving) +
              (leaving == 1 ? " more is ready, but its owner wants it back sooner"
                            : " more are ready, but their owners want them back sooner");
    }
    return text;
  }
};

// When no device is left: who might have been one.
std::string why_none(size_t devices, const LeftOut& left_out) {
  const size_t able = left_out.denied + left_out.leaving;
  if (able == 0) {
    return "none of the " + std::to_string(devices) + " devices has passed the exactness self-test";
  }
  const std::string owners =
      able == 1 ? "the owner of the one device that is ready "
                : "the owners of all " + std::to_string(able) + " devices that are ready ";
  const bool one = able == 1;
  if (left_out.leaving == 0)
    return owners + (one ? "does" : "do") + " not allow this class of work";
  if (left_out.denied == 0)
    return owners + (one ? "wants it" : "want them") + " back before the session would end";
  return owners + "do not allow this class of work, or want them back before the session would end";
}

// One sentence for the person who asked, naming the first thing that is in the way.
Error why_not(const PlanRequest& request, std::span<const PlanDevice> devices,
              const std::vector<Candidate>& candidates, int64_t stages, const LeftOut& left_out) {
  const auto unavailable = [&](std::string text) {
    if (!candidates.empty()) text += left_out.text();
    return Error{ErrorCode::kUnavailable, std::move(text)};
  };
  if (devices.empty())
    return unavailable("no device is ready: attach a host, or wait for its self-test");
  if (candidates.empty()) return unavailable(why_none(devices.size(), left_out));
  if (request.anchored && std::ranges::none_of(candidates, [&](const Candidate& c) {
        return devices[c.device].trusted;
      })) {
    return unavailable(
        "an anchored session needs a device of a trusted host, and none is ready: "
        "shoalctl host trust ID");
  }
  if (static_cast<size_t>(stages) > candidates.size()) {
    return unavailable(std::to_string(stages) + " stages were asked for, but only " +
                       std::to_string(candidates.size()) + " devices are ready");
  }
  Bytes together;
  Bytes largest;
  for (const Candidate& candidate : candidates) {
    together += candidate.memory;
    largest = std::max(largest, candidate.memory);
  }
  const Bytes whole = stage_memory(request.fragments, request.context, request.rows_max);
  if (whole > together) {
    return unavailable("the model needs " + mebibytes(whole) +
                       " for this session, but the ready devices have " + mebibytes(together) +
                       " free together");
  }
  for (size_t i = 0; i < request.fragments.size(); ++i) {
    const Bytes one =
        stage_memory(request.fragments.subspan(i, 1), request.context, request.rows_max);
    if (one > largest) {
      return unavailable("fragment " + std::to_string(i) + " of the model needs " + mebibytes(one) +
                         ", but no ready device has more than " + mebibytes(largest) + " free");
    }
  }
  return unavailable(
      request.anchored
          ? "no split puts the model's ends on trusted hosts within the devices' free memory"
          : "no split of the model fits the free memory of the " +
                std::to_string(candidates.size()) + " ready devices");
}

}  // namespace

Bytes stage_memory(std::span<const FragmentCost> fragments, int64_t context, int64_t rows_max) {
  return sum_of(fragments, context, rows_max).memory();
}

double stage_seconds(std::span<const FragmentCost> fragments, const PlanDevice& device,
                     int64_t rows) {
  return std::max(device.hop_seconds, 0.0) + compute_seconds(fragments, device, rows);
}

double plan_step_seconds(const PlanRequest& request, std::span<const PlanDevice> devices,
                         const PlanStage& stage, int64_t rows) {
  const PlanDevice& device = devices[stage.device];
  return stage_seconds(range_of(request, stage), device, rows) +
         transfer_seconds(request, device, static_cast<size_t>(stage.first_fragment),
                          static_cast<size_t>(stage.last_fragment), rows);
}

double plan_cost(const PlanRequest& request, std::span<const PlanDevice> devices,
                 std::span<const PlanStage> stages) {
  double reference = kNever;
  const RangeSum whole = sum_of(request.fragments);
  for (const PlanDevice& device : devices) {
    if (request.exact && !device.exact) continue;
    reference = std::min(reference, compute_seconds(whole, device, 1));
  }
  double cost = 0;
  for (const PlanStage& stage : stages) {
    const double one = stage_cost(
        request, sum_of(range_of(request, stage)), static_cast<size_t>(stage.first_fragment),
        static_cast<size_t>(stage.last_fragment), devices[stage.device], reference);
    cost = request.objective == PlanObjective::kThroughput ? std::max(cost, one) : cost + one;
  }
  return cost;
}

PrefillPlan plan_prefill(const PlanRequest& request, std::span<const PlanDevice> devices,
                         std::span<const PlanStage> stages) {
  if (request.prompt_rows <= 0) return {};
  BlockTimes times(request, devices, stages);
  PrefillPlan best;
  double least = kNever;
  for (int64_t rows = std::min(request.rows_max, request.prompt_rows); rows >= 1; --rows) {
    const int64_t blocks = (request.prompt_rows + rows - 1) / rows;
    const int64_t rest = request.prompt_rows - (blocks - 1) * rows;
    // The first block takes its way through all stages; the others leave the slowest one by one.
    const BlockTimes::Seconds block = times.of(rows);
    double seconds = block.all;
    if (blocks > 1) {
      seconds += static_cast<double>(blocks - 2) * block.slowest + times.of(rest).slowest;
    }
    const double with_steps =
        seconds + kBlockSeconds * static_cast<double>(blocks - 1 + std::ssize(stages));
    if (with_steps >= least) continue;
    least = with_steps;
    best = {rows, seconds};
  }
  return best;
}

double session_seconds(const PlanRequest& request, std::span<const PlanDevice> devices,
                       std::span<const PlanStage> stages) {
  const double tokens =
      static_cast<double>(request.tokens) * pass_seconds(request, devices, stages, 1);
  return (plan_prefill(request, devices, stages).seconds + tokens) * kTimeReserve;
}

namespace {

// How long a step of all streams keeps the busiest device: one that holds two stages does both.
double busiest_seconds(const PlanRequest& request, std::span<const PlanDevice> devices,
                       std::span<const PlanStage> stages) {
  PlanRequest many = request;
  many.objective = PlanObjective::kThroughput;
  double most = 0;
  for (const PlanStage& stage : stages) {
    double busy = 0;
    for (const PlanStage& other : stages) {
      if (other.device == stage.device) busy += plan_cost(many, devices, std::span(&other, 1));
    }
    most = std::max(most, busy);
  }
  return most;
}

// The best plan among the candidates.
Result<Plan> plan_over(const PlanRequest& request, std::span<const PlanDevice> devices,
                       std::vector<Candidate> candidates, const LeftOut& left_out) {
  const int64_t stages_min = request.cuts.empty() ? std::max<int64_t>(request.stages_min, 1)
                                                  : static_cast<int64_t>(request.cuts.size()) + 1;
  const auto last_fragment = static_cast<int64_t>(request.fragments.size()) - 1;

  Plan plan;
  if (stages_min == 1) {
    const Bytes whole = stage_memory(request.fragments, request.context, request.rows_max);
    double least = kNever;
    for (const Candidate& candidate : candidates) {
      const PlanDevice& device = devices[candidate.device];
      if (candidate.memory < whole || (request.anchored && !device.trusted)) continue;
      const double seconds = request.objective == PlanObjective::kThroughput
                                 ? compute_seconds(request.fragments, device, request.streams)
                                 : stage_seconds(request.fragments, device, 1);
      if (seconds >= least) continue;
      least = seconds;
      plan.stages = {{candidate.device, 0, last_fragment}};
    }
  }
  if (plan.stages.empty()) {
    Found found = search(request, devices, candidates, stages_min);
    if (found.cost == kNever && request.anchored) {
      // With one trusted device, it holds both ends, half of its memory for each.
      std::vector<Candidate> twins = candidates;
      for (size_t c = 0; c < candidates.size(); ++c) {
        if (!devices[twins[c].device].trusted) continue;
        twins[c].memory.count /= 2;
        twins.push_back(twins[c]);
      }
      found = search(request, devices, twins, stages_min);
      candidates = std::move(twins);
    }
    if (found.cost == kNever) return why_not(request, devices, candidates, stages_min, left_out);
    for (PlanStage& stage : found.stages) stage.device = candidates[stage.device].device;
    plan.stages = std::move(found.stages);
  }
  plan.seconds_per_token = pass_seconds(request, devices, plan.stages, 1);
  plan.tokens_per_second =
      static_cast<double>(request.streams) / busiest_seconds(request, devices, plan.stages);
  plan.prefill = plan_prefill(request, devices, plan.stages);
  plan.seconds = session_seconds(request, devices, plan.stages);
  return plan;
}

}  // namespace

Result<Plan> plan_session(const PlanRequest& request, std::span<const PlanDevice> devices) {
  SHOAL_TRY(check_request(request));
  std::vector<Candidate> candidates;
  LeftOut left_out;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (request.exact && !devices[i].exact) continue;
    if (devices[i].denied) {
      ++left_out.denied;
    } else {
      candidates.push_back({i, devices[i].memory_free});
    }
  }
  Result<Plan> plan = plan_over(request, devices, candidates, left_out);
  for (int round = 1; plan.ok(); ++round) {
    double needed = plan.value().seconds;
    const bool in_time = std::ranges::all_of(plan.value().stages, [&](const PlanStage& stage) {
      return devices[stage.device].seconds_available >= needed;
    });
    if (in_time) break;
    // Who leaves before this plan ends leaves before a plan over fewer devices ends. Hosts must not
    // make it long by leaving one after the other.
    if (round >= kLeavingRoundsMax) needed = kNever;
    left_out.leaving += std::erase_if(candidates, [&](const Candidate& candidate) {
      return devices[candidate.device].seconds_available < needed;
    });
    plan = plan_over(request, devices, candidates, left_out);
  }
  return plan;
}

namespace {

constexpr double kHelpMin = 1.1;  // What is said to help gives at least so much.

// How fast a plan is by its objective: tokens a second of one text, or of all.
double rate_of(const PlanRequest& request, const Plan& plan) {
  return request.objective == PlanObjective::kThroughput ? plan.tokens_per_second
                                                         : 1 / plan.seconds_per_token;
}

bool may_plan_with(const PlanRequest& request, const PlanDevice& device) {
  return (device.exact || !request.exact) && !device.denied;
}

class Explainer {
 public:
  Explainer(const PlanRequest& request, std::span<const PlanDevice> devices, const Plan& plan,
            std::span<const std::string> names)
      : request_(request), devices_(devices), plan_(plan), names_(names) {
    for (const PlanDevice& device : devices) {
      // Nor with what its owner wants back too soon.
      if (!may_plan_with(request, device) || device.seconds_available < plan.seconds) continue;
      ready_ += 1;
      largest_ = std::max(largest_, device.memory_free);
    }
    needed_ = stage_memory(request.fragments, request.context, request.rows_max);
  }

  PlanExplanation run() {
    why();
    why_not_split();
    what_would_help();
    return std::move(out_);
  }

 private:
  std::string name(size_t device) const {
    return device < names_.size() ? names_[device] : "device " + std::to_string(device);
  }

  void why() {
    const std::string needs = "The model needs " + mebibytes(needed_) + " for this session";
    const size_t stages = plan_.stages.size();
    if (stages == 1) {
      out_.why.push_back({"fits_one", needs + " and fits " + name(plan_.stages[0].device) +
                                          ", the fastest that holds all of it"});
    } else if (!request_.cuts.empty()) {
      out_.why.push_back({"cuts_asked", "It is cut where it was asked to be"});
    } else if (needed_ > largest_) {
      out_.why.push_back({"split", needs + ", more than the " + mebibytes(largest_) +
                                       " that a ready device has free: " + std::to_string(stages) +
                                       " stages share it"});
    } else if (request_.stages_min > 1) {
      out_.why.push_back(
          {"stages_asked", std::to_string(request_.stages_min) + " or more stages were asked for"});
    } else if (request_.anchored) {
      out_.why.push_back(
          {"ends_anchored", needs + ", and no trusted device has room for all of it: its ends stay "
                                    "on trusted hosts"});
    } else {
      out_.why.push_back(
          {"split_for_time", needs + ", and no device that holds all of it has the time: its owner "
                                     "wants it back before"});
    }
    const PlanStage* slow = nullptr;
    double slowest = 0, computing = 0;
    for (const PlanStage& stage : plan_.stages) {
      const double seconds = plan_step_seconds(request_, devices_, stage, 1);
      computing += compute_seconds(range_of(request_, stage), devices_[stage.device], 1);
      if (slow == nullptr || seconds > slowest) {
        slowest = seconds;
        slow = &stage;
      }
    }
    if (stages > 1) {
      out_.why.push_back(
          {"slowest_stage", "The slowest stage, fragments " + std::to_string(slow->first_fragment) +
                                "-" + std::to_string(slow->last_fragment) + " on " +
                                name(slow->device) + ", takes " + seconds_text(slowest) + " of " +
                                seconds_text(plan_.seconds_per_token) + " a token"});
    }
    const double way = 1 - computing / plan_.seconds_per_token;
    out_.why.push_back({way > 0.5 ? "bound_by_links" : "bound_by_devices",
                        "Of a token's time " + percent_text(std::max(way, 0.0)) +
                            " is spent on the way to hosts and back"});
    const auto unused = ready_ - static_cast<int64_t>(used());
    if (stages > 1 && unused > 0) {
      out_.why.push_back({"left_out", count_text(unused, "ready device is", "ready devices are") +
                                          " left out: the plan is not faster with more"});
    }
  }

  size_t used() const {
    std::set<size_t> all;
    for (const PlanStage& stage : plan_.stages) all.insert(stage.device);
    return all.size();
  }

  void why_not_split() {
    if (plan_.stages.size() > 1) return;
    PlanRequest split = request_;
    split.stages_min = 2;
    split.cuts.clear();
    const Result<Plan> other = plan_session(split, devices_);
    if (!other.ok()) {
      out_.why_not_split.push_back({"cannot", "A split is not possible: " + other.error().message});
      return;
    }
    const double factor = rate_of(request_, other.value()) / rate_of(request_, plan_);
    out_.why_not_split.push_back(
        {"split_slower",
         factor < 1 ? "Split over " + std::to_string(other.value().stages.size()) +
                          " devices it would reach " + percent_text(factor) + " of this rate"
                    : "Split over " + std::to_string(other.value().stages.size()) +
                          " devices it would be " + figure_text(factor) +
                          " times as fast, but every further host is one that can leave, and the "
                          "devices do more as separate sessions",
         factor});
  }

  template <class Change>
  void attempt(const char* code, std::string text, const Change& change) {
    std::vector<PlanDevice> changed(devices_.begin(), devices_.end());
    for (PlanDevice& device : changed) change(device);
    const Result<Plan> other = plan_session(request_, changed);
    if (!other.ok()) return;
    const double factor = rate_of(request_, other.value()) / rate_of(request_, plan_);
    if (factor < kHelpMin) return;
    out_.what_would_help.push_back(
        {code, std::move(text) + ": " + figure_text(factor) + " times as fast", factor});
  }

  void what_would_help() {
    attempt("link_delay", "Round trips of a tenth", [](PlanDevice& d) { d.hop_seconds /= 10; });
    attempt("link_rate", "Links of ten times the rate",
            [](PlanDevice& d) { d.link_bytes_per_second *= 10; });
    attempt("memory", "Twice as much free memory on every device",
            [](PlanDevice& d) { d.memory_free.count *= 2; });
    attempt("idle", "Devices without other sessions", [](PlanDevice& d) { d.sessions = 0; });
    attempt("bandwidth", "Memory of twice the bandwidth", [](PlanDevice& d) {
      d.weight_bytes_per_second = 2 * rate_or(d.weight_bytes_per_second, kUnmeasuredBytesPerSecond);
    });
    attempt("compute", "Devices that compute twice as fast", [](PlanDevice& d) {
      d.flops_per_second = 2 * rate_or(d.flops_per_second, kUnmeasuredFlopsPerSecond);
    });
    attempt("exact", "Every device passing the exactness self-test",
            [](PlanDevice& d) { d.exact = true; });
    attempt("owners", "Owners who allow this class of work",
            [](PlanDevice& d) { d.denied = false; });
    std::ranges::stable_sort(out_.what_would_help, std::greater(), &PlanReason::factor);
  }

  const PlanRequest& request_;
  std::span<const PlanDevice> devices_;
  const Plan& plan_;
  std::span<const std::string> names_;
  int64_t ready_ = 0;
  Bytes largest_, needed_;
  PlanExplanation out_;
};

}  // namespace

PlanExplanation explain_plan(const PlanRequest& request, std::span<const PlanDevice> devices,
                             const Plan& plan, std::span<const std::string> names) {
  return Explainer(request, devices, plan, names).run();
}

}  // namespace shoal
