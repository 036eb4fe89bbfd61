#pragma once
// Knows whether this desktop has a place for tray icons now: a StatusNotifier host on the session
// bus, or an XEmbed tray under X11. Hosts come late, restart and vanish; this tells each time.
//
// Qt decides once, when the first tray icon is made, which of the two it uses. So none may be made
// before this says that there is a host.

#include <QDBusServiceWatcher>
#include <QObject>
#include <QTimer>

namespace shoal::ui {

class TrayHost : public QObject {
  Q_OBJECT

 public:
  explicit TrayHost(QObject* parent = nullptr);

  bool available() const { return notifier_ || xembed_; }
  // False until the desktop has answered for the first time, or a second has passed.
  bool known() const { return known_; }

 Q_SIGNALS:
  void changed();

 private Q_SLOTS:
  void ask_watcher();
  void watcher_lost();

 private:
  void look_for_xembed();
  void set(bool notifier, bool xembed);

  QDBusServiceWatcher watcher_;
  QTimer poll_, first_;
  bool notifier_ = false, xembed_ = false, known_ = false;
};

}  // namespace shoal::ui
