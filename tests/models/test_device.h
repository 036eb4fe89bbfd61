#pragma once
// The devices that tests of models run on.

#include <QtGlobal>

#include <algorithm>
#include <memory>
#include <string>

#include "compute/compute.h"

namespace shoal::compute {

inline std::unique_ptr<Device> device(const std::string& selector, int threads = 2) {
  auto found = open_device(selector, threads);
  if (!found.ok()) qFatal("%s", found.error().message.c_str());
  return std::move(found).value();
}

inline bool has_vulkan() {
  return std::ranges::any_of(list_devices(),
                             [](const DeviceInfo& info) { return info.plane == "vulkan"; });
}

}  // namespace shoal::compute
