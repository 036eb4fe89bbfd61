#pragma once
// Runs each sensor on a thread of its own, says what each answers, and says it of one that hangs.
//
// Belongs to the main thread. Is never destroyed: a thread that hangs in a driver cannot be joined,
// so the process ends without waiting for any.

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/host.h"
#include "client/sensors/sensor.h"

namespace shoal::client {

class SensorThreads {
 public:
  // How long one reading may take until its sensor counts as hanging.
  static constexpr Millis kAnswerMax{2'000};

  explicit SensorThreads(const Clock& clock);
  ~SensorThreads() = delete;

  void start(std::unique_ptr<Sensor> sensor);

  void configure(SensorConfiguration configuration);
  void released();
  // The next line of that sensor carries `id`. False: there is no such sensor.
  bool test(std::string_view name, int64_t id);

  // The newest answer of each sensor that has one, as lines with their ends. Those that hang are
  // among them, again every few seconds.
  std::string take_lines();

  int wake_fd() const { return wake_.get(); }  // Readable when there may be lines.
  Millis look_again();                         // How long to wait for it at most.

 private:
  struct Run;

  void run(Run& run);
  void put_line(Run& run, const SensorAnswer& answer);

  const Clock& clock_;
  OwnedFd wake_;
  std::vector<std::unique_ptr<Run>> runs_;
  // Sensors' threads and the main thread meet in what this guards: every Run's shared part. Each
  // holds it while it writes or takes a line.
  std::mutex mutex_;
  std::shared_ptr<const SensorConfiguration> configuration_;  // GUARDED_BY(mutex_)
};

}  // namespace shoal::client
