// Every device of this computer: whether it is lent, what it does and why, and what it can do.

#include <QCheckBox>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QSignalBlocker>
#include <QTimer>
#include <QVBoxLayout>
#include <cmath>
#include <map>

#include "ui/agent_link.h"
#include "ui/contribute.h"
#include "ui/format.h"
#include "ui/icons.h"
#include "ui/messages.h"
#include "ui/pages/content_page.h"
#include "ui/tables.h"
#include "ui/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/data_table.h"

namespace shoal::ui {
namespace {

// A measurement may have to wait until the device has no stage, then takes up to a minute.
constexpr Millis kBenchmarkMax{1'800'000};
constexpr int kBenchmarkShownMs = 60'000;
constexpr int kTickMs = 500;

// Names and figures in two or more columns, as a list that a screen reader can read through.
class Facts {
 public:
  Facts(QWidget* parent, int columns) : parent_(parent), columns_(columns) {
    grid_ = new QGridLayout;
    grid_->setHorizontalSpacing(kSpaceLarge);
    grid_->setVerticalSpacing(kSpaceSmall);
    for (int column = 0; column < columns; ++column) grid_->setColumnStretch(2 * column + 1, 1);
  }

  QGridLayout* layout() { return grid_; }

  void set(const QString& name, const QString& text, const QString& tip = {}) {
    auto found = labels_.find(name);
    if (found == labels_.end()) {
      auto* title = new QLabel(name, parent_);
      set_text_role(*title, TextRole::kQuiet);
      auto* value = make_text(parent_);
      value->setWordWrap(true);
      const int place = static_cast<int>(labels_.size());
      grid_->addWidget(title, place / columns_, place % columns_ * 2, Qt::AlignTop);
      grid_->addWidget(value, place / columns_, place % columns_ * 2 + 1, Qt::AlignTop);
      found = labels_.emplace(name, value).first;
    }
    if (found->second->text() != text) found->second->setText(text);
    found->second->setToolTip(tip);
    found->second->setAccessibleName(QStringLiteral("%1: %2").arg(name, text));
  }

 private:
  QWidget* parent_;
  int columns_;
  QGridLayout* grid_;
  std::map<QString, QLabel*> labels_;
};

class DevicesPage final : public ContentPage {
  Q_OBJECT

 public:
  DevicesPage(const PageContext& context, QWidget* parent) : ContentPage(context, parent) {
    Scroller* const scroller = make_scroller();
    scroller->body()->addWidget(make_table());
    scroller->body()->addWidget(make_detail());
    scroller->body()->addStretch();
    tick_.setInterval(kTickMs);
    connect(&tick_, &QTimer::timeout, this, &DevicesPage::show_progress);
    connect(&empty(), &EmptyState::action_clicked, this,
            [this] { Q_EMIT page_wanted(QStringLiteral("log")); });
  }

  void show_snapshot(const SnapshotPtr& snapshot) override {
    snapshot_ = snapshot;
    const auto devices = snapshot->reader().getDevices();
    if (devices.size() == 0) {
      empty().set(QStringLiteral("devices"), tr("No device is known yet"),
                  tr("Shoal looks for GPUs and the CPU while it starts, and again every minute. If "
                     "none appears, the log says why."),
                  tr("Open the log"));
      return show_empty();
    }
    show_content();
    std::vector<DeviceRow> rows;
    for (const auto device : devices) rows.push_back(device);
    model_->set_rows(snapshot, std::move(rows));
    if (table_->selected_row() < 0)
      table_->select_identity(text_of(devices[0].getReport().getInfo().getId()));
    show_detail_of_selected();
  }

  void show_disconnected() override {
    snapshot_ = nullptr;
    measuring_.clear();
    ContentPage::show_disconnected();
  }

  void show_detail(const QString& device_id) override { table_->select_identity(device_id); }

 private:
  QWidget* make_table() {
    auto* card = new Card(this);
    card->set_title(tr("Devices of this computer"));
    model_ = new TableModel<DeviceRow>(
        device_columns(),
        [](const DeviceRow& row) { return text_of(row.getReport().getInfo().getId()); }, this);
    table_ = new DataTable(model_, QStringLiteral("devices"), tr("Devices"), card);
    table_->set_rows_shown(4);
    table_->view()->setSelectionMode(QAbstractItemView::SingleSelection);
    card->body()->addWidget(table_);
    connect(table_, &DataTable::selection_changed, this, &DevicesPage::show_detail_of_selected);
    return card;
  }

