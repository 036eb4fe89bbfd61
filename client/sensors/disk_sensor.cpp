// How much room is left where shards are kept. A sensor of its own: a network disk may hang.

#include "base/files.h"
#include "client/sensors/sensor.h"
#include "client/sensors/system_files.h"

namespace shoal::client {
namespace {

constexpr Millis kEach{10'000};

class DiskSensor final : public Sensor {
 public:
  std::string_view name() const override { return "disk"; }

  std::optional<SensorAnswer> read(const SensorRequest& request) override {
    const std::filesystem::path folder = request.configuration.cache_folder;
    if (folder.empty()) return SensorAnswer::unknown("no folder for shards is known yet", kEach);
    request.about_to_ask("the disk of " + folder.string());
    // The folder may still have to be made.
    std::filesystem::path there = folder.lexically_normal();
    std::error_code code;
    while (!std::filesystem::exists(there, code) && there.has_parent_path() &&
           there != there.parent_path()) {
      there = there.parent_path();
    }
    const Result<Bytes> free = free_space(there);
    if (!free.ok()) return SensorAnswer::unknown(free.error().message, kEach);
    SensorAnswer answer;
    answer.backend = "statvfs";
    answer.next = kEach;
    answer.values["cache_disk_free"] = coarse(free.value().count);
    return answer;
  }
};

}  // namespace

std::unique_ptr<Sensor> make_disk_sensor() { return std::make_unique<DiskSensor>(); }

}  // namespace shoal::client
