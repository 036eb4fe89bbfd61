#include "ui/widgets/chart.h"

#include <QBarSet>
#include <QCategoryAxis>
#include <QChart>
#include <QChartView>
#include <QEvent>
#include <QGraphicsLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLegendMarker>
#include <QLineSeries>
#include <QStackedBarSeries>
#include <QStackedLayout>
#include <QStandardItemModel>
#include <QToolButton>
#include <QToolTip>
#include <QVBoxLayout>
#include <QValueAxis>
#include <algorithm>
#include <cmath>
#include <iterator>

#include "ui/column.h"
#include "ui/theme.h"
#include "ui/widgets/data_table.h"

namespace shoal::ui {
namespace {

QColor series_color(const Colors& colors, size_t series) {
  return colors.series[series % colors.series.size()];
}

}  // namespace

Chart::Chart(ChartKind kind, const QString& name, QWidget* parent) : QWidget(parent), kind_(kind) {
  setObjectName(name);
  title_ = new QLabel(this);
  set_text_role(*title_, TextRole::kHeading);
  toggle_ = new QToolButton(this);
  toggle_->setCheckable(true);
  toggle_->setAutoRaise(true);
  toggle_->setFocusPolicy(Qt::TabFocus);

  view_ = new QChartView(this);
  view_->setRenderHint(QPainter::Antialiasing);
  view_->setFrameShape(QFrame::NoFrame);
  view_->setFocusPolicy(Qt::NoFocus);
  view_->chart()->setMargins({});
  view_->chart()->setBackgroundRoundness(0);
  view_->chart()->layout()->setContentsMargins(0, 0, 0, 0);
  model_ = new QStandardItemModel(this);
  table_ = new DataTable(model_, name, {}, this);
  empty_ = new QLabel(this);
  empty_->setAlignment(Qt::AlignCenter);
  empty_->setWordWrap(true);
  empty_->setMargin(16);
  empty_->setForegroundRole(QPalette::PlaceholderText);

  auto* head = new QHBoxLayout;
  head->addWidget(title_);
  head->addStretch();
  head->addWidget(toggle_);
  auto* body = new QWidget(this);
  stack_ = new QStackedLayout(body);
  stack_->setContentsMargins(0, 0, 0, 0);
  stack_->addWidget(view_);
  stack_->addWidget(table_);
  stack_->addWidget(empty_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(2);
  layout->addLayout(head);
  layout->addWidget(body, 1);
  setMinimumHeight(170);

  connect(toggle_, &QToolButton::toggled, this, [this](bool on) {
    QWidget* const drawn = is_empty() ? static_cast<QWidget*>(empty_) : view_;
    stack_->setCurrentWidget(on ? table_ : drawn);
  });
  retranslate();
  draw();
}

void Chart::set_title(const QString& title) {
  title_->setText(title);
  view_->setAccessibleName(title);
  table_->view()->setAccessibleName(title);
  retranslate();
}

void Chart::set_empty_text(const QString& text) { empty_->setText(text); }

void Chart::set_data(ChartData data, const QString& unit, std::function<QString(double)> text) {
  data_ = std::move(data);
  unit_ = unit;
  text_ = std::move(text);
  fill_table();
  draw();
}

bool Chart::table_shown() const { return toggle_->isChecked(); }

bool Chart::is_empty() const {
  return std::ranges::none_of(data_.series, [](const ChartSeries& series) {
    return std::ranges::any_of(series.values, [](double value) { return value > 0; });
  });
}

void Chart::retranslate() {
  toggle_->setText(tr("Table"));
  toggle_->setToolTip(tr("Show the figures of this chart as a table"));
  toggle_->setAccessibleName(tr("%1 as a table").arg(title_->text()));
}

void Chart::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange) retranslate();
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) draw();
  QWidget::changeEvent(event);
}

void Chart::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  const int step = label_step_;
  const int wide = fontMetrics().horizontalAdvance(QStringLiteral("30 Nov.  "));
  const int room = std::max(1, (width() - 60) / std::max(1, wide));
  const int steps = static_cast<int>(data_.steps.size());
  label_step_ = std::max(1, (steps + room - 1) / room);
  if (label_step_ != step) draw();
}

