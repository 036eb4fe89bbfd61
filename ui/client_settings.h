#pragma once
// The client's settings as it told them last, for all pages: asked for once, not by each of them.

#include <QObject>
#include <QString>
#include <memory>

#include "base/result.h"
#include "ui/snapshot.h"

namespace shoal::ui {

class AgentLink;

using SettingsPtr = std::shared_ptr<const Kept<rpc::Agent::SettingsResults>>;

// Belongs to the Qt thread.
class ClientSettings : public QObject {
  Q_OBJECT

 public:
  // `link` outlives this.
  explicit ClientSettings(AgentLink& link, QObject* parent = nullptr);

  const SettingsPtr& all() const { return all_; }  // Null until the client has told them.
  QString currency() const { return currency_; }   // Empty: none is set, or not known yet.
  double gpu_watts() const { return gpu_watts_; }  // What a device is taken to draw.
  double cpu_watts() const { return cpu_watts_; }

  // Asks anew, as when a page comes on screen: others may have changed them.
  void refresh();
  // The same after a change that was taken: a question under way may have come before it.
  void refresh_after_change();

 Q_SIGNALS:
  void changed();  // They were told anew.
  void failed(const shoal::Error& error);

 private:
  void take(const SettingsPtr& settings);

  AgentLink& link_;
  SettingsPtr all_;
  QString currency_;
  double gpu_watts_ = 150, cpu_watts_ = 45;  // The client's own, until it has told others.
  bool asking_ = false, once_more_ = false;
};

}  // namespace shoal::ui
