#include "ui/pages/overview_parts.h"

#include <QDateTime>
#include <QEvent>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QVBoxLayout>

#include "ui/contribute.h"
#include "ui/format.h"
#include "ui/icons.h"
#include "ui/messages.h"
#include "ui/theme.h"

namespace shoal::ui {
namespace {

constexpr int kBigIcon = 56;
// An order that was taken shows in the next snapshot; then what the client says holds again.
constexpr int kOrderPatienceMs = 3'000;

void show_state_icon(QLabel& label, rpc::Activity activity, int size) {
  label.setPixmap(
      colored_icon(activity_icon(activity)).pixmap(QSize(size, size), label.devicePixelRatioF()));
  label.setAccessibleName(activity_word(activity));
}

void set_quiet_text(QLabel& label, const QString& text) {
  label.setText(text);
  label.setVisible(!text.isEmpty());
}

}  // namespace

StateCard::StateCard(AgentLink& link, const Clock& clock, QWidget* parent)
    : Card(parent), link_(link), clock_(clock), why_(make_text(this)), remedy_(make_text(this)) {
  set_text_role(word_, TextRole::kTitle);
  set_text_role(*remedy_, TextRole::kQuiet);
  set_text_role(next_, TextRole::kQuiet);
  set_text_role(switch_label_, TextRole::kHeading);
  next_.setWordWrap(true);

  auto* texts = new QVBoxLayout;
  texts->setSpacing(kSpaceSmall);
  texts->addWidget(&word_);
  texts->addWidget(why_);
  texts->addWidget(remedy_);
  texts->addWidget(&next_);
  texts->addStretch();

  switch_label_.setText(tr("Contribute"));
  switch_label_.setAlignment(Qt::AlignCenter);
  switch_.setAccessibleName(tr("Contribute"));
  switch_.setAccessibleDescription(
      tr("Lends this computer, or pauses everything until you resume"));
  switch_.setToolTip(tr("Switch off to pause everything until you resume"));
  auto* right = new QVBoxLayout;
  right->setSpacing(kSpaceSmall);
  right->addWidget(&switch_label_);
  right->addWidget(&switch_, 0, Qt::AlignCenter);
  right->addStretch();

  auto* top = new QHBoxLayout;
  top->setSpacing(kSpaceLarge);
  top->addWidget(&icon_, 0, Qt::AlignTop);
  top->addLayout(texts, 1);
  top->addLayout(right);
  body()->addSpacing(kSpaceSmall);
  body()->addLayout(top);
  body()->addSpacing(kSpace);

  pause_.setText(tr("&Pause for"));
  pause_.setIcon(symbolic_icon("pause"));
  pause_.setMenu(&pause_menu_);
  resume_.setText(tr("&Resume"));
  resume_.setIcon(symbolic_icon("play"));
  rule_button_.setText(tr("Change this rule"));
  rule_button_.setIcon(symbolic_icon("rules"));
  leave_label_.setText(tr("I need this computer at"));
  leave_label_.setBuddy(&leave_edit_);
  leave_edit_.setDisplayFormat(QLocale().timeFormat(QLocale::ShortFormat));
  leave_edit_.setAccessibleName(tr("The time at which you need this computer"));
  leave_edit_.setWrapping(true);
  leave_set_.setText(tr("Set"));
  leave_set_.setAccessibleName(tr("Set the time at which you need this computer"));
  leave_set_.setToolTip(
      tr("Until then only work that ends in time is taken, and then none until you say so"));
  leave_clear_.setText(tr("No longer"));
  leave_clear_.setAccessibleName(tr("You no longer need this computer at a certain time"));
  auto* bottom = new QHBoxLayout;
  bottom->setSpacing(kSpace);
  bottom->addWidget(&pause_);
  bottom->addWidget(&resume_);
  bottom->addWidget(&rule_button_);
  bottom->addStretch();
  bottom->addWidget(&leave_label_);
  bottom->addWidget(&leave_edit_);
  bottom->addWidget(&leave_set_);
  bottom->addWidget(&leave_clear_);
  body()->addLayout(bottom);

  order_patience_.setSingleShot(true);
  order_patience_.setInterval(kOrderPatienceMs);
  connect(&order_patience_, &QTimer::timeout, this, [this] {
    ordered_.reset();
    show_switch();
  });
  // Toggled, not clicked: a screen reader toggles.
  connect(&switch_, &QAbstractButton::toggled, this, [this](bool on) { order(on, Millis{0}); });
  connect(&resume_, &QPushButton::clicked, this, [this] { order(true, Millis{0}); });
  connect(&rule_button_, &QPushButton::clicked, this, [this] { Q_EMIT rule_wanted(rule_); });
  const auto fill = [this] {
    fill_pause_menu(pause_menu_, clock_.now_wall(),
                    [this](Millis length) { order(false, length); });
  };
  connect(&pause_menu_, &QMenu::aboutToShow, this, fill);
  fill();
  connect(&leave_set_, &QPushButton::clicked, this, [this] {
    const QDateTime now = QDateTime::fromMSecsSinceEpoch(clock_.now_wall().count);
    QDateTime at(now.date(), leave_edit_.time());
    if (at <= now) at = at.addDays(1);
    set_leave_by(Millis{at.toMSecsSinceEpoch()});
  });
  connect(&leave_clear_, &QPushButton::clicked, this, [this] { set_leave_by(Millis{0}); });
  // A proposal: the next full hour, an hour away at least.
  const QDateTime soon = QDateTime::fromMSecsSinceEpoch(clock_.now_wall().count).addSecs(2 * 3600);
  leave_edit_.setTime(QTime(soon.time().hour(), 0));
}

// The switch stays as the owner put it, though a snapshot of before the order comes in between.
void StateCard::order(bool contribute, Millis pause) {
  ordered_ = contribute;
  order_patience_.stop();
  const auto answered = [this](const Error* error) {
    if (error == nullptr) return order_patience_.start();
    ordered_.reset();
    show_switch();
    Q_EMIT failed(*error);
  };
  if (contribute) {
    resume_all(link_, this, answered);
  } else {
    pause_all(link_, this, pause, answered);
  }
  show_switch();
}

void StateCard::show_switch() {
  if (ordered_ == contributing_) {
    ordered_.reset();
    order_patience_.stop();
  }
  const bool on = ordered_.value_or(contributing_);
  switch_.set_on(on);
  pause_.setVisible(on);
}

void StateCard::set_leave_by(Millis at) {
  link_.call<&rpc::Agent::Client::setLeaveByRequest>(
      this, [&](auto params) { params.setAtMs(at.count); },
      [this](AnswerOf<&rpc::Agent::Client::setLeaveByRequest> answer) {
        if (!answer.ok()) Q_EMIT failed(answer.error());
      });
}

void StateCard::show_snapshot(rpc::Snapshot::Reader snapshot) {
  const auto verdict = snapshot.getOverall();
  activity_ = verdict.getActivity();
  show_state_icon(icon_, activity_, kBigIcon);
  word_.setText(activity_word(activity_));
  why_->setText(sentence(verdict.getWhy()));
  set_quiet_text(*remedy_, sentence(verdict.getRemedy()));
  changes_at_ = Millis{verdict.getChangesAtMs()};
  rule_ = QString::fromUtf8(verdict.getRule().cStr());
  rule_button_.setVisible(!rule_.isEmpty());
  contributing_ = is_contributing(snapshot);
  show_switch();
  resume_.setVisible(is_any_paused(snapshot));
  leave_by_ = Millis{snapshot.getLeaveByMs()};
  leave_edit_.setVisible(leave_by_.count == 0);
  leave_set_.setVisible(leave_by_.count == 0);
  leave_clear_.setVisible(leave_by_.count != 0);
  leave_label_.setText(
      leave_by_.count == 0
          ? tr("I need this computer at")
          : tr("You need this computer at %1.").arg(format_when(leave_by_, clock_.now_wall())));
  tick();
}

void StateCard::tick() {
  const Millis now = clock_.now_wall();
  if (changes_at_.count <= now.count) return set_quiet_text(next_, {});
  const Millis left = changes_at_ - now;
  set_quiet_text(next_,
                 tr("Changes at %1, in %2.")
                     .arg(format_when(changes_at_, now),
                          left.count < 3'600'000 ? format_countdown(left) : format_duration(left)));
}

void StateCard::changeEvent(QEvent* event) {
  Card::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) show_state_icon(icon_, activity_, kBigIcon);
}

