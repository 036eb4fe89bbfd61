// Which of the owner's exclusive programs run. A program is known by the file that it runs, whole
// path or last name, never by the 15 bytes that the kernel calls it by and that it can change.

#include "base/host.h"
#include "client/sensors/sensor.h"
#include "client/sensors/system_files.h"

namespace shoal::client {
namespace {

constexpr Millis kEach{10'000};  // With many programs this is the dearest question of all.
constexpr std::string_view kDeleted = " (deleted)";  // How the kernel marks a replaced file.

class ProgramsSensor final : public Sensor {
 public:
  explicit ProgramsSensor(std::filesystem::path proc) : proc_(std::move(proc)) {}

  std::string_view name() const override { return "programs"; }

  std::optional<SensorAnswer> read(const SensorRequest& request) override {
    SensorAnswer answer;
    answer.backend = "procfs";
    answer.next = kEach;
    answer.values["programs"] = nlohmann::json::array();
    const std::vector<std::string>& wanted = request.configuration.exclusive;
    if (wanted.empty()) return answer;  // Nothing is looked at for nobody.

    std::vector<bool> found(wanted.size());
    const OwnedFd folder = open_folder(proc_);
    const std::vector<int64_t> processes = process_ids(proc_);
    if (processes.empty()) {
      return SensorAnswer::unknown("the system does not tell which programs run");
    }
    for (const int64_t pid : processes) {
      const auto target = link_target(folder.get(), std::to_string(pid) + "/exe");
      if (!target) continue;  // The kernel's own, another user's, or gone by now.
      std::string_view file = *target;
      if (file.ends_with(kDeleted)) file.remove_suffix(kDeleted.size());
      const std::string_view last = file.substr(file.rfind('/') + 1);
      for (size_t i = 0; i < wanted.size(); ++i) {
        const bool whole = wanted[i].find('/') != std::string::npos;
        if (!wanted[i].empty() && (whole ? file : last) == wanted[i]) found[i] = true;
      }
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (found[i]) answer.values["programs"].push_back(wanted[i]);
    }
    return answer;
  }

 private:
  std::filesystem::path proc_;
};

}  // namespace

std::unique_ptr<Sensor> make_programs_sensor(const SystemRoots& roots) {
  return std::make_unique<ProgramsSensor>(roots.proc);
}

}  // namespace shoal::client
