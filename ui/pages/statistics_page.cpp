// What this computer earned, did and used, over a time that the owner chooses.

#include <QButtonGroup>
#include <QComboBox>
#include <QDateTime>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLocale>
#include <QPushButton>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>
#include <map>

#include "ui/agent_link.h"
#include "ui/client_settings.h"
#include "ui/format.h"
#include "ui/messages.h"
#include "ui/pages/content_page.h"
#include "ui/tables.h"
#include "ui/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/chart.h"
#include "ui/widgets/data_table.h"

namespace shoal::ui {
namespace {

constexpr int64_t kHourMs = 3'600'000;
constexpr int64_t kDayMs = 24 * kHourMs;
constexpr int kRefreshMs = 30'000;
constexpr uint32_t kReceiptsPerCall = 1'000;
constexpr size_t kReceiptsShownMax = 50'000;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

enum class Range { kToday, kWeek, kMonth, kEver };

// The steps of a chart: which one a moment belongs to, and how each is called.
class Steps {
 public:
  enum class Size { kHour, kDay, kWeek, kMonth };

  Steps(Range range, QDateTime first, QDateTime now) {
    size_ = Size::kDay;
    const qint64 days = first.daysTo(now);
    if (range == Range::kToday) size_ = Size::kHour;
    if (range == Range::kEver && days > 62) size_ = days > 400 ? Size::kMonth : Size::kWeek;
    first_ = first.date();
    if (size_ == Size::kWeek) first_ = first_.addDays(1 - first_.dayOfWeek());
    if (size_ == Size::kMonth) first_ = QDate(first_.year(), first_.month(), 1);
    start_ms_ = first_.startOfDay().toMSecsSinceEpoch();
    count_ = range == Range::kToday ? 24 : place_of(now.toMSecsSinceEpoch()) + 1;
  }

  int count() const { return count_; }

  // -1: outside.
  int step_of(int64_t at_ms) const {
    const int place = place_of(at_ms);
    return place >= 0 && place < count_ ? place : -1;
  }

  QString title() const {
    switch (size_) {
      case Size::kHour: return QCoreApplication::translate("tables", "Hour");
      case Size::kDay: return QCoreApplication::translate("tables", "Day");
      case Size::kWeek: return QCoreApplication::translate("tables", "Week from");
      case Size::kMonth: return QCoreApplication::translate("tables", "Month");
    }
    return {};
  }

  QString name(int step) const {
    const QLocale locale;
    switch (size_) {
      case Size::kHour: return locale.toString(QTime(step, 0), QLocale::ShortFormat);
      case Size::kDay: return locale.toString(first_.addDays(step), QLocale::LongFormat);
      case Size::kWeek: return locale.toString(first_.addDays(7 * step), QLocale::LongFormat);
      case Size::kMonth:
        return locale.toString(first_.addMonths(step), QStringLiteral("MMMM yyyy"));
    }
    return {};
  }

  QString label(int step) const {
    const QLocale locale;
    switch (size_) {
      case Size::kHour: return locale.toString(QTime(step, 0), QLocale::ShortFormat);
      case Size::kDay: return locale.toString(first_.addDays(step), QStringLiteral("d MMM"));
      case Size::kWeek: return locale.toString(first_.addDays(7 * step), QStringLiteral("d MMM"));
      case Size::kMonth: return locale.toString(first_.addMonths(step), QStringLiteral("MMM yy"));
    }
    return {};
  }

 private:
  int place_of(int64_t at_ms) const {
    if (at_ms < start_ms_) return -1;
    if (size_ == Size::kHour) return static_cast<int>((at_ms - start_ms_) / kHourMs);
    const QDate date = QDateTime::fromMSecsSinceEpoch(at_ms).date();
    const auto days = static_cast<int>(first_.daysTo(date));
    if (size_ == Size::kDay) return days;
    if (size_ == Size::kWeek) return days / 7;
    return (date.year() - first_.year()) * 12 + date.month() - first_.month();
  }

  Size size_ = Size::kDay;
  QDate first_;
  int64_t start_ms_ = 0;
  int count_ = 0;
};

using StatisticsAnswer = AnswerOf<&rpc::Agent::Client::statisticsRequest>;
using ReceiptsAnswer = AnswerOf<&rpc::Agent::Client::receiptsRequest>;
using Rows = std::shared_ptr<const Kept<rpc::Agent::StatisticsResults>>;

class StatisticsPage final : public ContentPage {
  Q_OBJECT

