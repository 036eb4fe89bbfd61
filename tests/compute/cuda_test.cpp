// Goal: the CUDA plane computes the reference's bits and handles its card with care, although no
// card is here. Method: its kernels run as C++ on the shim, threads in random order; the shim's own
// faults are planted and must be found. What a card alone can show is tests/device/run.

#include <QFile>
#include <QRegularExpression>
#include <QSet>
#include <QTest>

#include <map>

#include "compute/backends/cpu/cpu_backend.h"
#include "compute/backends/cuda/cuda_backend.h"
#include "compute/backends/cuda/kernel.h"
#include "compute/backends/cuda/shim_door.h"
#include "compute/compute.h"
#include "compute/sample_check.h"
#include "compute/sample_model.h"

namespace shoal::compute::cuda {

namespace {

constexpr uint kThreads = 64;

Result<void> run(void (*kernel)(float*), float* memory, uint64_t seed = 1, uint32_t blocks = 1) {
  return simt::run_grid({blocks, 1, 1}, kThreads, seed, [&] { kernel(memory); });
}

// Each thread takes its left neighbour's number.
template <bool kBarrier>
void take_from_neighbour(float* memory) {
  SHOAL_SHARED(float, numbers, kThreads);
  numbers[threadIdx.x] = static_cast<float>(threadIdx.x);
  if (kBarrier) __syncthreads();
  memory[threadIdx.x] = numbers[(threadIdx.x + kThreads - 1) % kThreads];
}

// A second round writes what others may still be reading of the first.
template <bool kBarrier>
void two_rounds(float* memory) {
  SHOAL_SHARED(float, numbers, kThreads);
  float sum = 0.0f;
  for (int round = 0; round < 2; ++round) {
    numbers[threadIdx.x] = static_cast<float>(round);
    __syncthreads();
    sum += numbers[(threadIdx.x + 1) % kThreads];
    if (kBarrier) __syncthreads();
  }
  memory[threadIdx.x] = sum;
}

// All add to one number: each step may lose another's.
void add_together(float* memory) {
  SHOAL_SHARED(float, total, 1);
  if (threadIdx.x == 0) total[0] = 0.0f;
  __syncthreads();
  total[0] += 1.0f;
  __syncthreads();
  if (threadIdx.x == 0) memory[0] = total[0];
}

void last_one_wins(float* memory) { memory[0] = static_cast<float>(threadIdx.x); }

void block_relies_on_another(float* memory) {
  if (threadIdx.x == 0) memory[blockIdx.x] = blockIdx.x == 0 ? 1.0f : memory[blockIdx.x - 1] + 1.0f;
}

void half_of_them_wait(float* memory) {
  if (threadIdx.x < kThreads / 2) __syncthreads();
  memory[threadIdx.x] = 0.0f;
}

void reads_what_nobody_wrote(float* memory) {
  SHOAL_SHARED(float, numbers, kThreads);
  if (threadIdx.x != 5) numbers[threadIdx.x] = 1.0f;
  __syncthreads();
  memory[threadIdx.x] = numbers[threadIdx.x];
}

void writes_beyond(float*) {
  SHOAL_SHARED(float, numbers, kThreads);
  numbers[threadIdx.x + 1] = 1.0f;
}

// A warp's own barrier is enough within a warp, and not between two.
template <uint kDistance>
void within_a_warp(float* memory) {
  SHOAL_SHARED(float, numbers, kThreads);
  numbers[threadIdx.x] = static_cast<float>(threadIdx.x);
  __syncwarp();
  memory[threadIdx.x] = numbers[(threadIdx.x + kDistance) % kThreads];
}

void a_lane_stays_away(float* memory) {
  float x = static_cast<float>(threadIdx.x);
  if (threadIdx.x != 3) x = __shfl_xor_sync(kAllLanes, x, 1);
  memory[threadIdx.x] = x;
}

std::unique_ptr<Device> open_shim(const ShimOptions& options = {}) {
  set_shim_options(options);
  auto device = make_cuda_backend(shim_door())->open("cuda:0", 0);
  SHOAL_CHECK(device.ok());
  return std::move(device.value());
}

}  // namespace

class CudaTest : public QObject {
  Q_OBJECT

