// What a device shows of itself: that it gives the reference's bits, op by op and for small models
// as wholes, and how fast it is. A plain program without Qt Test, for machines that have a card and
// little else; tests/device/run builds and runs it. Exit code 1: something is wrong with the
// device.

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compute/backends/cuda/cuda_backend.h"
#include "compute/compute.h"
#include "compute/ops/op.h"
#include "compute/sample_check.h"
#include "compute/sample_model.h"

namespace shoal::compute {
namespace {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

int failures = 0;

void fail(const std::string& text) {
  ++failures;
  if (failures <= 20) std::printf("  WRONG  %s\n", text.c_str());
}

// Every `one_of`-th sample of each op and variant.
void check_ops(Device& device, int one_of) {
  std::map<std::string, std::pair<int, int>> table;  // Right, of how many.
  for (const OpSpec& spec : op_list()) {
    int number = 0;
    for (const OpSample& sample : spec.samples()) {
      if (number++ % one_of != 0) continue;
      const std::string op(op_name(spec.kind));
      const std::string name = op + " " + std::string(dtype_name(sample.variant));
      auto& [right, all] = table[op];
      ++all;
      if (!device.supports(spec.kind, sample.variant)) {
        fail(name + ": no kernel");
        continue;
      }
      const auto difference = compare_sample(device, spec, sample);
      if (!difference.ok()) {
        fail(name + " (" + sample.label + "): " + difference.error().message);
        return;  // Lost, or full.
      }
      if (difference.value().empty()) {
        ++right;
      } else {
        fail(name + " (" + sample.label + "): " + difference.value());
      }
    }
  }
  std::printf("  samples that are equal to the last bit:");
  int column = 3;
  for (const auto& [op, counts] : table) {
    if (column++ % 4 == 3) std::printf("\n   ");
    std::printf(" %-14s %4d/%-4d", op.c_str(), counts.first, counts.second);
  }
  std::printf("\n");
}

struct Run {
  std::vector<RowInfo> rows;
  std::vector<int32_t> tokens;
};

Result<std::vector<float>> step(Stage& stage, const Run& run, size_t first, size_t count) {
  const auto last = static_cast<uint32_t>(count - 1);
  return stage.step({.rows = std::span(run.rows).subspan(first, count),
                     .tokens = std::span(run.tokens).subspan(first, count),
                     .output_rows = std::span(&last, 1)});
}

Run make_run(int64_t positions, int64_t vocabulary) {
  Run run;
  for (int64_t i = 0; i < positions; ++i) {
    run.rows.push_back({0, static_cast<uint32_t>(i)});
    run.tokens.push_back(static_cast<int32_t>((i * 7919 + 11) % vocabulary));
  }
  return run;
}

// The same model on the device and on the CPU: a prompt in two pieces, then tokens one by one.
void check_models(Device& device, Device& cpu) {
  for (const DType weights : {DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_K,
                              DType::kQ5_K, DType::kQ6_K}) {
    const SampleModel model = make_sample_model({.width = 512,
                                                 .heads = 8,
                                                 .kv_heads = 2,
                                                 .head_dim = 64,
                                                 .inner = 768,
                                                 .vocabulary = 1000,
                                                 .blocks = 2,
                                                 .weights = weights});
    const Run run = make_run(120, 1000);
    const StageOptions options{.context = 128, .sequences = 1, .rows_max = 80};
    auto on_device = Stage::open(device, model.fragments, options);
    auto on_cpu = Stage::open(cpu, model.fragments, options);
    const std::string name = "a model of " + std::string(dtype_name(weights));
    if (!on_device.ok() || !on_cpu.ok()) {
      fail(name + ": " + (on_device.ok() ? on_cpu : on_device).error().message);
      continue;
    }
    const std::vector<std::pair<size_t, size_t>> steps = {{0, 80},  {80, 33}, {113, 3}, {116, 1},
                                                          {117, 1}, {118, 1}, {119, 1}};
    bool same = true;
    for (const auto& [first, count] : steps) {
      const auto got = step(*on_device.value(), run, first, count);
      const auto wanted = step(*on_cpu.value(), run, first, count);
      if (!got.ok() || !wanted.ok()) {
        fail(name + ": " + (got.ok() ? wanted : got).error().message);
        same = false;
        break;
      }
      same = same &&
             std::memcmp(got.value().data(), wanted.value().data(), 4 * wanted.value().size()) == 0;
    }
    if (!same) fail(name + " differs from the CPU's");
    std::printf("  %s: %s\n", name.c_str(), same ? "equal to the CPU's" : "WRONG");
  }
}

struct BenchShape {
  const char* name;
  int blocks;
  SampleModelShape shape;
};

// The bytes that a decoding step reads of weights and the FLOPs of a prompt's rows.
struct Costs {
  double weight_bytes = 0, row_flops = 0;
};
Costs costs_of(const std::vector<Fragment>& fragments, int64_t rows) {
  Costs costs;
  for (size_t i = 1; i < fragments.size(); ++i) {  // Of the table a row is read, no more.
    const auto cost_of = cost(fragments[i].graph, {.rows = rows, .outputs = 1, .context = rows});
    if (!cost_of.ok()) continue;
    costs.weight_bytes += static_cast<double>(cost_of.value().weight_bytes);
    costs.row_flops += static_cast<double>(cost_of.value().flops) / static_cast<double>(rows);
  }
  return costs;
}

// Seconds of the quickest of `rounds` calls after one that is not counted.
template <class Once>
std::optional<double> quickest(int rounds, const Once& once) {
  double best = 1e9;
  for (int i = 0; i <= rounds; ++i) {
    const Stopwatch watch;
    if (const auto ran = once(); !ran.ok()) {
      fail(ran.error().message);
      return {};
    }
    if (i > 0) best = std::min(best, watch.seconds());
  }
  return best;
}

void bench_model(Device& device, const BenchShape& what, double bytes_per_second) {
  const SampleModel model = make_sample_model(what.shape);
  // One block's random numbers serve all blocks: on the device each has its own.
  std::vector<Fragment> fragments = {model.fragments[0]};
  for (int i = 0; i < what.blocks; ++i) fragments.push_back(model.fragments[1]);
  fragments.push_back(model.fragments[2]);

  constexpr int64_t kPrompt = 2048, kPiece = 512;
  const Stopwatch opening;
  auto stage = Stage::open(device, fragments,
                           {.context = kPrompt + 256, .sequences = 1, .rows_max = kPiece});
  if (!stage.ok()) {
    std::printf("  %-12s %s\n", what.name, stage.error().message.c_str());
    if (stage.error().code != ErrorCode::kNoSpace) fail(stage.error().message);
    return;
  }
  const double open_seconds = opening.seconds();
  const Run run = make_run(kPrompt + 1, what.shape.vocabulary);
  const auto prefill = quickest(1, [&]() -> Result<void> {
    for (int64_t first = 0; first < kPrompt; first += kPiece) {
      const auto made = step(*stage.value(), run, static_cast<size_t>(first), kPiece);
      if (!made.ok()) return made.error();
    }
    return {};
  });
  if (!prefill) return;
  const auto decode_at = [&](size_t position) {
    return quickest(12, [&]() -> Result<void> {
      const auto made = step(*stage.value(), run, position, 1);
      if (!made.ok()) return made.error();
      return {};
    });
  };
  const auto early = decode_at(64), late = decode_at(kPrompt);
  if (!early || !late) return;
  const Costs costs = costs_of(fragments, kPiece);
  std::printf(
      "  %-12s opened in %5.1f s; prompt %8.0f tokens/s, %6.1f TFLOP/s; token at 64: %7.2f ms, "
      "%5.0f GB/s",
      what.name, open_seconds, static_cast<double>(kPrompt) / *prefill,
      costs.row_flops * static_cast<double>(kPrompt) / *prefill * 1e-12, *early * 1e3,
      costs.weight_bytes / *early * 1e-9);
  if (bytes_per_second > 0) {
    std::printf(" (%.0f %% of its memory's)", 100 * costs.weight_bytes / *early / bytes_per_second);
  }
  std::printf("; at %lld: %.2f ms\n", static_cast<long long>(kPrompt), *late * 1e3);
}

// What a step of 32 blocks costs beside kernels that have something to do.
void bench_overhead(Device& device) {
  const SampleModel model = make_sample_model({.width = 32,
                                               .heads = 1,
                                               .kv_heads = 1,
                                               .head_dim = 32,
                                               .inner = 32,
                                               .blocks = 32,
                                               .weights = DType::kQ8_0});
  auto stage = Stage::open(device, model.fragments, {.context = 32, .sequences = 1, .rows_max = 1});
  if (!stage.ok()) return fail(stage.error().message);
  const Run run = make_run(1, 50);
  const auto seconds = quickest(50, [&]() -> Result<void> {
    const auto made = step(*stage.value(), run, 0, 1);
    if (!made.ok()) return made.error();
    return {};
  });
  if (seconds) std::printf("  a step of 32 empty blocks: %.0f us\n", *seconds * 1e6);
}

void bench_copies(Device& device) {
  constexpr int64_t kBytes = int64_t{256} << 20;
  const auto buffer = device.allocate(kBytes);
  if (!buffer.ok()) return fail(buffer.error().message);
  const ByteVector bytes(static_cast<size_t>(kBytes), std::byte{1});
  float last = 0.0f;
  const auto seconds = quickest(2, [&]() -> Result<void> {
    SHOAL_TRY(device.upload(*buffer.value(), 0, bytes));
    return device.download(*buffer.value(), kBytes - 4,
                           std::as_writable_bytes(std::span(&last, 1)));
  });
  if (seconds) std::printf("  upload: %.1f GB/s\n", static_cast<double>(kBytes) / *seconds * 1e-9);
}

double memory_bytes_per_second(const DeviceInfo& info) {
  if (info.plane != "cuda") return 0;
  const auto door = cuda::load_door();
  int number = 0;
  std::from_chars(info.selector.data() + 5, info.selector.data() + info.selector.size(), number);
  cuda::DoorCard card{};
  if (!door.ok() || door.value()->describe(number, &card) != 0) return 0;
  return static_cast<double>(card.bytes_per_second);
}

void bench_device(Device& device) {
  const double bytes_per_second = memory_bytes_per_second(device.info());
  if (bytes_per_second > 0) std::printf("  its memory: %.0f GB/s\n", bytes_per_second * 1e-9);
  bench_copies(device);
  bench_overhead(device);
  const SampleModelShape one{.width = 2048,
                             .heads = 32,
                             .kv_heads = 8,
                             .head_dim = 64,
                             .inner = 8192,
                             .vocabulary = 128256,
                             .blocks = 1};
  const SampleModelShape eight{.width = 4096,
                               .heads = 32,
                               .kv_heads = 8,
                               .head_dim = 128,
                               .inner = 14336,
                               .vocabulary = 128256,
                               .blocks = 1};
  const auto with = [](SampleModelShape shape, DType weights) {
    shape.weights = weights;
    return shape;
  };
  bench_model(device, {"1B q8_0", 16, with(one, DType::kQ8_0)}, bytes_per_second);
  bench_model(device, {"1B q4_k", 16, with(one, DType::kQ4_K)}, bytes_per_second);
  bench_model(device, {"8B q8_0", 32, with(eight, DType::kQ8_0)}, bytes_per_second);
  bench_model(device, {"8B q4_k", 32, with(eight, DType::kQ4_K)}, bytes_per_second);
}

int run(const std::string& what, const std::string& only, int one_of) {
  auto cpu = open_device("cpu", 0);
  if (!cpu.ok()) {
    std::printf("%s\n", cpu.error().message.c_str());
    return 1;
  }
  int devices = 0;
  for (const auto& backend : make_backends()) {
    const std::vector<DeviceInfo> infos = backend->devices();
    if (infos.empty()) {
      std::printf("%s: none: %s\n", std::string(backend->plane()).c_str(),
                  backend->why_none().c_str());
    }
    for (const DeviceInfo& info : infos) {
      if (only.empty() ? info.plane == "cpu" || info.software
                       : only != info.selector && only != info.plane) {
        continue;
      }
      ++devices;
      std::printf("%s: %s, %s, %.1f GB\n", info.selector.c_str(), info.name.c_str(),
                  info.driver.c_str(), static_cast<double>(info.memory_bytes) * 1e-9);
      const auto device = backend->open(info.id, 0);
      if (!device.ok()) {
        fail(device.error().message);
        continue;
      }
      if (what == "ops" || what == "all") check_ops(*device.value(), one_of);
      if (what == "models" || what == "all") check_models(*device.value(), *cpu.value());
      if (what == "bench" || what == "all") bench_device(*device.value());
      std::fflush(stdout);
    }
  }
  if (devices == 0) {
    std::printf("no such device here: nothing was checked\n");
    return only.empty() ? 0 : 1;
  }
  std::printf(failures == 0 ? "nothing is wrong\n" : "%d things are WRONG\n", failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace shoal::compute

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  int one_of = 1;
  if (argc > 3) std::from_chars(argv[3], argv[3] + std::strlen(argv[3]), one_of);
  if ((what != "ops" && what != "models" && what != "bench" && what != "all") || argc > 4 ||
      one_of < 1) {
    std::fputs(
        "usage: device_check ops|models|bench|all [DEVICE [ONE-OF]]\n"
        "Checks and measures each card here, or DEVICE (cuda, vulkan:0, cpu, ...). Of an op's\n"
        "samples every ONE-OF-th is run.\n",
        stderr);
    return 2;
  }
  return shoal::compute::run(what, argc > 2 ? argv[2] : "", one_of);
}
