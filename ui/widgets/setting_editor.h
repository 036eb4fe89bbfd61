#pragma once
// One setting of the client, drawn from what the client says of it: name, help, a control for its
// type within its limits, a way back to the default, and what is wrong with it, in place.

#include <QWidget>

#include "base/settings.h"
#include "schema/agent.capnp.h"

class QLabel;
class QTimer;
class QToolButton;

namespace shoal::ui {

SettingValue read_setting_value(rpc::SettingValue::Reader from);
void write_setting_value(const SettingValue& value, rpc::SettingValue::Builder to);

// What the editors of the types have in common.
class SettingControl : public QWidget {
  Q_OBJECT

 public:
  using QWidget::QWidget;

  virtual void set_value(const SettingValue& value) = 0;  // Tells nobody.
  virtual SettingValue value() const = 0;
  virtual QWidget* focus_widget() = 0;
  virtual bool is_wide() const { return false; }  // Takes the whole width, below the name.
  // Something in the control that cannot be a value; empty: all is well.
  virtual QString problem() const { return {}; }

 Q_SIGNALS:
  void edited();
};

class SettingEditor : public QWidget {
  Q_OBJECT

 public:
  SettingEditor(rpc::Setting::Reader setting, QWidget* parent = nullptr);

  const QString& key() const { return key_; }
  SettingControl* control() { return control_; }

  // What the client says now. Leaves the control alone while an edit is under way or was refused.
  void set_setting(rpc::Setting::Reader setting);
  // The client's answer to what changed() asked for; empty: it took it.
  void set_answer(const QString& problem);
  QString problem() const;

 Q_SIGNALS:
  void changed(const QString& key, const shoal::SettingValue& value);

 private:
  void send();
  void show_state();

  QString key_;
  SettingControl* control_;
  QLabel* problem_;
  QLabel* note_;
  QToolButton* reset_;
  QTimer* delay_;
  SettingValue current_, fallback_;
  bool waiting_ = false;
};

}  // namespace shoal::ui
