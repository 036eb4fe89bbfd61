#include "ui/widgets/timeline.h"

#include <QAccessible>
#include <QDateTime>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QLocale>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "ui/theme.h"

namespace shoal::ui {
namespace {

constexpr int kGap = 6;

QColor span_color(const Colors& colors, SpanKind kind) {
  const auto index = static_cast<size_t>(kind);
  return index < colors.states.size() ? colors.states[index] : colors.border;
}

Qt::BrushStyle span_style(SpanKind kind) {
  switch (kind) {
    case SpanKind::kWorking: return Qt::SolidPattern;
    case SpanKind::kWaiting: return Qt::Dense6Pattern;
    case SpanKind::kPaused: return Qt::BDiagPattern;
    case SpanKind::kAttention: return Qt::DiagCrossPattern;
    case SpanKind::kOffline: return Qt::HorPattern;
    case SpanKind::kUnknown: return Qt::NoBrush;
  }
  return Qt::NoBrush;
}

}  // namespace

Timeline::Timeline(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void Timeline::set_lanes(int64_t begin_ms, int64_t end_ms, std::vector<TimelineLane> lanes) {
  // The place stays on the span that held the same moment.
  const TimelineSpan* const before = current();
  const int64_t held = before == nullptr ? 0 : before->begin_ms;
  begin_ms_ = begin_ms;
  end_ms_ = std::max(end_ms, begin_ms + 1);
  lanes_ = std::move(lanes);
  const int lane = current_.lane;
  current_ = {};
  if (before != nullptr && lane < static_cast<int>(lanes_.size())) {
    const auto& spans = lanes_[static_cast<size_t>(lane)].spans;
    for (size_t i = 0; i < spans.size(); ++i) {
      if (spans[i].begin_ms <= held && held < spans[i].end_ms)
        current_ = {lane, static_cast<int>(i)};
    }
  }
  updateGeometry();
  update();
}

const TimelineSpan* Timeline::current() const {
  if (current_.lane < 0 || current_.lane >= static_cast<int>(lanes_.size())) return nullptr;
  const auto& spans = lanes_[static_cast<size_t>(current_.lane)].spans;
  if (current_.span < 0 || current_.span >= static_cast<int>(spans.size())) return nullptr;
  return &spans[static_cast<size_t>(current_.span)];
}

const TimelineSpan* Timeline::span_at(QPoint at) const {
  const Place place = place_at(at);
  if (place.span < 0) return nullptr;
  return &lanes_[static_cast<size_t>(place.lane)].spans[static_cast<size_t>(place.span)];
}

int Timeline::names_width() const {
  int width = 0;
  for (const TimelineLane& lane : lanes_)
    width = std::max(width, fontMetrics().horizontalAdvance(lane.name));
  return width + 12;
}

int Timeline::lane_height() const { return fontMetrics().height() + 10; }

QRect Timeline::lane_rect(int lane) const {
  const int top = 2 + lane * (lane_height() + kGap);
  return {names_width(), top, std::max(1, width() - names_width() - 2), lane_height()};
}

QSize Timeline::sizeHint() const {
  const int lanes = std::max(1, static_cast<int>(lanes_.size()));
  return {600, 2 + lanes * (lane_height() + kGap) + fontMetrics().height() + 4};
}

QSize Timeline::minimumSizeHint() const { return {names_width() + 200, sizeHint().height()}; }

double Timeline::x_of(int64_t at_ms) const {
  const QRect lane = lane_rect(0);
  const double part =
      static_cast<double>(at_ms - begin_ms_) / static_cast<double>(end_ms_ - begin_ms_);
  return lane.left() + std::clamp(part, 0.0, 1.0) * lane.width();
}

Timeline::Place Timeline::place_at(QPoint at) const {
  for (int lane = 0; lane < static_cast<int>(lanes_.size()); ++lane) {
    if (!lane_rect(lane).contains(at)) continue;
    const auto& spans = lanes_[static_cast<size_t>(lane)].spans;
    // A short span is drawn at least a pixel wide: the one whose drawing is nearest counts.
    Place best;
    double nearest = 2;
    for (size_t i = 0; i < spans.size(); ++i) {
      const double begin = x_of(spans[i].begin_ms), end = x_of(spans[i].end_ms);
      const double away = std::max({0.0, begin - at.x(), at.x() - end});
      if (away < nearest) {
        nearest = away;
        best = {lane, static_cast<int>(i)};
        if (away == 0) break;
      }
    }
    return best;
  }
  return {};
}

void Timeline::paint_days(QPainter& painter) const {
  const QColor line = colors_of(palette()).border;
  const QRect first = lane_rect(0),
              last = lane_rect(std::max(0, static_cast<int>(lanes_.size()) - 1));
  QDateTime day = QDateTime::fromMSecsSinceEpoch(begin_ms_).date().startOfDay();
  while (day.toMSecsSinceEpoch() < end_ms_) {
    const QDateTime next = day.addDays(1);
    const double x = x_of(day.toMSecsSinceEpoch()), end = x_of(next.toMSecsSinceEpoch());
    if (day.toMSecsSinceEpoch() >= begin_ms_) {
      painter.setPen(line);
      painter.drawLine(QPointF(x, first.top()), QPointF(x, last.bottom() + 4));
    }
    const QString name = locale().dayName(day.date().dayOfWeek(), QLocale::ShortFormat);
    if (end - x > fontMetrics().horizontalAdvance(name) + 4) {
      painter.setPen(palette().color(QPalette::Text));
      painter.drawText(QRectF(x, last.bottom() + 4, end - x, fontMetrics().height()),
                       Qt::AlignCenter, name);
    }
    day = next;
  }
}

void Timeline::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Colors& colors = colors_of(palette());
  for (int lane = 0; lane < static_cast<int>(lanes_.size()); ++lane) {
    const TimelineLane& of = lanes_[static_cast<size_t>(lane)];
    const QRect rect = lane_rect(lane);
    painter.setPen(palette().color(QPalette::WindowText));
    painter.drawText(QRect(0, rect.top(), names_width() - 8, rect.height()),
                     Qt::AlignRight | Qt::AlignVCenter, of.name);
    painter.fillRect(rect, palette().color(QPalette::Base));
    for (const TimelineSpan& span : of.spans) {
      const double begin = x_of(span.begin_ms), end = x_of(span.end_ms);
      const QRectF box(begin, rect.top(), std::max(1.0, end - begin), rect.height());
      const QColor color = span_color(colors, span.kind);
      QColor ground = color;
      ground.setAlphaF(0.18F);
      if (span.kind != SpanKind::kUnknown) painter.fillRect(box, ground);
      painter.fillRect(box, QBrush(color, span_style(span.kind)));
    }
    painter.setPen(palette().color(QPalette::Mid));
    painter.drawRect(rect.adjusted(0, 0, -1, -1));
  }
  if (!lanes_.empty()) paint_days(painter);
  const TimelineSpan* const at = current();
  if (at != nullptr && hasFocus()) {
    const QRect rect = lane_rect(current_.lane);
    const double begin = x_of(at->begin_ms), end = x_of(at->end_ms);
    painter.setPen(QPen(palette().color(QPalette::Text), 2));
    painter.drawRect(
        QRectF(begin - 1, rect.top() - 1, std::max(4.0, end - begin) + 2, rect.height() + 2));
  }
}

bool Timeline::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* const help = static_cast<QHelpEvent*>(event);
    if (const TimelineSpan* span = span_at(help->pos())) {
      QToolTip::showText(help->globalPos(), span->text, this);
    } else {
      QToolTip::hideText();
    }
    return true;
  }
  if (event->type() == QEvent::FocusIn && current() == nullptr && !lanes_.empty()) {
    move_to({0, static_cast<int>(lanes_[0].spans.size()) - 1});  // The newest.
  }
  if (event->type() == QEvent::FocusIn || event->type() == QEvent::FocusOut) update();
  return QWidget::event(event);
}

