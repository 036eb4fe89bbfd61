#include "client/lent_device.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
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

void OwnLoad::count_until(Millis now) {
  const double share = whole_ > 0 ? 1 : steps_ > 0 ? duty_ : 0;
  // Nothing before the window matters to the load.
  int64_t from = std::max(counted_ms_, now.count - kBuckets * kBucketMs + kBucketMs);
  if (now.count > counted_ms_) {
    busy_ms_ += share * static_cast<double>(now.count - counted_ms_);
  }
  while (from < now.count) {
    const int64_t bucket = from / kBucketMs;
    const int64_t until = std::min((bucket + 1) * kBucketMs, now.count);
    const auto at = static_cast<size_t>(bucket % kBuckets);
    if (bucket_[at] != bucket) ms_[at] = 0;
    bucket_[at] = bucket;
    ms_[at] += share * static_cast<double>(until - from);
    from = until;
  }
  counted_ms_ = std::max(counted_ms_, now.count);
}

void OwnLoad::begin(What what, Millis now) {
  count_until(now);
  ++(what == What::kStep ? steps_ : whole_);
}

void OwnLoad::end(What what, Millis now) {
  count_until(now);
  int& count = what == What::kStep ? steps_ : whole_;
  SHOAL_CHECK(count > 0);
  --count;
}

void OwnLoad::set_pace(double duty, Millis now) {
  count_until(now);
  duty_ = duty;
}

double OwnLoad::load(Millis now) {
  count_until(now);
  const auto busy = [this](int64_t bucket) {
    if (bucket < 0) return 0.0;
    const auto at = static_cast<size_t>(bucket % kBuckets);
    return bucket_[at] == bucket ? ms_[at] : 0.0;
  };
  // Two buckets are about as long as what a driver's figure is of. The newest is not over yet.
  const int64_t newest = now.count / kBucketMs;
  double most =
      (busy(newest - 1) + busy(newest)) / static_cast<double>(kBucketMs + now.count % kBucketMs);
  for (int64_t i = newest - 1; i > newest - kWindowMs / kBucketMs; --i) {
    most = std::max(most, (busy(i - 1) + busy(i)) / (2.0 * kBucketMs));
  }
  return std::clamp(most, 0.0, 1.0);
}

Millis OwnLoad::take_busy(Millis now) {
  count_until(now);
  const Millis whole{static_cast<int64_t>(busy_ms_)};
  busy_ms_ -= static_cast<double>(whole.count);
  return whole;
}

// One who waits for a measurement, from the asking to the end. Rules that forbid work do not end
// the worker of an errand.
struct LentDevice::Errand {
  Errand(LentDevice& device, kj::Own<kj::PromiseFulfiller<Measurement>> over)
      : device(device), over(kj::mv(over)) {
    device.errands_.push_back(this);
  }
  ~Errand() {
    std::erase(device.errands_, this);
    device.needs_.device_changed(device);
  }
  KJ_DISALLOW_COPY(Errand);

  LentDevice& device;
  kj::Own<kj::PromiseFulfiller<Measurement>> over;  // To be rejected.
};

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

void LentDevice::want(bool worker, kj::Duration stop_max, bool counts) {
  worker = (worker || measuring()) && !ending_;
  if (worker && worker_.get() == nullptr) {
    start();
  } else if (!worker && worker_.get() != nullptr && !yielding_) {
    yielding_ = true;
    giving_back_ =
        give_back(stop_max, counts).promise().eagerlyEvaluate([](kj::Exception&& exception) {
          log_error("device", "not_given_back", {{"cause", exception.getDescription().cStr()}});
        });
  }
}

void LentDevice::end(kj::Duration stop_max) {
  ending_ = true;
  fail_errands({ErrorCode::kUnavailable, "the client stops"});
  // One that is being given back at leisure is now given back at once.
  giving_back_ = nullptr;
  yielding_ = false;
  want(false, stop_max);
}

void LentDevice::fail_errands(const Error& why) {
  for (Errand* const errand : std::exchange(errands_, {})) {
    errand->over->rejectIfThrows([&why] { rpc::throw_error(why); });
  }
}

