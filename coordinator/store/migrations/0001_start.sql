-- 0001_start.sql: hosts and what they proved, models and their shards, sessions, invites, events.
-- Names are spelled out and never shared with code: this file must mean the same for ever.

CREATE TABLE setting (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

CREATE TABLE host (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  public_key BLOB NOT NULL UNIQUE,
  name TEXT NOT NULL,
  system TEXT NOT NULL,
  version TEXT NOT NULL,
  standing TEXT NOT NULL CHECK (standing IN ('volunteer', 'trusted', 'banned')),
  enrolled_at_ms INTEGER NOT NULL,
  last_seen_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE device (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  host_id INTEGER NOT NULL REFERENCES host (id) ON DELETE CASCADE,
  name_on_host TEXT NOT NULL,
  selector TEXT NOT NULL,
  plane TEXT NOT NULL,
  name TEXT NOT NULL,
  driver TEXT NOT NULL,
  memory_bytes INTEGER NOT NULL,
  software INTEGER NOT NULL,
  last_seen_ms INTEGER NOT NULL,
  UNIQUE (host_id, name_on_host)
) STRICT;

CREATE TABLE benchmark (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  device_id INTEGER NOT NULL REFERENCES device (id) ON DELETE CASCADE,
  measured_at_ms INTEGER NOT NULL,
  decode_rows_per_second REAL NOT NULL,
  prefill_rows_per_second REAL NOT NULL,
  weight_bytes_per_second REAL NOT NULL,
  flops_per_second REAL NOT NULL,
  copy_bytes_per_second REAL NOT NULL,
  exact INTEGER NOT NULL,
  samples INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  unsupported INTEGER NOT NULL,
  first_failure TEXT NOT NULL
) STRICT;
CREATE INDEX benchmark_of_device ON benchmark (device_id, id);

CREATE TABLE model (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  digest BLOB NOT NULL,
  manifest BLOB NOT NULL,
  published_at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE shard (
  model_id INTEGER NOT NULL REFERENCES model (id) ON DELETE CASCADE,
  fragment INTEGER NOT NULL,
  digest BLOB NOT NULL,
  sealed_bytes INTEGER NOT NULL,
  wrapped_key BLOB NOT NULL,
  PRIMARY KEY (model_id, fragment)
) STRICT;
CREATE INDEX shard_by_digest ON shard (digest);

CREATE TABLE session (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  model TEXT NOT NULL,
  privacy TEXT NOT NULL CHECK (privacy IN ('public', 'anchored')),
  state TEXT NOT NULL CHECK (state IN
    ('planning', 'loading', 'running', 'repairing', 'done', 'failed', 'cancelled')),
  reason TEXT NOT NULL DEFAULT '',
  prompt_tokens INTEGER NOT NULL,
  tokens INTEGER NOT NULL DEFAULT 0,
  relayed_bytes INTEGER NOT NULL DEFAULT 0,
  failovers INTEGER NOT NULL DEFAULT 0,
  gap_ms_max INTEGER NOT NULL DEFAULT 0,
  started_at_ms INTEGER NOT NULL,
  ended_at_ms INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX session_live ON session (id) WHERE ended_at_ms = 0;

CREATE TABLE session_stage (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  stage INTEGER NOT NULL,
  host_id INTEGER NOT NULL REFERENCES host (id),
  device TEXT NOT NULL,
  device_name TEXT NOT NULL,
  plane TEXT NOT NULL,
  first_fragment INTEGER NOT NULL,
  last_fragment INTEGER NOT NULL,
  opened_at_ms INTEGER NOT NULL,
  lost_at_ms INTEGER NOT NULL DEFAULT 0,
  cause TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX session_stage_of_session ON session_stage (session_id, stage, id);

CREATE TABLE lease (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  host_id INTEGER NOT NULL REFERENCES host (id),
  device TEXT NOT NULL,
  first_fragment INTEGER NOT NULL,
  last_fragment INTEGER NOT NULL,
  granted_at_ms INTEGER NOT NULL,
  ended_at_ms INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX lease_live ON lease (session_id) WHERE ended_at_ms = 0;

CREATE TABLE invite (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  secret_digest BLOB NOT NULL UNIQUE,
  created_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  uses_max INTEGER NOT NULL,
  uses INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE event (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at_ms INTEGER NOT NULL,
  kind TEXT NOT NULL,
  host_id INTEGER NOT NULL DEFAULT 0,
  session_id INTEGER NOT NULL DEFAULT 0,
  text TEXT NOT NULL
) STRICT;

CREATE TRIGGER event_is_never_changed BEFORE UPDATE ON event
BEGIN
  SELECT RAISE (ABORT, 'events are append-only');
END;

CREATE TRIGGER event_is_never_removed BEFORE DELETE ON event
BEGIN
  SELECT RAISE (ABORT, 'events are append-only');
END;
