// What each graphics card does: by NVIDIA's library, else by the files that the kernel shows. A
// card that is switched off to save power is not woken by being looked at.

#include <algorithm>

#include "client/sensors/nvml.h"
#include "client/sensors/sensor.h"
#include "client/sensors/system_files.h"

namespace shoal::client {
namespace {

constexpr Millis kEach{3'000};
constexpr Millis kEachOfNothing{10'000};
constexpr Millis kRetryEach{2'000};  // After a failure of a driver.
constexpr size_t kCardsMax = 64;
constexpr Millis kLookEach{30'000};
constexpr int64_t kNvidia = 0x10de;
constexpr int64_t kDisplayClass = 0x03;

std::string vendor_name(int64_t vendor) {
  switch (vendor) {
    case 0x1002: return "AMD";
    case 0x8086: return "Intel";
    case kNvidia: return "NVIDIA";
    default: return "Unknown";
  }
}

bool is_card(const std::string& name) {
  return name.starts_with("card") && parse_number(std::string_view(name).substr(4)).has_value();
}

std::optional<int64_t> read_hex(const std::filesystem::path& path) {
  const std::optional<std::string> word = read_word(path);
  if (!word || !word->starts_with("0x")) return {};
  return parse_number(std::string_view(*word).substr(2), 16);
}

// The figure divided, if it is there and lies between the bounds.
std::optional<double> read_scaled(const std::filesystem::path& path, double divisor, double most) {
  const std::optional<int64_t> number = read_number(path);
  if (!number || *number < 0) return {};
  const double value = static_cast<double>(*number) / divisor;
  return value <= most ? std::optional<double>(value) : std::nullopt;
}

template <class T>
void fill(std::optional<T>& to, const std::optional<T>& from) {
  if (!to) to = from;
}

class GpuSensor final : public Sensor {
 public:
  explicit GpuSensor(std::filesystem::path sys) : sys_(std::move(sys)) {}

  std::string_view name() const override { return "gpu"; }

  std::optional<SensorAnswer> read(const SensorRequest& request) override {
    request.about_to_ask("a graphics driver");
    std::vector<GpuReading> cards = read_kernel_cards();
    const auto with_address = [&](const std::string& address) {
      return std::ranges::find_if(
          cards, [&](const GpuReading& card) { return card.pci_address == address; });
    };
    const auto asleep = [this](const std::string& address) {
      return read_word(sys_ / "bus" / "pci" / "devices" / address / "power" / "runtime_status")
                 .value_or("") == "suspended";
    };

    SensorAnswer answer;
    answer.next = kEach;
    std::vector<SensorBackend> backends;
    std::vector<GpuReading> gpus;
    look_for_nvidia(request);
    const bool all_asleep = !nvidia_at_.empty() && std::ranges::all_of(nvidia_at_, asleep);
    // Starting the library would wake them all.
    Result<std::vector<GpuReading>> nvidia =
        all_asleep && !nvml_runs_
            ? Error{ErrorCode::kUnavailable, "the NVIDIA card is switched off to save power"}
            : nvml_.read(request, static_cast<int>(nvidia_at_.size()), asleep);
    nvml_runs_ = nvidia.ok();
    backends.push_back({"nvml", nvidia.ok(), nvidia.ok() ? "" : nvidia.error().message, {}});
    if (nvidia.ok()) {
      gpus = std::move(nvidia).value();
      for (GpuReading& gpu : gpus) {
        const auto card = with_address(gpu.pci_address);
        if (card == cards.end()) continue;
        fill(gpu.temperature_c, card->temperature_c);
        fill(gpu.watts, card->watts);
        cards.erase(card);
      }
      if (!gpus.empty()) answer.backend = "nvml";
    } else if (!all_asleep && nvidia.error().code != ErrorCode::kNotFound) {
      answer.problem = nvidia.error().message;
      answer.next = kRetryEach;
    }
    for (GpuReading& card : cards) gpus.push_back(std::move(card));
    if (!cards.empty() || answer.backend.empty()) {
      answer.backend += answer.backend.empty() ? "sysfs" : ", sysfs";
    }
    backends.push_back({"sysfs", true, "", {}});

    if (gpus.empty() && answer.problem.empty()) answer.next = kEachOfNothing;
    nlohmann::json list = nlohmann::json::array();
    for (const GpuReading& gpu : gpus) {
      if (list.size() < kCardsMax) list.push_back(as_json(gpu));
    }
    answer.values["gpus"] = std::move(list);
    answer.backends = std::move(backends);
    return answer;
  }

 private:
  static nlohmann::json as_json(const GpuReading& gpu) {
    nlohmann::json json = {{"pci", gpu.pci_address}, {"uuid", gpu.uuid}, {"name", gpu.name}};
    const auto put = [&json](const char* key, const std::optional<double>& value) {
      if (value) json[key] = *value;
    };
    put("temperature_c", gpu.temperature_c);
    put("watts", gpu.watts);
    put("joules", gpu.joules);
    put("load", gpu.load);
    if (gpu.memory_total) json["memory_total"] = gpu.memory_total->count;
    if (gpu.memory_used) json["memory_used"] = gpu.memory_used->count;
    return json;
  }

  // Also cards without a driver for screens are on the bus. There are many things on it, so it is
  // not read each time.
  void look_for_nvidia(const SensorRequest& request) {
    const Millis now = request.clock.now_monotonic();
    if (looked_at_ && now - *looked_at_ < kLookEach && !request.thorough) return;
    looked_at_ = now;
    nvidia_at_.clear();
    const std::filesystem::path folder = sys_ / "bus" / "pci" / "devices";
    for (const std::string& address : names_in(folder)) {
      if (read_hex(folder / address / "vendor") != kNvidia) continue;
      const int64_t kind = read_hex(folder / address / "class").value_or(0);
      if (kind >> 16 == kDisplayClass) nvidia_at_.push_back(address);
    }
  }

  std::vector<GpuReading> read_kernel_cards() const {
    std::vector<GpuReading> cards;
    const std::filesystem::path folder = sys_ / "class" / "drm";
    const std::vector<std::string> names = names_in(folder);
    for (const std::string& name : names) {
      if (!is_card(name) || cards.size() >= kCardsMax) continue;
      const std::filesystem::path device = folder / name / "device";
      const std::optional<int64_t> vendor = read_hex(device / "vendor");
      if (!vendor) continue;  // No card on a bus: a virtual one.
      GpuReading card;
      std::error_code code;
      card.pci_address = std::filesystem::canonical(device, code).filename().string();
      card.name = vendor_name(*vendor) + " " + read_word(device / "device").value_or("graphics");
      const bool asleep =
          read_word(device / "power" / "runtime_status").value_or("") == "suspended";
      if (!asleep) read_figures(device, card);
      cards.push_back(std::move(card));
    }
    return cards;
  }

  static void read_figures(const std::filesystem::path& device, GpuReading& gpu) {
    gpu.load = read_scaled(device / "gpu_busy_percent", 100, 1);
    const auto total = read_number(device / "mem_info_vram_total");
    const auto used = read_number(device / "mem_info_vram_used");
    if (total && used && *used >= 0 && *used <= *total) {
      gpu.memory_total = Bytes{*total};
      gpu.memory_used = Bytes{*used};
    }
    for (const std::string& monitor : names_in(device / "hwmon", 16)) {
      const std::filesystem::path at = device / "hwmon" / monitor;
      fill(gpu.temperature_c, read_scaled(at / "temp1_input", 1'000, 200));
      fill(gpu.watts, read_scaled(at / "power1_average", 1e6, 10'000));
      fill(gpu.watts, read_scaled(at / "power1_input", 1e6, 10'000));
      fill(gpu.joules, read_scaled(at / "energy1_input", 1e6, 1e15));
    }
  }

  std::filesystem::path sys_;
  Nvml nvml_;
  bool nvml_runs_ = false;
  std::vector<std::string> nvidia_at_;  // PCI addresses.
  std::optional<Millis> looked_at_;
};

}  // namespace

std::unique_ptr<Sensor> make_gpu_sensor(const SystemRoots& roots) {
  return std::make_unique<GpuSensor>(roots.sys);
}

}  // namespace shoal::client
