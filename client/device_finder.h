#pragma once
// Asks again and again which devices this machine has: a driver may be late at boot, come back
// after a sleep, or be gone. A list that cannot be had is a state, tried again after a wait that
// grows. As a list costs a process and may wake a card, it is had only when the system's device
// nodes have changed, something is missing, or much time has passed.
//
// Belongs to the KJ loop's thread.

#include <kj/async.h>
#include <kj/timer.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "client/back_off.h"
#include "client/device_facts.h"
#include "schema/task.h"

namespace shoal::client {

class DeviceFinder {
 public:
  class Needs {
   public:
    virtual ~Needs() noexcept(false) = default;
    virtual kj::Promise<std::vector<DeviceFacts>> list_devices() = 0;
    virtual void devices_found(std::vector<DeviceFacts> devices) = 0;
    virtual void devices_not_found() = 0;          // See problem().
    virtual bool device_missing() const = 0;       // One that the owner lends.
    virtual std::string device_nodes() const = 0;  // Another text when the system's are others.
  };

  struct Waits {
    Millis early{5'000};  // In the first minutes after a start or a sleep.
    Millis early_for{5 * 60'000};
    Millis later{60'000};
    Millis anyhow{30 * 60'000};
    Millis failed_first{1'000}, failed_most{60'000};
  };

  // All of these outlive the object. Starts at once.
  DeviceFinder(kj::Timer& timer, const Clock& clock, Random& random, Needs& needs, Waits waits);
  ~DeviceFinder() { life_ = nullptr; }
  KJ_DISALLOW_COPY(DeviceFinder);

  // Looks at once, and often for a while, as after a sleep.
  void look_now();
  const std::string& problem() const { return problem_; }  // Empty: the last list was had.
  bool looking() const { return looking_; }                // No list was had yet.

 private:
  rpc::Task<void> look_on();

  kj::Timer& timer_;
  const Clock& clock_;
  Needs& needs_;
  Waits waits_;
  BackOff back_off_;
  Millis early_until_;
  std::string problem_;
  bool asked_for_ = true;
  bool looking_ = true;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> look_;
  kj::Promise<void> life_;  // Last: it uses all of the above.
};

// Of /dev: what GPU drivers put there.
std::string system_device_nodes();

}  // namespace shoal::client
