#pragma once
// What the big switch, the tray's menu and the desktop's actions do: pause and resume all that this
// machine lends, and say in words how things stand.

#include <QString>
#include <functional>
#include <vector>

#include "ui/agent_link.h"

namespace shoal::ui {

struct PauseChoice {
  QString text;
  Millis length;  // 0: until the owner resumes.
};
// 15 minutes, 1 hour, 4 hours, until tomorrow, until I resume.
std::vector<PauseChoice> pause_choices(Millis now);

// Whether anything is lent: not both GPU and CPU are paused by the owner.
bool is_contributing(rpc::Snapshot::Reader snapshot);
// When the pause ends by itself; 0: it does not, or there is none.
Millis pause_end(rpc::Snapshot::Reader snapshot);

// All three resources at once. `failed` is told the first error, on this thread.
using Failed = std::function<void(const Error&)>;
void pause_all(AgentLink& link, QObject* receiver, Millis length, Failed failed);
// All go by the rules again, but for those that work always.
void resume_all(AgentLink& link, QObject* receiver, Failed failed);
void set_mode(AgentLink& link, QObject* receiver, rpc::Resource resource, rpc::Mode mode,
              Millis length, Failed failed);

QString activity_word(rpc::Activity activity);  // "Working"
QString activity_icon(rpc::Activity activity);  // For colored_icon().
QString resource_word(rpc::Resource resource);  // "Graphics cards"
QString resource_icon(rpc::Resource resource);  // For symbolic_icon().

}  // namespace shoal::ui
