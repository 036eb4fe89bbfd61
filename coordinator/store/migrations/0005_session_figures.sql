-- 0005_session_figures.sql: what a session's plan predicted, beside what was measured.
-- Names are spelled out and never shared with code: this file must mean the same for ever.

CREATE TABLE session_times (
  session_id INTEGER PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
  block_rows INTEGER NOT NULL,
  predicted_prefill_seconds REAL NOT NULL,
  predicted_tokens_per_second REAL NOT NULL,
  -- 0: it has not come so far.
  prefill_seconds REAL NOT NULL,
  tokens_per_second REAL NOT NULL
) STRICT;

CREATE TABLE session_stage_times (
  session_id INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  stage INTEGER NOT NULL,
  predicted_row_seconds REAL NOT NULL,
  predicted_block_seconds REAL NOT NULL,
  predicted_hop_seconds REAL NOT NULL,
  -- Means of so many steps; 0: of none.
  row_seconds REAL NOT NULL,
  row_steps INTEGER NOT NULL,
  block_seconds REAL NOT NULL,
  block_steps INTEGER NOT NULL,
  hop_seconds REAL NOT NULL,
  PRIMARY KEY (session_id, stage)
) STRICT;