 private:
  static void must_fail(const Result<void>& ran, const char* part) {
    QVERIFY(!ran.ok());
    QVERIFY2(ran.error().message.find(part) != std::string::npos, ran.error().message.c_str());
  }

 private Q_SLOTS:
  void the_shim_finds_missing_barriers_and_races() {
    float memory[kThreads];
    for (uint64_t seed = 0; seed < 4; ++seed) {
      QVERIFY(run(take_from_neighbour<true>, memory, seed).ok());
      for (uint i = 0; i < kThreads; ++i) QCOMPARE(memory[i], float((i + kThreads - 1) % kThreads));
      must_fail(run(take_from_neighbour<false>, memory, seed), "");
      QVERIFY(run(two_rounds<true>, memory, seed).ok());
      must_fail(run(two_rounds<false>, memory, seed), "with no barrier between");
      must_fail(run(add_together, memory, seed), "with no barrier between");
      QVERIFY(run(within_a_warp<0>, memory, seed).ok());
      must_fail(run(within_a_warp<kWarp>, memory, seed), "");
    }
  }

  void the_shim_finds_what_is_read_or_written_wrongly() {
    float memory[kThreads];
    must_fail(run(reads_what_nobody_wrote, memory), "thread 5 reads element 5");
    must_fail(run(writes_beyond, memory), "beyond its end");
  }

  void the_shim_finds_threads_that_wait_for_ever() {
    float memory[kThreads];
    must_fail(run(half_of_them_wait, memory), "waits at line");
    must_fail(run(a_lane_stays_away, memory), "waits at line");
    must_fail(simt::run_grid({1, 1, 1}, 33, 1, [] {}), "33 threads");
    must_fail(simt::run_grid({1, 65536, 1}, 32, 1, [] {}), "65536");
  }

  // Where memory of the card is raced for, another order gives another result.
  void the_order_of_threads_and_blocks_is_drawn() {
    std::map<float, int> winners;
    float memory[kThreads] = {};
    for (uint64_t seed = 0; seed < 32; ++seed) {
      QVERIFY(run(last_one_wins, memory, seed).ok());
      ++winners[memory[0]];
    }
    QVERIFY(winners.size() > 8);
    std::fill_n(memory, kThreads, 0.0f);
    QVERIFY(run(block_relies_on_another, memory, 0, 3).ok());
    QCOMPARE(memory[2], 3.0f);
    std::fill_n(memory, kThreads, 0.0f);
    QVERIFY(run(block_relies_on_another, memory, 1, 3).ok());
    QCOMPARE(memory[2], 1.0f);
  }

