#pragma once
// One device of this machine: whether it is there and lent, its worker while the rules allow one,
// what it proved, how fast it may go, and how fast it was free when it was wanted back. Decides
// nothing about rules.
//
// Belongs to the KJ loop's thread.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "client/records/sums.h"
#include "client/rules/energy.h"
#include "client/rules/governor.h"
#include "client/verdicts.h"
#include "client/worker_process.h"

namespace shoal::client {

// Of the last minute, how much of the time steps ran. Pure.
class DutyMeter {
 public:
  void add(Millis now, uint64_t micros);  // A step ended now that took so long.
  double duty(Millis now) const;          // 0 to 1.

 private:
  static constexpr int64_t kSeconds = 60;
  std::array<uint64_t, kSeconds> micros_{};
  std::array<int64_t, kSeconds> second_{};
};

// How much of a device's load is our own, by what of ours was in flight. A sensor's figure is of a
// fraction of a second and may be some seconds old, so this is the most of any such fraction within
// the last seconds. Pure.
class OwnLoad {
 public:
  // A step computes only as much of the time as its pace lets it; loading and measuring take all.
  enum class What { kStep, kWhole };

  void begin(What what, Millis now);
  void end(What what, Millis now);
  void set_pace(double duty, Millis now);

  double load(Millis now);       // 0 to 1.
  Millis take_busy(Millis now);  // How long it was busy since this was last asked.

 private:
  static constexpr int64_t kBucketMs = 100, kBuckets = 64, kWindowMs = 5'000;
  void count_until(Millis now);

  int steps_ = 0, whole_ = 0;  // In flight.
  double duty_ = 1;
  int64_t counted_ms_ = 0;  // All of the time before it is in the buckets.
  double busy_ms_ = 0;
  std::array<double, kBuckets> ms_{};
  std::array<int64_t, kBuckets> bucket_{};  // Which one each place holds.
};

class LentDevice final : private WorkerProcess::Needs {
 public:
  class Needs {
   public:
    virtual ~Needs() noexcept(false) = default;
    virtual WorkerOptions worker_options(const DeviceFacts& facts) = 0;
    // Null: this device must prove and measure itself first.
    virtual const Measurement* measurement_of(const DeviceFacts& facts) = 0;
    virtual void measured(const DeviceFacts& facts, const Measurement& measurement) = 0;
    virtual void device_changed(LentDevice& device) = 0;  // Its worker came, went or failed.
    // `stop`: until its process was gone, and every kernel with it.
    virtual void device_given_back(LentDevice& device, Millis stop) = 0;
  };

  // All of these outlive the object.
  LentDevice(Loop loop, const Clock& clock, Random& random, Needs& needs, DeviceFacts facts);
  ~LentDevice();
  KJ_DISALLOW_COPY(LentDevice);

  const DeviceFacts& facts() const { return facts_; }
  void found(DeviceFacts facts) { facts_ = std::move(facts), present = true; }
  Resource resource() const { return resource_of(facts_.plane, facts_.software); }

  // What the agent decides about it.
  bool present = false;   // The last list had it.
  bool lent = false;      // The owner lends it.
  bool may_work = false;  // It may be given work now.
  StandingVerdict standing;

  // What it did.
  uint64_t steps = 0, rows = 0;  // Since the start.
  DutyMeter duty;
  OwnLoad own_load;
  EnergyMeter energy_meter;
  Usage usage;               // Since it was last told to the records.
  uint64_t busy_micros = 0;  // Likewise.
  std::optional<double> temperature_c;
  std::optional<double> watts;        // Of our work.
  std::optional<double> whole_watts;  // Of all that the device does, where a sensor tells.
  bool watts_measured = false;

  // Starts its worker, or ends it within `stop_max`; one that measures stays until its errands
  // fail. To be called whenever that may have changed. `counts`: something of ours was open, so
  // that how long the end takes says something.
  void want(bool worker, kj::Duration stop_max, bool counts = false);
  // Ends it for good, whatever it does.
  void end(kj::Duration stop_max);
  // Resolves when there is no worker any more.
  rpc::Task<void> gone();

  // Null unless a worker is ready.
  kj::Maybe<rpc::Worker::Client> client();
  WorkerProcess* worker() { return worker_.get(); }  // Null while there is none.
  bool yielding() const { return yielding_; }
  // Monotonic; none unless an end that counts is on its way.
  std::optional<Millis> yielding_since() const { return yielding_since_; }
  uint32_t restarts() const;
  const std::optional<Measurement>& measurement() const { return measurement_; }

  // Measures it again, with a worker for that alone if there is none. REQUIRES: it has no stage.
  rpc::Task<Measurement> measure();
  bool measuring() const { return !errands_.empty(); }
  bool measures_now() const { return measures_now_ > 0; }  // Also a new worker, before it is ready.
  // Those who wait for a measurement are told why there will be none.
  void fail_errands(const Error& why);
  bool owner_was_away = false;  // When the last errand began.
  // Its worker was started with other settings than those of now.
  bool outdated() const { return outdated_; }
  void note_settings();
  // For its own load: whether a stage is being loaded.
  void note_loading(bool loading);

  const Pace& pace() const { return pace_; }
  void govern(const GovernorTargets& targets, Millis elapsed);

 private:
  void worker_changed(WorkerProcess& worker) override;
  kj::Promise<void> prepare(WorkerProcess& worker, rpc::Worker::Client client,
                            DeviceFacts facts) override;
  rpc::Task<void> prepare_worker(rpc::Worker::Client client);
  rpc::Task<void> measure_with(rpc::Worker::Client client);
  rpc::Task<Measurement> run_errand();
  void start();
  rpc::Task<void> give_back(kj::Duration stop_max, bool counts);
  void send_pace();

  Loop loop_;
  const Clock& clock_;
  Random& random_;
  Needs& needs_;
  DeviceFacts facts_;
  std::optional<Measurement> measurement_;
  Governor governor_;
  Pace pace_;
  uint32_t restarts_before_ = 0;  // Of workers that were given back.
  struct Errand;
  std::vector<Errand*> errands_;  // Each leaves when it is over. Never null.
  uint64_t measurements_ = 0;
  int measures_now_ = 0;
  bool loads_ = false;
  bool outdated_ = false;
  bool yielding_ = false;
  bool ending_ = false;
  std::optional<Millis> yielding_since_;
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting_;  // For a change of the worker.
  kj::Own<WorkerProcess> worker_;
  kj::Promise<void> giving_back_ = nullptr;
  kj::Promise<void> pacing_ = nullptr;
};

// Self-test, then benchmark.
rpc::Task<Measurement> measure_worker(kj::Timer& timer, rpc::Worker::Client client);

}  // namespace shoal::client
