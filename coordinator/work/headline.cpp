#include "coordinator/work/headline.h"

#include <algorithm>

namespace shoal {
namespace {

HeadlineSide side_of(const std::vector<FleetPart>& fleet) {
  return {fleet, fleet_flops(fleet), fleet_memory(fleet), fleet_price(fleet), fleet_watts(fleet)};
}

// What one pass of the cut asks for, whatever cards do it.
struct Pass {
  double flops, weight_bytes, boundary_bytes;
  int sends;  // Times the boundary that an inner stage sends.
};

Pass pass_of(const ModelShape& model, FleetJob job) {
  FleetRequest request;
  request.model = &model;
  const auto sequence = static_cast<double>(fleet_sequence(request));
  const double row_flops = forward_flops_by_rule(model);
  const double row_bytes = boundary_bytes(model, kHalfBytes);
  const double weights = static_cast<double>(parameters(model)) * kHalfBytes;
  switch (job) {
    case FleetJob::kForward: return {row_flops * sequence, weights, row_bytes * sequence, 1};
    case FleetJob::kTrain: return {3 * row_flops * sequence, 3 * weights, row_bytes * sequence, 2};
    case FleetJob::kBatch:
      return {row_flops * kHeadlineStreams, weights, row_bytes * kHeadlineStreams, 1};
  }
  SHOAL_UNREACHABLE();
}

// An n-th of the pass on one of n cards.
double part_seconds(const Pass& pass, const Card& card, double parts, const FleetFactors& factors) {
  return std::max(pass.flops / (factors.compute * card.fp16_flops),
                  pass.weight_bytes / (factors.memory * card.bytes_per_second)) /
         parts;
}

void add_cut(HeadlineRow& row, const FleetPart& fleet, const FleetPart& rivals,
             const FleetFactors& factors) {
  const Pass pass = pass_of(*row.model, row.job);
  const auto cards = static_cast<double>(fleet.count);
  row.stages = std::min(fleet.count, row.model->layers);
  const auto stages = static_cast<double>(row.stages);
  row.boundary_bytes = pass.boundary_bytes;
  row.compute_seconds = part_seconds(pass, *fleet.card, stages, factors);
  row.transfer_seconds = pass.sends * 8 * pass.boundary_bytes / row.bits_per_second;
  row.network_factor = row.transfer_seconds / row.compute_seconds;
  // Cards that do not make a whole pipeline count as a part of one: in the fleet's favour.
  const double pipelines = cards / stages;
  const double rival =
      1 / part_seconds(pass, *rivals.card, static_cast<double>(rivals.count), factors);
  row.share = pipelines / std::max(row.compute_seconds, row.transfer_seconds) / rival;
  row.share_links_hidden = pipelines / row.compute_seconds / rival;
}

}  // namespace

Headline headline(const std::vector<FleetPart>& fleet,
                  const std::vector<std::vector<FleetPart>>& rivals,
                  const std::vector<const ModelShape*>& models,
                  const std::vector<double>& bits_per_second, const FleetFactors& factors) {
  SHOAL_CHECK(fleet.size() == 1 && !rivals.empty() && rivals[0].size() == 1);
  Headline result;
  result.fleet = side_of(fleet);
  for (const auto& rival : rivals) result.rivals.push_back(side_of(rival));
  for (const ModelShape* model : models) {
    for (const FleetJob job : {FleetJob::kForward, FleetJob::kTrain, FleetJob::kBatch}) {
      if (job == FleetJob::kBatch && model->family == ModelFamily::kBert) continue;
      FleetRequest request;
      request.model = model;
      request.job = job;
      request.factors = factors;
      request.fleet = rivals[0];
      request.link = kServerLink;
      const Result<FleetPlan> rival_plan = plan_fleet(request);
      for (const double rate : bits_per_second) {
        HeadlineRow row;
        row.model = model;
        row.job = job;
        row.bits_per_second = rate;
        add_cut(row, fleet[0], rivals[0][0], factors);
        request.fleet = fleet;
        request.link = FleetLink{};
        request.link.bits_per_second = rate;
        row.model_bytes = fleet_model_bytes(request);
        row.fleet_holds = row.model_bytes <= result.fleet.memory_bytes;
        row.rivals_hold = row.model_bytes <= result.rivals[0].memory_bytes;
        if (rival_plan.ok()) row.rival_tokens_per_second = rival_plan.value().tokens_per_second;
        const Result<FleetPlan> plan = plan_fleet(request);
        if (plan.ok()) {
          row.plan_tokens_per_second = plan.value().tokens_per_second;
          row.plan_bound = plan.value().bound;
          for (const FleetPipeline& pipeline : plan.value().pipelines) {
            row.plan_stages =
                std::max(row.plan_stages, static_cast<int64_t>(pipeline.stages.size()));
          }
        }
        result.rows.push_back(row);
      }
    }
  }
  return result;
}

Headline headline() {
  const auto card = [](const char* name) { return find_card(name).value(); };
  const auto shape = [](const char* name) { return find_model_shape(name).value(); };
  return headline({{card("RTX3080"), 50}}, {{{card("H100-PCIe"), 4}}, {{card("H100-SXM"), 4}}},
                  {shape("Bert-Large"), shape("GPT3-24L"), shape("GPT3-175B"), shape("Llama2-70B")},
                  {100e6, 1e9, 10e9}, FleetFactors{});
}

}  // namespace shoal
