-- 0003_units.sql: past work may be a unit of a job.
-- Names are spelled out and never shared with code: this file must mean the same for ever.

ALTER TABLE past_work ADD COLUMN unit_id INTEGER NOT NULL DEFAULT 0; -- 0: a stage of a session.
