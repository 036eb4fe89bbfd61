#include <QVBoxLayout>

#include "ui/empty_state.h"
#include "ui/pages/page.h"

namespace shoal::ui {
namespace {

class OverviewPage final : public Page {
  Q_OBJECT

 public:
  OverviewPage(const PageContext& context, QWidget* parent) : Page(context, parent) {
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(&empty_);
    show_disconnected();
  }

  void show_snapshot(const SnapshotPtr&) override {
    empty_.set("overview", tr("Nothing here yet"), {});
  }
  void show_disconnected() override { empty_.set_disconnected(); }

 private:
  EmptyState empty_;
};

}  // namespace

Page* make_overview_page(const PageContext& context, QWidget* parent) {
  return new OverviewPage(context, parent);
}

}  // namespace shoal::ui

#include "overview_page.moc"
