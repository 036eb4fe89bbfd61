#include "ui/widgets/data_table.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QEvent>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMessageBox>
#include <QPainter>
#include <QSaveFile>
#include <QSettings>
#include <QSortFilterProxyModel>
#include <QStackedLayout>
#include <QStandardPaths>
#include <QStyledItemDelegate>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "ui/column.h"
#include "ui/theme.h"

namespace shoal::ui {
namespace {

constexpr int kColumnWidthMin = 104;
constexpr int kColumnWidthMax = 340;
constexpr int kColumnSpace = 8;
constexpr int kColumnWidthKeptMax = 4'000;  // A settings file may hold anything.
constexpr int kRowsMeasuredMax = 200;       // For the first width of a column.

bool is_number(const QVariant& value) {
  switch (value.typeId()) {
    case QMetaType::Int:
    case QMetaType::UInt:
    case QMetaType::LongLong:
    case QMetaType::ULongLong:
    case QMetaType::Double:
    case QMetaType::Float: return true;
    default: return false;
  }
}

// Draws a bar where a column has one.
class CellPainter final : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option,
             const QModelIndex& index) const override {
    const QVariant progress = index.data(kProgressRole);
    if (!progress.isValid()) return QStyledItemDelegate::paint(painter, option, index);
    QStyleOptionViewItem ground = option;
    initStyleOption(&ground, index);
    ground.text.clear();
    QStyle* const style = option.widget->style();
    style->drawControl(QStyle::CE_ItemViewItem, &ground, painter, option.widget);
    const QRectF whole = QRectF(option.rect).adjusted(4, 4, -4, -4);
    QRectF done = whole;
    done.setWidth(whole.width() * std::clamp(progress.toDouble(), 0.0, 1.0));
    const Colors& colors = colors_of(option.palette);
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(Qt::NoPen);
    painter->setBrush(colors.grid);
    painter->drawRoundedRect(whole, 3, 3);
    painter->setBrush(colors.accent);
    painter->drawRoundedRect(done, 3, 3);
    const QString text = index.data().toString();
    painter->setPen(colors.text);
    painter->drawText(whole, Qt::AlignCenter, text);
    painter->setClipRect(done);  // The text where it lies on the bar.
    painter->setPen(colors.accent_text);
    painter->drawText(whole, Qt::AlignCenter, text);
    painter->restore();
  }
};

}  // namespace

QString csv_cell(const QVariant& value) {
  if (is_number(value)) {
    const bool whole = value.typeId() != QMetaType::Double && value.typeId() != QMetaType::Float;
    if (whole) return value.toString();
    const double number = value.toDouble();
    return std::isfinite(number) ? QString::number(number, 'g', 12) : QString();
  }
  QString text = value.toString();
  // Names in a table come from strangers; a spreadsheet runs what begins like this.
  if (!text.isEmpty() && QStringLiteral("=+-@\t\r").contains(text.front())) text.prepend('\'');
  if (text.contains('"') || text.contains(',') || text.contains('\n') || text.contains('\r')) {
    text.replace(QLatin1Char('"'), QStringLiteral("\"\""));
    return '"' + text + '"';
  }
  return text;
}

QString csv_line(const QStringList& cells) { return cells.join(',') + QStringLiteral("\r\n"); }

class DataTable::Filter final : public QSortFilterProxyModel {
 public:
  using QSortFilterProxyModel::QSortFilterProxyModel;

  std::function<bool(int)> accepts;

  void refilter() { invalidateFilter(); }

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override {
    if (accepts && !accepts(row)) return false;
    return QSortFilterProxyModel::filterAcceptsRow(row, parent);
  }

  // Not known sorts below everything that is known.
  bool lessThan(const QModelIndex& left, const QModelIndex& right) const override {
    const QVariant a = left.data(kSortRole), b = right.data(kSortRole);
    if (is_number(a) && is_number(b)) {
      const double x = a.toDouble(), y = b.toDouble();
      if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && !std::isnan(y);
      return x < y;
    }
    return QSortFilterProxyModel::lessThan(left, right);
  }
};

