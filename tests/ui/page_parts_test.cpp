// The parts that pages are made of, without a client: tables, week grid, timeline, chart, settings.

#include <capnp/message.h>
#include <QAccessible>
#include <QApplication>
#include <QClipboard>
#include <QDoubleSpinBox>
#include <QFile>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QMouseEvent>
#include <QSettings>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>
#include <cmath>
#include <limits>

#include "ui/column.h"
#include "ui/tables.h"
#include "ui/translations.h"
#include "ui/widgets/chart.h"
#include "ui/widgets/data_table.h"
#include "ui/widgets/setting_editor.h"
#include "ui/widgets/timeline.h"
#include "ui/widgets/week_grid.h"

namespace shoal::ui {
namespace {

struct Fish {
  QString name;
  double weight = 0;
  int id = 0;
};

std::vector<Column<Fish>> fish_columns() {
  return {
      {.key = "name", .title = "Name", .text = [](const Fish& fish) { return fish.name; }},
      {.key = "weight",
       .title = "Weight",
       .text = [](const Fish& fish) { return QString::number(fish.weight) + " kg"; },
       .sort_key = [](const Fish& fish) { return QVariant(fish.weight); },
       .alignment = Qt::AlignRight,
       .unit = "kg"},
      {.key = "id",
       .title = "Id",
       .text = [](const Fish& fish) { return QString::number(fish.id); },
       .hidden = true},
  };
}

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct FishTable {
  TableModel<Fish> model{fish_columns(), [](const Fish& fish) { return QString::number(fish.id); }};
  DataTable table{&model, "fish", "Fish"};

  void set(std::vector<Fish> rows) { model.set_rows(nullptr, std::move(rows)); }
  QStringList names() {
    QStringList names;
    const QAbstractItemModel* shown = table.view()->model();
    for (int row = 0; row < shown->rowCount(); ++row)
      names += shown->index(row, 0).data().toString();
    return names;
  }
};

int count_of(const WeekHours::Grid& grid) {
  int count = 0;
  for (const auto& day : grid) count += static_cast<int>(std::ranges::count(day, true));
  return count;
}

// A message with one setting, of which a test fills in what it is about.
struct OneSetting {
  capnp::MallocMessageBuilder message;
  rpc::Setting::Builder setting = message.initRoot<rpc::Setting>();

  explicit OneSetting(const char* key) {
    setting.setKey(key);
    setting.setHelp("What it is for.");
    setting.setMinimum(-std::numeric_limits<double>::infinity());
    setting.setMaximum(std::numeric_limits<double>::infinity());
  }
};

}  // namespace

class PagePartsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_spreadsheet_reads_what_was_written();
  void a_table_sorts_by_value_and_puts_the_unknown_last();
  void a_table_shows_what_fits_the_filter();
  void a_table_says_what_to_do_when_it_is_empty();
  void a_selection_outlives_an_update();
  void copying_takes_the_selected_rows();
  void a_file_that_cannot_be_written_is_told();
  void a_list_that_grows_lets_its_oldest_go();
  void columns_stay_as_the_owner_put_them();
  void a_unit_is_told_from_a_stage();
  void the_week_is_painted_by_mouse();
  void the_week_is_painted_by_keyboard();
  void a_screen_reader_knows_every_half_hour();
  void the_timeline_is_walked_by_keyboard();
  void a_chart_has_its_figures_as_a_table();
  void a_number_is_held_within_its_limits();
  void bytes_stay_exact_until_they_are_changed();
  void hours_go_to_a_setting_and_back();
  void a_refusal_is_shown_in_place();
  void a_list_is_edited_without_doubles();
};

void PagePartsTest::a_spreadsheet_reads_what_was_written() {
  QCOMPARE(csv_cell("plain"), "plain");
  QCOMPARE(csv_cell("a,b"), "\"a,b\"");
  QCOMPARE(csv_cell("say \"hi\""), "\"say \"\"hi\"\"\"");
  QCOMPARE(csv_cell("two\nlines"), "\"two\nlines\"");
  QCOMPARE(csv_cell(QString()), "");
  // A name from a stranger is no formula; a number below zero is a number.
  QCOMPARE(csv_cell("=1+1"), "'=1+1");
  QCOMPARE(csv_cell("@cmd,x"), "\"'@cmd,x\"");
  QCOMPARE(csv_cell(-1.5), "-1.5");
  QCOMPARE(csv_cell(qint64{-3}), "-3");
  QCOMPARE(csv_cell(kUnknown), "");

  FishTable fish;
  fish.set({{"cod", 2.5, 1}, {"a,b", kUnknown, 2}});
  QCOMPARE(fish.table.csv(), "Name,Weight (kg)\r\ncod,2.5\r\n\"a,b\",\r\n");
}