void Chart::draw() {
  QChart* const chart = view_->chart();
  chart->removeAllSeries();
  for (QAbstractAxis* axis : chart->axes()) {
    chart->removeAxis(axis);
    axis->deleteLater();
  }
  const QColor base = palette().color(QPalette::Base);
  chart->setBackgroundBrush(base);
  chart->setBackgroundPen(Qt::NoPen);
  chart->setPlotAreaBackgroundVisible(false);
  view_->setBackgroundBrush(base);
  chart->legend()->setAlignment(Qt::AlignBottom);
  chart->legend()->setLabelColor(palette().color(QPalette::Text));
  chart->legend()->setFont(font());
  chart->legend()->setVisible(data_.series.size() > 1);
  if (!data_.steps.empty()) {
    if (kind_ == ChartKind::kStackedBars) {
      draw_bars(chart);
    } else {
      draw_lines(chart);
    }
    draw_axes(chart);
  }
  view_->setAccessibleDescription(summary());
  if (!table_shown()) {
    stack_->setCurrentWidget(is_empty() ? static_cast<QWidget*>(empty_) : view_);
  }
}

void Chart::draw_bars(QChart* chart) {
  const Colors& colors = colors_of(palette());
  auto* bars = new QStackedBarSeries(chart);
  bars->setBarWidth(0.75);
  for (size_t i = 0; i < data_.series.size(); ++i) {
    auto* set = new QBarSet(data_.series[i].name, bars);
    for (const double value : data_.series[i].values) *set << (std::isfinite(value) ? value : 0.0);
    const QColor color = series_color(colors, i);
    // Told apart by more than colour.
    static constexpr Qt::BrushStyle kStyles[] = {Qt::SolidPattern, Qt::Dense5Pattern,
                                                 Qt::BDiagPattern};
    set->setBrush(QBrush(color, kStyles[std::min(i, std::size(kStyles) - 1)]));
    set->setPen(QPen(color, 1));
    bars->append(set);
    connect(set, &QBarSet::hovered, this,
            [this, i](bool on, int step) { tell_tip(on, step, static_cast<int>(i)); });
  }
  chart->addSeries(bars);
}

void Chart::draw_lines(QChart* chart) {
  const Colors& colors = colors_of(palette());
  static constexpr Qt::PenStyle kStyles[] = {Qt::SolidLine, Qt::DashLine, Qt::DotLine,
                                             Qt::DashDotLine};
  for (size_t i = 0; i < data_.series.size(); ++i) {
    const std::vector<double>& values = data_.series[i].values;
    const QPen pen(series_color(colors, i), 2, kStyles[i % std::size(kStyles)]);
    bool first = true;
    // A line for each stretch of known figures: what is not known is a gap.
    for (size_t begin = 0; begin < values.size();) {
      if (!std::isfinite(values[begin])) {
        ++begin;
        continue;
      }
      auto* line = new QLineSeries(chart);
      line->setName(data_.series[i].name);
      line->setPen(pen);
      size_t end = begin;
      for (; end < values.size() && std::isfinite(values[end]); ++end)
        line->append(static_cast<double>(end), values[end]);
      line->setPointsVisible(values.size() <= 40 || end - begin == 1);
      chart->addSeries(line);
      if (!first) {
        for (QLegendMarker* marker : chart->legend()->markers(line)) marker->setVisible(false);
      }
      connect(line, &QLineSeries::hovered, this, [this, i](const QPointF& at, bool on) {
        tell_tip(on, static_cast<int>(std::lround(at.x())), static_cast<int>(i));
      });
      first = false;
      begin = end;
    }
  }
}

