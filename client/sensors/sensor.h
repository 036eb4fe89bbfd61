#pragma once
// What a sensor is: something of this computer that can be asked, and may hang while it is. Holds
// the values that pass between sensors and the program that runs them; asks nothing itself.

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/units.h"

namespace shoal::client {

// Where the system shows itself as files. Tests hand in folders of their own.
struct SystemRoots {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
  std::filesystem::path dev = "/dev";
  std::filesystem::path x11_sockets = "/tmp/.X11-unix";
};

// What the client asked for. Immutable once handed over.
struct SensorConfiguration {
  std::vector<std::string> exclusive;  // Names or full paths of executables.
  std::string idle_source = "auto";
  Millis idle_threshold{0};            // From where on the owner is away; 0: not known.
  std::filesystem::path cache_folder;  // Empty: its disk is not looked at.
};

// One way to learn what a sensor tells, as the settings page shows it.
struct SensorBackend {
  std::string name;
  bool usable = false;
  std::string problem;         // Why it is not usable, and what would help. For people.
  std::optional<Millis> idle;  // What it says now; backends of "idle" alone.
};

struct SensorAnswer {
  bool known = true;
  std::string backend;  // What answered. Empty: nothing.
  std::string problem;  // Why it is not known, or what is wrong although it is. For people.
  nlohmann::json values = nlohmann::json::object();    // As in the line.
  std::optional<std::vector<SensorBackend>> backends;  // None: as they were.
  Millis next{2'000};                                  // When to ask again.

  static SensorAnswer unknown(std::string problem, Millis next = Millis{5'000}) {
    SensorAnswer answer;
    answer.known = false;
    answer.problem = std::move(problem);
    answer.next = next;
    return answer;
  }
};

// What one reading is told.
struct SensorRequest {
  const SensorConfiguration& configuration;
  const Clock& clock;
  Millis deadline;        // Monotonic. Who waits longer is reported as hanging.
  bool thorough = false;  // A person asked: try every backend anew.
  bool released = false;  // The client has let go of its devices: sleep may go on.
  // Says whom the thread is about to wait for, so that a hang can be blamed: "the X server".
  const std::function<void(std::string_view whom)>& about_to_ask;

  Millis left() const {
    return {std::max<int64_t>(0, deadline.count - clock.now_monotonic().count)};
  }
};

// What ends a sensor's rest before its time.
struct SensorWake {
  int fd = -1;  // -1: nothing.
  short events = 0;
  std::optional<Millis> within;  // From now.
};

// Lives on one thread of its own. Nothing that it reads is trusted.
class Sensor {
 public:
  virtual ~Sensor() = default;
  virtual std::string_view name() const = 0;
  // None: nothing to say yet.
  virtual std::optional<SensorAnswer> read(const SensorRequest& request) = 0;
  virtual SensorWake wake() { return {}; }
};

// The sensors, each in the file of its name.
std::unique_ptr<Sensor> make_idle_sensor(const SystemRoots& roots);
std::unique_ptr<Sensor> make_inhibitors_sensor();
std::unique_ptr<Sensor> make_power_sensor(const SystemRoots& roots);
std::unique_ptr<Sensor> make_sleep_sensor();
// Load of all processes but `own_root` and those that came of it.
std::unique_ptr<Sensor> make_load_sensor(const SystemRoots& roots, int64_t own_root);
std::unique_ptr<Sensor> make_memory_sensor(const SystemRoots& roots);
std::unique_ptr<Sensor> make_disk_sensor();
std::unique_ptr<Sensor> make_programs_sensor(const SystemRoots& roots);
std::unique_ptr<Sensor> make_gpu_sensor(const SystemRoots& roots);
std::unique_ptr<Sensor> make_cpu_sensor(const SystemRoots& roots);
std::unique_ptr<Sensor> make_network_sensor(const SystemRoots& roots);

}  // namespace shoal::client
