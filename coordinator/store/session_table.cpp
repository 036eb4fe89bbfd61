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

Result<void> SessionTable::set_figures(SessionId session, const SessionFigures& figures) {
  return store_.transaction([&]() -> Result<void> {
    const SessionTimes& predicted = figures.predicted;
    const SessionTimes& measured = figures.measured;
    Query whole = store_.query(
        "INSERT OR REPLACE INTO session_times (session_id, block_rows, predicted_prefill_seconds, "
        "predicted_tokens_per_second, prefill_seconds, tokens_per_second) "
        "VALUES (?, ?, ?, ?, ?, ?)");
    SHOAL_TRY(whole.bind(session.value)
                  .bind(figures.block_rows)
                  .bind(predicted.prefill_seconds)
                  .bind(predicted.tokens_per_second)
                  .bind(measured.prefill_seconds)
                  .bind(measured.tokens_per_second)
                  .run());
    SHOAL_CHECK(predicted.stages.size() == measured.stages.size());
    for (size_t i = 0; i < predicted.stages.size(); ++i) {
      const StageTimes& was = predicted.stages[i];
      const StageTimes& is = measured.stages[i];
      Query stage = store_.query(
          "INSERT OR REPLACE INTO session_stage_times (session_id, stage, predicted_row_seconds, "
          "predicted_block_seconds, predicted_hop_seconds, row_seconds, row_steps, block_seconds, "
          "block_steps, hop_seconds) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
      SHOAL_TRY(stage.bind(session.value)
                    .bind(static_cast<int64_t>(i))
                    .bind(was.row_seconds)
                    .bind(was.block_seconds)
                    .bind(was.hop_seconds)
                    .bind(is.row_seconds)
                    .bind(is.row_steps)
                    .bind(is.block_seconds)
                    .bind(is.block_steps)
                    .bind(is.hop_seconds)
                    .run());
    }
    return {};
  });
}

Result<SessionFigures> SessionTable::figures(SessionId session) {
  SessionFigures figures;
  Query whole = store_.query(
      "SELECT block_rows, predicted_prefill_seconds, predicted_tokens_per_second, "
      "prefill_seconds, tokens_per_second FROM session_times WHERE session_id = ?");
  whole.bind(session.value);
  SHOAL_TRY_ASSIGN(there, whole.row());
  if (!there) return figures;
  figures.block_rows = whole.integer(0);
  figures.predicted.prefill_seconds = whole.real(1);
  figures.predicted.tokens_per_second = whole.real(2);
  figures.measured.prefill_seconds = whole.real(3);
  figures.measured.tokens_per_second = whole.real(4);
  Query query = store_.query(
      "SELECT predicted_row_seconds, predicted_block_seconds, predicted_hop_seconds, row_seconds, "
      "row_steps, block_seconds, block_steps, hop_seconds FROM session_stage_times "
      "WHERE session_id = ? ORDER BY stage");
  query.bind(session.value);
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return figures;
    figures.predicted.stages.push_back({query.real(0), query.real(1), query.real(2)});
    figures.measured.stages.push_back(
        {query.real(3), query.real(5), query.real(7), query.integer(4), query.integer(6)});
  }
}

namespace {

#define SHOAL_SESSION_COLUMNS                                                            \
  "id, model, privacy, state, reason, prompt_tokens, tokens, relayed_bytes, failovers, " \
  "gap_ms_max, started_at_ms, ended_at_ms, group_name"

Result<std::vector<SessionRow>> sessions_of(Query query) {
  std::vector<SessionRow> sessions;
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

}  // namespace

Result<std::vector<SessionRow>> SessionTable::list(int64_t ended_max) {
  Query query = store_.query(
      "SELECT " SHOAL_SESSION_COLUMNS
      " FROM session WHERE ended_at_ms = 0 OR id IN "
      "(SELECT id FROM session WHERE ended_at_ms <> 0 ORDER BY id DESC LIMIT ?) ORDER BY id DESC");
  query.bind(ended_max);
  return sessions_of(std::move(query));
}

Result<std::optional<SessionRow>> SessionTable::find(SessionId session) {
  Query query = store_.query("SELECT " SHOAL_SESSION_COLUMNS " FROM session WHERE id = ?");
  query.bind(session.value);
  SHOAL_TRY_ASSIGN(found, sessions_of(std::move(query)));
  if (found.empty()) return std::optional<SessionRow>();
  return std::optional(std::move(found.front()));
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
