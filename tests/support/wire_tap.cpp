#include "tests/support/wire_tap.h"

#include <QHostAddress>
#include <QPointer>
#include <QTimer>

struct WireTap::Line {
  std::unique_ptr<QTcpSocket> near;
  std::unique_ptr<QTcpSocket> far;
};

WireTap::WireTap(quint16 target_port) : target_port_(target_port) {
  connect(&server_, &QTcpServer::newConnection, this, &WireTap::accept);
  server_.listen(QHostAddress::LocalHost);
}

WireTap::~WireTap() {
  disconnect(&server_, nullptr, this, nullptr);
  cut();
}

void WireTap::accept() {
  while (QTcpSocket* socket = server_.nextPendingConnection()) {
    socket->setParent(nullptr);
    auto line = std::make_unique<Line>();
    line->near.reset(socket);
    if (!open_) {
      line->near->abort();
      continue;
    }
    ++connections_;
    line->far = std::make_unique<QTcpSocket>();
    for (QTcpSocket* end : {line->near.get(), line->far.get()}) {
      end->setSocketOption(QAbstractSocket::LowDelayOption, 1);
    }
    Line* raw = line.get();
    lines_.push_back(std::move(line));
    connect(raw->near.get(), &QTcpSocket::readyRead, this,
            [this, raw] { pass(*raw, *raw->near, *raw->far); });
    connect(raw->far.get(), &QTcpSocket::readyRead, this,
            [this, raw] { pass(*raw, *raw->far, *raw->near); });
    // One end's close is the other's, once what was read is written.
    connect(raw->near.get(), &QTcpSocket::disconnected, this,
            [raw] { raw->far->disconnectFromHost(); });
    connect(raw->far.get(), &QTcpSocket::disconnected, this,
            [raw] { raw->near->disconnectFromHost(); });
    raw->far->connectToHost(QHostAddress(QHostAddress::LocalHost), target_port_);
  }
}

void WireTap::pass(Line& line, QTcpSocket& from, QTcpSocket& to) {
  Q_UNUSED(line);
  if (frozen_) return;
  const QByteArray bytes = from.readAll();
  captured_ += bytes;
  if (delay_ms_ == 0) {
    to.write(bytes);
    return;
  }
  // One delay for all keeps the order: timers of equal length fire in the order they were set.
  QPointer<QTcpSocket> target(&to);
  QTimer::singleShot(delay_ms_, Qt::PreciseTimer, this, [target, bytes] {
    if (target) target->write(bytes);
  });
}

void WireTap::cut() {
  for (const auto& line : lines_) {
    for (QTcpSocket* end : {line->near.get(), line->far.get()}) {
      if (!end) continue;
      end->disconnect();
      end->abort();
    }
  }
  lines_.clear();
}

void WireTap::set_open(bool open) {
  open_ = open;
  if (!open) cut();
}

void WireTap::set_frozen(bool frozen) {
  frozen_ = frozen;
  if (frozen) return;
  for (const auto& line : lines_) {
    if (line->far && line->near->bytesAvailable() > 0) pass(*line, *line->near, *line->far);
    if (line->far && line->far->bytesAvailable() > 0) pass(*line, *line->far, *line->near);
  }
}
