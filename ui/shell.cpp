#include "ui/shell.h"

#include <QApplication>
#include <QCheckBox>
#include <QPushButton>
#include <QSettings>

#include "ui/contribute.h"
#include "ui/messages.h"

namespace shoal::ui {
namespace {

constexpr char kNoTrayTold[] = "tray/absence_told";
constexpr char kTrayTold[] = "tray/presence_told";
constexpr char kQuitStops[] = "quit/stops_client";  // Absent: ask.
constexpr int kHostPatienceMs = 5'000;
constexpr Millis kHiddenInterval{2'000};

}  // namespace

Shell::Shell(const PageContext& context, Theme& theme, const Autostart& autostart,
             ClientProcessOptions client, QObject* parent)
    : QObject(parent),
      context_(context),
      notices_(context.clock, context.settings),
      tray_(context.link, context.clock, host_),
      client_(context.link, std::move(client)),
      window_(context, {theme, notices_, autostart}) {
  connect(&tray_, &Tray::open_wanted, this, [this] { open(); });
  connect(&tray_, &Tray::quit_wanted, this, &Shell::ask_to_quit);
  connect(&tray_, &Tray::start_wanted, &client_, &ClientProcess::start);
  connect(&tray_, &Tray::failed, this, [this](const Error& error) { tell_failure(&error); });
  connect(&notices_, &Notices::clicked, this, [this] { open(); });
  connect(&window_, &Window::quit_wanted, this, &Shell::ask_to_quit);
  // The note on a desktop without a tray says so: only the window goes, and nothing is asked.
  connect(&window_, &Window::closed_for_good, this, [this] { quit(false); });
  connect(&window_, &Window::start_wanted, this, [this] {
    window_.show_starting();
    client_.start();
  });
  connect(&window_, &Window::hidden_or_shown, this, [this](bool visible) {
    context_.link.set_snapshot_interval(visible ? Millis{0} : kHiddenInterval);
    if (!visible && tray_.available() && !context_.settings.value(kTrayTold, false).toBool()) {
      context_.settings.setValue(kTrayTold, true);
      notices_.tell(tr("Shoal goes on"), tr("You find it as a small icon in the panel."));
    }
  });
  connect(&client_, &ClientProcess::failed, &window_, &Window::show_start_failed);
  connect(&context_.link, &AgentLink::snapshot_arrived, this, [this](const SnapshotPtr& snapshot) {
    notices_.show_snapshot(snapshot->reader());
    if (waiting_ != nullptr) (this->*std::exchange(waiting_, nullptr))();
  });
  connect(&context_.link, &AgentLink::state_changed, this, [this](LinkState state) {
    // Once, when nothing answers at the first try: who opens Shoal wants it to run. After that, the
    // owner may have stopped it on purpose.
    if (state == LinkState::kAbsent && !std::exchange(started_client_, true)) {
      window_.show_starting();
      client_.start();
    }
    if (state == LinkState::kConnected) started_client_ = true;
  });
  connect(&host_, &TrayHost::changed, this, &Shell::host_changed);
  host_patience_.setSingleShot(true);
  connect(&host_patience_, &QTimer::timeout, this, [this] {
    if (host_.available() || window_.isVisible()) return;
    open();
    tell_of_no_tray();
  });
  context_.link.set_snapshot_interval(kHiddenInterval);
}

void Shell::obey(const QString& order, const QString& activation_token) {
  if (order == "hidden") {
    // A second start at login must not bring up what is there already.
    if (window_.isVisible()) return;
    hidden_start_ = true;
    if (host_.known()) host_changed();
  } else if (order == "pause") {
    run_when_connected(&Shell::pause_now);
  } else if (order == "resume") {
    run_when_connected(&Shell::resume_now);
  } else if (order == "quit") {
    ask_to_quit();
  } else {
    open(activation_token);
  }
}

void Shell::run_when_connected(void (Shell::*act)()) {
  if (context_.link.snapshot() != nullptr) {
    (this->*act)();
  } else {
    waiting_ = act;
  }
  // A start for this alone must not end as a process that nobody sees.
  if (!window_.isVisible() && !tray_.available()) {
    hidden_start_ = true;
    if (host_.known()) host_changed();
  }
}

void Shell::pause_now() {
  pause_all(context_.link, this, Millis{0}, [this](const Error* error) { tell_failure(error); });
}

void Shell::resume_now() {
  resume_all(context_.link, this, [this](const Error* error) { tell_failure(error); });
}

void Shell::tell_failure(const Error* error) {
  if (error != nullptr) notices_.tell(tr("That did not work"), sentence(*error), true);
}

void Shell::host_changed() {
  window_.set_hides(host_.available());
  if (host_.available()) {
    host_patience_.stop();
    hidden_start_ = false;
    return;
  }
  if (window_.isVisible()) return tell_of_no_tray();
  if (hidden_start_) {
    // Nobody must be left with a program that has no face.
    hidden_start_ = false;
    open();
    tell_of_no_tray();
  } else {
    host_patience_.start(kHostPatienceMs);
  }
}

void Shell::tell_of_no_tray() {
  if (context_.settings.value(kNoTrayTold, false).toBool()) return;
  window_.show_note(
      tr("This desktop has no place for tray icons now, so Shoal shows this window instead. When "
         "you close it, work goes on in the background; start Shoal again to see it. On GNOME, the "
         "extension AppIndicator brings the icon back."),
      [this] { context_.settings.setValue(kNoTrayTold, true); });
}

void Shell::open(const QString& activation_token) {
  window_.set_hides(host_.available());
  if (window_.isMinimized()) window_.setWindowState(window_.windowState() & ~Qt::WindowMinimized);
  window_.show();
  // Wayland brings a window to the front only for who holds a token of the click that asked.
  if (!activation_token.isEmpty()) qputenv("XDG_ACTIVATION_TOKEN", activation_token.toUtf8());
  window_.raise();
  window_.activateWindow();
  if (host_.known() && !host_.available()) tell_of_no_tray();
}

void Shell::ask_to_quit() {
  if (context_.link.state() != LinkState::kConnected) return quit(false);
  if (context_.settings.contains(kQuitStops)) {
    return quit(context_.settings.value(kQuitStops).toBool());
  }
  if (question_ == nullptr) {
    question_ = std::make_unique<QMessageBox>(
        QMessageBox::Question, tr("Quit Shoal"),
        tr("Shall this computer go on lending when Shoal's window and icon are gone?"));
    question_->setObjectName("quit_question");
    question_->setWindowIcon(window_.windowIcon());
    QPushButton* go_on = question_->addButton(tr("&Go on"), QMessageBox::AcceptRole);
    QPushButton* stop = question_->addButton(tr("&Stop lending"), QMessageBox::DestructiveRole);
    question_->addButton(tr("&Cancel"), QMessageBox::RejectRole);
    question_->setDefaultButton(go_on);
    auto* always = new QCheckBox(tr("Do not ask again"), question_.get());
    question_->setCheckBox(always);
    connect(question_.get(), &QMessageBox::buttonClicked, this,
            [this, go_on, stop, always](QAbstractButton* button) {
              if (button != go_on && button != stop) return;
              if (always->isChecked()) context_.settings.setValue(kQuitStops, button == stop);
              quit(button == stop);
            });
  }
  question_->open();
  question_->raise();
  question_->activateWindow();
}

void Shell::quit(bool stop_client) {
  if (!stop_client) return leave();
  context_.link.call<&rpc::Agent::Client::stopRequest>(
      this, [](auto) {}, [this](AnswerOf<&rpc::Agent::Client::stopRequest>) { leave(); },
      Millis{5'000});
}

// Not by QApplication::quit(): that asks each window to close first, and ours only hides.
void Shell::leave() {
  window_.keep_geometry();
  QApplication::exit(0);
}

}  // namespace shoal::ui