DataTable::DataTable(QAbstractItemModel* model, const QString& name, const QString& title,
                     QWidget* parent)
    : QWidget(parent), model_(model), name_(name) {
  setObjectName(name);
  proxy_ = new Filter(this);
  proxy_->setSourceModel(model_);
  proxy_->setSortRole(kSortRole);
  proxy_->setSortCaseSensitivity(Qt::CaseInsensitive);
  proxy_->setSortLocaleAware(true);
  proxy_->setFilterCaseSensitivity(Qt::CaseInsensitive);
  proxy_->setFilterKeyColumn(-1);

  filter_ = new QLineEdit(this);
  filter_->setClearButtonEnabled(true);
  filter_->setMaximumWidth(320);
  copy_ = new QToolButton(this);
  save_ = new QToolButton(this);
  columns_ = new QToolButton(this);
  columns_->setPopupMode(QToolButton::InstantPopup);
  for (QToolButton* button : {copy_, save_, columns_}) {
    button->setToolButtonStyle(Qt::ToolButtonTextOnly);
    button->setFocusPolicy(Qt::TabFocus);
    button->setAutoRaise(true);
  }

  view_ = new QTableView(this);
  view_->setModel(proxy_);
  view_->setItemDelegate(new CellPainter(view_));
  // At first in the order of the model, and again after a third click.
  view_->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
  view_->horizontalHeader()->setSortIndicatorClearable(true);
  view_->setSortingEnabled(true);
  view_->setAlternatingRowColors(true);
  view_->setShowGrid(false);
  view_->setWordWrap(false);
  view_->setSelectionBehavior(QAbstractItemView::SelectRows);
  view_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  view_->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  view_->setTabKeyNavigation(false);
  view_->setContextMenuPolicy(Qt::CustomContextMenu);
  view_->setAccessibleName(title);
  view_->verticalHeader()->hide();
  view_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 12);
  view_->horizontalHeader()->setStretchLastSection(true);
  view_->horizontalHeader()->setHighlightSections(false);
  view_->horizontalHeader()->setSectionsMovable(true);
  view_->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  for (int column = 0; column < model_->columnCount(); ++column) {
    if (model_->headerData(column, Qt::Horizontal, kHiddenRole).toBool()) view_->hideColumn(column);
  }

  empty_ = new QLabel(this);
  empty_->setAlignment(Qt::AlignCenter);
  empty_->setWordWrap(true);
  empty_->setMargin(24);
  empty_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  empty_->setForegroundRole(QPalette::PlaceholderText);

  bar_ = new QWidget(this);
  bar_layout_ = new QHBoxLayout(bar_);
  bar_layout_->setContentsMargins(0, 0, 0, 0);
  bar_layout_->addWidget(filter_, 1);
  bar_layout_->addStretch();
  bar_layout_->addWidget(copy_);
  bar_layout_->addWidget(save_);
  bar_layout_->addWidget(columns_);

  body_ = new QWidget(this);
  stack_ = new QStackedLayout(body_);
  stack_->setContentsMargins(0, 0, 0, 0);
  stack_->addWidget(view_);
  stack_->addWidget(empty_);

  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(6);
  layout->addWidget(bar_);
  layout->addWidget(body_, 1);

  auto* copy_action = new QAction(this);
  copy_action->setShortcut(QKeySequence::Copy);
  copy_action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  view_->addAction(copy_action);
  auto* find_action = new QAction(this);
  find_action->setShortcut(QKeySequence::Find);
  find_action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  addAction(find_action);
  auto* columns_menu = new QMenu(columns_);
  columns_->setMenu(columns_menu);

  connect(copy_action, &QAction::triggered, this, &DataTable::copy_selected);
  connect(find_action, &QAction::triggered, this, [this] {
    filter_->setFocus();
    filter_->selectAll();
  });
  connect(copy_, &QToolButton::clicked, this, &DataTable::copy_selected);
  connect(save_, &QToolButton::clicked, this, &DataTable::ask_and_save);
  connect(columns_menu, &QMenu::aboutToShow, this, [this, columns_menu] {
    columns_menu->clear();
    fill_menu(columns_menu);
  });
  connect(filter_, &QLineEdit::textChanged, this, [this](const QString& text) {
    proxy_->setFilterFixedString(text);
    model_changed();
  });
  connect(view_, &QTableView::customContextMenuRequested, this, [this](QPoint at) {
    QMenu menu(view_);
    menu.addAction(tr("&Copy"), this, &DataTable::copy_selected)
        ->setEnabled(view_->selectionModel()->hasSelection());
    menu.addAction(tr("Select &all"), view_, &QTableView::selectAll);
    menu.addAction(tr("&Save as CSV…"), this, &DataTable::ask_and_save);
    fill_menu(menu.addMenu(tr("C&olumns")));
    menu.exec(view_->viewport()->mapToGlobal(at));
  });
  connect(view_->selectionModel(), &QItemSelectionModel::selectionChanged, this, [this] {
    copy_->setEnabled(view_->selectionModel()->hasSelection());
    Q_EMIT selection_changed();
  });
  // A reset forgets the selection: what was selected is found again by what it is.
  connect(model_, &QAbstractItemModel::modelAboutToBeReset, this,
          [this] { remembered_ = selected_identity(); });
  connect(model_, &QAbstractItemModel::modelReset, this, [this] {
    if (!remembered_.isEmpty()) select_identity(remembered_);
    model_changed();
  });
  connect(model_, &QAbstractItemModel::rowsInserted, this, &DataTable::model_changed);
  connect(model_, &QAbstractItemModel::rowsRemoved, this, &DataTable::model_changed);
  view_->viewport()->installEventFilter(this);
  view_->horizontalHeader()->viewport()->installEventFilter(this);
  connect(view_->horizontalHeader(), &QHeaderView::sectionResized, this, [this](int column) {
    const QHeaderView* const header = view_->horizontalHeader();
    const bool last = header->visualIndex(column) == header->count() - 1;  // It stretches.
    if (!fitting_ && !last && dragging_) widths_chosen_ = true;
  });
  retranslate();
  copy_->setEnabled(false);
  model_changed();
}

