#pragma once
// Holds what each resource and each device may do now, why, and since when: asks the policy anew at
// each step, and remembers what its hysteresis needs. No clock, no I/O.

#include <map>
#include <string>
#include <vector>

#include "client/device_facts.h"
#include "client/rules/activity_policy.h"

namespace shoal::client {

// The resource that a device is counted as: GPU unless it computes on the CPU.
Resource resource_of(const std::string& plane, bool software);

// The sensors' reading of a device: the one that names it; else the only card of its vendor, when
// it is the only device of that vendor among `here`, all GPUs of this computer. Null: not known.
const GpuReading* reading_of(const DeviceFacts& device, const std::vector<DeviceFacts>& here,
                             const std::vector<GpuReading>& gpus);

// A verdict and the wall time since which it says the same.
struct StandingVerdict {
  Verdict verdict;
  Millis since{0};
};

// Whether a person would call both the same: the activity, the rule and the sentence, whatever its
// figures are.
bool says_the_same(const Verdict& a, const Verdict& b);

// Takes `verdict`; keeps the time when it says the same as before. True: it says something else.
bool update(StandingVerdict& standing, Verdict verdict, Millis now);

class Verdicts {
 public:
  struct Device {
    std::string id;
    Resource resource = Resource::kGpu;
    const GpuReading* gpu = nullptr;  // Null: no sensor knows it.
    double own_load = 0;              // Of the GPU, by our own steps: 0 to 1.
    bool counts = true;               // For the verdict of all GPUs: it is lent and there.
  };

  // `input` says everything but what is remembered here. True when any verdict says something else
  // than before.
  bool judge(PolicyInput input, const std::vector<Device>& devices);

  const StandingVerdict& of(Resource resource) const {
    return resources_[static_cast<int>(resource)];
  }
  // One that waits for a device that was not among those last judged.
  const Verdict& of_device(const std::string& id) const;

 private:
  StandingVerdict resources_[kResourceCount];
  std::map<std::string, Verdict> devices_;
};

}  // namespace shoal::client
