// Which programs keep the screen on, and whether a game runs: whoever watches a film touches
// nothing and is there all the same.

#include <unistd.h>

#include "client/sensors/bus.h"
#include "client/sensors/sensor.h"

namespace shoal::client {
namespace {

constexpr Millis kEach{10'000};  // A film begins with a touch.
constexpr size_t kInhibitorsMax = 64;
constexpr uint32_t kGnomeIdle = 8;  // What GNOME calls "do not count the session as idle".

const BusPlace kGnome = {"org.gnome.SessionManager", "/org/gnome/SessionManager",
                         "org.gnome.SessionManager"};
const BusPlace kPowerManagement = {"org.freedesktop.PowerManagement.Inhibit",
                                   "/org/freedesktop/PowerManagement/Inhibit",
                                   "org.freedesktop.PowerManagement.Inhibit"};
const BusPlace kKde = {"org.kde.Solid.PowerManagement.PolicyAgent",
                       "/org/kde/Solid/PowerManagement/PolicyAgent",
                       "org.kde.Solid.PowerManagement.PolicyAgent"};
const BusPlace kGameMode = {"com.feralinteractive.GameMode", "/com/feralinteractive/GameMode",
                            "com.feralinteractive.GameMode"};

struct Found {
  std::string who, why;
};
using FoundList = std::vector<Found>;

// "what" is a list such as "sleep:idle".
bool names_idle(std::string_view what) {
  while (!what.empty()) {
    const size_t end = std::min(what.find(':'), what.size());
    if (what.substr(0, end) == "idle") return true;
    what.remove_prefix(std::min(end + 1, what.size()));
  }
  return false;
}

class InhibitorsSensor final : public Sensor {
 public:
  std::string_view name() const override { return "inhibitors"; }

  std::optional<SensorAnswer> read(const SensorRequest& request) override {
    SensorAnswer answer;
    answer.next = kEach;
    FoundList found;
    std::vector<SensorBackend> backends;
    std::string failed;  // Of one that runs and yet does not tell.
    const auto ask = [&](const char* name, auto read) {
      const Result<FoundList> said = read();
      backends.push_back({name, said.ok(), said.ok() ? "" : said.error().message, {}});
      if (said.ok()) {
        found.insert(found.end(), said.value().begin(), said.value().end());
        if (!answer.backend.empty()) answer.backend += ", ";
        answer.backend += name;
      } else if (said.error().code != ErrorCode::kNotFound &&
                 said.error().code != ErrorCode::kUnsupported) {
        failed = said.error().message;
      }
    };
    ask("logind", [&] { return read_logind(request); });
    ask("gnome", [&] { return read_gnome(request); });
    ask("power-management", [&] { return read_power_management(request); });

    if (!answer.backend.empty() && failed.empty()) {
      nlohmann::json list = nlohmann::json::array();
      for (const Found& one : found) {
        if (list.size() < kInhibitorsMax) list.push_back({{"who", one.who}, {"why", one.why}});
      }
      answer.values["inhibitors"] = std::move(list);
    } else {
      answer.known = false;
      answer.problem = failed.empty()
                           ? "nothing on this computer tells whether a program keeps the screen on"
                           : failed;
    }
    read_game_mode(request, answer, backends);
    answer.backends = std::move(backends);
    return answer;
  }

 private:
  Result<FoundList> read_logind(const SensorRequest& request) {
    SHOAL_TRY_ASSIGN(reply, system_.call(request, kLogind, "ListInhibitors"));
    FoundList found;
    sd_bus_message* message = reply.get();
    if (sd_bus_message_enter_container(message, SD_BUS_TYPE_ARRAY, "(ssssuu)") <= 0) {
      return Error{ErrorCode::kCorrupt, "the login service lists inhibitors that make no sense"};
    }
    for (size_t i = 0; i < 1'024 && found.size() < kInhibitorsMax; ++i) {
      const char *what = nullptr, *who = nullptr, *why = nullptr, *mode = nullptr;
      uint32_t uid = 0, pid = 0;
      const int status =
          sd_bus_message_read(message, "(ssssuu)", &what, &who, &why, &mode, &uid, &pid);
      if (status == 0) break;
      if (status < 0) {
        return Error{ErrorCode::kCorrupt, "the login service lists inhibitors that make no sense"};
      }
      const bool ours =
          pid == static_cast<uint32_t>(getpid()) || pid == static_cast<uint32_t>(getppid());
      if (!ours && names_idle(what)) found.push_back({peer_text(who), peer_text(why)});
    }
    return found;
  }

  Result<FoundList> read_gnome(const SensorRequest& request) {
    SHOAL_TRY_ASSIGN(any, session_.call(request, kGnome, "IsInhibited", {kGnomeIdle}));
    int inhibited = 0;
    if (sd_bus_message_read_basic(any.get(), 'b', &inhibited) <= 0) {
      return Error{ErrorCode::kCorrupt, "GNOME's session manager answers what makes no sense"};
    }
    FoundList found;
    if (inhibited == 0) return found;
    // It holds whatever can be learnt of whom; an inhibitor may end while it is asked about.
    const Result<BusMessage> reply = session_.call(request, kGnome, "GetInhibitors");
    std::vector<std::string> paths;
    if (reply.ok()) {
      sd_bus_message* message = reply.value().get();
      if (sd_bus_message_enter_container(message, SD_BUS_TYPE_ARRAY, "o") >= 0) {
        const char* path = nullptr;
        while (paths.size() < kInhibitorsMax &&
               sd_bus_message_read_basic(message, 'o', &path) > 0) {
          paths.emplace_back(path);
        }
      }
    }
    for (const std::string& path : paths) {
      if (request.left().count == 0) break;
      const BusPlace place = {kGnome.service, path, "org.gnome.SessionManager.Inhibitor"};
      const Result<BusMessage> flags = session_.call(request, place, "GetFlags");
      uint32_t bits = 0;
      if (!flags.ok() || sd_bus_message_read_basic(flags.value().get(), 'u', &bits) <= 0) continue;
      if ((bits & kGnomeIdle) == 0) continue;
      found.push_back({text_of(request, place, "GetAppId"), text_of(request, place, "GetReason")});
    }
    if (found.empty()) found.push_back({"a program", ""});
    return found;
  }

  std::string text_of(const SensorRequest& request, const BusPlace& place, const char* method) {
    const Result<BusMessage> reply = session_.call(request, place, method);
    const char* text = nullptr;
    if (!reply.ok() || sd_bus_message_read_basic(reply.value().get(), 's', &text) <= 0) return "";
    return peer_text(text);
  }

  Result<FoundList> read_power_management(const SensorRequest& request) {
    SHOAL_TRY_ASSIGN(reply, session_.call(request, kPowerManagement, "HasInhibit"));
    int inhibited = 0;
    if (sd_bus_message_read_basic(reply.get(), 'b', &inhibited) <= 0) {
      return Error{ErrorCode::kCorrupt, "the power manager answers what makes no sense"};
    }
    FoundList found;
    if (inhibited == 0) return found;
    // KDE also says who.
    const Result<BusMessage> names = session_.call(request, kKde, "ListInhibitions");
    if (names.ok()) {
      sd_bus_message* message = names.value().get();
      const char *who = nullptr, *why = nullptr;
      if (sd_bus_message_enter_container(message, SD_BUS_TYPE_ARRAY, "(ss)") >= 0) {
        while (found.size() < kInhibitorsMax &&
               sd_bus_message_read(message, "(ss)", &who, &why) > 0) {
          found.push_back({peer_text(who), peer_text(why)});
        }
      }
    }
    if (found.empty()) found.push_back({"a program", ""});
    return found;
  }

  void read_game_mode(const SensorRequest& request, SensorAnswer& answer,
                      std::vector<SensorBackend>& backends) {
    // Without a session bus no game can have asked for it.
    const Result<BusValue> games = session_.exists()
                                       ? session_.property(request, kGameMode, "ClientCount")
                                       : Result<BusValue>(BusValue(int64_t{0}));
    std::string problem;
    if (games.ok()) {
      const auto count = as_number(games.value());
      if (count) answer.values["game_mode"] = *count > 0;
    } else {
      problem = games.error().message;
      if (games.error().code == ErrorCode::kNotFound) answer.values["game_mode"] = false;
    }
    backends.push_back({"gamemode", problem.empty(), problem, {}});
  }

  Bus system_{Bus::Which::kSystem};
  Bus session_{Bus::Which::kSession};
};

}  // namespace

std::unique_ptr<Sensor> make_inhibitors_sensor() { return std::make_unique<InhibitorsSensor>(); }

}  // namespace shoal::client