void DataTable::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange) retranslate();
  if (event->type() == QEvent::FontChange) {
    view_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 12);
    set_rows_shown(rows_shown_);
  }
  QWidget::changeEvent(event);
}

void DataTable::retranslate() {
  filter_->setPlaceholderText(tr("Filter"));
  filter_->setAccessibleName(tr("Filter of %1").arg(view_->accessibleName()));
  filter_->setToolTip(tr("Show only rows that contain this text (Ctrl+F)"));
  copy_->setText(tr("Copy"));
  copy_->setToolTip(tr("Copy the selected rows (Ctrl+C)"));
  copy_->setAccessibleName(tr("Copy the selected rows of %1").arg(view_->accessibleName()));
  save_->setText(tr("Save CSV…"));
  save_->setToolTip(tr("Save the rows shown as a file for spreadsheets"));
  save_->setAccessibleName(tr("Save %1 as CSV").arg(view_->accessibleName()));
  columns_->setText(tr("Columns"));
  columns_->setToolTip(tr("Choose the columns to show"));
  columns_->setAccessibleName(tr("Columns of %1").arg(view_->accessibleName()));
  model_changed();
}

void DataTable::set_empty_text(const QString& text) {
  empty_text_ = text;
  model_changed();
}

void DataTable::set_filter_text(const QString& text) { filter_->setText(text); }

void DataTable::set_row_filter(std::function<bool(int)> accepts) {
  proxy_->accepts = std::move(accepts);
  refilter();
}

void DataTable::refilter() {
  proxy_->refilter();
  model_changed();
}

void DataTable::sort_by(int column, Qt::SortOrder order) { view_->sortByColumn(column, order); }

void DataTable::add_control(QWidget* widget) { bar_layout_->insertWidget(1 + controls_++, widget); }

void DataTable::set_rows_shown(int rows) {
  rows_shown_ = rows;
  if (rows <= 0) return;
  const int height = view_->horizontalHeader()->sizeHint().height() +
                     rows * view_->verticalHeader()->defaultSectionSize() +
                     2 * view_->frameWidth() + 2;
  body_->setMinimumHeight(height);
  body_->setMaximumHeight(height);
}

void DataTable::show_bar(bool on) {
  bar_wanted_ = on;
  model_changed();
}

int DataTable::rows_visible() const { return proxy_->rowCount(); }

int DataTable::selected_row() const {
  const QModelIndexList rows = view_->selectionModel()->selectedRows();
  return rows.isEmpty() ? -1 : proxy_->mapToSource(rows.front()).row();
}

