// Takes the pictures of docs/screenshots: opens the window on the client of a data folder, and
// grabs each page in light and dark. Run by tools/screenshots, off-screen.

#include <QApplication>
#include <QDir>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>
#include <cstdio>

#include "base/clock.h"
#include "base/host.h"
#include "ui/agent_link.h"
#include "ui/autostart.h"
#include "ui/client_settings.h"
#include "ui/notices.h"
#include "ui/theme.h"
#include "ui/translations.h"
#include "ui/window.h"

using namespace shoal;

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  const QStringList arguments = QApplication::arguments();
  if (arguments.size() < 3) {
    std::fprintf(stderr, "usage: ui_pictures DATA-FOLDER OUT-FOLDER [LOCALE]\n");
    return 2;
  }
  const Result<UserFolders> folders = user_folders(arguments[1].toStdString());
  if (!folders.ok()) return 1;
  const ui::Translations translations(application, QLocale(arguments.value(3, "en_GB")));
  const QTemporaryDir own;
  const SystemClock clock;
  QSettings settings(own.filePath("window.conf"), QSettings::IniFormat);
  settings.setValue("guide/done", true);
  ui::Theme theme(application);
  ui::Notices notices(clock, settings);
  const ui::Autostart autostart("/usr/bin/shoal", own.filePath("autostart"));
  ui::AgentLink link(QString::fromStdString(folders.value().runtime / "agent.sock"));
  ui::ClientSettings client_settings(link);
  ui::Window window({link, clock, settings, client_settings}, {theme, notices, autostart});
  window.resize(1'060, 800);
  window.show();
  if (!QTest::qWaitFor([&] { return link.snapshot() != nullptr; }, 15'000)) {
    std::fprintf(stderr, "ui_pictures: no client answers at %s\n", qPrintable(link.socket()));
    return 1;
  }
  QDir().mkpath(arguments[2]);
  for (const bool dark : {false, true}) {
    theme.set_desktop(dark, false, true);
    for (const ui::PageSpec& page : ui::page_list()) {
      window.open_page(page.key);
      // What a page asks for comes after it is open; charts settle.
      if (!QTest::qWaitFor([&] { return link.calls_open() == 0; }, 15'000)) return 1;
      // There are moments between two pieces of work; none of them is worth a picture.
      static_cast<void>(QTest::qWaitFor(
          [&] {
            return link.snapshot() != nullptr && link.snapshot()->reader().getWork().size() > 0;
          },
          5'000));
      QTest::qWait(200);  // For layouts and charts: a picture proves nothing.
      if (QWidget* focus = QApplication::focusWidget()) focus->clearFocus();
      const QString path =
          QString("%1/%2-%3.png").arg(arguments[2], page.key, dark ? "dark" : "light");
      // One byte a channel and the strongest compression: the pictures live in the repository.
      if (!window.grab().toImage().convertToFormat(QImage::Format_RGB888).save(path, "PNG", 0)) {
        std::fprintf(stderr, "ui_pictures: cannot write %s\n", qPrintable(path));
        return 1;
      }
    }
  }
  return 0;
}
