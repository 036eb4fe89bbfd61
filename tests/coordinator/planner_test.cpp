// Goal: plans are the best ones, keep every rule, and a refusal names what is in the way. Method:
// small seeded cases against every assignment there is; the rules from both sides.

#include <QTest>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "base/random.h"
#include "coordinator/work/failover.h"
#include "coordinator/work/manifest.h"
#include "coordinator/work/planner.h"
#include "coordinator/work/session_figures.h"
#include "coordinator/work/step_fit.h"
#include "tests/coordinator/toy_model.h"

using namespace shoal;

namespace {

FragmentCost fragment(int64_t weights, int64_t state = 0, int64_t workspace = 0) {
  return {Bytes{weights}, Flops{0}, Bytes{state}, Bytes{workspace}};
}

PlanDevice device(int64_t memory, double bytes_per_second = 1e6, bool trusted = false) {
  PlanDevice out;
  out.trusted = trusted;
  out.exact = true;
  out.memory_free = Bytes{memory};
  out.weight_bytes_per_second = bytes_per_second;
  return out;
}

// The least cost over every assignment of ranges to different devices; infinity when there is none.
double brute_force(const PlanRequest& request, std::span<const PlanDevice> devices) {
  double least = std::numeric_limits<double>::infinity();
  std::vector<PlanStage> stages;
  std::vector<bool> used(devices.size());
  const auto count = static_cast<int64_t>(request.fragments.size());
  const std::function<void(int64_t)> extend = [&](int64_t done) {
    if (done == count) {
      std::vector<int64_t> starts;
      for (const PlanStage& stage : stages) {
        if (stage.first_fragment != 0) starts.push_back(stage.first_fragment);
      }
      if (!request.cuts.empty() && starts != request.cuts) return;
      if (request.cuts.empty() && static_cast<int64_t>(stages.size()) < request.stages_min) return;
      least = std::min(least, plan_cost(request, devices, stages));
      return;
    }
    for (size_t d = 0; d < devices.size(); ++d) {
      if (used[d] || (request.exact && !devices[d].exact)) continue;
      for (int64_t last = done; last < count; ++last) {
        if (request.anchored && !devices[d].trusted && (done == 0 || last + 1 == count)) continue;
        const auto range = request.fragments.subspan(static_cast<size_t>(done),
                                                     static_cast<size_t>(last - done + 1));
        if (stage_memory(range, request.context, request.rows_max) > devices[d].memory_free)
          continue;
        used[d] = true;
        stages.push_back({d, done, last});
        extend(last + 1);
        stages.pop_back();
        used[d] = false;
      }
    }
  };
  extend(0);
  return least;
}

// The rules that every plan keeps.
void check_rules(const PlanRequest& request, std::span<const PlanDevice> devices,
                 const Plan& plan) {
  int64_t next = 0;
  std::set<size_t> used;
  for (const PlanStage& stage : plan.stages) {
    QCOMPARE(stage.first_fragment, next);
    QVERIFY(stage.last_fragment >= stage.first_fragment);
    next = stage.last_fragment + 1;
    QVERIFY(used.insert(stage.device).second);
    QVERIFY(devices[stage.device].exact || !request.exact);
  }
  QCOMPARE(next, static_cast<int64_t>(request.fragments.size()));
  if (request.anchored) {
    QVERIFY(devices[plan.stages.front().device].trusted);
    QVERIFY(devices[plan.stages.back().device].trusted);
  }
}

}  // namespace

class PlannerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void finds_what_brute_force_finds();
  void is_within_a_tenth_of_brute_force_for_latency_and_throughput();
  void many_devices_are_planned_in_time_and_within_the_rules();
  void does_not_split_what_fits_one();
  void leaves_weak_devices_out();
  void splits_evenly_when_nothing_else_matters();
  void fixed_costs_and_links_count();
  void throughput_takes_no_more_stages_than_it_gains_by();
  void a_prompt_goes_in_blocks_that_suit_its_stages();
  void what_was_predicted_stands_beside_what_was_measured();
  void steps_tell_how_fast_a_device_is();
  void a_plan_says_why();
  void counts_caches_and_workspace();
  void says_what_is_in_the_way();
  void one_trusted_device_may_hold_both_ends();
  void owners_are_heard();
  void owners_that_leave_one_by_one_make_no_plan_long();
  void a_replacement_is_chosen_in_order();
  void a_replacement_stays_as_long_as_it_is_needed();
  void times_have_both_bounds();
  void manifests_are_read_as_hostile_input();
};