QString DataTable::selected_identity() const {
  const int row = selected_row();
  return row < 0 ? QString() : model_->index(row, 0).data(kIdentityRole).toString();
}

void DataTable::select_identity(const QString& identity) {
  for (int row = 0; row < proxy_->rowCount(); ++row) {
    const QModelIndex index = proxy_->index(row, 0);
    if (index.data(kIdentityRole).toString() != identity) continue;
    view_->selectionModel()->setCurrentIndex(
        index, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
    return;
  }
}

QString DataTable::csv() const {
  const QHeaderView* const header = view_->horizontalHeader();
  std::vector<int> columns;  // As they stand on the screen.
  for (int at = 0; at < header->count(); ++at) {
    const int column = header->logicalIndex(at);
    if (!view_->isColumnHidden(column)) columns.push_back(column);
  }
  QStringList cells;
  for (const int column : columns)
    cells += csv_cell(model_->headerData(column, Qt::Horizontal, kExportRole));
  QString text = csv_line(cells);
  for (int row = 0; row < proxy_->rowCount(); ++row) {
    cells.clear();
    for (const int column : columns)
      cells += csv_cell(proxy_->index(row, column).data(kExportRole));
    text += csv_line(cells);
  }
  return text;
}

QString DataTable::selected() const {
  const QHeaderView* const header = view_->horizontalHeader();
  QModelIndexList rows = view_->selectionModel()->selectedRows();
  std::ranges::sort(rows, {}, &QModelIndex::row);
  QString text;
  for (const QModelIndex& row : rows) {
    QStringList cells;
    for (int at = 0; at < header->count(); ++at) {
      const int column = header->logicalIndex(at);
      if (!view_->isColumnHidden(column))
        cells += row.siblingAtColumn(column).data().toString().simplified();
    }
    text += cells.join('\t') + '\n';
  }
  return text;
}

void DataTable::copy_selected() {
  const QString text = selected();
  if (!text.isEmpty()) QApplication::clipboard()->setText(text);
}

bool DataTable::save_csv(const QString& path, QString* problem) {
  QSaveFile file(path);
  if (file.open(QIODevice::WriteOnly)) {
    file.write(csv().toUtf8());
    if (file.commit()) return true;
  }
  *problem = file.errorString();
  return false;
}

void DataTable::ask_and_save() {
  auto* dialog = new QFileDialog(this, tr("Save as CSV"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setNameFilter(tr("Comma-separated values (*.csv)"));
  dialog->setDefaultSuffix(QStringLiteral("csv"));
  dialog->setDirectory(QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation));
  dialog->selectFile(QStringLiteral("shoal-%1.csv").arg(name_));
  connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& path) {
    QString problem;
    if (save_csv(path, &problem)) return;
    auto* box =
        new QMessageBox(QMessageBox::Warning, tr("Save as CSV"),
                        tr("%1 cannot be written: %2").arg(path, problem), QMessageBox::Ok, this);
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->open();
  });
  dialog->open();
}

void DataTable::fill_menu(QMenu* menu) {
  for (int column = 0; column < model_->columnCount(); ++column) {
    QAction* const action =
        menu->addAction(model_->headerData(column, Qt::Horizontal, Qt::DisplayRole).toString());
    action->setCheckable(true);
    action->setChecked(!view_->isColumnHidden(column));
    action->setEnabled(column != 0);  // One always stays.
    connect(action, &QAction::toggled, view_, [this, column](bool on) {
      view_->setColumnHidden(column, !on);
      fit_columns();
      keep_columns();
    });
  }
}

// The first rows decide the widths; later ones leave them alone.
void DataTable::size_columns() {
  if (sized_ || model_->rowCount() == 0) return;
  sized_ = true;
  fitting_ = true;
  if (widths_chosen_) {
    fitting_ = false;
    return;
  }
  view_->horizontalHeader()->setResizeContentsPrecision(kRowsMeasuredMax);
  view_->resizeColumnsToContents();
  for (int column = 0; column < model_->columnCount(); ++column) {
    const bool hidden = view_->isColumnHidden(column);
    if (hidden) view_->showColumn(column);
    widths_.push_back(std::min(view_->columnWidth(column) + kColumnSpace, kColumnWidthMax));
    if (hidden) view_->hideColumn(column);
  }
  fitting_ = false;
  fit_columns();
}

