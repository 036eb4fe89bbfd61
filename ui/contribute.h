#pragma once
// What the big switch, the tray's menu and the desktop's actions do: pause and resume all that this
// machine lends, and say in words how things stand.

#include <QString>
#include <functional>
#include <vector>

#include "ui/agent_link.h"

class QMenu;

namespace shoal::ui {

struct PauseChoice {
  QString text;
  Millis length;  // 0: until the owner resumes.
};
// 15 minutes, 1 hour, 4 hours, until tomorrow, until I resume.
std::vector<PauseChoice> pause_choices(Millis now);
// Makes `menu` say them; `chosen` gets the length.
void fill_pause_menu(QMenu& menu, Millis now, const std::function<void(Millis)>& chosen);

// Whether anything is lent: not both GPU and CPU are paused by the owner.
bool is_contributing(rpc::Snapshot::Reader snapshot);
bool is_any_paused(rpc::Snapshot::Reader snapshot);  // So that there is something to resume.
// When the pause ends by itself; 0: it does not, or there is none.
Millis pause_end(rpc::Snapshot::Reader snapshot);

// Called once, on this thread, when all of an order was answered: null, or what failed first.
using Answered = std::function<void(const Error* error)>;
// All three resources, one after another.
void pause_all(AgentLink& link, QObject* receiver, Millis length, Answered answered);
// Each goes back to the mode before its pause.
void resume_all(AgentLink& link, QObject* receiver, Answered answered);
void set_mode(AgentLink& link, QObject* receiver, rpc::Resource resource, rpc::Mode mode,
              Millis length, Answered answered);

QString activity_word(rpc::Activity activity);  // "Working"
QString activity_icon(rpc::Activity activity);  // For colored_icon().
QString resource_word(rpc::Resource resource);  // "Graphics cards"
QString resource_icon(rpc::Resource resource);  // For symbolic_icon().

}  // namespace shoal::ui
