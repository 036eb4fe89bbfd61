// For how long nobody touched this computer, from the first desktop backend that can be used, or
// the one that the owner chose; and whether the owner's session is locked.

#include <unistd.h>

#include <algorithm>

#include "client/sensors/bus.h"
#include "client/sensors/idle_backend.h"
#include "client/sensors/sensor.h"
#include "client/sensors/system_files.h"

namespace shoal::client {
namespace {

constexpr Millis kEach{1'000};
constexpr Millis kEachFarBelow{2'000};           // While the owner is here.
constexpr Millis kEachWhereTold{5'000};          // While a touch tells itself.
constexpr Millis kEachWhereNobodyTells{10'000};  // Unknown counts as in use meanwhile.
constexpr Millis kProbeEach{30'000};             // How often those that are not used are asked too.
constexpr Millis kShunFor{10'000};               // After it let us wait in vain.
constexpr Millis kSessionsEach{10'000};
constexpr Millis kLockedFresh{500};
constexpr Millis kTerminalsEach{5'000};  // The kernel notes the time of typing no finer.
constexpr size_t kSessionsMax = 16;
constexpr std::string_view kTerminals = "terminals";

struct Candidate {
  std::unique_ptr<IdleBackend> backend;
  SensorBackend state;
  bool shunned = false;
  Millis shunned_until{0};
};

// What the login service says of everybody's sessions.
struct Sessions {
  std::optional<bool> locked;  // All of this user's that have a screen.
  bool graphical = false;      // Anybody's.
  bool other_user = false;     // Another one sits at this computer, and is not idle.
};

bool has_screen(const std::string& kind) {
  return kind == "x11" || kind == "wayland" || kind == "mir";
}

class IdleSensor final : public Sensor {
 public:
  explicit IdleSensor(const SystemRoots& roots) : roots_(roots) {
    add(make_wayland_idle());
    add(make_mutter_idle(session_));
    add(make_screensaver_idle(session_));
    add(make_x11_idle());
    add(make_logind_idle(system_));
    add(make_terminals_idle(roots));
  }

  std::string_view name() const override { return "idle"; }

  std::optional<SensorAnswer> read(const SensorRequest& request) override {
    const Millis now = request.clock.now_monotonic();
    const std::string& source = request.configuration.idle_source;
    if (source != source_) chosen_ = nullptr;
    source_ = source;
    if (!sessions_at_ || now - *sessions_at_ >= kSessionsEach || request.thorough) {
      look_at_sessions(request);
    }
    SensorAnswer answer;
    Result<Millis> idle = Error{ErrorCode::kNotFound, ""};
    if (chosen_ != nullptr) idle = ask(*chosen_, request);
    const bool probe =
        !idle.ok() || !probed_at_ || now - *probed_at_ >= kProbeEach || request.thorough;
    if (probe) {
      // The one in use is asked once, and first.
      for (Candidate& candidate : candidates_) {
        if (&candidate != chosen_ || !idle.ok()) (void)ask(candidate, request);
      }
      probed_at_ = now;
      answer.backends.emplace();
      for (const Candidate& candidate : candidates_) answer.backends->push_back(candidate.state);
      choose();
      if (chosen_ != nullptr) idle = *chosen_->state.idle;
    }
    if (chosen_ == nullptr) {
      const bool waits = std::ranges::any_of(candidates_, &Candidate::shunned);
      look_whether_still_locked(request);
      const bool locked = sessions_.locked.value_or(false);
      SensorAnswer unknown = SensorAnswer::unknown(
          cause(), locked ? kEach : (waits ? kEachFarBelow : kEachWhereNobodyTells));
      unknown.backends = std::move(answer.backends);
      if (sessions_.locked && !sessions_.other_user) {
        unknown.values["locked"] = *sessions_.locked;
      }
      return unknown;
    }

    answer.backend = chosen_->state.name;
    Millis least = idle.value();
    bool elsewhere = sessions_.other_user;  // Somebody is at this computer, not at this screen.
    if (source == "auto") {
      // Somebody who types from afar uses this computer as well.
      Candidate& terminals = candidates_.back();
      if (&terminals != chosen_) {
        if (probe || !typed_at_ || now - *typed_at_ >= kTerminalsEach) {
          if (!probe) (void)ask(terminals, request);
          typed_at_ = now;
        }
        if (terminals.state.idle && *terminals.state.idle + (now - *typed_at_) < least) {
          least = *terminals.state.idle + (now - *typed_at_);
          answer.backend = kTerminals;
          elsewhere = true;
        }
      }
      if (sessions_.other_user) {
        least = Millis{0};
        answer.backend = "logind";
      }
    }
    // Who touches a locked computer is about to unlock it.
    const Millis threshold = request.configuration.idle_threshold;
    if (threshold.count == 0 || least < threshold) look_whether_still_locked(request);
    answer.values["idle_ms"] = least.count;
    // A locked screen makes nobody away who is not at it.
    if (sessions_.locked && !elsewhere) answer.values["locked"] = *sessions_.locked;
    answer.next = next_question(request, least);
    return answer;
  }

  SensorWake wake() override {
    return chosen_ == nullptr ? SensorWake{} : chosen_->backend->wake();
  }

 private:
  void add(std::unique_ptr<IdleBackend> backend) {
    Candidate candidate;
    candidate.state.name = backend->name();
    candidate.backend = std::move(backend);
    candidates_.push_back(std::move(candidate));
  }

  static Result<Millis> ask(Candidate& candidate, const SensorRequest& request) {
    const Millis now = request.clock.now_monotonic();
    SensorBackend& state = candidate.state;
    if (candidate.shunned && now < candidate.shunned_until && !request.thorough) {
      return Error{ErrorCode::kTimeout, state.problem};
    }
    const Result<Millis> idle = candidate.backend->read(request);
    candidate.shunned = !idle.ok() && idle.error().code == ErrorCode::kTimeout;
    if (candidate.shunned) candidate.shunned_until = now + kShunFor;
    state.usable = idle.ok();
    state.problem = idle.ok() ? "" : idle.error().message;
    state.idle.reset();
    if (idle.ok()) state.idle = idle.value();
    return idle;
  }

  // When it could first be otherwise in a way that matters.
  Millis next_question(const SensorRequest& request, Millis idle) const {
    const Millis threshold = request.configuration.idle_threshold;
    if (threshold.count == 0) return kEach;
    if (idle < threshold && sessions_.locked.value_or(false)) return kEach;
    if (idle < threshold) {
      return std::clamp(threshold - idle, Millis{100}, kEachFarBelow);
    }
    return chosen_->backend->tells_touch() ? kEachWhereTold : kEach;
  }

  void choose() {
    chosen_ = nullptr;
    for (Candidate& candidate : candidates_) {
      if (!candidate.state.usable) continue;
      if (source_ != "auto" && candidate.state.name != source_) continue;
      // Alone, terminals say nothing of somebody who uses a mouse.
      if (source_ == "auto" && candidate.state.name == kTerminals && may_have_screen()) continue;
      chosen_ = &candidate;
      return;
    }
  }

  bool may_have_screen() const {
    const auto is_set = [](const char* name) {
      const char* value = std::getenv(name);
      return value != nullptr && *value != '\0';
    };
    return sessions_.graphical || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY") ||
           !names_in(roots_.x11_sockets, 1).empty();
  }

  std::string cause() const {
    if (source_ != "auto") {
      for (const Candidate& candidate : candidates_) {
        if (candidate.state.name != source_) continue;
        return "the chosen source, " + source_ + ", cannot be used: " + candidate.state.problem +
               ". Choose another one, or \"auto\"";
      }
      return "there is no source called \"" + source_ + "\". Choose another one, or \"auto\"";
    }
    for (const Candidate& candidate : candidates_) {
      // One that hangs may well be the one that would know.
      if (candidate.shunned) return candidate.state.problem;
    }
    return "no source on this computer tells whether somebody uses it. Log in to a desktop, or "
           "choose the mode \"always\" if nobody does";
  }

  void look_at_sessions(const SensorRequest& request) {
    sessions_at_ = request.clock.now_monotonic();
    sessions_ = read_sessions(request);
  }

  // "Locked" lets work go on whoever moves the mouse, so where somebody may, it is said only when
  // it was just asked.
  void look_whether_still_locked(const SensorRequest& request) {
    if (!sessions_.locked.value_or(false)) return;
    if (request.clock.now_monotonic() - *sessions_at_ >= kLockedFresh) look_at_sessions(request);
  }

  Sessions read_sessions(const SensorRequest& request) {
    Sessions sessions;
    const Result<BusMessage> reply = system_.call(request, kLogind, "ListSessions");
    if (!reply.ok()) return sessions;
    sd_bus_message* message = reply.value().get();
    if (sd_bus_message_enter_container(message, SD_BUS_TYPE_ARRAY, "(susso)") < 0) return sessions;
    std::vector<std::pair<uint32_t, std::string>> found;
    const char *id = nullptr, *user = nullptr, *seat = nullptr, *path = nullptr;
    uint32_t uid = 0;
    while (found.size() < kSessionsMax &&
           sd_bus_message_read(message, "(susso)", &id, &uid, &user, &seat, &path) > 0) {
      found.emplace_back(uid, path);
    }
    for (const auto& [owner, at] : found) {
      const auto values =
          system_.properties(request, {kLogind.service, at, "org.freedesktop.login1.Session"});
      if (!values.ok()) continue;
      const auto flag = [&](const char* name) {
        return find_property(values.value(), name, as_flag).value_or(false);
      };
      const auto text = [&](const char* name) {
        return find_property(values.value(), name, as_text).value_or("");
      };
      const bool screen = has_screen(text("Type"));
      sessions.graphical = sessions.graphical || screen;
      if (text("Class") != "user") continue;  // A greeter is nobody.
      if (!screen) continue;
      if (owner == getuid()) {
        sessions.locked = sessions.locked.value_or(true) && flag("LockedHint");
      } else if (flag("Active") && !flag("IdleHint")) {
        sessions.other_user = true;
      }
    }
    return sessions;
  }

  SystemRoots roots_;
  Bus session_{Bus::Which::kSession};
  Bus system_{Bus::Which::kSystem};
  std::vector<Candidate> candidates_;  // In the order of "auto"; filled once.
  Candidate* chosen_ = nullptr;        // Null: none can be used.
  std::string source_;
  std::optional<Millis> probed_at_, sessions_at_, typed_at_;
  Sessions sessions_;
};

}  // namespace

std::unique_ptr<Sensor> make_idle_sensor(const SystemRoots& roots) {
  return std::make_unique<IdleSensor>(roots);
}

}  // namespace shoal::client
