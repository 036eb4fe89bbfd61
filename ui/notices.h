#pragma once
// The few things that the desktop's notifications say: something only a person can put right, the
// first credit, a long pause that ended. Never the same twice, nothing at night but trouble.

#include <QObject>
#include <QSet>

#include "base/clock.h"
#include "ui/snapshot.h"

class QSettings;

namespace shoal::ui {

class Notices : public QObject {
  Q_OBJECT

 public:
  // Both outlive the notices. The setting "notices/enabled" is the owner's switch.
  Notices(const Clock& clock, QSettings& settings, QObject* parent = nullptr);

  void show_snapshot(rpc::Snapshot::Reader snapshot);
  // What the owner should know of the window itself, such as that it goes on in the tray.
  void tell(const QString& title, const QString& text, bool urgent = false);

  bool enabled() const;
  void set_enabled(bool enabled);

 Q_SIGNALS:
  void clicked();  // The owner wants to see more.

 private Q_SLOTS:
  void action_invoked(uint id, const QString& action);

 private:
  bool night() const;

  const Clock& clock_;
  QSettings& settings_;
  QSet<QString> told_;
  bool knew_credit_ = false, first_ = true;
  Millis paused_until_{0}, paused_since_{0};
  uint last_id_ = 0;
};

}  // namespace shoal::ui
