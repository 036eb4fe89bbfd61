#pragma once
// The tray icon: its shape and colour tell the state, its menu does what is needed most. Exists
// only while a desktop has a place for it.

#include <QMenu>
#include <QSystemTrayIcon>
#include <memory>

#include "base/clock.h"
#include "ui/agent_link.h"
#include "ui/tray_host.h"

namespace shoal::ui {

class Tray : public QObject {
  Q_OBJECT

 public:
  // All of them outlive the tray.
  Tray(AgentLink& link, const Clock& clock, TrayHost& host, QObject* parent = nullptr);

  bool available() const { return host_.available(); }
  QMenu& menu() { return menu_; }
  QString tooltip() const { return tooltip_; }

 Q_SIGNALS:
  void open_wanted();
  void quit_wanted();
  void start_wanted();  // Of the client, which does not run.
  void failed(const shoal::Error& error);

 private:
  void place();
  void show_snapshot();
  void set_state(const QString& icon, const QString& reason, const QString& tooltip);

  AgentLink& link_;
  const Clock& clock_;
  TrayHost& host_;
  std::unique_ptr<QSystemTrayIcon> icon_;  // Null until a host was there for the first time.
  QMenu menu_, pause_menu_;
  QAction reason_, today_, contribute_, resume_, start_, open_, quit_;
  QString icon_name_, tooltip_;
};

}  // namespace shoal::ui
