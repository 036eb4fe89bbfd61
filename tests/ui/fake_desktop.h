#pragma once
// What a desktop offers on the session bus: a place for tray icons, and notifications. Belongs to
// the Qt thread.

#include <QDBusAbstractAdaptor>
#include <QDBusArgument>
#include <QDBusConnection>
#include <QObject>
#include <QStringList>
#include <QVariantMap>
#include <memory>

namespace shoal {

class FakeWatcher;

class FakeDesktop : public QObject {
  Q_OBJECT

 public:
  FakeDesktop();
  ~FakeDesktop() override;

  // The panel comes, or goes; with it the watcher of tray icons.
  void show_panel();
  void hide_panel();

  // The bus names of the icons that registered with this panel.
  const QStringList& icons() const { return icons_; }
  // Titles and texts of notifications, as "title|text".
  const QStringList& notices() const { return notices_; }

 private:
  friend class FakeWatcher;
  friend class FakeNotifications;
  QObject watcher_place_, notices_place_;
  QStringList icons_, notices_;
  bool panel_ = false;
};

// One item of a tray icon's menu, as it came over the bus.
struct MenuItem {
  int id = 0;
  QString label;
  bool enabled = true, visible = true;
  int checked = -1;  // -1: it cannot be.
  QList<MenuItem> children;

  // Below this one, by its label without marks; null: none that is visible.
  const MenuItem* find(const QString& label) const;
};

// A tray icon of another process, by its bus name.
class TrayIcon {
 public:
  explicit TrayIcon(QString service) : service_(std::move(service)) {}

  QVariant property(const QString& name) const;
  QByteArray pixels() const;  // Of its icon's largest picture.
  MenuItem menu() const;
  bool click(const QString& label) const;  // False: there is no such item.
  void activate() const;

 private:
  QString service_;
};

}  // namespace shoal
