#pragma once
// A TCP proxy on loopback between a client and its coordinator: keeps what crossed, adds a delay,
// cuts or freezes the line. Belongs to the thread of its Qt event loop.

#include <QByteArray>
#include <QObject>
#include <QTcpServer>
#include <QTcpSocket>

#include <list>
#include <memory>

class WireTap : public QObject {
  Q_OBJECT

 public:
  explicit WireTap(quint16 target_port);
  ~WireTap() override;

  quint16 port() const { return server_.serverPort(); }

  void set_delay_ms(int delay_ms) { delay_ms_ = delay_ms; }  // Added to each piece, both ways.
  void cut();                    // Resets every connection; new ones are served.
  void set_open(bool open);      // A closed tap resets what comes.
  void set_frozen(bool frozen);  // Nothing passes, nothing is closed: a dead line.

  const QByteArray& captured() const { return captured_; }
  qint64 connections() const { return connections_; }

 private:
  struct Line;
  void accept();
  void pass(Line& line, QTcpSocket& from, QTcpSocket& to);

  QTcpServer server_;
  quint16 target_port_;
  int delay_ms_ = 0;
  bool open_ = true;
  bool frozen_ = false;
  qint64 connections_ = 0;
  QByteArray captured_;
  std::list<std::unique_ptr<Line>> lines_;
};
