// Whether the battery feeds this computer, how full it is, and which power profile the owner chose.

#include "client/sensors/bus.h"
#include "client/sensors/sensor.h"
#include "client/sensors/system_files.h"

namespace shoal::client {
namespace {

constexpr Millis kEach{5'000};
constexpr Millis kDetailsEach{15'000};
constexpr int64_t kBatteryKind = 2;  // UPower's Type.

const BusPlace kUPower = {"org.freedesktop.UPower", "/org/freedesktop/UPower",
                          "org.freedesktop.UPower"};
const BusPlace kDisplayDevice = {"org.freedesktop.UPower",
                                 "/org/freedesktop/UPower/devices/DisplayDevice",
                                 "org.freedesktop.UPower.Device"};
// The same service under its new name and its old one.
const BusPlace kProfiles[] = {
    {"org.freedesktop.UPower.PowerProfiles", "/org/freedesktop/UPower/PowerProfiles",
     "org.freedesktop.UPower.PowerProfiles"},
    {"net.hadess.PowerProfiles", "/net/hadess/PowerProfiles", "net.hadess.PowerProfiles"}};

struct Supply {
  bool on_battery = false;
  std::optional<double> percent;
};

// Any line power that is on is enough. A mouse's battery is not this computer's, and a computer
// without a battery has no other power than the line's.
Supply read_supplies(const std::filesystem::path& sys) {
  const std::filesystem::path folder = sys / "class" / "power_supply";
  bool line = false;
  bool line_on = false;
  bool discharging = false;
  double percent_sum = 0;
  int batteries = 0;
  int told_percent = 0;
  for (const std::string& name : names_in(folder, 64)) {
    const std::string kind = read_word(folder / name / "type").value_or("");
    if (read_word(folder / name / "scope").value_or("") == "Device") continue;
    if (kind == "Mains" || kind == "Wireless" || kind.starts_with("USB")) {
      line = true;
      line_on = line_on || read_number(folder / name / "online").value_or(0) == 1;
    } else if (kind == "Battery") {
      if (read_number(folder / name / "present").value_or(1) == 0) continue;
      ++batteries;
      discharging =
          discharging || read_word(folder / name / "status").value_or("") == "Discharging";
      const auto percent = read_number(folder / name / "capacity");
      if (percent && *percent >= 0 && *percent <= 100) {
        percent_sum += static_cast<double>(*percent);
        ++told_percent;
      }
    }
  }
  Supply supply;
  if (batteries > 0) supply.on_battery = !line_on && (line || discharging);
  if (told_percent > 0) supply.percent = percent_sum / told_percent;
  return supply;
}

class PowerSensor final : public Sensor {
 public:
  explicit PowerSensor(std::filesystem::path sys) : sys_(std::move(sys)) {}

  std::string_view name() const override { return "power"; }

  std::optional<SensorAnswer> read(const SensorRequest& request) override {
    SensorAnswer answer;
    answer.next = kEach;
    std::vector<SensorBackend> backends;

    Supply supply;
    const Result<BusValue> on_battery = bus_.property(request, kUPower, "OnBattery");
    const std::optional<bool> said =
        on_battery.ok() ? as_flag(on_battery.value()) : std::optional<bool>();
    backends.push_back({"upower",
                        said.has_value(),
                        said              ? ""
                        : on_battery.ok() ? "UPower gave an answer that makes no sense"
                                          : on_battery.error().message,
                        {}});
    backends.push_back({"sysfs", true, "", {}});
    if (said) {
      answer.backend = "upower";
      supply.on_battery = *said;
      supply.percent = percent_;
    } else {
      answer.backend = "sysfs";
      supply = read_supplies(sys_);
    }
    // Charge and profile change slowly, the line at once.
    const Millis now = request.clock.now_monotonic();
    if (!details_at_ || now - *details_at_ >= kDetailsEach || request.thorough || !profile_) {
      details_at_ = now;
      if (said) supply.percent = percent_ = read_percent(request);
      profile_ = read_profile(request, profile_problem_);
    }
    answer.values["on_battery"] = supply.on_battery;
    if (supply.percent) answer.values["battery_percent"] = *supply.percent;
    if (profile_) answer.values["power_profile"] = *profile_;
    if (!profile_) answer.problem = profile_problem_;
    answer.backends = std::move(backends);
    return answer;
  }

 private:
  std::optional<double> read_percent(const SensorRequest& request) {
    const auto device = bus_.properties(request, kDisplayDevice);
    if (!device.ok() || !find_property(device.value(), "IsPresent", as_flag).value_or(false) ||
        find_property(device.value(), "Type", as_number).value_or(0) != kBatteryKind) {
      return {};
    }
    const auto percent = find_property(device.value(), "Percentage", as_real);
    return percent && *percent >= 0 && *percent <= 100 ? percent : std::nullopt;
  }

  // "none" where nothing offers profiles; none when that cannot be known.
  std::optional<std::string> read_profile(const SensorRequest& request, std::string& problem) {
    if (!bus_.exists()) return "none";
    bool absent = true;
    for (const BusPlace& place : kProfiles) {
      const Result<BusValue> active = bus_.property(request, place, "ActiveProfile");
      if (active.ok()) {
        const auto profile = as_text(active.value());
        if (profile && !profile->empty()) return profile;
        continue;
      }
      if (active.error().code == ErrorCode::kNotFound) continue;
      absent = false;
      problem = "the power profile is not known: " + active.error().message;
    }
    return absent ? std::optional<std::string>("none") : std::nullopt;
  }

  std::filesystem::path sys_;
  std::optional<Millis> details_at_;
  std::optional<double> percent_;
  std::optional<std::string> profile_;
  std::string profile_problem_;
  Bus bus_{Bus::Which::kSystem};
};

}  // namespace

std::unique_ptr<Sensor> make_power_sensor(const SystemRoots& roots) {
  return std::make_unique<PowerSensor>(roots.sys);
}

}  // namespace shoal::client