 public:
  StatisticsPage(const PageContext& context, QWidget* parent) : ContentPage(context, parent) {
    Scroller* const scroller = make_scroller();
    QVBoxLayout* const body = scroller->body();
    body->addLayout(make_choice());
    body->addWidget(make_problem_line());
    body->addWidget(make_figures());
    body->addLayout(make_charts());
    body->addWidget(make_device_table());
    body->addWidget(make_receipts());
    body->addStretch();
    refresh_.setInterval(kRefreshMs);
    connect(&refresh_, &QTimer::timeout, this, &StatisticsPage::fetch);
    connect(&context.client_settings, &ClientSettings::changed, this, [this] {
      if (isVisible()) show_rows();
    });
    set_range(Range::kWeek);
  }

  void show_snapshot(const SnapshotPtr& snapshot) override {
    snapshot_ = snapshot;
    const auto ever = snapshot->reader().getEver();
    if (ever.getRows() == 0 && ever.getKilowattHours() == 0 && ever.getCreditConfirmed() == 0 &&
        ever.getCreditPending() == 0 && ever.getCreditRejected() == 0) {
      const auto overall = snapshot->reader().getOverall();
      empty().set(QStringLiteral("statistics"), tr("Nothing to count yet"),
                  tr("Credit, tokens, hours and energy are counted here from the first work on.") +
                      ' ' + sentence(overall.getWhy()) + ' ' + sentence(overall.getRemedy()));
      return show_empty();
    }
    show_content();
    list_devices();
    if (!refresh_.isActive()) {  // It came on screen, or the client came.
      refresh_.start();
      fetch();
      client_settings().refresh();
      fetch_receipts();
    }
    show_figures();
  }

  void show_disconnected() override {
    refresh_.stop();
    snapshot_ = nullptr;
    ContentPage::show_disconnected();
  }

 protected:
  void hideEvent(QHideEvent* event) override {
    refresh_.stop();
    ContentPage::hideEvent(event);
  }

 private:
  QHBoxLayout* make_choice() {
    auto* row = new QHBoxLayout;
    row->setSpacing(kSpaceSmall);
    const std::pair<Range, QString> kRanges[] = {
        {Range::kToday, tr("Today")},
        {Range::kWeek, tr("7 days")},
        {Range::kMonth, tr("30 days")},
        {Range::kEver, tr("Ever")},
    };
    for (const auto& [range, text] : kRanges) {
      auto* button = new QPushButton(text, this);
      button->setCheckable(true);
      button->setAutoDefault(false);
      button->setObjectName(QStringLiteral("range_%1").arg(static_cast<int>(range)));
      button->setAccessibleName(tr("Show: %1").arg(text));
      ranges_.addButton(button, static_cast<int>(range));
      row->addWidget(button);
    }
    devices_ = new QComboBox(this);
    devices_->setObjectName(QStringLiteral("device"));
    devices_->setAccessibleName(tr("Device"));
    devices_->addItem(tr("All devices"), QString());
    devices_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    row->addStretch();
    row->addWidget(devices_);
    // Toggled, not clicked: a screen reader toggles.
    connect(&ranges_, &QButtonGroup::idToggled, this, [this](int id, bool on) {
      if (on && static_cast<Range>(id) != range_) set_range(static_cast<Range>(id));
    });
    connect(devices_, &QComboBox::currentIndexChanged, this, &StatisticsPage::show_rows);
    return row;
  }

  QWidget* make_problem_line() {
    problem_ = make_problem(this);
    return problem_;
  }

  QWidget* make_figures() {
    auto* card = new Card(this);
    auto* grid = new QGridLayout;
    grid->setHorizontalSpacing(kSpaceLarge);
    grid->setVerticalSpacing(kSpaceLarge);
    int place = 0;
    for (Figure** figure :
         {&credit_, &tokens_, &worked_, &duty_, &energy_, &cost_, &network_, &hottest_}) {
      *figure = new Figure(card);
      grid->addWidget(*figure, place / 4, place % 4);
      grid->setColumnStretch(place % 4, 1);
      ++place;
    }
    card->body()->addLayout(grid);
    return card;
  }

