// Idle time of an X server, by its screen saver extension.

#include <poll.h>
#include <xcb/screensaver.h>
#include <xcb/xcb.h>
#include <xcb/xcbext.h>

#include <cstdlib>

#include "client/sensors/idle_backend.h"

namespace shoal::client {
namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

class X11Idle final : public IdleBackend {
 public:
  X11Idle() = default;
  ~X11Idle() override { close(); }
  X11Idle(const X11Idle&) = delete;

  std::string_view name() const override { return "xscreensaver"; }

  Result<Millis> read(const SensorRequest& request) override {
    SHOAL_TRY(connect(request));
    const auto cookie = xcb_screensaver_query_info(connection_, screen_);
    SHOAL_TRY_ASSIGN(answer, wait_for(request, cookie.sequence));
    const auto* info = static_cast<const xcb_screensaver_query_info_reply_t*>(answer.get());
    if (info == nullptr) {
      return Error{ErrorCode::kUnsupported, "the X server does not tell its idle time"};
    }
    return Millis{info->ms_since_user_input};
  }

 private:
  using Reply = std::unique_ptr<void, Free>;

  Result<void> connect(const SensorRequest& request) {
    if (connection_ != nullptr && xcb_connection_has_error(connection_) != 0) close();
    if (connection_ != nullptr) return {};
    if (is_wayland_session()) {
      return Error{ErrorCode::kUnsupported,
                   "this is a Wayland desktop, whose X server does not see all input"};
    }
    const char* display = std::getenv("DISPLAY");
    if (display == nullptr || *display == '\0') {
      return Error{ErrorCode::kNotFound,
                   "no X server is named here (DISPLAY is not set). If you use one, run: systemctl "
                   "--user import-environment DISPLAY XAUTHORITY, and start Shoal again"};
    }
    // Another machine's display says nothing of who sits at this one.
    if (*display != ':' && std::string_view(display).substr(0, 5) != "unix:") {
      return Error{ErrorCode::kUnsupported, "the X server is another computer's"};
    }
    request.about_to_ask("the X server");
    int screen = 0;
    connection_ = xcb_connect(nullptr, &screen);
    if (xcb_connection_has_error(connection_) != 0) {
      close();
      return Error{ErrorCode::kUnavailable, "the X server cannot be reached"};
    }
    const xcb_setup_t* const setup = xcb_get_setup(connection_);
    if (setup->roots_len == 0) {
      close();
      return Error{ErrorCode::kCorrupt, "the X server has no screen"};
    }
    auto roots = xcb_setup_roots_iterator(setup);
    for (int i = 0; i < screen && roots.rem > 1; ++i) xcb_screen_next(&roots);
    screen_ = roots.data->root;
    Result<void> offered = ask_for_extension(request);
    if (!offered.ok()) close();
    return offered;
  }

  Result<void> ask_for_extension(const SensorRequest& request) {
    const auto cookie = xcb_query_extension(connection_, 16, "MIT-SCREEN-SAVER");
    SHOAL_TRY_ASSIGN(answer, wait_for(request, cookie.sequence));
    const auto* extension = static_cast<const xcb_query_extension_reply_t*>(answer.get());
    if (extension == nullptr || extension->present == 0) {
      return Error{ErrorCode::kUnsupported, "the X server does not tell its idle time"};
    }
    // The library asks the same once more, and would wait for the answer without a limit: so it is
    // made to come now.
    xcb_prefetch_extension_data(connection_, &xcb_screensaver_id);
    const auto settle = xcb_get_input_focus(connection_);
    SHOAL_TRY_ASSIGN(settled, wait_for(request, settle.sequence));
    return {};
  }

  // Null when the server answers with an error.
  Result<Reply> wait_for(const SensorRequest& request, unsigned sequence) {
    request.about_to_ask("the X server");
    xcb_flush(connection_);
    const Millis end = request.clock.now_monotonic() + std::min(kBusCallMax, request.left());
    while (true) {
      void* answer = nullptr;
      xcb_generic_error_t* error = nullptr;
      if (xcb_poll_for_reply(connection_, sequence, &answer, &error) != 0) {
        const std::unique_ptr<xcb_generic_error_t, Free> freed(error);
        return Reply(answer);
      }
      if (xcb_connection_has_error(connection_) != 0) {
        return Error{ErrorCode::kUnavailable, "the X server was lost"};
      }
      const Millis left = end - request.clock.now_monotonic();
      if (left.count <= 0) {
        xcb_discard_reply(connection_, sequence);
        return Error{ErrorCode::kTimeout, "the X server does not answer"};
      }
      pollfd wait = {xcb_get_file_descriptor(connection_), POLLIN, 0};
      (void)poll(&wait, 1, static_cast<int>(left.count));
    }
  }

  void close() {
    if (connection_ != nullptr) xcb_disconnect(connection_);
    connection_ = nullptr;
  }

  xcb_connection_t* connection_ = nullptr;  // Null: not connected.
  xcb_window_t screen_ = 0;
};

}  // namespace

std::unique_ptr<IdleBackend> make_x11_idle() { return std::make_unique<X11Idle>(); }

}  // namespace shoal::client
