#include "ui/window.h"

#include <QCoreApplication>
#include <QHBoxLayout>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/icons.h"
#include "ui/theme.h"

namespace shoal::ui {

Window::Window(const PageContext& context, QWidget* parent)
    : QMainWindow(parent), context_(context) {
  auto* middle = new QWidget(this);
  auto* layout = new QHBoxLayout(middle);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  auto* rail = new QVBoxLayout;
  rail->setContentsMargins(kSpace, kSpace, kSpace, kSpace);
  rail->setSpacing(kSpaceSmall);
  layout->addLayout(rail);
  layout->addWidget(&stack_, 1);
  rail_.setExclusive(true);
  int index = 0;
  for (const PageSpec& spec : page_list()) {
    Page* page = spec.make(context_, &stack_);
    pages_.push_back(page);
    stack_.addWidget(page);
    connect(page, &Page::page_wanted, this, &Window::open_page);
    auto* button = new QToolButton(middle);
    button->setText(QCoreApplication::translate("pages", spec.title));
    button->setIcon(symbolic_icon(spec.icon));
    button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    button->setCheckable(true);
    button->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    rail_.addButton(button, index++);
    rail->addWidget(button);
  }
  rail->addStretch(1);
  setCentralWidget(middle);
  connect(&rail_, &QButtonGroup::idClicked, &stack_, &QStackedWidget::setCurrentIndex);
  connect(&stack_, &QStackedWidget::currentChanged, this, &Window::show_now);
  connect(&context_.link, &AgentLink::snapshot_arrived, this, &Window::show_now);
  connect(&context_.link, &AgentLink::state_changed, this, &Window::show_now);
  rail_.button(0)->setChecked(true);
  resize(960, 680);
}

void Window::open_page(const QString& key, const QString& detail) {
  for (size_t i = 0; i < pages_.size(); ++i) {
    if (key != QLatin1String(page_list()[i].key)) continue;
    rail_.button(static_cast<int>(i))->setChecked(true);
    stack_.setCurrentIndex(static_cast<int>(i));
    if (!detail.isEmpty()) pages_[i]->show_detail(detail);
  }
}

QString Window::open_page_key() const {
  return page_list()[static_cast<size_t>(stack_.currentIndex())].key;
}

void Window::show_now() {
  Page* page = pages_[static_cast<size_t>(stack_.currentIndex())];
  if (context_.link.snapshot() != nullptr) {
    page->show_snapshot(context_.link.snapshot());
  } else {
    page->show_disconnected();
  }
}

}  // namespace shoal::ui