  QGridLayout* make_charts() {
    auto* grid = new QGridLayout;
    grid->setSpacing(kSpaceLarge);
    const struct {
      Chart** chart;
      ChartKind kind;
      const char* name;
      QString title;
    } kCharts[] = {
        {&credit_chart_, ChartKind::kStackedBars, "credit", tr("Credit")},
        {&tokens_chart_, ChartKind::kStackedBars, "tokens", tr("Tokens")},
        {&hours_chart_, ChartKind::kStackedBars, "hours", tr("Hours")},
        {&energy_chart_, ChartKind::kStackedBars, "energy", tr("Energy")},
        {&cost_chart_, ChartKind::kStackedBars, "cost", tr("Cost")},
        {&heat_chart_, ChartKind::kLines, "temperature", tr("Highest temperature")},
    };
    int place = 0;
    for (const auto& wanted : kCharts) {
      auto* card = new Card(this);
      *wanted.chart =
          new Chart(wanted.kind, QStringLiteral("statistics_%1").arg(wanted.name), card);
      (*wanted.chart)->set_title(wanted.title);
      (*wanted.chart)->set_empty_text(tr("Nothing in this time."));
      (*wanted.chart)->setMinimumHeight(230);
      card->body()->addWidget(*wanted.chart);
      grid->addWidget(card, place / 2, place % 2);
      grid->setColumnStretch(place % 2, 1);
      ++place;
    }
    heat_chart_->set_empty_text(tr("No device tells its temperature."));
    return grid;
  }

  QWidget* make_device_table() {
    auto* card = new Card(this);
    card->set_title(tr("By device"));
    device_model_ = new TableModel<DeviceSums>(
        device_sum_columns(), [](const DeviceSums& row) { return row.id; }, this);
    device_table_ = new DataTable(device_model_, QStringLiteral("statistics_devices"),
                                  tr("Statistics by device"), card);
    device_table_->set_empty_text(tr("No device has worked in this time."));
    device_table_->set_rows_shown(4);
    card->body()->addWidget(device_table_);
    return card;
  }

  QWidget* make_receipts() {
    auto* card = new Card(this);
    card->set_title(tr("Receipts"));
    auto* about = make_text(card);
    about->setText(
        tr("A coordinator signs what each piece of work was worth. Shoal keeps these receipts and "
           "can check every signature and the sum without asking anybody."));
    set_text_role(*about, TextRole::kQuiet);
    verify_ = new QPushButton(tr("&Verify my total"), card);
    verify_->setObjectName(QStringLiteral("verify"));
    verify_->setAutoDefault(false);
    verified_ = make_text(card);
    verified_->setObjectName(QStringLiteral("verified"));
    auto* row = new QHBoxLayout;
    row->addWidget(verify_);
    row->addWidget(verified_, 1);
    report_model_ = new TableModel<ReportRow>(
        report_columns(), [](const ReportRow& report) { return text_of(report.getCoordinator()); },
        this);
    report_table_ = new DataTable(report_model_, QStringLiteral("receipt_reports"),
                                  tr("Answers to the check of receipts"), card);
    report_table_->show_bar(false);
    report_table_->set_rows_shown(2);
    report_table_->hide();
    receipt_model_ = new TableModel<ReceiptRow>(
        receipt_columns(),
        [](const ReceiptRow& receipt) { return QString::number(receipt.stored.getRow()); }, this);
    receipt_table_ =
        new DataTable(receipt_model_, QStringLiteral("receipts"), tr("Receipts"), card);
    receipt_table_->set_empty_text(tr("No receipt yet: the first comes with the first work."));
    receipt_table_->set_rows_shown(8);
    receipt_count_ = make_text(card);
    receipt_count_->setObjectName(QStringLiteral("receipt_count"));
    set_text_role(*receipt_count_, TextRole::kSmall);
    receipt_count_->hide();
    receipt_table_->sort_by(0, Qt::DescendingOrder);
    card->body()->addWidget(about);
    card->body()->addLayout(row);
    card->body()->addWidget(report_table_);
    card->body()->addWidget(receipt_table_);
    card->body()->addWidget(receipt_count_);
    connect(verify_, &QPushButton::clicked, this, &StatisticsPage::verify);
    return card;
  }

