#include "ui/widgets/setting_editor.h"

#include <QCheckBox>
#include <QComboBox>
#include <QCoreApplication>
#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QSignalBlocker>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>
#include <cmath>
#include <limits>

#include "ui/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/setting_looks.h"
#include "ui/widgets/week_grid.h"

namespace shoal::ui {
namespace {

// An edit that goes on, such as a wheel turned further, is sent when it rests.
constexpr int kRestMs = 500;
constexpr int kControlWidth = 230;
constexpr double kGiga = 1e9, kMega = 1e6;

QString text_of(capnp::Text::Reader text) {
  return QString::fromUtf8(text.begin(), static_cast<qsizetype>(text.size()));
}

QStringList strings_of(const std::vector<std::string>& list) {
  QStringList strings;
  for (const std::string& text : list) strings += QString::fromStdString(text);
  return strings;
}

std::vector<std::string> list_of(const QStringList& strings) {
  std::vector<std::string> list;
  for (const QString& text : strings) list.push_back(text.toStdString());
  return list;
}

class FlagControl final : public SettingControl {
 public:
  explicit FlagControl(QWidget* parent) : SettingControl(parent) {
    box_ = new QCheckBox(this);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(box_);
    layout->addStretch();
    connect(box_, &QCheckBox::toggled, this, &SettingControl::edited);
  }

  void set_value(const SettingValue& value) override {
    const QSignalBlocker quiet(box_);
    if (const bool* flag = std::get_if<bool>(&value)) box_->setChecked(*flag);
  }
  SettingValue value() const override { return box_->isChecked(); }
  QWidget* focus_widget() override { return box_; }

 private:
  QCheckBox* box_;
};

class NumberControl final : public SettingControl {
 public:
  NumberControl(rpc::Setting::Reader setting, const SettingLook* look, QWidget* parent)
      : SettingControl(parent), whole_(setting.getFallback().isInteger()) {
    if (look != nullptr && look->form == SettingForm::kBytes) scale_ = kGiga;
    if (look != nullptr && look->form == SettingForm::kBytesPerSecond) scale_ = kMega;
    box_ = new QDoubleSpinBox(this);
    box_->setDecimals(scale_ != 1 || !whole_ ? 2 : 0);
    box_->setSingleStep(scale_ != 1 ? 0.5 : whole_ ? 1 : 0.01);
    box_->setGroupSeparatorShown(true);
    box_->setKeyboardTracking(false);
    box_->setMinimumWidth(150);
    const double min = setting.getMinimum(), max = setting.getMaximum();
    // Beyond 2^53 a double no longer holds every integer.
    constexpr double kFar = 9e15;
    min_ = std::isfinite(min) ? min : -kFar;
    max_ = std::isfinite(max) ? max : kFar;
    // Rounded inwards, so that no end of the control is outside the limits.
    const double grain = std::pow(10, box_->decimals());
    box_->setRange(std::ceil(min_ / scale_ * grain) / grain,
                   std::floor(max_ / scale_ * grain) / grain);
    if (look != nullptr && look->unit != nullptr)
      box_->setSuffix(' ' + QCoreApplication::translate("settings", look->unit));
    if (look != nullptr && look->zero != nullptr)
      box_->setSpecialValueText(QCoreApplication::translate("settings", look->zero));
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(box_);
    connect(box_, &QDoubleSpinBox::valueChanged, this, &SettingControl::edited);
  }

  void set_value(const SettingValue& value) override {
    const QSignalBlocker quiet(box_);
    exact_ = value;
    if (const int64_t* integer = std::get_if<int64_t>(&value))
      box_->setValue(static_cast<double>(*integer) / scale_);
    if (const double* real = std::get_if<double>(&value)) box_->setValue(*real / scale_);
    shown_ = box_->value();
  }
  // What the client said, to the last byte, until somebody changes what is shown of it.
  SettingValue value() const override {
    if (box_->value() == shown_) return exact_;
    const double value = std::clamp(box_->value() * scale_, min_, max_);
    if (whole_) return static_cast<int64_t>(std::llround(value));
    return value;
  }
  QWidget* focus_widget() override { return box_; }

