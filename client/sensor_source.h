#pragma once
// What the agent asks of its sensors, whatever answers: the process of client/sensor_process.h, or
// a test. Decides nothing.

#include <kj/async.h>

#include <functional>
#include <string>
#include <vector>

#include "client/sensor_process.h"

namespace shoal::client {

// Belongs to the KJ loop's thread.
class SensorSource {
 public:
  virtual ~SensorSource() noexcept(false) = default;

  // What is known now; what is too old is not known.
  virtual const Readings& readings() const = 0;
  virtual const std::vector<SensorStatus>& sensors() const = 0;
  // False: no source tells whether the owner is here.
  virtual bool idle_supported() const = 0;
  // Asks one sensor anew. Throws when there is none of that name.
  virtual kj::Promise<SensorStatus> test(std::string name) = 0;
  virtual void configure(SensorWishes wishes) = 0;
  // Everything has stopped: the computer may go to sleep.
  virtual void release_sleep() = 0;
  // Called when something is other than it was, a sleep included.
  virtual void on_change(std::function<void()> changed) = 0;
};

}  // namespace shoal::client
