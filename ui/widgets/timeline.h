#pragma once
// What happened over a time, a lane for each thing, as spans told apart by colour and by pattern.
// The mouse and the arrow keys reach every span; its sentence is told to screen readers.

#include <QWidget>
#include <cstdint>
#include <vector>

namespace shoal::ui {

// In the order of schema/agent.capnp's Activity; kUnknown: nobody was watching.
enum class SpanKind { kWorking, kWaiting, kPaused, kAttention, kOffline, kUnknown };

struct TimelineSpan {
  int64_t begin_ms = 0, end_ms = 0;
  SpanKind kind = SpanKind::kUnknown;
  QString text;  // The sentence for tips and screen readers.
};

struct TimelineLane {
  QString name;
  std::vector<TimelineSpan> spans;  // In order, without overlap.
};

class Timeline : public QWidget {
  Q_OBJECT

 public:
  explicit Timeline(QWidget* parent = nullptr);

  // From local midnight to midnight the ground is marked as days.
  void set_lanes(int64_t begin_ms, int64_t end_ms, std::vector<TimelineLane> lanes);
  const std::vector<TimelineLane>& lanes() const { return lanes_; }

  // The span that the arrow keys stand on; null: none.
  const TimelineSpan* current() const;
  const TimelineSpan* span_at(QPoint at) const;

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 Q_SIGNALS:
  void current_changed(const QString& text);

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;

 private:
  struct Place {
    int lane = -1, span = -1;
  };

  int names_width() const;
  int lane_height() const;
  QRect lane_rect(int lane) const;
  double x_of(int64_t at_ms) const;
  Place place_at(QPoint at) const;
  void move_to(Place place);
  void paint_days(QPainter& painter) const;

  int64_t begin_ms_ = 0, end_ms_ = 1;
  std::vector<TimelineLane> lanes_;
  Place current_;
};

// What the colours and patterns mean: a word for each kind but kUnknown, in their order.
class TimelineLegend : public QWidget {
  Q_OBJECT

 public:
  using QWidget::QWidget;

  void set_words(std::vector<QString> words);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::vector<QString> words_;
};

}  // namespace shoal::ui