 private:
  QDoubleSpinBox* box_;
  const bool whole_;
  double scale_ = 1, min_ = 0, max_ = 0;
  double shown_ = std::numeric_limits<double>::quiet_NaN();
  SettingValue exact_;
};

class ChoiceControl final : public SettingControl {
 public:
  ChoiceControl(rpc::Setting::Reader setting, QWidget* parent) : SettingControl(parent) {
    box_ = new QComboBox(this);
    const QString key = text_of(setting.getKey());
    for (const auto choice : setting.getChoices())
      box_->addItem(choice_text(key, text_of(choice)), text_of(choice));
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(box_);
    connect(box_, &QComboBox::currentIndexChanged, this, &SettingControl::edited);
  }

  void set_value(const SettingValue& value) override {
    const QSignalBlocker quiet(box_);
    if (const auto* text = std::get_if<std::string>(&value))
      box_->setCurrentIndex(box_->findData(QString::fromStdString(*text)));
  }
  SettingValue value() const override { return box_->currentData().toString().toStdString(); }
  QWidget* focus_widget() override { return box_; }

 private:
  QComboBox* box_;
};

class TextControl final : public SettingControl {
  Q_DECLARE_TR_FUNCTIONS(shoal::ui::SettingEditor)

 public:
  explicit TextControl(QWidget* parent) : SettingControl(parent) {
    edit_ = new QLineEdit(this);
    edit_->setPlaceholderText(tr("default"));
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(edit_);
    connect(edit_, &QLineEdit::editingFinished, this, [this] {
      if (edit_->isModified()) Q_EMIT edited();
      edit_->setModified(false);
    });
  }

  void set_value(const SettingValue& value) override {
    if (edit_->hasFocus() && edit_->isModified()) return;
    if (const auto* text = std::get_if<std::string>(&value))
      edit_->setText(QString::fromStdString(*text));
  }
  SettingValue value() const override { return edit_->text().trimmed().toStdString(); }
  QWidget* focus_widget() override { return edit_; }

 private:
  QLineEdit* edit_;
};

// Texts, one a line, to add to and to take from.
class ListControl final : public SettingControl {
  Q_DECLARE_TR_FUNCTIONS(shoal::ui::SettingEditor)

 public:
  explicit ListControl(const QString& title, QWidget* parent) : SettingControl(parent) {
    list_ = new QListWidget(this);
    list_->setAccessibleName(title);
    list_->setFixedHeight(fontMetrics().height() * 5);
    list_->setAlternatingRowColors(true);
    add_text_ = new QLineEdit(this);
    add_text_->setPlaceholderText(tr("Another one"));
    add_text_->setAccessibleName(tr("Add to: %1").arg(title));
    add_ = new QPushButton(tr("Add"), this);
    add_->setAccessibleName(tr("Add to: %1").arg(title));
    remove_ = new QPushButton(tr("Remove"), this);
    remove_->setAccessibleName(tr("Remove from: %1").arg(title));
    auto* row = new QHBoxLayout;
    row->addWidget(add_text_, 1);
    row->addWidget(add_);
    row->addWidget(remove_);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(kSpaceSmall);
    layout->addWidget(list_);
    layout->addLayout(row);
    connect(add_, &QPushButton::clicked, this, &ListControl::add);
    connect(add_text_, &QLineEdit::returnPressed, this, &ListControl::add);
    connect(remove_, &QPushButton::clicked, this, [this] {
      qDeleteAll(list_->selectedItems());
      enable();
      Q_EMIT edited();
    });
    connect(list_, &QListWidget::itemSelectionChanged, this, &ListControl::enable);
    connect(add_text_, &QLineEdit::textChanged, this, &ListControl::enable);
    enable();
  }

  void set_value(const SettingValue& value) override {
    const auto* list = std::get_if<std::vector<std::string>>(&value);
    if (list == nullptr || strings_of(*list) == strings()) return;
    list_->clear();
    list_->addItems(strings_of(*list));
    enable();
  }
  SettingValue value() const override { return list_of(strings()); }
  QWidget* focus_widget() override { return list_; }
  bool is_wide() const override { return true; }

 private:
  QStringList strings() const {
    QStringList strings;
    for (int i = 0; i < list_->count(); ++i) strings += list_->item(i)->text();
    return strings;
  }
  void add() {
    const QString text = add_text_->text().trimmed();
    if (text.isEmpty() || strings().contains(text)) return;
    list_->addItem(text);
    add_text_->clear();
    Q_EMIT edited();
  }
  void enable() {
    add_->setEnabled(!add_text_->text().trimmed().isEmpty());
    remove_->setEnabled(!list_->selectedItems().isEmpty());
  }

  QListWidget* list_;
  QLineEdit* add_text_;
  QPushButton *add_, *remove_;
};

class WeekControl final : public SettingControl {
  Q_DECLARE_TR_FUNCTIONS(shoal::ui::SettingEditor)

