#include "ui/window.h"

#include <QCloseEvent>
#include <QCoreApplication>
#include <QHBoxLayout>
#include <QSettings>
#include <QShortcut>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/icons.h"
#include "ui/style.h"
#include "ui/theme.h"
#include "ui/widgets/data_table.h"

namespace shoal::ui {
namespace {

constexpr char kGuideDone[] = "guide/done";
constexpr char kGeometry[] = "window/geometry";
constexpr int kGeometryRestMs = 500;  // After the last move.
constexpr char kLastPage[] = "window/page";

}  // namespace

Window::Window(const PageContext& context, WindowParts parts, QWidget* parent)
    : QMainWindow(parent),
      context_(context),
      guide_(context.link, context.client_settings, parts.autostart),
      about_(context.link, parts, context.settings) {
  setWindowTitle(tr("Shoal"));
  setWindowIcon(colored_icon("shoal"));
  auto* middle = new QWidget(this);
  auto* layout = new QHBoxLayout(middle);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  auto* rail = new QWidget(middle);
  rail->setAccessibleName(tr("Pages"));
  rail_layout_ = new QVBoxLayout(rail);
  rail_layout_->setContentsMargins(kSpace, kSpaceLarge, kSpaceSmall, kSpaceLarge);
  rail_layout_->setSpacing(kSpaceSmall);
  auto* right = new QVBoxLayout;
  right->setSpacing(0);
  banners_ = new QVBoxLayout;
  banners_->setSpacing(kSpace);
  for (Banner* banner : {&link_banner_, &note_}) banners_->addWidget(banner);
  right->addLayout(banners_);
  right->addWidget(&stack_, 1);
  layout->addWidget(rail);
  layout->addLayout(right, 1);
  rail_.setExclusive(true);
  for (const PageSpec& spec : page_list()) {
    Page* page = spec.make(context_, &stack_);
    pages_.push_back(page);
    for (DataTable* table : page->findChildren<DataTable*>())
      table->keep_columns_in(context_.settings);
    connect(page, &Page::page_wanted, this, &Window::open_page);
    add_to_rail(QCoreApplication::translate("pages", spec.title), spec.icon, page);
  }
  rail_layout_->addStretch(1);
  add_to_rail(tr("About"), "help", &about_);
  outer_.addWidget(middle);
  outer_.addWidget(&guide_);
  setCentralWidget(&outer_);

  // Toggled, not clicked: a screen reader toggles.
  connect(&rail_, &QButtonGroup::idToggled, this, [this](int index, bool on) {
    if (on) stack_.setCurrentIndex(index);
  });
  connect(&stack_, &QStackedWidget::currentChanged, this, [this] {
    context_.settings.setValue(kLastPage, open_page_key());
    show_now();
  });
  connect(&context_.link, &AgentLink::snapshot_arrived, this, &Window::show_now);
  connect(&context_.link, &AgentLink::state_changed, this, &Window::show_link);
  connect(&link_banner_, &Banner::action_clicked, this, &Window::start_wanted);
  connect(&note_, &Banner::closed, this, [this] {
    place_banners();
    if (note_seen_) note_seen_();
  });
  connect(&guide_, &Guide::finished, this, [this] {
    context_.settings.setValue(kGuideDone, true);
    outer_.setCurrentIndex(0);
    open_page("overview");
  });
  connect(&about_, &About::guide_wanted, this, &Window::open_guide);
  connect(&about_, &About::quit_wanted, this, &Window::quit_wanted);
  connect(new QShortcut(QKeySequence::Quit, this), &QShortcut::activated, this,
          &Window::quit_wanted);
  connect(new QShortcut(QKeySequence::Close, this), &QShortcut::activated, this, &QWidget::close);

  // A session that ends may leave no time for it later.
  geometry_rest_.setSingleShot(true);
  geometry_rest_.setInterval(kGeometryRestMs);
  connect(&geometry_rest_, &QTimer::timeout, this, &Window::keep_geometry);

  rail_.button(0)->setChecked(true);
  open_page(context_.settings.value(kLastPage, "overview").toString());
  if (!restoreGeometry(context_.settings.value(kGeometry).toByteArray())) resize(1'060, 760);
  show_link();
}

void Window::add_to_rail(const QString& text, const QString& icon, QWidget* page) {
  const int index = stack_.addWidget(page);
  auto* button = new QToolButton;
  set_rail(*button);
  button->setText("  " + text);
  button->setAccessibleName(text);
  button->setIcon(symbolic_icon(icon));
  button->setIconSize(QSize(kIconSize + 2, kIconSize + 2));
  button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  button->setCheckable(true);
  button->setAutoRaise(true);
  button->setFocusPolicy(Qt::StrongFocus);
  button->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  // Alt+1 and so on, in the order of the rail.
  button->setShortcut(QKeySequence(Qt::ALT | static_cast<Qt::Key>(Qt::Key_1 + index)));
  button->setToolTip(button->shortcut().toString(QKeySequence::NativeText));
  rail_.addButton(button, index);
  rail_layout_->addWidget(button);
}

void Window::open_page(const QString& key, const QString& detail) {
  int index = key == "about" ? static_cast<int>(pages_.size()) : -1;
  for (size_t i = 0; i < pages_.size(); ++i) {
    if (key == QLatin1String(page_list()[i].key)) index = static_cast<int>(i);
  }
  if (index < 0) return;
  outer_.setCurrentIndex(0);
  rail_.button(index)->setChecked(true);
  stack_.setCurrentIndex(index);
  if (!detail.isEmpty() && index < static_cast<int>(pages_.size())) {
    pages_[static_cast<size_t>(index)]->show_detail(detail);
  }
}

QString Window::open_page_key() const {
  const auto index = static_cast<size_t>(stack_.currentIndex());
  return index < pages_.size() ? page_list()[index].key : "about";
}

void Window::open_guide() {
  outer_.setCurrentIndex(1);
  guide_.begin();
}

void Window::show_note(const QString& text, std::function<void()> seen) {
  note_seen_ = std::move(seen);
  note_.set_closable(true);
  note_.show_text(BannerKind::kNote, text);
  place_banners();
}

void Window::show_starting() {
  starting_ = true;
  start_failure_.clear();
  show_link();
}

void Window::show_start_failed(const QString& why) {
  starting_ = false;
  start_failure_ = why;
  show_link();
}

void Window::show_link() {
  switch (context_.link.state()) {
    case LinkState::kConnected:
      starting_ = false;
      start_failure_.clear();
      link_banner_.hide();
      break;
    case LinkState::kConnecting: link_banner_.hide(); break;
    case LinkState::kSilent:
      link_banner_.show_text(BannerKind::kWarning,
                             tr("Shoal's background program does not answer. It may be busy; this "
                                "window goes on by itself when it answers."));
      break;
    case LinkState::kAbsent:
      if (starting_) {
        link_banner_.show_text(BannerKind::kNote, tr("Shoal's background program starts…"));
      } else if (!start_failure_.isEmpty()) {
        link_banner_.show_text(
            BannerKind::kProblem,
            tr("Shoal's background program did not start: %1").arg(start_failure_),
            tr("Try again"));
      } else {
        link_banner_.show_text(BannerKind::kWarning,
                               tr("Shoal's background program does not run, so nothing is lent."),
                               tr("Start it"));
      }
      break;
  }
  place_banners();
  show_now();
}

// Nothing to say takes no room.
void Window::place_banners() {
  const bool any = !link_banner_.isHidden() || !note_.isHidden();
  banners_->setContentsMargins(kSpaceLarge, any ? kSpaceLarge : 0, kSpaceLarge, 0);
}

void Window::show_now() {
  if (!isVisible()) return;
  const SnapshotPtr& snapshot = context_.link.snapshot();
  if (snapshot != nullptr && !guide_offered_) {
    guide_offered_ = true;
    if (snapshot->reader().getConnections().size() == 0 &&
        !context_.settings.value(kGuideDone, false).toBool()) {
      open_guide();
    }
  }
  const auto index = static_cast<size_t>(stack_.currentIndex());
  if (index >= pages_.size()) return about_.refresh();
  if (snapshot != nullptr) {
    pages_[index]->show_snapshot(snapshot);
  } else {
    pages_[index]->show_disconnected();
  }
}

void Window::closeEvent(QCloseEvent* event) {
  event->ignore();
  if (hides_) {
    hide();
  } else {
    Q_EMIT closed_for_good();
  }
}

void Window::keep_geometry() { context_.settings.setValue(kGeometry, saveGeometry()); }

void Window::moveEvent(QMoveEvent* event) {
  QMainWindow::moveEvent(event);
  if (isVisible()) geometry_rest_.start();
}

void Window::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  if (isVisible()) geometry_rest_.start();
}

void Window::showEvent(QShowEvent* event) {
  QMainWindow::showEvent(event);
  show_now();
  Q_EMIT hidden_or_shown(true);
}

void Window::hideEvent(QHideEvent* event) {
  QMainWindow::hideEvent(event);
  keep_geometry();
  Q_EMIT hidden_or_shown(false);
}

}  // namespace shoal::ui