ResourceCard::ResourceCard(AgentLink& link, const Clock& clock, rpc::Resource resource,
                           QWidget* parent)
    : Card(parent), link_(link), clock_(clock), resource_(resource), why_(make_text(this)) {
  auto* name = new QLabel(resource_word(resource), this);
  set_text_role(*name, TextRole::kHeading);
  setAccessibleName(resource_word(resource));
  icon_.setAccessibleName(resource_word(resource));
  auto* top = new QHBoxLayout;
  top->setSpacing(kSpace);
  top->addWidget(&icon_);
  top->addWidget(name, 1);
  body()->addLayout(top);
  auto* state = new QHBoxLayout;
  state->setSpacing(kSpaceSmall + 2);
  state->addWidget(&state_icon_);
  state->addWidget(&state_, 1);
  body()->addLayout(state);
  set_text_role(*why_, TextRole::kQuiet);
  body()->addWidget(why_);
  body()->addStretch();

  set_text_role(countdown_, TextRole::kQuiet);
  body()->addWidget(&countdown_);
  const struct {
    QToolButton& button;
    QString text, name, tip;
    rpc::Mode mode;
  } kModes[] = {
      {rules_, tr("By rules"), tr("%1: by rules"), tr("Works when your rules allow it"),
       rpc::Mode::BY_RULES},
      {always_, tr("Always"), tr("%1: always"),
       tr("Works even while you use this computer; the limits of temperature, memory and disk "
          "still hold"),
       rpc::Mode::ALWAYS},
      {paused_, tr("Paused"), tr("%1: paused"), tr("Does not work until the time that you choose"),
       rpc::Mode::PAUSED},
  };
  auto* row = new QHBoxLayout;
  row->setSpacing(kSpaceSmall);
  modes_.setExclusive(true);
  for (const auto& mode : kModes) {
    mode.button.setText(mode.text);
    mode.button.setAccessibleName(mode.name.arg(resource_word(resource)));
    mode.button.setToolTip(mode.tip);
    mode.button.setCheckable(true);
    mode.button.setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    mode.button.setFocusPolicy(Qt::StrongFocus);
    modes_.addButton(&mode.button, static_cast<int>(mode.mode));
    row->addWidget(&mode.button);
  }
  paused_.setPopupMode(QToolButton::InstantPopup);
  paused_.setMenu(&pause_menu_);
  body()->addLayout(row);
  const auto fill = [this] {
    fill_pause_menu(pause_menu_, clock_.now_wall(),
                    [this](Millis length) { choose(rpc::Mode::PAUSED, length); });
  };
  fill();
  connect(&pause_menu_, &QMenu::aboutToShow, this, fill);
  connect(&modes_, &QButtonGroup::idToggled, this, [this](int mode, bool on) {
    if (on) choose(static_cast<rpc::Mode>(mode), Millis{0});
  });
}

