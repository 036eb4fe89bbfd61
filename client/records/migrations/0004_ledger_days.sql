-- 0004_ledger_days.sql: what coordinators signed about all receipts of a day, and the proofs that
-- this computer's are among them. A receipt's and a past work's column `anchored` holds the level of
-- privacy: 0 public, 1 anchored, 2 group.
-- Names are spelled out and never shared with code: this file must mean the same for ever.

CREATE TABLE ledger_day (
  coordinator_id INTEGER NOT NULL REFERENCES coordinator (id),
  day INTEGER NOT NULL, -- Since 1970-01-01, UTC.
  receipts INTEGER NOT NULL,
  root BLOB NOT NULL,
  previous_root BLOB NOT NULL,
  signature BLOB NOT NULL,
  whole INTEGER NOT NULL, -- All proofs of it have come.
  PRIMARY KEY (coordinator_id, day)
) STRICT, WITHOUT ROWID;

CREATE TABLE receipt_proof (
  coordinator_id INTEGER NOT NULL REFERENCES coordinator (id),
  number INTEGER NOT NULL,
  day INTEGER NOT NULL,
  place INTEGER NOT NULL,
  path BLOB NOT NULL,
  PRIMARY KEY (coordinator_id, number)
) STRICT, WITHOUT ROWID;
