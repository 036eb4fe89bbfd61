#pragma once
// A coordinator and hosts as real processes on this machine, for end-to-end tests and benchmarks.
// All of them die with the fleet. Belongs to the thread of its Qt event loop, which runs while it
// waits.

#include <QByteArray>
#include <QJsonObject>
#include <QProcess>
#include <QRegularExpression>
#include <QString>
#include <QStringList>
#include <QTemporaryDir>

#include <functional>
#include <map>
#include <memory>

#include "tests/support/wire_tap.h"

// The programs' names, as built.
QString program_path(const QString& name);

// Runs the event loop until `done` or the time is over; says which.
bool wait_until(const std::function<bool()>& done, int milliseconds_max);

// A program that runs; its stderr goes to a file, its stdout is kept here.
class Program {
 public:
  Program(const QString& name, const QStringList& arguments, const QString& log_path);
  ~Program();

  qint64 pid() const { return process_.processId(); }
  bool running() const { return process_.state() != QProcess::NotRunning; }
  int exit_code() const { return process_.exitCode(); }
  const QByteArray& output() const { return output_; }
  QByteArray log() const;

  void signal(int number);
  bool wait_exit(int milliseconds_max);

 private:
  QProcess process_;
  QByteArray output_;
  QString log_path_;
};

// A host: a client with its own data folder, and the tap that it reaches the coordinator through.
struct FleetHost {
  QString name;
  qint64 id = 0;  // The coordinator's.
  QString data;
  QString devices;
  QString mode = "always";
  QStringList arguments;  // More for `run`.
  std::unique_ptr<WireTap> tap;
  std::unique_ptr<Program> client;
};

// What a run of `shoalctl generate --json` left.
struct Generation {
  int exit_code = -1;
  QJsonObject summary;
  QByteArray log;
  QString text() const { return summary.value("text").toString(); }
};

class Fleet {
 public:
  Fleet();
  ~Fleet();

  // Each returns what went wrong, or an empty text.
  QString start_coordinator();
  QString publish(const QString& model_path, const QString& name);
  QString add_host(const QString& name, const QString& devices = "cpu", bool trusted = false);
  QString start_host(const QString& name);
  QString wait_ready(int devices, int milliseconds_max = 20'000);  // Devices that may get work.

  // `shoalctl ARGUMENTS --json`: the last line as an object.
  QJsonObject ctl(const QStringList& arguments, int* exit_code = nullptr);

  // Starts `shoalctl generate --json ARGUMENTS`; `on_stream` sees stdout as it grows.
  Generation generate(const QStringList& arguments,
                      const std::function<void(const QByteArray&)>& on_output = {},
                      int milliseconds_max = 60'000);

  FleetHost& host(const QString& name) { return *hosts_.at(name); }
  QString name_of(const QJsonObject& stage) const;  // Of the host that runs it.
  qint64 worker_pid(const QString& name);           // Of the host's first device; 0: none.
  Program* coordinator() { return coordinator_.get(); }
  QString folder() const { return folder_.path(); }
  QString coordinator_data() const { return folder_.filePath("coordinator"); }
  QByteArray logs() const;  // The ends of all logs, for a failed test's message.

 private:
  QTemporaryDir folder_;
  std::unique_ptr<Program> coordinator_;
  quint16 port_ = 0;
  std::map<QString, std::unique_ptr<FleetHost>> hosts_;
};

QString demo_model();  // The one of the repository.