void PagePartsTest::a_table_sorts_by_value_and_puts_the_unknown_last() {
  FishTable fish;
  fish.set({{"cod", 10, 1}, {"eel", 9, 2}, {"ray", kUnknown, 3}, {"bass", 100, 4}});
  fish.table.sort_by(1, Qt::DescendingOrder);
  QCOMPARE(fish.names(), QStringList({"bass", "cod", "eel", "ray"}));
  fish.table.sort_by(0, Qt::AscendingOrder);
  QCOMPARE(fish.names(), QStringList({"bass", "cod", "eel", "ray"}));
  fish.table.sort_by(0, Qt::DescendingOrder);
  QCOMPARE(fish.names(), QStringList({"ray", "eel", "cod", "bass"}));
}

void PagePartsTest::a_table_shows_what_fits_the_filter() {
  FishTable fish;
  fish.set({{"cod", 10, 1}, {"eel", 9, 2}, {"codling", 1, 3}});
  fish.table.set_filter_text("COD");
  QCOMPARE(fish.names(), QStringList({"cod", "codling"}));
  fish.table.set_row_filter([&fish](int row) { return fish.model.rows()[size_t(row)].weight > 5; });
  QCOMPARE(fish.names(), QStringList({"cod"}));
  fish.table.set_filter_text("shark");
  QCOMPARE(fish.table.rows_visible(), 0);
  fish.table.set_filter_text({});
  fish.table.set_row_filter({});
  QCOMPARE(fish.table.rows_visible(), 3);
}

void PagePartsTest::a_table_says_what_to_do_when_it_is_empty() {
  FishTable fish;
  fish.table.resize(400, 300);
  fish.table.set_empty_text("Go fishing.");
  fish.table.show();
  const auto said = [&fish] {
    for (const QLabel* label : fish.table.findChildren<QLabel*>()) {
      if (label->isVisible()) return label->text();
    }
    return QString();
  };
  QCOMPARE(said(), "Go fishing.");
  fish.set({{"cod", 1, 1}});
  QVERIFY(fish.table.view()->isVisible());
  QCOMPARE(said(), QString());
  fish.table.set_filter_text("shark");
  QVERIFY(!said().isEmpty());
  QVERIFY(said() != "Go fishing.");
}

void PagePartsTest::a_selection_outlives_an_update() {
  FishTable fish;
  fish.set({{"cod", 10, 1}, {"eel", 9, 2}});
  fish.table.select_identity("2");
  QCOMPARE(fish.table.selected_row(), 1);
  fish.set({{"eel", 8, 2}, {"bass", 7, 3}});  // Others are here now: the rows are new.
  QCOMPARE(fish.table.selected_identity(), "2");
  QCOMPARE(fish.table.selected_row(), 0);
  fish.set({{"eel", 8, 2}, {"bass", 7, 3}, {"ray", 1, 4}});  // Only more of them.
  QCOMPARE(fish.table.selected_identity(), "2");
  fish.set({{"ray", 1, 4}});
  QCOMPARE(fish.table.selected_row(), -1);
}

void PagePartsTest::copying_takes_the_selected_rows() {
  FishTable fish;
  fish.set({{"cod", 10, 1}, {"eel", 9, 2}});
  fish.table.select_identity("2");
  fish.table.copy_selected();
  QCOMPARE(QApplication::clipboard()->text(), "eel\t9 kg\n");
}

void PagePartsTest::a_file_that_cannot_be_written_is_told() {
  FishTable fish;
  fish.set({{"cod", 10, 1}});
  QTemporaryDir folder;
  QString problem;
  QVERIFY(fish.table.save_csv(folder.filePath("fish.csv"), &problem));
  QFile file(folder.filePath("fish.csv"));
  QVERIFY(file.open(QIODevice::ReadOnly));
  QCOMPARE(file.readAll(), "Name,Weight (kg)\r\ncod,10\r\n");
  QVERIFY(!fish.table.save_csv(folder.filePath("none/fish.csv"), &problem));
  QVERIFY(!problem.isEmpty());
}

