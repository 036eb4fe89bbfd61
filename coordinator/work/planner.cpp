#include "coordinator/work/planner.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "base/check.h"

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
constexpr int kLeavingRoundsMax = 4;   // Then only devices that stay are planned with.
constexpr double kSecondsMin = 1e-12;  // So that nothing is divided by no time at all.
constexpr double kNever = std::numeric_limits<double>::infinity();

double rate_or(double measured, double cautious) { return measured > 0 ? measured : cautious; }

double compute_seconds(std::span<const FragmentCost> fragments, const PlanDevice& device,
                       int64_t rows) {
  double weights = 0, flops = 0;
  for (const FragmentCost& fragment : fragments) {
    weights += static_cast<double>(fragment.weights.count);
    flops += static_cast<double>(fragment.flops_per_row.count) * static_cast<double>(rows);
  }
  const double compute =
      std::max(weights / rate_or(device.weight_bytes_per_second, kUnmeasuredBytesPerSecond),
               flops / rate_or(device.flops_per_second, kUnmeasuredFlopsPerSecond));
  return std::max(compute, kSecondsMin) * (1 + std::max(device.sessions, 0));
}

// What a search makes small. Evenness is that of the computing alone: the way to a host takes its
// time whatever the host does.
double stage_cost(const PlanRequest& request, std::span<const FragmentCost> fragments,
                  const PlanDevice& device, double reference) {
  const double weight = request.stages_min > 1 ? kEvennessWeightAsked : kEvennessWeight;
  const double compute = compute_seconds(fragments, device, 1);
  return stage_seconds(fragments, device, 1) + weight * (reference + compute * compute / reference);
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
        const std::vector<Candidate>& candidates)
      : count_(request.fragments.size()), table_(candidates.size() * count_ * count_, kNever) {
    double reference = kNever;  // The whole model on the fastest device.
    for (const Candidate& candidate : candidates) {
      reference =
          std::min(reference, compute_seconds(request.fragments, devices[candidate.device], 1));
    }
    for (size_t c = 0; c < candidates.size(); ++c) {
      const PlanDevice& device = devices[candidates[c].device];
      for (size_t first = 0; first < count_; ++first) {
        if (!starts_stage(request, first)) continue;
        if (request.anchored && first == 0 && !device.trusted) continue;
        for (size_t last = first; last < count_; ++last) {
          const auto range = request.fragments.subspan(first, last - first + 1);
          if (stage_memory(range, request.context, request.rows_max) > candidates[c].memory) break;
          if (request.anchored && last + 1 == count_ && !device.trusted) break;
          if (!ends_stage(request, first, last)) continue;
          at(c, first, last) = stage_cost(request, range, device, reference);
        }
      }
    }
  }

  double of(size_t candidate, size_t first, size_t last) const {
    return table_[(candidate * count_ + first) * count_ + last];
  }
  size_t fragments() const { return count_; }

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
          const double cost = from.cost + costs.of(c, done, last);
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
          if (from.cost + stage >= to.cost) continue;
          nodes.push_back({from.node, static_cast<uint32_t>(c), static_cast<uint32_t>(first),
                           static_cast<uint32_t>(end - 1)});
          to = {from.cost + stage, static_cast<int32_t>(nodes.size() - 1)};
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

Found search(const PlanRequest& request, std::span<const PlanDevice> devices,
             const std::vector<Candidate>& candidates, int64_t stages_min) {
  const Costs costs(request, devices, candidates);
  if (candidates.size() <= kSubsetDevicesMax)
    return search_subsets(costs, candidates.size(), stages_min);
  return search_orders(request, devices, candidates, costs, stages_min);
}

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
  Bytes weights_and_state, workspace;
  for (const FragmentCost& fragment : fragments) {
    weights_and_state += fragment.weights + Bytes{fragment.state_per_position.count * context};
    workspace = std::max(workspace, Bytes{fragment.workspace_per_row.count * rows_max});
  }
  return weights_and_state + workspace;
}

double stage_seconds(std::span<const FragmentCost> fragments, const PlanDevice& device,
                     int64_t rows) {
  return std::max(device.hop_seconds, 0.0) + compute_seconds(fragments, device, rows);
}

double plan_cost(const PlanRequest& request, std::span<const PlanDevice> devices,
                 std::span<const PlanStage> stages) {
  double reference = kNever;
  for (const PlanDevice& device : devices) {
    if (request.exact && !device.exact) continue;
    reference = std::min(reference, compute_seconds(request.fragments, device, 1));
  }
  double cost = 0;
  for (const PlanStage& stage : stages) {
    const auto range = request.fragments.subspan(
        static_cast<size_t>(stage.first_fragment),
        static_cast<size_t>(stage.last_fragment - stage.first_fragment + 1));
    cost += stage_cost(request, range, devices[stage.device], reference);
  }
  return cost;
}

double session_seconds(const PlanRequest& request, std::span<const PlanDevice> devices,
                       std::span<const PlanStage> stages) {
  const auto pass = [&](int64_t rows) {
    double seconds = 0;
    for (const PlanStage& stage : stages) {
      const auto range = request.fragments.subspan(
          static_cast<size_t>(stage.first_fragment),
          static_cast<size_t>(stage.last_fragment - stage.first_fragment + 1));
      seconds += stage_seconds(range, devices[stage.device], rows);
    }
    return seconds;
  };
  const int64_t whole = request.prompt_rows / request.rows_max;
  const int64_t rest = request.prompt_rows % request.rows_max;
  double seconds = static_cast<double>(request.tokens) * pass(1);
  if (whole > 0) seconds += static_cast<double>(whole) * pass(request.rows_max);
  if (rest > 0) seconds += pass(rest);
  return seconds * kTimeReserve;
}

namespace {

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
      const double seconds = stage_seconds(request.fragments, device, 1);
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
  for (const PlanStage& stage : plan.stages) {
    const auto range = request.fragments.subspan(
        static_cast<size_t>(stage.first_fragment),
        static_cast<size_t>(stage.last_fragment - stage.first_fragment + 1));
    plan.seconds_per_token += stage_seconds(range, devices[stage.device], 1);
  }
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

}  // namespace shoal
