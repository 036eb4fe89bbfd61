#pragma once
// The hours of a week as a grid to paint on: seven days of half hours, by mouse or keyboard. A
// table view, so that a screen reader knows every half hour by its day, its time and whether it is
// on.

#include <QTableView>

#include "schema/week_hours.h"

namespace shoal::ui {

class WeekGrid : public QTableView {
  Q_OBJECT

 public:
  explicit WeekGrid(QWidget* parent = nullptr);

  const WeekHours::Grid& hours() const;
  int count() const;                             // How many half hours are on.
  void set_hours(const WeekHours::Grid& hours);  // Tells nobody.
  void set_all(bool on);                         // As the owner does.

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 Q_SIGNALS:
  void edited();  // By the owner; once for each stroke of the mouse.

 protected:
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  class Model;
  class Painter;
  class HourLine;

  void set_selected(bool on);
  void apply_stroke(const QModelIndex& to);

  Model* model_;
  bool painting_ = false;
  bool stroke_on_ = false;
  QModelIndex stroke_from_;
  WeekHours::Grid before_stroke_ = {};
};

}  // namespace shoal::ui