void DataTable::keep_columns_in(QSettings& settings) {
  settings_ = &settings;
  const QString group = QStringLiteral("tables/") + name_;
  const QVariantMap shown = settings.value(group + QStringLiteral("/columns")).toMap();
  const QVariantMap widths = settings.value(group + QStringLiteral("/widths")).toMap();
  fitting_ = true;
  for (int column = 0; column < model_->columnCount(); ++column) {
    const QString key = model_->headerData(column, Qt::Horizontal, kKeyRole).toString();
    // The first always stays; what is new since then is as its column says.
    if (shown.contains(key) && column != 0)
      view_->setColumnHidden(column, !shown.value(key).toBool());
    const int width = widths.value(key).toInt();
    if (width <= 0) continue;
    view_->setColumnWidth(column, std::min(width, kColumnWidthKeptMax));
    widths_chosen_ = true;
  }
  fitting_ = false;
}

void DataTable::keep_columns() {
  if (settings_ == nullptr) return;
  QVariantMap shown, widths;
  for (int column = 0; column < model_->columnCount(); ++column) {
    const QString key = model_->headerData(column, Qt::Horizontal, kKeyRole).toString();
    const bool hidden = view_->isColumnHidden(column);
    shown[key] = !hidden;
    if (widths_chosen_ && !hidden) widths[key] = view_->columnWidth(column);
  }
  const QString group = QStringLiteral("tables/") + name_;
  settings_->setValue(group + QStringLiteral("/columns"), shown);
  if (widths_chosen_) settings_->setValue(group + QStringLiteral("/widths"), widths);
}

// As wide as they like, if there is room; else the widest texts give way, numbers never. Once the
// owner has moved one, all stay as they are.
void DataTable::fit_columns() {
  if (!sized_ || widths_chosen_) return;
  std::vector<int> widths = widths_;
  std::vector<size_t> shown;  // Of those that may give way.
  int sum = 0;
  for (size_t i = 0; i < widths.size(); ++i) {
    const int column = static_cast<int>(i);
    if (view_->isColumnHidden(column)) continue;
    sum += widths[i];
    const auto alignment = model_->headerData(column, Qt::Horizontal, Qt::TextAlignmentRole);
    if ((alignment.toInt() & Qt::AlignLeft) != 0) shown.push_back(i);
  }
  const int room = view_->viewport()->width();
  while (sum > room && !shown.empty()) {
    const size_t widest =
        *std::ranges::max_element(shown, {}, [&widths](size_t i) { return widths[i]; });
    if (widths[widest] <= kColumnWidthMin) break;  // Then it scrolls.
    const int less = std::min(8, widths[widest] - kColumnWidthMin);
    widths[widest] -= less;
    sum -= less;
  }
  fitting_ = true;
  for (size_t i = 0; i < widths.size(); ++i) {
    const int column = static_cast<int>(i);
    if (!view_->isColumnHidden(column)) view_->setColumnWidth(column, widths[i]);
  }
  fitting_ = false;
}

bool DataTable::eventFilter(QObject* watched, QEvent* event) {
  if (watched == view_->viewport() && event->type() == QEvent::Resize) fit_columns();
  if (watched == view_->horizontalHeader()->viewport()) {
    if (event->type() == QEvent::MouseButtonPress || event->type() == QEvent::MouseButtonDblClick)
      dragging_ = true;
    if (event->type() == QEvent::MouseButtonRelease) {
      dragging_ = false;
      if (widths_chosen_) keep_columns();
    }
  }
  return QWidget::eventFilter(watched, event);
}

void DataTable::model_changed() {
  size_columns();
  const bool none = proxy_->rowCount() == 0;
  const bool filtered = none && model_->rowCount() > 0;
  empty_->setText(filtered ? tr("No row fits the filter.") : empty_text_);
  stack_->setCurrentWidget(none ? static_cast<QWidget*>(empty_) : view_);
  save_->setEnabled(!none);
  // Nothing to filter, copy or save: then the bar is only in the way.
  bar_->setVisible(bar_wanted_ && (model_->rowCount() > 0 || controls_ > 0));
}

}  // namespace shoal::ui
