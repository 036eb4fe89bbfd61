// Idle time as desktops and the login service tell it on D-Bus.

#include "client/sensors/idle_backend.h"

namespace shoal::client {
namespace {

constexpr int64_t kIdleMax = int64_t{1} << 42;  // A hundred years: what is more makes no sense.

const BusPlace kMutter = {"org.gnome.Mutter.IdleMonitor", "/org/gnome/Mutter/IdleMonitor/Core",
                          "org.gnome.Mutter.IdleMonitor"};
const BusPlace kScreenSaver = {"org.freedesktop.ScreenSaver", "/org/freedesktop/ScreenSaver",
                               "org.freedesktop.ScreenSaver"};

Error strange(std::string_view whom) {
  return {ErrorCode::kCorrupt, std::string(whom) + " gave an idle time that makes no sense"};
}

class MutterIdle final : public IdleBackend {
 public:
  explicit MutterIdle(Bus& bus) : bus_(bus) {}

  std::string_view name() const override { return "mutter"; }

  Result<Millis> read(const SensorRequest& request) override {
    SHOAL_TRY_ASSIGN(reply, bus_.call(request, kMutter, "GetIdletime"));
    uint64_t idle = 0;
    if (sd_bus_message_read_basic(reply.get(), 't', &idle) <= 0 || idle > uint64_t{kIdleMax}) {
      return strange("GNOME");
    }
    if (bus_.connection() != heard_connection_) {
      heard_connection_ = bus_.connection();
      watch_ = 0;
      may_watch_ = bus_.on_signal(request, kMutter, "WatchFired", fired_).ok();
    }
    // A watch tells one touch, and is asked for only of somebody who is away.
    if (watch_ == 0 && may_watch_ && idle >= kAway) watch(request);
    return Millis{static_cast<int64_t>(idle)};
  }

  bool tells_touch() const override { return watch_ != 0; }
  SensorWake wake() override { return watch_ != 0 ? bus_.wake() : SensorWake{}; }

 private:
  static constexpr uint64_t kAway = 5'000;

  void watch(const SensorRequest& request) {
    const Result<BusMessage> reply = bus_.call(request, kMutter, "AddUserActiveWatch");
    uint32_t id = 0;
    may_watch_ = reply.ok() && sd_bus_message_read_basic(reply.value().get(), 'u', &id) > 0;
    if (may_watch_) watch_ = id;
  }

  Bus& bus_;
  uint64_t heard_connection_ = 0;
  bool may_watch_ = false;
  uint32_t watch_ = 0;  // 0: none.
  const BusListener fired_ = [this](sd_bus_message* signal) {
    uint32_t id = 0;
    if (sd_bus_message_read_basic(signal, 'u', &id) > 0 && id == watch_) watch_ = 0;
  };
};

// Its specification says seconds, KDE says milliseconds. So the unit is what makes the figure keep
// pace with the clock. Until that is seen it is taken for the smaller one: who is taken to be here
// too long is not disturbed.
class ScreenSaverIdle final : public IdleBackend {
 public:
  explicit ScreenSaverIdle(Bus& bus) : bus_(bus) {}

  std::string_view name() const override { return "screensaver"; }

  Result<Millis> read(const SensorRequest& request) override {
    SHOAL_TRY_ASSIGN(reply, bus_.call(request, kScreenSaver, "GetSessionIdleTime"));
    uint32_t figure = 0;
    if (sd_bus_message_read_basic(reply.get(), 'u', &figure) <= 0) {
      return strange("the screen saver");
    }
    learn_unit({request.clock.now_monotonic(), figure});
    return Millis{int64_t{figure} * unit_ms_};
  }

 private:
  struct Sample {
    Millis at{0};
    int64_t figure = 0;
  };

  // Milliseconds show in one step. Seconds count only when a whole row of steps is slow: one slow
  // step also comes of milliseconds with a touch between.
  void learn_unit(Sample now) {
    constexpr Millis kRow{5'000};
    const std::optional<Sample> before = std::exchange(last_, now);
    if (!before) return;
    const int64_t passed = (now.at - before->at).count;
    const int64_t step = now.figure - before->figure;
    if (passed >= 200 && step >= passed / 2) unit_ms_ = 1;
    if (step < 0 || step > passed / 500 + 1) {
      row_.reset();
      return;
    }
    if (!row_) row_ = before;
    if (now.at - row_->at >= kRow && now.figure - row_->figure >= kRow.count / 1'000 - 2) {
      unit_ms_ = 1'000;
    }
  }

  Bus& bus_;
  int64_t unit_ms_ = 1;
  std::optional<Sample> last_;
  std::optional<Sample> row_;  // Where a row of slow steps began.
};

// Coarse: true only after the desktop's own time, and desktops that never say so count as in use.
class LogindIdle final : public IdleBackend {
 public:
  explicit LogindIdle(Bus& bus) : bus_(bus) {}

  std::string_view name() const override { return "logind"; }

  Result<Millis> read(const SensorRequest& request) override {
    SHOAL_TRY_ASSIGN(hint, bus_.property(request, kLogind, "IdleHint"));
    const std::optional<bool> idle = as_flag(hint);
    if (!idle) return strange("the login service");
    if (!*idle) {
      since_.reset();
      return Millis{0};
    }
    const Millis now = request.clock.now_monotonic();
    if (!since_) since_ = now;
    // In microseconds of the same clock; 0 where it does not know.
    SHOAL_TRY_ASSIGN(since, bus_.property(request, kLogind, "IdleSinceHintMonotonic"));
    const int64_t told_us = as_number(since).value_or(0);
    const int64_t told_ms = told_us / 1'000;
    if (told_ms > 0 && told_ms <= now.count) return now - Millis{told_ms};
    return now - *since_;
  }

 private:
  Bus& bus_;
  std::optional<Millis> since_;  // Since when we have seen it.
};

}  // namespace

std::unique_ptr<IdleBackend> make_mutter_idle(Bus& session) {
  return std::make_unique<MutterIdle>(session);
}

std::unique_ptr<IdleBackend> make_screensaver_idle(Bus& session) {
  return std::make_unique<ScreenSaverIdle>(session);
}

std::unique_ptr<IdleBackend> make_logind_idle(Bus& system) {
  return std::make_unique<LogindIdle>(system);
}

}  // namespace shoal::client
