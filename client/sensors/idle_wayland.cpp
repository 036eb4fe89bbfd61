// Idle time of a Wayland desktop. The compositor tells no figure, only that nobody touched a seat
// for a second, and that somebody does again; the rest is counting.

#include <ext-idle-notify-v1-client-protocol.h>
#include <poll.h>
#include <wayland-client.h>

#include <cstring>
#include <list>

#include "client/sensors/idle_backend.h"
#include "client/sensors/system_files.h"

namespace shoal::client {
namespace {

constexpr Millis kNotifyAfter{1'000};
constexpr Millis kProveEach{5'000};  // How often the compositor has to show that it lives.
constexpr size_t kSeatsMax = 16;

struct Seat {
  uint32_t name = 0;  // As the registry numbers it.
  wl_seat* seat = nullptr;
  ext_idle_notification_v1* notification = nullptr;  // Null: not asked for yet.
  const Clock* clock = nullptr;
  bool idle = false;
  Millis touched{0};  // The last touch, as far as is known; never too early.
};

class WaylandIdle final : public IdleBackend {
 public:
  WaylandIdle() = default;
  ~WaylandIdle() override { close(); }
  WaylandIdle(const WaylandIdle&) = delete;

  std::string_view name() const override { return "ext-idle-notify"; }

  Result<Millis> read(const SensorRequest& request) override {
    SHOAL_TRY(connect(request));
    const Millis now = request.clock.now_monotonic();
    if (now - proved_ >= kProveEach || request.thorough) {
      SHOAL_TRY(round_trip(request));
    } else if (const Result<void> read = take_in(Millis{0}); !read.ok()) {
      close();
      return read.error();
    }
    if (notifier_ == nullptr) {
      return Error{ErrorCode::kUnsupported, "this Wayland desktop does not offer ext-idle-notify"};
    }
    for (Seat& seat : seats_) watch(request, seat);
    if (seats_.empty()) {
      return Error{ErrorCode::kUnavailable, "this Wayland desktop has no keyboard or mouse"};
    }
    const Millis later = request.clock.now_monotonic();
    Millis least{later.count};
    for (const Seat& seat : seats_) {
      Millis idle = later - seat.touched;
      // Until the compositor says so, nobody was away for longer than it takes to say so.
      if (!seat.idle) idle = std::min(idle, kNotifyAfter);
      least = std::min(least, idle);
    }
    return least;
  }

  bool tells_touch() const override { return display_ != nullptr; }

  SensorWake wake() override {
    if (display_ == nullptr) return {};
    return {wl_display_get_fd(display_), POLLIN, {}};
  }

 private:
  static WaylandIdle& self(void* data) { return *static_cast<WaylandIdle*>(data); }

  Result<void> connect(const SensorRequest& request) {
    if (display_ != nullptr) return {};
    request.about_to_ask("the Wayland desktop");
    const std::string named = environment("WAYLAND_DISPLAY");
    const std::string runtime = environment("XDG_RUNTIME_DIR");
    if (!named.empty()) {
      display_ = wl_display_connect(named.c_str());
    } else if (!runtime.empty()) {
      // A service may have started before the desktop, and so without its name.
      for (int i = 0; i < 10 && display_ == nullptr; ++i) {
        const std::string name = "wayland-" + std::to_string(i);
        std::error_code code;
        if (!std::filesystem::exists(runtime + "/" + name, code)) continue;
        display_ = wl_display_connect(name.c_str());
      }
    }
    if (display_ == nullptr) {
      return Error{ErrorCode::kNotFound,
                   named.empty() ? "no Wayland desktop runs here"
                                 : "the Wayland desktop \"" + named + "\" cannot be reached"};
    }
    clock_ = &request.clock;
    registry_ = wl_display_get_registry(display_);
    wl_registry_add_listener(registry_, &kRegistry, this);
    return round_trip(request);
  }

  static void appeared(void* data, wl_registry* registry, uint32_t name, const char* interface,
                       uint32_t version) {
    WaylandIdle& me = self(data);
    if (std::strcmp(interface, wl_seat_interface.name) == 0 && me.seats_.size() < kSeatsMax) {
      Seat& seat = me.seats_.emplace_back();
      seat.name = name;
      seat.clock = me.clock_;
      seat.touched = me.clock_->now_monotonic();
      seat.seat = static_cast<wl_seat*>(wl_registry_bind(registry, name, &wl_seat_interface, 1));
      wl_seat_add_listener(seat.seat, &kSeat, nullptr);
    } else if (std::strcmp(interface, ext_idle_notifier_v1_interface.name) == 0 &&
               me.notifier_ == nullptr && version >= 1) {
      me.notifier_ = static_cast<ext_idle_notifier_v1*>(
          wl_registry_bind(registry, name, &ext_idle_notifier_v1_interface, 1));
    }
  }
  static void went(void* data, wl_registry*, uint32_t name) {
    self(data).seats_.remove_if([name](Seat& seat) {
      if (seat.name != name) return false;
      drop(seat);
      return true;
    });
  }
  static void drop(Seat& seat) {
    if (seat.notification != nullptr) ext_idle_notification_v1_destroy(seat.notification);
    if (seat.seat != nullptr) wl_seat_destroy(seat.seat);
  }

  static void idled(void* data, ext_idle_notification_v1*) {
    Seat& seat = *static_cast<Seat*>(data);
    seat.idle = true;
    seat.touched = std::max(seat.touched, seat.clock->now_monotonic() - kNotifyAfter);
  }
  static void resumed(void* data, ext_idle_notification_v1*) {
    Seat& seat = *static_cast<Seat*>(data);
    seat.idle = false;
    seat.touched = seat.clock->now_monotonic();
  }

  void watch(const SensorRequest& request, Seat& seat) {
    if (seat.notification != nullptr) return;
    seat.touched = request.clock.now_monotonic();
    seat.notification = ext_idle_notifier_v1_get_idle_notification(
        notifier_, static_cast<uint32_t>(kNotifyAfter.count), seat.seat);
    ext_idle_notification_v1_add_listener(seat.notification, &kNotification, &seat);
    wl_display_flush(display_);
  }

  // Reads what comes within `wait` and acts on it. After a failure the connection is of no use.
  Result<void> take_in(Millis wait) {
    while (wl_display_prepare_read(display_) != 0) {
      if (wl_display_dispatch_pending(display_) < 0) return lost();
    }
    wl_display_flush(display_);
    pollfd ready = {wl_display_get_fd(display_), POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(wait.count)) <= 0) {
      wl_display_cancel_read(display_);
      return {};
    }
    if (wl_display_read_events(display_) < 0) return lost();
    if (wl_display_dispatch_pending(display_) < 0) return lost();
    return {};
  }

  Result<void> round_trip(const SensorRequest& request) {
    request.about_to_ask("the Wayland desktop");
    bool answered = false;
    wl_callback* const callback = wl_display_sync(display_);
    static const wl_callback_listener kDone = {
        [](void* data, wl_callback*, uint32_t) { *static_cast<bool*>(data) = true; }};
    wl_callback_add_listener(callback, &kDone, &answered);
    const Millis end = request.clock.now_monotonic() + std::min(kBusCallMax, request.left());
    while (!answered) {
      const Millis left = end - request.clock.now_monotonic();
      Result<void> read = left.count > 0
                              ? take_in(left)
                              : Error{ErrorCode::kTimeout, "the Wayland desktop does not answer"};
      if (!read.ok()) {
        wl_callback_destroy(callback);
        close();  // What it said before may be long over.
        return read;
      }
    }
    wl_callback_destroy(callback);
    proved_ = request.clock.now_monotonic();
    return {};
  }

  static Error lost() { return {ErrorCode::kUnavailable, "the Wayland desktop was lost"}; }

  void close() {
    if (display_ == nullptr) return;
    for (Seat& seat : seats_) drop(seat);
    seats_.clear();
    if (notifier_ != nullptr) ext_idle_notifier_v1_destroy(notifier_);
    if (registry_ != nullptr) wl_registry_destroy(registry_);
    wl_display_disconnect(display_);
    notifier_ = nullptr;
    registry_ = nullptr;
    display_ = nullptr;
  }

  static constexpr wl_registry_listener kRegistry = {appeared, went};
  static constexpr wl_seat_listener kSeat = {[](void*, wl_seat*, uint32_t) {},
                                             [](void*, wl_seat*, const char*) {}};
  static constexpr ext_idle_notification_v1_listener kNotification = {idled, resumed};

  const Clock* clock_ = nullptr;
  wl_display* display_ = nullptr;  // Null: not connected; then so are the next two.
  wl_registry* registry_ = nullptr;
  ext_idle_notifier_v1* notifier_ = nullptr;  // Null also where the desktop offers none.
  std::list<Seat> seats_;                     // Their addresses are what events come to.
  Millis proved_{0};
};

}  // namespace

bool is_wayland_session() {
  return !environment("WAYLAND_DISPLAY").empty() || environment("XDG_SESSION_TYPE") == "wayland";
}

std::unique_ptr<IdleBackend> make_wayland_idle() { return std::make_unique<WaylandIdle>(); }

}  // namespace shoal::client
