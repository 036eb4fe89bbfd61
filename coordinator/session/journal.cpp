#include "coordinator/session/journal.h"

#include "base/log.h"

namespace shoal {

void Journal::note(const char* kind, const std::string& text, HostId host, SessionId session) {
  log_info("coordinator", kind, {{"host", host}, {"session", session}, {"text", text}});
  const Result<void> added = table_.add_event({0, clock_.now_wall(), kind, host, session, text});
  if (!added.ok()) log_error("coordinator", "event_not_stored", {{"why", added.error()}});
}

}  // namespace shoal
