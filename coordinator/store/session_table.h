#pragma once
// Sessions, who ran which stage of them and under which lease, and the append-only events. Rows in
// and out. Never holds a prompt, a token or a key.

#include <optional>
#include <string>
#include <vector>

#include "coordinator/store/store.h"
#include "coordinator/work/session_figures.h"

namespace shoal {

struct SessionRow {
  SessionId id;
  std::string model;
  std::string privacy;  // "public", "anchored" or "group".
  std::string group;    // With "group": whose hosts alone take part.
  std::string state;    // planning, loading, running, repairing, done, failed, cancelled
  std::string reason;
  int64_t prompt_tokens = 0, tokens = 0, relayed_bytes = 0, failovers = 0;
  Millis gap_max;
  Millis started_at, ended_at;  // ended_at is 0 while it lives.
};

struct SessionStageRow {
  int64_t stage = 0;
  HostId host;
  std::string device, device_name, plane;
  int64_t first_fragment = 0, last_fragment = 0;
  Millis opened_at, lost_at;  // lost_at is 0 unless the device was lost.
  std::string cause;
};

struct EventRow {
  int64_t id = 0;
  Millis at;
  std::string kind;
  HostId host;        // 0: about none.
  SessionId session;  // 0: about none.
  std::string text;
  JobId job;  // 0: about none.
};

class SessionTable {
 public:
  explicit SessionTable(Store& store) : store_(store) {}  // The store outlives the table.

  // Several writes as one.
  Result<void> transaction(const std::function<Result<void>()>& body) {
    return store_.transaction(body);
  }

  Result<SessionId> start(const SessionRow& session);
  Result<void> update(const SessionRow& session);  // State, reason, figures, end.
  // What was predicted, and what was measured so far; in place of what was there.
  Result<void> set_figures(SessionId session, const SessionFigures& figures);
  // Without a plan when there are none.
  Result<SessionFigures> figures(SessionId session);
  Result<int64_t> add_stage(SessionId session,
                            const SessionStageRow& stage);  // A number for lose_stage.
  Result<void> lose_stage(int64_t stage_row, Millis at, const std::string& cause);
  Result<LeaseId> grant_lease(SessionId session, const SessionStageRow& stage, Millis at);
  Result<void> end_lease(LeaseId lease, Millis at);

  // The live ones, and at most `ended_max` that ended; newest first.
  Result<std::vector<SessionRow>> list(int64_t ended_max);
  Result<std::optional<SessionRow>> find(SessionId session);
  Result<std::vector<SessionStageRow>> stages(SessionId session);  // All that ever were, in order.
  Result<int64_t> tokens_ever();
  // Sessions do not outlive the coordinator: marks those that had not ended. Returns how many.
  Result<int64_t> fail_unfinished(Millis at, const std::string& reason);

  Result<void> add_event(const EventRow& event);  // Its id is not used.
  Result<std::vector<EventRow>> events(int64_t after_id, int64_t count_max);
  Result<std::vector<EventRow>> events_of_job(JobId job, int64_t count_max);  // The last so many.

 private:
  Store& store_;
};

}  // namespace shoal
