#include "ui/client_settings.h"

#include <utility>

#include "ui/agent_link.h"
#include "ui/tables.h"

namespace shoal::ui {

ClientSettings::ClientSettings(AgentLink& link, QObject* parent) : QObject(parent), link_(link) {
  connect(&link_, &AgentLink::state_changed, this, [this](LinkState state) {
    if (state == LinkState::kConnected) refresh();
  });
}

void ClientSettings::refresh() {
  if (asking_ || link_.state() != LinkState::kConnected) return;
  asking_ = true;
  link_.call<&rpc::Agent::Client::settingsRequest>(
      this, [](auto) {},
      [this](AnswerOf<&rpc::Agent::Client::settingsRequest> answer) {
        asking_ = false;
        if (std::exchange(once_more_, false)) {
          refresh();
          // This one may be from before the change, and would show that undone.
          if (asking_) return;
        }
        if (!answer.ok()) {
          Q_EMIT failed(answer.error());
          return;
        }
        take(answer.value());
      });
}

void ClientSettings::refresh_after_change() {
  once_more_ = asking_;
  refresh();
}

void ClientSettings::take(const SettingsPtr& settings) {
  all_ = settings;
  for (const auto setting : all_->reader().getSettings()) {
    const auto value = setting.getValue();
    if (setting.getKey() == "energy.currency" && value.isText())
      currency_ = text_of(value.getText());
    if (setting.getKey() == "energy.gpu_watts" && value.isReal()) gpu_watts_ = value.getReal();
    if (setting.getKey() == "energy.cpu_watts" && value.isReal()) cpu_watts_ = value.getReal();
  }
  Q_EMIT changed();
}

}  // namespace shoal::ui
