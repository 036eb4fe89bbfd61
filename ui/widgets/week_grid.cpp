#include "ui/widgets/week_grid.h"

#include <QEvent>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLocale>
#include <QMouseEvent>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QTime>
#include <algorithm>

namespace shoal::ui {
namespace {

constexpr int kDaysPerWeek = 7;
constexpr int kSlotsPerDay = 48;  // Half hours.

template <class Grid>
auto& cell_of(Grid& grid, int day, int slot) {
  return grid[static_cast<size_t>(day)][static_cast<size_t>(slot)];
}

template <class Grid>
auto& cell_of(Grid& grid, const QModelIndex& index) {
  return cell_of(grid, index.row(), index.column());
}

QString clock_text(int slot) {
  return QLocale().toString(QTime(slot / 2 % 24, slot % 2 * 30), QLocale::ShortFormat);
}

}  // namespace

class WeekGrid::Model final : public QAbstractTableModel {
 public:
  using QAbstractTableModel::QAbstractTableModel;

  const WeekHours::Grid& hours() const { return hours_; }

  void set_hours(const WeekHours::Grid& hours) {
    hours_ = hours;
    Q_EMIT dataChanged(index(0, 0), index(kDaysPerWeek - 1, kSlotsPerDay - 1));
  }

  int rowCount(const QModelIndex& parent = {}) const override {
    return parent.isValid() ? 0 : kDaysPerWeek;
  }
  int columnCount(const QModelIndex& parent = {}) const override {
    return parent.isValid() ? 0 : kSlotsPerDay;
  }

  QVariant data(const QModelIndex& index, int role) const override {
    const bool on = cell_of(hours_, index);
    if (role == Qt::CheckStateRole) return on ? Qt::Checked : Qt::Unchecked;
    if (role != Qt::AccessibleTextRole && role != Qt::ToolTipRole) return {};
    const QString day = QLocale().dayName(index.row() + 1);
    const QString begin = clock_text(index.column()), end = clock_text(index.column() + 1);
    return on ? tr("%1, %2 to %3: on").arg(day, begin, end)
              : tr("%1, %2 to %3: off").arg(day, begin, end);
  }

  QVariant headerData(int section, Qt::Orientation orientation, int role) const override {
    if (role != Qt::DisplayRole && role != Qt::AccessibleTextRole) return {};
    if (orientation == Qt::Horizontal) return clock_text(section);
    const auto format = role == Qt::DisplayRole ? QLocale::ShortFormat : QLocale::LongFormat;
    return QLocale().dayName(section + 1, format);
  }

  Qt::ItemFlags flags(const QModelIndex&) const override {
    return Qt::ItemIsEnabled | Qt::ItemIsSelectable;
  }

 private:
  WeekHours::Grid hours_ = {};
};

class WeekGrid::Painter final : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option,
             const QModelIndex& index) const override {
    const auto* const grid = static_cast<const QTableView*>(option.widget);
    const QPalette& palette = option.palette;
    const bool on = index.data(Qt::CheckStateRole).toInt() == Qt::Checked;
    const QRect cell = option.rect;
    QColor fill = palette.color(on ? QPalette::Highlight : QPalette::AlternateBase);
    if (!option.state.testFlag(QStyle::State_Enabled)) fill.setAlphaF(0.4F);
    painter->fillRect(cell, fill);
    // Whole hours are told apart from halves, and every sixth hour from the others.
    QColor line = palette.color(QPalette::Mid);
    line.setAlphaF(index.column() % 12 == 0 ? 1.0F : index.column() % 2 == 0 ? 0.5F : 0.15F);
    painter->setPen(line);
    painter->drawLine(cell.topLeft(), cell.bottomLeft());
    painter->setPen(palette.color(QPalette::Base));
    painter->drawLine(cell.bottomLeft(), cell.bottomRight());
    if (grid->hasFocus() && option.state.testFlag(QStyle::State_Selected)) {
      QColor tint = palette.color(QPalette::Text);
      tint.setAlphaF(0.25F);
      painter->fillRect(cell, tint);
    }
    if (grid->hasFocus() && grid->currentIndex() == index) {
      painter->setPen(QPen(palette.color(QPalette::Text), 2));
      painter->drawRect(cell.adjusted(1, 1, -1, -1));
    }
  }
};

// Writes the hours at the lines between cells; a cell is too narrow for a label of its own.
class WeekGrid::HourLine final : public QHeaderView {
 public:
  explicit HourLine(QWidget* parent) : QHeaderView(Qt::Horizontal, parent) {}

  QSize sizeHint() const override { return {QHeaderView::sizeHint().width(), label_height()}; }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(viewport());
    painter.fillRect(viewport()->rect(), palette().color(QPalette::Base));
    painter.setPen(palette().color(QPalette::WindowText));
    QFont small = font();
    small.setPointSizeF(std::max(6.0, small.pointSizeF() * 0.9));
    painter.setFont(small);
    const int wide = sectionSize(0) * 4;
    const int step =
        painter.fontMetrics().horizontalAdvance(QStringLiteral("00 00")) > wide ? 8 : 4;
    for (int slot = 0; slot < kSlotsPerDay; slot += step) {
      const QString text = QString::number(slot / 2);
      const int x = sectionViewportPosition(slot);
      painter.drawText(QRect(x - (slot == 0 ? 0 : 20), 0, 40, height() - 2),
                       (slot == 0 ? Qt::AlignLeft : Qt::AlignHCenter) | Qt::AlignBottom, text);
    }
  }

 private:
  int label_height() const { return fontMetrics().height() + 4; }
};

