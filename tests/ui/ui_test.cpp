#include <QAbstractButton>
#include <QAccessible>
#include <QDir>
#include <QElapsedTimer>
#include <QFile>
#include <QLineEdit>
#include <QListWidget>
#include <QRadioButton>
#include <QSignalSpy>
#include <QTimer>
#include <QToolButton>

#include "schema/message.h"
#include "tests/ui/ui_checks.h"
#include "tests/ui/ui_support.h"
#include "ui/contribute.h"
#include "ui/pages/overview_parts.h"
#include "ui/shell.h"
#include "ui/switch.h"
#include "ui/tables.h"
#include "ui/translations.h"

using namespace shoal;

namespace {

// A window with a fake client behind it.
struct UiWindow {
  explicit UiWindow(FakeAgent::Story story) : agent(place.socket_path(), story) {
    // What the guide would ask first is asked in tests of its own.
    place.settings.setValue("guide/done", true);
    autostart =
        std::make_unique<ui::Autostart>("/usr/bin/shoal", place.folder.filePath("autostart"));
    notices = std::make_unique<ui::Notices>(place.clock, place.settings);
    theme = std::make_unique<ui::Theme>(*qApp);
    window = std::make_unique<ui::Window>(place.context(),
                                          ui::WindowParts{*theme, *notices, *autostart});
  }
  void show() {
    window->show();
    QVERIFY(QTest::qWaitForWindowExposed(window.get()));
    QVERIFY(place.wait_for_snapshot());
  }
  template <class T>
  T* find(const QString& accessible_name) {
    for (T* widget : window->findChildren<T*>()) {
      if (widget->accessibleName() == accessible_name && widget->isVisible()) return widget;
    }
    return nullptr;
  }
  QPushButton* button(const QString& text) {
    for (auto* one : window->findChildren<QPushButton*>()) {
      if (QString(one->text()).remove('&') == text && one->isVisible()) return one;
    }
    return nullptr;
  }
  // Whether the client was asked this, within five seconds.
  bool asked(const std::string& call) {
    return QTest::qWaitFor(
        [&] {
          const auto calls = agent.calls();
          return std::find(calls.begin(), calls.end(), call) != calls.end();
        },
        5'000);
  }

  UiPlace place;
  FakeAgent agent;
  std::unique_ptr<ui::Autostart> autostart;
  std::unique_ptr<ui::Notices> notices;
  std::unique_ptr<ui::Theme> theme;
  std::unique_ptr<ui::Window> window;
};

// How late the worst tick of a 16 ms timer was by this thread's own doing, while the event loop
// ran: what the thread waited for a processor is another program's.
class Heartbeat : public QObject {
 public:
  Heartbeat() {
    since_.start();
    waited_ms_ = waited_for_processor_ms();
    timer_.setTimerType(Qt::PreciseTimer);
    connect(&timer_, &QTimer::timeout, this, [this] {
      const qint64 waited = waited_for_processor_ms();
      worst_ = std::max(worst_, since_.restart() - 16 - (waited - waited_ms_));
      waited_ms_ = waited;
      ++ticks_;
    });
    timer_.start(16);
  }
  qint64 worst_ms() const { return worst_; }
  // Whether it ticks so many times more.
  bool beats(int count) {
    const int wanted = ticks_ + count;
    return QTest::qWaitFor([&] { return ticks_ >= wanted; }, 10'000);
  }

 private:
  // As the kernel counts it: on the processor, waiting for one (ns), turns.
  static qint64 waited_for_processor_ms() {
    QFile file("/proc/thread-self/schedstat");
    if (!file.open(QIODevice::ReadOnly)) return 0;
    return file.readAll().split(' ').value(1).toLongLong() / 1'000'000;
  }

  QTimer timer_;
  QElapsedTimer since_;
  qint64 worst_ = 0, waited_ms_ = 0;
  int ticks_ = 0;
};

// For a person to look at: SHOAL_PICTURES=folder tests/ui_test every_page_in_every_form
void keep_picture(QWidget& widget, const QString& name) {
  const QString folder = qEnvironmentVariable("SHOAL_PICTURES");
  if (folder.isEmpty()) return;
  QDir().mkpath(folder);
  widget.grab().save(folder + "/" + name + ".png");
}

}  // namespace

class UiTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { QAccessible::setActive(true); }

