// shoalctl plan: what a fleet would do with a model, from vendors' figures. Needs no coordinator.

#include <cstdio>

#include "coordinator/ctl/commands.h"
#include "coordinator/work/figures.h"
#include "coordinator/work/headline.h"

namespace shoal::ctl {
namespace {

constexpr const char* kNotMeasured =
    "Predicted from vendors' figures and assumed factors; nothing here was measured.";
constexpr const char* kMarks =
    "Sources: [F] found in the text that is named, [R] recalled and not checked, [D] our "
    "arithmetic "
    "(docs/SOURCES.md).";

std::string link_text(double bits_per_second) { return unit_text(bits_per_second, "b/s"); }
std::string money_text(double usd) { return "$" + figure_text(usd); }

std::string fleet_text(const std::vector<FleetPart>& fleet) {
  std::string text;
  for (const FleetPart& part : fleet) {
    text += (text.empty() ? "" : ", ") + std::to_string(part.count) + " x " + part.card->name;
  }
  return text;
}

Json fleet_json(const std::vector<FleetPart>& fleet) {
  Json json = Json::array();
  for (const FleetPart& part : fleet) {
    json.push_back({{"card", part.card->name}, {"count", part.count}});
  }
  return json;
}

Json reasons_json(const std::vector<PlanReason>& reasons) {
  Json json = Json::array();
  for (const PlanReason& reason : reasons) {
    Json one = {{"code", reason.code}, {"text", reason.text}};
    if (reason.factor != 0) one["factor"] = reason.factor;
    json.push_back(std::move(one));
  }
  return json;
}

Json plan_json(const FleetRequest& request, const FleetPlan& plan) {
  Json pipelines = Json::array();
  for (const FleetPipeline& pipeline : plan.pipelines) {
    Json stages = Json::array();
    for (const FleetStage& stage : pipeline.stages) {
      stages.push_back({{"card", stage.card->name},
                        {"first_block", stage.first_block},
                        {"blocks", stage.blocks},
                        {"embedding", stage.embedding},
                        {"head", stage.head},
                        {"compute_seconds", stage.compute_seconds},
                        {"transfer_seconds", stage.transfer_seconds},
                        {"memory_bytes", stage.memory_bytes}});
    }
    pipelines.push_back({{"replicas", pipeline.replicas},
                         {"micro_batch", pipeline.micro_batch},
                         {"in_flight", pipeline.in_flight},
                         {"recompute", pipeline.recompute},
                         {"tokens_per_second", pipeline.tokens_per_second},
                         {"delay_seconds", pipeline.delay_seconds},
                         {"bound", fleet_bound_name(pipeline.bound)},
                         {"stages", std::move(stages)}});
  }
  return {{"measured", false},
          {"model", request.model->name},
          {"parameters", parameters(*request.model)},
          {"job", fleet_job_name(request.job)},
          {"fleet", fleet_json(request.fleet)},
          {"link",
           {{"bits_per_second", request.link.bits_per_second},
            {"rtt_seconds", request.link.rtt_seconds}}},
          {"factors",
           {{"compute", request.factors.compute},
            {"memory", request.factors.memory},
            {"fixed_seconds", request.factors.fixed_seconds}}},
          {"tokens_per_second", plan.tokens_per_second},
          {"delay_seconds", plan.delay_seconds},
          {"sync_seconds", plan.sync_seconds},
          {"bound", fleet_bound_name(plan.bound)},
          {"model_bytes", plan.model_bytes},
          {"fleet_memory_bytes", fleet_memory(request.fleet)},
          {"cards_used", plan.cards_used},
          {"left_out", fleet_json(plan.left_out)},
          {"peak_flops", plan.peak_flops},
          {"utilization", plan.utilization},
          {"price_usd", plan.price_usd},
          {"watts", plan.watts},
          {"joules_per_token", plan.joules_per_token},
          {"energy_usd_per_million_tokens", plan.energy_usd_per_million},
          {"cards_usd_per_million_tokens", plan.cards_usd_per_million},
          {"why", reasons_json(plan.why)},
          {"why_not_split", reasons_json(plan.why_not_split)},
          {"what_would_help", reasons_json(plan.what_would_help)},
          {"pipelines", std::move(pipelines)}};
}

void print_reasons(const char* title, const std::vector<PlanReason>& reasons) {
  if (reasons.empty()) return;
  std::printf("\n%s\n", title);
  for (const PlanReason& reason : reasons) std::printf("  %s.\n", reason.text.c_str());
}

const char* delay_title(FleetJob job) {
  switch (job) {
    case FleetJob::kForward: return "a micro-batch takes";
    case FleetJob::kTrain: return "an update takes";
    case FleetJob::kBatch: return "a text's next token takes";
  }
  SHOAL_UNREACHABLE();
}

void print_plan(const FleetRequest& request, const FleetPlan& plan) {
  const std::string job(fleet_job_name(request.job));
  std::printf("%s, %s, over %s; links of %s, round trips of %s\n\n", request.model->name,
              job.c_str(), fleet_text(request.fleet).c_str(),
              link_text(request.link.bits_per_second).c_str(),
              seconds_text(request.link.rtt_seconds).c_str());
  std::vector<std::vector<std::string>> rows = {
      {"rate", figure_text(plan.tokens_per_second) + " tokens/s"},
      {delay_title(request.job), seconds_text(plan.delay_seconds)},
      {"bound by", std::string(fleet_bound_name(plan.bound))},
      {"of the cards' peak", percent_text(plan.utilization)},
      {"cards used", std::to_string(plan.cards_used) + ", " + money_text(plan.price_usd) + ", " +
                         unit_text(plan.watts, "W")},
      {"memory", unit_text(plan.model_bytes, "B") + " needed once, " +
                     unit_text(fleet_memory(request.fleet), "B") + " there"},
      {"a million tokens", money_text(plan.energy_usd_per_million) + " of energy and " +
                               money_text(plan.cards_usd_per_million) +
                               " of cards (written off in " + figure_text(request.years) +
                               " years of full use)"},
      {"energy", unit_text(plan.joules_per_token, "J") + " a token, at full board power"}};
  print_table({"what", "predicted"}, rows);
  std::printf("\n");
  rows.clear();
  for (const FleetPipeline& pipeline : plan.pipelines) {
    double compute = 0, transfer = 0, memory = 0;
    for (const FleetStage& stage : pipeline.stages) {
      compute = std::max(compute, stage.compute_seconds);
      transfer = std::max(transfer, stage.transfer_seconds);
      memory = std::max(memory, stage.memory_bytes);
    }
    rows.push_back({std::to_string(pipeline.replicas), std::to_string(pipeline.stages.size()),
                    std::to_string(pipeline.micro_batch), std::to_string(pipeline.in_flight),
                    seconds_text(compute), seconds_text(transfer), unit_text(memory, "B"),
                    figure_text(pipeline.tokens_per_second)});
  }
  print_table({"pipelines", "stages", "sequences", "in flight", "slowest compute",
               "slowest transfer", "fullest card", "tokens/s each"},
              rows);
  print_reasons("Why this:", plan.why);
  print_reasons("Why not otherwise:", plan.why_not_split);
  print_reasons("What would help:", plan.what_would_help);
  std::printf("\n%s\n", kNotMeasured);
}

Json side_json(const HeadlineSide& side) {
  return {{"fleet", fleet_json(side.fleet)},
          {"peak_flops", side.flops},
          {"memory_bytes", side.memory_bytes},
          {"price_usd", side.price_usd},
          {"watts", side.watts}};
}

Json headline_json(const Headline& headline) {
  Json rivals = Json::array(), rows = Json::array();
  for (const HeadlineSide& rival : headline.rivals) {
    Json json = side_json(rival);
    json["peak_ratio"] = headline.fleet.flops / rival.flops;
    rivals.push_back(std::move(json));
  }
  for (const HeadlineRow& row : headline.rows) {
    Json json = {{"model", row.model->name},
                 {"job", fleet_job_name(row.job)},
                 {"bits_per_second", row.bits_per_second},
                 {"stages", row.stages},
                 {"boundary_bytes", row.boundary_bytes},
                 {"compute_seconds", row.compute_seconds},
                 {"transfer_seconds", row.transfer_seconds},
                 {"network_factor", row.network_factor},
                 {"share", row.share},
                 {"share_links_hidden", row.share_links_hidden},
                 {"model_bytes", row.model_bytes},
                 {"fleet_holds", row.fleet_holds},
                 {"rivals_hold", row.rivals_hold}};
    if (row.plan_tokens_per_second > 0) {
      json["plan_tokens_per_second"] = row.plan_tokens_per_second;
      json["plan_stages"] = row.plan_stages;
      json["plan_bound"] = fleet_bound_name(row.plan_bound);
    }
    if (row.rival_tokens_per_second > 0)
      json["rival_tokens_per_second"] = row.rival_tokens_per_second;
    rows.push_back(std::move(json));
  }
  return {{"measured", false},
          {"fleet", side_json(headline.fleet)},
          {"rivals", std::move(rivals)},
          {"rows", std::move(rows)}};
}

std::string plan_cell(const HeadlineRow& row) {
  if (row.plan_tokens_per_second == 0) return "does not fit";
  std::string text = figure_text(row.plan_tokens_per_second) + " tokens/s, " +
                     count_text(row.plan_stages, "stage", "stages");
  if (row.rival_tokens_per_second > 0) {
    text += ", " + percent_text(row.plan_tokens_per_second / row.rival_tokens_per_second);
  }
  return text;
}

void print_headline(const Headline& headline) {
  std::printf("FusionAI: %s reach the throughput of %s.\n\n",
              fleet_text(headline.fleet.fleet).c_str(),
              fleet_text(headline.rivals[0].fleet).c_str());
  std::vector<std::vector<std::string>> rows;
  const auto add_side = [&](const HeadlineSide& side) {
    rows.push_back({fleet_text(side.fleet), unit_text(side.flops, "FLOPS"),
                    figure_text(headline.fleet.flops / side.flops),
                    unit_text(side.memory_bytes, "B"), money_text(side.price_usd),
                    unit_text(side.watts, "W")});
  };
  add_side(headline.fleet);
  for (const HeadlineSide& rival : headline.rivals) add_side(rival);
  print_table({"cards", "peak FP16", "the first / this", "memory", "price", "power"}, rows);
  std::printf(
      "\nIt holds for the sums of peak rates, and so where links are hidden and the model fits.\n"
      "\nCut as in the paper, evenly over the cards, one sequence at a time (batch: a step of %lld "
      "texts).\nShare: of the rate that the first rivals' peaks allow.\n\n",
      static_cast<long long>(kHeadlineStreams));
  rows.clear();
  for (const HeadlineRow& row : headline.rows) {
    rows.push_back({row.model->name, std::string(fleet_job_name(row.job)),
                    link_text(row.bits_per_second), std::to_string(row.stages),
                    unit_text(row.boundary_bytes, "B"), seconds_text(row.compute_seconds),
                    seconds_text(row.transfer_seconds), figure_text(row.network_factor),
                    percent_text(row.share)});
  }
  print_table({"model", "job", "links", "stages", "at a cut", "compute", "transfer",
               "transfer / compute", "share"},
              rows);
  std::printf(
      "\nPlanned by Shoal on the same cards (a model that fits one card is not cut), with "
      "the share of the\nfirst rivals' plan in one server:\n\n");
  rows.clear();
  for (const HeadlineRow& row : headline.rows) {
    rows.push_back(
        {row.model->name, std::string(fleet_job_name(row.job)), link_text(row.bits_per_second),
         unit_text(row.model_bytes, "B"), plan_cell(row),
         row.plan_tokens_per_second > 0 ? std::string(fleet_bound_name(row.plan_bound)) : "-",
         row.rival_tokens_per_second > 0 ? figure_text(row.rival_tokens_per_second) + " tokens/s"
                                         : "does not fit"});
  }
  print_table({"model", "job", "links", "needs", "the fleet", "bound by", "the rivals"}, rows);
  std::printf("\n%s\n", kNotMeasured);
}

Result<void> list_cards(bool json) {
  if (json) {
    Json cards = Json::array();
    for (const Card& card : all_cards()) {
      cards.push_back({{"name", card.name},
                       {"title", card.title},
                       {"consumer", card.consumer},
                       {"fp16_flops", card.fp16_flops},
                       {"int8_ops", card.int8_ops},
                       {"memory_bytes", card.memory_bytes},
                       {"bytes_per_second", card.bytes_per_second},
                       {"price_usd", card.price_usd},
                       {"watts", card.watts},
                       {"source", card.source}});
    }
    print_json({{"cards", std::move(cards)}});
    return {};
  }
  std::vector<std::vector<std::string>> rows;
  for (const Card& card : all_cards()) {
    rows.push_back({card.name, unit_text(card.fp16_flops, "FLOPS"), unit_text(card.int8_ops, "OPS"),
                    unit_text(card.memory_bytes, "B"), unit_text(card.bytes_per_second, "B/s"),
                    money_text(card.price_usd), unit_text(card.watts, "W"), card.source});
  }
  print_table({"card", "FP16", "int8", "memory", "bandwidth", "price", "power", "source"}, rows);
  std::printf("\n%s\n", kMarks);
  return {};
}

Result<void> list_models(bool json) {
  Json models = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const ModelShape& shape : all_model_shapes()) {
    FleetRequest request;
    request.model = &shape;
    const int64_t sequence = fleet_sequence(request);
    const double forward = forward_flops(shape, sequence);
    models.push_back(
        {{"name", shape.name},
         {"parameters", parameters(shape)},
         {"layers", shape.layers},
         {"width", shape.width},
         {"sequence", sequence},
         {"forward_flops_per_token", forward},
         {"backward_flops_per_token", backward_flops(shape, sequence)},
         {"cut_bytes_per_token", boundary_bytes(shape, kHalfBytes)},
         {"cache_bytes_per_token", static_cast<double>(shape.layers) * cache_bytes(shape)},
         {"source", shape.source}});
    rows.push_back({shape.name, unit_text(static_cast<double>(parameters(shape)), ""),
                    std::to_string(shape.layers), std::to_string(shape.width),
                    std::to_string(sequence), unit_text(forward, "FLOP"),
                    unit_text(boundary_bytes(shape, kHalfBytes), "B"),
                    shape.family == ModelFamily::kBert
                        ? "-"
                        : unit_text(static_cast<double>(shape.layers) * cache_bytes(shape), "B"),
                    shape.source});
  }
  if (json) {
    print_json({{"models", std::move(models)}});
  } else {
    print_table({"model", "parameters", "blocks", "width", "sequence", "forward a token",
                 "cut a token", "cache a token", "source"},
                rows);
    std::printf("\n%s\n", kMarks);
  }
  return {};
}

Result<double> read_weights(const std::string& word) {
  if (word == "fp16") return kHalfBytes;
  if (word == "int8") return kInt8BlockBytes;
  if (word == "int4") return kInt4BlockBytes;
  return Error{ErrorCode::kInvalid, "--weights: \"" + word + "\" is none of fp16, int8, int4"};
}

// Nothing coarser: what crosses a cut has outliers.
Result<double> read_cuts(const std::string& word) {
  if (word == "fp16") return kHalfBytes;
  if (word == "int8") return kInt8BlockBytes;
  return Error{ErrorCode::kInvalid, "--cuts: \"" + word + "\" is neither fp16 nor int8"};
}

}  // namespace