void ResourceCard::choose(rpc::Mode mode, Millis length) {
  set_mode(link_, this, resource_, mode, length, [this](const Error* error) {
    if (error != nullptr) Q_EMIT failed(*error);
  });
}

void ResourceCard::show_state(rpc::Snapshot::ResourceState::Reader state) {
  const auto verdict = state.getVerdict();
  activity_ = verdict.getActivity();
  ends_ = Millis{state.getModeEndsMs()};
  state_.setText(activity_word(activity_));
  set_quiet_text(*why_, sentence(verdict.getWhy()));
  if (QAbstractButton* chosen = modes_.button(static_cast<int>(state.getMode()))) {
    const QSignalBlocker blocker(modes_);
    chosen->setChecked(true);
  }
  show_icons();
  tick();
}

void ResourceCard::show_icons() {
  icon_.setPixmap(symbolic_pixmap(resource_icon(resource_), kIconSize + 4,
                                  palette().color(QPalette::WindowText), devicePixelRatioF()));
  show_state_icon(state_icon_, activity_, kIconSize);
}

void ResourceCard::tick() {
  const Millis left = ends_ - clock_.now_wall();
  set_quiet_text(countdown_, ends_.count == 0 || left.count <= 0
                                 ? QString()
                                 : tr("By rules again in %1").arg(format_countdown(left)));
}

