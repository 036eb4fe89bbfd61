#include "coordinator/work/standing.h"

#include "base/check.h"

namespace shoal {
namespace {

// Who stays for so long gets sessions of the usual length.
constexpr Millis kLeavingSoon{600'000};

}  // namespace

std::string_view state_word(DeviceState state, int stages) {
  switch (state) {
    case DeviceState::kReady: return stages > 0 ? "working" : "pooled";
    case DeviceState::kStarting: return "sleeping";
    case DeviceState::kFailed: return "quarantined";
    case DeviceState::kDraining: return "draining";
    case DeviceState::kPaused: return "paused";
  }
  SHOAL_UNREACHABLE();
}

std::string_view why_no_work(const DeviceSituation& device,
                             const CoordinatorSituation& coordinator) {
  switch (device.state) {
    case DeviceState::kReady: break;
    case DeviceState::kStarting: return "standing.starting";
    case DeviceState::kFailed: return "standing.device_failed";
    case DeviceState::kDraining: return "standing.draining";
    case DeviceState::kPaused: return "standing.paused";
  }
  if (device.stages > 0) return "";
  if (coordinator.stopping) return "standing.stopping";
  if (!device.has_worker) return "standing.no_worker";
  if (!device.exact) return "standing.not_exact";
  if (!coordinator.has_models) return "standing.no_model";
  if (device.all_denied) return "standing.denied";
  if (device.memory_free < coordinator.smallest_need) return "standing.model_too_large";
  if (device.available && *device.available < kLeavingSoon) return "standing.leaving";
  return coordinator.has_sessions ? "standing.others_work" : "standing.no_request";
}

}  // namespace shoal