void PlannerTest::finds_what_brute_force_finds() {
  int plans = 0, refusals = 0, anchored_by_twins = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    const QByteArray replay = "replay with seed " + QByteArray::number(qulonglong(seed));
    std::vector<FragmentCost> fragments;
    for (uint64_t i = 0; i < 2 + random.below(5); ++i) {
      fragments.push_back(fragment(static_cast<int64_t>(10 + random.below(90)),
                                   static_cast<int64_t>(random.below(3)),
                                   static_cast<int64_t>(random.below(5))));
    }
    std::vector<PlanDevice> devices;
    for (uint64_t i = 0; i < 1 + random.below(5); ++i) {
      PlanDevice next = device(static_cast<int64_t>(20 + random.below(220)),
                               1e6 * (1 + random.uniform() * 9), random.below(2) == 0);
      next.exact = random.below(6) != 0;
      next.hop_seconds = random.uniform() * 2e-5;
      next.sessions = static_cast<int>(random.below(2));
      devices.push_back(next);
    }
    PlanRequest request;
    request.fragments = fragments;
    request.context = static_cast<int64_t>(random.below(10));
    request.rows_max = 2;
    request.stages_min = 2 + static_cast<int64_t>(random.below(2));
    request.anchored = random.below(3) == 0;
    if (random.below(4) == 0)
      request.cuts = {static_cast<int64_t>(1 + random.below(fragments.size() - 1))};
    if (request.stages_min > static_cast<int64_t>(fragments.size())) request.stages_min = 2;

    const double best = brute_force(request, devices);
    const Result<Plan> plan = plan_session(request, devices);
    if (std::isinf(best)) {
      if (plan.ok() && request.anchored) {
        ++anchored_by_twins;
        continue;
      }
      QVERIFY2(!plan.ok(), replay);
      QCOMPARE(plan.error().code, ErrorCode::kUnavailable);
      ++refusals;
      continue;
    }
    QVERIFY2(plan.ok(), replay + ": " + (plan.ok() ? "" : plan.error().message.c_str()));
    check_rules(request, devices, plan.value());
    const double cost = plan_cost(request, devices, plan.value().stages);
    QVERIFY2(std::abs(cost - best) <= 1e-9 * best, replay);
    ++plans;
  }
  QVERIFY(plans > 100 && refusals > 50);
}

// A thousand cases of up to eight devices with fixed costs, rates, links and rows of several texts.
void PlannerTest::is_within_a_tenth_of_brute_force_for_latency_and_throughput() {
  int plans = 0, refusals = 0;
  double worst = 1;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Random random(seed);
    const QByteArray replay = "replay with seed " + QByteArray::number(qulonglong(seed));
    // Brute force tries every order of the devices: of many, on fewer fragments.
    const uint64_t device_count = 1 + random.below(8);
    const uint64_t fragment_count = 2 + random.below(device_count > 5 ? 3 : 5);
    std::vector<FragmentCost> fragments;
    for (uint64_t i = 0; i < fragment_count; ++i) {
      fragments.push_back(fragment(static_cast<int64_t>(10 + random.below(90)),
                                   static_cast<int64_t>(random.below(3)),
                                   static_cast<int64_t>(random.below(5))));
      fragments.back().flops_per_row = Flops{static_cast<int64_t>(random.below(200))};
    }
    std::vector<PlanDevice> devices;
    for (uint64_t i = 0; i < device_count; ++i) {
      PlanDevice next =
          device(static_cast<int64_t>(20 + random.below(220)), 1e6 * (1 + random.uniform() * 9));
      next.flops_per_second = 1e6 * (1 + random.uniform() * 9);
      next.fixed_seconds = random.uniform() * 2e-5;
      next.hop_seconds = random.uniform() * 2e-5;
      next.link_bytes_per_second = random.below(4) == 0 ? 0 : 1e6 * (1 + random.uniform() * 9);
      devices.push_back(next);
    }
    PlanRequest request;
    request.fragments = fragments;
    request.width = static_cast<int64_t>(1 + random.below(20));
    request.rows_max = 2;
    request.stages_min = 2;
    request.objective = seed % 2 == 0 ? PlanObjective::kLatency : PlanObjective::kThroughput;
    request.streams = static_cast<int64_t>(1 + random.below(8));
    const double best = brute_force(request, devices);
    const Result<Plan> plan = plan_session(request, devices);
    if (std::isinf(best)) {
      QVERIFY2(!plan.ok(), replay);
      ++refusals;
      continue;
    }
    QVERIFY2(plan.ok(), replay);
    check_rules(request, devices, plan.value());
    const double cost = plan_cost(request, devices, plan.value().stages);
    QVERIFY2(cost >= best * (1 - 1e-9), replay);
    QVERIFY2(cost <= best * 1.1 + 1e-12, replay);
    worst = std::max(worst, cost / best);
    ++plans;
  }
  qInfo("%d plans, %d refusals, the worst plan costs %.4f of the best", plans, refusals, worst);
  QVERIFY(plans > 400 && refusals > 100);
}

