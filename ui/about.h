#pragma once
// What belongs to the window itself: how it looks, whether it starts at login, what it says by
// itself; the version, the licence, and who to ask.

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>

#include "ui/agent_link.h"
#include "ui/autostart.h"
#include "ui/banner.h"
#include "ui/notices.h"
#include "ui/theme.h"
#include "ui/widgets/card.h"

class QSettings;

namespace shoal::ui {

// What the window is made of besides its pages; all of it outlives the window.
struct WindowParts {
  Theme& theme;
  Notices& notices;
  const Autostart& autostart;
};

class About : public QWidget {
  Q_OBJECT

 public:
  About(AgentLink& link, WindowParts parts, QSettings& settings, QWidget* parent = nullptr);

  void refresh();

 Q_SIGNALS:
  void guide_wanted();
  void quit_wanted();

 private:
  AgentLink& link_;
  WindowParts parts_;
  QSettings& settings_;
  Banner problem_;
  QComboBox look_;
  QCheckBox autostart_, notices_;
  QLabel* facts_;
};

}  // namespace shoal::ui