void Timeline::move_to(Place place) {
  current_ = place;
  update();
  const TimelineSpan* const at = current();
  const QString text = at == nullptr ? QString() : at->text;
  setAccessibleDescription(text);
  QAccessibleEvent changed(this, QAccessible::DescriptionChanged);
  QAccessible::updateAccessibility(&changed);
  Q_EMIT current_changed(text);
}

void Timeline::keyPressEvent(QKeyEvent* event) {
  if (lanes_.empty()) return QWidget::keyPressEvent(event);
  Place next = current_;
  if (next.lane < 0) next = {0, 0};
  const auto spans_of = [this](int lane) {
    return static_cast<int>(lanes_[static_cast<size_t>(lane)].spans.size());
  };
  switch (event->key()) {
    case Qt::Key_Left: next.span = std::max(0, next.span - 1); break;
    case Qt::Key_Right: next.span = std::min(spans_of(next.lane) - 1, next.span + 1); break;
    case Qt::Key_Home: next.span = 0; break;
    case Qt::Key_End: next.span = spans_of(next.lane) - 1; break;
    case Qt::Key_Up:
    case Qt::Key_Down: {
      const int lane = next.lane + (event->key() == Qt::Key_Up ? -1 : 1);
      if (lane < 0 || lane >= static_cast<int>(lanes_.size())) return;
      // To what the other lane did at the same moment.
      const int64_t at = current() == nullptr ? begin_ms_ : current()->begin_ms;
      const auto& spans = lanes_[static_cast<size_t>(lane)].spans;
      next = {lane, 0};
      for (size_t i = 0; i < spans.size() && spans[i].begin_ms <= at; ++i)
        next.span = static_cast<int>(i);
      break;
    }
    default: return QWidget::keyPressEvent(event);
  }
  move_to(next);
}

void Timeline::mousePressEvent(QMouseEvent* event) {
  const Place place = place_at(event->pos());
  if (place.span >= 0) move_to(place);
}

void Timeline::mouseMoveEvent(QMouseEvent* event) {
  setCursor(place_at(event->pos()).span >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
}

void TimelineLegend::set_words(std::vector<QString> words) {
  words_ = std::move(words);
  QStringList all;
  for (const QString& word : words_) all += word;
  setAccessibleName(all.join(QStringLiteral(", ")));
  updateGeometry();
  update();
}

QSize TimelineLegend::sizeHint() const {
  int width = 0;
  for (const QString& word : words_)
    width += fontMetrics().height() + kGap + fontMetrics().horizontalAdvance(word) + 2 * kGap;
  return {width, fontMetrics().height() + 4};
}

void TimelineLegend::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Colors& colors = colors_of(palette());
  const int side = fontMetrics().height();
  int x = 0;
  for (size_t i = 0; i < words_.size(); ++i) {
    const auto kind = static_cast<SpanKind>(i);
    const QRect box(x, 2, side, side);
    const QColor color = span_color(colors, kind);
    QColor ground = color;
    ground.setAlphaF(0.18F);
    painter.fillRect(box, ground);
    painter.fillRect(box, QBrush(color, span_style(kind)));
    painter.setPen(color);
    painter.drawRect(box.adjusted(0, 0, -1, -1));
    painter.setPen(colors.text);
    const int wide = fontMetrics().horizontalAdvance(words_[i]);
    painter.drawText(QRect(x + side + kGap, 0, wide + 1, height()),
                     Qt::AlignLeft | Qt::AlignVCenter, words_[i]);
    x += side + kGap + wide + 2 * kGap;
  }
}

}  // namespace shoal::ui