 public:
  explicit WeekControl(const QString& title, QWidget* parent) : SettingControl(parent) {
    grid_ = new WeekGrid(this);
    grid_->setAccessibleName(title);
    auto* all = new QPushButton(tr("Every hour"), this);
    all->setAccessibleName(tr("%1: every hour").arg(title));
    auto* nights = new QPushButton(tr("Nights and weekends"), this);
    nights->setAccessibleName(tr("%1: nights and weekends").arg(title));
    auto* none = new QPushButton(tr("Clear"), this);
    none->setAccessibleName(tr("%1: clear").arg(title));
    note_ = new QLabel(this);
    set_text_role(*note_, TextRole::kSmall);
    note_->setWordWrap(true);
    auto* row = new QHBoxLayout;
    row->addWidget(all);
    row->addWidget(nights);
    row->addWidget(none);
    row->addWidget(note_, 1);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(grid_);
    layout->addLayout(row);
    connect(all, &QPushButton::clicked, this, [this] { grid_->set_all(true); });
    connect(none, &QPushButton::clicked, this, [this] { grid_->set_all(false); });
    connect(nights, &QPushButton::clicked, this, [this] {
      static const std::vector<std::string> kTexts = {"mon-fri 22:00-07:00", "sat-sun 00:00-24:00"};
      grid_->set_hours(WeekHours::parse(kTexts).value().grid());
      Q_EMIT grid_->edited();
    });
    connect(grid_, &WeekGrid::edited, this, [this] {
      changed_ = true;
      tell();
      Q_EMIT edited();
    });
  }

  void set_value(const SettingValue& value) override {
    const auto* list = std::get_if<std::vector<std::string>>(&value);
    if (list == nullptr) return;
    said_ = *list;
    changed_ = false;
    const Result<WeekHours> week = WeekHours::parse(said_);
    readable_ = week.ok();
    exact_ = readable_ && week.value().fits_grid();
    if (readable_) grid_->set_hours(week.value().grid());
    tell();
  }
  SettingValue value() const override {
    if (!changed_) return said_;
    return WeekHours::of_grid(grid_->hours()).format();
  }
  QWidget* focus_widget() override { return grid_; }
  bool is_wide() const override { return true; }

 private:
  void tell() {
    QString note = tr("%1 of 168 hours").arg(locale().toString(grid_->count() / 2.0, 'g', 4));
    if (grid_->count() == 0) note = tr("Never: no hour is chosen.");
    if (!readable_ && !changed_) note = tr("These hours cannot be shown as a grid.");
    if (readable_ && !exact_ && !changed_)
      note += ' ' + tr("Some begin or end within a half hour; a change here rounds them.");
    note_->setText(note);
  }

