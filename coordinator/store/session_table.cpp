#include "coordinator/store/session_table.h"

namespace shoal {

Result<SessionId> SessionTable::start(const SessionRow& session) {
  Query query = store_.query(
      "INSERT INTO session (model, privacy, state, prompt_tokens, started_at_ms, group_name) "
      "VALUES (?, ?, ?, ?, ?, ?)");
  // A group says the level of privacy by itself (0004_accounts.sql).
  SHOAL_TRY(query.bind(session.model)
                .bind(session.group.empty() ? session.privacy : std::string("public"))
                .bind(session.state)
                .bind(session.prompt_tokens)
                .bind(session.started_at.count)
                .bind(session.group)
                .run());
  return SessionId{store_.last_id()};
}

Result<void> SessionTable::update(const SessionRow& session) {
  Query query = store_.query(
      "UPDATE session SET state = ?, reason = ?, tokens = ?, relayed_bytes = ?, failovers = ?, "
      "gap_ms_max = ?, ended_at_ms = ? WHERE id = ?");
  return query.bind(session.state)
      .bind(session.reason)
      .bind(session.tokens)
      .bind(session.relayed_bytes)
      .bind(session.failovers)
      .bind(session.gap_max.count)
      .bind(session.ended_at.count)
      .bind(session.id.value)
      .run();
}

Result<int64_t> SessionTable::add_stage(SessionId session, const SessionStageRow& stage) {
  Query query = store_.query(
      "INSERT INTO session_stage (session_id, stage, host_id, device, device_name, plane, "
      "first_fragment, last_fragment, opened_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  SHOAL_TRY(query.bind(session.value)
                .bind(stage.stage)
                .bind(stage.host.value)
                .bind(stage.device)
                .bind(stage.device_name)
                .bind(stage.plane)
                .bind(stage.first_fragment)
                .bind(stage.last_fragment)
                .bind(stage.opened_at.count)
                .run());
  return store_.last_id();
}

Result<void> SessionTable::lose_stage(int64_t stage_row, Millis at, const std::string& cause) {
  Query query = store_.query("UPDATE session_stage SET lost_at_ms = ?, cause = ? WHERE id = ?");
  return query.bind(at.count).bind(cause).bind(stage_row).run();
}

Result<LeaseId> SessionTable::grant_lease(SessionId session, const SessionStageRow& stage,
                                          Millis at) {
  Query query = store_.query(
      "INSERT INTO lease (session_id, host_id, device, first_fragment, last_fragment, "
      "granted_at_ms) "
      "VALUES (?, ?, ?, ?, ?, ?)");
  SHOAL_TRY(query.bind(session.value)
                .bind(stage.host.value)
                .bind(stage.device)
                .bind(stage.first_fragment)
                .bind(stage.last_fragment)
                .bind(at.count)
                .run());
  return LeaseId{store_.last_id()};
}

Result<void> SessionTable::end_lease(LeaseId lease, Millis at) {
  Query query = store_.query("UPDATE lease SET ended_at_ms = ? WHERE id = ? AND ended_at_ms = 0");
  return query.bind(at.count).bind(lease.value).run();
}

Result<std::vector<SessionRow>> SessionTable::list(int64_t ended_max) {
  std::vector<SessionRow> sessions;
  Query query = store_.query(
      "SELECT id, model, privacy, state, reason, prompt_tokens, tokens, relayed_bytes, failovers, "
      "gap_ms_max, started_at_ms, ended_at_ms, group_name FROM session WHERE ended_at_ms = 0 OR id "
      "IN "
      "(SELECT id FROM session WHERE ended_at_ms <> 0 ORDER BY id DESC LIMIT ?) ORDER BY id DESC");
  query.bind(ended_max);
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return sessions;
    SessionRow session;
    session.id = SessionId{query.integer(0)};
    session.model = query.text(1);
    session.privacy = query.text(2);
    session.state = query.text(3);
    session.reason = query.text(4);
    session.prompt_tokens = query.integer(5);
    session.tokens = query.integer(6);
    session.relayed_bytes = query.integer(7);
    session.failovers = query.integer(8);
    session.gap_max = Millis{query.integer(9)};
    session.started_at = Millis{query.integer(10)};
    session.ended_at = Millis{query.integer(11)};
    session.group = query.text(12);
    if (!session.group.empty()) session.privacy = "group";
    sessions.push_back(std::move(session));
  }
}

