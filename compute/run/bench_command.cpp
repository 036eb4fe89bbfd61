#include "compute/run/bench_command.h"

#include <cstdio>
#include <optional>

#include "base/host.h"
#include "compute/backends/cpu/ceilings.h"
#include "compute/run/rival.h"
#include "compute/run/stopwatch.h"

namespace shoal::compute {
namespace {

constexpr int kOverheadBlocks = 22;  // As a model of a billion parameters has.

void print_row(const char* name, const std::string& value) {
  std::printf("%-24s %s\n", name, value.c_str());
}

std::string number(const char* format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

std::string percent(double value, double ceiling) {
  return ceiling > 0 ? number("%.0f %%", 100 * value / ceiling) : "-";
}

bool has_blocks(const Model& model) {
  for (const Value& value : model.fragments.back().graph.values) {
    if (value.kind == ValueKind::kWeight && block_elements(value.dtype) > 1) return true;
  }
  return false;
}

}  // namespace

struct BenchCommand::Figures {
  std::optional<Ceilings> ceilings;  // Of the processors; a GPU's are not known.
  BenchReport block;
  double step_overhead_seconds = 0;
  double load = 0;
  // Of a model, if one was given.
  std::string model;
  bool quantised = false;
  double read_seconds = 0;
  double open_seconds = 0;
  double first_token_seconds = 0;
  std::vector<ModelRates> rates;
  std::optional<RivalRates> rival;

