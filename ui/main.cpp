#include <QApplication>
#include <QSettings>

#include "base/clock.h"
#include "base/host.h"
#include "ui/agent_link.h"
#include "ui/theme.h"
#include "ui/window.h"

int main(int argc, char** argv) {
  using namespace shoal;
  QApplication application(argc, argv);
  const Result<UserFolders> folders = user_folders();
  if (!folders.ok()) {
    qCritical("shoal: %s", folders.error().message.c_str());
    return 1;
  }
  const SystemClock clock;
  QSettings settings(QString::fromStdString(folders.value().config / "window.conf"),
                     QSettings::IniFormat);
  ui::Theme theme(application);
  ui::AgentLink link(QString::fromStdString(folders.value().runtime / "agent.sock"));
  ui::Window window({link, clock, settings});
  window.show();
  return QApplication::exec();
}