  void set_range(Range range) {
    range_ = range;
    ranges_.button(static_cast<int>(range))->setChecked(true);
    rows_ = nullptr;
    if (snapshot_ != nullptr) fetch();
    show_figures();
  }

  QDateTime now() const { return QDateTime::fromMSecsSinceEpoch(clock().now_wall().count); }

  void fetch() {
    const QDateTime today = now().date().startOfDay();
    const int days = range_ == Range::kWeek ? 6 : range_ == Range::kMonth ? 29 : 0;
    const int64_t from = range_ == Range::kEver ? 0 : today.addDays(-days).toMSecsSinceEpoch();
    // As fine as the steps of the charts, and no finer.
    const int64_t step = range_ == Range::kToday ? kHourMs : kDayMs;
    link().call<&rpc::Agent::Client::statisticsRequest>(
        this,
        [&](auto params) {
          params.setFromMs(from);
          params.setToMs(now().toMSecsSinceEpoch());
          params.setStepMs(step);
        },
        [this, asked = range_](StatisticsAnswer answer) {
          if (asked != range_) return;  // The owner has chosen another time since.
          set_problem(*problem_, answer.ok() ? QString() : sentence(answer.error()));
          if (!answer.ok()) return;
          rows_ = answer.value();
          show_rows();
        });
  }

  void list_devices() {
    names_ = DeviceNames(snapshot_->reader());
    for (const auto device : snapshot_->reader().getDevices()) {
      const QString id = text_of(device.getReport().getInfo().getId());
      if (devices_->findData(id) < 0)
        devices_->addItem(text_of(device.getReport().getInfo().getName()), id);
    }
  }

  QString device() const { return devices_->currentData().toString(); }

  void show_rows() {
    if (rows_ == nullptr) return show_figures();
    const auto rows = rows_->reader().getRows();
    QDateTime first = now();
    if (range_ == Range::kWeek) first = first.addDays(-6);
    if (range_ == Range::kMonth) first = first.addDays(-29);
    if (range_ == Range::kEver) {
      for (const auto row : rows)
        first =
            std::min(first, QDateTime::fromMSecsSinceEpoch(std::max<int64_t>(row.getStartMs(), 0)));
    }
    const Steps steps(range_, first, now());
    std::vector<Sums> by_step(static_cast<size_t>(steps.count()));
    std::map<QString, DeviceSums> by_device;
    std::map<QString, std::vector<double>> heat;
    for (const auto row : rows) {
      const QString id = text_of(row.getDeviceId());
      if (!id.isEmpty()) {
        DeviceSums& sums = by_device[id];
        sums.id = id;
        sums.name = names_.name(row.getDeviceId());
        sums.currency = client_settings().currency();
        sums.sums.add(row.getTotals());
        sums.sums.add_temperature(row.getTemperatureMax());
      }
      const int step = steps.step_of(row.getStartMs());
      if (step < 0 || (!device().isEmpty() && device() != id)) continue;
      by_step[static_cast<size_t>(step)].add(row.getTotals());
      if (std::isnan(row.getTemperatureMax())) continue;
      auto& line = heat[id];
      if (line.empty()) line.assign(static_cast<size_t>(steps.count()), kUnknown);
      double& most = line[static_cast<size_t>(step)];
      most = std::isnan(most) ? row.getTemperatureMax()
                              : std::max<double>(most, row.getTemperatureMax());
    }
    sums_ = {};
    for (const auto& [id, sums] : by_device) {
      if (device().isEmpty() || device() == id) sums_.add_temperature(sums.sums.temperature_max);
    }
    for (const auto row : rows) {
      if (device().isEmpty() || device() == text_of(row.getDeviceId())) sums_.add(row.getTotals());
    }
    show_charts(steps, by_step, heat);
    std::vector<DeviceSums> table;
    for (auto& [id, sums] : by_device) table.push_back(std::move(sums));
    device_model_->set_rows(nullptr, std::move(table));
    show_figures();
  }

