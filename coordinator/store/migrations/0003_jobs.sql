-- 0003_jobs.sql: jobs, their tasks and units, who was given which unit, what came back; and a ledger
-- that knows units as well as stages.
-- Names are spelled out and never shared with code: this file must mean the same for ever.

CREATE TABLE job (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  -- The job file as it was given.
  spec TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('running', 'paused', 'done', 'cancelled', 'faulted')),
  reason TEXT NOT NULL DEFAULT '',
  priority INTEGER NOT NULL,
  deadline_at_ms INTEGER NOT NULL,
  submitted_at_ms INTEGER NOT NULL,
  ended_at_ms INTEGER NOT NULL DEFAULT 0,
  -- Confirmed, in parts of 2^-20 of a credit.
  credit_parts INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX job_live ON job (id) WHERE ended_at_ms = 0;

CREATE TABLE task (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id INTEGER NOT NULL REFERENCES job (id),
  -- Its place in the job file, from 0.
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('generate', 'score', 'embed')),
  model TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'done', 'stopped')),
  item_count INTEGER NOT NULL,
  flops_per_item INTEGER NOT NULL,
  memory_bytes INTEGER NOT NULL,
  -- Positions that its longest item needs.
  context INTEGER NOT NULL,
  unit_item_count_max INTEGER NOT NULL,
  unit_target_ms INTEGER NOT NULL,
  -- Of its items' file; empty while the task before it, whose output they are, is not done.
  items_digest BLOB NOT NULL,
  -- Of its output file; empty until it is done.
  output_digest BLOB NOT NULL,
  UNIQUE (job_id, position)
) STRICT;