  QWidget* make_detail() {
    card_ = new Card(this);
    lend_ = new QCheckBox(tr("&Lend this device"), card_);
    lend_->setObjectName(QStringLiteral("lend"));
    state_icon_ = new QLabel(card_);
    state_ = make_text(card_);
    remedy_ = make_text(card_);
    set_text_role(*remedy_, TextRole::kQuiet);
    problem_ = make_problem(card_);
    problem_->setObjectName(QStringLiteral("problem"));
    auto* state_row = new QHBoxLayout;
    state_row->addWidget(state_icon_, 0, Qt::AlignTop);
    auto* sentences = new QVBoxLayout;
    sentences->setSpacing(2);
    sentences->addWidget(state_);
    sentences->addWidget(remedy_);
    state_row->addLayout(sentences, 1);

    facts_ = std::make_unique<Facts>(card_, 2);
    auto* measured = new QLabel(tr("What it can do"), card_);
    set_text_role(*measured, TextRole::kHeading);
    bench_facts_ = std::make_unique<Facts>(card_, 2);
    exact_ = make_text(card_);
    exact_problem_ = make_problem(card_);
    measure_ = new QPushButton(tr("&Measure again"), card_);
    measure_->setObjectName(QStringLiteral("measure"));
    measure_->setAutoDefault(false);
    progress_ = new QProgressBar(card_);
    progress_->setRange(0, kBenchmarkShownMs);
    progress_->setAccessibleName(tr("Progress of the measurement"));
    progress_->setTextVisible(false);
    progress_->setMaximumWidth(200);
    progress_text_ = make_text(card_);
    set_text_role(*progress_text_, TextRole::kQuiet);
    auto* measure_row = new QHBoxLayout;
    measure_row->addWidget(measure_);
    measure_row->addWidget(progress_);
    measure_row->addWidget(progress_text_, 1);
    measure_row->addStretch();

    QVBoxLayout* const body = card_->body();
    body->addWidget(lend_);
    body->addLayout(state_row);
    body->addWidget(problem_);
    body->addSpacing(kSpaceSmall);
    body->addLayout(facts_->layout());
    body->addSpacing(kSpace);
    body->addWidget(measured);
    body->addLayout(bench_facts_->layout());
    body->addWidget(exact_);
    body->addWidget(exact_problem_);
    body->addLayout(measure_row);
    connect(lend_, &QCheckBox::toggled, this, &DevicesPage::set_lent);
    connect(measure_, &QPushButton::clicked, this, &DevicesPage::measure);
    return card_;
  }

  void show_detail_of_selected() {
    const int row = table_->selected_row();
    card_->setVisible(row >= 0 && snapshot_ != nullptr);
    if (!card_->isVisibleTo(this)) return;
    const DeviceRow& device = model_->rows()[static_cast<size_t>(row)];
    const auto report = device.getReport();
    const auto info = report.getInfo();
    const QString id = text_of(info.getId());
    if (id != shown_) set_problem(*problem_, {});
    shown_ = id;
    card_->set_title(text_of(info.getName()));
    lend_->setAccessibleName(tr("Lend %1").arg(text_of(info.getName())));
    if (!setting_lent_) {
      const QSignalBlocker quiet(lend_);
      lend_->setChecked(device.getLent());
    }
    const auto activity = device.getVerdict().getActivity();
    state_icon_->setPixmap(colored_icon(activity_icon(activity)).pixmap(kIconSize, kIconSize));
    state_->setText(device.getLent() ? sentence(device.getVerdict().getWhy())
                                     : tr("This device is not lent: it is left alone."));
    state_icon_->setVisible(device.getLent());
    state_icon_->setAccessibleName(activity_word(activity));
    state_icon_->setToolTip(activity_word(activity));
    const QString remedy = sentence(device.getVerdict().getRemedy());
    remedy_->setText(remedy);
    remedy_->setVisible(device.getLent() && !remedy.isEmpty());

    const double used = static_cast<double>(device.getMemoryUsedBytes());
    facts_->set(tr("Credit today"), format_credit(device.getToday().getCreditConfirmed()),
                tr("Confirmed by the coordinators"));
    facts_->set(tr("Tokens today"), format_count(static_cast<double>(device.getToday().getRows())));
    facts_->set(tr("Busy"), format_percent(device.getDuty()), tr("Part of the last minute"));
    facts_->set(tr("Stages"), format_count(device.getStages()));
    facts_->set(tr("Temperature"), format_temperature(device.getTemperatureC()));
    facts_->set(tr("Power"), std::isnan(device.getWatts()) ? format_watts(device.getWatts())
                             : device.getWattsMeasured()
                                 ? tr("%1, measured").arg(format_watts(device.getWatts()))
                                 : tr("%1, estimated").arg(format_watts(device.getWatts())));
    facts_->set(tr("Memory"), tr("%1, of which Shoal uses %2")
                                  .arg(format_bytes(static_cast<double>(info.getMemoryBytes())),
                                       format_bytes(used)));
    const QString pace = sentence(device.getPaceWhy());
    facts_->set(tr("Pace"), device.getPaceDuty() >= 1
                                ? tr("as fast as it can")
                                : tr("at most %1 of the time. %2")
                                      .arg(format_percent(device.getPaceDuty()), pace)
                                      .trimmed());
    facts_->set(tr("Driver"), text_of(info.getDriver()));
    facts_->set(tr("Kind"), info.getSoftware() ? tr("%1 on the CPU").arg(text_of(info.getPlane()))
                                               : text_of(info.getPlane()));
    facts_->set(tr("Worker"), device.getWorkerPid() == 0
                                  ? tr("not running")
                                  : tr("process %1").arg(device.getWorkerPid()));
    facts_->set(tr("Restarts"), format_count(device.getRestarts()),
                tr("How often its worker had to be started anew"));

    show_benchmark(report);
    show_progress();
  }

