#include "ui/single_instance.h"

#include <QLocalSocket>
#include <QTimer>

namespace shoal::ui {
namespace {

constexpr int kPatienceMs = 3'000;
constexpr qint64 kOrderBytesMax = 4'096;

QString socket_in(const std::filesystem::path& folder) {
  return QString::fromStdString(folder / "window.sock");
}

}  // namespace

SingleInstance::SingleInstance(std::filesystem::path folder, QObject* parent)
    : QObject(parent), folder_(std::move(folder)) {
  server_.setSocketOptions(QLocalServer::UserAccessOption);
  connect(&server_, &QLocalServer::newConnection, this, &SingleInstance::serve);
}

Result<SingleInstance::Outcome> SingleInstance::begin(const QString& order, const QString& token) {
  SHOAL_TRY(make_folder(folder_));
  Result<FileLock> lock = FileLock::acquire(folder_ / "window.lock");
  if (!lock.ok()) {
    if (lock.error().code != ErrorCode::kUnavailable) return lock.error();
    SHOAL_TRY(hand_over(order, token));
    return Outcome::kHandedOver;
  }
  lock_.emplace(std::move(lock).value());
  // The lock is ours, so a socket that is there is a dead instance's.
  QLocalServer::removeServer(socket_in(folder_));
  if (!server_.listen(socket_in(folder_))) {
    return Error{ErrorCode::kIo, "cannot listen at " + socket_in(folder_).toStdString() + ": " +
                                     server_.errorString().toStdString()};
  }
  return Outcome::kFirst;
}

Result<void> SingleInstance::hand_over(const QString& order, const QString& token) const {
  QLocalSocket socket;
  socket.connectToServer(socket_in(folder_));
  if (socket.waitForConnected(kPatienceMs)) {
    socket.write((order + '\t' + token + '\n').toUtf8());
    socket.waitForBytesWritten(kPatienceMs);
    if (socket.waitForReadyRead(kPatienceMs) && socket.readLine(16) == "ok\n") return {};
  }
  return Error{ErrorCode::kTimeout, "a window of Shoal runs already, but does not answer"};
}

void SingleInstance::serve() {
  while (QLocalSocket* socket = server_.nextPendingConnection()) {
    connect(socket, &QLocalSocket::disconnected, socket, &QObject::deleteLater);
    QTimer::singleShot(kPatienceMs, socket, &QLocalSocket::abort);
    connect(socket, &QLocalSocket::readyRead, this, [this, socket] {
      if (socket->bytesAvailable() > kOrderBytesMax) return socket->abort();
      if (!socket->canReadLine()) return;
      const QStringList words = QString::fromUtf8(socket->readLine().trimmed()).split('\t');
      socket->write("ok\n");
      socket->flush();
      socket->disconnectFromServer();
      Q_EMIT asked(words.value(0), words.value(1));
    });
  }
}

}  // namespace shoal::ui
