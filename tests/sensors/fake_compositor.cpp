// A Wayland desktop with a seat and no screen. Its owner is its standard input: a line "touch" is a
// touch. First argument: its socket's name. Second: "without", for one that lacks ext-idle-notify.

#include <ext-idle-notify-v1-server-protocol.h>
#include <unistd.h>
#include <wayland-server.h>

#include <cstdio>
#include <list>
#include <string>

namespace {

struct Notification {
  wl_resource* resource = nullptr;
  wl_event_source* timer = nullptr;
  int after_ms = 0;
  bool idle = false;
};

struct Desktop {
  wl_display* display = nullptr;
  std::list<Notification> notifications;
};

Desktop& desktop_of(wl_resource* resource) {
  return *static_cast<Desktop*>(wl_resource_get_user_data(resource));
}

void destroy(wl_client*, wl_resource* resource) { wl_resource_destroy(resource); }

int time_is_over(void* data) {
  auto& notification = *static_cast<Notification*>(data);
  notification.idle = true;
  ext_idle_notification_v1_send_idled(notification.resource);
  return 0;
}

void touched(Desktop& desktop) {
  for (Notification& notification : desktop.notifications) {
    if (notification.idle) ext_idle_notification_v1_send_resumed(notification.resource);
    notification.idle = false;
    wl_event_source_timer_update(notification.timer, notification.after_ms);
  }
}

const struct ext_idle_notification_v1_interface kNotification = {destroy};

void notification_gone(wl_resource* resource) {
  desktop_of(resource).notifications.remove_if([resource](Notification& notification) {
    if (notification.resource != resource) return false;
    wl_event_source_remove(notification.timer);
    return true;
  });
}

void get_notification(wl_client* client, wl_resource* notifier, uint32_t id, uint32_t after_ms,
                      wl_resource*) {
  Desktop& desktop = desktop_of(notifier);
  Notification& notification = desktop.notifications.emplace_back();
  notification.after_ms = static_cast<int>(after_ms);
  notification.resource = wl_resource_create(client, &ext_idle_notification_v1_interface, 1, id);
  wl_resource_set_implementation(notification.resource, &kNotification, &desktop,
                                 notification_gone);
  notification.timer = wl_event_loop_add_timer(wl_display_get_event_loop(desktop.display),
                                               time_is_over, &notification);
  wl_event_source_timer_update(notification.timer, notification.after_ms);
}

const struct ext_idle_notifier_v1_interface kNotifier = {destroy, get_notification};
// Of which nothing is asked.
const struct wl_seat_interface kSeat = {nullptr, nullptr, nullptr, nullptr};

void bind_notifier(wl_client* client, void* desktop, uint32_t, uint32_t id) {
  wl_resource* const resource = wl_resource_create(client, &ext_idle_notifier_v1_interface, 1, id);
  wl_resource_set_implementation(resource, &kNotifier, desktop, nullptr);
}

void bind_seat(wl_client* client, void*, uint32_t, uint32_t id) {
  wl_resource* const resource = wl_resource_create(client, &wl_seat_interface, 1, id);
  wl_resource_set_implementation(resource, &kSeat, nullptr, nullptr);
}

int owner_acts(int fd, uint32_t, void* data) {
  auto& desktop = *static_cast<Desktop*>(data);
  char text[64];
  if (read(fd, text, sizeof text) <= 0) {
    wl_display_terminate(desktop.display);
  } else {
    touched(desktop);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  Desktop desktop;
  desktop.display = wl_display_create();
  wl_global_create(desktop.display, &wl_seat_interface, 1, nullptr, bind_seat);
  if (argc < 3 || std::string(argv[2]) != "without") {
    wl_global_create(desktop.display, &ext_idle_notifier_v1_interface, 1, &desktop, bind_notifier);
  }
  if (wl_display_add_socket(desktop.display, argv[1]) != 0) return 3;
  wl_event_loop_add_fd(wl_display_get_event_loop(desktop.display), STDIN_FILENO, WL_EVENT_READABLE,
                       owner_acts, &desktop);
  std::puts("ready");
  std::fflush(stdout);
  wl_display_run(desktop.display);
  wl_display_destroy_clients(desktop.display);
  wl_display_destroy(desktop.display);
  return 0;
}
