#include "tests/support/fleet.h"

#include <signal.h>

#include <QCoreApplication>
#include <QDir>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QTimer>
#include <QUrl>
#include <QUrlQuery>

namespace {

QJsonObject last_line_object(const QByteArray& output) {
  const QList<QByteArray> lines = output.trimmed().split('\n');
  return QJsonDocument::fromJson(lines.isEmpty() ? QByteArray() : lines.last()).object();
}

QByteArray file_end(const QString& path, qint64 bytes_max) {
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return {};
  if (file.size() > bytes_max) file.seek(file.size() - bytes_max);
  return file.readAll();
}

}  // namespace

QString program_path(const QString& name) { return QString(SHOAL_BIN_DIR "/") + name; }

bool wait_until(const std::function<bool()>& done, int milliseconds_max) {
  QElapsedTimer elapsed;
  elapsed.start();
  while (!done()) {
    if (elapsed.elapsed() > milliseconds_max) return false;
    QEventLoop loop;
    QTimer::singleShot(5, &loop, &QEventLoop::quit);
    loop.exec();
  }
  return true;
}

Program::Program(const QString& name, const QStringList& arguments, const QString& log_path)
    : log_path_(log_path) {
  process_.setStandardErrorFile(log_path, QIODevice::Append);
  QObject::connect(&process_, &QProcess::readyReadStandardOutput, &process_,
                   [this] { output_ += process_.readAllStandardOutput(); });
  process_.start(program_path(name), arguments);
  process_.waitForStarted();
}

