// Whether there is a network, and whether its owner pays by the byte.

#include "client/sensors/bus.h"
#include "client/sensors/sensor.h"
#include "client/sensors/system_files.h"

namespace shoal::client {
namespace {

constexpr Millis kEach{10'000};
constexpr size_t kRoutesBytesMax = 1 << 20;
constexpr int64_t kRouteUp = 0x1;
constexpr int64_t kRouteReject = 0x200;
constexpr int64_t kConnectedSite = 60;  // NetworkManager: from here on more than this machine.

const BusPlace kNetworkManager = {"org.freedesktop.NetworkManager",
                                  "/org/freedesktop/NetworkManager",
                                  "org.freedesktop.NetworkManager"};

bool is_zero(std::string_view hex) { return hex.find_first_not_of('0') == hex.npos; }

// Routes that lead away from this machine: to everywhere, or at least to its neighbours. A
// coordinator may well be next door, with no way out to the world.
struct Routes {
  bool known = false;
  bool everywhere = false;
  bool neighbours = false;
};

Routes read_routes(const std::filesystem::path& proc) {
  Routes routes;
  // "Iface Destination Gateway Flags RefCnt Use Metric Mask ...", numbers in hex of this machine's
  // order, which matters for no zero.
  if (const auto text = read_small_file(proc / "net" / "route", kRoutesBytesMax)) {
    routes.known = true;
    for (const std::string_view line : split_lines(*text)) {
      const auto words = split_words(line);
      if (words.size() < 8 || words[0] == "lo") continue;
      const auto flags = parse_number(words[3], 16);
      if (!flags || (*flags & kRouteUp) == 0 || (*flags & kRouteReject) != 0) continue;
      const bool link_local = words[1].size() == 8 && words[1].substr(4) == "FEA9";
      (is_zero(words[1]) && is_zero(words[7]) ? routes.everywhere : routes.neighbours) |=
          !link_local;
    }
  }
  // "destination length source length next_hop metric refs use flags device"
  if (const auto text = read_small_file(proc / "net" / "ipv6_route", kRoutesBytesMax)) {
    routes.known = true;
    for (const std::string_view line : split_lines(*text)) {
      const auto words = split_words(line);
      if (words.size() < 10 || words[9] == "lo") continue;
      const auto flags = parse_number(words[8], 16);
      if (!flags || (*flags & kRouteUp) == 0 || (*flags & kRouteReject) != 0) continue;
      const bool own = words[0].starts_with("fe80") || words[0].starts_with("ff");
      (is_zero(words[0]) && is_zero(words[1]) ? routes.everywhere : routes.neighbours) |= !own;
    }
  }
  return routes;
}

class NetworkSensor final : public Sensor {
 public:
  explicit NetworkSensor(std::filesystem::path proc) : proc_(std::move(proc)) {}

  std::string_view name() const override { return "network"; }

  std::optional<SensorAnswer> read(const SensorRequest& request) override {
    SensorAnswer answer;
    answer.next = kEach;
    std::vector<SensorBackend> backends;

    std::optional<bool> online;
    const Result<BusValue> state = bus_.property(request, kNetworkManager, "State");
    backends.push_back({"networkmanager", state.ok(), state.ok() ? "" : state.error().message, {}});
    if (state.ok()) {
      answer.backend = "networkmanager";
      if (const auto number = as_number(state.value())) online = *number >= kConnectedSite;
      const Result<BusValue> metered = bus_.property(request, kNetworkManager, "Metered");
      // 1 yes, 2 no, 3 and 4 the same as guesses; else it does not know.
      const int64_t said = metered.ok() ? as_number(metered.value()).value_or(0) : 0;
      if (said == 1 || said == 3) answer.values["metered"] = true;
      if (said == 2 || said == 4) answer.values["metered"] = false;
    }

    // NetworkManager may know nothing of a network that another program has set up.
    const Routes routes = read_routes(proc_);
    backends.push_back(
        {"routes", routes.known, routes.known ? "" : "the system does not show its routes", {}});
    if (routes.known && !online.value_or(false)) {
      online = routes.everywhere || routes.neighbours;
      if (answer.backend.empty()) answer.backend = "routes";
    }
    if (online) answer.values["online"] = *online;
    answer.backends = std::move(backends);
    if (!online) {
      answer.known = false;
      answer.problem = "neither NetworkManager nor the system's routes tell whether it is online";
    }
    return answer;
  }

 private:
  std::filesystem::path proc_;
  Bus bus_{Bus::Which::kSystem};
};

}  // namespace

std::unique_ptr<Sensor> make_network_sensor(const SystemRoots& roots) {
  return std::make_unique<NetworkSensor>(roots.proc);
}

}  // namespace shoal::client