  WeekGrid* grid_;
  QLabel* note_;
  std::vector<std::string> said_;
  bool changed_ = false, readable_ = true, exact_ = true;
};

SettingControl* make_control(rpc::Setting::Reader setting, const SettingLook* look,
                             const QString& title, QWidget* parent) {
  switch (setting.getFallback().which()) {
    case rpc::SettingValue::FLAG: return new FlagControl(parent);
    case rpc::SettingValue::INTEGER:
    case rpc::SettingValue::REAL: return new NumberControl(setting, look, parent);
    case rpc::SettingValue::LIST:
      if (look != nullptr && look->form == SettingForm::kWeek)
        return new WeekControl(title, parent);
      return new ListControl(title, parent);
    case rpc::SettingValue::TEXT: break;
  }
  if (setting.getChoices().size() > 0) return new ChoiceControl(setting, parent);
  return new TextControl(parent);
}

}  // namespace

SettingValue read_setting_value(rpc::SettingValue::Reader from) {
  switch (from.which()) {
    case rpc::SettingValue::FLAG: return from.getFlag();
    case rpc::SettingValue::INTEGER: return from.getInteger();
    case rpc::SettingValue::REAL: return from.getReal();
    case rpc::SettingValue::TEXT: return text_of(from.getText()).toStdString();
    case rpc::SettingValue::LIST: break;
  }
  std::vector<std::string> list;
  if (from.isList()) {
    for (const auto text : from.getList()) list.push_back(text_of(text).toStdString());
  }
  return list;
}

void write_setting_value(const SettingValue& value, rpc::SettingValue::Builder to) {
  if (const bool* flag = std::get_if<bool>(&value)) {
    to.setFlag(*flag);
  } else if (const int64_t* integer = std::get_if<int64_t>(&value)) {
    to.setInteger(*integer);
  } else if (const double* real = std::get_if<double>(&value)) {
    to.setReal(*real);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    to.setText(*text);
  } else {
    const auto& list = std::get<std::vector<std::string>>(value);
    auto out = to.initList(static_cast<uint32_t>(list.size()));
    for (uint32_t i = 0; i < out.size(); ++i) out.set(i, list[i]);
  }
}

SettingEditor::SettingEditor(rpc::Setting::Reader setting, QWidget* parent)
    : QWidget(parent), key_(text_of(setting.getKey())) {
  setObjectName(key_);
  const SettingLook* const look = find_setting_look(key_);
  const QString title = setting_title(key_);
  const QString help =
      QCoreApplication::translate("settings", text_of(setting.getHelp()).toUtf8().constData());
  control_ = make_control(setting, look, title, this);
  control_->focus_widget()->setAccessibleName(title);
  if (control_->focus_widget()->accessibleDescription().isEmpty())
    control_->focus_widget()->setAccessibleDescription(help);
  control_->focus_widget()->setToolTip(key_);

  auto* name = new QLabel(title, this);
  name->setBuddy(control_->focus_widget());
  name->setWordWrap(true);
  auto* about = make_text(this);
  about->setText(QString(help).replace('\n', ' '));
  set_text_role(*about, TextRole::kSmall);
  about->setVisible(help != title + '.');
  problem_ = make_problem(this);
  note_ = make_text(this);
  set_text_role(*note_, TextRole::kSmall);
  reset_ = new QToolButton(this);
  reset_->setText(tr("Reset"));
  reset_->setToolTip(tr("Back to the default"));
  reset_->setAccessibleName(tr("%1: back to the default").arg(title));
  reset_->setAutoRaise(true);
  reset_->setFocusPolicy(Qt::TabFocus);
  QSizePolicy keeps = reset_->sizePolicy();
  keeps.setRetainSizeWhenHidden(true);
  reset_->setSizePolicy(keeps);
  delay_ = new QTimer(this);
  delay_->setSingleShot(true);
  delay_->setInterval(kRestMs);

  auto* words = new QVBoxLayout;
  words->setSpacing(2);
  words->addWidget(name);
  words->addWidget(about);
  words->addWidget(note_);
  words->addWidget(problem_);
  words->addStretch();
  auto* top = new QHBoxLayout;
  top->setSpacing(kSpaceLarge);
  top->addLayout(words, 1);
  if (!control_->is_wide()) {
    control_->setFixedWidth(kControlWidth);
    top->addWidget(control_, 0, Qt::AlignTop);
  }
  top->addWidget(reset_, 0, Qt::AlignTop);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, kSpaceSmall, 0, kSpaceSmall);
  layout->addLayout(top);
  if (control_->is_wide()) layout->addWidget(control_);

  connect(control_, &SettingControl::edited, this, [this] { delay_->start(); });
  connect(delay_, &QTimer::timeout, this, &SettingEditor::send);
  connect(reset_, &QToolButton::clicked, this, [this] {
    control_->set_value(fallback_);
    send();
  });
  note_->setText(setting.getNeedsRestart() ? tr("Acts when Shoal starts again.") : QString());
  note_->setVisible(setting.getNeedsRestart());
  set_setting(setting);
}

void SettingEditor::set_setting(rpc::Setting::Reader setting) {
  current_ = read_setting_value(setting.getValue());
  fallback_ = read_setting_value(setting.getFallback());
  if (!delay_->isActive() && !waiting_ && problem().isEmpty()) control_->set_value(current_);
  show_state();
}

void SettingEditor::send() {
  delay_->stop();
  set_problem(*problem_, control_->problem());
  if (!problem().isEmpty()) return show_state();
  const SettingValue value = control_->value();
  if (value == current_) return show_state();
  waiting_ = true;
  show_state();
  Q_EMIT changed(key_, value);
}

void SettingEditor::set_answer(const QString& problem) {
  waiting_ = false;
  set_problem(*problem_, problem);
  if (problem.isEmpty()) current_ = control_->value();
  show_state();
}

QString SettingEditor::problem() const {
  return problem_->isHidden() ? QString() : problem_->text();
}

void SettingEditor::show_state() {
  reset_->setVisible(current_ != fallback_ || !problem().isEmpty());
}

}  // namespace shoal::ui