Program::~Program() {
  if (!running()) return;
  signal(SIGCONT);
  process_.terminate();
  if (!process_.waitForFinished(5'000)) {
    process_.kill();
    process_.waitForFinished(5'000);
  }
}

QByteArray Program::log() const { return file_end(log_path_, 4'000); }

void Program::signal(int number) {
  if (running()) ::kill(pid_t(pid()), number);
}

bool Program::wait_exit(int milliseconds_max) {
  const bool ended = wait_until([this] { return !running(); }, milliseconds_max);
  output_ += process_.readAllStandardOutput();
  return ended;
}

Fleet::Fleet() { QDir(folder_.path()).mkpath("logs"); }

Fleet::~Fleet() {
  // All at once, so that a fleet of many hosts stops as fast as one.
  for (auto& [name, host] : hosts_) {
    if (host->client) {
      host->client->signal(SIGCONT);
      host->client->signal(SIGTERM);
    }
  }
  hosts_.clear();
}

QString Fleet::start_coordinator() {
  if (!QFile::exists(coordinator_data())) {
    int code = -1;
    ctl({"init"}, &code);
    if (code != 0) return "shoalctl init failed:\n" + logs();
  }
  const QString listen = "127.0.0.1:" + QString::number(port_);
  coordinator_ = std::make_unique<Program>(
      "shoal-coordinator", QStringList{"--data", coordinator_data(), "--listen", listen},
      folder_.filePath("logs/coordinator.log"));
  QJsonObject status;
  const bool up = wait_until(
      [&] {
        if (!coordinator_->running()) return true;
        int code = -1;
        status = ctl({"status"}, &code);
        return code == 0;
      },
      20'000);
  if (!up || !coordinator_->running()) return "shoal-coordinator did not start:\n" + logs();
  port_ = quint16(status.value("address").toString().section(':', -1).toUInt());
  return port_ != 0 ? QString() : "status has no address";
}

QString Fleet::publish(const QString& model_path, const QString& name) {
  int code = -1;
  ctl({"model", "publish", model_path, "--name", name}, &code);
  return code == 0 ? QString() : "publishing " + model_path + " failed:\n" + logs();
}

QString Fleet::add_host(const QString& name, const QString& devices, bool trusted) {
  auto host = std::make_unique<FleetHost>();
  host->name = name;
  host->data = folder_.filePath(name);
  host->devices = devices;
  host->tap = std::make_unique<WireTap>(port_);
  QString url = ctl({"invite"}).value("url").toString();
  url.replace(QRegularExpression("^shoal://[^/]*/"),
              "shoal://127.0.0.1:" + QString::number(host->tap->port()) + "/");
  Program attach("shoal-client", {"attach", url, "--data", host->data, "--json"},
                 folder_.filePath("logs/" + name + ".log"));
  if (!attach.wait_exit(20'000) || attach.exit_code() != 0) {
    return name + " could not attach: " + attach.output() + attach.log();
  }
  host->id = last_line_object(attach.output()).value("host_id").toInteger();
  const qint64 id = host->id;
  hosts_[name] = std::move(host);
  if (trusted) {
    int code = -1;
    ctl({"host", "trust", QString::number(id)}, &code);
    if (code != 0) return "trusting " + name + " failed:\n" + logs();
  }
  return start_host(name);
}

QString Fleet::start_host(const QString& name) {
  FleetHost& host = this->host(name);
  host.client =
      std::make_unique<Program>("shoal-client",
                                QStringList{"run", "--mode", host.mode, "--data", host.data,
                                            "--devices", host.devices, "--threads", "1"} +
                                    host.arguments,
                                folder_.filePath("logs/" + name + ".log"));
  return host.client->running() ? QString() : name + " did not start";
}

QString Fleet::wait_ready(int devices, int milliseconds_max) {
  int ready = -1;
  const bool enough = wait_until(
      [&] {
        ready = ctl({"status"}).value("devices_ready").toInt(-1);
        return ready >= devices;
      },
      milliseconds_max);
  if (enough) return {};
  return QString("%1 devices are ready, not %2:\n").arg(ready).arg(devices) + logs();
}

QJsonObject Fleet::ctl(const QStringList& arguments, int* exit_code) {
  Program program("shoalctl", arguments + QStringList{"--data", coordinator_data(), "--json"},
                  folder_.filePath("logs/shoalctl.log"));
  const bool ended = program.wait_exit(60'000);
  if (exit_code) *exit_code = ended ? program.exit_code() : -1;
  return last_line_object(program.output());
}

Generation Fleet::generate(const QStringList& arguments,
                           const std::function<void(const QByteArray&)>& on_output,
                           int milliseconds_max) {
  Program program("shoalctl",
                  QStringList{"generate", "--data", coordinator_data(), "--json"} + arguments,
                  folder_.filePath("logs/generate.log"));
  const bool ended = wait_until(
      [&] {
        if (on_output) on_output(program.output());
        return !program.running();
      },
      milliseconds_max);
  Generation generation;
  program.wait_exit(0);
  generation.exit_code = ended ? program.exit_code() : -1;
  generation.summary = last_line_object(program.output());
  generation.log = program.log();
  return generation;
}

QString Fleet::name_of(const QJsonObject& stage) const {
  for (const auto& [name, host] : hosts_) {
    if (host->id == stage.value("host_id").toInteger()) return name;
  }
  return {};
}

qint64 Fleet::worker_pid(const QString& name) {
  // Workers are the client's children; /proc knows them even while the client is frozen.
  const qint64 client = host(name).client->pid();
  QFile children(QString("/proc/%1/task/%1/children").arg(client));
  if (!children.open(QIODevice::ReadOnly)) return 0;
  for (const QByteArray& pid : children.readAll().trimmed().split(' ')) {
    QFile command(QString("/proc/%1/cmdline").arg(QString::fromLatin1(pid)));
    if (!command.open(QIODevice::ReadOnly)) continue;
    const QList<QByteArray> words = command.readAll().split('\0');
    if (words.value(0).endsWith("shoal-worker") && words.contains("--device")) {
      return pid.toLongLong();
    }
  }
  return 0;
}

QByteArray Fleet::logs() const {
  QByteArray all;
  const QDir folder(folder_.filePath("logs"));
  for (const QString& name : folder.entryList(QDir::Files)) {
    all += "--- " + name.toUtf8() + "\n" + file_end(folder.filePath(name), 3'000) + "\n";
  }
  return all;
}

QString demo_model() { return SHOAL_SOURCE_DIR "/models/demo/shoal-demo-q8_0.gguf"; }