void LentDevice::note_loading(bool loading) {
  // A worker that starts opens the driver and builds its programs.
  const bool starts = worker_.get() != nullptr && worker_->pid() != 0 &&
                      worker_->state() != WorkerProcess::State::kReady;
  if ((loading || starts) == loads_) return;
  loads_ = !loads_;
  const Millis now = clock_.now_monotonic();
  if (loads_) {
    own_load.begin(OwnLoad::What::kWhole, now);
  } else {
    own_load.end(OwnLoad::What::kWhole, now);
  }
}

void LentDevice::note_settings() {
  if (worker_.get() == nullptr) return;
  const WorkerOptions wanted = needs_.worker_options(facts_);
  const WorkerOptions& had = worker_->options();
  outdated_ = wanted.argv != had.argv || wanted.hang_max != had.hang_max;
}

void LentDevice::start() {
  outdated_ = false;
  worker_ =
      kj::heap<WorkerProcess>(loop_, clock_, random_, static_cast<WorkerProcess::Needs&>(*this),
                              needs_.worker_options(facts_));
}

rpc::Task<void> LentDevice::give_back(kj::Duration stop_max, bool counts) {
  const Millis began = clock_.now_monotonic();
  if (counts) yielding_since_ = began;
  pacing_ = nullptr;
  // The rest of the time is for the driver, to end one that was killed.
  kj::Promise<bool> stopping = worker_->stop(stop_max * 3 / 4);
  const bool killed = co_await kj::mv(stopping);
  // The process is gone, reaped, and with it every kernel.
  const Millis took = clock_.now_monotonic() - began;
  restarts_before_ += worker_->restarts();
  worker_ = nullptr;
  yielding_ = false;
  yielding_since_.reset();
  log_info("device", "given_back", {{"device", facts_.id}, {"ms", took}, {"killed", killed}});
  if (counts) needs_.device_given_back(*this, took);
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
  kj::Promise<void> measuring = measure_with(kj::mv(client));
  co_await kj::mv(measuring);
}

rpc::Task<void> LentDevice::measure_with(rpc::Worker::Client client) {
  struct Busy {
    explicit Busy(LentDevice& device) : device(device) {
      ++device.measures_now_;
      device.own_load.begin(OwnLoad::What::kWhole, device.clock_.now_monotonic());
    }
    ~Busy() {
      --device.measures_now_;
      device.own_load.end(OwnLoad::What::kWhole, device.clock_.now_monotonic());
    }
    KJ_DISALLOW_COPY(Busy);
    LentDevice& device;
  };
  const Busy busy(*this);
  kj::Promise<Measurement> measuring = measure_worker(loop_.timer, kj::mv(client));
  const Measurement measured = co_await kj::mv(measuring);
  measurement_ = measured;
  ++measurements_;
  needs_.measured(facts_, measured);
}

rpc::Task<Measurement> LentDevice::measure() {
  if (ending_) rpc::throw_error({ErrorCode::kUnavailable, "the client stops"});
  auto over = kj::newPromiseAndFulfiller<Measurement>();
  const Errand errand(*this, kj::mv(over.fulfiller));
  kj::Promise<Measurement> running = run_errand();
  kj::Promise<Measurement> first = running.exclusiveJoin(kj::mv(over.promise));
  const Measurement measured = co_await kj::mv(first);
  co_return measured;
}

rpc::Task<Measurement> LentDevice::run_errand() {
  const uint64_t measured_before = measurements_;
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
  // A worker of a device that nobody had measured has done so before it was ready.
  if (measurements_ == measured_before) {
    rpc::Worker::Client worker = KJ_ASSERT_NONNULL(client());
    kj::Promise<void> measuring = measure_with(kj::mv(worker));
    co_await kj::mv(measuring);
  }
  SHOAL_CHECK(measurement_.has_value());
  co_return *measurement_;
}

void LentDevice::govern(const GovernorTargets& targets, Millis elapsed) {
  const Pace pace = governor_.update(targets, temperature_c, whole_watts, elapsed);
  const bool other = pace.duty_percent() != pace_.duty_percent() || pace.rows_max != pace_.rows_max;
  pace_ = pace;
  own_load.set_pace(pace.duty, clock_.now_monotonic());
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