void PagePartsTest::a_list_that_grows_lets_its_oldest_go() {
  FishTable fish;
  auto message = std::make_shared<const int>(1);
  const std::weak_ptr<const int> held = message;
  QSignalSpy reset(&fish.model, &QAbstractItemModel::modelReset);
  fish.model.append_rows(nullptr, {}, 4);
  QCOMPARE(fish.table.rows_visible(), 0);
  fish.model.append_rows(std::move(message), {{"cod", 1, 1}, {"eel", 2, 2}}, 4);
  fish.model.append_rows(nullptr, {{"ray", 3, 3}, {"bass", 4, 4}}, 4);
  QCOMPARE(fish.names(), QStringList({"cod", "eel", "ray", "bass"}));
  QCOMPARE(fish.model.dropped(), size_t{0});
  fish.table.select_identity("4");
  QVERIFY(!held.expired());
  fish.model.append_rows(nullptr, {{"hake", 5, 5}}, 4);
  QCOMPARE(fish.names(), QStringList({"ray", "bass", "hake"}));
  QCOMPARE(fish.model.dropped(), size_t{2});
  QVERIFY(held.expired());  // What nobody borrows from any more is let go.
  QCOMPARE(fish.table.selected_identity(), "4");
  QCOMPARE(reset.count(), 0);
  // One message that alone is too long stays whole.
  fish.model.append_rows(nullptr,
                         {{"a", 1, 6}, {"b", 1, 7}, {"c", 1, 8}, {"d", 1, 9}, {"e", 1, 10}}, 4);
  QCOMPARE(fish.table.rows_visible(), 5);
  fish.set({});
  QCOMPARE(fish.model.dropped(), size_t{0});
}

void PagePartsTest::columns_stay_as_the_owner_put_them() {
  QTemporaryDir folder;
  QSettings settings(folder.filePath("window.conf"), QSettings::IniFormat);
  {
    FishTable fish;
    fish.table.keep_columns_in(settings);
    fish.table.resize(600, 300);
    fish.set({{"cod", 10, 1}});
    fish.table.show();
    auto* header = fish.table.view()->horizontalHeader();
    QWidget* ground = header->viewport();
    const QPoint edge(header->sectionViewportPosition(0) + header->sectionSize(0) - 1, 5);
    const int before = header->sectionSize(0);
    const auto move = [ground](QPoint to, Qt::MouseButtons buttons) {
      QMouseEvent event(QEvent::MouseMove, to, ground->mapToGlobal(to), Qt::NoButton, buttons, {});
      QApplication::sendEvent(ground, &event);
    };
    move(edge, Qt::NoButton);
    QTest::mousePress(ground, Qt::LeftButton, {}, edge);
    move(edge + QPoint(57, 0), Qt::LeftButton);
    QTest::mouseRelease(ground, Qt::LeftButton, {}, edge + QPoint(57, 0));
    QCOMPARE(header->sectionSize(0), before + 57);
    settings.setValue("wanted", header->sectionSize(0));
    // What the table does by itself is no choice of the owner's, and takes none away.
    fish.table.resize(500, 300);
    QCOMPARE(header->sectionSize(0), before + 57);
    QAction* id = nullptr;
    auto* menu = fish.table.findChild<QMenu*>();
    Q_EMIT menu->aboutToShow();
    for (QAction* action : menu->actions()) {
      if (action->text() == "Id") id = action;
    }
    QVERIFY(id != nullptr && !id->isChecked());
    id->trigger();
  }
  FishTable next;
  next.table.keep_columns_in(settings);
  next.table.resize(600, 300);
  next.set({{"cod", 10, 1}});
  next.table.show();
  QVERIFY(!next.table.view()->isColumnHidden(2));
  QCOMPARE(next.table.view()->columnWidth(0), settings.value("wanted").toInt());
}