-- `task_id` begins when `after_task_id` is done.
CREATE TABLE task_edge (
  task_id INTEGER NOT NULL REFERENCES task (id),
  after_task_id INTEGER NOT NULL REFERENCES task (id),
  PRIMARY KEY (task_id, after_task_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE unit (
  id INTEGER PRIMARY KEY,
  task_id INTEGER NOT NULL REFERENCES task (id),
  first_item INTEGER NOT NULL,
  item_count INTEGER NOT NULL CHECK (item_count > 0),
  state TEXT NOT NULL CHECK (state IN ('open', 'done', 'poisoned')),
  want TEXT NOT NULL CHECK (want IN ('nothing', 'audit', 'judge')),
  -- Of its result, when it is done, and whose that was.
  digest BLOB NOT NULL,
  lease_id INTEGER NOT NULL
) STRICT;
CREATE INDEX unit_of_task ON unit (task_id, first_item);
CREATE INDEX unit_open ON unit (task_id) WHERE state = 'open';

-- Its ids begin at 2^40, so that no stage's lease has the same.
CREATE TABLE unit_lease (
  id INTEGER PRIMARY KEY,
  unit_id INTEGER NOT NULL REFERENCES unit (id),
  host_id INTEGER NOT NULL REFERENCES host (id),
  device_id INTEGER NOT NULL,
  purpose TEXT NOT NULL CHECK (purpose IN ('work', 'audit', 'recheck', 'judge', 'known')),
  granted_at_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,
  -- 0 while it holds.
  ended_at_ms INTEGER NOT NULL,
  end_reason TEXT NOT NULL CHECK (end_reason IN
    ('', 'submitted', 'expired', 'given_back', 'failed', 'quarantined', 'cancelled')),
  result TEXT NOT NULL CHECK (result IN ('none', 'pending', 'suspect', 'confirmed', 'rejected')),
  digest BLOB NOT NULL,
  serial INTEGER NOT NULL,
  result_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX unit_lease_of_unit ON unit_lease (unit_id);
-- Those of which something is still to come.
CREATE INDEX unit_lease_open ON unit_lease (unit_id)
  WHERE ended_at_ms = 0 OR result IN ('pending', 'suspect');

-- The bytes of results that may still count: of a unit that is done, its own alone. Large ones are
-- files in DATA/jobs, named by their digests, and empty here.
CREATE TABLE result (
  id INTEGER PRIMARY KEY,
  unit_id INTEGER NOT NULL REFERENCES unit (id),
  digest BLOB NOT NULL,
  size INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  UNIQUE (unit_id, digest)
) STRICT;

-- What the broker thinks of a host.
CREATE TABLE host_record (
  host_id INTEGER PRIMARY KEY REFERENCES host (id),
  valid_in_row INTEGER NOT NULL,
  wrong INTEGER NOT NULL,
  quarantined_until_ms INTEGER NOT NULL,
  -- The greatest of its results.
  serial INTEGER NOT NULL
) STRICT;

-- The ledger's lease may be a stage's or a unit's now, so it refers to neither table.
CREATE TABLE ledger_of_all (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  lease_id INTEGER NOT NULL UNIQUE,
  -- One of both is 0.
  session_id INTEGER NOT NULL,
  unit_id INTEGER NOT NULL,
  host_id INTEGER NOT NULL REFERENCES host (id),
  device TEXT NOT NULL,
  kind TEXT NOT NULL,
  model TEXT NOT NULL,
  privacy TEXT NOT NULL CHECK (privacy IN ('public', 'anchored')),
  first_fragment INTEGER NOT NULL,
  last_fragment INTEGER NOT NULL,
  row_count INTEGER NOT NULL CHECK (row_count >= 0),
  flops INTEGER NOT NULL CHECK (flops >= 0),
  -- In parts of 2^-20 of a credit; a credit is 10^12 FLOP.
  credit_parts INTEGER NOT NULL CHECK (credit_parts >= 0),
  ended_at_ms INTEGER NOT NULL
) STRICT;
INSERT INTO ledger_of_all
  SELECT id, lease_id, session_id, 0, host_id, device, kind, model, privacy, first_fragment,
    last_fragment, row_count, flops, credit_parts, ended_at_ms FROM ledger;

CREATE TABLE receipt_of_all (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  host_id INTEGER NOT NULL REFERENCES host (id),
  number INTEGER NOT NULL CHECK (number > 0),
  ledger_id INTEGER NOT NULL REFERENCES ledger_of_all (id),
  verdict TEXT NOT NULL CHECK (verdict IN ('pending', 'confirmed', 'rejected')),
  reason TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  signature BLOB NOT NULL,
  confirmed_parts_sum INTEGER NOT NULL CHECK (confirmed_parts_sum >= 0),
  pending_parts_sum INTEGER NOT NULL CHECK (pending_parts_sum >= 0),
  rejected_parts_sum INTEGER NOT NULL CHECK (rejected_parts_sum >= 0),
  UNIQUE (host_id, number),
  UNIQUE (ledger_id, verdict)
) STRICT;
INSERT INTO receipt_of_all SELECT * FROM receipt;

DROP TABLE receipt;
DROP TABLE ledger;
ALTER TABLE ledger_of_all RENAME TO ledger;
ALTER TABLE receipt_of_all RENAME TO receipt;

CREATE INDEX ledger_of_session ON ledger (session_id) WHERE session_id <> 0;
CREATE UNIQUE INDEX receipt_judged_once ON receipt (ledger_id) WHERE verdict <> 'pending';

CREATE TRIGGER ledger_is_never_changed BEFORE UPDATE ON ledger
BEGIN
  SELECT RAISE (ABORT, 'the ledger is append-only');
END;

CREATE TRIGGER ledger_is_never_removed BEFORE DELETE ON ledger
BEGIN
  SELECT RAISE (ABORT, 'the ledger is append-only');
END;

CREATE TRIGGER receipt_is_never_changed BEFORE UPDATE ON receipt
BEGIN
  SELECT RAISE (ABORT, 'receipts are append-only');
END;

CREATE TRIGGER receipt_is_never_removed BEFORE DELETE ON receipt
BEGIN
  SELECT RAISE (ABORT, 'receipts are append-only');
END;

-- An event may be of a job.
ALTER TABLE event ADD COLUMN job_id INTEGER NOT NULL DEFAULT 0;
CREATE INDEX event_of_job ON event (job_id, id) WHERE job_id <> 0;
