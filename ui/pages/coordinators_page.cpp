#include <QVBoxLayout>

#include "ui/empty_state.h"
#include "ui/pages/page.h"

namespace shoal::ui {
namespace {

class CoordinatorsPage final : public Page {
  Q_OBJECT

 public:
  CoordinatorsPage(const PageContext& context, QWidget* parent) : Page(context, parent) {
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(&empty_);
    show_disconnected();
  }

  void show_snapshot(const SnapshotPtr&) override {
    empty_.set("coordinators", tr("Nothing here yet"), {});
  }
  void show_disconnected() override { empty_.set_disconnected(); }

 private:
  EmptyState empty_;
};

}  // namespace

Page* make_coordinators_page(const PageContext& context, QWidget* parent) {
  return new CoordinatorsPage(context, parent);
}

}  // namespace shoal::ui

#include "coordinators_page.moc"
