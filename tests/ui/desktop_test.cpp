#include <QDBusConnection>
#include <QDir>
#include <QFile>
#include <QProcess>
#include <QRegularExpression>
#include <QSize>
#include <QTemporaryDir>
#include <QTest>
#include <csignal>
#include <memory>

#include "tests/support/fake_agent.h"
#include "tests/ui/fake_desktop.h"

using namespace shoal;

namespace {

constexpr int kPatienceMs = 30'000;

// The program itself, on a real display and bus, with a folder of its own and a fake client.
class Desk {
 public:
  explicit Desk(FakeAgent::Story story = FakeAgent::Story::kFull) {
    QDir(home_.path()).mkpath("run");
    QFile::setPermissions(home_.filePath("run"),
                          QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    QDir(home_.path()).mkpath("config");
    write_config("[guide]\ndone=true\n[quit]\nstops_client=false\n[tray]\npresence_told=true\n");
    agent = std::make_unique<FakeAgent>(home_.filePath("run/agent.sock").toStdString(), story);
  }
  ~Desk() {
    for (const auto& process : processes_) {
      process->kill();
      process->waitForFinished(kPatienceMs);
    }
  }

  void write_config(const QByteArray& text) {
    QFile conf(home_.filePath("config/window.conf"));
    if (conf.open(QIODevice::WriteOnly)) conf.write(text);
  }
  // Whether the window has kept such a setting.
  bool kept(const QByteArray& key) const {
    return QTest::qWaitFor(
        [&] {
          QFile conf(home_.filePath("config/window.conf"));
          return conf.open(QIODevice::ReadOnly) && conf.readAll().contains('\n' + key + '=');
        },
        kPatienceMs);
  }

  QProcess& start(const QStringList& arguments) {
    processes_.push_back(std::make_unique<QProcess>());
    QProcess& process = *processes_.back();
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert("SHOAL_HOME", home_.path());
    environment.insert("QT_QPA_PLATFORM", "xcb");
    environment.insert("LC_ALL", "C.UTF-8");
    environment.insert("QT_LINUX_ACCESSIBILITY_ALWAYS_ON", "1");
    process.setProcessEnvironment(environment);
    process.setProcessChannelMode(QProcess::ForwardedChannels);
    process.start(SHOAL_BIN_DIR "/shoal", arguments);
    return process;
  }
  bool asked(const std::string& call) const {
    return QTest::qWaitFor(
        [&] {
          const auto calls = agent->calls();
          return std::find(calls.begin(), calls.end(), call) != calls.end();
        },
        kPatienceMs);
  }
  QString home() const { return home_.path(); }

  std::unique_ptr<FakeAgent> agent;

 private:
  QTemporaryDir home_{QDir::tempPath() + "/shoal-desk-XXXXXX"};  // Short: sockets lie below it.
  std::vector<std::unique_ptr<QProcess>> processes_;
};

QString output_of(const QString& program, const QStringList& arguments) {
  QProcess process;
  process.start(program, arguments);
  process.waitForFinished(kPatienceMs);
  return QString::fromUtf8(process.readAllStandardOutput());
}

// Of the window of Shoal that is on the screen; empty: there is none.
QSize window_size(const QProcess& shoal) {
  const QString found =
      output_of("xdotool", {"search", "--onlyvisible", "--pid", QString::number(shoal.processId()),
                            "--name", "^Shoal$"});
  // An XEmbed icon is a window of that name too, but a small one.
  for (const QString& id : found.split('\n', Qt::SkipEmptyParts)) {
    const QString geometry = output_of("xdotool", {"getwindowgeometry", "--shell", id});
    static const QRegularExpression kWidth("WIDTH=(\\d+)"), kHeight("HEIGHT=(\\d+)");
    const QSize size(kWidth.match(geometry).captured(1).toInt(),
                     kHeight.match(geometry).captured(1).toInt());
    if (size.width() > 200) return size;
  }
  return {};
}
bool window_is_shown(const QProcess& shoal) { return !window_size(shoal).isEmpty(); }
#define TRY_WINDOW(process, shown)                                                            \
  QVERIFY2(QTest::qWaitFor([&] { return window_is_shown(process) == (shown); }, kPatienceMs), \
           "the window")

// A program of the desktop that ends with this.
struct Helper {
  Helper(const QString& program, const QStringList& arguments) {
    process.setStandardOutputFile(QProcess::nullDevice());
    process.setStandardErrorFile(QProcess::nullDevice());
    process.start(program, arguments);
    process.waitForStarted(kPatienceMs);
  }
  ~Helper() {
    process.kill();
    process.waitForFinished(kPatienceMs);
  }
  QProcess process;
};

}  // namespace

// Goal: the tray works on desktops of every kind, and nobody is left with a program without a face.
// Method: the real program under Xvfb, on a bus of its own; the panel is this test, or trayer.
class DesktopTest : public QObject {
  Q_OBJECT

