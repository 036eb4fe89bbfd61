#include "client/device_facts.h"

#include <algorithm>

namespace shoal::client {

bool fits(const std::string& word, const DeviceFacts& facts) {
  return word == facts.id || word == facts.selector || word == facts.plane;
}

Result<std::vector<DeviceFacts>> choose_devices(const std::vector<DeviceFacts>& all,
                                                const std::vector<std::string>& words) {
  std::vector<DeviceFacts> chosen;
  const auto add = [&chosen](const DeviceFacts& device) {
    const auto same = [&device](const DeviceFacts& other) { return other.id == device.id; };
    if (std::none_of(chosen.begin(), chosen.end(), same)) chosen.push_back(device);
  };
  if (words.empty()) {
    for (const DeviceFacts& device : all) {
      if (device.plane != "cpu" && !device.software) add(device);
    }
    if (chosen.empty()) {
      for (const DeviceFacts& device : all) {
        if (device.plane == "cpu") add(device);
      }
    }
    return chosen;
  }
  for (const std::string& word : words) {
    bool found = word == kNoDeviceWord;
    for (const DeviceFacts& device : all) {
      if (!fits(word, device)) continue;
      add(device);
      found = true;
    }
    if (found) continue;
    std::string known;
    for (const DeviceFacts& device : all) known += (known.empty() ? "" : ", ") + device.selector;
    return Error{ErrorCode::kNotFound, "no device \"" + word + "\" here; there are: " + known};
  }
  return chosen;
}

std::vector<DeviceFacts> devices_to_lend(const std::vector<DeviceFacts>& here,
                                         const std::vector<DeviceFacts>& gone,
                                         const std::vector<std::string>& words) {
  std::vector<DeviceFacts> all = here;
  all.insert(all.end(), gone.begin(), gone.end());
  if (words.empty()) return choose_devices(all, {}).value();
  std::vector<DeviceFacts> chosen;
  for (const std::string& word : words) {
    // A selector counts what is here: another device may have had it before.
    Result<std::vector<DeviceFacts>> fitting = choose_devices(here, {word});
    if (!fitting.ok()) fitting = choose_devices(gone, {word});
    if (!fitting.ok()) continue;
    for (const DeviceFacts& device : fitting.value()) {
      const auto same = [&device](const DeviceFacts& other) { return other.id == device.id; };
      if (std::ranges::none_of(chosen, same)) chosen.push_back(device);
    }
  }
  return chosen;
}

}  // namespace shoal::client
