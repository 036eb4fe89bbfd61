#include <QGridLayout>
#include <QTimer>
#include <vector>

#include "ui/agent_link.h"
#include "ui/banner.h"
#include "ui/client_settings.h"
#include "ui/format.h"
#include "ui/messages.h"
#include "ui/pages/content_page.h"
#include "ui/pages/overview_parts.h"
#include "ui/theme.h"
#include "ui/widgets/card.h"

namespace shoal::ui {
namespace {

constexpr int kDeviceCardWidth = 300;

class OverviewPage final : public ContentPage {
  Q_OBJECT

 public:
  OverviewPage(const PageContext& context, QWidget* parent)
      : ContentPage(context, parent), state_(link(), clock(), this) {
    scroller_ = make_scroller();
    auto* body = scroller_->body();
    body->addWidget(&problem_);
    body->addWidget(&attention_);
    notices_.setObjectName("notices");
    notices_.set_closable(true);
    body->addWidget(&notices_);
    body->addWidget(&state_);
    auto* resources = new QHBoxLayout;
    resources->setSpacing(kSpaceLarge);
    for (const auto resource : {rpc::Resource::GPU, rpc::Resource::CPU, rpc::Resource::NETWORK}) {
      auto* card = new ResourceCard(link(), clock(), resource, this);
      resource_cards_.push_back(card);
      resources->addWidget(card, 1);
      connect(card, &ResourceCard::failed, &problem_, &Banner::show_error);
    }
    body->addLayout(resources);

    today_.set_title(tr("Today"));
    auto* figures = new QHBoxLayout;
    figures->setSpacing(kSpaceLarge);
    for (Figure** figure : {&credit_, &tokens_, &worked_, &energy_, &cost_}) {
      *figure = new Figure(&today_);
      figures->addWidget(*figure, 1);
    }
    today_.body()->addLayout(figures);
    yield_ = make_text(&today_);
    set_text_role(*yield_, TextRole::kQuiet);
    today_.body()->addWidget(yield_);
    body->addWidget(&today_);

    device_grid_ = new QGridLayout;
    device_grid_->setSpacing(kSpaceLarge);
    body->addLayout(device_grid_);
    body->addStretch();

    connect(&state_, &StateCard::failed, &problem_, &Banner::show_error);
    connect(&state_, &StateCard::rule_wanted, this,
            [this](const QString& key) { Q_EMIT page_wanted("rules", key); });
    connect(&attention_, &Banner::action_clicked, this,
            [this] { Q_EMIT page_wanted(attention_page_, {}); });
    connect(&notices_, &Banner::closed, this, [this] { notices_closed_ = notices_.text(); });
    connect(&client_settings(), &ClientSettings::changed, this, [this] {
      if (isVisible() && link().snapshot() != nullptr) show_today(link().snapshot()->reader());
    });
    connect(&ticker_, &QTimer::timeout, this, &OverviewPage::tick);
    ticker_.setInterval(1'000);
  }

  void show_snapshot(const SnapshotPtr& snapshot) override {
    const auto now = snapshot->reader();
    show_content();
    state_.show_snapshot(now);
    for (const auto state : now.getResources()) {
      const auto index = static_cast<size_t>(state.getResource());
      if (index < resource_cards_.size()) resource_cards_[index]->show_state(state);
    }
    show_attention(now);
    show_notices(now);
    show_today(now);
    show_devices(now);
    if (isVisible()) ticker_.start();
  }

  void show_disconnected() override {
    ContentPage::show_disconnected();
    ticker_.stop();
  }

 protected:
  void showEvent(QShowEvent* event) override {
    ContentPage::showEvent(event);
    ticker_.start();
    client_settings().refresh();  // The currency may have been changed elsewhere.
  }
  void hideEvent(QHideEvent* event) override {
    ContentPage::hideEvent(event);
    ticker_.stop();
  }
  void resizeEvent(QResizeEvent* event) override {
    ContentPage::resizeEvent(event);
    place_devices();
  }

 private:
  void tick() {
    state_.tick();
    for (ResourceCard* card : resource_cards_) card->tick();
  }

  // What only a person can put right, whichever device or coordinator it concerns.
  void show_attention(rpc::Snapshot::Reader now) {
    QString text;
    QString page = "devices";
    QString action = tr("Show devices");
    for (const auto device : now.getDevices()) {
      if (device.getLent() && device.getVerdict().getActivity() == rpc::Activity::ATTENTION) {
        text = sentence(device.getVerdict().getWhy());
      }
    }
    for (const auto connection : now.getConnections()) {
      if (connection.getState() != "refused") continue;
      text = tr("%1 refuses this computer: %2")
                 .arg(QString::fromUtf8(connection.getName().cStr()),
                      problem_text(connection.getReason()));
      page = "coordinators";
      action = tr("Show coordinators");
    }
    if (now.getConnections().size() == 0) {
      text = tr("This computer has not joined a coordinator yet, so no work can come.");
      page = "coordinators";
      action = tr("Join one");
    }
    attention_page_ = page;
    if (text.isEmpty()) {
      attention_.hide();
    } else {
      attention_.show_text(BannerKind::kWarning, text, action);
    }
  }

  // What the owner should know though work goes on. Closed, it comes back only as something else.
  void show_notices(rpc::Snapshot::Reader now) {
    QStringList lines;
    for (const auto notice : now.getNotices()) {
      Message message = read_message(notice);
      QString line = sentence(message);
      message.code += ".remedy";
      if (find_message(message.code) != nullptr) line += ' ' + sentence(message);
      lines += line;
    }
    const QString text = lines.join('\n');
    if (text != notices_closed_) notices_closed_.clear();
    if (text.isEmpty() || text == notices_closed_) {
      notices_.hide();
    } else {
      notices_.show_text(BannerKind::kNote, text);
    }
  }

  void show_today(rpc::Snapshot::Reader now) {
    const auto today = now.getToday();
    credit_->set(tr("Credit"), format_credit(today.getCreditConfirmed() + today.getCreditPending()),
                 tr("%1 ever").arg(format_credit(now.getEver().getCreditConfirmed())));
    tokens_->set(tr("Tokens"), format_count(static_cast<double>(today.getRows())),
                 tr("%1 ever").arg(format_count(static_cast<double>(now.getEver().getRows()))));
    const Millis worked{static_cast<int64_t>(today.getWorkedMs())};
    const Millis allowed{static_cast<int64_t>(today.getAllowedMs())};
    worked_->set(tr("Computing"), format_duration(worked),
                 tr("of %1 allowed").arg(format_duration(allowed)));
    energy_->set(tr("Energy"), format_energy(today.getKilowattHours()),
                 tr("%1 ever").arg(format_energy(now.getEver().getKilowattHours())));
    const QString currency = client_settings().currency();
    cost_->set(tr("Cost"), format_money(today.getCost(), currency),
               tr("%1 ever").arg(format_money(now.getEver().getCost(), currency)));

    const auto yield = now.getYield();
    if (yield.getCount() == 0) {
      yield_->setText(tr("When you come back, this computer is yours within %1; its memory is free "
                         "within %2. Both are measured each time.")
                          .arg(format_short_time(Millis{yield.getStopMsBound()}),
                               format_short_time(Millis{yield.getFreeMsBound()})));
      return;
    }
    QString text =
        tr("When you came back, this computer was yours after %1 (99 of 100 times within "
           "%2), its memory after %3 (%4).")
            .arg(format_short_time(Millis{yield.getStopMsP50()}),
                 format_short_time(Millis{yield.getStopMsP99()}),
                 format_short_time(Millis{yield.getFreeMsP50()}),
                 format_short_time(Millis{yield.getFreeMsP99()}));
    text += ' ';
    text += yield.getLate() == 0
                ? tr("Never later than you allow, %n time(s).", nullptr, int(yield.getCount()))
                : tr("Later than you allow: %1 of %2 times.")
                      .arg(format_count(yield.getLate()), format_count(yield.getCount()));
    yield_->setText(text);
  }

  void show_devices(rpc::Snapshot::Reader now) {
    const auto devices = now.getDevices();
    bool moved = device_cards_.size() != devices.size();
    while (device_cards_.size() > devices.size()) {
      device_cards_.back()->deleteLater();
      device_cards_.back()->hide();
      device_cards_.pop_back();
    }
    while (device_cards_.size() < devices.size()) device_cards_.push_back(new DeviceCard(this));
    for (uint32_t i = 0; i < devices.size(); ++i) device_cards_[i]->show_device(devices[i]);
    if (moved) {
      columns_ = 0;
      place_devices();
    }
  }

  // As many cards in a row as there is room for.
  void place_devices() {
    const int room = scroller_->viewport()->width() - 2 * kSpaceLarge;
    const int columns =
        std::max(1, std::min<int>((room + kSpaceLarge) / (kDeviceCardWidth + kSpaceLarge),
                                  static_cast<int>(device_cards_.size())));
    if (columns == columns_) return;
    columns_ = columns;
    while (QLayoutItem* item = device_grid_->takeAt(0)) delete_item(item);
    for (size_t i = 0; i < device_cards_.size(); ++i) {
      device_grid_->addWidget(device_cards_[i], int(i) / columns, int(i) % columns);
      device_cards_[i]->show();
    }
    for (int c = 0; c < 8; ++c) device_grid_->setColumnStretch(c, c < columns ? 1 : 0);
  }
  // takeAt() hands the item over; the widget in it stays.
  static void delete_item(QLayoutItem* item) { const std::unique_ptr<QLayoutItem> owned(item); }

  Banner problem_, attention_, notices_;
  QString attention_page_, notices_closed_;
  StateCard state_;
  std::vector<ResourceCard*> resource_cards_;
  Card today_;
  Figure *credit_, *tokens_, *worked_, *energy_, *cost_;
  QLabel* yield_;
  QGridLayout* device_grid_;
  int columns_ = 0;
  std::vector<DeviceCard*> device_cards_;
  Scroller* scroller_;
  QTimer ticker_;
};

}  // namespace

Page* make_overview_page(const PageContext& context, QWidget* parent) {
  return new OverviewPage(context, parent);
}

}  // namespace shoal::ui

#include "overview_page.moc"
