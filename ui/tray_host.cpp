#include "ui/tray_host.h"

#include <xcb/xcb.h>

#include <QDBusConnection>
#include <QDBusMessage>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>
#include <QDBusVariant>
#include <QGuiApplication>
#include <cstdlib>
#include <memory>

namespace shoal::ui {
namespace {

constexpr char kWatcher[] = "org.kde.StatusNotifierWatcher";
constexpr char kWatcherPath[] = "/StatusNotifierWatcher";
constexpr int kPollMs = 3'000;
constexpr int kFirstAnswerMs = 1'000;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

// Whether somebody owns the tray of the first screen.
bool xembed_tray_exists() {
  const auto* x11 = qGuiApp->nativeInterface<QNativeInterface::QX11Application>();
  if (x11 == nullptr || x11->connection() == nullptr) return false;
  xcb_connection_t* connection = x11->connection();
  constexpr char kSelection[] = "_NET_SYSTEM_TRAY_S0";
  const std::unique_ptr<xcb_intern_atom_reply_t, Free> atom(xcb_intern_atom_reply(
      connection, xcb_intern_atom(connection, 1, sizeof(kSelection) - 1, kSelection), nullptr));
  if (atom == nullptr || atom->atom == XCB_ATOM_NONE) return false;
  const std::unique_ptr<xcb_get_selection_owner_reply_t, Free> owner(xcb_get_selection_owner_reply(
      connection, xcb_get_selection_owner(connection, atom->atom), nullptr));
  return owner != nullptr && owner->owner != XCB_WINDOW_NONE;
}

}  // namespace

TrayHost::TrayHost(QObject* parent) : QObject(parent) {
  QDBusConnection bus = QDBusConnection::sessionBus();
  if (bus.isConnected()) {
    watcher_.setConnection(bus);
    watcher_.addWatchedService(kWatcher);
    watcher_.setWatchMode(QDBusServiceWatcher::WatchForOwnerChange);
    connect(&watcher_, &QDBusServiceWatcher::serviceRegistered, this, &TrayHost::ask_watcher);
    connect(&watcher_, &QDBusServiceWatcher::serviceUnregistered, this, &TrayHost::watcher_lost);
    for (const char* signal : {"StatusNotifierHostRegistered", "StatusNotifierHostUnregistered"}) {
      bus.connect(kWatcher, kWatcherPath, kWatcher, signal, this, SLOT(ask_watcher()));
    }
    ask_watcher();
  }
  connect(&poll_, &QTimer::timeout, this, &TrayHost::look_for_xembed);
  poll_.setInterval(kPollMs);
  first_.setSingleShot(true);
  connect(&first_, &QTimer::timeout, this, &TrayHost::look_for_xembed);
  first_.start(bus.isConnected() ? kFirstAnswerMs : 0);
}

void TrayHost::ask_watcher() {
  QDBusMessage message = QDBusMessage::createMethodCall(kWatcher, kWatcherPath,
                                                        "org.freedesktop.DBus.Properties", "Get");
  message << QString(kWatcher) << QString("IsStatusNotifierHostRegistered");
  auto* answer =
      new QDBusPendingCallWatcher(QDBusConnection::sessionBus().asyncCall(message, 5'000), this);
  connect(answer, &QDBusPendingCallWatcher::finished, this, [this](QDBusPendingCallWatcher* done) {
    const QDBusPendingReply<QDBusVariant> reply = *done;
    done->deleteLater();
    const bool registered = !reply.isError() && reply.value().variant().toBool();
    if (registered) {
      set(true, xembed_);
    } else {
      watcher_lost();
    }
  });
}

void TrayHost::watcher_lost() { set(false, xembed_tray_exists()); }

void TrayHost::look_for_xembed() { set(notifier_, !notifier_ && xembed_tray_exists()); }

void TrayHost::set(bool notifier, bool xembed) {
  const bool before = available();
  const bool was_known = known_;
  notifier_ = notifier;
  xembed_ = xembed;
  known_ = true;
  first_.stop();
  // The bus tells what happens to its host; only an XEmbed tray must be looked for.
  if (notifier_) {
    poll_.stop();
  } else if (qGuiApp->nativeInterface<QNativeInterface::QX11Application>() != nullptr) {
    poll_.start();
  }
  if (!was_known || before != available()) Q_EMIT changed();
}

}  // namespace shoal::ui