  void show_benchmark(rpc::DeviceReport::Reader report) {
    const auto bench = report.getBenchmark();
    const bool measured = bench.getMeasuredAtMs() > 0;
    const auto figure = [measured](const QString& text) {
      return measured ? text : QStringLiteral("–");
    };
    bench_facts_->set(tr("Tokens, one by one"), figure(format_rate(bench.getDecodeRowsPerSecond())),
                      tr("Through one block of fixed shape"));
    bench_facts_->set(tr("Tokens, many at once"),
                      figure(format_rate(bench.getPrefillRowsPerSecond())),
                      tr("Through one block of fixed shape"));
    bench_facts_->set(tr("Arithmetic"), figure(format_flops_per_second(bench.getFlopsPerSecond())));
    bench_facts_->set(tr("Reading weights"),
                      figure(format_bytes_per_second(bench.getWeightBytesPerSecond())));
    bench_facts_->set(tr("Copying"),
                      figure(format_bytes_per_second(bench.getCopyBytesPerSecond())));
    bench_facts_->set(
        tr("Measured"),
        measured ? format_ago(Millis{bench.getMeasuredAtMs()}, clock().now_wall()) : tr("not yet"));
    const auto test = report.getSelfTest();
    QString exact, problem;
    if (test.getSamples() == 0) {
      exact = tr("Not tested yet whether its results are exact.");
    } else if (test.getExact()) {
      exact = tr("✓ Exact: all %1 test results have the same bits as the reference.")
                  .arg(format_count(test.getSamples()));
    } else {
      problem = tr("✗ Not exact: %1 of %2 test results differ from the reference. First: %3")
                    .arg(format_count(test.getFailed()), format_count(test.getSamples()),
                         text_of(test.getFirstFailure()));
    }
    exact_->setText(exact);
    exact_->setVisible(!exact.isEmpty());
    if (problem.isEmpty() && report.getState() == rpc::DeviceReport::State::FAILED) {
      // Its code is said in the owner's language; its text is English.
      problem = sentence(report.getWhy());
      if (problem.isEmpty()) problem = problem_text(report.getReason());
    }
    set_problem(*exact_problem_, problem);
  }

  void set_lent(bool lent) {
    setting_lent_ = true;
    link().call<&rpc::Agent::Client::setDeviceLentRequest>(
        this,
        [&](auto params) {
          params.setDeviceId(shown_.toStdString());
          params.setLent(lent);
        },
        [this](AnswerOf<&rpc::Agent::Client::setDeviceLentRequest> answer) {
          setting_lent_ = false;
          set_problem(*problem_, answer.ok() ? QString() : sentence(answer.error()));
          if (!answer.ok()) show_detail_keeping_problem();
        });
  }

  // What the client says again, and what it refused.
  void show_detail_keeping_problem() {
    const QString problem = problem_->text();
    show_detail_of_selected();
    set_problem(*problem_, problem);
  }

  void measure() {
    const QString id = shown_;
    measuring_[id] = clock().now_monotonic();
    tick_.start();
    set_problem(*problem_, {});
    link().call<&rpc::Agent::Client::benchmarkRequest>(
        this, [&](auto params) { params.setDeviceId(id.toStdString()); },
        [this, id](AnswerOf<&rpc::Agent::Client::benchmarkRequest> answer) {
          measuring_.erase(id);
          if (!answer.ok() && id == shown_) set_problem(*problem_, sentence(answer.error()));
          show_progress();
        },
        kBenchmarkMax);
    show_progress();
  }

  void show_progress() {
    const auto found = measuring_.find(shown_);
    const bool running = found != measuring_.end();
    measure_->setEnabled(!running);
    progress_->setVisible(running);
    progress_text_->setVisible(running);
    if (measuring_.empty()) tick_.stop();
    if (!running) return;
    const Millis passed = clock().now_monotonic() - found->second;
    progress_->setValue(static_cast<int>(std::min<int64_t>(passed.count, kBenchmarkShownMs - 1)));
    progress_text_->setText(
        passed.count < kBenchmarkShownMs
            ? tr("Measuring for %1; it takes less than a minute.").arg(format_duration(passed))
            : tr("Waiting until the device has no stage; so far %1.").arg(format_duration(passed)));
  }

  SnapshotPtr snapshot_;
  QString shown_;                        // The id of the device whose details are shown.
  std::map<QString, Millis> measuring_;  // Since when, by device.
  bool setting_lent_ = false;
  QTimer tick_;
  TableModel<DeviceRow>* model_;
  DataTable* table_;
  Card* card_;
  QCheckBox* lend_;
  QLabel *state_icon_, *state_, *remedy_, *problem_, *exact_, *exact_problem_, *progress_text_;
  std::unique_ptr<Facts> facts_, bench_facts_;
  QPushButton* measure_;
  QProgressBar* progress_;
};

}  // namespace

Page* make_devices_page(const PageContext& context, QWidget* parent) {
  return new DevicesPage(context, parent);
}

}  // namespace shoal::ui

#include "devices_page.moc"
