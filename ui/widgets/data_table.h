#pragma once
// A table that people can sort, filter, copy and save: the view of any TableModel. Says what to do
// when there is nothing to show.

#include <QTableView>
#include <QWidget>
#include <functional>
#include <vector>

class QHBoxLayout;
class QLabel;
class QLineEdit;
class QMenu;
class QSettings;
class QStackedLayout;
class QToolButton;

namespace shoal::ui {

// One line of CSV after RFC 4180. A text that a spreadsheet would run as a formula is defused.
QString csv_line(const QStringList& cells);
QString csv_cell(const QVariant& value);

class DataTable : public QWidget {
  Q_OBJECT

 public:
  // `name` is stable: for settings and tests. `title` is what a screen reader calls it. The model
  // outlives the table or is its child.
  DataTable(QAbstractItemModel* model, const QString& name, const QString& title,
            QWidget* parent = nullptr);

  // Takes up the columns and widths that the owner chose here before, and keeps what he chooses
  // from now on. `settings` outlives the table.
  void keep_columns_in(QSettings& settings);

  QTableView* view() { return view_; }
  QLineEdit* filter_edit() { return filter_; }

  void set_empty_text(const QString& text);  // What to do, when there are no rows.
  void set_filter_text(const QString& text);
  // A further condition over the model's row, beside the text. Call refilter() when it changes.
  void set_row_filter(std::function<bool(int source_row)> accepts);
  void refilter();
  void sort_by(int column, Qt::SortOrder order);
  void add_control(QWidget* widget);  // Into the bar above, before the buttons.
  void set_rows_shown(int rows);      // As high as so many rows: for tables inside a longer page.
  void show_bar(bool on);             // Without filter and buttons, for tables of a few rows.

  int rows_visible() const;
  QString selected_identity() const;  // Empty: none.
  int selected_row() const;           // Of the model; -1: none.
  void select_identity(const QString& identity);

  QString csv() const;       // The visible columns, as sorted and filtered.
  QString selected() const;  // The same of the selected rows, between tabs.
  void copy_selected();
  bool save_csv(const QString& path, QString* problem);

 Q_SIGNALS:
  void selection_changed();

 protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  class Filter;

  void ask_and_save();
  void fill_menu(QMenu* menu);
  void model_changed();
  void size_columns();
  void fit_columns();
  void keep_columns();
  void retranslate();

  QAbstractItemModel* model_;
  QString name_;
  Filter* proxy_;
  QTableView* view_;
  QWidget* bar_;
  QHBoxLayout* bar_layout_;
  QLineEdit* filter_;
  QToolButton* copy_;
  QToolButton* save_;
  QToolButton* columns_;
  QWidget* body_;
  QStackedLayout* stack_;
  QLabel* empty_;
  QString empty_text_;
  QString remembered_;  // The selected row's identity, over a reset of the model.
  bool bar_wanted_ = true;
  int controls_ = 0;
  int rows_shown_ = 0;
  bool sized_ = false;
  bool fitting_ = false;
  bool dragging_ = false;       // The owner's hand is on the header.
  bool widths_chosen_ = false;  // By the owner: then they stay.
  QSettings* settings_ = nullptr;
  std::vector<int> widths_;  // What each column would like.
};

}  // namespace shoal::ui
