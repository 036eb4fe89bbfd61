-- 0002_ledger.sql: what was done under each lease and what it is worth, what hosts were told of it,
-- and what models are for.
-- Names are spelled out and never shared with code: this file must mean the same for ever.

ALTER TABLE model ADD COLUMN purpose TEXT NOT NULL DEFAULT '';

-- One row a lease, when it ended.
CREATE TABLE ledger (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  lease_id INTEGER NOT NULL UNIQUE REFERENCES lease (id),
  session_id INTEGER NOT NULL,
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
CREATE INDEX ledger_of_session ON ledger (session_id);

-- One row a verdict: pending, then once confirmed or rejected; or one of these at once. The sums are
-- the host's, in parts, with this verdict.
CREATE TABLE receipt (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  host_id INTEGER NOT NULL REFERENCES host (id),
  number INTEGER NOT NULL CHECK (number > 0),
  ledger_id INTEGER NOT NULL REFERENCES ledger (id),
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
