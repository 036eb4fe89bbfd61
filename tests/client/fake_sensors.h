#pragma once
// Sensors that say what a test wants them to say.

#include <string>
#include <utility>
#include <vector>

#include "client/sensor_source.h"

namespace shoal::client {

struct FakeSensors final : public SensorSource {
  Readings now;
  SensorWishes wishes;
  std::vector<SensorStatus> statuses;
  int sleeps_released = 0;
  kj::Own<kj::PromiseFulfiller<void>> released;  // Null, or told of the next one.

  void tell() {
    if (changed_) changed_();
  }

  const Readings& readings() const override { return now; }
  const std::vector<SensorStatus>& sensors() const override { return statuses; }
  bool idle_supported() const override { return !now.idle_source.empty(); }
  kj::Promise<SensorStatus> test(std::string name) override {
    SensorStatus status;
    status.name = std::move(name);
    status.known = true;
    return status;
  }
  void configure(SensorWishes to) override { wishes = std::move(to); }
  void release_sleep() override {
    ++sleeps_released;
    if (released.get() != nullptr) released->fulfill();
  }
  void on_change(std::function<void()> changed) override { changed_ = std::move(changed); }

 private:
  std::function<void()> changed_;
};

}  // namespace shoal::client
