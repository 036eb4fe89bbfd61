#pragma once
// Whether Shoal starts when its owner logs in: an XDG autostart entry in the owner's own folder.

#include <QString>

#include "base/result.h"

namespace shoal::ui {

class Autostart {
 public:
  // `folder`: empty for the owner's own, $XDG_CONFIG_HOME/autostart. `program`: what is started.
  explicit Autostart(QString program, QString folder = {});

  bool enabled() const;
  // Off writes Hidden=true, so that an entry of the whole system is off for this owner too.
  Result<void> set_enabled(bool enabled) const;
  QString path() const { return path_; }

 private:
  QString program_, path_;
};

}  // namespace shoal::ui
