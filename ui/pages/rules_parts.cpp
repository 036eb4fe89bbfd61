#include "ui/pages/rules_parts.h"

#include <QComboBox>
#include <QDateTimeEdit>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QSignalBlocker>
#include <QSlider>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <array>
#include <cmath>

#include "ui/agent_link.h"
#include "ui/contribute.h"
#include "ui/format.h"
#include "ui/messages.h"
#include "ui/theme.h"
#include "ui/widgets/data_table.h"
#include "ui/widgets/setting_editor.h"
#include "ui/widgets/setting_looks.h"
#include "ui/widgets/timeline.h"

namespace shoal::ui {
namespace {

constexpr int64_t kMinuteMs = 60'000;
constexpr int64_t kHourMs = 60 * kMinuteMs;
constexpr int64_t kDayMs = 24 * kHourMs;
constexpr int kWeekDays = 7;
constexpr Millis kTraceAge{60'000};
constexpr int kSliderRestMs = 250;

SpanKind span_kind(rpc::Activity activity) {
  const auto index = static_cast<int>(activity);
  return index <= static_cast<int>(SpanKind::kOffline) ? static_cast<SpanKind>(index)
                                                       : SpanKind::kUnknown;
}

// A limit's value as people say it.
QString value_text(const QString& key, const SettingValue& value) {
  const SettingLook* const look = find_setting_look(key);
  const auto translated = [](const char* text) {
    return QCoreApplication::translate("settings", text);
  };
  if (const bool* flag = std::get_if<bool>(&value)) return yes_no(*flag);
  double number = 0;
  if (const int64_t* integer = std::get_if<int64_t>(&value)) number = static_cast<double>(*integer);
  if (const double* real = std::get_if<double>(&value)) number = *real;
  if (key == QLatin1String("rules.idle_seconds"))
    return format_duration(Millis{static_cast<int64_t>(number * 1000)});
  if (number == 0 && look != nullptr && look->zero != nullptr) return translated(look->zero);
  const QString text = QLocale().toString(number, 'g', 6);
  return look != nullptr && look->unit != nullptr ? text + ' ' + translated(look->unit) : text;
}

}  // namespace

// --- Modes.

ModesCard::ModesCard(const PageContext& context, QWidget* parent)
    : Card(parent), context_(context) {
  set_title(tr("Modes"));
  auto* about = make_text(this);
  about->setText(
      tr("“Always” works whatever the rules say of you, of hours, load and battery; limits of "
         "temperature, memory and disk, and caps, hold all the same."));
  set_text_role(*about, TextRole::kQuiet);
  body()->addWidget(about);
  auto* grid = new QGridLayout;
  grid->setHorizontalSpacing(kSpace);
  grid->setVerticalSpacing(kSpaceSmall);
  grid->setColumnStretch(3, 1);
  for (const rpc::Resource resource :
       {rpc::Resource::GPU, rpc::Resource::CPU, rpc::Resource::NETWORK}) {
    Row row{resource, new QComboBox(this), new QComboBox(this), make_text(this)};
    const QString name = resource_word(resource);
    for (const rpc::Mode mode : {rpc::Mode::BY_RULES, rpc::Mode::ALWAYS, rpc::Mode::PAUSED})
      row.mode->addItem(mode_word(mode), static_cast<int>(mode));
    row.time->addItem(tr("until I change it"), qint64{0});
    row.time->addItem(tr("for %n minute(s)", nullptr, 15), qint64{15 * kMinuteMs});
    for (const int hours : {1, 3, 8, 24})
      row.time->addItem(tr("for %n hour(s)", nullptr, hours), qint64{hours * kHourMs});
    row.mode->setObjectName(QStringLiteral("mode_%1").arg(static_cast<int>(resource)));
    row.time->setObjectName(QStringLiteral("time_%1").arg(static_cast<int>(resource)));
    row.mode->setAccessibleName(tr("Mode of %1").arg(name));
    row.time->setAccessibleName(tr("For how long: %1").arg(name));
    set_text_role(*row.why, TextRole::kQuiet);
    auto* title = new QLabel(name, this);
    title->setBuddy(row.mode);
    const size_t at = rows_.size();
    const int line = static_cast<int>(at) * 2;
    grid->addWidget(title, line, 0);
    grid->addWidget(row.mode, line, 1);
    grid->addWidget(row.time, line, 2);
    grid->addWidget(row.why, line + 1, 1, 1, 3);
    grid->setRowMinimumHeight(line + 1, fontMetrics().height() + kSpace);
    connect(row.mode, &QComboBox::activated, this, [this, at] { choose(at); });
    connect(row.time, &QComboBox::activated, this, [this, at] {
      if (rows_[at].mode->currentData().toInt() != static_cast<int>(rpc::Mode::BY_RULES))
        choose(at);
    });
    rows_.push_back(row);
  }
  body()->addLayout(grid);
  problem_ = make_problem(this);
  body()->addWidget(problem_);
}

void ModesCard::show_snapshot(rpc::Snapshot::Reader snapshot) {
  const Millis now = context_.clock.now_wall();
  for (const auto state : snapshot.getResources()) {
    for (Row& row : rows_) {
      if (row.resource != state.getResource()) continue;
      if (!row.waiting && !row.mode->view()->isVisible())
        row.mode->setCurrentIndex(row.mode->findData(static_cast<int>(state.getMode())));
      const bool by_rules = state.getMode() == rpc::Mode::BY_RULES;
      if (!row.waiting && !row.time->view()->isVisible()) {
        // A time that runs is no choice of the list: it stands there in its own words.
        const bool ends = state.getModeEndsMs() != 0;
        row.time->setPlaceholderText(
            ends ? tr("until %1").arg(format_when(Millis{state.getModeEndsMs()}, now)) : QString());
        if (by_rules != row.by_rules || !by_rules) row.time->setCurrentIndex(ends ? -1 : 0);
        row.by_rules = by_rules;
      }
      const auto verdict = state.getVerdict();
      row.why->setText(
          (sentence(verdict.getWhy()) + ' ' + sentence(verdict.getRemedy())).trimmed());
    }
  }
}

void ModesCard::choose(size_t at) {
  Row& row = rows_[at];
  row.waiting = true;
  const auto mode = static_cast<rpc::Mode>(row.mode->currentData().toInt());
  const qint64 for_ms = mode == rpc::Mode::BY_RULES ? 0 : row.time->currentData().toLongLong();
  set_mode(context_.link, this, row.resource, mode, Millis{for_ms}, [this, at](const Error* error) {
    rows_[at].waiting = false;
    set_problem(*problem_, error == nullptr ? QString() : sentence(*error));
    if (context_.link.snapshot() != nullptr) show_snapshot(context_.link.snapshot()->reader());
  });
}

// --- Leave by.

LeaveByCard::LeaveByCard(const PageContext& context, QWidget* parent)
    : Card(parent), context_(context) {
  set_title(tr("I need it back by"));
  now_ = make_text(this);
  set_text_role(*now_, TextRole::kQuiet);
  edit_ = new QDateTimeEdit(this);
  edit_->setObjectName(QStringLiteral("leave_by"));
  edit_->setCalendarPopup(true);
  edit_->setAccessibleName(tr("When you need the computer back"));
  const auto now = QDateTime::fromMSecsSinceEpoch(context_.clock.now_wall().count);
  edit_->setDateTime(now.addSecs(3 * 3600 - now.time().minute() * 60 - now.time().second()));
  edit_->setMinimumWidth(edit_->sizeHint().width() + kSpaceLarge);  // Its arrow takes of the text.
  auto* set = new QPushButton(tr("&Set"), this);
  set->setObjectName(QStringLiteral("leave_by_set"));
  set->setAutoDefault(false);
  set->setAccessibleName(tr("Set when you need the computer back"));
  none_ = new QPushButton(tr("No such time"), this);
  none_->setObjectName(QStringLiteral("leave_by_none"));
  none_->setAutoDefault(false);
  problem_ = make_problem(this);
  auto* row = new QHBoxLayout;
  row->addWidget(edit_);
  row->addWidget(set);
  row->addWidget(none_);
  row->addStretch();
  body()->addWidget(now_);
  body()->addLayout(row);
  body()->addWidget(problem_);
  connect(set, &QPushButton::clicked, this,
          [this] { set_time(edit_->dateTime().toMSecsSinceEpoch()); });
  connect(none_, &QPushButton::clicked, this, [this] { set_time(0); });
}

void LeaveByCard::show_snapshot(rpc::Snapshot::Reader snapshot) {
  const int64_t at = snapshot.getLeaveByMs();
  now_->setText(at == 0 ? tr("Only work that ends before this time is taken, and then none.")
                        : tr("Only work that ends before %1 is taken, and then none.")
                              .arg(format_when(Millis{at}, context_.clock.now_wall())));
  none_->setEnabled(at != 0);
}

void LeaveByCard::set_time(int64_t at_ms) {
  if (at_ms != 0 && at_ms <= context_.clock.now_wall().count)
    return set_problem(*problem_, tr("That time is over. Choose a later one."));
  context_.link.call<&rpc::Agent::Client::setLeaveByRequest>(
      this, [&](auto params) { params.setAtMs(at_ms); },
      [this](AnswerOf<&rpc::Agent::Client::setLeaveByRequest> answer) {
        set_problem(*problem_, answer.ok() ? QString() : sentence(answer.error()));
      });
}

// --- Sensors.

SensorsCard::SensorsCard(const PageContext& context, QWidget* parent)
    : Card(parent), context_(context) {
  set_title(tr("What Shoal knows of this computer"));
  model_ = new TableModel<SensorRow>(
      sensor_columns(), [](const SensorRow& row) { return text_of(row.getName()); }, this);
  table_ = new DataTable(model_, QStringLiteral("sensors"), tr("Sensors"), this);
  table_->set_empty_text(tr("No sensor has answered yet."));
  table_->set_rows_shown(6);
  table_->view()->setSelectionMode(QAbstractItemView::SingleSelection);
  test_ = new QPushButton(tr("&Ask the selected one again"), this);
  test_->setObjectName(QStringLiteral("test_sensor"));
  test_->setAutoDefault(false);
  test_->setEnabled(false);
  answer_ = make_text(this);
  problem_ = make_problem(this);
  auto* row = new QHBoxLayout;
  row->addWidget(test_);
  row->addWidget(answer_, 1);
  body()->addWidget(table_);
  body()->addLayout(row);
  body()->addWidget(problem_);
  connect(table_, &DataTable::selection_changed, this,
          [this] { test_->setEnabled(table_->selected_row() >= 0); });
  connect(test_, &QPushButton::clicked, this, &SensorsCard::test);
}

void SensorsCard::show_snapshot(const SnapshotPtr& snapshot) {
  std::vector<SensorRow> rows;
  for (const auto sensor : snapshot->reader().getSensors()) rows.push_back(sensor);
  model_->set_rows(snapshot, std::move(rows));
}

void SensorsCard::test() {
  const QString name = table_->selected_identity();
  test_->setEnabled(false);
  context_.link.call<&rpc::Agent::Client::testSensorRequest>(
      this, [&](auto params) { params.setName(name.toStdString()); },
      [this](AnswerOf<&rpc::Agent::Client::testSensorRequest> answer) {
        test_->setEnabled(table_->selected_row() >= 0);
        set_problem(*problem_, answer.ok() ? QString() : sentence(answer.error()));
        if (!answer.ok()) return answer_->clear();
        const auto sensor = answer.value()->reader().getSensor();
        answer_->setText(tr("%1: %2").arg(
            sensor_word(text_of(sensor.getName())),
            sensor.getKnown() ? sentence(sensor.getValue()) : problem_text(sensor.getProblem())));
      });
}

// --- Idle.

IdleCard::IdleCard(const PageContext& context, QWidget* parent) : Card(parent), context_(context) {
  set_title(tr("Who tells that you are away"));
  state_ = make_text(this);
  set_text_role(*state_, TextRole::kQuiet);
  model_ = new TableModel<BackendRow>(
      backend_columns(), [](const BackendRow& row) { return text_of(row.getName()); }, this);
  table_ = new DataTable(model_, QStringLiteral("idle_sources"), tr("Sources of idle time"), this);
  table_->set_empty_text(tr("No source has been tried yet. Press Test."));
  table_->set_rows_shown(5);
  table_->show_bar(false);
  test_ = new QPushButton(tr("&Test"), this);
  test_->setObjectName(QStringLiteral("test_idle"));
  test_->setAutoDefault(false);
  test_->setAccessibleName(tr("Test the sources of idle time"));
  answer_ = make_text(this);
  problem_ = make_problem(this);
  auto* row = new QHBoxLayout;
  row->addWidget(test_);
  row->addWidget(answer_, 1);
  body()->addWidget(state_);
  body()->addWidget(table_);
  body()->addLayout(row);
  body()->addWidget(problem_);
  connect(test_, &QPushButton::clicked, this, [this] {
    test_->setEnabled(false);
    context_.link.call<&rpc::Agent::Client::testSensorRequest>(
        this, [](auto params) { params.setName("idle"); },
        [this](AnswerOf<&rpc::Agent::Client::testSensorRequest> answer) {
          test_->setEnabled(true);
          set_problem(*problem_, answer.ok() ? QString() : sentence(answer.error()));
          if (!answer.ok()) return answer_->clear();
          const auto sensor = answer.value()->reader().getSensor();
          show_sensor(answer.value(), sensor);
          answer_->setText(
              sensor.getKnown()
                  ? tr("%1 Leave keyboard and mouse alone for some seconds and test again: the "
                       "time has to grow.")
                        .arg(sentence(sensor.getValue()))
                  : tr("Nobody tells. Until somebody does, Shoal takes the computer as in use."));
        });
  });
}

void IdleCard::show_snapshot(const SnapshotPtr& snapshot) {
  for (const auto sensor : snapshot->reader().getSensors()) {
    if (sensor.getName() == "idle") show_sensor(snapshot, sensor);
  }
  if (!snapshot->reader().getIdleSupported())
    state_->setText(
        tr("Nothing on this computer tells whether you are here, so it counts as in "
           "use. If it is a server, choose the mode “Always”."));
}

void IdleCard::show_sensor(std::shared_ptr<const void> keeps, rpc::Sensor::Reader sensor) {
  const QString backend = text_of(sensor.getBackend());
  state_->setText(sensor.getKnown()
                      ? tr("%1 (told by %2)").arg(sentence(sensor.getValue()), backend)
                      : tr("Not known: %1").arg(problem_text(sensor.getProblem())));
  std::vector<BackendRow> rows;
  for (const auto row : sensor.getBackends()) rows.push_back(row);
  model_->set_rows(std::move(keeps), std::move(rows));
}

// --- Yield.

YieldCard::YieldCard(QWidget* parent) : Card(parent) {
  set_title(tr("How fast you got your devices back"));
  summary_ = make_text(this);
  auto* grid = new QGridLayout;
  grid->setHorizontalSpacing(kSpaceHuge);
  const QString heads[] = {tr("half of the times within"), tr("99 of 100 times within"),
                           tr("your bound")};
  const QString names[] = {tr("Nothing computed"), tr("Memory was free")};
  for (int column = 0; column < 3; ++column) {
    auto* head = new QLabel(heads[column], this);
    set_text_role(*head, TextRole::kSmall);
    grid->addWidget(head, 0, column + 1);
  }
  for (int row = 0; row < 2; ++row) {
    grid->addWidget(new QLabel(names[row], this), row + 1, 0);
    for (int column = 0; column < 3; ++column) {
      figures_[row][column] = new QLabel(this);
      grid->addWidget(figures_[row][column], row + 1, column + 1);
    }
  }
  grid->setColumnStretch(4, 1);
  body()->addWidget(summary_);
  body()->addLayout(grid);
}

void YieldCard::show_snapshot(rpc::Snapshot::Reader snapshot) {
  const auto yield = snapshot.getYield();
  const bool any = yield.getCount() > 0;
  summary_->setText(
      !any ? tr("It has not been measured yet: that happens whenever you come back.")
      : yield.getLate() == 0
          ? tr("Measured %n time(s), never late.", nullptr, static_cast<int>(yield.getCount()))
          : tr("Measured %n time(s), late in %1.", nullptr, static_cast<int>(yield.getCount()))
                .arg(yield.getLate()));
  const uint32_t figures[2][3] = {
      {yield.getStopMsP50(), yield.getStopMsP99(), yield.getStopMsBound()},
      {yield.getFreeMsP50(), yield.getFreeMsP99(), yield.getFreeMsBound()}};
  for (int row = 0; row < 2; ++row) {
    for (int column = 0; column < 3; ++column)
      figures_[row][column]->setText(any || column == 2
                                         ? format_short_time(Millis{figures[row][column]})
                                         : QStringLiteral("–"));
  }
}

// --- Trace.

TraceCard::TraceCard(const PageContext& context, QWidget* parent)
    : Card(parent), context_(context) {
  set_title(tr("The last week"));
  timeline_ = new Timeline(this);
  timeline_->setObjectName(QStringLiteral("timeline"));
  timeline_->setAccessibleName(tr("Timeline of the last week; arrow keys walk through it"));
  auto* legend = new TimelineLegend(this);
  legend->set_words({activity_word(rpc::Activity::WORKING), activity_word(rpc::Activity::WAITING),
                     activity_word(rpc::Activity::PAUSED), activity_word(rpc::Activity::ATTENTION),
                     activity_word(rpc::Activity::OFFLINE)});
  detail_ = make_text(this);
  detail_->setMinimumHeight(fontMetrics().height() * 2);
  detail_->setAlignment(Qt::AlignTop);
  problem_ = make_problem(this);
  model_ = new TableModel<TraceRow>(
      trace_columns(),
      [](const TraceRow& row) {
        return QStringLiteral("%1 %2")
            .arg(static_cast<int>(row.span.getResource()))
            .arg(row.span.getVerdict().getSinceMs());
      },
      this);
  table_ = new DataTable(model_, QStringLiteral("trace"), tr("What happened, and why"), this);
  table_->set_empty_text(tr("Nothing is recorded yet."));
  table_->set_rows_shown(9);
  table_->sort_by(0, Qt::DescendingOrder);
  table_->hide();
  toggle_ = new QToolButton(this);
  toggle_->setText(tr("Table"));
  toggle_->setToolTip(tr("Show the last week as a table"));
  toggle_->setAccessibleName(tr("The last week as a table"));
  toggle_->setObjectName(QStringLiteral("trace_table"));
  toggle_->setCheckable(true);
  toggle_->setAutoRaise(true);
  toggle_->setFocusPolicy(Qt::TabFocus);
  drawn_ = new QWidget(this);
  auto* drawn = new QVBoxLayout(drawn_);
  drawn->setContentsMargins(0, 0, 0, 0);
  drawn->addWidget(timeline_);
  drawn->addWidget(detail_);
  auto* head = new QHBoxLayout;
  head->addWidget(legend, 1);
  head->addWidget(toggle_);
  body()->addLayout(head);
  body()->addWidget(problem_);
  body()->addWidget(drawn_);
  body()->addWidget(table_);
  detail_->setText(tr("Point at a span, or walk with the arrow keys, to see what it was."));
  connect(timeline_, &Timeline::current_changed, detail_, &QLabel::setText);
  connect(toggle_, &QToolButton::toggled, this, [this](bool on) {
    table_->setVisible(on);
    drawn_->setVisible(!on);
  });
}

void TraceCard::fetch() {
  const Millis now = context_.clock.now_wall();
  if (now - fetched_at_ < kTraceAge && now >= fetched_at_) return;
  fetched_at_ = now;
  context_.link.call<&rpc::Agent::Client::traceRequest>(
      this,
      [now](auto params) {
        params.setFromMs(now.count - kWeekDays * kDayMs);
        params.setToMs(now.count);
      },
      [this](AnswerOf<&rpc::Agent::Client::traceRequest> answer) {
        set_problem(*problem_, answer.ok() ? QString() : sentence(answer.error()));
        if (answer.ok()) show_spans(answer.value());
      });
}

void TraceCard::show_spans(std::shared_ptr<const Kept<rpc::Agent::TraceResults>> answer) {
  const int64_t now = context_.clock.now_wall().count;
  const int64_t begin = now - kWeekDays * kDayMs;
  std::vector<TimelineLane> lanes;
  for (const rpc::Resource resource :
       {rpc::Resource::GPU, rpc::Resource::CPU, rpc::Resource::NETWORK})
    lanes.push_back({resource_word(resource), {}});
  std::vector<TraceRow> rows;
  for (const auto span : answer->reader().getSpans()) {
    const auto verdict = span.getVerdict();
    const int64_t end = span.getEndMs() == 0 ? now : span.getEndMs();
    rows.push_back({span, Millis{end}});
    const auto lane = static_cast<size_t>(span.getResource());
    if (lane >= lanes.size() || end <= begin || end <= verdict.getSinceMs()) continue;
    const int64_t since = std::max(verdict.getSinceMs(), begin);
    QString text = tr("%1, %2 to %3 (%4): %5. %6")
                       .arg(lanes[lane].name, format_date_time(Millis{since}),
                            span.getEndMs() == 0 ? tr("now") : format_time(Millis{end}),
                            format_duration(Millis{end - since}),
                            activity_word(verdict.getActivity()), sentence(verdict.getWhy()));
    const QString remedy = sentence(verdict.getRemedy());
    if (!remedy.isEmpty()) text += ' ' + remedy;
    // Spans come in order; one that overlaps, as after the clock was put back, begins later.
    auto& spans = lanes[lane].spans;
    const int64_t first = spans.empty() ? since : std::max(since, spans.back().end_ms);
    if (first < end) spans.push_back({first, end, span_kind(verdict.getActivity()), text});
  }
  timeline_->set_lanes(begin, now, std::move(lanes));
  model_->set_rows(std::move(answer), std::move(rows));
}

// --- What if.

// Two bars over the same time: as it is, and as it would be.
class WhatIfCard::Bar final : public QWidget {
 public:
  explicit Bar(QWidget* parent) : QWidget(parent) {
    setFixedHeight(fontMetrics().height() + 8);
    setMinimumWidth(160);
  }

