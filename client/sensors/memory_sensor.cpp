// How much memory programs could still get without swapping.

#include "client/sensors/sensor.h"
#include "client/sensors/system_files.h"

namespace shoal::client {
namespace {

constexpr Millis kEach{5'000};

class MemorySensor final : public Sensor {
 public:
  explicit MemorySensor(std::filesystem::path proc) : proc_(std::move(proc)) {}

  std::string_view name() const override { return "memory"; }

  std::optional<SensorAnswer> read(const SensorRequest&) override {
    const std::string text = read_small_file(proc_ / "meminfo").value_or("");
    for (const std::string_view line : split_lines(text)) {
      const auto words = split_words(line);
      if (words.size() < 2 || words[0] != "MemAvailable:") continue;
      const auto kibibytes = parse_number(words[1]);
      if (!kibibytes || *kibibytes < 0 || *kibibytes > int64_t{1} << 50) break;
      SensorAnswer answer;
      answer.backend = "procfs";
      answer.next = kEach;
      answer.values["memory_available"] = coarse(*kibibytes) * 1'024;
      return answer;
    }
    return SensorAnswer::unknown("the system does not tell how much memory is free");
  }

 private:
  std::filesystem::path proc_;
};

}  // namespace

std::unique_ptr<Sensor> make_memory_sensor(const SystemRoots& roots) {
  return std::make_unique<MemorySensor>(roots.proc);
}

}  // namespace shoal::client
