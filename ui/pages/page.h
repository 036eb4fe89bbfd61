#pragma once
// What a page of the window is. The list of pages is page_list.cpp; a page knows nothing of the
// window, and speaks to the client by the link alone.

#include <QString>
#include <QWidget>
#include <span>

#include "base/clock.h"
#include "ui/snapshot.h"

class QSettings;

namespace shoal::ui {

class AgentLink;
class ClientSettings;

// What a page works with. All of it outlives the page.
struct PageContext {
  AgentLink& link;
  const Clock& clock;
  QSettings& settings;  // Of this window, such as which columns are shown.
  ClientSettings& client_settings;
};

class Page : public QWidget {
  Q_OBJECT

 public:
  Page(const PageContext& context, QWidget* parent) : QWidget(parent), context_(context) {}

  // While the page is on screen: each new snapshot; and the newest one when it comes on screen.
  virtual void show_snapshot(const SnapshotPtr& snapshot) = 0;
  // No client answers: what is shown is no longer true. Also the state before the first snapshot.
  virtual void show_disconnected() = 0;
  // Somebody asked for this page with something special, such as a setting's key on Rules.
  virtual void show_detail(const QString& detail) { static_cast<void>(detail); }

 Q_SIGNALS:
  // The window shall open another page: its key in page_list(), and a detail for it, or nothing.
  void page_wanted(const QString& key, const QString& detail = {});

 protected:
  AgentLink& link() const { return context_.link; }
  const Clock& clock() const { return context_.clock; }
  ClientSettings& client_settings() const { return context_.client_settings; }

 private:
  PageContext context_;
};

struct PageSpec {
  const char* key;    // Stable: saved in settings, used by tests and page_wanted().
  const char* title;  // For translation in the context "pages".
  const char* icon;   // For symbolic_icon().
  Page* (*make)(const PageContext& context, QWidget* parent);
};

// In the order of the window's rail.
std::span<const PageSpec> page_list();

// One per file ui/pages/<key>_page.cpp.
Page* make_overview_page(const PageContext& context, QWidget* parent);
Page* make_statistics_page(const PageContext& context, QWidget* parent);
Page* make_work_page(const PageContext& context, QWidget* parent);
Page* make_devices_page(const PageContext& context, QWidget* parent);
Page* make_rules_page(const PageContext& context, QWidget* parent);
Page* make_coordinators_page(const PageContext& context, QWidget* parent);
Page* make_log_page(const PageContext& context, QWidget* parent);

}  // namespace shoal::ui