void PlannerTest::many_devices_are_planned_in_time_and_within_the_rules() {
  Random random(5);
  std::vector<FragmentCost> fragments(80, fragment(1000));
  std::vector<PlanDevice> devices;
  for (int i = 0; i < 200; ++i) {
    PlanDevice next = device(static_cast<int64_t>(2000 + random.below(8000)),
                             1e6 * (1 + random.uniform() * 9), i % 50 == 7);
    next.hop_seconds = 1e-4 + random.uniform() * 1e-3;
    devices.push_back(next);
  }
  for (const bool anchored : {false, true}) {
    PlanRequest request;
    request.fragments = fragments;
    request.anchored = anchored;
    const Result<Plan> plan = plan_session(request, devices);
    QVERIFY(plan.ok());
    check_rules(request, devices, plan.value());
    QVERIFY(plan.value().stages.size() >= 9);
    // Sane: not above twice what the best devices would take if nothing were in the way.
    QVERIFY(plan.value().seconds_per_token < 2 * (80'000 / 9e6 + 10 * 4e-4));
  }
}

void PlannerTest::does_not_split_what_fits_one() {
  const std::vector<FragmentCost> fragments(4, fragment(100));
  PlanRequest request;
  request.fragments = fragments;
  // Two halves on fast devices would be quicker than the whole on the slow one; it is not split.
  const std::vector<PlanDevice> devices = {device(399, 1e9), device(399, 1e9), device(400, 1e6),
                                           device(400, 2e6)};
  const Result<Plan> plan = plan_session(request, devices);
  QVERIFY(plan.ok());
  QCOMPARE(plan.value().stages.size(), size_t{1});
  QCOMPARE(plan.value().stages[0].device, size_t{3});
  // A byte less, and it must be split.
  const Result<Plan> split = plan_session(request, std::span(devices).first(2));
  QVERIFY(split.ok());
  QCOMPARE(split.value().stages.size(), size_t{2});
}

void PlannerTest::leaves_weak_devices_out() {
  const std::vector<FragmentCost> fragments(6, fragment(100));
  PlanRequest request;
  request.fragments = fragments;
  std::vector<PlanDevice> devices = {device(300, 1e6), device(300, 1e6), device(300, 1e3),
                                     device(300, 1e6)};
  devices[3].hop_seconds = 10;
  const Result<Plan> plan = plan_session(request, devices);
  QVERIFY(plan.ok());
  QCOMPARE(plan.value().stages.size(), size_t{2});
  for (const PlanStage& stage : plan.value().stages) QVERIFY(stage.device < 2);
}

void PlannerTest::splits_evenly_when_nothing_else_matters() {
  const std::vector<FragmentCost> fragments(9, fragment(100));
  PlanRequest request;
  request.fragments = fragments;
  request.stages_min = 3;
  std::vector<PlanDevice> devices(3, device(10'000));
  devices[1].hop_seconds = 2e-3;  // The way to a host is no reason to give it less.
  const Result<Plan> plan = plan_session(request, devices);
  QVERIFY(plan.ok());
  QCOMPARE(plan.value().stages.size(), size_t{3});
  for (const PlanStage& stage : plan.value().stages)
    QCOMPARE(stage.last_fragment - stage.first_fragment, int64_t{2});
}

void PlannerTest::fixed_costs_and_links_count() {
  const std::vector<FragmentCost> fragments(2, fragment(1'000'000));
  std::vector<PlanDevice> devices(2, device(1'000'000));
  devices[0].fixed_seconds = 0.25;
  devices[0].sessions = 1;
  // max(weights, operations) and the fixed cost, for each of two sessions.
  QCOMPARE(stage_seconds(std::span(fragments).first(1), devices[0], 1), 2 * 1.25);
  PlanRequest request;
  request.fragments = fragments;
  request.width = 500;
  devices[0].sessions = 0;
  QCOMPARE(plan_session(request, devices).value().seconds_per_token, 1.25 + 1.0);
  // Each of the two stages sends or receives a row of 500 values of 4 bytes.
  for (PlanDevice& one : devices) one.link_bytes_per_second = 1000;
  QCOMPARE(plan_session(request, devices).value().seconds_per_token, 1.25 + 1.0 + 2 * 2.0);
  // One stage sends no rows at all.
  devices[1].memory_free = Bytes{2'000'000};
  QCOMPARE(plan_session(request, devices).value().seconds_per_token, 2.0);
}

// Twelve fragments on devices of which two suffice by memory.
// Goal: blocks are as large as a step may be where nothing is won by small ones, and smaller where
// other stages would wait for the first one; each limit from both sides.
void PlannerTest::a_prompt_goes_in_blocks_that_suit_its_stages() {
  std::vector<FragmentCost> fragments = {fragment(1'000), fragment(1'000)};
  for (FragmentCost& one : fragments) one.flops_per_row = Flops{10'000};
  PlanRequest request;
  request.fragments = fragments;
  request.rows_max = 64;
  request.prompt_rows = 512;
  // A millisecond reads a fragment's weights; 10 ms compute a row of it.
  std::vector<PlanDevice> devices = {device(10'000'000), device(10'000'000)};
  for (PlanDevice& one : devices) one.flops_per_second = 1e6;
  const std::vector<PlanStage> one = {{0, 0, 1}};
  const std::vector<PlanStage> two = {{0, 0, 0}, {1, 1, 1}};
  const std::vector<PlanStage> twins = {{0, 0, 0}, {0, 1, 1}};
  // One device works all the time whatever the blocks: in as few steps as can be.
  QCOMPARE(plan_prefill(request, devices, one).rows, int64_t{64});
  QCOMPARE(plan_prefill(request, devices, one).seconds, 512 * 0.02);
  // Two share the work, and the second waits for its first block.
  const PrefillPlan shared = plan_prefill(request, devices, two);
  QVERIFY2(shared.rows > 2 && shared.rows < 16, qPrintable(QString::number(shared.rows)));
  QVERIFY(shared.seconds < 512 * 0.01 * 1.04 && shared.seconds > 512 * 0.01);
  // One that holds both ends has nobody to share with.
  QVERIFY(plan_prefill(request, devices, twins).seconds > 512 * 0.02 * 0.999);
  // A long way makes blocks large, and so do weights that take long to read.
  for (PlanDevice& device : devices) device.hop_seconds = 0.2;
  QVERIFY(plan_prefill(request, devices, two).rows > shared.rows);
  for (PlanDevice& device : devices) {
    device.hop_seconds = 0;
    device.weight_bytes_per_second = 1'000 / 0.3;
  }
  const PrefillPlan reading = plan_prefill(request, devices, two);
  QVERIFY(reading.rows >= 30);
  // Never more than a step may have, nor than there is; and never none.
  request.rows_max = 5;
  QCOMPARE(plan_prefill(request, devices, two).rows, int64_t{5});
  request.rows_max = 64;
  request.prompt_rows = 3;
  QCOMPARE(plan_prefill(request, devices, two).rows, int64_t{3});
  request.prompt_rows = 0;
  QCOMPARE(plan_prefill(request, devices, two).rows, int64_t{1});
  QCOMPARE(plan_prefill(request, devices, two).seconds, 0.0);
}

void PlannerTest::throughput_takes_no_more_stages_than_it_gains_by() {
  const std::vector<FragmentCost> fragments(12, fragment(100));
  PlanRequest request;
  request.fragments = fragments;
  request.objective = PlanObjective::kThroughput;
  const auto stages = [&](const std::vector<PlanDevice>& devices) {
    return plan_session(request, devices).value().stages.size();
  };
  // The slowest stage falls from 6 to 4 to 3 fragments.
  std::vector<PlanDevice> devices(4, device(700));
  QCOMPARE(stages({devices[0], devices[1], devices[2]}), size_t{3});
  QCOMPARE(stages(devices), size_t{4});
  // Long ways are hidden by other texts, and do not count.
  devices[3].hop_seconds = 100;
  QCOMPARE(stages(devices), size_t{4});
  // A device that could take one fragment in the time of five wins less than a tenth.
  devices = std::vector<PlanDevice>(2, device(700));
  devices.push_back(device(700, 1e6 / 5.5));
  QCOMPARE(stages(devices), size_t{2});
  // Latency does not want a third device: it adds a way and computes no faster.
  request.objective = PlanObjective::kLatency;
  devices = std::vector<PlanDevice>(4, device(700));
  for (PlanDevice& one : devices) one.hop_seconds = 1e-3;
  QCOMPARE(stages(devices), size_t{2});
  // The rates are those of the slowest stage, and of eight texts that step together.
  request.objective = PlanObjective::kThroughput;
  request.streams = 8;
  const Plan plan = plan_session(request, devices).value();
  QCOMPARE(plan.tokens_per_second, 8 / (300 / 1e6));
}

// Goal: each number means what its comment says.
void PlannerTest::what_was_predicted_stands_beside_what_was_measured() {
  std::vector<FragmentCost> fragments = {fragment(1'000'000), fragment(3'000'000)};
  PlanRequest request;
  request.fragments = fragments;
  request.rows_max = 4;
  request.prompt_rows = 10;
  request.tokens = 5;
  request.cuts = {1};
  std::vector<PlanDevice> devices = {device(10'000'000), device(10'000'000)};
  for (PlanDevice& one : devices) one.hop_seconds = 0.25;
  const Plan plan = plan_session(request, devices).value();
  SessionFigures figures = predict_session(request, devices, plan);
  QCOMPARE(figures.block_rows, plan.prefill.rows);
  QCOMPARE(figures.predicted.prefill_seconds, plan.prefill.seconds);
  QCOMPARE(figures.predicted.tokens_per_second, 1 / (1.25 + 3.25));
  QCOMPARE(figures.predicted.stages.size(), size_t{2});
  QCOMPARE(figures.predicted.stages[0].row_seconds, 1.25);
  QCOMPARE(figures.predicted.stages[1].row_seconds, 3.25);
  QCOMPARE(figures.predicted.stages[1].block_seconds, 3.25);  // Reading takes longer than counting.
  QCOMPARE(figures.predicted.stages[1].hop_seconds, 0.25);
  QCOMPARE(figures.measured.stages.size(), size_t{2});
  // The mean of what was seen of each kind; a block's rest is neither.
  StageTimes& seen = figures.measured.stages[0];
  note_step(seen, 4, 4, 2.0);
  note_step(seen, 4, 4, 4.0);
  note_step(seen, 2, 4, 100.0);
  note_step(seen, 1, 4, 1.0);
  QCOMPARE(seen.block_seconds, 3.0);
  QCOMPARE(seen.block_steps, int64_t{2});
  QCOMPARE(seen.row_seconds, 1.0);
  QCOMPARE(seen.row_steps, int64_t{1});
  note_step(seen, 1, 1, 2.0);  // Where a block is one row, a step is both.
  QCOMPARE(seen.row_seconds, 1.5);
  QCOMPARE(seen.block_steps, int64_t{3});
}

// docs/SOURCES.md 2: median error at most 15 %, nine in ten at most 30 %. Devices say of themselves
// what is wrong by up to a factor of two, and nothing of their fixed cost; one step in fifty
// stalls.
void PlannerTest::steps_tell_how_fast_a_device_is() {
  std::vector<double> errors, errors_before;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    const StepFactors truth{1e11 * (1 + 9 * random.uniform()), 1e13 * (1 + 9 * random.uniform()),
                            2e-3 * random.uniform()};
    const auto wrong = [&] { return std::pow(2.0, 2 * random.uniform() - 1); };
    const StepFactors reported{truth.weight_bytes_per_second * wrong(),
                               truth.flops_per_second * wrong(), 0};
    StepFit fit(reported);
    const auto step = [&] {
      StepSample sample;
      const double blocks = 1 + static_cast<double>(random.below(12));
      const double rows = random.below(10) < 7 ? 1 : 256 + static_cast<double>(random.below(768));
      sample.weight_bytes = blocks * 4e8;
      sample.flops = blocks * 4e8 * rows;
      sample.seconds = step_seconds(truth, sample.weight_bytes, sample.flops);
      return sample;
    };
    for (int i = 0; i < 300; ++i) {
      StepSample sample = step();
      sample.seconds *= 0.9 + 0.2 * random.uniform();
      if (random.below(50) == 0) sample.seconds *= 20;
      fit.add(sample);
    }
    for (int i = 0; i < 50; ++i) {
      const StepSample sample = step();
      const auto error = [&](const StepFactors& factors) {
        return std::abs(step_seconds(factors, sample.weight_bytes, sample.flops) / sample.seconds -
                        1);
      };
      errors.push_back(error(fit.factors()));
      errors_before.push_back(error(reported));
    }
  }
  std::ranges::sort(errors);
  std::ranges::sort(errors_before);
  qInfo("median error %.3f (before %.3f), nine in ten %.3f (before %.3f)", errors[500],
        errors_before[500], errors[900], errors_before[900]);
  QVERIFY(errors[500] <= 0.15);
  QVERIFY(errors[900] <= 0.30);
  QVERIFY(errors_before[500] > 0.15);
  // What makes no sense changes nothing, and one size of step says nothing of the fixed cost.
  StepFit fit({1e9, 1e9, 0.5});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const StepSample& odd : {StepSample{nan, 1, 1},
                                {1, -1, 1},
                                {1, 1, 0},
                                {1, 1, -1},
                                {0, 0, 1},
                                {1, 1, std::numeric_limits<double>::infinity()}}) {
    fit.add(odd);
  }
  QCOMPARE(fit.samples(), int64_t{0});
  for (int i = 0; i < 100; ++i) fit.add({1e9, 1, 1.0});
  QCOMPARE(fit.factors().fixed_seconds, 0.5);
  QVERIFY(std::abs(fit.factors().weight_bytes_per_second - 2e9) < 1e6);
}

void PlannerTest::a_plan_says_why() {
  const std::vector<FragmentCost> fragments(4, fragment(100 << 20));
  PlanRequest request;
  request.fragments = fragments;
  request.width = 1000;
  request.tokens = 1;
  const auto explained = [&](const std::vector<PlanDevice>& devices) {
    const Plan plan = plan_session(request, devices).value();
    const std::vector<std::string> names = {"anna's cpu", "bob's gpu", "carl's gpu"};
    return explain_plan(request, devices, plan, names);
  };
  const auto has = [](const std::vector<PlanReason>& reasons, const char* code, const char* part) {
    for (const PlanReason& reason : reasons) {
      if (std::string(reason.code) != code) continue;
      if (reason.text.find(part) != std::string::npos) return true;
      qWarning("said: %s", reason.text.c_str());
    }
    return false;
  };
  std::vector<PlanDevice> devices = {device(1 << 30, 1e9), device(1 << 30, 2e9), device(1 << 30)};
  PlanExplanation explanation = explained(devices);
  QVERIFY(has(explanation.why, "fits_one", "400 MiB for this session and fits bob's gpu"));
  QVERIFY(has(explanation.why_not_split, "split_slower", "of this rate"));
  QVERIFY(has(explanation.what_would_help, "bandwidth", "2.00 times"));
  // Too large for one device: a far one is left out, and nearer hosts would help.
  devices = {device(300 << 20, 1e9), device(300 << 20, 1e9), device(300 << 20, 1e6)};
  devices[0].hop_seconds = devices[1].hop_seconds = 1;
  explanation = explained(devices);
  QVERIFY(has(explanation.why, "split", "more than the 300 MiB that a ready device has free"));
  QVERIFY(has(explanation.why, "bound_by_links", "on the way"));
  QVERIFY(has(explanation.why, "left_out", "1 ready device is"));
  QVERIFY(explanation.why_not_split.empty());
  QVERIFY(has(explanation.what_would_help, "link_delay", "times as fast"));
  QCOMPARE(std::string(explanation.what_would_help[0].code), std::string("link_delay"));
  // One that its owner wants back before says nothing of what others have free.
  devices.push_back(device(1 << 30, 1e9));
  devices.back().seconds_available = 0;
  QVERIFY(
      has(explained(devices).why, "split", "more than the 300 MiB that a ready device has free"));
  devices.pop_back();
  // A device that would do it all, were it not denied.
  devices.push_back(device(1 << 30, 1e9));
  devices.back().denied = true;
  QVERIFY(has(explained(devices).what_would_help, "owners", "times as fast"));
  // Alone there is no other plan.
  devices = {device(1 << 30)};
  QVERIFY(has(explained(devices).why_not_split, "cannot", "2 stages were asked for"));
}

void PlannerTest::counts_caches_and_workspace() {
  const std::vector<FragmentCost> fragments = {fragment(10, 2, 3), fragment(10, 2, 5)};
  // Weights add, caches add for each position, the largest workspace counts once for each row.
  QCOMPARE(stage_memory(fragments, 100, 4), Bytes{20 + 400 + 20});
  PlanRequest request;
  request.fragments = fragments;
  request.context = 100;
  request.rows_max = 4;
  QVERIFY(plan_session(request, std::vector{device(440)}).ok());
  QVERIFY(!plan_session(request, std::vector{device(439)}).ok());
}

void PlannerTest::says_what_is_in_the_way() {
  const std::vector<FragmentCost> fragments(4, fragment(100 << 20));
  PlanRequest request;
  request.fragments = fragments;
  const auto refuses = [&](std::vector<PlanDevice> devices, const char* because) {
    const Result<Plan> plan = plan_session(request, devices);
    if (plan.ok()) return false;
    if (plan.error().message.find(because) == std::string::npos)
      qWarning("said: %s", plan.error().message.c_str());
    return plan.error().message.find(because) != std::string::npos;
  };
  QVERIFY(refuses({}, "no device is ready"));
  PlanDevice inexact = device(1 << 30);
  inexact.exact = false;
  QVERIFY(refuses({inexact}, "exactness self-test"));
  request.exact = false;
  QVERIFY(plan_session(request, std::vector{inexact}).ok());
  request.exact = true;
  QVERIFY(refuses({device(200 << 20), device(100 << 20)},
                  "needs 400 MiB for this session, but the ready devices have 300 MiB"));
  QVERIFY(
      refuses(std::vector(9, device(60 << 20)),
              "fragment 0 of the model needs 100 MiB, but no ready device has more than 60 MiB"));
  QVERIFY(refuses(std::vector(3, device(190 << 20)), "no split of the model fits"));
  request.anchored = true;
  QVERIFY(refuses({device(1 << 30)}, "trusted host"));
  QVERIFY(refuses({device(50 << 20, 1e6, true), device(1 << 30)}, "ends on trusted hosts"));
  request.anchored = false;
  request.stages_min = 3;
  QVERIFY(refuses({device(1 << 30), device(1 << 30)}, "3 stages were asked for, but only 2"));
  for (const std::vector<int64_t>& cuts : {std::vector<int64_t>{0}, {4}, {2, 2}, {3, 1}, {-1}}) {
    request.cuts = cuts;
    QCOMPARE(plan_session(request, std::vector{device(1 << 30)}).error().code, ErrorCode::kInvalid);
  }
}

void PlannerTest::one_trusted_device_may_hold_both_ends() {
  const std::vector<FragmentCost> fragments(4, fragment(100));
  PlanRequest request;
  request.fragments = fragments;
  request.anchored = true;
  const std::vector<PlanDevice> devices = {device(250, 1e6, true), device(250)};
  const Result<Plan> plan = plan_session(request, devices);
  QVERIFY(plan.ok());
  // Both ends keep it busy: 200 us a token, while the other device needs 100.
  QCOMPARE(
      plan_session(request, std::vector{devices[0], device(250, 2e6)}).value().tokens_per_second,
      1 / 200e-6);
  QCOMPARE(plan.value().stages.size(), size_t{3});
  QCOMPARE(plan.value().stages[0].device, size_t{0});
  QCOMPARE(plan.value().stages[1].device, size_t{1});
  QCOMPARE(plan.value().stages[2].device, size_t{0});
}

void PlannerTest::a_replacement_is_chosen_in_order() {
  const std::vector<FragmentCost> fragments(2, fragment(100));
  ReplacementRequest request;
  request.fragments = fragments;
  const ReplacementCandidate plain{.device = device(200)};
  std::vector<ReplacementCandidate> candidates(6, plain);
  candidates[0].distrusted = true;
  candidates[0].device.weight_bytes_per_second = 1e9;
  candidates[1].device.memory_free = Bytes{199};
  candidates[2].in_session = true;
  candidates[3].just_lost = true;
  candidates[4].device.weight_bytes_per_second = 2e6;
  candidates[5].has_shards = true;
  const auto choose = [&] { return choose_replacement(request, candidates); };
  QCOMPARE(choose(), std::optional<size_t>(5));  // Has the shards.
  candidates[5].device.exact = false;
  QCOMPARE(choose(), std::optional<size_t>(4));  // Faster.
  candidates[4].device.memory_free = Bytes{0};
  QCOMPARE(choose(), std::optional<size_t>(3));  // Failed once; better than a second stage on one.
  candidates[3].distrusted = true;
  QCOMPARE(choose(), std::optional<size_t>(2));
  request.trusted_only = true;
  QCOMPARE(choose(), std::optional<size_t>());
  candidates[2].device.trusted = true;
  QCOMPARE(choose(), std::optional<size_t>(2));
  request.exact = false;
  candidates[5].device.trusted = true;
  QCOMPARE(choose(), std::optional<size_t>(5));
  QCOMPARE(choose_replacement(request, {}), std::optional<size_t>());
}

// Two fragments of a second each on the usual device: a token takes two seconds wherever they are.
void PlannerTest::owners_are_heard() {
  const std::vector<FragmentCost> fragments = {fragment(1'000'000), fragment(1'000'000)};
  PlanRequest request;
  request.fragments = fragments;
  request.rows_max = 4;
  request.prompt_rows = 10;
  request.tokens = 5;
  std::vector<PlanDevice> devices = {device(10'000'000), device(10'000'000, 2e6)};
  // Three steps of the prompt and five tokens, on the faster one, and a quarter more.
  QCOMPARE(plan_session(request, devices).value().seconds, 8 * 1.0 * kTimeReserve);
  const auto chosen = [&] {
    const Result<Plan> plan = plan_session(request, devices);
    return plan.ok() ? static_cast<int>(plan.value().stages[0].device) : -1;
  };
  const auto says = [&](const char* part) {
    const Result<Plan> plan = plan_session(request, devices);
    if (plan.ok()) return false;
    if (plan.error().message.find(part) == std::string::npos) {
      qWarning("said %s", plan.error().message.c_str());
    }
    return plan.error().code == ErrorCode::kUnavailable &&
           plan.error().message.find(part) != std::string::npos;
  };
  devices[1].seconds_available = 10.0;
  QCOMPARE(chosen(), 1);
  devices[1].seconds_available = 9.99;
  QCOMPARE(chosen(), 0);
  devices[0].seconds_available = 20.0;
  QCOMPARE(chosen(), 0);
  devices[0].seconds_available = 19.99;
  QVERIFY(says("the owners of all 2 devices that are ready want them back before"));
  devices[1].denied = true;
  QVERIFY(says("do not allow this class of work, or want them back"));
  devices[0].denied = true;
  QVERIFY(says("the owners of all 2 devices that are ready do not allow this class of work"));
  devices[0] = device(10'000'000);
  QCOMPARE(chosen(), 0);
  devices[0].memory_free = Bytes{1000};
  QVERIFY(says("free together; 1 more is ready, but its owner does not allow"));
  devices[1].exact = false;
  devices[0].exact = false;
  QVERIFY(says("none of the 2 devices has passed"));
}

// However many hosts leave at however many times, the plan is found in few rounds, over one that
// stays.
void PlannerTest::owners_that_leave_one_by_one_make_no_plan_long() {
  const std::vector<FragmentCost> fragments = {fragment(1'000'000), fragment(1'000'000)};
  PlanRequest request;
  request.fragments = fragments;
  request.tokens = 100;
  std::vector<PlanDevice> devices;
  for (int i = 0; i < 200; ++i) {
    // Each slower than the one before, and there for almost as long as it would take.
    const double speed = 1e6 * (300 - i);
    devices.push_back(device(10'000'000, speed));
    devices.back().seconds_available = 0.99 * 100 * 2e6 / speed * kTimeReserve;
  }
  devices.push_back(device(10'000'000, 1e6));
  const Result<Plan> plan = plan_session(request, devices);
  QVERIFY(plan.ok());
  QCOMPARE(plan.value().stages[0].device, size_t{200});
  devices.pop_back();
  QVERIFY(plan_session(request, devices).error().message.find("all 200 devices") !=
          std::string::npos);
}

void PlannerTest::a_replacement_stays_as_long_as_it_is_needed() {
  const std::vector<FragmentCost> fragments = {fragment(1'000'000)};
  ReplacementRequest request;
  request.fragments = fragments;
  std::vector<ReplacementCandidate> candidates(2);
  for (auto& candidate : candidates) candidate.device = device(10'000'000);
  candidates[0].device.weight_bytes_per_second = 2e6;
  const auto choose = [&] { return choose_replacement(request, candidates); };
  QCOMPARE(choose(), std::optional<size_t>(0));
  candidates[0].device.denied = true;
  QCOMPARE(choose(), std::optional<size_t>(1));
  candidates[0].device.denied = false;
  // Four tokens, half a second here and one and a half elsewhere; and half a second to catch up.
  request.tokens_left = 4;
  request.others_seconds_per_token = 1.5;
  request.rows_to_replay = 100;
  candidates[0].device.seconds_available = 8.5 * kTimeReserve;
  QCOMPARE(choose(), std::optional<size_t>(0));
  candidates[0].device.seconds_available = 8.5 * kTimeReserve - 0.01;
  QCOMPARE(choose(), std::optional<size_t>(1));
  candidates[1].device.seconds_available = 1;
  QCOMPARE(choose(), std::optional<size_t>());
}

void PlannerTest::times_have_both_bounds() {
  const StepTimes times;
  QCOMPARE(step_timeout(times, 0.001, 0, 1), Millis{2'000});
  QCOMPARE(step_timeout(times, 0, 0, 1), Millis{10'000});   // Not measured yet.
  QCOMPARE(step_timeout(times, 0, 10, 1), Millis{80'000});  // Predicted.
  QCOMPARE(step_timeout(times, 0.5, 0, 1), Millis{4'000});
  QCOMPARE(step_timeout(times, 0.5, 0, 64), Millis{256'000});
  QCOMPARE(step_timeout(times, 1e12, 0, 1024), Millis{600'000});
  QCOMPARE(lease_silence(Millis{20'000}, Millis{30'000}), Millis{100'000});
  QCOMPARE(lease_silence(Millis{0}, Millis{0}), Millis{60'000});
  QCOMPARE(lease_silence(Millis{3'000'000}, Millis{3'000'000}), Millis{3'600'000});
}

void PlannerTest::manifests_are_read_as_hostile_input() {
  const std::string good = test::make_toy_model("toy").manifest;
  const Result<ModelManifest> read = read_model_manifest(good);
  QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
  QCOMPARE(read.value().name, std::string("toy"));
  QCOMPARE(read.value().shards.size(), size_t{test::kToyFragments});
  QCOMPARE(read_model_manifest(rename_manifest(good, "other").value()).value().name,
           std::string("other"));
  for (const char* odd : {"", "a\x1b[31m", "two\nlines", "\xff\xfe"}) {
    QVERIFY(rename_manifest(good, odd).error().message.find("manifest: name ") == 0);
  }

  const auto refuses = [&](const std::string& from, const std::string& to, const char* field) {
    std::string text = good;
    const size_t at = text.find(from);
    if (at == std::string::npos) return false;
    text.replace(at, from.size(), to);
    // With its digest mended, so that the field itself is judged.
    const Result<std::string> mended = rename_manifest(text, "toy");
    const Result<ModelManifest> result = read_model_manifest(mended.ok() ? mended.value() : text);
    if (result.ok()) return false;
    if (result.error().message.find(field) == std::string::npos)
      qWarning("said: %s", result.error().message.c_str());
    return result.error().message.find(field) != std::string::npos;
  };
  QVERIFY(refuses("\"width\":4", "\"width\":0", "width"));
  QVERIFY(refuses("\"width\":4", "\"width\":-4", "width"));
  QVERIFY(refuses("\"width\":4", "\"width\":\"4\"", "width"));
  QVERIFY(refuses("\"width\":4", "\"width\":4e30", "width"));
  QVERIFY(refuses("\"context\":200", "\"contest\":200", "context"));
  QVERIFY(refuses("\"manifest_version\":1", "\"manifest_version\":2", "manifest_version"));
  QVERIFY(refuses("\"eos\":[2]", "\"eos\":[259]", "eos"));
  QVERIFY(refuses("\"index\":1", "\"index\":2", "index"));
  QVERIFY(refuses("\"kind\":\"head\"", "\"kind\":\"block\"", "kind"));
  QVERIFY(refuses("\"weight_bytes\":1000000", "\"weight_bytes\":-1", "weight_bytes"));
  QVERIFY(refuses("\"state_bytes_per_position\":100", "\"state_bytes_per_position\":1073741825",
                  "state_bytes_per_position"));
  QVERIFY(refuses("{", "[", "JSON"));
  QVERIFY(!read_model_manifest(good.substr(0, good.size() / 2)).ok());
  QVERIFY(!read_model_manifest("").ok());
  std::string deep(100'000, '[');
  QVERIFY(!read_model_manifest(deep).ok());
  std::string changed = good;
  changed.replace(changed.find("\"width\":4"), 9, "\"width\":5");
  QVERIFY(read_model_manifest(changed).error().message.find("digest") != std::string::npos);
}

QTEST_GUILESS_MAIN(PlannerTest)
#include "planner_test.moc"