void ResourceCard::changeEvent(QEvent* event) {
  Card::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) show_icons();
}

DeviceCard::DeviceCard(QWidget* parent)
    : Card(parent),
      name_(make_text(this)),
      why_(make_text(this)),
      credit_(new Figure(this)),
      temperature_(new Figure(this)),
      watts_(new Figure(this)),
      duty_(new Figure(this)) {
  set_text_role(*name_, TextRole::kHeading);
  set_text_role(*why_, TextRole::kQuiet);
  auto* top = new QHBoxLayout;
  top->setSpacing(kSpace);
  top->addWidget(&icon_);
  top->addWidget(name_, 1);
  top->addWidget(&state_icon_);
  body()->addLayout(top);
  body()->addWidget(why_);
  body()->addStretch();
  auto* figures = new QGridLayout;
  figures->setHorizontalSpacing(kSpaceLarge);
  figures->setVerticalSpacing(kSpace);
  figures->addWidget(temperature_, 0, 0);
  figures->addWidget(watts_, 0, 1);
  figures->addWidget(duty_, 1, 0);
  figures->addWidget(credit_, 1, 1);
  figures->setColumnStretch(0, 1);
  figures->setColumnStretch(1, 1);
  body()->addLayout(figures);
}

void DeviceCard::show_device(rpc::Snapshot::Device::Reader device) {
  const auto verdict = device.getVerdict();
  resource_ = device.getResource();
  activity_ = verdict.getActivity();
  const QString name = QString::fromUtf8(device.getReport().getInfo().getName().cStr());
  setAccessibleName(name);
  name_->setText(name);
  QString why = device.getLent() ? sentence(verdict.getWhy()) : tr("Not lent.");
  if (why.isEmpty()) why = activity_word(activity_);
  why_->setText(why);
  // What is not lent has no state of its own.
  state_icon_.setVisible(device.getLent());
  temperature_->set(tr("Temperature"), format_temperature(device.getTemperatureC()));
  watts_->set(device.getWattsMeasured() ? tr("Power") : tr("Power, estimated"),
              format_watts(device.getWatts()));
  duty_->set(tr("Busy, last minute"), format_percent(device.getDuty()));
  credit_->set(tr("Credit today"), format_credit(device.getToday().getCreditConfirmed() +
                                                 device.getToday().getCreditPending()));
  icon_.setAccessibleName(resource_word(resource_));
  show_icons();
}

void DeviceCard::show_icons() {
  icon_.setPixmap(symbolic_pixmap(resource_icon(resource_), kIconSize + 4,
                                  palette().color(QPalette::WindowText), devicePixelRatioF()));
  show_state_icon(state_icon_, activity_, kIconSize + 4);
}

void DeviceCard::changeEvent(QEvent* event) {
  Card::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) show_icons();
}

}  // namespace shoal::ui
