#pragma once
// Brings window, tray, notices and the client's life together: what opens when, what quits what.

#include <QMessageBox>
#include <QObject>
#include <QTimer>
#include <memory>

#include "ui/client_process.h"
#include "ui/notices.h"
#include "ui/tray.h"
#include "ui/tray_host.h"
#include "ui/window.h"

namespace shoal::ui {

class Shell : public QObject {
  Q_OBJECT

 public:
  // All of them outlive the shell.
  Shell(const PageContext& context, Theme& theme, const Autostart& autostart,
        ClientProcessOptions client, QObject* parent = nullptr);

  // "open", "hidden", "pause", "resume" or "quit"; from the first start or a later one.
  void obey(const QString& order, const QString& activation_token = {});

  Window& window() { return window_; }
  Tray& tray() { return tray_; }

 private:
  void open(const QString& activation_token = {});
  void ask_to_quit();
  void quit(bool stop_client);
  void leave();
  void host_changed();
  void tell_of_no_tray();
  void run_when_connected(void (Shell::*act)());
  void pause_now();
  void resume_now();
  void tell_failure(const Error* error);  // Null: nothing failed.

  PageContext context_;
  Notices notices_;
  TrayHost host_;
  Tray tray_;
  ClientProcess client_;
  Window window_;
  std::unique_ptr<QMessageBox> question_;
  QTimer host_patience_;  // A panel that restarts is back within some seconds.
  bool hidden_start_ = false, started_client_ = false;
  void (Shell::*waiting_)() = nullptr;  // What to do when the link is there.
};

}  // namespace shoal::ui
