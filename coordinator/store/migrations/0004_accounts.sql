-- 0004_accounts.sql: who answers for hosts, the groups that hosts are invited to, and one signed
-- root a day over all receipts.
-- Names are spelled out and never shared with code: this file must mean the same for ever.

CREATE TABLE team (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  created_at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE account (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  banned INTEGER NOT NULL DEFAULT 0 CHECK (banned IN (0, 1)),
  team_id INTEGER REFERENCES team (id),
  created_at_ms INTEGER NOT NULL
) STRICT;

ALTER TABLE host ADD COLUMN account_id INTEGER REFERENCES account (id);
ALTER TABLE host ADD COLUMN group_name TEXT NOT NULL DEFAULT '';
CREATE INDEX host_of_account ON host (account_id);

-- What hosts that are enrolled by it belong to.
ALTER TABLE invite ADD COLUMN account_id INTEGER REFERENCES account (id);
ALTER TABLE invite ADD COLUMN group_name TEXT NOT NULL DEFAULT '';

-- Not empty: only hosts of this group. The level of privacy is then `group`, whatever the column
-- privacy says.
ALTER TABLE model ADD COLUMN group_name TEXT NOT NULL DEFAULT '';
ALTER TABLE session ADD COLUMN group_name TEXT NOT NULL DEFAULT '';
ALTER TABLE ledger ADD COLUMN group_name TEXT NOT NULL DEFAULT '';

-- All receipts after those of the day before, up to the last one of this day: the root of the tree
-- over them, signed by the key of receipts.
CREATE TABLE ledger_day (
  -- Since 1970-01-01, UTC.
  day INTEGER PRIMARY KEY,
  last_receipt_id INTEGER NOT NULL UNIQUE,
  receipt_count INTEGER NOT NULL CHECK (receipt_count > 0),
  -- Of each 64 receipts in a row: the first one's id (8 bytes, little-endian) and their root.
  chunks BLOB NOT NULL,
  root BLOB NOT NULL,
  previous_root BLOB NOT NULL,
  signature BLOB NOT NULL
) STRICT;

CREATE TRIGGER ledger_day_is_never_changed BEFORE UPDATE ON ledger_day
BEGIN
  SELECT RAISE (ABORT, 'the ledger is append-only');
END;

CREATE TRIGGER ledger_day_is_never_removed BEFORE DELETE ON ledger_day
BEGIN
  SELECT RAISE (ABORT, 'the ledger is append-only');
END;
