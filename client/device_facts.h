#pragma once
// What is known of a device and of what it proved about itself, as values that can be stored, shown
// and sent.

#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace shoal::rpc {
struct DeviceInfo;
struct SelfTest;
struct Benchmark;
}  // namespace shoal::rpc

namespace shoal::client {

struct DeviceFacts {
  std::string id, selector, plane, name, driver;
  int64_t memory_bytes = 0;
  bool software = false;
};

struct SelfTestResult {
  bool exact = false;
  uint32_t samples = 0, failed = 0, unsupported = 0;
  std::string first_failure;
};

struct BenchmarkResult {
  double decode_rows_per_second = 0, prefill_rows_per_second = 0, weight_bytes_per_second = 0,
         flops_per_second = 0, copy_bytes_per_second = 0;
  Millis measured_at{0};  // Wall clock.
};

struct Measurement {
  SelfTestResult self_test;
  BenchmarkResult benchmark;
};

// Whether an owner's word means this device: it is its id, its selector or its plane.
bool fits(const std::string& word, const DeviceFacts& facts);

// Those of `all` that the owner wants to lend, by his words; a plane means all of its devices. No
// words: every real GPU, or the CPU when there is none; a GPU driver that computes on the CPU must
// be named. kNotFound for a word that fits none.
Result<std::vector<DeviceFacts>> choose_devices(const std::vector<DeviceFacts>& all,
                                                const std::vector<std::string>& words);

// What the owner means by lending nothing at all; an empty list means the usual devices.
inline constexpr const char* kNoDeviceWord = "none";

// The same, where devices come and go: `gone` are those that were here before. A real GPU among
// them counts, so that nothing else is lent in its place while its driver is late; and a word that
// fits none is no error, as its device may come.
std::vector<DeviceFacts> devices_to_lend(const std::vector<DeviceFacts>& here,
                                         const std::vector<DeviceFacts>& gone,
                                         const std::vector<std::string>& words);

}  // namespace shoal::client
