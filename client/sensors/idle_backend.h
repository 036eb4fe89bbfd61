#pragma once
// The ways to learn for how long nobody touched this computer. Each knows one desktop's answer and
// says in people's words why it cannot be used here.
//
// Belong to the idle sensor's thread.

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "client/sensors/bus.h"
#include "client/sensors/sensor.h"

namespace shoal::client {

class IdleBackend {
 public:
  virtual ~IdleBackend() = default;
  virtual std::string_view name() const = 0;
  // Since the last touch.
  virtual Result<Millis> read(const SensorRequest& request) = 0;
  virtual SensorWake wake() { return {}; }
  // Whether the next touch will be told through wake(), so that nobody has to keep asking.
  virtual bool tells_touch() const { return false; }
};

// Wayland's own protocol: KDE Plasma 6, Sway and their kin.
std::unique_ptr<IdleBackend> make_wayland_idle();
// The `session` bus outlives what these make.
std::unique_ptr<IdleBackend> make_mutter_idle(Bus& session);
std::unique_ptr<IdleBackend> make_screensaver_idle(Bus& session);
// A real X server; not the one that runs inside a Wayland desktop and sees half of its input.
std::unique_ptr<IdleBackend> make_x11_idle();
std::unique_ptr<IdleBackend> make_logind_idle(Bus& system);
// Who types into a terminal, near or far, touches the computer.
std::unique_ptr<IdleBackend> make_terminals_idle(const SystemRoots& roots);

bool is_wayland_session();

}  // namespace shoal::client
