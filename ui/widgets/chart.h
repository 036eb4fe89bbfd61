#pragma once
// A chart over the steps of a time, with the same figures as a table: one button away, and what a
// screen reader reads. A thin layer over Qt Charts in the theme's colours.

#include <QWidget>
#include <functional>
#include <vector>

class QLabel;
class QStackedLayout;
class QStandardItemModel;
class QToolButton;

QT_BEGIN_NAMESPACE
class QChart;
class QChartView;
QT_END_NAMESPACE

namespace shoal::ui {

class DataTable;

struct ChartSeries {
  QString name;
  std::vector<double> values;  // One for each step; NaN: not known.
};

struct ChartData {
  QString step_title;                // "Day": heads the table's first column.
  std::vector<QString> steps;        // "Monday, 30 November".
  std::vector<QString> axis_labels;  // "30 Nov"; drawn where there is room.
  std::vector<ChartSeries> series;
};

enum class ChartKind {
  kStackedBars,  // Parts of a whole.
  kLines,
};

class Chart : public QWidget {
  Q_OBJECT

 public:
  // `name` is stable, for the table's settings.
  Chart(ChartKind kind, const QString& name, QWidget* parent = nullptr);

  void set_title(const QString& title);
  // `text` writes a figure with its unit, for tips and the table; `unit` alone names the axis.
  void set_data(ChartData data, const QString& unit, std::function<QString(double)> text);
  void set_empty_text(const QString& text);  // Shown while no figure is above 0.

  bool table_shown() const;
  DataTable* table() { return table_; }
  bool is_empty() const;

 protected:
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void draw();
  void draw_bars(QChart* chart);
  void draw_lines(QChart* chart);
  void draw_axes(QChart* chart);
  void fill_table();
  void tell_tip(bool on, int step, int series);
  QString summary() const;
  void retranslate();

  ChartKind kind_;
  ChartData data_;
  QString unit_;
  std::function<QString(double)> text_;
  int label_step_ = 1;
  QLabel* title_;
  QToolButton* toggle_;
  QStackedLayout* stack_;
  QChartView* view_;
  QStandardItemModel* model_;
  DataTable* table_;
  QLabel* empty_;
};

}  // namespace shoal::ui