  void set(double now, double then) {
    now_ = std::clamp(now, 0.0, 1.0);
    then_ = std::clamp(then, 0.0, 1.0);
    update();
  }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    const Colors& colors = colors_of(palette());
    const int half = height() / 2;
    painter.fillRect(rect(), colors.grid);
    painter.fillRect(QRectF(0, 0, width() * now_, half - 1), colors.text_quiet);
    painter.fillRect(QRectF(0, half + 1, width() * then_, height() - half - 1), colors.accent);
  }

 private:
  double now_ = 0, then_ = 0;
};

WhatIfCard::WhatIfCard(const PageContext& context, QWidget* parent)
    : Card(parent), context_(context) {
  set_title(tr("What if?"));
  auto* about = make_text(this);
  about->setText(
      tr("Move a limit and see how long last week's work could have been. Nothing changes until "
         "you apply it."));
  set_text_role(*about, TextRole::kQuiet);
  limit_box_ = new QComboBox(this);
  limit_box_->setObjectName(QStringLiteral("what_if_limit"));
  limit_box_->setAccessibleName(tr("Limit to move"));
  slider_ = new QSlider(Qt::Horizontal, this);
  slider_->setObjectName(QStringLiteral("what_if_slider"));
  slider_->setAccessibleName(limit_box_->accessibleName());  // Until there is a limit to name.
  slider_->setTickPosition(QSlider::TicksBelow);
  slider_->setPageStep(2);
  value_ = new QLabel(this);
  value_->setMinimumWidth(fontMetrics().horizontalAdvance(QStringLiteral("20 min (as now)  ")));
  apply_ = new QPushButton(tr("&Apply"), this);
  apply_->setObjectName(QStringLiteral("what_if_apply"));
  apply_->setAutoDefault(false);
  known_ = make_text(this);
  set_text_role(*known_, TextRole::kSmall);
  problem_ = make_problem(this);
  problem_->setObjectName(QStringLiteral("what_if_problem"));
  auto* limit_row = new QHBoxLayout;
  limit_row->addWidget(limit_box_);
  limit_row->addStretch();
  auto* row = new QHBoxLayout;
  row->addWidget(slider_, 1);
  row->addWidget(value_);
  row->addWidget(apply_);
  auto* grid = new QGridLayout;
  grid->setHorizontalSpacing(kSpaceLarge);
  grid->setColumnStretch(1, 1);
  for (const rpc::Resource resource :
       {rpc::Resource::GPU, rpc::Resource::CPU, rpc::Resource::NETWORK}) {
    const int line = static_cast<int>(bars_.size());
    grid->addWidget(new QLabel(resource_word(resource), this), line, 0);
    bars_.push_back(new Bar(this));
    grid->addWidget(bars_.back(), line, 1);
    bar_texts_.push_back(new QLabel(this));
    bar_texts_.back()->setObjectName(QStringLiteral("what_if_%1").arg(line));
    bar_texts_.back()->setTextInteractionFlags(Qt::TextSelectableByMouse);
    bar_texts_.back()->setMinimumWidth(
        fontMetrics().horizontalAdvance(QStringLiteral("100.5 h → 100.5 h (+10.5 h)  ")));
    grid->addWidget(bar_texts_.back(), line, 2);
  }
  body()->addWidget(about);
  body()->addLayout(limit_row);
  body()->addLayout(row);
  body()->addWidget(problem_);
  body()->addLayout(grid);
  body()->addWidget(known_);
  rest_.setSingleShot(true);
  rest_.setInterval(kSliderRestMs);
  connect(&rest_, &QTimer::timeout, this, &WhatIfCard::ask);
  connect(limit_box_, &QComboBox::currentIndexChanged, this, &WhatIfCard::choose);
  connect(slider_, &QSlider::valueChanged, this, &WhatIfCard::moved);
  connect(apply_, &QPushButton::clicked, this, &WhatIfCard::apply);
}

void WhatIfCard::show_settings(const SettingsPtr& all) {
  if (all == nullptr || all == settings_) return;
  settings_ = all;
  const auto settings = all->reader().getSettings();
  static constexpr const char* kKeys[] = {
      "rules.idle_seconds",        "rules.gpu_when_in_use",    "rules.cpu_when_in_use",
      "rules.other_gpu_load_max",  "rules.other_cpu_load_max", "rules.gpu_temperature_max",
      "rules.cpu_temperature_max", "rules.on_battery",         "rules.battery_percent_min",
      "energy.price_max",
  };
  std::vector<Limit> limits;
  for (const char* key : kKeys) {
    for (const auto setting : settings) {
      if (setting.getKey() != key) continue;
      Limit limit{text_of(setting.getKey()), read_setting_value(setting.getValue()), {}};
      const auto add = [&](SettingValue value) { limit.places.push_back(std::move(value)); };
      const auto steps = [&](int64_t from, int64_t to, int64_t step) {
        for (int64_t value = from; value <= to; value += step) {
          const auto number = static_cast<double>(value);
          if (number >= setting.getMinimum() && number <= setting.getMaximum()) add(value);
        }
      };
      const std::string_view name(key);
      if (std::holds_alternative<bool>(limit.now)) {
        add(false);
        add(true);
      } else if (name == "rules.idle_seconds") {
        for (const int64_t value : {30, 60, 120, 180, 300, 600, 900, 1200, 1800, 3600}) add(value);
      } else if (name.ends_with("temperature_max")) {
        steps(60, 100, 1);
      } else if (std::holds_alternative<int64_t>(limit.now)) {
        steps(0, 100, 5);
      } else {
        for (int cents = 0; cents <= 60; cents += 2) add(cents / 100.0);
      }
      // The value of now has its place, wherever it is.
      if (std::ranges::find(limit.places, limit.now) == limit.places.end()) {
        limit.places.push_back(limit.now);
        std::ranges::sort(limit.places);
      }
      limits.push_back(std::move(limit));
    }
  }
  const bool same =
      limits.size() == limits_.size() &&
      std::equal(limits.begin(), limits.end(), limits_.begin(),
                 [](const Limit& a, const Limit& b) { return a.key == b.key && a.now == b.now; });
  if (same) return;
  const QString chosen = limit_box_->currentData().toString();
  limits_ = std::move(limits);
  {
    const QSignalBlocker quiet(limit_box_);
    limit_box_->clear();
    for (const Limit& limit : limits_) limit_box_->addItem(setting_title(limit.key), limit.key);
    limit_box_->setCurrentIndex(std::max(0, limit_box_->findData(chosen)));
  }
  choose();
}

const WhatIfCard::Limit* WhatIfCard::limit() const {
  const int at = limit_box_->currentIndex();
  return at < 0 || at >= static_cast<int>(limits_.size()) ? nullptr
                                                          : &limits_[static_cast<size_t>(at)];
}

void WhatIfCard::choose() {
  const Limit* const chosen = limit();
  if (chosen == nullptr) return;
  const auto now = std::ranges::find(chosen->places, chosen->now);
  {
    const QSignalBlocker quiet(slider_);
    slider_->setRange(0, static_cast<int>(chosen->places.size()) - 1);
    slider_->setValue(static_cast<int>(now - chosen->places.begin()));
  }
  slider_->setAccessibleName(setting_title(chosen->key));
  moved();
}

void WhatIfCard::moved() {
  const Limit* const chosen = limit();
  if (chosen == nullptr) return;
  const SettingValue& value = chosen->places[static_cast<size_t>(slider_->value())];
  const QString text = value_text(chosen->key, value);
  value_->setText(value == chosen->now ? tr("%1 (as now)").arg(text) : text);
  slider_->setAccessibleDescription(value_->text());
  apply_->setEnabled(value != chosen->now);
  rest_.start();
}

void WhatIfCard::ask() {
  const Limit* const chosen = limit();
  if (chosen == nullptr) return;
  const SettingValue value = chosen->places[static_cast<size_t>(slider_->value())];
  const uint64_t question = ++asked_;
  context_.link.call<&rpc::Agent::Client::whatIfRequest>(
      this,
      [&](auto params) {
        auto change = params.initChanges(1)[0];
        change.setKey(chosen->key.toStdString());
        write_setting_value(value, change.initValue());
        params.setDays(kWeekDays);
      },
      [this, question](AnswerOf<&rpc::Agent::Client::whatIfRequest> answer) {
        if (question != asked_) return;  // The slider has moved on.
        set_problem(*problem_, answer.ok() ? QString() : sentence(answer.error()));
        if (!answer.ok()) return;
        double known_most = 0;
        for (const auto resource : answer.value()->reader().getResources()) {
          const auto at = static_cast<size_t>(resource.getResource());
          if (at >= bars_.size()) continue;
          const auto known = static_cast<double>(resource.getKnownMs());
          const auto now = static_cast<double>(resource.getAllowedMs());
          const auto then = static_cast<double>(resource.getWouldBeMs());
          known_most = std::max(known_most, known);
          bars_[at]->set(known > 0 ? now / known : 0, known > 0 ? then / known : 0);
          // Hours, not days: they are to be compared.
          const auto duration = [](double ms) {
            return tr("%1 h").arg(QLocale().toString(ms / kHourMs, 'f', 1));
          };
          QString text = tr("%1 → %2").arg(duration(now), duration(then));
          if (then > now) text += tr(" (+%1)").arg(duration(then - now));
          if (then < now) text += tr(" (−%1)").arg(duration(now - then));
          bar_texts_[at]->setText(text);
        }
        known_->setText(
            known_most <= 0
                ? tr("Shoal has not watched this computer for long enough to tell.")
                : tr("Above: as it was allowed. Below: as it would have been. Of the %1 that Shoal "
                     "was watching in the last 7 days, as if all modes had been “By my rules”.")
                      .arg(format_duration(Millis{static_cast<int64_t>(known_most)})));
      },
      Millis{30'000});
}

void WhatIfCard::apply() {
  const Limit* const chosen = limit();
  if (chosen == nullptr) return;
  apply_->setEnabled(false);
  context_.link.call<&rpc::Agent::Client::changeSettingsRequest>(
      this,
      [&](auto params) {
        auto change = params.initChanges(1)[0];
        change.setKey(chosen->key.toStdString());
        write_setting_value(chosen->places[static_cast<size_t>(slider_->value())],
                            change.initValue());
      },
      [this](AnswerOf<&rpc::Agent::Client::changeSettingsRequest> answer) {
        set_problem(*problem_, answer.ok() ? QString() : sentence(answer.error()));
        if (answer.ok()) {
          Q_EMIT applied();
        } else {
          apply_->setEnabled(true);
        }
      });
}

// --- Pairing.

PairingCard::PairingCard(const PageContext& context, QWidget* parent)
    : Card(parent), context_(context) {
  set_title(tr("Other machines"));
  state_ = make_text(this);
  set_text_role(*state_, TextRole::kQuiet);
  url_ = make_text(this);
  url_->setObjectName(QStringLiteral("pair_url"));
  url_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  problem_ = make_problem(this);
  using PairingRow = rpc::Pairing::Reader;
  const auto date = [](int64_t at_ms) {
    return at_ms == 0 ? QStringLiteral("–") : format_date_time(Millis{at_ms});
  };
  model_ = new TableModel<PairingRow>(
      {{.key = "name",
        .title = QT_TRANSLATE_NOOP("tables", "Name"),
        .text = [](const PairingRow& row) { return text_of(row.getName()); }},
       {.key = "paired",
        .title = QT_TRANSLATE_NOOP("tables", "Paired"),
        .text = [date](const PairingRow& row) { return date(row.getPairedMs()); },
        .sort_key = [](const PairingRow& row) { return QVariant(qlonglong{row.getPairedMs()}); }},
       {.key = "used",
        .title = QT_TRANSLATE_NOOP("tables", "Last used"),
        .text = [date](const PairingRow& row) { return date(row.getLastUsedMs()); },
        .sort_key =
            [](const PairingRow& row) { return QVariant(qlonglong{row.getLastUsedMs()}); }}},
      [](const PairingRow& row) { return QString::number(row.getId()); }, this);
  table_ = new DataTable(model_, QStringLiteral("pairings"), tr("Other machines"), this);
  table_->set_empty_text(tr("No other machine may control this one."));
  table_->set_rows_shown(3);
  table_->show_bar(false);
  pair_ = new QPushButton(tr("&Pair another machine…"), this);
  pair_->setObjectName(QStringLiteral("pair"));
  unpair_ = new QPushButton(tr("&Remove the selected one"), this);
  unpair_->setObjectName(QStringLiteral("unpair"));
  for (QPushButton* button : {pair_, unpair_}) button->setAutoDefault(false);
  unpair_->setEnabled(false);
  auto* row = new QHBoxLayout;
  row->addWidget(pair_);
  row->addWidget(unpair_);
  row->addStretch();
  body()->addWidget(state_);
  body()->addWidget(table_);
  body()->addLayout(row);
  body()->addWidget(url_);
  body()->addWidget(problem_);
  url_->hide();
  connect(table_, &DataTable::selection_changed, this,
          [this] { unpair_->setEnabled(table_->selected_row() >= 0); });
  connect(pair_, &QPushButton::clicked, this, &PairingCard::pair);
  connect(unpair_, &QPushButton::clicked, this, &PairingCard::unpair);
}

void PairingCard::show_snapshot(rpc::Snapshot::Reader snapshot) {
  state_->setText(snapshot.getRemoteListens()
                      ? tr("The command line of paired machines can steer this one over the "
                           "network now.")
                      : tr("Off: give an address above to let paired machines connect."));
  pair_->setEnabled(snapshot.getRemoteListens());
  if (context_.clock.now_wall() >= url_until_) url_->hide();
}

void PairingCard::fetch() {
  context_.link.call<&rpc::Agent::Client::pairingsRequest>(
      this, [](auto) {},
      [this](AnswerOf<&rpc::Agent::Client::pairingsRequest> answer) {
        if (!answer.ok()) return set_problem(*problem_, sentence(answer.error()));
        std::vector<rpc::Pairing::Reader> rows;
        for (const auto row : answer.value()->reader().getPairings()) rows.push_back(row);
        model_->set_rows(answer.value(), std::move(rows));
      });
}

void PairingCard::pair() {
  context_.link.call<&rpc::Agent::Client::pairRequest>(
      this, [](auto) {},
      [this](AnswerOf<&rpc::Agent::Client::pairRequest> answer) {
        set_problem(*problem_, answer.ok() ? QString() : sentence(answer.error()));
        if (!answer.ok()) return;
        const auto reader = answer.value()->reader();
        url_until_ = Millis{reader.getExpiresMs()};
        // No window takes such a URL: the command line does.
        url_->setText(
            tr("On the other machine, run this before %1. The address in it works once:\n%2")
                .arg(format_time(url_until_), QStringLiteral("shoal-client --remote '%1' status")
                                                  .arg(text_of(reader.getUrl()))));
        url_->show();
        fetch();
      });
}

void PairingCard::unpair() {
  const uint64_t id = table_->selected_identity().toULongLong();
  context_.link.call<&rpc::Agent::Client::unpairRequest>(
      this, [id](auto params) { params.setId(id); },
      [this](AnswerOf<&rpc::Agent::Client::unpairRequest> answer) {
        set_problem(*problem_, answer.ok() ? QString() : sentence(answer.error()));
        if (answer.ok()) fetch();
      });
}

}  // namespace shoal::ui
