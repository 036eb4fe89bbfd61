#include <QVBoxLayout>

#include "ui/empty_state.h"
#include "ui/pages/page.h"

namespace shoal::ui {
namespace {

class DevicesPage final : public Page {
  Q_OBJECT

 public:
  DevicesPage(const PageContext& context, QWidget* parent) : Page(context, parent) {
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(&empty_);
    show_disconnected();
  }

  void show_snapshot(const SnapshotPtr&) override {
    empty_.set("devices", tr("Nothing here yet"), {});
  }
  void show_disconnected() override { empty_.set_disconnected(); }

 private:
  EmptyState empty_;
};

}  // namespace

Page* make_devices_page(const PageContext& context, QWidget* parent) {
  return new DevicesPage(context, parent);
}

}  // namespace shoal::ui

#include "devices_page.moc"
