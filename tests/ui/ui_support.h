#pragma once
// What every test of the window begins with: folders of its own, and waiting for an event.

#include <QSettings>
#include <QTemporaryDir>
#include <QTest>

#include "base/clock.h"
#include "tests/support/fake_agent.h"
#include "ui/agent_link.h"
#include "ui/client_settings.h"
#include "ui/pages/page.h"

namespace shoal {

// A place for one test: a folder, a link to the socket in it, and what a page needs.
struct UiPlace {
  QTemporaryDir folder;
  QString socket = folder.filePath("agent.sock");
  SystemClock clock;
  QSettings settings{folder.filePath("window.conf"), QSettings::IniFormat};
  ui::AgentLink link{socket};
  ui::ClientSettings client_settings{link};

  ui::PageContext context() { return {link, clock, settings, client_settings}; }
  std::string socket_path() const { return socket.toStdString(); }
  // False when it takes longer than five seconds.
  bool wait_for(ui::LinkState state) {
    return QTest::qWaitFor([&] { return link.state() == state; }, 5'000);
  }
  bool wait_for_snapshot() {
    return QTest::qWaitFor([&] { return link.snapshot() != nullptr; }, 5'000);
  }
  // Whether all that was asked of the client is answered, what the answers led to included.
  bool wait_for_answers() {
    return QTest::qWaitFor([&] { return link.calls_open() == 0; }, 5'000);
  }
};

}  // namespace shoal