  // Goal: no page is cut off, lies over itself or is dumb for a screen reader, whatever the client
  // has to tell, in each language and each palette. Run once more at 200 % by ctest.
  void every_page_in_every_form_data() {
    QTest::addColumn<int>("story");  // 0 empty, 1 full, 2 no client.
    QTest::addColumn<QString>("language");
    QTest::addColumn<bool>("dark");
    QTest::addColumn<bool>("contrast");
    QTest::newRow("empty, light, English") << 0 << "en" << false << false;
    QTest::newRow("full, light, English") << 1 << "en" << false << false;
    QTest::newRow("full, dark, German") << 1 << "de" << true << false;
    QTest::newRow("empty, dark, German") << 0 << "de" << true << false;
    QTest::newRow("no client, light, German") << 2 << "de" << false << false;
    QTest::newRow("full, high contrast, English") << 1 << "en" << true << true;
  }
  void every_page_in_every_form() {
    QFETCH(int, story);
    QFETCH(QString, language);
    QFETCH(bool, dark);
    QFETCH(bool, contrast);
    const ui::Translations translations(*qApp, QLocale(language));
    UiWindow ui(story == 0 ? FakeAgent::Story::kEmpty : FakeAgent::Story::kFull);
    ui.theme->set_desktop(dark, contrast, true);
    if (story == 2) ui.agent.kill();
    ui.window->resize(1'100, 760);
    ui.window->show();
    if (story == 2) {
      QVERIFY(ui.place.wait_for(ui::LinkState::kAbsent));
    } else {
      QVERIFY(ui.place.wait_for_snapshot());
    }
    QStringList wrong;
    // Layouts come to rest some turns of the loop after an answer: how many, nobody promises. What
    // is still wrong after seconds is wrong.
    const auto check = [&](const QString& place) {
      QVERIFY(ui.place.wait_for_answers());
      QStringList findings;
      static_cast<void>(QTest::qWaitFor(
          [&] {
            findings = clipped_widgets(*ui.window) + overlapping_widgets(*ui.window) +
                       widgets_beyond_their_parents(*ui.window) + unnamed_controls(*ui.window);
            return findings.isEmpty();
          },
          3'000));
      for (const QString& finding : findings) wrong += place + ": " + finding;
      keep_picture(*ui.window,
                   QString("%1-%2").arg(place, QTest::currentDataTag()).replace(", ", "-"));
    };
    QStringList keys;
    for (const ui::PageSpec& page : ui::page_list()) keys += page.key;
    keys += "about";
    for (const QString& key : keys) {
      ui.window->open_page(key);
      check(key);
      auto* sections = ui.window->findChild<QListWidget*>("sections");
      for (int row = 1; sections->isVisible() && row < sections->count(); ++row) {
        sections->setCurrentRow(row);
        check(QString("%1 %2").arg(key).arg(row));
      }
    }
    wrong.removeDuplicates();
    QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
  }

  // --- Overview ---

  void the_big_switch_pauses_and_resumes_everything() {
    UiWindow ui(FakeAgent::Story::kFull);
    ui.show();
    auto* contribute = ui.find<ui::Switch>("Contribute");
    QVERIFY(contribute != nullptr);
    QTRY_VERIFY(contribute->isChecked());
    QTest::mouseClick(contribute, Qt::LeftButton);
    for (const char* resource : {"gpu", "cpu", "network"}) {
      QVERIFY(ui.asked(std::string("setMode ") + resource + " paused 0"));
    }
    QTRY_VERIFY(!contribute->isChecked());
    QTRY_VERIFY(ui.button("Resume") != nullptr);
    QTest::keyClick(contribute, Qt::Key_Space);
    QVERIFY(ui.asked("resume gpu"));
    QTRY_VERIFY(contribute->isChecked());
  }

  // Goal: a snapshot that left the client before the order does not turn the switch back.
  void the_switch_stays_as_it_was_put_until_the_client_agrees() {
    UiPlace place;
    FakeAgent agent(place.socket_path(), FakeAgent::Story::kFull);
    QVERIFY(place.wait_for_snapshot());
    ui::StateCard card(place.link, place.clock, nullptr);
    card.show();
    const ui::SnapshotPtr before = place.link.snapshot();
    card.show_snapshot(before->reader());
    auto* contribute = card.findChild<ui::Switch*>();
    QVERIFY(contribute->isChecked());
    QTest::mouseClick(contribute, Qt::LeftButton);
    QVERIFY(!contribute->isChecked());
    card.show_snapshot(before->reader());
    QVERIFY(!contribute->isChecked());
    QVERIFY(place.wait_for_answers());
    card.show_snapshot(before->reader());
    QVERIFY(!contribute->isChecked());
    // Once the client has said the same, what it says holds.
    QTRY_VERIFY(!ui::is_contributing(place.link.snapshot()->reader()));
    card.show_snapshot(place.link.snapshot()->reader());
    QVERIFY(!contribute->isChecked());
    card.show_snapshot(before->reader());
    QVERIFY(contribute->isChecked());
    // An order that is refused is none, and is told once.
    QSignalSpy failed(&card, &ui::StateCard::failed);
    agent.fail("setMode", "the disk is full");
    QTest::mouseClick(contribute, Qt::LeftButton);
    QTRY_VERIFY(contribute->isChecked());
    QVERIFY(place.wait_for_answers());
    QCOMPARE(failed.count(), 1);
  }

  void what_the_owner_should_know_stands_on_the_overview_until_it_is_closed() {
    UiWindow ui(FakeAgent::Story::kFull);
    ui.show();
    auto* notices = ui.window->findChild<ui::Banner*>("notices");
    QVERIFY(notices != nullptr && !notices->isVisible());
    const auto tell = [&](const char* file) {
      ui.agent.change([file](rpc::Snapshot::Builder snapshot) {
        auto list = snapshot.initNotices(2);
        write_message({"records.damaged", {std::string(file)}}, list[0]);
        write_message({"records.consents_lost", {std::string("no header")}}, list[1]);
      });
    };
    tell("records.db.1");
    QTRY_VERIFY(notices->isVisible());
    QVERIFY2(notices->text().contains("were set aside as records.db.1"),
             qPrintable(notices->text()));
    QVERIFY2(notices->text().contains("Look through them under Coordinators"),
             qPrintable(notices->text()));
    for (auto* cross : notices->findChildren<QToolButton*>()) cross->click();
    QVERIFY(!notices->isVisible());
    ui.agent.change([](rpc::Snapshot::Builder snapshot) { snapshot.setCacheBytes(5); });
    QTRY_COMPARE(ui.place.link.snapshot()->reader().getCacheBytes(), uint64_t{5});
    QVERIFY(!notices->isVisible());
    tell("records.db.2");
    QTRY_VERIFY(notices->isVisible());
    ui.agent.change([](rpc::Snapshot::Builder snapshot) { snapshot.initNotices(0); });
    QTRY_VERIFY(!notices->isVisible());
  }

  void the_window_stands_where_it_stood() {
    UiWindow ui(FakeAgent::Story::kEmpty);
    ui.show();
    ui.window->resize(1'134, 777);
    const QByteArray wanted = ui.window->saveGeometry();
    QVERIFY(ui.place.settings.value("window/geometry").toByteArray() != wanted);
    ui.window->hide();
    QCOMPARE(ui.place.settings.value("window/geometry").toByteArray(), wanted);
  }

  void a_mode_is_chosen_for_one_resource() {
    UiWindow ui(FakeAgent::Story::kFull);
    ui.show();
    QAbstractButton* always = nullptr;
    QTRY_VERIFY((always = ui.find<QAbstractButton>("Graphics cards: always")) != nullptr);
    QTest::mouseClick(always, Qt::LeftButton);
    QVERIFY(ui.asked("setMode gpu always 0"));
  }

  void a_time_to_leave_by_is_set_and_taken_back() {
    UiWindow ui(FakeAgent::Story::kFull);
    ui.show();
    QPushButton* set = nullptr;
    QTRY_VERIFY((set = ui.button("Set")) != nullptr);
    QTest::mouseClick(set, Qt::LeftButton);
    QTRY_VERIFY(ui.place.link.snapshot()->reader().getLeaveByMs() >
                ui.place.clock.now_wall().count);
    QPushButton* clear = nullptr;
    QTRY_VERIFY((clear = ui.button("No longer")) != nullptr);
    QTest::mouseClick(clear, Qt::LeftButton);
    QVERIFY(ui.asked("setLeaveBy 0"));
  }

  void what_the_client_refuses_is_said_on_the_page() {
    UiWindow ui(FakeAgent::Story::kFull);
    ui.show();
    ui.agent.fail("setMode", "the state could not be kept: the disk is full");
    auto* contribute = ui.find<ui::Switch>("Contribute");
    QTRY_VERIFY(contribute->isChecked());
    QTest::mouseClick(contribute, Qt::LeftButton);
    const auto said = [&] {
      for (auto* banner : ui.window->findChildren<ui::Banner*>()) {
        if (banner->isVisible() && banner->text().contains("the disk is full")) return true;
      }
      return false;
    };
    QTRY_VERIFY(said());
  }

  void pauses_count_down_from_the_owners_clock() {
    // 21:30 of some day, here.
    const QDateTime evening(QDate(2026, 3, 2), QTime(21, 30));
    const auto choices = ui::pause_choices(Millis{evening.toMSecsSinceEpoch()});
    QCOMPARE(choices.size(), size_t{5});
    QCOMPARE(choices[0].length.count, int64_t{15 * 60'000});
    QCOMPARE(choices[3].length.count, int64_t{(8 * 60 + 30) * 60'000});
    QCOMPARE(choices[4].length.count, int64_t{0});
  }

  // --- The client's life ---

  void says_that_no_client_runs_and_offers_to_start_it() {
    UiWindow ui(FakeAgent::Story::kFull);
    ui.agent.kill();
    ui.window->show();
    QSignalSpy wanted(ui.window.get(), &ui::Window::start_wanted);
    QPushButton* start = nullptr;
    QTRY_VERIFY((start = ui.button("Start it")) != nullptr);
    QTest::mouseClick(start, Qt::LeftButton);
    QCOMPARE(wanted.count(), 1);
    ui.agent.start();
    QTRY_VERIFY_WITH_TIMEOUT(ui.place.link.snapshot() != nullptr, 5'000);
    QTRY_VERIFY(ui.button("Start it") == nullptr);
  }

  void a_client_that_is_missing_is_named() {
    UiPlace place;
    ui::ClientProcess client(
        place.link,
        {.program = place.folder.filePath("shoal-client"), .log = {}, .may_use_systemd = false});
    QSignalSpy failed(&client, &ui::ClientProcess::failed);
    client.start();
    QCOMPARE(failed.count(), 1);
    QVERIFY(failed[0][0].toString().contains("is missing"));
    QVERIFY(!client.starting());
  }

  void a_client_is_started_as_a_process_of_its_own() {
    UiPlace place;
    // A client that only says that it was started, with which words.
    const QString program = place.folder.filePath("shoal-client");
    QFile script(program);
    QVERIFY(script.open(QIODevice::WriteOnly));
    script.write("#!/bin/sh\necho \"$@\" > \"$0.words\"\n");
    script.close();
    QVERIFY(script.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner));
    ui::ClientProcess client(place.link, {.program = program, .log = {}, .may_use_systemd = false});
    QSignalSpy started(&client, &ui::ClientProcess::started);
    client.start();
    QVERIFY(client.starting());
    QFile words(program + ".words");
    QTRY_VERIFY(words.exists() && words.size() > 0);
    QVERIFY(words.open(QIODevice::ReadOnly));
    QCOMPARE(words.readAll().trimmed(), QByteArray("run"));
    FakeAgent agent(place.socket_path(), FakeAgent::Story::kEmpty);
    QTRY_COMPARE_WITH_TIMEOUT(started.count(), 1, 5'000);
  }

  // --- The guide ---

  // Goal: from a fresh install to lending by keyboard alone.
  void the_guide_leads_from_a_url_to_work_by_keyboard() {
    UiWindow ui(FakeAgent::Story::kEmpty);
    ui.place.settings.remove("guide/done");
    ui.show();
    ui::Guide& guide = ui.window->guide();
    QTRY_VERIFY(guide.isVisible());
    QCOMPARE(guide.step(), ui::Guide::Step::kJoin);
    auto* url = ui.find<QLineEdit>("The coordinator's URL");
    QVERIFY(url != nullptr);
    url->clear();
    QTest::keyClicks(url, "shoal://library.example:7410/?pin=x&invite=y");
    QTest::keyClick(url, Qt::Key_Return);
    QTRY_COMPARE(guide.step(), ui::Guide::Step::kTerms);
    keep_picture(*ui.window, "guide-terms");
    // What each kind of work means is said before, and nothing better than it is.
    QStringList said;
    for (const auto* label : guide.findChildren<QLabel*>()) said += label->text();
    QVERIFY(said.contains(ui::privacy_sentence(rpc::Privacy::ANCHORED)));
    QVERIFY(said.contains(ui::privacy_sentence(rpc::Privacy::PUBLIC)));
    QVERIFY2(said.join('\n').contains("W while it works"), qPrintable(said.join('\n')));
    auto* big = ui.find<QRadioButton>("Deny gemma-2-9b (public)");
    QVERIFY(big != nullptr);
    QTest::keyClick(big, Qt::Key_Space);
    QTest::keyClick(&guide, Qt::Key_Return);
    QTRY_COMPARE(guide.step(), ui::Guide::Step::kMeasure);
    QVERIFY(ui.asked("attach shoal://library.example:7410/?pin=x&invite=y"));
    QVERIFY(ui.asked("attach deny gemma-2-9b"));
    QVERIFY(ui.asked("benchmark vulkan:gpu0"));
    QTRY_VERIFY(ui.button("Next")->isEnabled());
    QTest::keyClick(&guide, Qt::Key_Return);
    QTRY_COMPARE(guide.step(), ui::Guide::Step::kDevices);
    keep_picture(*ui.window, "guide-devices");
    QTest::keyClick(&guide, Qt::Key_Return);
    QTRY_COMPARE(guide.step(), ui::Guide::Step::kDone);
    QVERIFY(ui.asked("setDeviceLent vulkan:gpu0 true"));
    QVERIFY(ui.asked("setDeviceLent cpu false"));
    QTest::keyClick(&guide, Qt::Key_Return);
    QTRY_VERIFY(!guide.isVisible());
    QVERIFY(ui.autostart->enabled());
    QCOMPARE(ui.window->open_page_key(), QString("overview"));
    QVERIFY(ui.place.settings.value("guide/done").toBool());
  }

  void measuring_later_still_lets_devices_be_chosen() {
    UiWindow ui(FakeAgent::Story::kEmpty);
    ui.place.settings.remove("guide/done");
    ui.show();
    ui::Guide& guide = ui.window->guide();
    QTRY_VERIFY(guide.isVisible());
    ui.find<QLineEdit>("The coordinator's URL")->setText("shoal://library.example:7410/?pin=x");
    QTest::keyClick(&guide, Qt::Key_Return);
    QTRY_COMPARE(guide.step(), ui::Guide::Step::kTerms);
    QTest::keyClick(&guide, Qt::Key_Return);
    QTRY_COMPARE(guide.step(), ui::Guide::Step::kMeasure);
    // However fast the fake measures: the button may be hidden again by now.
    for (auto* button : guide.findChildren<QPushButton*>()) {
      if (button->text() == "&Later") button->click();
    }
    QCOMPARE(guide.step(), ui::Guide::Step::kDevices);
    QVERIFY(guide.isVisible());
    QVERIFY(!ui.place.settings.value("guide/done", false).toBool());
  }

  void the_guide_says_why_a_url_does_not_work() {
    UiWindow ui(FakeAgent::Story::kEmpty);
    ui.place.settings.remove("guide/done");
    ui.agent.fail("previewAttach", "the invite has expired");
    ui.show();
    auto* url = ui.find<QLineEdit>("The coordinator's URL");
    QTRY_VERIFY((url = ui.find<QLineEdit>("The coordinator's URL")) != nullptr);
    url->setText("shoal://library.example:7410/?pin=x");
    QTest::keyClick(url, Qt::Key_Return);
    const auto said = [&] {
      for (auto* banner : ui.window->findChildren<ui::Banner*>()) {
        if (banner->isVisible() && banner->text() == "The invite has expired.") return true;
      }
      return false;
    };
    QTRY_VERIFY(said());
    QCOMPARE(ui.window->guide().step(), ui::Guide::Step::kJoin);
    const QStringList unnamed = unnamed_controls(*ui.window);
    QVERIFY2(unnamed.isEmpty(), qPrintable(unnamed.join('\n')));
  }

  // --- Autostart ---

  void autostart_is_written_hidden_and_read_back() {
    QTemporaryDir folder;
    const ui::Autostart autostart("/opt/my programs/shoal", folder.filePath("autostart"));
    QVERIFY(!autostart.enabled());
    QVERIFY(autostart.set_enabled(true).ok());
    QVERIFY(autostart.enabled());
    QFile file(autostart.path());
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QByteArray entry = file.readAll();
    QVERIFY(entry.contains("Exec=\"/opt/my programs/shoal\" --hidden\n"));
    QVERIFY(autostart.set_enabled(false).ok());
    QVERIFY(!autostart.enabled());
    QVERIFY(QFile::exists(autostart.path()));  // So that the system's own entry is off too.
  }

  // --- Theme ---

  void the_palette_follows_the_desktop_while_it_changes() {
    ui::Theme theme(*qApp);
    QSignalSpy changed(&theme, &ui::Theme::changed);
    theme.set_desktop(true, false, false);
    QCOMPARE(theme.scheme(), ui::Scheme::kDark);
    QVERIFY(ui::colors_of(qApp->palette()).dark());
    theme.set_desktop(true, true, false);
    QCOMPARE(theme.scheme(), ui::Scheme::kDarkContrast);
    theme.set_choice(ui::Theme::Choice::kLight);
    QCOMPARE(theme.scheme(), ui::Scheme::kLightContrast);
    theme.set_choice(ui::Theme::Choice::kDesktop);
    theme.set_desktop(false, false, true);
    QCOMPARE(theme.scheme(), ui::Scheme::kLight);
    QVERIFY(changed.count() >= 3);
    QVERIFY(theme.reduced_motion());
    QCOMPARE(qApp->style()->styleHint(QStyle::SH_Widget_Animation_Duration), 0);
  }

  // Goal: text can be read. WCAG asks for a contrast of 4.5, and 7 where the owner wants much.
  void text_stands_out_from_its_ground_in_every_scheme() {
    const auto lightness = [](const QColor& color) {
      const auto part = [](qreal c) {
        return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
      };
      return 0.2126 * part(color.redF()) + 0.7152 * part(color.greenF()) +
             0.0722 * part(color.blueF());
    };
    const auto ratio = [&](const QColor& a, const QColor& b) {
      const qreal x = lightness(a), y = lightness(b);
      return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
    };
    for (const ui::Scheme scheme : {ui::Scheme::kLight, ui::Scheme::kDark,
                                    ui::Scheme::kLightContrast, ui::Scheme::kDarkContrast}) {
      const ui::Colors& colors = ui::colors_of(scheme);
      const qreal wanted = colors.contrast() ? 7.0 : 4.5;
      for (const QColor& ground : {colors.window, colors.card}) {
        for (const QColor& text : {colors.text, colors.text_quiet, colors.good, colors.warning,
                                   colors.bad, colors.accent}) {
          QVERIFY2(ratio(text, ground) >= wanted, qPrintable(QString("scheme %1: %2 on %3 is %4")
                                                                 .arg(int(scheme))
                                                                 .arg(text.name(), ground.name())
                                                                 .arg(ratio(text, ground))));
        }
        // Signs and lines need 3.
        for (const QColor& state : colors.states) QVERIFY(ratio(state, ground) >= 3.0);
      }
      QVERIFY(ratio(colors.accent_text, colors.accent) >= 4.5);
    }
  }

  // Goal: the window's thread never waits for the client. Method: a 16 ms timer runs while the
  // client floods a whole window, hangs, is killed and comes back; its worst tick is measured.
  void the_window_stays_responsive_whatever_the_client_does() {
    UiWindow ui(FakeAgent::Story::kFull);
    ui.show();
    QVERIFY(ui.place.wait_for_answers());
    Heartbeat heart;
    ui.agent.set_busy(true);
    QVERIFY(heart.beats(15));
    ui.agent.set_busy(false);
    ui.agent.hang();
    ui.place.client_settings.refresh();
    QVERIFY(heart.beats(15));
    ui.agent.wake();
    ui.agent.kill();
    QVERIFY(ui.place.wait_for(ui::LinkState::kAbsent));
    QVERIFY(heart.beats(10));
    ui.agent.start();
    QVERIFY(ui.place.wait_for_snapshot());
    QVERIFY(heart.beats(10));
    qInfo("worst tick %lld ms late", heart.worst_ms());
    QVERIFY2(heart.worst_ms() <= 100, qPrintable(QString::number(heart.worst_ms())));
  }

  // Goal: a question that was under way when a setting was changed does not show it undone.
  void settings_are_shown_as_they_are_after_a_change() {
    UiPlace place;
    FakeAgent agent(place.socket_path(), FakeAgent::Story::kFull);
    QVERIFY(place.wait_for_snapshot());
    QVERIFY(place.wait_for_answers());
    QSignalSpy changed(&place.client_settings, &ui::ClientSettings::changed);
    place.client_settings.refresh();
    place.client_settings.refresh_after_change();
    QTRY_VERIFY(!changed.isEmpty());
    QVERIFY(place.wait_for_answers());
    QCOMPARE(changed.size(), 1);
    place.client_settings.refresh();
    QTRY_COMPARE(changed.size(), 2);
  }
};

QTEST_MAIN(UiTest)
#include "ui_test.moc"
