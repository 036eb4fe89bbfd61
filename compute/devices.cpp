#include "compute/compute.h"

namespace shoal::compute {

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> list;
  for (const auto& backend : make_backends()) {
    for (DeviceInfo& info : backend->devices()) list.push_back(std::move(info));
  }
  return list;
}

Result<std::unique_ptr<Device>> open_device(const std::string& id_or_selector, int threads) {
  std::string known;
  for (const auto& backend : make_backends()) {
    bool first = true;
    for (const DeviceInfo& info : backend->devices()) {
      // A plane's bare name means its first device.
      if (info.id == id_or_selector || info.selector == id_or_selector ||
          (first && info.plane == id_or_selector)) {
        return backend->open(info.id, threads);
      }
      first = false;
      known += (known.empty() ? "" : ", ") + info.selector;
    }
    if (first && backend->plane() == id_or_selector) {
      return Error{ErrorCode::kUnavailable,
                   std::string(backend->plane()) + ": no device: " + backend->why_none()};
    }
  }
  return Error{ErrorCode::kNotFound,
               "there is no device " + id_or_selector + "; there are: " + known};
}

}  // namespace shoal::compute