void Chart::draw_axes(QChart* chart) {
  if (chart->series().isEmpty()) return;
  const Colors& colors = colors_of(palette());
  const auto steps = static_cast<int>(data_.steps.size());

  auto* across = new QCategoryAxis;
  across->setLabelsPosition(QCategoryAxis::AxisLabelsPositionOnValue);
  across->setRange(-0.5, steps - 0.5);
  across->setGridLineVisible(false);
  // The newest step always has its label. Two categories may not have the same name.
  QString last;
  for (int step = (steps - 1) % label_step_; step < steps; step += label_step_) {
    const QString& label = data_.axis_labels[static_cast<size_t>(step)];
    if (label.isEmpty() || label == last) continue;
    across->append(label, step);
    last = label;
  }

  double top = 0;
  for (int step = 0; step < steps; ++step) {
    double sum = 0;
    for (const ChartSeries& series : data_.series) {
      const double value = series.values[static_cast<size_t>(step)];
      if (!std::isfinite(value)) continue;
      sum = kind_ == ChartKind::kStackedBars ? sum + value : std::max(sum, value);
    }
    top = std::max(top, sum);
  }
  auto* up = new QValueAxis;
  up->setRange(0, top > 0 ? top * 1.05 : 1);
  up->setTickCount(5);
  up->applyNiceNumbers();
  const double gap = (up->max() - up->min()) / std::max(1, up->tickCount() - 1);
  const int digits = gap >= 1 || gap <= 0 ? 0 : static_cast<int>(std::ceil(-std::log10(gap)));
  up->setLabelFormat(QStringLiteral("%.%1f").arg(std::min(digits, 6)));
  up->setTitleText(unit_);
  up->setTitleVisible(!unit_.isEmpty());

  QFont small = font();
  small.setPointSizeF(small.pointSizeF() * 0.9);
  chart->setLocalizeNumbers(true);
  chart->setLocale(locale());
  for (QAbstractAxis* axis :
       {static_cast<QAbstractAxis*>(across), static_cast<QAbstractAxis*>(up)}) {
    axis->setLabelsColor(colors.text_quiet);
    axis->setTitleBrush(colors.text_quiet);
    axis->setLabelsFont(small);
    axis->setTitleFont(small);
    axis->setLinePenColor(colors.border);
    axis->setGridLineColor(colors.grid);
  }
  chart->addAxis(across, Qt::AlignBottom);
  chart->addAxis(up, Qt::AlignLeft);
  for (QAbstractSeries* series : chart->series()) {
    series->attachAxis(across);
    series->attachAxis(up);
  }
}

void Chart::tell_tip(bool on, int step, int series) {
  if (!on || step < 0 || step >= static_cast<int>(data_.steps.size())) {
    QToolTip::hideText();
    return;
  }
  const ChartSeries& of = data_.series[static_cast<size_t>(series)];
  QToolTip::showText(QCursor::pos(),
                     tr("%1\n%2: %3")
                         .arg(data_.steps[static_cast<size_t>(step)], of.name,
                              text_(of.values[static_cast<size_t>(step)])),
                     view_);
}

QString Chart::summary() const {
  if (is_empty()) return empty_->text();
  QStringList parts;
  for (const ChartSeries& series : data_.series) {
    double most = -1;
    size_t at = 0;
    for (size_t i = 0; i < series.values.size(); ++i) {
      if (series.values[i] > most) {
        most = series.values[i];
        at = i;
      }
    }
    if (most < 0) continue;
    parts += tr("%1: at most %2, %3").arg(series.name, text_(most), data_.steps[at]);
  }
  return parts.join(QStringLiteral(". "));
}

void Chart::fill_table() {
  const auto steps = static_cast<int>(data_.steps.size());
  const auto columns = static_cast<int>(data_.series.size()) + 1;
  model_->clear();
  model_->setColumnCount(columns);
  model_->setRowCount(steps);
  const auto head = [this](int column, const QString& title, const QString& exported) {
    model_->setHeaderData(column, Qt::Horizontal, title);
    model_->setHeaderData(column, Qt::Horizontal, exported, kExportRole);
  };
  head(0, data_.step_title, data_.step_title);
  for (int column = 1; column < columns; ++column) {
    const QString& name = data_.series[static_cast<size_t>(column) - 1].name;
    head(column, name, unit_.isEmpty() ? name : QStringLiteral("%1 (%2)").arg(name, unit_));
  }
  for (int step = 0; step < steps; ++step) {
    const QString& name = data_.steps[static_cast<size_t>(step)];
    auto* item = new QStandardItem(name);
    item->setData(step, kSortRole);
    item->setData(name, kExportRole);
    item->setData(name, kIdentityRole);
    model_->setItem(step, 0, item);
    for (int column = 1; column < columns; ++column) {
      const double value =
          data_.series[static_cast<size_t>(column) - 1].values[static_cast<size_t>(step)];
      auto* cell = new QStandardItem(text_(value));
      cell->setData(value, kSortRole);
      cell->setData(value, kExportRole);
      cell->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
      model_->setItem(step, column, cell);
    }
  }
}

}  // namespace shoal::ui
