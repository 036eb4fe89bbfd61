// The pages behind the overview, on a client with a story: what they show and what they ask for.
// With SHOAL_SHOTS=FOLDER in the environment, `shots` leaves a picture of each there.

#include <QAbstractItemView>
#include <QAccessible>
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>

#include "tests/ui/ui_support.h"
#include "ui/column.h"
#include "ui/theme.h"
#include "ui/widgets/chart.h"
#include "ui/widgets/data_table.h"

namespace shoal::ui {
namespace {

// A page on a window of its own, fed as Window feeds it.
class Stage {
 public:
  Stage(const char* key, FakeAgent::Story story, bool connect = true) {
    if (connect) agent_ = std::make_unique<FakeAgent>(place_.socket_path(), story);
    for (const PageSpec& spec : page_list()) {
      if (QLatin1String(spec.key) == QLatin1String(key))
        page_.reset(spec.make(place_.context(), nullptr));
    }
    QObject::connect(&place_.link, &AgentLink::snapshot_arrived, page_.get(),
                     [this](const SnapshotPtr& snapshot) { page_->show_snapshot(snapshot); });
    QObject::connect(&place_.link, &AgentLink::state_changed, page_.get(), [this](LinkState state) {
      if (state != LinkState::kConnected) page_->show_disconnected();
    });
    page_->resize(810, 660);
    page_->show();
    if (connect) place_.wait_for_snapshot();
  }

  Page& page() { return *page_; }
  FakeAgent& agent() { return *agent_; }
  UiPlace& place() { return place_; }

  template <class T>
  T* find(const char* name) {
    return page_->findChild<T*>(QString::fromLatin1(name));
  }
  DataTable* table(const char* name) { return find<DataTable>(name); }

  bool heard(const std::string& call) {
    return QTest::qWaitFor([&] { return std::ranges::count(agent_->calls(), call) > 0; }, 5'000);
  }
  bool shows_rows(const char* name, int rows) {
    return QTest::qWaitFor([&] { return table(name)->rows_visible() == rows; }, 5'000);
  }

 private:
  UiPlace place_;
  std::unique_ptr<FakeAgent> agent_;
  std::unique_ptr<Page> page_;
};

constexpr const char* kPages[] = {"statistics", "work"};

// Every text that can be read on a widget now.
QStringList visible_texts(QWidget& widget) {
  QStringList texts;
  for (const QLabel* label : widget.findChildren<QLabel*>()) {
    if (label->isVisible() && !label->text().isEmpty()) texts += label->text();
  }
  return texts;
}

}  // namespace

class PageContentTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_page_says_that_no_client_runs();
  void every_page_is_itself_when_empty();
  void every_column_renders_and_sorts();
  void every_control_has_a_name();
  void shots();

