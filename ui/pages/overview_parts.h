#pragma once
// The cards of the Overview page: how it stands and why, each resource's mode, each device.

#include <QButtonGroup>
#include <QDateTimeEdit>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QTimer>
#include <QToolButton>
#include <optional>

#include "base/clock.h"
#include "ui/agent_link.h"
#include "ui/switch.h"
#include "ui/widgets/card.h"

namespace shoal::ui {

// The big switch, and one sentence: why it works or not, what would change that, and when.
class StateCard : public Card {
  Q_OBJECT

 public:
  StateCard(AgentLink& link, const Clock& clock, QWidget* parent);

  void show_snapshot(rpc::Snapshot::Reader snapshot);
  void tick();  // Each second on screen: what runs down.

 Q_SIGNALS:
  void failed(const shoal::Error& error);
  void rule_wanted(const QString& key);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void order(bool contribute, Millis pause);
  void show_switch();
  void set_leave_by(Millis at);

  AgentLink& link_;
  const Clock& clock_;
  rpc::Activity activity_ = rpc::Activity::OFFLINE;
  QString rule_;
  Millis changes_at_{0}, leave_by_{0};
  QLabel icon_, word_, next_, switch_label_;
  QLabel *why_, *remedy_;
  Switch switch_;
  bool contributing_ = false;    // As the client says.
  std::optional<bool> ordered_;  // What the owner wants, until the client says the same.
  QTimer order_patience_;
  QPushButton pause_, resume_, rule_button_;
  QMenu pause_menu_;
  QLabel leave_label_;
  QDateTimeEdit leave_edit_;
  QPushButton leave_set_, leave_clear_;
};

// One resource: how it stands, and its three modes.
class ResourceCard : public Card {
  Q_OBJECT

 public:
  ResourceCard(AgentLink& link, const Clock& clock, rpc::Resource resource, QWidget* parent);

  void show_state(rpc::Snapshot::ResourceState::Reader state);
  void tick();

 Q_SIGNALS:
  void failed(const shoal::Error& error);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void choose(rpc::Mode mode, Millis length);
  void show_icons();

  AgentLink& link_;
  const Clock& clock_;
  rpc::Resource resource_;
  rpc::Activity activity_ = rpc::Activity::OFFLINE;
  Millis ends_{0};
  QLabel icon_, state_icon_, state_;
  QLabel* why_;
  QButtonGroup modes_;
  QToolButton rules_, always_, paused_;
  QMenu pause_menu_;
  QLabel countdown_;
};

// One device: state, temperature, power, load, today's credit.
class DeviceCard : public Card {
  Q_OBJECT

 public:
  explicit DeviceCard(QWidget* parent);

  void show_device(rpc::Snapshot::Device::Reader device);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void show_icons();

  rpc::Resource resource_ = rpc::Resource::GPU;
  rpc::Activity activity_ = rpc::Activity::OFFLINE;
  QLabel icon_, state_icon_;
  QLabel *name_, *why_;
  Figure *credit_, *temperature_, *watts_, *duty_;
};

}  // namespace shoal::ui