 private:
  std::unique_ptr<Helper> openbox_;

 private Q_SLOTS:
  void initTestCase() {
    QVERIFY2(!qEnvironmentVariableIsEmpty("DISPLAY"), "run by ctest, under xvfb-run");
    QVERIFY(QDBusConnection::sessionBus().isConnected());
    openbox_ = std::make_unique<Helper>("openbox", QStringList{});
  }
  void cleanupTestCase() { openbox_.reset(); }

  void the_menu_of_a_notifier_icon_does_everything() {
    Desk desk;
    FakeDesktop desktop;
    desktop.show_panel();
    QProcess& shoal = desk.start({"--hidden"});
    QTRY_VERIFY_WITH_TIMEOUT(!desktop.icons().isEmpty(), kPatienceMs);
    const TrayIcon icon(desktop.icons().first());
    QTRY_VERIFY_WITH_TIMEOUT(icon.menu().find("Contribute") != nullptr, kPatienceMs);

    // The reason first, and not to be clicked.
    const MenuItem menu = icon.menu();
    QCOMPARE(menu.children.first().label, QString("Working on llama-3.2-3b."));
    QVERIFY(!menu.children.first().enabled);
    QCOMPARE(menu.find("Contribute")->checked, 1);
    QVERIFY(!window_is_shown(shoal));
    const QByteArray working = icon.pixels();
    QVERIFY(!working.isEmpty());

    QVERIFY(icon.click("15 minutes"));
    QVERIFY(desk.asked("setMode gpu paused 900000"));
    QTRY_COMPARE_WITH_TIMEOUT(icon.menu().find("Contribute")->checked, 0, kPatienceMs);
    QTRY_VERIFY_WITH_TIMEOUT(icon.pixels() != working, kPatienceMs);
    QVERIFY(icon.menu().find("Pause for") == nullptr);
    QVERIFY(icon.click("Resume"));
    QVERIFY(desk.asked("resume gpu"));
    QTRY_COMPARE_WITH_TIMEOUT(icon.menu().find("Contribute")->checked, 1, kPatienceMs);
    QVERIFY(icon.click("Contribute"));
    QVERIFY(desk.asked("setMode gpu paused 0"));

    QVERIFY(icon.click("Open Shoal"));
    TRY_WINDOW(shoal, true);
    QVERIFY(icon.click("Quit"));
    QVERIFY(shoal.waitForFinished(kPatienceMs));
    QCOMPARE(shoal.exitStatus(), QProcess::NormalExit);
    QCOMPARE(shoal.exitCode(), 0);
  }

  // F12, late: started hidden where no panel is, then one comes, restarts, and goes for good.
  void a_panel_may_come_late_restart_and_vanish() {
    Desk desk;
    FakeDesktop desktop;
    QProcess& shoal = desk.start({"--hidden"});
    TRY_WINDOW(shoal, true);
    desktop.show_panel();
    QTRY_VERIFY_WITH_TIMEOUT(!desktop.icons().isEmpty(), kPatienceMs);
    QVERIFY(TrayIcon(desktop.icons().first()).menu().find("Quit") != nullptr);
    desktop.hide_panel();
    desktop.show_panel();
    QTRY_VERIFY_WITH_TIMEOUT(!desktop.icons().isEmpty(), kPatienceMs);
    QVERIFY(TrayIcon(desktop.icons().first()).click("Quit"));
    QVERIFY(shoal.waitForFinished(kPatienceMs));
  }

