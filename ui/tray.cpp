#include "ui/tray.h"

#include "ui/contribute.h"
#include "ui/format.h"
#include "ui/icons.h"
#include "ui/messages.h"

namespace shoal::ui {
namespace {

constexpr int kReasonLengthMax = 70;

// A menu has no room for a long sentence; the window shows it whole. An ampersand would be taken
// for a shortcut.
QString menu_line(QString text) {
  if (text.size() > kReasonLengthMax) text = text.left(kReasonLengthMax - 1).trimmed() + "…";
  return text.replace('&', "&&");
}

}  // namespace

Tray::Tray(AgentLink& link, const Clock& clock, TrayHost& host, QObject* parent)
    : QObject(parent), link_(link), clock_(clock), host_(host) {
  reason_.setEnabled(false);
  today_.setEnabled(false);
  contribute_.setText(tr("&Contribute"));
  contribute_.setCheckable(true);
  pause_menu_.setTitle(tr("&Pause for"));
  resume_.setText(tr("&Resume"));
  start_.setText(tr("&Start Shoal's background program"));
  open_.setText(tr("&Open Shoal"));
  quit_.setText(tr("&Quit"));
  menu_.addAction(&reason_);
  menu_.addAction(&today_);
  menu_.addSeparator();
  menu_.addAction(&start_);
  menu_.addAction(&contribute_);
  menu_.addMenu(&pause_menu_);
  menu_.addAction(&resume_);
  menu_.addSeparator();
  menu_.addAction(&open_);
  menu_.addAction(&quit_);
  menu_.setDefaultAction(&open_);

  const auto tell = [this](const Error* error) {
    if (error != nullptr) Q_EMIT failed(*error);
  };
  connect(&contribute_, &QAction::triggered, this, [this, tell](bool on) {
    if (on) {
      resume_all(link_, this, tell);
    } else {
      pause_all(link_, this, Millis{0}, tell);
    }
  });
  connect(&resume_, &QAction::triggered, this, [this, tell] { resume_all(link_, this, tell); });
  connect(&start_, &QAction::triggered, this, &Tray::start_wanted);
  connect(&open_, &QAction::triggered, this, &Tray::open_wanted);
  connect(&quit_, &QAction::triggered, this, &Tray::quit_wanted);
  const auto fill = [this, tell] {
    fill_pause_menu(pause_menu_, clock_.now_wall(),
                    [this, tell](Millis length) { pause_all(link_, this, length, tell); });
  };
  connect(&menu_, &QMenu::aboutToShow, this, fill);
  fill();

  connect(&link_, &AgentLink::snapshot_arrived, this, &Tray::show_snapshot);
  connect(&link_, &AgentLink::state_changed, this, &Tray::show_snapshot);
  connect(&host_, &TrayHost::changed, this, &Tray::place);
  show_snapshot();
  place();
}

void Tray::place() {
  if (!host_.available() || icon_ != nullptr) return;
  icon_ = std::make_unique<QSystemTrayIcon>();
  icon_->setContextMenu(&menu_);
  icon_->setIcon(colored_icon(icon_name_));
  icon_->setToolTip(tooltip_);
  connect(icon_.get(), &QSystemTrayIcon::activated, this,
          [this](QSystemTrayIcon::ActivationReason reason) {
            if (reason == QSystemTrayIcon::Trigger || reason == QSystemTrayIcon::DoubleClick) {
              Q_EMIT open_wanted();
            }
          });
  icon_->show();
}

void Tray::show_snapshot() {
  const SnapshotPtr& snapshot = link_.snapshot();
  const bool connected = snapshot != nullptr;
  start_.setVisible(link_.state() == LinkState::kAbsent);
  contribute_.setVisible(connected);
  pause_menu_.menuAction()->setVisible(connected && is_contributing(snapshot->reader()));
  today_.setVisible(connected);
  if (!connected) {
    resume_.setVisible(false);
    const QString why = link_.state() == LinkState::kSilent ? tr("The background program hangs.")
                        : link_.state() == LinkState::kAbsent
                            ? tr("The background program does not run.")
                            : tr("Connecting…");
    set_state("state-offline", why, tr("Shoal: %1").arg(why));
    return;
  }
  const auto now = snapshot->reader();
  const auto verdict = now.getOverall();
  contribute_.setChecked(is_contributing(now));
  resume_.setVisible(is_any_paused(now));
  today_.setText(tr("Credit today: %1")
                     .arg(format_credit(now.getToday().getCreditConfirmed() +
                                        now.getToday().getCreditPending())));
  const QString why = sentence(verdict.getWhy());
  set_state(activity_icon(verdict.getActivity()), why,
            tr("Shoal: %1").arg(activity_word(verdict.getActivity())) + "\n" + why);
}

void Tray::set_state(const QString& icon, const QString& reason, const QString& tooltip) {
  if (reason_.text() != menu_line(reason)) reason_.setText(menu_line(reason));
  const bool new_icon = icon != icon_name_;
  const bool new_tooltip = tooltip != tooltip_;
  icon_name_ = icon;
  tooltip_ = tooltip;
  if (icon_ == nullptr) return;
  if (new_icon) icon_->setIcon(colored_icon(icon));
  if (new_tooltip) icon_->setToolTip(tooltip);
}

}  // namespace shoal::ui