  void a_warp_product_is_the_product_of_matrices() {
    int8_t a[16][16], b[16][8];
    uint32_t state = 7;
    const auto draw = [&state] {
      state = state * 1664525u + 1013904223u;
      return static_cast<int8_t>(state >> 24);
    };
    for (auto& row : a) std::generate_n(row, 16, draw);
    for (auto& row : b) std::generate_n(row, 8, draw);
    int got[16][8] = {};
    const auto ran = simt::run_grid({1, 1, 1}, kWarp, 3, [&] {
      const uint g = threadIdx.x / 4, t = threadIdx.x % 4;
      const auto four = [&](const auto& at) {
        uint word = 0;
        for (uint i = 0; i < 4; ++i) word |= uint{static_cast<uint8_t>(at(4 * t + i))} << (8 * i);
        return word;
      };
      int c[4] = {1, 2, 3, 4};
      warp_product(c, four([&](uint k) { return a[g][k]; }),
                   four([&](uint k) { return a[g + 8][k]; }),
                   four([&](uint k) { return b[k][g]; }));
      for (uint i = 0; i < 4; ++i) got[g + i / 2 * 8][2 * t + i % 2] = c[i] - int(i + 1);
    });
    QVERIFY(ran.ok());
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 8; ++column) {
        int wanted = 0;
        for (int k = 0; k < 16; ++k) wanted += a[row][k] * b[k][column];
        QCOMPARE(got[row][column], wanted);
      }
    }
  }

  // As for Vulkan's shaders: what a compiler or driver may round as it likes must not be there at
  // all.
  void the_plugin_holds_only_exact_arithmetic() {
#ifdef SHOAL_CUDA_FILE
    QFile file(SHOAL_CUDA_FILE);
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QString code = QString::fromLatin1(file.readAll());
    if (!code.contains("mul.rn.f32")) QSKIP("the plug-in's intermediate code is compressed");
    static const QRegularExpression kFloatWords(
        R"(\b([a-z][a-z0-9]*(?:\.[a-z0-9]+)*\.(?:f16|f32|f64|f16x2|bf16)(?:\.[a-z0-9]+)*)\b)");
    const QSet<QString> exact = {"add.rn.f32", "sub.rn.f32", "mul.rn.f32"};
    std::map<QString, int> counts;
    for (auto match = kFloatWords.globalMatch(code); match.hasNext();) {
      const QString word = match.next().captured(1);
      // Moves, comparisons, integers of less than 2^24 to floats, and the number of an expert.
      static const QRegularExpression kHarmless(
          R"(^(mov|ld|st|selp|setp|shfl|neg|cvt\.rn\.f32\.[su](8|16|32)$|cvt\.rzi\.u32\.f32$|cvta|\.)[.a-z0-9]*)");
      if (!kHarmless.match(word).hasMatch()) ++counts[word];
    }
    for (const auto& [word, count] : counts) {
      QVERIFY2(exact.contains(word), qPrintable(word + " stands in the plug-in"));
    }
    QVERIFY(counts["mul.rn.f32"] > 1000 && counts["add.rn.f32"] > 1000);
    QVERIFY(!code.contains(".ftz"));
#else
    QSKIP("this build has no CUDA plug-in");
#endif
  }

  void every_op_gives_the_references_bits_data() {
    QTest::addColumn<quint64>("seed");
    QTest::newRow("seed 1, blocks backwards") << quint64{1};
    QTest::newRow("seed 2, blocks forwards") << quint64{2};
  }
  void every_op_gives_the_references_bits() {
    QFETCH(quint64, seed);
    const auto device = open_shim({.seed = seed});
    for (const OpSpec& spec : op_list()) {
      int number = 0;
      for (const OpSample& sample : spec.samples()) {
        // All once; with the second seed one of three, as time is short.
        if (++number % 3 != 0 && seed != 1) continue;
        const std::string name = std::string(op_name(spec.kind)) + " " +
                                 std::string(dtype_name(sample.variant)) + " (" + sample.label +
                                 "): ";
        QVERIFY2(device->supports(spec.kind, sample.variant), name.c_str());
        const auto difference = compare_sample(*device, spec, sample);
        QVERIFY2(difference.ok(),
                 (name + (difference.ok() ? "" : difference.error().message)).c_str());
        QVERIFY2(difference.value().empty(), (name + difference.value()).c_str());
      }
    }
  }

  // What attention leaves for its second kernel may not fit; then that does all of it.
  void attention_gives_the_same_bits_without_scratch_memory() {
    const auto device = open_shim({.scratch_bytes = 256});
    for (const OpSample& sample : op_spec(OpKind::kAttention).samples()) {
      const auto difference = compare_sample(*device, op_spec(OpKind::kAttention), sample);
      QVERIFY2(difference.ok(), difference.ok() ? "" : difference.error().message.c_str());
      QVERIFY2(difference.value().empty(), (sample.label + ": " + difference.value()).c_str());
    }
  }

  // Decoding steps come as the same calls, which become a graph.
  void a_model_gives_the_same_bits_as_on_the_cpu() {
    const SampleModel model = make_sample_model({.weights = DType::kQ4_0});
    const auto shim = open_shim();
    const auto cpu = make_cpu_backend()->open("cpu", 1);
    QVERIFY(cpu.ok());
    const StageOptions options{.context = 40, .sequences = 1, .rows_max = 36};
    auto on_shim = Stage::open(*shim, model.fragments, options);
    auto on_cpu = Stage::open(*cpu.value(), model.fragments, options);
    QVERIFY2(on_shim.ok(), on_shim.ok() ? "" : on_shim.error().message.c_str());
    QVERIFY(on_cpu.ok());
    std::vector<RowInfo> rows;
    std::vector<int32_t> tokens;
    for (uint32_t i = 0; i < 40; ++i) {
      rows.push_back({0, i});
      tokens.push_back(static_cast<int32_t>((7 * i + 3) % 50));
    }
    const auto step = [&](Stage& stage, size_t first, size_t count) {
      const uint32_t last = static_cast<uint32_t>(count) - 1;
      auto output = stage.step({.rows = std::span(rows).subspan(first, count),
                                .tokens = std::span(tokens).subspan(first, count),
                                .output_rows = std::span(&last, 1)});
      return output.ok() ? output.value() : std::vector<float>{};
    };
    const std::pair<size_t, size_t> steps[] = {{0, 36}, {36, 1}, {37, 1}, {38, 1}, {39, 1}};
    for (const auto& [first, count] : steps) {
      const std::vector<float> wanted = step(*on_cpu.value(), first, count);
      const std::vector<float> got = step(*on_shim.value(), first, count);
      QVERIFY(!wanted.empty() && got.size() == wanted.size());
      QVERIFY(std::memcmp(got.data(), wanted.data(), 4 * got.size()) == 0);
    }
    QCOMPARE(shim_counts().graphs_kept, 1);
    QCOMPARE(shim_counts().graphs_again, 2);
  }

  void what_does_not_fit_is_refused_with_figures() {
    const auto device = open_shim({.memory_bytes = 4096});
    const auto first = device->allocate(3072);
    QVERIFY(first.ok());
    const auto second = device->allocate(1040);
    QVERIFY(!second.ok());
    QCOMPARE(second.error().code, ErrorCode::kNoSpace);
    QCOMPARE(
        second.error().message,
        std::string(
            "cuda:0: allocating: out of memory; 1040 bytes are wanted, 1024 of 4096 are free"));
    QVERIFY(device->allocate(1024).ok());
    QVERIFY(!device->allocate(0).ok());
  }

  void a_lost_card_is_said_to_be_lost_ever_after() {
    {
      const auto device = open_shim({.lost_after_runs = 1});
      const auto buffer = device->allocate(1024);
      QVERIFY(buffer.ok());
      OpCall call{.kind = OpKind::kScale};
      call.set_params(ScaleParams{1, 256, 2.0f});
      call.buffers = {{buffer.value().get(), 0, 1024}, {buffer.value().get(), 0, 1024}};
      QVERIFY(device->run(std::span(&call, 1)).ok());
      for (int i = 0; i < 2; ++i) {
        const auto ran = device->run(std::span(&call, 1));
        QVERIFY(!ran.ok());
        QCOMPARE(ran.error().code, ErrorCode::kUnavailable);
      }
      QCOMPARE(shim_counts().runs, 2);  // What is lost is not asked again.
      QVERIFY(!device->allocate(16).ok());
      float number = 0.0f;
      QVERIFY(!device->download(*buffer.value(), 0, std::as_writable_bytes(std::span(&number, 1)))
                   .ok());
    }
    QCOMPARE(shim_counts().allocations, 0);
    QCOMPARE(shim_counts().open_sessions, 0);
  }

  void a_card_is_described_and_found_by_both_names() {
    set_shim_options({});
    auto backend = make_cuda_backend(shim_door());
    const auto devices = backend->devices();
    QCOMPARE(devices.size(), size_t{1});
    QCOMPARE(devices[0].id, std::string("cuda:00000000000000000000000000000001"));
    QVERIFY(backend->open(devices[0].id, 0).ok());
    QCOMPARE(backend->open("cuda:1", 0).error().code, ErrorCode::kNotFound);
  }

  // No test may fail for a machine that has a card, so this holds either way.
  void what_is_missing_here_has_a_reason() {
    auto backend = make_cuda_backend();
    if (!backend->devices().empty()) QSKIP("this machine has a card: tests/device/run");
    QVERIFY(!backend->why_none().empty());
    QVERIFY(backend->why_none().find("not asked") == std::string::npos);
    QVERIFY(!backend->open("cuda:0", 0).ok());
    const auto opened = open_device("cuda", 0);
    QVERIFY(!opened.ok());
    QCOMPARE(opened.error().code, ErrorCode::kUnavailable);
  }
};

}  // namespace shoal::compute::cuda

QTEST_GUILESS_MAIN(shoal::compute::cuda::CudaTest)
#include "cuda_test.moc"
