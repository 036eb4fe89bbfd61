#include "client/verdicts.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace shoal::client {
namespace {

// A GPU that nothing is wrong with: to ask what the rules say of GPUs when there is none.
const GpuReading& any_gpu() {
  static const GpuReading kReading = [] {
    GpuReading reading;
    reading.temperature_c = 0;
    reading.watts = 0;
    reading.load = 0;
    return reading;
  }();
  return kReading;
}

// "vulkan:<uuid>" without its plane and without dashes.
std::string uuid_of(const std::string& device_id) {
  std::string uuid;
  for (const char c : device_id.substr(device_id.find(':') + 1)) {
    if (c != '-') uuid += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return uuid;
}

// Who made it, by the words in its name; empty: none of those, or several.
std::string vendor_in(const std::string& name) {
  static constexpr std::pair<const char*, const char*> kWords[] = {
      {"AMD", "AMD"},       {"Radeon", "AMD"},     {"RADV", "AMD"},     {"Intel", "Intel"},
      {"NVIDIA", "NVIDIA"}, {"GeForce", "NVIDIA"}, {"Quadro", "NVIDIA"}};
  std::string vendor;
  for (const auto& [word, maker] : kWords) {
    if (name.find(word) == std::string::npos || vendor == maker) continue;
    if (!vendor.empty()) return "";
    vendor = maker;
  }
  return vendor;
}

std::string forbidding(const Verdict& verdict) { return verdict.allowed() ? "" : verdict.rule; }

}  // namespace

Resource resource_of(const std::string& plane, bool software) {
  return plane == "cpu" || software ? Resource::kCpu : Resource::kGpu;
}

const GpuReading* reading_of(const DeviceFacts& device, const std::vector<DeviceFacts>& here,
                             const std::vector<GpuReading>& gpus) {
  const std::string uuid = uuid_of(device.id);
  for (const GpuReading& gpu : gpus) {
    if (!gpu.uuid.empty() && gpu.uuid == uuid) return &gpu;
  }
  const std::string vendor = vendor_in(device.name);
  if (vendor.empty()) return nullptr;
  const auto is_other = [&](const DeviceFacts& other) {
    // One whose maker is not known may be of any.
    const std::string maker = vendor_in(other.name);
    return uuid_of(other.id) != uuid && (maker.empty() || maker == vendor);
  };
  if (std::ranges::any_of(here, is_other)) return nullptr;
  const GpuReading* only = nullptr;
  for (const GpuReading& gpu : gpus) {
    if (vendor_in(gpu.name) != vendor) continue;
    if (only != nullptr) return nullptr;
    only = &gpu;
  }
  // One with another name of its own is another one.
  return only != nullptr && only->uuid.empty() ? only : nullptr;
}

bool says_the_same(const Verdict& a, const Verdict& b) {
  return a.activity == b.activity && a.rule == b.rule && a.why.code == b.why.code;
}

bool update(StandingVerdict& standing, Verdict verdict, Millis now) {
  const bool same = standing.since.count != 0 && says_the_same(standing.verdict, verdict);
  standing.verdict = std::move(verdict);
  if (!same) standing.since = now;
  return !same;
}

const Verdict& Verdicts::of_device(const std::string& id) const {
  static const Verdict kNotJudged{Activity::kWaiting, {"device.looking", {}}, {}, "", {}};
  const auto found = devices_.find(id);
  return found == devices_.end() ? kNotJudged : found->second;
}

bool Verdicts::judge(PolicyInput input, const std::vector<Device>& devices) {
  bool changed = false;
  const auto remember = [&](const Verdict& last) { input.forbidden_by = forbidding(last); };
  for (const Resource resource : {Resource::kCpu, Resource::kNetwork}) {
    remember(of(resource).verdict);
    changed |= update(resources_[static_cast<int>(resource)], decide(input, resource), input.now);
  }

  std::map<std::string, Verdict> judged;
  const Verdict* best_gpu = nullptr;
  for (const Device& device : devices) {
    Verdict& verdict = judged[device.id];
    if (device.resource == Resource::kCpu) {
      verdict = of(Resource::kCpu).verdict;
    } else {
      const auto last = devices_.find(device.id);
      remember(last == devices_.end() ? Verdict{} : last->second);
      input.own_gpu_load = device.own_load;
      verdict = decide(input, Resource::kGpu, device.gpu);
      if (device.counts && (best_gpu == nullptr || (verdict.allowed() && !best_gpu->allowed())))
        best_gpu = &verdict;
    }
    const auto last = devices_.find(device.id);
    changed |= last == devices_.end() || !says_the_same(last->second, verdict);
  }
  remember(of(Resource::kGpu).verdict);
  input.own_gpu_load = 0;
  Verdict gpus = best_gpu != nullptr ? *best_gpu : decide(input, Resource::kGpu, &any_gpu());
  changed |= update(resources_[static_cast<int>(Resource::kGpu)], std::move(gpus), input.now);
  devices_ = std::move(judged);
  return changed;
}

}  // namespace shoal::client
