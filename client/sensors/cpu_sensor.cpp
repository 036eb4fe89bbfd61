// How hot the processor is, and how much energy it has used, where the kernel shows it.

#include <map>

#include "client/sensors/sensor.h"
#include "client/sensors/system_files.h"

namespace shoal::client {
namespace {

constexpr Millis kEach{3'000};
constexpr Millis kEachOfNothing{30'000};
constexpr int kInputsMax = 64;

bool is_processor(const std::string& monitor) {
  return monitor == "coretemp" || monitor == "k10temp" || monitor == "zenpower" ||
         monitor == "cpu_thermal";
}

class CpuSensor final : public Sensor {
 public:
  explicit CpuSensor(std::filesystem::path sys) : sys_(std::move(sys)) {}

  std::string_view name() const override { return "cpu"; }

  std::optional<SensorAnswer> read(const SensorRequest&) override {
    SensorAnswer answer;
    answer.next = kEach;
    const std::optional<double> temperature = read_temperature();
    if (temperature) answer.values["cpu_temperature_c"] = *temperature;
    const std::optional<double> joules = read_energy();
    if (joules) answer.values["cpu_joules"] = *joules;
    if (temperature) answer.backend = "hwmon";
    if (joules) answer.backend += answer.backend.empty() ? "rapl" : ", rapl";
    answer.backends = {
        {"hwmon",
         temperature.has_value(),
         temperature ? "" : "the system shows no temperature of the processor",
         {}},
        {"rapl",
         joules.has_value(),
         joules ? "" : "the system shows no energy counter of the processor to this user",
         {}}};
    if (answer.backend.empty()) {
      answer.known = false;
      answer.next = kEachOfNothing;
      answer.problem = "the system shows neither temperature nor energy of the processor";
    }
    return answer;
  }

 private:
  // The hottest of all packages. AMD's Tctl is what its firmware throttles by.
  std::optional<double> read_temperature() const {
    std::optional<double> hottest;
    const std::filesystem::path folder = sys_ / "class" / "hwmon";
    for (const std::string& monitor : names_in(folder, 256)) {
      const std::filesystem::path at = folder / monitor;
      if (!is_processor(read_word(at / "name").value_or(""))) continue;
      for (int i = 1; i <= kInputsMax; ++i) {
        const auto milli = read_number(at / ("temp" + std::to_string(i) + "_input"));
        if (!milli) {
          if (i > 2) break;
          continue;
        }
        const double celsius = static_cast<double>(*milli) / 1'000;
        if (celsius < -50 || celsius > 200) continue;
        if (!hottest || celsius > *hottest) hottest = celsius;
        // A core's own figure is never above its package's, which comes first.
        const auto label = read_word(at / ("temp" + std::to_string(i) + "_label"));
        if (label && label->starts_with("Package")) break;
      }
    }
    return hottest;
  }

  // Each package's counter starts anew at a figure of its own; the sum must only grow.
  std::optional<double> read_energy() {
    const std::filesystem::path folder = sys_ / "class" / "powercap";
    bool any = false;
    for (const std::string& zone : names_in(folder, 256)) {
      // "intel-rapl:0" is a package, "intel-rapl:0:0" a part of it.
      if (!zone.starts_with("intel-rapl:") || zone.find(':', 11) != std::string::npos) continue;
      if (!read_word(folder / zone / "name").value_or("").starts_with("package")) continue;
      const auto now = read_number(folder / zone / "energy_uj");
      if (!now || *now < 0) continue;
      any = true;
      const auto [counter, is_new] = counters_.emplace(zone, *now);
      if (is_new) continue;
      int64_t grown = *now - counter->second;
      if (grown < 0) {
        const auto range = read_number(folder / zone / "max_energy_range_uj");
        grown = range && *range >= counter->second ? *range - counter->second + *now : 0;
      }
      counter->second = *now;
      joules_ += static_cast<double>(grown) / 1e6;
    }
    return any ? std::optional<double>(joules_) : std::nullopt;
  }

  std::filesystem::path sys_;
  std::map<std::string, int64_t> counters_;
  double joules_ = 0;  // Since this program began.
};

}  // namespace

std::unique_ptr<Sensor> make_cpu_sensor(const SystemRoots& roots) {
  return std::make_unique<CpuSensor>(roots.sys);
}

}  // namespace shoal::client