  void statistics_add_up();
  void a_total_is_verified();
  void work_is_listed_with_its_reasons();
};

void PageContentTest::every_page_says_that_no_client_runs() {
  for (const char* key : kPages) {
    Stage stage(key, FakeAgent::Story::kEmpty, /*connect=*/false);
    const QStringList texts = visible_texts(stage.page());
    QVERIFY2(texts.contains("Shoal does not run"), key);
  }
}

void PageContentTest::every_page_is_itself_when_empty() {
  for (const char* key : kPages) {
    Stage stage(key, FakeAgent::Story::kEmpty);
    QTRY_VERIFY2(!visible_texts(stage.page()).contains("Shoal does not run"), key);
    QVERIFY2(!visible_texts(stage.page()).isEmpty(), key);
    stage.agent().kill();
    QTRY_VERIFY2(visible_texts(stage.page()).contains("Shoal does not run"), key);
    stage.agent().start();
    stage.place().link.retry();
    QTRY_VERIFY2(!visible_texts(stage.page()).contains("Shoal does not run"), key);
  }
}

void PageContentTest::every_column_renders_and_sorts() {
  for (const char* key : kPages) {
    Stage stage(key, FakeAgent::Story::kFull);
    QTest::qWait(200);  // For the answers to what the page asked.
    int tables = 0;
    for (DataTable* table : stage.page().findChildren<DataTable*>()) {
      ++tables;
      QAbstractItemModel* const model = table->view()->model();
      for (int column = 0; column < model->columnCount(); ++column) {
        const QString title = model->headerData(column, Qt::Horizontal).toString();
        QVERIFY2(!title.isEmpty(), qPrintable(table->objectName()));
        table->view()->showColumn(column);
        for (const auto order : {Qt::AscendingOrder, Qt::DescendingOrder}) {
          table->sort_by(column, order);
          for (int row = 0; row + 1 < model->rowCount(); ++row) {
            const QVariant a = model->index(row, column).data(kSortRole);
            const QVariant b = model->index(row + 1, column).data(kSortRole);
            if (a.typeId() == QMetaType::QString || std::isnan(a.toDouble()) ||
                std::isnan(b.toDouble()))
              continue;
            const bool right = order == Qt::AscendingOrder ? a.toDouble() <= b.toDouble()
                                                           : a.toDouble() >= b.toDouble();
            QVERIFY2(right, qPrintable(table->objectName() + ' ' + title));
          }
        }
        for (int row = 0; row < model->rowCount(); ++row)
          QVERIFY(model->index(row, column).data().typeId() == QMetaType::QString);
      }
      // As many cells on each line as in the head, however hostile the texts are.
      QVERIFY(table->csv().count("\r\n") == model->rowCount() + 1);
    }
    QVERIFY2(tables > 0, key);
    stage.page().grab();  // Everything paints.
  }
}

void PageContentTest::every_control_has_a_name() {
  for (const char* key : kPages) {
    Stage stage(key, FakeAgent::Story::kFull);
    QTest::qWait(200);
    for (QWidget* widget : stage.page().findChildren<QWidget*>()) {
      if (widget->focusPolicy() == Qt::NoFocus || widget->objectName().startsWith("qt_")) continue;
      if (qobject_cast<QHeaderView*>(widget) != nullptr ||
          qobject_cast<QScrollArea*>(widget) != nullptr)
        continue;
      // Parts of Qt's own controls speak through the control.
      if (widget->parentWidget() != nullptr &&
          (widget->parentWidget()->inherits("QAbstractSpinBox") ||
           widget->parentWidget()->inherits("QComboBox") ||
           widget->parentWidget()->inherits("QComboBoxPrivateContainer")))
        continue;
      QAccessibleInterface* const reader = QAccessible::queryAccessibleInterface(widget);
      if (reader == nullptr) continue;
      const QString name = reader->text(QAccessible::Name);
      QVERIFY2(!name.isEmpty(),
               qPrintable(QString("%1: a %2 (%3) in %4")
                              .arg(key, widget->metaObject()->className(), widget->objectName(),
                                   widget->parentWidget()->metaObject()->className())));
    }
  }
}

void PageContentTest::shots() {
  const QString folder = qEnvironmentVariable("SHOAL_SHOTS");
  if (folder.isEmpty()) return;  // Only for eyes.
  QDir().mkpath(folder);
  Theme theme(*qobject_cast<QApplication*>(qApp));
  for (const bool dark : {false, true}) {
    theme.set_desktop(dark, false, true);
    for (const char* key : kPages) {
      for (const auto story : {FakeAgent::Story::kFull, FakeAgent::Story::kEmpty}) {
        Stage stage(key, story);
        QTest::qWait(700);
        const QString name =
            QString("%1/%2_%3_%4")
                .arg(folder, key, story == FakeAgent::Story::kFull ? "full" : "empty",
                     dark ? "dark" : "light");
        stage.page().grab().save(name + ".png");
        if (story == FakeAgent::Story::kEmpty) continue;
        // The whole of a page that scrolls.
        for (QScrollArea* area : stage.page().findChildren<QScrollArea*>()) {
          if (!area->isVisible() || area->verticalScrollBar()->maximum() == 0) continue;
          stage.page().resize(
              810, area->widget()->height() + stage.page().height() - area->viewport()->height());
          QTest::qWait(100);
          stage.page().grab().save(name + "_long.png");
        }
      }
    }
  }
}

void PageContentTest::statistics_add_up() {
  Stage stage("statistics", FakeAgent::Story::kFull);
  QVERIFY(stage.heard("statistics"));
  QVERIFY(stage.shows_rows("statistics_devices", 2));
  auto* chart = stage.find<Chart>("statistics_credit");
  QTRY_VERIFY(!chart->is_empty());
  QCOMPARE(chart->table()->rows_visible(), 7);
  // The chart's steps and the table by device are the same sum.
  const auto sum_of = [](DataTable* table, int column) {
    double sum = 0;
    const QAbstractItemModel* model = table->view()->model();
    for (int row = 0; row < model->rowCount(); ++row)
      sum += model->index(row, column).data(kSortRole).toDouble();
    return sum;
  };
  const double steps = sum_of(chart->table(), 1);
  QVERIFY(steps > 0);
  QVERIFY(std::abs(steps - sum_of(stage.table("statistics_devices"), 1)) < 1e-6);
  // One device alone is less.
  auto* devices = stage.find<QComboBox>("device");
  devices->setCurrentIndex(devices->findData("cpu"));
  const double alone = sum_of(chart->table(), 1);
  QVERIFY(alone > 0 && alone < steps);
  // Another time has other steps.
  stage.find<QPushButton>("range_0")->click();
  QTRY_COMPARE(chart->table()->rows_visible(), 24);
  stage.find<QPushButton>("range_2")->click();
  QTRY_COMPARE(chart->table()->rows_visible(), 30);
}

void PageContentTest::a_total_is_verified() {
  Stage stage("statistics", FakeAgent::Story::kFull);
  QVERIFY(stage.shows_rows("receipts", 40));
  stage.find<QPushButton>("verify")->click();
  QVERIFY(stage.heard("verifyReceipts"));
  QVERIFY(stage.shows_rows("receipt_reports", 2));
  QVERIFY(stage.find<QLabel>("verified")->text().contains("Not every total"));
  stage.agent().fail("verifyReceipts", "the records cannot be read");
  stage.find<QPushButton>("verify")->click();
  QTRY_VERIFY(stage.find<QLabel>("verified")->text().contains("cannot be read"));
  QVERIFY(stage.find<QPushButton>("verify")->isEnabled());
}

void PageContentTest::work_is_listed_with_its_reasons() {
  Stage stage("work", FakeAgent::Story::kFull);
  QVERIFY(stage.shows_rows("work", 2));
  QVERIFY(stage.shows_rows("transfers", 2));
  QVERIFY(stage.shows_rows("history", 60));
  QVERIFY(stage.table("transfers")->csv().contains("Progress (0-1)"));
  stage.agent().fail("history", "the records cannot be read");
  stage.agent().change([](rpc::Snapshot::Builder snapshot) { snapshot.initWork(0); });
  QVERIFY(stage.shows_rows("work", 0));
  QTRY_VERIFY(visible_texts(stage.page()).join('\n').contains("cannot be read"));
}

}  // namespace shoal::ui

QTEST_MAIN(shoal::ui::PageContentTest)
#include "page_content_test.moc"