  void show_charts(const Steps& steps, const std::vector<Sums>& by_step,
                   const std::map<QString, std::vector<double>>& heat) {
    ChartData plain;
    plain.step_title = steps.title();
    for (int step = 0; step < steps.count(); ++step) {
      plain.steps.push_back(steps.name(step));
      plain.axis_labels.push_back(steps.label(step));
    }
    const auto series = [&by_step](const QString& name, auto value) {
      ChartSeries out{name, {}};
      for (const Sums& sums : by_step) out.values.push_back(value(sums));
      return out;
    };
    ChartData data = plain;
    data.series = {series(tr("Confirmed"), [](const Sums& sums) { return sums.confirmed; }),
                   series(tr("Pending"), [](const Sums& sums) { return sums.pending; }),
                   series(tr("Rejected"), [](const Sums& sums) { return sums.rejected; })};
    credit_chart_->set_data(data, {}, [](double value) { return format_credit(value); });
    data.series = {series(tr("Tokens"), [](const Sums& sums) { return sums.rows; })};
    tokens_chart_->set_data(data, {}, [](double value) { return format_count(value); });
    data.series = {series(tr("Worked"), [](const Sums& sums) { return sums.worked_ms / kHourMs; }),
                   series(tr("Ready, without work"), [](const Sums& sums) {
                     return std::max(0.0, sums.allowed_ms - sums.worked_ms) / kHourMs;
                   })};
    hours_chart_->set_data(data, tr("h"), [](double value) {
      return format_duration(Millis{static_cast<int64_t>(value * kHourMs)});
    });
    data.series = {series(tr("Energy"), [](const Sums& sums) { return sums.kilowatt_hours; })};
    energy_chart_->set_data(data, tr("kWh"), [](double value) { return format_energy(value); });
    data.series = {series(tr("Cost"), [](const Sums& sums) { return sums.cost; })};
    const QString currency = client_settings().currency();
    cost_chart_->set_data(data, currency,
                          [currency](double value) { return format_money(value, currency); });
    data.series.clear();
    for (const auto& [id, values] : heat)
      data.series.push_back({names_.name(id.toUtf8().constData()), values});
    heat_chart_->set_data(data, tr("°C"), [](double value) { return format_temperature(value); });
  }

  // One number everywhere: where the client itself has the sum of this time, that is shown.
  Sums shown_sums() const {
    Sums shown = sums_;
    if (snapshot_ == nullptr || (range_ != Range::kToday && range_ != Range::kEver)) return shown;
    const double hottest = sums_.temperature_max;
    const auto take = [&shown, hottest](rpc::Totals::Reader totals) {
      shown = {};
      shown.add(totals);
      shown.temperature_max = hottest;
    };
    if (device().isEmpty()) {
      take(range_ == Range::kToday ? snapshot_->reader().getToday()
                                   : snapshot_->reader().getEver());
    } else if (range_ == Range::kToday) {
      for (const auto row : snapshot_->reader().getDevices()) {
        if (text_of(row.getReport().getInfo().getId()) == device()) take(row.getToday());
      }
    }
    return shown;
  }

  void show_figures() {
    const Sums sums = shown_sums();
    credit_->set(tr("Credit"), format_credit(sums.confirmed),
                 tr("%1 pending, %2 rejected")
                     .arg(format_credit(sums.pending), format_credit(sums.rejected)));
    tokens_->set(tr("Tokens"), format_count(sums.rows), tr("through your stages"));
    worked_->set(tr("Worked"), format_duration(Millis{static_cast<int64_t>(sums.worked_ms)}),
                 tr("of %1 that your rules allowed")
                     .arg(format_duration(Millis{static_cast<int64_t>(sums.allowed_ms)})));
    duty_->set(tr("Duty"), format_percent(sums.duty()), tr("worked, of what was allowed"));
    energy_->set(
        tr("Energy"), format_energy(sums.kilowatt_hours),
        sums.kilowatt_hours > 0
            ? tr("%1 credit for a kWh").arg(format_credit(sums.confirmed / sums.kilowatt_hours))
            : QString());
    cost_->set(tr("Cost"), format_money(sums.cost, client_settings().currency()),
               tr("at your price"));
    network_->set(
        tr("Network"), format_bytes(sums.bytes_down + sums.bytes_up),
        tr("%1 down, %2 up").arg(format_bytes(sums.bytes_down), format_bytes(sums.bytes_up)));
    hottest_->set(tr("Hottest"), format_temperature(sums.temperature_max));
  }