Result<void> plan(bool json, const PlanOptions& options) {
  if (options.cards) return list_cards(json);
  if (options.models) return list_models(json);
  if (options.headline) {
    const Headline result = headline();
    if (json) {
      print_json(headline_json(result));
    } else {
      print_headline(result);
    }
    return {};
  }
  if (options.model.empty() || options.fleet.empty()) {
    return Error{ErrorCode::kInvalid,
                 "name a model and a fleet, as --model Llama2-70B --fleet 50xRTX3080; --models "
                 "and --cards list what is known"};
  }
  FleetRequest request;
  SHOAL_TRY_ASSIGN(model, find_model_shape(options.model));
  SHOAL_TRY_ASSIGN(fleet, read_fleet(options.fleet));
  SHOAL_TRY_ASSIGN(link, read_link(options.link));
  SHOAL_TRY_ASSIGN(job, read_job(options.job));
  SHOAL_TRY_ASSIGN(weight_bytes, read_weights(options.weights));
  SHOAL_TRY_ASSIGN(cut_bytes, read_cuts(options.cuts));
  request.model = model;
  request.fleet = std::move(fleet);
  request.link = link;
  request.job = job;
  request.weight_bytes = weight_bytes;
  request.boundary_bytes = cut_bytes;
  request.sequence = options.sequence;
  request.prompt = options.prompt;
  request.output = options.output;
  request.update_tokens = options.update_tokens;
  request.int8 = options.int8;
  request.sync = options.sparse_sync ? GradientSync::kSparse : GradientSync::kDense;
  request.factors.compute = options.compute_part;
  request.factors.memory = options.memory_part;
  request.usd_per_kwh = options.usd_per_kwh;
  request.years = options.years;
  SHOAL_TRY_ASSIGN(result, plan_fleet(request));
  if (json) {
    print_json(plan_json(request, result));
  } else {
    print_plan(request, result);
  }
  return {};
}

}  // namespace shoal::ctl
