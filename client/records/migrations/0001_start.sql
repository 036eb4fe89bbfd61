-- 0001_start.sql: statistics by level, the trace, conditions, past work, yield times, receipts.
-- Names are spelled out and never shared with code: this file must mean the same for ever.

CREATE TABLE mark (
  key TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT;

-- Names of devices, which stand in many rows.
CREATE TABLE name (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;

-- The same figures at each level: 0 minutes, 1 ten minutes, 2 hours, 3 local days. Finer levels are
-- forgotten earlier.
CREATE TABLE statistics (
  level INTEGER NOT NULL,
  start_ms INTEGER NOT NULL,
  device INTEGER NOT NULL REFERENCES name (id),
  worked_ms INTEGER NOT NULL,
  allowed_ms INTEGER NOT NULL,
  rows_done INTEGER NOT NULL,
  steps INTEGER NOT NULL,
  microjoules INTEGER NOT NULL,
  nanocost INTEGER NOT NULL,
  bytes_down INTEGER NOT NULL,
  bytes_up INTEGER NOT NULL,
  confirmed_micro INTEGER NOT NULL,
  pending_micro INTEGER NOT NULL,
  rejected_micro INTEGER NOT NULL,
  power_microjoules INTEGER NOT NULL,
  power_ms INTEGER NOT NULL,
  temperature_max_tenths INTEGER,
  PRIMARY KEY (level, start_ms, device)
) STRICT, WITHOUT ROWID;

CREATE TABLE span (
  id INTEGER PRIMARY KEY,
  resource INTEGER NOT NULL,
  start_ms INTEGER NOT NULL,
  end_ms INTEGER NOT NULL, -- 9223372036854775807: it lasts.
  activity INTEGER NOT NULL,
  rule TEXT NOT NULL,
  why TEXT NOT NULL,
  remedy TEXT NOT NULL,
  changes_at_ms INTEGER
) STRICT;
CREATE INDEX span_by_end ON span (end_ms);

CREATE TABLE condition (
  start_ms INTEGER PRIMARY KEY,
  readings BLOB NOT NULL -- Empty: nobody watches from here on.
) STRICT;

CREATE TABLE past_work (
  id INTEGER PRIMARY KEY,
  lease_id INTEGER NOT NULL,
  session_id INTEGER NOT NULL,
  coordinator TEXT NOT NULL,
  device TEXT NOT NULL,
  job_kind TEXT NOT NULL,
  model TEXT NOT NULL,
  anchored INTEGER NOT NULL,
  first_fragment INTEGER NOT NULL,
  last_fragment INTEGER NOT NULL,
  started_ms INTEGER NOT NULL,
  ended_ms INTEGER NOT NULL,
  steps INTEGER NOT NULL,
  rows_done INTEGER NOT NULL,
  why TEXT NOT NULL
) STRICT;

CREATE TABLE yield (
  id INTEGER PRIMARY KEY,
  at_ms INTEGER NOT NULL,
  device TEXT NOT NULL,
  stop_ms INTEGER NOT NULL,
  free_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE coordinator (
  id INTEGER PRIMARY KEY,
  pin TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  receipt_key BLOB NOT NULL,
  host_id INTEGER NOT NULL,
  through INTEGER NOT NULL DEFAULT 0,
  newest INTEGER NOT NULL DEFAULT 0,
  stored INTEGER NOT NULL DEFAULT 0,
  folded_through INTEGER NOT NULL DEFAULT 0,
  folded_count INTEGER NOT NULL DEFAULT 0,
  folded_genuine INTEGER NOT NULL DEFAULT 0,
  folded_confirmed REAL NOT NULL DEFAULT 0,
  folded_rejected REAL NOT NULL DEFAULT 0,
  folded_chain BLOB NOT NULL,
  folded_seal BLOB NOT NULL
) STRICT;

CREATE TABLE receipt (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  coordinator_id INTEGER NOT NULL REFERENCES coordinator (id),
  number INTEGER NOT NULL,
  host_id INTEGER NOT NULL,
  lease_id INTEGER NOT NULL,
  device TEXT NOT NULL,
  job_kind TEXT NOT NULL,
  model TEXT NOT NULL,
  anchored INTEGER NOT NULL,
  rows_done INTEGER NOT NULL,
  credit REAL NOT NULL,
  verdict INTEGER NOT NULL, -- 0 pending, 1 confirmed, 2 rejected
  reason TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  signature BLOB NOT NULL,
  genuine INTEGER NOT NULL,
  counted_at_ms INTEGER, -- Where the statistics have it; null: nowhere.
  UNIQUE (coordinator_id, number)
) STRICT;
CREATE INDEX receipt_by_lease ON receipt (coordinator_id, lease_id);

-- Receipts that are no longer kept one by one.
CREATE TABLE receipt_day (
  coordinator_id INTEGER NOT NULL REFERENCES coordinator (id),
  start_ms INTEGER NOT NULL,
  receipts INTEGER NOT NULL,
  confirmed REAL NOT NULL,
  rejected REAL NOT NULL,
  PRIMARY KEY (coordinator_id, start_ms)
) STRICT, WITHOUT ROWID;
