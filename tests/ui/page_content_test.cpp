// The pages behind the overview, on a client with a story: what they show and what they ask for.

#include <QAbstractItemView>
#include <QAccessible>
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QPointer>
#include <QPushButton>
#include <QRadioButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSignalSpy>
#include <QSlider>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "tests/ui/ui_support.h"
#include "ui/column.h"
#include "ui/widgets/chart.h"
#include "ui/widgets/data_table.h"
#include "ui/widgets/setting_editor.h"
#include "ui/widgets/setting_looks.h"
#include "ui/widgets/timeline.h"

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

constexpr const char* kPages[] = {"statistics", "work", "devices", "rules", "coordinators", "log"};

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

  void statistics_add_up();
  void a_total_is_verified();
  void work_is_listed_with_its_reasons();

  void a_device_is_lent_and_measured();
  void a_refusal_of_a_device_is_told();
  void a_mode_is_chosen_for_a_time();
  void a_setting_is_changed_or_refused_in_place();
  void every_setting_of_the_client_has_an_editor_and_a_name();
  void a_wanted_setting_is_shown();
  void last_week_is_a_timeline_and_a_table();
  void what_if_asks_and_applies();
  void the_sources_of_idle_time_are_tested();
  void hidden_sections_of_the_rules_rest();
  void another_machine_is_paired_by_the_command_line();
  void a_coordinator_is_looked_at_then_joined();
  void consent_cards_stay_while_figures_change();
  void consent_is_given_for_each_class();
  void what_credit_is_worth_is_shown_where_it_is();
  void a_coordinator_is_left_only_after_a_question();
  void the_log_is_filtered_and_followed();
  void a_bundle_is_shown_before_it_is_saved();
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
    QVERIFY(stage.place().wait_for_answers());
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
    QVERIFY(stage.place().wait_for_answers());
    for (QWidget* widget : stage.page().findChildren<QWidget*>()) {
      if ((widget->focusPolicy() & Qt::TabFocus) == 0) continue;
      if (widget->isHidden()) continue;
      const auto* area = qobject_cast<QAbstractScrollArea*>(widget->parentWidget());
      if (area != nullptr && area->viewport() == widget) continue;  // It speaks through the area.
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

void PageContentTest::statistics_add_up() {
  Stage stage("statistics", FakeAgent::Story::kFull);
  QVERIFY(stage.heard("statistics 86400000"));
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
  // Asked for as fine as they are shown, and no finer.
  QVERIFY(stage.place().wait_for_answers());
  const auto calls = stage.agent().calls();
  QCOMPARE(std::ranges::count(calls, std::string("statistics 3600000")), 1);
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
  // A unit of a job among the stages.
  stage.agent().change([](rpc::Snapshot::Builder snapshot) {
    auto unit = snapshot.getWork()[1].initUnit();
    unit.setId(12);
    unit.setItemsDone(3);
    unit.setItems(40);
  });
  QTRY_VERIFY2(stage.table("work")->csv().contains("unit 12, 3 of 40 items"),
               qPrintable(stage.table("work")->csv()));
  QVERIFY(stage.table("work")->csv().contains("9 to 20"));
  stage.agent().fail("history", "the records cannot be read");
  stage.agent().change([](rpc::Snapshot::Builder snapshot) { snapshot.initWork(0); });
  QVERIFY(stage.shows_rows("work", 0));
  QTRY_VERIFY(visible_texts(stage.page()).join('\n').contains("cannot be read"));
}

void PageContentTest::a_device_is_lent_and_measured() {
  Stage stage("devices", FakeAgent::Story::kFull);
  QVERIFY(stage.shows_rows("devices", 3));
  stage.table("devices")->select_identity("cpu");
  auto* lend = stage.find<QCheckBox>("lend");
  QVERIFY(lend->isChecked());
  lend->click();
  QVERIFY(stage.heard("setDeviceLent cpu false"));
  QTRY_VERIFY(visible_texts(stage.page()).join('\n').contains("is not lent"));
  QVERIFY(!lend->isChecked());
  // Refused, it is as it was, and the reason is there.
  stage.agent().fail("setDeviceLent", "the settings cannot be written");
  lend->click();
  QTRY_VERIFY(stage.find<QLabel>("problem")->text().contains("cannot be written"));
  QTRY_VERIFY(!lend->isChecked());

  stage.find<QPushButton>("measure")->click();
  QVERIFY(!stage.find<QPushButton>("measure")->isEnabled());
  QVERIFY(stage.heard("benchmark cpu"));
  QTRY_VERIFY(stage.find<QPushButton>("measure")->isEnabled());
  stage.agent().fail("benchmark", "its worker ended");
  stage.find<QPushButton>("measure")->click();
  QTRY_VERIFY(stage.find<QLabel>("problem")->text().contains("worker ended"));
}

void PageContentTest::a_refusal_of_a_device_is_told() {
  Stage stage("devices", FakeAgent::Story::kFull);
  QVERIFY(stage.shows_rows("devices", 3));
  stage.table("devices")->select_identity("vulkan:gpu1");
  QVERIFY(visible_texts(stage.page()).join('\n').contains("matmul q8_0 gave other bits"));
}

void PageContentTest::a_mode_is_chosen_for_a_time() {
  Stage stage("rules", FakeAgent::Story::kFull);
  auto* mode = stage.find<QComboBox>("mode_0");
  auto* time = stage.find<QComboBox>("time_0");
  QTRY_VERIFY(mode->isVisible());
  const auto choose = [](QComboBox* box, int index) {
    box->setCurrentIndex(index);
    Q_EMIT box->activated(index);
  };
  time->setCurrentIndex(time->findData(qint64{3'600'000}));
  choose(mode, mode->findData(int(rpc::Mode::PAUSED)));
  QVERIFY(stage.heard("setMode gpu paused 3600000"));
  choose(time, time->findData(qint64{0}));
  QVERIFY(stage.heard("setMode gpu paused 0"));
  choose(mode, mode->findData(int(rpc::Mode::BY_RULES)));
  QVERIFY(stage.heard("setMode gpu byRules 0"));
}

void PageContentTest::a_setting_is_changed_or_refused_in_place() {
  Stage stage("rules", FakeAgent::Story::kFull);
  QTRY_VERIFY(stage.find<SettingEditor>("rules.idle_seconds") != nullptr);
  auto* editor = stage.find<SettingEditor>("rules.idle_seconds");
  auto* box = editor->findChild<QDoubleSpinBox*>();
  box->setValue(240);
  QVERIFY(stage.heard("changeSettings rules.idle_seconds"));
  QTRY_VERIFY(editor->problem().isEmpty());
  stage.agent().fail("changeSettings", "rules.idle_seconds: too long for this test");
  box->setValue(300);
  QTRY_VERIFY2(editor->problem().contains("too long for this test"), qPrintable(editor->problem()));
  QCOMPARE(box->value(), 300.0);  // What was asked stays, to be mended.
}

void PageContentTest::every_setting_of_the_client_has_an_editor_and_a_name() {
  Stage stage("rules", FakeAgent::Story::kFull);
  QTRY_VERIFY(stage.find<SettingEditor>("rules.idle_seconds") != nullptr);
  const auto editors = stage.page().findChildren<SettingEditor*>();
  QVERIFY(editors.size() > 40);
  for (const SettingEditor* editor : editors)
    QVERIFY2(find_setting_look(editor->key()) != nullptr, qPrintable(editor->key()));
  // No name stands for a setting that is gone.
  for (const SettingLook& look : setting_looks())
    QVERIFY2(stage.find<SettingEditor>(look.key) != nullptr, look.key);
}

void PageContentTest::a_wanted_setting_is_shown() {
  Stage stage("rules", FakeAgent::Story::kFull);
  stage.page().show_detail("energy.price_max");  // Before the settings are here.
  QTRY_VERIFY(stage.find<SettingEditor>("energy.price_max") != nullptr);
  QTRY_VERIFY(stage.find<SettingEditor>("energy.price_max")->isVisible());
  QVERIFY(!stage.find<SettingEditor>("rules.idle_seconds")->isVisible());
}

void PageContentTest::last_week_is_a_timeline_and_a_table() {
  Stage stage("rules", FakeAgent::Story::kFull);
  stage.find<QListWidget>("sections")->setCurrentRow(1);
  auto* timeline = stage.find<Timeline>("timeline");
  QTRY_COMPARE(timeline->lanes().size(), size_t{3});
  QTRY_VERIFY(timeline->lanes()[0].spans.size() > 5);
  timeline->setFocus();
  QTest::keyClick(timeline, Qt::Key_Home);
  QVERIFY(timeline->accessibleDescription().contains("Graphics cards"));
  QVERIFY(visible_texts(stage.page()).contains(timeline->accessibleDescription()));
  stage.find<QToolButton>("trace_table")->click();
  QVERIFY(stage.table("trace")->isVisible());
  QVERIFY(!timeline->isVisible());
  QVERIFY(stage.table("trace")->rows_visible() > 15);
}

void PageContentTest::what_if_asks_and_applies() {
  Stage stage("rules", FakeAgent::Story::kFull);
  stage.find<QListWidget>("sections")->setCurrentRow(1);
  auto* limit = stage.find<QComboBox>("what_if_limit");
  auto* slider = stage.find<QSlider>("what_if_slider");
  auto* apply = stage.find<QPushButton>("what_if_apply");
  QTRY_VERIFY(limit->count() > 5);
  QVERIFY(!apply->isEnabled());  // As it is now.
  QVERIFY(stage.heard("whatIf rules.idle_seconds"));
  QTRY_VERIFY(stage.find<QLabel>("what_if_0")->text().contains("52.0 h"));
  slider->setValue(slider->minimum());
  QVERIFY(apply->isEnabled());
  apply->click();
  QVERIFY(stage.heard("changeSettings rules.idle_seconds"));
  QTRY_VERIFY(!apply->isEnabled());
  stage.agent().fail("whatIf", "nothing is recorded");
  slider->setValue(slider->maximum());
  QTRY_VERIFY(stage.find<QLabel>("what_if_problem")->text().contains("is recorded"));
}

void PageContentTest::the_sources_of_idle_time_are_tested() {
  Stage stage("rules", FakeAgent::Story::kFull);
  stage.find<QListWidget>("sections")->setCurrentRow(2);
  QTRY_VERIFY(stage.find<QPushButton>("test_idle")->isVisible());
  QTRY_VERIFY(stage.table("idle_sources")->rows_visible() > 0);
  stage.find<QPushButton>("test_idle")->click();
  QVERIFY(stage.heard("testSensor idle"));
  QTRY_VERIFY(stage.find<QPushButton>("test_idle")->isEnabled());
}

// Goal: sections that nobody looks at cost the client and the window nothing.
void PageContentTest::hidden_sections_of_the_rules_rest() {
  Stage stage("rules", FakeAgent::Story::kFull);
  QTRY_VERIFY(stage.find<SettingEditor>("rules.idle_seconds") != nullptr);
  QVERIFY(stage.place().wait_for_answers());
  const auto count = [&stage](const std::string& call) {
    return std::ranges::count_if(stage.agent().calls(),
                                 [&](const std::string& one) { return one.starts_with(call); });
  };
  for (const char* call : {"trace", "whatIf", "pairings"}) QCOMPARE(count(call), 0);
  QCOMPARE(count("settings"), 1);  // The page's own, not one for each card.
  QCOMPARE(stage.table("idle_sources")->rows_visible(), 0);
  auto* sections = stage.find<QListWidget>("sections");
  sections->setCurrentRow(1);
  QVERIFY(stage.heard("trace"));
  QVERIFY(stage.heard("whatIf rules.idle_seconds"));
  QCOMPARE(count("pairings"), 0);
  sections->setCurrentRow(sections->count() - 1);
  QVERIFY(stage.heard("pairings"));
}

void PageContentTest::another_machine_is_paired_by_the_command_line() {
  Stage stage("rules", FakeAgent::Story::kFull);
  stage.agent().change([](rpc::Snapshot::Builder snapshot) { snapshot.setRemoteListens(true); });
  auto* sections = stage.find<QListWidget>("sections");
  sections->setCurrentRow(sections->count() - 1);
  QVERIFY(stage.shows_rows("pairings", 1));
  QTRY_VERIFY(stage.find<QPushButton>("pair")->isEnabled());
  const auto asked = [&stage] {
    return std::ranges::count(stage.agent().calls(), std::string("pairings"));
  };
  QVERIFY(stage.place().wait_for_answers());
  auto before = asked();
  stage.find<QPushButton>("pair")->click();
  auto* url = stage.find<QLabel>("pair_url");
  QTRY_VERIFY(url->isVisible());
  QVERIFY2(
      url->text().contains("shoal-client --remote 'shoal+pair://willow:7411/?pin=abc&token=def'"),
      qPrintable(url->text()));
  QTRY_VERIFY(asked() > before);
  QVERIFY(stage.place().wait_for_answers());
  before = asked();
  stage.table("pairings")->select_identity("1");
  stage.find<QPushButton>("unpair")->click();
  QVERIFY(stage.heard("unpair 1"));
  QTRY_VERIFY(asked() > before);
}

void PageContentTest::a_coordinator_is_looked_at_then_joined() {
  Stage stage("coordinators", FakeAgent::Story::kEmpty);
  auto* url = stage.find<QLineEdit>("url");
  auto* look = stage.find<QPushButton>("look");
  QTRY_VERIFY(url->isVisible());
  QVERIFY(!look->isEnabled());
  stage.agent().fail("previewAttach", "the pin does not fit");
  url->setText("shoal://library.example:7410/?pin=abc");
  look->click();
  QTRY_VERIFY(stage.find<QLabel>("join_problem")->text().contains("pin does not fit"));
  QVERIFY(stage.find<QPushButton>("join") == nullptr);
  stage.agent().fail("previewAttach", "");
  look->click();
  QTRY_VERIFY(stage.find<QPushButton>("join") != nullptr);
  const auto calls = stage.agent().calls();
  QVERIFY(std::ranges::none_of(calls, [](const auto& call) { return call.starts_with("attach"); }));
  QVERIFY(visible_texts(stage.page()).join('\n').contains("can read the text"));
  // What the owner does not want is denied before anything is told of this computer.
  stage.find<QRadioButton>("deny_gemma-2-9b")->click();
  stage.find<QPushButton>("join")->click();
  QVERIFY(stage.heard("attach shoal://library.example:7410/?pin=abc"));
  QVERIFY(stage.heard("attach deny gemma-2-9b"));
  QCOMPARE(std::ranges::count_if(stage.agent().calls(),
                                 [](const auto& call) { return call.starts_with("attach deny"); }),
           1);
  QTRY_VERIFY(url->text().isEmpty());
}

void PageContentTest::consent_cards_stay_while_figures_change() {
  Stage stage("coordinators", FakeAgent::Story::kFull);
  QTRY_VERIFY(stage.find<QRadioButton>("deny_qwen3-0.6b") != nullptr);
  const QPointer<QRadioButton> before = stage.find<QRadioButton>("deny_qwen3-0.6b");
  before->setFocus();
  for (int watts = 93; watts < 96; ++watts) {
    stage.agent().change([watts](rpc::Snapshot::Builder snapshot) {
      snapshot.getDevices()[0].setWatts(static_cast<float>(watts));
    });
    QTRY_VERIFY2(visible_texts(stage.page())
                     .join('\n')
                     .contains(QString("%1\u00a0W while").arg(watts + 150 + 45)),
                 qPrintable(visible_texts(stage.page()).join('\n')));
    QCOMPARE(stage.find<QRadioButton>("deny_qwen3-0.6b"), before.data());
    QVERIFY(before->hasFocus() || !stage.page().isActiveWindow());
  }
  // Two answers under way at once do not undo each other.
  stage.agent().hang();
  before->click();
  stage.find<QRadioButton>("allow_gemma-2-9b")->click();
  stage.page().show_snapshot(stage.place().link.snapshot());
  QVERIFY(before->isChecked());
  QVERIFY(stage.find<QRadioButton>("allow_gemma-2-9b")->isChecked());
  stage.agent().wake();
  QVERIFY(stage.heard("setConsent qwen3-0.6b deny"));
  QVERIFY(stage.heard("setConsent gemma-2-9b allow"));
  QVERIFY(stage.place().wait_for_answers());
  QTRY_COMPARE(stage.place().link.snapshot()->reader().getConnections()[0].getDenied().size(), 1u);
  QVERIFY(before->isChecked());
  QVERIFY(stage.find<QRadioButton>("allow_gemma-2-9b")->isChecked());
}

void PageContentTest::consent_is_given_for_each_class() {
  Stage stage("coordinators", FakeAgent::Story::kFull);
  QTRY_VERIFY(stage.find<QRadioButton>("deny_gemma-2-9b") != nullptr);
  QVERIFY(stage.find<QRadioButton>("deny_gemma-2-9b")->isChecked());
  QVERIFY(stage.find<QRadioButton>("allow_qwen3-0.6b")->isChecked());
  stage.find<QRadioButton>("deny_qwen3-0.6b")->click();
  QVERIFY(stage.heard("setConsent qwen3-0.6b deny"));
  stage.find<QRadioButton>("allow_gemma-2-9b")->click();
  QVERIFY(stage.heard("setConsent gemma-2-9b allow"));
  QTRY_VERIFY(stage.find<QRadioButton>("allow_gemma-2-9b")->isChecked());
  // Refused, it is as it was.
  stage.agent().fail("setConsent", "the state cannot be written");
  stage.find<QRadioButton>("deny_gemma-2-9b")->click();
  QTRY_VERIFY(visible_texts(stage.page()).join('\n').contains("cannot be written"));
  QTRY_VERIFY(stage.find<QRadioButton>("allow_gemma-2-9b")->isChecked());
}

void PageContentTest::what_credit_is_worth_is_shown_where_it_is() {
  Stage stage("coordinators", FakeAgent::Story::kFull);
  QVERIFY(stage.shows_rows("coordinators", 2));
  const QString csv = stage.table("coordinators")->csv();
  QVERIFY2(csv.contains(QLocale().toString(644.25, 'f', 2) + " points"), qPrintable(csv));
  QCOMPARE(csv.count(" points"), 1);
  stage.table("coordinators")->select_identity("shoal://library.example:7410/");
  const QString whose = "This computer belongs to account ann, team reds, group lab.";
  QTRY_VERIFY(visible_texts(stage.page()).join('\n').contains(whose));
  stage.table("coordinators")->select_identity("shoal://lab.example:7410/");
  QTRY_VERIFY(!visible_texts(stage.page()).join('\n').contains("belongs to"));
}

void PageContentTest::a_coordinator_is_left_only_after_a_question() {
  Stage stage("coordinators", FakeAgent::Story::kFull);
  QVERIFY(stage.shows_rows("coordinators", 2));
  stage.find<QPushButton>("leave")->click();
  auto* box = stage.page().findChild<QMessageBox*>();
  QVERIFY(box != nullptr);
  QVERIFY(std::ranges::none_of(stage.agent().calls(),
                               [](const auto& call) { return call.starts_with("detach"); }));
  box->findChild<QPushButton*>("leave_now")->click();
  QVERIFY(stage.heard("detach shoal://library.example:7410/"));
}

void PageContentTest::the_log_is_filtered_and_followed() {
  Stage stage("log", FakeAgent::Story::kFull);
  QVERIFY(stage.shows_rows("log", 240));
  auto* bar = stage.table("log")->view()->verticalScrollBar();
  QTRY_COMPARE(bar->value(), bar->maximum());
  // New lines are added to those that are there, which stay as they are.
  const QAbstractItemModel* shown = stage.table("log")->view()->model();
  QSignalSpy reset(shown, &QAbstractItemModel::modelReset);
  QSignalSpy changed(shown, &QAbstractItemModel::dataChanged);
  stage.agent().set_log_lines(245);
  QVERIFY(stage.shows_rows("log", 245));
  QTRY_COMPARE(bar->value(), bar->maximum());
  QCOMPARE(reset.count() + changed.count(), 0);
  stage.find<QComboBox>("level")->setCurrentIndex(2);
  QCOMPARE(stage.table("log")->rows_visible(), 49);
  stage.find<QComboBox>("level")->setCurrentIndex(1);
  QCOMPARE(stage.table("log")->rows_visible(), 98);
  auto* modules = stage.find<QComboBox>("module");
  modules->setCurrentIndex(modules->findData("link"));
  QCOMPARE(stage.table("log")->rows_visible(), 49);
  modules->setCurrentIndex(0);
  stage.find<QComboBox>("level")->setCurrentIndex(0);
  stage.table("log")->set_filter_text("signal 9");
  QCOMPARE(stage.table("log")->rows_visible(), 49);
}

void PageContentTest::a_bundle_is_shown_before_it_is_saved() {
  Stage stage("log", FakeAgent::Story::kFull);
  QVERIFY(stage.shows_rows("log", 240));
  stage.find<QPushButton>("bundle")->click();
  QVERIFY(stage.heard("bundle"));
  QTRY_VERIFY(stage.find<QPlainTextEdit>("bundle_text") != nullptr);
  QVERIFY(stage.find<QPlainTextEdit>("bundle_text")->toPlainText().contains("[devices]"));
  QVERIFY(stage.find<QPlainTextEdit>("bundle_text")->isReadOnly());
}

}  // namespace shoal::ui

QTEST_MAIN(shoal::ui::PageContentTest)
#include "page_content_test.moc"
