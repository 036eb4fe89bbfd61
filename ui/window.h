#pragma once
// The window: a rail of pages, the page that is open, and above it what is wrong with the client.
// Gives snapshots to the page on screen, and to no other.

#include <QButtonGroup>
#include <QMainWindow>
#include <QStackedWidget>
#include <QTimer>
#include <functional>
#include <vector>

#include "ui/about.h"
#include "ui/agent_link.h"
#include "ui/banner.h"
#include "ui/guide.h"
#include "ui/pages/page.h"

class QVBoxLayout;

namespace shoal::ui {

class Window : public QMainWindow {
  Q_OBJECT

 public:
  Window(const PageContext& context, WindowParts parts, QWidget* parent = nullptr);

  void open_page(const QString& key, const QString& detail = {});  // "about" too.
  QString open_page_key() const;
  void open_guide();
  Guide& guide() { return guide_; }

  // Where the window stands, for the next start.
  void keep_geometry();
  // Whether closing only hides: there is a tray to come back from.
  void set_hides(bool hides) { hides_ = hides; }
  // A note above the pages that the owner closes. `seen` is called then.
  void show_note(const QString& text, std::function<void()> seen);
  // The client's start, as the shell tells it.
  void show_starting();
  void show_start_failed(const QString& why);

 Q_SIGNALS:
  void start_wanted();  // Of the client.
  void quit_wanted();
  void closed_for_good();  // Closed, with no tray to come back from.
  void hidden_or_shown(bool visible);

 protected:
  void closeEvent(QCloseEvent* event) override;
  void moveEvent(QMoveEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;

 private:
  void add_to_rail(const QString& text, const QString& icon, QWidget* page);
  void show_now();  // Gives the page on screen what is known.
  void show_link();
  void place_banners();

  PageContext context_;
  QStackedWidget outer_, stack_;
  QButtonGroup rail_;
  std::vector<Page*> pages_;  // In the order of page_list().
  Banner link_banner_, note_;
  Guide guide_;
  About about_;
  QVBoxLayout *rail_layout_, *banners_;
  std::function<void()> note_seen_;
  QString start_failure_;
  QTimer geometry_rest_;
  bool hides_ = false, guide_offered_ = false, starting_ = false;
};

}  // namespace shoal::ui
