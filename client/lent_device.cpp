#include "client/lent_device.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "client/device_wire.h"

namespace shoal::client {
namespace {

constexpr kj::Duration kMeasureMax = 120 * kj::SECONDS;

}  // namespace

rpc::Task<Measurement> measure_worker(kj::Timer& timer, rpc::Worker::Client client) {
  Measurement measurement;
  kj::Promise<capnp::Response<rpc::Worker::SelfTestResults>> tested =
      client.selfTestRequest().send();
  const auto self_test = co_await timer.timeoutAfter(kMeasureMax, kj::mv(tested));
  measurement.self_test = read_self_test(self_test.getReport());
  kj::Promise<capnp::Response<rpc::Worker::BenchmarkResults>> timed =
      client.benchmarkRequest().send();
  const auto benchmark = co_await timer.timeoutAfter(kMeasureMax, kj::mv(timed));
  measurement.benchmark = read_benchmark(benchmark.getReport());
  co_return measurement;
}

void DutyMeter::add(Millis now, uint64_t micros) {
  // A step that took longer than a second was also running in the seconds before.
  const int64_t newest = now.count / 1000;
  for (int64_t second = newest; micros > 0 && second >= 0 && second > newest - kSeconds; --second) {
    const auto at = static_cast<size_t>(second % kSeconds);
    if (second_[at] != second) {
      second_[at] = second;
      micros_[at] = 0;
    }
    const uint64_t part = std::min(uint64_t{1'000'000} - micros_[at], micros);
    micros_[at] += part;
    micros -= part;
  }
}

double DutyMeter::duty(Millis now) const {
  uint64_t sum = 0;
  for (size_t i = 0; i < micros_.size(); ++i) {
    const int64_t age = now.count / 1000 - second_[i];
    if (age >= 0 && age < kSeconds) sum += micros_[i];
  }
  return std::min(static_cast<double>(sum) / (kSeconds * 1e6), 1.0);
}

LentDevice::LentDevice(Loop loop, const Clock& clock, Random& random, Needs& needs,
                       DeviceFacts facts)
    : loop_(loop), clock_(clock), random_(random), needs_(needs), facts_(std::move(facts)) {
  if (const Measurement* known = needs_.measurement_of(facts_)) measurement_ = *known;
}

LentDevice::~LentDevice() {
  pacing_ = nullptr;
  giving_back_ = nullptr;
  worker_ = nullptr;
}

void LentDevice::want(bool worker, kj::Duration stop_max) {
  worker = worker || measuring_ > 0;
  if (worker && worker_.get() == nullptr) {
    start();
  } else if (!worker && worker_.get() != nullptr && !yielding_) {
    yielding_ = true;
    giving_back_ = give_back(stop_max).promise().eagerlyEvaluate([](kj::Exception&& exception) {
      log_error("device", "not_given_back", {{"cause", exception.getDescription().cStr()}});
    });
  }
}

void LentDevice::start() {
  worker_ =
      kj::heap<WorkerProcess>(loop_, clock_, random_, static_cast<WorkerProcess::Needs&>(*this),
                              needs_.worker_options(facts_));
}

rpc::Task<void> LentDevice::give_back(kj::Duration stop_max) {
  const Millis began = clock_.now_monotonic();
  pacing_ = nullptr;
  kj::Promise<bool> stopping = worker_->stop(stop_max);
  const bool killed = co_await kj::mv(stopping);
  // The process is gone, reaped, and with it all that its driver held for it.
  const Millis took = clock_.now_monotonic() - began;
  restarts_before_ += worker_->restarts();
  worker_ = nullptr;
  yielding_ = false;
  log_info("device", "given_back", {{"device", facts_.id}, {"ms", took}, {"killed", killed}});
  needs_.device_freed(*this, {took, took, killed});
  for (auto& fulfiller : std::exchange(waiting_, {})) fulfiller->fulfill();
  needs_.device_changed(*this);
}

rpc::Task<void> LentDevice::gone() {
  while (worker_.get() != nullptr) {
    auto pair = kj::newPromiseAndFulfiller<void>();
    waiting_.push_back(kj::mv(pair.fulfiller));
    co_await kj::mv(pair.promise);
  }
}

kj::Maybe<rpc::Worker::Client> LentDevice::client() {
  if (worker_.get() == nullptr || yielding_) return nullptr;
  return worker_->client();
}

uint32_t LentDevice::restarts() const {
  return restarts_before_ + (worker_.get() == nullptr ? 0 : worker_->restarts());
}

void LentDevice::worker_changed(WorkerProcess&) {
  for (auto& fulfiller : std::exchange(waiting_, {})) fulfiller->fulfill();
  if (worker_.get() != nullptr && worker_->state() == WorkerProcess::State::kReady) send_pace();
  needs_.device_changed(*this);
}

kj::Promise<void> LentDevice::prepare(WorkerProcess&, rpc::Worker::Client client,
                                      DeviceFacts facts) {
  if (facts.id != facts_.id) {
    rpc::throw_error(
        {ErrorCode::kUnavailable, "its worker opened device " + facts.id + " instead"});
  }
  facts_ = std::move(facts);  // The driver may have been updated since the list was made.
  return prepare_worker(kj::mv(client));
}

rpc::Task<void> LentDevice::prepare_worker(rpc::Worker::Client client) {
  if (const Measurement* known = needs_.measurement_of(facts_)) {
    measurement_ = *known;
    co_return;
  }
  kj::Promise<Measurement> measuring = measure_worker(loop_.timer, kj::mv(client));
  const Measurement measured = co_await kj::mv(measuring);
  measurement_ = measured;
  needs_.measured(facts_, measured);
}

rpc::Task<Measurement> LentDevice::measure() {
  // Counted, so that rules which forbid work do not end the worker of an errand.
  struct Errand {
    explicit Errand(LentDevice& device) : device(device) { ++device.measuring_; }
    ~Errand() {
      --device.measuring_;
      device.needs_.device_changed(device);
    }
    KJ_DISALLOW_COPY(Errand);
    LentDevice& device;
  };
  const Errand errand(*this);
  const uint32_t restarts_first = restarts();
  while (client() == nullptr) {
    if (!yielding_) want(true, 1 * kj::SECONDS);
    if (restarts() != restarts_first) {
      rpc::throw_error({ErrorCode::kUnavailable, worker_.get() != nullptr
                                                     ? worker_->reason()
                                                     : "its worker does not stay up"});
    }
    auto pair = kj::newPromiseAndFulfiller<void>();
    waiting_.push_back(kj::mv(pair.fulfiller));
    co_await kj::mv(pair.promise);
  }
  rpc::Worker::Client worker = KJ_ASSERT_NONNULL(client());
  kj::Promise<Measurement> measuring = measure_worker(loop_.timer, kj::mv(worker));
  const Measurement measured = co_await kj::mv(measuring);
  measurement_ = measured;
  needs_.measured(facts_, measured);
  co_return measured;
}

void LentDevice::govern(const GovernorTargets& targets, Millis elapsed) {
  const Pace pace =
      governor_.update(targets, temperature_c, watts_measured ? watts : std::nullopt, elapsed);
  const bool other = pace.duty_percent() != pace_.duty_percent() || pace.rows_max != pace_.rows_max;
  pace_ = pace;
  if (other) send_pace();
}

void LentDevice::send_pace() {
  KJ_IF_MAYBE (worker, client()) {
    auto request = worker->setPaceRequest();
    request.setDutyPercent(pace_.duty_percent());
    request.setRowsMax(pace_.rows_max);
    // A worker that knows no pace computes at full speed; one that is gone gets the pace anew.
    pacing_ = request.send().ignoreResult().catch_([](kj::Exception&&) {}).eagerlyEvaluate(nullptr);
  }
}

}  // namespace shoal::client
