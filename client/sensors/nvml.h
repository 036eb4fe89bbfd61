#pragma once
// NVIDIA's management library, found at run time: this computer may have none, and its driver may
// come late, fail after a sleep, or hang.
//
// Belongs to the gpu sensor's thread.

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/rules/readings.h"
#include "client/sensors/sensor.h"

namespace shoal::client {

class Nvml {
 public:
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;

  // All cards that the library shows. `asleep` says of a PCI address that the card is switched off
  // to save power; such a one is named and not woken. `present` is how many the system shows.
  // kNotFound: there is no such library.
  Result<std::vector<GpuReading>> read(
      const SensorRequest& request, int present,
      const std::function<bool(const std::string& pci_address)>& asleep);

 private:
  struct Library;
  struct Card;

  Result<void> open(const SensorRequest& request, int present);
  void close();

  std::unique_ptr<Library> library_;  // Null: not loaded.
  std::vector<Card> cards_;
  bool running_ = false;
  std::optional<Millis> tried_at_, opened_at_;
  std::optional<Error> start_failed_;
  Millis retry_at_{0};
  int64_t retry_after_;  // Milliseconds.
};

}  // namespace shoal::client