Result<std::vector<SessionStageRow>> SessionTable::stages(SessionId session) {
  std::vector<SessionStageRow> stages;
  Query query = store_.query(
      "SELECT stage, host_id, device, device_name, plane, first_fragment, last_fragment, "
      "opened_at_ms, "
      "lost_at_ms, cause FROM session_stage WHERE session_id = ? ORDER BY stage, id");
  query.bind(session.value);
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return stages;
    SessionStageRow stage;
    stage.stage = query.integer(0);
    stage.host = HostId{query.integer(1)};
    stage.device = query.text(2);
    stage.device_name = query.text(3);
    stage.plane = query.text(4);
    stage.first_fragment = query.integer(5);
    stage.last_fragment = query.integer(6);
    stage.opened_at = Millis{query.integer(7)};
    stage.lost_at = Millis{query.integer(8)};
    stage.cause = query.text(9);
    stages.push_back(std::move(stage));
  }
}

Result<int64_t> SessionTable::tokens_ever() {
  Query query = store_.query("SELECT coalesce(sum(tokens), 0) FROM session");
  SHOAL_TRY_ASSIGN(some, query.row());
  SHOAL_CHECK(some);
  return query.integer(0);
}

Result<int64_t> SessionTable::fail_unfinished(Millis at, const std::string& reason) {
  int64_t count = 0;
  const Result<void> done = store_.transaction([&]() -> Result<void> {
    {
      Query query = store_.query(
          "UPDATE session SET state = 'failed', reason = ?, ended_at_ms = ? WHERE ended_at_ms = 0");
      SHOAL_TRY(query.bind(reason).bind(at.count).run());
      count = store_.changes();
    }
    Query query = store_.query("UPDATE lease SET ended_at_ms = ? WHERE ended_at_ms = 0");
    return query.bind(at.count).run();
  });
  if (!done.ok()) return done.error();
  return count;
}

Result<void> SessionTable::add_event(const EventRow& event) {
  Query query = store_.query(
      "INSERT INTO event (at_ms, kind, host_id, session_id, text, job_id) "
      "VALUES (?, ?, ?, ?, ?, ?)");
  return query.bind(event.at.count)
      .bind(event.kind)
      .bind(event.host.value)
      .bind(event.session.value)
      .bind(event.text)
      .bind(event.job.value)
      .run();
}

namespace {

#define SHOAL_EVENT_COLUMNS "id, at_ms, kind, host_id, session_id, text, job_id"

Result<std::vector<EventRow>> events_of(Query query) {
  std::vector<EventRow> events;
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return events;
    events.push_back({query.integer(0), Millis{query.integer(1)}, query.text(2),
                      HostId{query.integer(3)}, SessionId{query.integer(4)}, query.text(5),
                      JobId{query.integer(6)}});
  }
}

}  // namespace

Result<std::vector<EventRow>> SessionTable::events(int64_t after_id, int64_t count_max) {
  Query query =
      store_.query("SELECT " SHOAL_EVENT_COLUMNS " FROM event WHERE id > ? ORDER BY id LIMIT ?");
  query.bind(after_id).bind(count_max);
  return events_of(std::move(query));
}

Result<std::vector<EventRow>> SessionTable::events_of_job(JobId job, int64_t count_max) {
  Query query = store_.query("SELECT " SHOAL_EVENT_COLUMNS
                             " FROM (SELECT * FROM event WHERE job_id = ? AND job_id <> 0 "
                             "ORDER BY id DESC LIMIT ?) ORDER BY id");
  query.bind(job.value).bind(count_max);
  return events_of(std::move(query));
}

}  // namespace shoal