WeekGrid::WeekGrid(QWidget* parent) : QTableView(parent) {
  model_ = new Model(this);
  setModel(model_);
  setItemDelegate(new Painter(this));
  setHorizontalHeader(new HourLine(this));
  horizontalHeader()->setMinimumSectionSize(6);
  horizontalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 6);
  verticalHeader()->setHighlightSections(false);
  setCornerButtonEnabled(false);
  setShowGrid(false);
  setSelectionMode(QAbstractItemView::ContiguousSelection);
  setTabKeyNavigation(false);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setFrameShape(QFrame::NoFrame);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setAccessibleName(tr("Hours of the week"));
  setAccessibleDescription(
      tr("Arrow keys move, with Shift they select; the space bar switches what is selected."));
  setToolTip(accessibleDescription());
  setCurrentIndex(model_->index(0, 0));
}

const WeekHours::Grid& WeekGrid::hours() const { return model_->hours(); }

int WeekGrid::count() const {
  int count = 0;
  for (const auto& day : hours()) count += static_cast<int>(std::ranges::count(day, true));
  return count;
}

void WeekGrid::set_hours(const WeekHours::Grid& hours) { model_->set_hours(hours); }

void WeekGrid::set_all(bool on) {
  WeekHours::Grid hours = {};
  for (auto& day : hours) day.fill(on);
  model_->set_hours(hours);
  Q_EMIT edited();
}

QSize WeekGrid::sizeHint() const {
  const int height = horizontalHeader()->sizeHint().height() +
                     kDaysPerWeek * verticalHeader()->defaultSectionSize() + 2;
  return {verticalHeader()->sizeHint().width() + kSlotsPerDay * 14, height};
}

QSize WeekGrid::minimumSizeHint() const {
  return {verticalHeader()->sizeHint().width() + kSlotsPerDay * 8, sizeHint().height()};
}

void WeekGrid::mousePressEvent(QMouseEvent* event) {
  const QModelIndex at = indexAt(event->pos());
  if (event->button() != Qt::LeftButton || !at.isValid()) return QTableView::mousePressEvent(event);
  setFocus(Qt::MouseFocusReason);
  painting_ = true;
  stroke_from_ = at;
  before_stroke_ = hours();
  stroke_on_ = !cell_of(before_stroke_, at);
  apply_stroke(at);
}

void WeekGrid::mouseMoveEvent(QMouseEvent* event) {
  if (!painting_) return QTableView::mouseMoveEvent(event);
  const QRect area = viewport()->rect();
  const QPoint inside(std::clamp(event->pos().x(), area.left(), area.right()),
                      std::clamp(event->pos().y(), area.top(), area.bottom()));
  const QModelIndex at = indexAt(inside);
  if (at.isValid()) apply_stroke(at);
}

void WeekGrid::mouseReleaseEvent(QMouseEvent* event) {
  if (!painting_ || event->button() != Qt::LeftButton) return QTableView::mouseReleaseEvent(event);
  painting_ = false;
  Q_EMIT edited();
}

// The rectangle from where the stroke began; what it has left again is as it was.
void WeekGrid::apply_stroke(const QModelIndex& to) {
  WeekHours::Grid hours = before_stroke_;
  const auto [top, bottom] = std::minmax({stroke_from_.row(), to.row()});
  const auto [left, right] = std::minmax({stroke_from_.column(), to.column()});
  for (int day = top; day <= bottom; ++day) {
    for (int slot = left; slot <= right; ++slot) cell_of(hours, day, slot) = stroke_on_;
  }
  model_->set_hours(hours);
  selectionModel()->setCurrentIndex(to, QItemSelectionModel::NoUpdate);
  selectionModel()->select(QItemSelection(model_->index(top, left), model_->index(bottom, right)),
                           QItemSelectionModel::ClearAndSelect);
}

void WeekGrid::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Space) {
    set_selected(!cell_of(hours(), currentIndex()));
    return;
  }
  QTableView::keyPressEvent(event);
}

void WeekGrid::set_selected(bool on) {
  WeekHours::Grid hours = model_->hours();
  QModelIndexList cells = selectionModel()->selectedIndexes();
  if (cells.isEmpty() && currentIndex().isValid()) cells = {currentIndex()};
  for (const QModelIndex& cell : cells) cell_of(hours, cell) = on;
  model_->set_hours(hours);
  Q_EMIT edited();
}

void WeekGrid::resizeEvent(QResizeEvent* event) {
  QTableView::resizeEvent(event);
  const int width = viewport()->width();
  int used = 0;
  for (int slot = 0; slot < kSlotsPerDay; ++slot) {
    const int end = width * (slot + 1) / kSlotsPerDay;
    horizontalHeader()->resizeSection(slot, end - used);
    used = end;
  }
}

void WeekGrid::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange) {
    verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 6);
    updateGeometry();
  }
  QTableView::changeEvent(event);
}

}  // namespace shoal::ui