  void verify() {
    verify_->setEnabled(false);
    verified_->setText(tr("Checking every signature…"));
    link().call<&rpc::Agent::Client::verifyReceiptsRequest>(
        this, [](auto) {},
        [this](AnswerOf<&rpc::Agent::Client::verifyReceiptsRequest> answer) {
          verify_->setEnabled(true);
          if (!answer.ok()) {
            verified_->setText(sentence(answer.error()));
            return;
          }
          std::vector<ReportRow> reports;
          bool all = true;
          for (const auto report : answer.value()->reader().getReport()) {
            reports.push_back(report);
            all = all && report.getAgrees();
          }
          verified_->setText(reports.empty() ? tr("There is no receipt to check yet.")
                             : all           ? tr("✓ Your total is right.")
                                             : tr("✗ Not every total is right: see below."));
          report_table_->setVisible(!reports.empty());
          report_table_->set_rows_shown(std::clamp(static_cast<int>(reports.size()), 1, 6));
          report_model_->set_rows(answer.value(), std::move(reports));
        },
        Millis{120'000});
  }

  void fetch_receipts() {
    if (fetching_receipts_) return;
    fetching_receipts_ = true;
    fetch_receipts_after(last_receipt_);
  }

  // What was read stays; only what is new is asked for, in pieces.
  void fetch_receipts_after(uint64_t row) {
    link().call<&rpc::Agent::Client::receiptsRequest>(
        this,
        [row](auto params) {
          params.setAfterRow(row);
          params.setCountMax(kReceiptsPerCall);
        },
        [this](ReceiptsAnswer answer) {
          if (!answer.ok() || answer.value()->reader().getReceipts().size() == 0) {
            fetching_receipts_ = false;
            return;
          }
          std::vector<ReceiptRow> rows;
          for (const auto receipt : answer.value()->reader().getReceipts())
            rows.push_back({receipt, names_.name(receipt.getReceipt().getDeviceId())});
          const uint64_t last = rows.back().stored.getRow();
          if (last <= last_receipt_) {  // No client of ours answers so.
            fetching_receipts_ = false;
            return;
          }
          last_receipt_ = last;
          receipt_model_->append_rows(answer.value(), std::move(rows), kReceiptsShownMax);
          show_receipt_count();
          fetch_receipts_after(last_receipt_);
        });
  }

  // The newest are in the table; the check is of all.
  void show_receipt_count() {
    uint64_t stored = 0;
    if (snapshot_ == nullptr) return;
    for (const auto connection : snapshot_->reader().getConnections())
      stored += connection.getReceiptsStored();
    const size_t shown = receipt_model_->rows().size();
    receipt_count_->setText(tr("The newest %1 receipts. All of them are verified, older ones too.")
                                .arg(format_count(static_cast<double>(shown))));
    receipt_count_->setVisible(receipt_model_->dropped() > 0 || stored > shown);
  }

  Range range_ = Range::kWeek;
  SnapshotPtr snapshot_;
  Rows rows_;
  Sums sums_;
  DeviceNames names_;
  uint64_t last_receipt_ = 0;
  bool fetching_receipts_ = false;
  QTimer refresh_;
  QButtonGroup ranges_;
  QComboBox* devices_;
  QLabel* problem_;
  Figure *credit_, *tokens_, *worked_, *duty_, *energy_, *cost_, *network_, *hottest_;
  Chart *credit_chart_, *tokens_chart_, *hours_chart_, *energy_chart_, *cost_chart_, *heat_chart_;
  TableModel<DeviceSums>* device_model_;
  DataTable* device_table_;
  QPushButton* verify_;
  QLabel *verified_, *receipt_count_;
  TableModel<ReportRow>* report_model_;
  DataTable* report_table_;
  TableModel<ReceiptRow>* receipt_model_;
  DataTable* receipt_table_;
};

}  // namespace

Page* make_statistics_page(const PageContext& context, QWidget* parent) {
  return new StatisticsPage(context, parent);
}

}  // namespace shoal::ui

#include "statistics_page.moc"