void PagePartsTest::a_unit_is_told_from_a_stage() {
  capnp::MallocMessageBuilder message;
  auto work = message.initRoot<rpc::Snapshot::Work>();
  work.setFirstFragment(3);
  work.setLastFragment(11);
  const Millis now{1'764'500'000'000};
  const auto text = [&](const char* key, bool tip = false) {
    const WorkRow row{work.asReader(), "GPU", now};
    for (const auto& column : work_columns()) {
      if (QLatin1String(column.key) == QLatin1String(key))
        return tip ? column.tip(row) : column.text(row);
    }
    return QString();
  };
  QCOMPARE(text("fragments"), "4 to 12");
  auto unit = work.initUnit();
  unit.setId(12);
  unit.setItemsDone(3);
  unit.setItems(40);
  unit.setUntilMs(now.count + 3'600'000);
  unit.setEstimateMs(720'000);
  QCOMPARE(text("fragments"), "unit 12, 3 of 40 items");
  QVERIFY2(text("fragments", true).contains("about 12 min"), qPrintable(text("fragments", true)));
  QVERIFY(text("fragments", true).contains("wanted back by"));
  // After a start it is not known until when: that is no day in 1970.
  unit.setUntilMs(0);
  QVERIFY2(!text("fragments", true).contains("wanted back by") &&
               text("fragments", true).contains("about 12 min"),
           qPrintable(text("fragments", true)));
  capnp::MallocMessageBuilder past_message;
  auto past = past_message.initRoot<rpc::PastWork>();
  past.setUnitId(12);
  for (const auto& column : past_work_columns()) {
    if (QLatin1String(column.key) == QLatin1String("fragments"))
      QCOMPARE(column.text({past.asReader(), "GPU", now}), "unit 12");
  }
  const QLocale usual;
  const Translations german(*qApp, QLocale("de_DE"));
  const QString said = text("fragments");
  QLocale::setDefault(usual);
  QCOMPARE(said, "Einheit 12, 3 von 40 Elementen");
}

void PagePartsTest::the_week_is_painted_by_mouse() {
  WeekGrid grid;
  grid.resize(grid.sizeHint());
  grid.show();
  QSignalSpy edited(&grid, &WeekGrid::edited);
  const auto at = [&grid](int day, int slot) {
    return grid.visualRect(grid.model()->index(day, slot)).center();
  };
  QTest::mousePress(grid.viewport(), Qt::LeftButton, {}, at(0, 16));
  for (const QPoint to : {at(6, 47), at(4, 33)}) {  // QTest's own moves have no button down.
    QMouseEvent move(QEvent::MouseMove, to, grid.viewport()->mapToGlobal(to), Qt::NoButton,
                     Qt::LeftButton, {});
    QApplication::sendEvent(grid.viewport(), &move);
  }
  QCOMPARE(edited.count(), 0);  // One stroke, one edit.
  QTest::mouseRelease(grid.viewport(), Qt::LeftButton, {}, at(4, 33));
  QCOMPARE(edited.count(), 1);
  QCOMPARE(grid.count(), 5 * 18);
  QCOMPARE(WeekHours::of_grid(grid.hours()).format(),
           std::vector<std::string>{"mon-fri 08:00-17:00"});
  // A stroke that begins on what is on switches off.
  QTest::mousePress(grid.viewport(), Qt::LeftButton, {}, at(2, 20));
  QTest::mouseRelease(grid.viewport(), Qt::LeftButton, {}, at(2, 20));
  QCOMPARE(grid.count(), 5 * 18 - 1);
  QVERIFY(!grid.hours()[2][20]);
}

void PagePartsTest::the_week_is_painted_by_keyboard() {
  WeekGrid grid;
  grid.resize(grid.sizeHint());
  grid.show();
  grid.setCurrentIndex(grid.model()->index(1, 0));
  QTest::keyClick(&grid, Qt::Key_Right);
  QTest::keyClick(&grid, Qt::Key_Right);
  QTest::keyClick(&grid, Qt::Key_Space);
  QCOMPARE(grid.count(), 1);
  QVERIFY(grid.hours()[1][2]);
  QTest::keyClick(&grid, Qt::Key_Down, Qt::ShiftModifier);
  QTest::keyClick(&grid, Qt::Key_Right, Qt::ShiftModifier);
  QTest::keyClick(&grid, Qt::Key_Space);
  QCOMPARE(grid.count(), 4);
  QVERIFY(grid.hours()[1][2] && grid.hours()[2][3]);
  QTest::keyClick(&grid, Qt::Key_Space);
  QCOMPARE(grid.count(), 0);
}

void PagePartsTest::a_screen_reader_knows_every_half_hour() {
  WeekGrid grid;
  WeekHours::Grid hours = {};
  hours[0][16] = true;
  grid.set_hours(hours);
  QAccessibleInterface* const reader = QAccessible::queryAccessibleInterface(&grid);
  QVERIFY(reader != nullptr);
  QVERIFY(!reader->text(QAccessible::Name).isEmpty());
  QVERIFY(!reader->text(QAccessible::Description).isEmpty());
  QCOMPARE(reader->tableInterface()->rowCount(), 7);
  QCOMPARE(reader->tableInterface()->columnCount(), 48);
  const QString on = reader->tableInterface()->cellAt(0, 16)->text(QAccessible::Name);
  QVERIFY2(on.contains("Monday") && on.contains("on"), qPrintable(on));
  const QString off = reader->tableInterface()->cellAt(6, 47)->text(QAccessible::Name);
  QVERIFY2(off.contains("Sunday") && off.contains("off"), qPrintable(off));
}

void PagePartsTest::the_timeline_is_walked_by_keyboard() {
  Timeline timeline;
  timeline.resize(600, 120);
  timeline.set_lanes(0, 100,
                     {{"GPU",
                       {{0, 40, SpanKind::kWorking, "worked"},
                        {40, 41, SpanKind::kPaused, "paused"},
                        {41, 100, SpanKind::kWaiting, "waited"}}},
                      {"CPU", {{0, 100, SpanKind::kOffline, "was offline"}}}});
  timeline.show();
  QSignalSpy told(&timeline, &Timeline::current_changed);
  timeline.setFocus();
  QTest::keyClick(&timeline, Qt::Key_Home);
  QCOMPARE(timeline.current()->text, "worked");
  QTest::keyClick(&timeline, Qt::Key_Left);  // Nothing is before the first.
  QCOMPARE(timeline.current()->text, "worked");
  QTest::keyClick(&timeline, Qt::Key_Right);
  QCOMPARE(timeline.current()->text, "paused");
  QCOMPARE(timeline.accessibleDescription(), "paused");
  QTest::keyClick(&timeline, Qt::Key_Down);
  QCOMPARE(timeline.current()->text, "was offline");
  QTest::keyClick(&timeline, Qt::Key_Up);
  QTest::keyClick(&timeline, Qt::Key_End);
  QCOMPARE(timeline.current()->text, "waited");
  QCOMPARE(told.last().front().toString(), "waited");
  // Half of the width, on the first lane.
  QCOMPARE(timeline.span_at({590, 8})->text, "waited");
  QVERIFY(timeline.span_at({590, 119}) == nullptr);
}

void PagePartsTest::a_chart_has_its_figures_as_a_table() {
  Chart chart(ChartKind::kLines, "heat");
  chart.resize(500, 240);
  chart.set_title("Heat");
  chart.set_empty_text("No figures yet.");
  chart.show();
  QVERIFY(chart.is_empty());
  chart.set_data({.step_title = "Hour",
                  .steps = {"one", "two", "three"},
                  .axis_labels = {"1", "2", "3"},
                  .series = {{"GPU", {60, kUnknown, 70.5}}}},
                 "°C", [](double value) { return QString::number(value); });
  QVERIFY(!chart.is_empty());
  QVERIFY(!chart.table_shown());
  QTest::mouseClick(chart.findChild<QToolButton*>(), Qt::LeftButton);
  QVERIFY(chart.table_shown());
  QVERIFY(chart.table()->isVisible());
  QCOMPARE(chart.table()->csv(),
           QString::fromUtf8("Hour,GPU (°C)\r\none,60\r\ntwo,\r\nthree,70.5\r\n"));
}

void PagePartsTest::a_number_is_held_within_its_limits() {
  OneSetting one("rules.idle_seconds");
  one.setting.initValue().setInteger(180);
  one.setting.initFallback().setInteger(180);
  one.setting.setMinimum(5);
  one.setting.setMaximum(86'400);
  SettingEditor editor(one.setting.asReader());
  auto* box = editor.findChild<QDoubleSpinBox*>();
  QVERIFY(box->accessibleName().size() > 0);
  QCOMPARE(box->minimum(), 5.0);
  QCOMPARE(box->maximum(), 86'400.0);
  QSignalSpy changed(&editor, &SettingEditor::changed);
  box->setValue(1);
  QVERIFY(changed.wait(2'000));
  QVERIFY(changed.last()[1].value<SettingValue>() == SettingValue(int64_t{5}));
}

void PagePartsTest::bytes_stay_exact_until_they_are_changed() {
  OneSetting one("cache.bytes_max");
  one.setting.initValue().setInteger(int64_t{20} << 30);
  one.setting.initFallback().setInteger(int64_t{20} << 30);
  one.setting.setMinimum(1 << 20);
  SettingEditor editor(one.setting.asReader());
  QVERIFY(editor.control()->value() == SettingValue(int64_t{20} << 30));
  editor.findChild<QDoubleSpinBox*>()->setValue(2.5);
  QVERIFY(editor.control()->value() == SettingValue(int64_t{2'500'000'000}));
  editor.findChild<QDoubleSpinBox*>()->setValue(0);  // Below the limit: never less than it.
  QVERIFY(std::get<int64_t>(editor.control()->value()) >= 1 << 20);
}

void PagePartsTest::hours_go_to_a_setting_and_back() {
  OneSetting one("rules.compute_hours");
  auto list = one.setting.initValue().initList(1);
  list.set(0, "mon-fri 22:00-06:00");
  one.setting.initFallback().initList(0);
  SettingEditor editor(one.setting.asReader());
  editor.show();
  auto* grid = editor.findChild<WeekGrid*>();
  QCOMPARE(count_of(grid->hours()), 5 * 16);
  QSignalSpy changed(&editor, &SettingEditor::changed);
  grid->setCurrentIndex(grid->model()->index(6, 0));
  QTest::keyClick(grid, Qt::Key_Space);
  QVERIFY(changed.wait(2'000));
  const auto value = changed.last()[1].value<SettingValue>();
  const Result<WeekHours> week = WeekHours::parse(std::get<std::vector<std::string>>(value));
  QVERIFY(week.ok());
  QVERIFY(week.value().grid() == grid->hours());
  QCOMPARE(count_of(grid->hours()), 5 * 16 + 1);
}

void PagePartsTest::a_refusal_is_shown_in_place() {
  OneSetting one("remote.listen");
  one.setting.initValue().setText("");
  one.setting.initFallback().setText("");
  SettingEditor editor(one.setting.asReader());
  editor.show();
  QSignalSpy changed(&editor, &SettingEditor::changed);
  auto* edit = editor.findChild<QLineEdit*>();
  QTest::keyClicks(edit, "nonsense");
  QTest::keyClick(edit, Qt::Key_Return);
  QVERIFY(changed.wait(2'000));
  editor.set_answer("It has no port.");
  QCOMPARE(editor.problem(), "It has no port.");
  // News from the client do not take away what was typed and has to be mended.
  editor.set_setting(one.setting.asReader());
  QCOMPARE(edit->text(), "nonsense");
  // The way back takes the problem away.
  for (QToolButton* button : editor.findChildren<QToolButton*>()) button->click();
  editor.set_setting(one.setting.asReader());
  QCOMPARE(edit->text(), "");
  QVERIFY(editor.problem().isEmpty());
}

void PagePartsTest::a_list_is_edited_without_doubles() {
  OneSetting one("rules.exclusive_programs");
  one.setting.initValue().initList(0);
  one.setting.initFallback().initList(0);
  SettingEditor editor(one.setting.asReader());
  QSignalSpy changed(&editor, &SettingEditor::changed);
  auto* edit = editor.findChild<QLineEdit*>();
  for (const char* name : {"blender", "blender", " ", "game"}) {
    edit->setText(name);
    QTest::keyClick(edit, Qt::Key_Return);
  }
  QVERIFY(changed.wait(2'000));
  QVERIFY(changed.last()[1].value<SettingValue>() ==
          SettingValue(std::vector<std::string>{"blender", "game"}));
}

}  // namespace shoal::ui

QTEST_MAIN(shoal::ui::PagePartsTest)
#include "page_parts_test.moc"
