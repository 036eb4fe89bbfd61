#pragma once
// The window: a rail of pages, and the page that is open. Gives snapshots to the page on screen.

#include <QButtonGroup>
#include <QMainWindow>
#include <QStackedWidget>
#include <vector>

#include "ui/agent_link.h"
#include "ui/pages/page.h"

namespace shoal::ui {

class Window : public QMainWindow {
  Q_OBJECT

 public:
  explicit Window(const PageContext& context, QWidget* parent = nullptr);

  void open_page(const QString& key, const QString& detail = {});
  QString open_page_key() const;

 private:
  void show_now();  // Gives the page on screen what is known.

  PageContext context_;
  QStackedWidget stack_;
  QButtonGroup rail_;
  std::vector<Page*> pages_;  // In the order of page_list().
};

}  // namespace shoal::ui
