#pragma once
// Starts the client when none runs: as the owner's systemd service where there is one, else as a
// process of its own that outlives this window. Never waits.

#include <QObject>
#include <QProcess>
#include <QString>
#include <QTimer>

namespace shoal::ui {

class AgentLink;

struct ClientProcessOptions {
  QString program;  // shoal-client, beside this program.
  QString log;      // Where the client's standard error goes when it is started as a process.
  bool may_use_systemd = true;  // Not with a data folder that only this process knows.
};

class ClientProcess : public QObject {
  Q_OBJECT

 public:
  // `link` outlives this, and tells whether the start succeeded.
  ClientProcess(AgentLink& link, ClientProcessOptions options, QObject* parent = nullptr);

  bool starting() const { return starting_; }
  // Does nothing while the link is connected or a start is under way.
  void start();

 Q_SIGNALS:
  void started();
  void failed(const QString& why);

 private:
  void run_systemctl(const QStringList& arguments, void (ClientProcess::*next)(bool, QString));
  void unit_known(bool ok, QString output);
  void unit_started(bool ok, QString output);
  void start_process();
  void end(const QString& why);

  AgentLink& link_;
  ClientProcessOptions options_;
  QTimer patience_, retry_;
  bool starting_ = false;
};

}  // namespace shoal::ui
