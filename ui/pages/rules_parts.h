#pragma once
// The cards of the Rules page that are more than settings: modes, what the sensors say, how fast
// the devices were given back, what happened last week, and what would have under other limits.

#include <QTimer>
#include <functional>
#include <map>
#include <vector>

#include "base/settings.h"
#include "ui/client_settings.h"
#include "ui/pages/page.h"
#include "ui/tables.h"
#include "ui/widgets/card.h"

class QComboBox;
class QDateTimeEdit;
class QLabel;
class QPushButton;
class QSlider;
class QStackedLayout;
class QToolButton;

namespace shoal::ui {

class AgentLink;
class DataTable;
class Timeline;

// Each resource's mode, for how long, and what it does now and why.
class ModesCard : public Card {
  Q_OBJECT

 public:
  ModesCard(const PageContext& context, QWidget* parent);
  void show_snapshot(rpc::Snapshot::Reader snapshot);

 private:
  struct Row {
    rpc::Resource resource;
    QComboBox *mode, *time;
    QLabel* why;
    bool waiting = false;
    bool by_rules = false;
  };
  void choose(size_t at);

  PageContext context_;
  std::vector<Row> rows_;
  QLabel* problem_;
};

// The time by which the owner wants the computer back.
class LeaveByCard : public Card {
  Q_OBJECT

 public:
  LeaveByCard(const PageContext& context, QWidget* parent);
  void show_snapshot(rpc::Snapshot::Reader snapshot);

 private:
  void set_time(int64_t at_ms);

  PageContext context_;
  QLabel *now_, *problem_;
  QDateTimeEdit* edit_;
  QPushButton* none_;
};

// What Shoal knows of the computer, sensor by sensor.
class SensorsCard : public Card {
  Q_OBJECT

 public:
  SensorsCard(const PageContext& context, QWidget* parent);
  void show_snapshot(const SnapshotPtr& snapshot);

 private:
  void test();

  PageContext context_;
  TableModel<SensorRow>* model_;
  DataTable* table_;
  QPushButton* test_;
  QLabel *answer_, *problem_;
};

// Who could tell that nobody is at the computer, what each says, and a test.
class IdleCard : public Card {
  Q_OBJECT

 public:
  IdleCard(const PageContext& context, QWidget* parent);
  void show_snapshot(const SnapshotPtr& snapshot);

 private:
  void show_sensor(std::shared_ptr<const void> keeps, rpc::Sensor::Reader sensor);

  PageContext context_;
  TableModel<BackendRow>* model_;
  DataTable* table_;
  QLabel *state_, *answer_, *problem_;
  QPushButton* test_;
};

// How fast the devices were free again, against what the owner chose.
class YieldCard : public Card {
  Q_OBJECT

 public:
  explicit YieldCard(QWidget* parent);
  void show_snapshot(rpc::Snapshot::Reader snapshot);

 private:
  QLabel* summary_;
  QLabel* figures_[2][3];
};

// What each resource did in the last week and why: a timeline, and the same as a table.
class TraceCard : public Card {
  Q_OBJECT

 public:
  TraceCard(const PageContext& context, QWidget* parent);
  void fetch();

 private:
  void show_spans(std::shared_ptr<const Kept<rpc::Agent::TraceResults>> answer);

  PageContext context_;
  Timeline* timeline_;
  QLabel *detail_, *problem_;
  TableModel<TraceRow>* model_;
  DataTable* table_;
  QToolButton* toggle_;
  QWidget* drawn_;
  Millis fetched_at_{0};
};

// Moves one limit and says how many hours of last week it would have made.
class WhatIfCard : public Card {
  Q_OBJECT

 public:
  WhatIfCard(const PageContext& context, QWidget* parent);
  void show_settings(const SettingsPtr& settings);  // Null: not known yet.

 Q_SIGNALS:
  void applied();

 private:
  struct Limit {
    QString key;
    SettingValue now;
    std::vector<SettingValue> places;
  };
  class Bar;

  void choose();
  void moved();
  void ask();
  void apply();
  const Limit* limit() const;

  PageContext context_;
  SettingsPtr settings_;
  std::vector<Limit> limits_;
  QComboBox* limit_box_;
  QSlider* slider_;
  QLabel *value_, *known_, *problem_;
  QPushButton* apply_;
  QTimer rest_;
  std::vector<Bar*> bars_;
  std::vector<QLabel*> bar_texts_;
  uint64_t asked_ = 0;
};

// Other machines, whose command line may do what this window does.
class PairingCard : public Card {
  Q_OBJECT

 public:
  PairingCard(const PageContext& context, QWidget* parent);
  void show_snapshot(rpc::Snapshot::Reader snapshot);
  void fetch();

 private:
  void pair();
  void unpair();

  PageContext context_;
  QLabel *state_, *url_, *problem_;
  QPushButton *pair_, *unpair_;
  Millis url_until_{0};  // When the URL shown no longer works.
  TableModel<rpc::Pairing::Reader>* model_;
  DataTable* table_;
};

}  // namespace shoal::ui