  void a_panel_that_goes_for_good_brings_the_window_back() {
    Desk desk;
    FakeDesktop desktop;
    desktop.show_panel();
    QProcess& shoal = desk.start({"--hidden"});
    QTRY_VERIFY_WITH_TIMEOUT(!desktop.icons().isEmpty(), kPatienceMs);
    QVERIFY(!window_is_shown(shoal));
    desktop.hide_panel();
    QVERIFY(QTest::qWaitFor([&] { return window_is_shown(shoal); }, 15'000));
  }

  // Goal: what the note on such a desktop says is so. Closed, the window is gone and the client
  // goes on, unasked; and the place of the window is known to the next start.
  void without_a_tray_closing_ends_the_window_alone() {
    Desk desk;
    desk.write_config("[guide]\ndone=true\n");
    QProcess& shoal = desk.start({});
    TRY_WINDOW(shoal, true);
    // Asked for again until it is so: what the window itself asks for at first may come later.
    QVERIFY(QTest::qWaitFor(
        [&] {
          output_of("xdotool",
                    {"search", "--onlyvisible", "--pid", QString::number(shoal.processId()),
                     "--name", "^Shoal$", "windowsize", "1180", "790"});
          return window_size(shoal) == QSize(1180, 790);
        },
        kPatienceMs));
    QVERIFY(desk.kept("geometry"));
    output_of("xdotool", {"search", "--onlyvisible", "--pid", QString::number(shoal.processId()),
                          "--name", "^Shoal$", "key", "--clearmodifiers", "ctrl+w"});
    QVERIFY(shoal.waitForFinished(kPatienceMs));
    QCOMPARE(shoal.exitStatus(), QProcess::NormalExit);
    QCOMPARE(shoal.exitCode(), 0);
    const auto calls = desk.agent->calls();
    QVERIFY(std::find(calls.begin(), calls.end(), "stop") == calls.end());
    QProcess& again = desk.start({});
    TRY_WINDOW(again, true);
    QTRY_COMPARE_WITH_TIMEOUT(window_size(again), QSize(1180, 790), kPatienceMs);
  }

  void without_a_tray_quit_quits() {
    Desk desk;
    QProcess& shoal = desk.start({});
    TRY_WINDOW(shoal, true);
    QProcess& order = desk.start({"--quit"});
    QVERIFY(order.waitForFinished(kPatienceMs));
    QVERIFY(shoal.waitForFinished(kPatienceMs));
    QCOMPARE(shoal.exitStatus(), QProcess::NormalExit);
    QCOMPARE(shoal.exitCode(), 0);
  }

  // Goal: on a machine without a screen it is said what to do instead, and nothing crashes.
  void without_a_display_the_command_line_is_named() {
    const QTemporaryDir home;
    for (const QString& display : {QString(), QString(":97")}) {
      QProcess shoal;
      QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
      for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"})
        environment.remove(name);
      if (!display.isEmpty()) environment.insert("DISPLAY", display);
      environment.insert("SHOAL_HOME", home.path());
      shoal.setProcessEnvironment(environment);
      shoal.start(SHOAL_BIN_DIR "/shoal", {"--hidden"});
      QVERIFY(shoal.waitForFinished(kPatienceMs));
      const QString said = QString::fromUtf8(shoal.readAllStandardError());
      QVERIFY2(shoal.exitStatus() == QProcess::NormalExit, qPrintable(said));
      QCOMPARE(shoal.exitCode(), 1);
      QVERIFY2(said.contains("needs a desktop") && said.contains("shoal-client status"),
               qPrintable(said));
    }
  }

  void trouble_is_told_once() {
    Desk desk;
    FakeDesktop desktop;
    desktop.show_panel();
    desk.agent->change([](rpc::Snapshot::Builder snapshot) {
      for (auto device : snapshot.getDevices())
        device.getVerdict().setActivity(rpc::Activity::WORKING);
    });
    desk.start({"--hidden"});
    QTRY_VERIFY_WITH_TIMEOUT(!desktop.icons().isEmpty(), kPatienceMs);
    const TrayIcon icon(desktop.icons().first());
    QTRY_VERIFY_WITH_TIMEOUT(icon.menu().find("Contribute") != nullptr, kPatienceMs);
    QVERIFY(desktop.notices().isEmpty());
    for (int i = 0; i < 2; ++i) {
      desk.agent->change([](rpc::Snapshot::Builder snapshot) {
        auto verdict = snapshot.getDevices()[0].getVerdict();
        verdict.setActivity(rpc::Activity::ATTENTION);
        verdict.getWhy().setCode("attention.no_device");
      });
    }
    QTRY_COMPARE_WITH_TIMEOUT(desktop.notices().size(), 1, kPatienceMs);
    QVERIFY(desktop.notices().first().startsWith("Shoal needs your attention|"));
    // What comes after it shows that it did not come again.
    desk.agent->change([](rpc::Snapshot::Builder snapshot) {
      auto verdict = snapshot.getDevices()[2].getVerdict();
      verdict.setActivity(rpc::Activity::ATTENTION);
      verdict.getWhy().setCode("attention.device_not_exact");
    });
    QTRY_VERIFY_WITH_TIMEOUT(desktop.notices().size() >= 2, kPatienceMs);
    QCOMPARE(desktop.notices().size(), 2);
    QVERIFY(desktop.notices().last() != desktop.notices().first());
  }

  void an_xembed_tray_works_too() {
    Desk desk;
    Helper trayer("trayer", {"--edge", "top", "--align", "left", "--width", "120", "--widthtype",
                             "pixel", "--height", "32", "--SetDockType", "true"});
    QVERIFY(QTest::qWaitFor(
        [] {
          return !output_of("xdotool", {"search", "--class", "trayer"}).trimmed().isEmpty();
        },
        kPatienceMs));
    QProcess& shoal = desk.start({"--hidden"});
    // The icon is a window of Shoal's inside the tray's.
    const auto icon_window = [&shoal] {
      return output_of("xdotool",
                       {"search", "--onlyvisible", "--pid", QString::number(shoal.processId())})
          .trimmed();
    };
    QVERIFY(QTest::qWaitFor([&] { return !icon_window().isEmpty(); }, kPatienceMs));
    QVERIFY(!window_is_shown(shoal));
    // It may take trayer a moment to place it.
    QVERIFY(QTest::qWaitFor(
        [&] {
          output_of("xdotool", {"mousemove", "--window", icon_window().split('\n').first(), "10",
                                "10", "click", "1"});
          return QTest::qWaitFor([&] { return window_is_shown(shoal); }, 200);
        },
        kPatienceMs));
  }

  void a_second_start_raises_the_first_even_after_a_crash() {
    Desk desk;
    FakeDesktop desktop;
    desktop.show_panel();
    QProcess& crashed = desk.start({"--hidden"});
    QTRY_VERIFY_WITH_TIMEOUT(!desktop.icons().isEmpty(), kPatienceMs);
    ::kill(static_cast<pid_t>(crashed.processId()), SIGKILL);
    QVERIFY(crashed.waitForFinished(kPatienceMs));
    QVERIFY(QFile::exists(desk.home() + "/run/window.sock"));

    QProcess& first = desk.start({"--hidden"});
    QTRY_VERIFY_WITH_TIMEOUT(desktop.icons().size() == 2, kPatienceMs);
    QVERIFY(!window_is_shown(first));
    QProcess& second = desk.start({});
    QVERIFY(second.waitForFinished(kPatienceMs));
    QCOMPARE(second.exitCode(), 0);
    TRY_WINDOW(first, true);
    // The desktop's own actions go to the one that runs.
    QProcess& action = desk.start({"--pause"});
    QVERIFY(action.waitForFinished(kPatienceMs));
    QVERIFY(desk.asked("setMode gpu paused 0"));
  }

  void a_screen_reader_finds_every_control_by_name_and_can_use_it() {
    Desk desk;
    FakeDesktop desktop;
    desktop.show_panel();
    QProcess& shoal = desk.start({});
    TRY_WINDOW(shoal, true);
    QProcess reader;
    reader.setProcessChannelMode(QProcess::MergedChannels);
    reader.start("/usr/bin/python3", {SHOAL_SOURCE_DIR "/tests/ui/screen_reader.py"});
    QVERIFY(QTest::qWaitFor([&] { return reader.state() == QProcess::NotRunning; }, 30'000));
    const QString said = QString::fromUtf8(reader.readAll());
    QVERIFY2(reader.exitCode() == 0, qPrintable(said));
    QVERIFY2(desk.asked("setMode gpu paused 0"), qPrintable(said));
    qInfo("%s", qPrintable(said.trimmed()));
  }
};

QTEST_GUILESS_MAIN(DesktopTest)
#include "desktop_test.moc"
