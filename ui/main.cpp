#include <QApplication>
#include <QCommandLineParser>
#include <QLocale>
#include <QPixmapCache>
#include <QSettings>
#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "base/host.h"
#include "ui/agent_link.h"
#include "ui/autostart.h"
#include "ui/client_settings.h"
#include "ui/icons.h"
#include "ui/shell.h"
#include "ui/single_instance.h"
#include "ui/theme.h"
#include "ui/translations.h"

namespace {

using namespace shoal;

// The order of this start, or an exit code when there is nothing to start.
struct Order {
  QString order = "open";
  int exit_code = -1;
};

// Read before there is an application, as a machine without a screen may ask for help too.
Order read_order(int argc, char** argv) {
  QStringList arguments;
  for (int i = 0; i < argc; ++i) arguments += QString::fromLocal8Bit(argv[i]);
  QCommandLineParser parser;
  parser.setApplicationDescription(
      "Shoal's window and tray icon. It shows and steers the background program, shoal-client.");
  const QCommandLineOption help({"h", "help"}, "Show this help.");
  const QCommandLineOption version("version", "Show the version.");
  const QCommandLineOption hidden("hidden", "Start in the tray, without a window.");
  const QCommandLineOption pause("pause", "Pause everything until you resume.");
  const QCommandLineOption resume("resume", "End the pause.");
  const QCommandLineOption quit("quit", "Quit the window and the icon.");
  // Qt's own options are taken out by QApplication later; here they must not be errors.
  const QCommandLineOption platform({"platform", "style", "display"}, "As in every Qt program.",
                                    "name");
  for (const auto& option : {help, version, hidden, pause, resume, quit, platform}) {
    parser.addOption(option);
  }
  parser.setSingleDashWordOptionMode(QCommandLineParser::ParseAsLongOptions);
  if (!parser.parse(arguments)) {
    std::fprintf(stderr, "shoal: %s\n", qPrintable(parser.errorText()));
    return {{}, 2};
  }
  if (parser.isSet(help)) {
    std::printf("%s", qPrintable(parser.helpText()));
    return {{}, 0};
  }
  if (parser.isSet(version)) {
    std::printf("shoal %s\n", SHOAL_VERSION);
    return {{}, 0};
  }
  for (const auto& option : {hidden, pause, resume, quit}) {
    if (parser.isSet(option)) return {option.names().constFirst()};
  }
  return {};
}

// What Qt has to say while the application is made.
QStringList& said_at_start() {
  static QStringList lines;
  return lines;
}

// Without a screen Qt ends the process with a core. That is no fault of ours and nothing to send
// in: a sentence says what to do instead.
void hear_start(QtMsgType type, const QMessageLogContext&, const QString& text) {
  if (type != QtFatalMsg) {
    said_at_start() += text.trimmed();
    return;
  }
  const QString why = said_at_start().value(0, text.section('\n', 0, 0).trimmed());
  std::fprintf(
      stderr,
      "shoal: the window needs a desktop, and none can be reached (%s).\n"
      "Without one the command line does the same: 'shoal-client run' lends this "
      "computer, 'shoal-client status' says how it stands, and 'shoal-client --help' lists "
      "the rest.\n",
      qPrintable(why));
  std::_Exit(1);
}

int fail(const Error& error) {
  std::fprintf(stderr, "shoal: %s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const Order order = read_order(argc, argv);
  if (order.exit_code >= 0) return order.exit_code;
  const Result<UserFolders> folders = user_folders();
  if (!folders.ok()) return fail(folders.error());
  if (const Result<void> made = make_folder(folders.value().config); !made.ok()) {
    return fail(made.error());
  }
  static_cast<void>(make_folder(folders.value().state));  // The client's log alone needs it.

  QApplication::setApplicationName("shoal");
  QApplication::setApplicationDisplayName("Shoal");
  QApplication::setApplicationVersion(SHOAL_VERSION);
  QApplication::setDesktopFileName("org.shoal.Shoal");
  QApplication::setQuitOnLastWindowClosed(false);
  const QtMessageHandler usual = qInstallMessageHandler(hear_start);
  QApplication application(argc, argv);
  qInstallMessageHandler(usual);
  for (const QString& line : said_at_start()) qWarning("%s", qPrintable(line));
  ui::Translations translations(application, QLocale());

  const QString token =
      qEnvironmentVariable("XDG_ACTIVATION_TOKEN", qEnvironmentVariable("DESKTOP_STARTUP_ID"));
  ui::SingleInstance instance(folders.value().runtime);
  const Result<ui::SingleInstance::Outcome> outcome = instance.begin(order.order, token);
  if (!outcome.ok()) return fail(outcome.error());
  if (outcome.value() == ui::SingleInstance::Outcome::kHandedOver) return 0;
  if (order.order == "quit") return 0;  // Nothing runs that could quit.

  QPixmapCache::setCacheLimit(4'096);
  const SystemClock clock;
  QSettings settings(QString::fromStdString(folders.value().config / "window.conf"),
                     QSettings::IniFormat);
  ui::Theme theme(application);
  theme.set_choice(static_cast<ui::Theme::Choice>(settings.value("look", 0).toInt()));
  QApplication::setWindowIcon(ui::colored_icon("shoal"));

  const QString folder = QApplication::applicationDirPath();
  const ui::Autostart autostart(folder + "/shoal");
  ui::AgentLink link(QString::fromStdString(folders.value().runtime / "agent.sock"));
  ui::ClientSettings client_settings(link);
  ui::Shell shell({link, clock, settings, client_settings}, theme, autostart,
                  {.program = folder + "/shoal-client",
                   .log = QString::fromStdString(folders.value().state / "client-start.log"),
                   .may_use_systemd = qEnvironmentVariableIsEmpty("SHOAL_HOME")});
  QObject::connect(&instance, &ui::SingleInstance::asked, &shell, &ui::Shell::obey);
  shell.obey(order.order, token);
  return QApplication::exec();
}
