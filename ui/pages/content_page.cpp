#include "ui/pages/content_page.h"

#include <QStackedLayout>
#include <QVBoxLayout>

#include "ui/widgets/card.h"

namespace shoal::ui {

ContentPage::ContentPage(const PageContext& context, QWidget* parent) : Page(context, parent) {
  stack_ = new QStackedLayout(this);
  stack_->setContentsMargins(0, 0, 0, 0);
  content_ = new QWidget(this);
  stack_->addWidget(&empty_);
  stack_->addWidget(content_);
  empty_.set_disconnected();
}

Scroller* ContentPage::make_scroller() {
  auto* scroller = new Scroller(content_);
  auto* outer = new QVBoxLayout(content_);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->addWidget(scroller);
  return scroller;
}

void ContentPage::show_disconnected() {
  empty_.set_disconnected();
  show_empty();
}

void ContentPage::show_content() { stack_->setCurrentWidget(content_); }

void ContentPage::show_empty() { stack_->setCurrentWidget(&empty_); }

}  // namespace shoal::ui
