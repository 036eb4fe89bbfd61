#pragma once
// A page with something to show: its content, or what is said instead of it.

#include "ui/empty_state.h"
#include "ui/pages/page.h"

class QStackedLayout;

namespace shoal::ui {

class Scroller;

class ContentPage : public Page {
  Q_OBJECT

 public:
  ContentPage(const PageContext& context, QWidget* parent);

  void show_disconnected() override;

 protected:
  QWidget* content() { return content_; }
  Scroller* make_scroller();  // The whole content, longer than the window.
  EmptyState& empty() { return empty_; }
  void show_content();
  void show_empty();

 private:
  QStackedLayout* stack_;
  QWidget* content_;
  EmptyState empty_;
};

}  // namespace shoal::ui
