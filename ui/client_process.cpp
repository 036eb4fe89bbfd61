#include "ui/client_process.h"

#include <QFile>
#include <QFileInfo>
#include <QStandardPaths>

#include "ui/agent_link.h"

namespace shoal::ui {
namespace {

constexpr char kUnit[] = "shoal-client.service";
constexpr int kSystemctlMs = 10'000;
// Listing devices may take a driver some seconds.
constexpr int kStartMs = 20'000;

}  // namespace

ClientProcess::ClientProcess(AgentLink& link, ClientProcessOptions options, QObject* parent)
    : QObject(parent), link_(link), options_(std::move(options)) {
  patience_.setSingleShot(true);
  connect(&patience_, &QTimer::timeout, this, [this] {
    QFile log(options_.log);
    QString last;
    if (log.open(QIODevice::ReadOnly)) {
      log.seek(std::max<qint64>(0, log.size() - 4'096));
      for (const QByteArray& line : log.readAll().split('\n')) {
        if (!line.trimmed().isEmpty()) last = QString::fromUtf8(line.trimmed());
      }
    }
    end(last.isEmpty() ? tr("It does not answer.") : last);
  });
  connect(&retry_, &QTimer::timeout, &link_, &AgentLink::retry);
  connect(&link_, &AgentLink::state_changed, this, [this](LinkState state) {
    if (state == LinkState::kConnected && starting_) end({});
  });
}

void ClientProcess::start() {
  if (starting_ || link_.state() == LinkState::kConnected) return;
  starting_ = true;
  patience_.start(kStartMs);
  retry_.start(300);
  if (options_.may_use_systemd && !QStandardPaths::findExecutable("systemctl").isEmpty()) {
    run_systemctl({"show", "--property=LoadState", "--value", kUnit}, &ClientProcess::unit_known);
  } else {
    start_process();
  }
}

void ClientProcess::run_systemctl(const QStringList& arguments,
                                  void (ClientProcess::*next)(bool, QString)) {
  auto* process = new QProcess(this);
  process->setProcessChannelMode(QProcess::MergedChannels);
  const auto done = [this, process, next](bool ok) {
    process->disconnect(this);
    const QString output = QString::fromUtf8(process->readAll()).trimmed();
    process->deleteLater();
    (this->*next)(ok, output);
  };
  connect(process, &QProcess::finished, this, [done](int code, QProcess::ExitStatus status) {
    done(status == QProcess::NormalExit && code == 0);
  });
  connect(process, &QProcess::errorOccurred, this, [done] { done(false); });
  // A user manager that hangs must not leave the owner without an answer.
  QTimer::singleShot(kSystemctlMs, process, [process] { process->kill(); });
  process->start("systemctl", QStringList{"--user"} + arguments);
}

void ClientProcess::unit_known(bool ok, QString output) {
  if (!ok || output != "loaded") return start_process();
  run_systemctl({"start", kUnit}, &ClientProcess::unit_started);
}

void ClientProcess::unit_started(bool ok, QString output) {
  if (!ok) {
    return end(
        tr("systemd could not start it: %1 Its log: journalctl --user -u %2").arg(output, kUnit));
  }
  link_.retry();
}

void ClientProcess::start_process() {
  if (!QFileInfo(options_.program).isExecutable()) {
    return end(tr("%1 is missing. Install Shoal again.").arg(options_.program));
  }
  QProcess process;
  process.setProgram(options_.program);
  process.setArguments({"run"});
  process.setStandardInputFile(QProcess::nullDevice());
  process.setStandardOutputFile(QProcess::nullDevice());
  if (options_.log.isEmpty()) {
    process.setStandardErrorFile(QProcess::nullDevice());
  } else {
    process.setStandardErrorFile(options_.log);
  }
  if (!process.startDetached()) return end(tr("%1 could not be started.").arg(options_.program));
  link_.retry();
}

void ClientProcess::end(const QString& why) {
  if (!starting_) return;
  starting_ = false;
  patience_.stop();
  retry_.stop();
  if (why.isEmpty()) {
    Q_EMIT started();
  } else {
    Q_EMIT failed(why);
  }
}

}  // namespace shoal::ui