  // What prefill is held against.
  double arithmetic() const {
    if (!ceilings) return 0;
    return quantised ? ceilings->int8_per_second : ceilings->f32_per_second;
  }
  double reading() const { return ceilings ? ceilings->read_bytes_per_second : 0; }
};

BenchCommand::BenchCommand(CommandLine& line) : line_(line) {
  CLI::App& c =
      line.command("bench", "Measure a device, and a model on it", [this] { return run(); });
  common_.add_device(c);
  common_.add_model(c, false);
  CLI::Option* const of_model = c.get_option("--model");
  c.get_option("--quantize")->needs(of_model);
  c.add_option("--tokens", plan_.prompts, "Tokens of the prompt, one or several lengths: 64,512")
      ->delimiter(',')
      ->check(CLI::Range(1, 1000000))
      ->needs(of_model)
      ->capture_default_str();
  c.add_option("--batch", plan_.batches, "Sequences that decode together, one or several: 1,8")
      ->delimiter(',')
      ->check(CLI::Range(1, 256))
      ->needs(of_model)
      ->capture_default_str();
  c.add_option("--decode", plan_.decode, "Tokens to decode after each prompt")
      ->check(CLI::Range(1, 100000))
      ->needs(of_model)
      ->capture_default_str();
  c.add_option("--chunk", plan_.chunk, "Prompt tokens in one step")
      ->check(CLI::Range(1, 4096))
      ->needs(of_model)
      ->capture_default_str();
  c.add_option("--rounds", plan_.rounds, "Measure so often, and tell the best")
      ->check(CLI::Range(1, 100))
      ->needs(of_model)
      ->capture_default_str();
  c.add_option("--vs", rival_,
               "A command whose last line is {\"prefill_tokens_per_second\":..., "
               "\"decode_tokens_per_second\":...}; run in turns with ours, told as a ratio to the "
               "first length and batch")
      ->needs(of_model);
}

Result<void> BenchCommand::run() {
  SHOAL_TRY_ASSIGN(device, common_.open());
  SHOAL_TRY_ASSIGN(figures, measure(*device));
  if (line_.json()) {
    print(json(*device, figures));
  } else {
    show(*device, figures);
  }
  return {};
}

Result<BenchCommand::Figures> BenchCommand::measure(Device& device) const {
  Figures figures;
  figures.load = load_average();  // Of others: before our own work.
  std::optional<Model> model;
  std::optional<ModelBench> bench;
  if (!common_.model.empty()) {  // First, so that what cannot be done is said at once.
    const Stopwatch reading;
    SHOAL_TRY_ASSIGN(opened, common_.opened());
    model = std::move(opened);
    figures.read_seconds = reading.seconds();
    figures.model = model->name;
    figures.quantised = has_blocks(*model);
    SHOAL_TRY_ASSIGN(stage, ModelBench::open(*model, device, plan_));
    bench = std::move(stage);
  }
  for (int i = 0; bench && i < plan_.rounds; ++i) {
    SHOAL_TRY(bench->round());
    if (rival_.empty()) continue;
    SHOAL_TRY_ASSIGN(theirs, run_rival(rival_));
    if (!figures.rival) figures.rival.emplace();
    RivalRates& best = *figures.rival;
    best.prefill_tokens_per_second =
        std::max(best.prefill_tokens_per_second, theirs.prefill_tokens_per_second);
    best.decode_tokens_per_second =
        std::max(best.decode_tokens_per_second, theirs.decode_tokens_per_second);
  }
  if (bench) {
    figures.open_seconds = bench->open_seconds();
    figures.first_token_seconds = bench->first_token_seconds();
    figures.rates = bench->rates();
  }
  bench.reset();  // Its memory is wanted for what follows.
  model.reset();
  if (device.info().plane == "cpu" || device.info().software)
    figures.ceilings = measure_ceilings(device.info().software ? 0 : common_.threads);
  SHOAL_TRY_ASSIGN(block, shoal::compute::bench(device));
  figures.block = block;
  SHOAL_TRY_ASSIGN(overhead, step_overhead(device, kOverheadBlocks));
  figures.step_overhead_seconds = overhead;
  return figures;
}

Json BenchCommand::json(const Device& device, const Figures& figures) const {
  const BenchReport& block = figures.block;
  Json object = {{"device", device_json(device.info())},
                 {"load", figures.load},
                 {"step_overhead_seconds", figures.step_overhead_seconds},
                 {"block",
                  {{"decode_rows_per_second", block.decode_rows_per_second},
                   {"prefill_rows_per_second", block.prefill_rows_per_second},
                   {"weight_bytes_per_second", block.weight_bytes_per_second},
                   {"flops_per_second", block.flops_per_second},
                   {"copy_bytes_per_second", block.copy_bytes_per_second}}}};
  if (figures.ceilings) {
    object["ceilings"] = {{"read_bytes_per_second", figures.ceilings->read_bytes_per_second},
                          {"int8_per_second", figures.ceilings->int8_per_second},
                          {"f32_per_second", figures.ceilings->f32_per_second},
                          {"instructions", figures.ceilings->instructions}};
  }
  if (figures.rates.empty()) return object;
  Json runs = Json::array();
  for (const ModelRates& rates : figures.rates) {
    runs.push_back({{"prompt_tokens", rates.prompt},
                    {"batch", rates.batch},
                    {"prefill_tokens_per_second", rates.prefill_tokens_per_second},
                    {"prefill_flops_per_second", rates.prefill_flops_per_second},
                    {"decode_tokens_per_second", rates.decode_tokens_per_second},
                    {"decode_bytes_per_second", rates.decode_bytes_per_second}});
  }
  const ModelRates& first = figures.rates.front();
  object["model"] = {{"name", figures.model},
                     {"read_seconds", figures.read_seconds},
                     {"open_seconds", figures.open_seconds},
                     {"first_token_seconds", figures.first_token_seconds},
                     {"prefill_tokens_per_second", first.prefill_tokens_per_second},
                     {"decode_tokens_per_second", first.decode_tokens_per_second},
                     {"runs", std::move(runs)}};
  if (figures.rival) {
    const RivalRates& rival = *figures.rival;
    object["vs"] = {
        {"command", rival_},
        {"prefill_tokens_per_second", rival.prefill_tokens_per_second},
        {"decode_tokens_per_second", rival.decode_tokens_per_second},
        {"prefill_ratio", first.prefill_tokens_per_second / rival.prefill_tokens_per_second},
        {"decode_ratio", first.decode_tokens_per_second / rival.decode_tokens_per_second}};
  }
  return object;
}

void BenchCommand::show(const Device& device, const Figures& figures) const {
  const BenchReport& block = figures.block;
  print_row("device", device.info().name);
  if (figures.load >= 0) print_row("load", number("%.2f", figures.load));
  if (figures.ceilings) {
    const Ceilings& at_best = *figures.ceilings;
    const std::string read = at_best.read_bytes_per_second > 0
                                 ? number("read %.1f GB/s", at_best.read_bytes_per_second / 1e9)
                                 : "reading not measured (no memory)";
    print_row("at best", read + number(", int8 %.0f GFLOP/s", at_best.int8_per_second / 1e9) +
                             number(", f32 %.0f GFLOP/s", at_best.f32_per_second / 1e9) + " (" +
                             at_best.instructions + ")");
  }
  print_row("block decode", number("%.2f rows/s", block.decode_rows_per_second));
  print_row("block prefill", number("%.2f rows/s", block.prefill_rows_per_second));
  print_row("weights read", number("%.2f GB/s", block.weight_bytes_per_second / 1e9));
  print_row("arithmetic", number("%.2f GFLOP/s", block.flops_per_second / 1e9));
  print_row("copy to device", number("%.2f GB/s", block.copy_bytes_per_second / 1e9));
  print_row("step of empty blocks", number("%.0f us", figures.step_overhead_seconds * 1e6) + " (" +
                                        std::to_string(kOverheadBlocks) + " blocks)");
  if (figures.rates.empty()) return;
  print_row("model", figures.model);
  print_row("load to first token", number("%.2f s", figures.read_seconds + figures.open_seconds +
                                                        figures.first_token_seconds) +
                                       number(" (reading %.2f, ", figures.read_seconds) +
                                       number("opening %.2f, ", figures.open_seconds) +
                                       number("first prompt %.2f)", figures.first_token_seconds));
  std::printf("\n%8s %6s %14s %9s %9s %14s %8s %9s\n", "prompt", "batch", "prefill tok/s",
              "GFLOP/s", "of best", "decode tok/s", "GB/s", "of best");
  for (const ModelRates& rates : figures.rates) {
    std::printf("%8lld %6lld %14.1f %9.1f %9s %14.1f %8.2f %9s\n",
                static_cast<long long>(rates.prompt), static_cast<long long>(rates.batch),
                rates.prefill_tokens_per_second, rates.prefill_flops_per_second / 1e9,
                percent(rates.prefill_flops_per_second, figures.arithmetic()).c_str(),
                rates.decode_tokens_per_second, rates.decode_bytes_per_second / 1e9,
                percent(rates.decode_bytes_per_second, figures.reading()).c_str());
  }
  if (!figures.rival) return;
  const ModelRates& first = figures.rates.front();
  const RivalRates& rival = *figures.rival;
  std::printf("%15s %14.1f %19s %14.1f\n%15s %14.2f %19s %14.2f\n", "rival",
              rival.prefill_tokens_per_second, "", rival.decode_tokens_per_second, "ratio",
              first.prefill_tokens_per_second / rival.prefill_tokens_per_second, "",
              first.decode_tokens_per_second / rival.decode_tokens_per_second);
}

}  // namespace shoal::compute
