#pragma once
// What a column of a table is, and the one model that shows rows of any kind by a list of columns.
// Rows are values that borrow from messages, which the model keeps alive. The Qt thread's.

#include <QAbstractTableModel>
#include <QCoreApplication>
#include <QFontDatabase>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace shoal::ui {

// What a table's model answers beside Qt's own roles.
inline constexpr int kSortRole = Qt::UserRole;          // What the column sorts by.
inline constexpr int kExportRole = Qt::UserRole + 1;    // For CSV: a number without its unit.
inline constexpr int kIdentityRole = Qt::UserRole + 2;  // Which row it is, after an update too.
inline constexpr int kKeyRole = Qt::UserRole + 3;       // Of a header: the column's key.
inline constexpr int kHiddenRole = Qt::UserRole + 4;    // Of a header: not shown at first.
inline constexpr int kProgressRole = Qt::UserRole + 5;  // 0 to 1: drawn as a bar with the text.

template <class Row>
struct Column {
  const char* key;    // Stable: saved in settings, used by tests.
  const char* title;  // QT_TRANSLATE_NOOP("tables", ...).
  std::function<QString(const Row&)> text;
  std::function<QVariant(const Row&)> sort_key;  // None: by its text.
  Qt::Alignment alignment = Qt::AlignLeft;
  const char* unit = nullptr;                  // Of the exported number, in the CSV's header.
  std::function<QString(const Row&)> tip;      // None: no tool tip.
  std::function<QVariant(const Row&)> icon;    // A QIcon or QColor. None: neither.
  std::function<double(const Row&)> progress;  // 0 to 1: a bar behind the text. None: no bar.
  bool fixed_pitch = false;
  bool hidden = false;  // At first: the owner may show it.
};

template <class Row>
class TableModel final : public QAbstractTableModel {
 public:
  using Identity = std::function<QString(const Row&)>;

  TableModel(std::vector<Column<Row>> columns, Identity identity, QObject* parent = nullptr)
      : QAbstractTableModel(parent),
        columns_(std::move(columns)),
        identity_(std::move(identity)),
        fixed_font_(QFontDatabase::systemFont(QFontDatabase::FixedFont)) {}

  // `keeps` owns what the rows borrow. Rows that are the same as before, or only more of them, keep
  // selection and scroll position.
  void set_rows(std::shared_ptr<const void> keeps, std::vector<Row> rows) {
    if (continues(rows)) {
      const int before = static_cast<int>(rows_.size());
      const int after = static_cast<int>(rows.size());
      if (after > before) beginInsertRows({}, before, after - 1);
      take_rows(std::move(keeps), std::move(rows));
      if (after > before) endInsertRows();
      if (before > 0) Q_EMIT dataChanged(index(0, 0), index(before - 1, columnCount() - 1));
      return;
    }
    beginResetModel();
    take_rows(std::move(keeps), std::move(rows));
    endResetModel();
  }

  // More rows at the end, for a list that only grows. When there are more than `rows_max`, the
  // oldest messages go whole, so that some fewer may stay.
  void append_rows(std::shared_ptr<const void> keeps, std::vector<Row> rows, size_t rows_max) {
    if (rows.empty()) return;
    const int before = static_cast<int>(rows_.size());
    beginInsertRows({}, before, before + static_cast<int>(rows.size()) - 1);
    pieces_.push_back({std::move(keeps), rows.size()});
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    endInsertRows();
    size_t old = 0, pieces = 0;
    while (pieces + 1 < pieces_.size() && rows_.size() - old > rows_max)
      old += pieces_[pieces++].rows;
    if (old == 0) return;
    beginRemoveRows({}, 0, static_cast<int>(old) - 1);
    rows_.erase(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(old));
    pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(pieces));
    dropped_ += old;
    endRemoveRows();
  }
  size_t dropped() const { return dropped_; }  // How many gave way in append_rows().

  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<Column<Row>>& columns() const { return columns_; }

  int rowCount(const QModelIndex& parent = {}) const override {
    return parent.isValid() ? 0 : static_cast<int>(rows_.size());
  }
  int columnCount(const QModelIndex& parent = {}) const override {
    return parent.isValid() ? 0 : static_cast<int>(columns_.size());
  }

  QVariant data(const QModelIndex& index, int role) const override {
    if (!index.isValid() || index.row() >= rowCount()) return {};
    const Row& row = rows_[static_cast<size_t>(index.row())];
    const Column<Row>& column = columns_[static_cast<size_t>(index.column())];
    switch (role) {
      case Qt::DisplayRole: return column.text(row);
      case Qt::TextAlignmentRole: return QVariant::fromValue(column.alignment | Qt::AlignVCenter);
      // A text may be cut short by its column.
      case Qt::ToolTipRole: return column.tip ? column.tip(row) : column.text(row);
      case Qt::DecorationRole: return column.icon ? column.icon(row) : QVariant();
      case Qt::FontRole: return column.fixed_pitch ? QVariant(fixed_font_) : QVariant();
      case kSortRole: return column.sort_key ? column.sort_key(row) : QVariant(column.text(row));
      case kExportRole:
        return column.unit != nullptr && column.sort_key ? column.sort_key(row)
                                                         : QVariant(column.text(row));
      case kIdentityRole: return identity_(row);
      case kProgressRole: return column.progress ? QVariant(column.progress(row)) : QVariant();
      default: return {};
    }
  }

  QVariant headerData(int section, Qt::Orientation orientation, int role) const override {
    if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
    const Column<Row>& column = columns_[static_cast<size_t>(section)];
    switch (role) {
      case Qt::DisplayRole: return QCoreApplication::translate("tables", column.title);
      case Qt::TextAlignmentRole: return QVariant::fromValue(column.alignment | Qt::AlignVCenter);
      case kExportRole: {
        const QString title = QCoreApplication::translate("tables", column.title);
        if (column.unit == nullptr || *column.unit == '\0') return title;
        return title + QStringLiteral(" (") + QString::fromUtf8(column.unit) + QLatin1Char(')');
      }
      case kKeyRole: return QString::fromLatin1(column.key);
      case kHiddenRole: return column.hidden;
      default: return {};
    }
  }

 private:
  // A message that some rows in a row borrow from.
  struct Piece {
    std::shared_ptr<const void> keeps;
    size_t rows;
  };

  void take_rows(std::shared_ptr<const void> keeps, std::vector<Row> rows) {
    rows_ = std::move(rows);
    pieces_.clear();
    pieces_.push_back({std::move(keeps), rows_.size()});
    dropped_ = 0;
  }

  // Whether `rows` begins with the rows that are here. Their ends stand for all of them: a list
  // only grows at its end or is another list.
  bool continues(const std::vector<Row>& rows) const {
    if (rows_.empty() || rows.size() < rows_.size()) return rows_.empty() && rows.empty();
    if (rows_.size() <= kCompareMax) {
      for (size_t i = 0; i < rows_.size(); ++i) {
        if (identity_(rows_[i]) != identity_(rows[i])) return false;
      }
      return true;
    }
    return identity_(rows_.front()) == identity_(rows.front()) &&
           identity_(rows_.back()) == identity_(rows[rows_.size() - 1]);
  }

  static constexpr size_t kCompareMax = 256;

  std::vector<Column<Row>> columns_;
  Identity identity_;
  QFont fixed_font_;
  std::deque<Piece> pieces_;  // In the order of the rows.
  std::vector<Row> rows_;
  size_t dropped_ = 0;
};

}  // namespace shoal::ui
