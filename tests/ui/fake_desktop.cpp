#include "tests/ui/fake_desktop.h"

#include <QDBusInterface>
#include <QDBusMessage>
#include <QDBusReply>
#include <QDBusVariant>

namespace shoal {

// The introspection must name the properties, or Qt takes the host for absent: an adaptor does so.
class FakeWatcher : public QDBusAbstractAdaptor {
  Q_OBJECT
  Q_CLASSINFO("D-Bus Interface", "org.kde.StatusNotifierWatcher")
  Q_PROPERTY(bool IsStatusNotifierHostRegistered READ registered)
  Q_PROPERTY(int ProtocolVersion READ version)
  Q_PROPERTY(QStringList RegisteredStatusNotifierItems READ items)

 public:
  FakeWatcher(FakeDesktop& desktop, QObject* place)
      : QDBusAbstractAdaptor(place), desktop_(desktop) {}

  bool registered() const { return true; }
  int version() const { return 0; }
  QStringList items() const { return desktop_.icons_; }

 public Q_SLOTS:
  void RegisterStatusNotifierItem(const QString& service) {
    desktop_.icons_ += service;
    Q_EMIT StatusNotifierItemRegistered(service);
  }
  void RegisterStatusNotifierHost(const QString&) {}

 Q_SIGNALS:
  void StatusNotifierItemRegistered(const QString& service);
  void StatusNotifierHostRegistered();

 private:
  FakeDesktop& desktop_;
};

class FakeNotifications : public QDBusAbstractAdaptor {
  Q_OBJECT
  Q_CLASSINFO("D-Bus Interface", "org.freedesktop.Notifications")

 public:
  FakeNotifications(FakeDesktop& desktop, QObject* place)
      : QDBusAbstractAdaptor(place), desktop_(desktop) {}

 public Q_SLOTS:
  uint Notify(const QString&, uint, const QString&, const QString& title, const QString& text,
              const QStringList&, const QVariantMap&, int) {
    desktop_.notices_ += title + "|" + text;
    return uint(desktop_.notices_.size());
  }
  QStringList GetCapabilities() { return {"actions", "body"}; }
  void CloseNotification(uint) {}

 private:
  FakeDesktop& desktop_;
};

FakeDesktop::FakeDesktop() {
  QDBusConnection bus = QDBusConnection::sessionBus();
  new FakeNotifications(*this, &notices_place_);
  new FakeWatcher(*this, &watcher_place_);
  bus.registerObject("/org/freedesktop/Notifications", &notices_place_);
  bus.registerService("org.freedesktop.Notifications");
}

FakeDesktop::~FakeDesktop() {
  QDBusConnection bus = QDBusConnection::sessionBus();
  hide_panel();
  bus.unregisterService("org.freedesktop.Notifications");
  bus.unregisterObject("/org/freedesktop/Notifications");
}

void FakeDesktop::show_panel() {
  if (panel_) return;
  panel_ = true;
  icons_.clear();
  QDBusConnection bus = QDBusConnection::sessionBus();
  bus.registerObject("/StatusNotifierWatcher", &watcher_place_);
  bus.registerService("org.kde.StatusNotifierWatcher");
}

void FakeDesktop::hide_panel() {
  if (!panel_) return;
  panel_ = false;
  icons_.clear();
  QDBusConnection bus = QDBusConnection::sessionBus();
  bus.unregisterService("org.kde.StatusNotifierWatcher");
  bus.unregisterObject("/StatusNotifierWatcher");
}

const MenuItem* MenuItem::find(const QString& wanted) const {
  for (const MenuItem& child : children) {
    if (!child.visible) continue;
    if (QString(child.label).remove('_') == wanted) return &child;
    if (const MenuItem* deeper = child.find(wanted)) return deeper;
  }
  return nullptr;
}

namespace {

MenuItem read_item(const QDBusArgument& from) {
  MenuItem item;
  QVariantMap properties;
  from.beginStructure();
  from >> item.id >> properties;
  from.beginArray();
  while (!from.atEnd()) {
    QDBusVariant child;
    from >> child;
    item.children += read_item(child.variant().value<QDBusArgument>());
  }
  from.endArray();
  from.endStructure();
  item.label = properties.value("label").toString();
  item.enabled = properties.value("enabled", true).toBool();
  item.visible = properties.value("visible", true).toBool();
  item.checked = properties.value("toggle-type").toString().isEmpty()
                     ? -1
                     : properties.value("toggle-state").toInt();
  return item;
}

constexpr char kItem[] = "org.kde.StatusNotifierItem";
constexpr char kMenu[] = "com.canonical.dbusmenu";

}  // namespace

QVariant TrayIcon::property(const QString& name) const {
  QDBusInterface item(service_, "/StatusNotifierItem", "org.freedesktop.DBus.Properties");
  const QDBusReply<QDBusVariant> reply = item.call("Get", kItem, name);
  return reply.isValid() ? reply.value().variant() : QVariant();
}

QByteArray TrayIcon::pixels() const {
  const auto pictures = property("IconPixmap").value<QDBusArgument>();
  QByteArray largest;
  pictures.beginArray();
  while (!pictures.atEnd()) {
    int width = 0, height = 0;
    QByteArray bytes;
    pictures.beginStructure();
    pictures >> width >> height >> bytes;
    pictures.endStructure();
    if (bytes.size() > largest.size()) largest = bytes;
  }
  pictures.endArray();
  return largest;
}

MenuItem TrayIcon::menu() const {
  const QString path = property("Menu").value<QDBusObjectPath>().path();
  QDBusInterface menu(service_, path, kMenu);
  const QDBusMessage reply = menu.call("GetLayout", 0, -1, QStringList());
  if (reply.arguments().size() < 2) return {};
  return read_item(reply.arguments()[1].value<QDBusArgument>());
}

bool TrayIcon::click(const QString& label) const {
  const MenuItem whole = menu();
  const MenuItem* item = whole.find(label);
  if (item == nullptr || !item->enabled) return false;
  const QString path = property("Menu").value<QDBusObjectPath>().path();
  QDBusInterface menu(service_, path, kMenu);
  menu.call("Event", item->id, "clicked", QVariant::fromValue(QDBusVariant(QString())), uint{0});
  return true;
}

void TrayIcon::activate() const {
  QDBusInterface(service_, "/StatusNotifierItem", kItem).call("Activate", 0, 0);
}

}  // namespace shoal

#include "fake_desktop.moc"
