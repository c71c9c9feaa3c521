-- What one visitor can do to others, and what the machine's time of day can do to leases.

-- A lease counts from `renewed_at` until `expires_at`. A row that says that it was renewed in the future is of a time
-- before the clock was set back, and counts no longer.
--
-- Rows stay for ever: who has had an execution may answer it, be it late; nobody else may. `expires_at` 0 says that it was
-- given back or answered: it cannot be renewed.
ALTER TABLE leases ADD COLUMN renewed_at INTEGER NOT NULL DEFAULT 0;

-- It was not kept when a lease was renewed: no longer than ten minutes before its end is near enough.
UPDATE leases SET renewed_at = max(taken_at, expires_at - 600000000000);

INSERT INTO leases (execution, teacher, taken_at, renewed_at, expires_at)
SELECT execution, teacher, min(created_at), min(created_at), 0 FROM answers
WHERE execution IS NOT NULL AND teacher IS NOT NULL GROUP BY execution, teacher
ON CONFLICT (execution, teacher) DO NOTHING;

-- Whether the teacher has ever answered (a skip is no answer). Who has not holds less, and for a shorter time.
ALTER TABLE teachers ADD COLUMN answered INTEGER NOT NULL DEFAULT 0
    CONSTRAINT answered_is_a_flag CHECK (answered IN (0, 1));
UPDATE teachers SET answered = 1
WHERE id IN (SELECT teacher FROM answers WHERE teacher IS NOT NULL AND kind <> 'skipped');

-- late: 0  it takes one of the places that the execution has
--       1  it came when every place was taken or held by others; the trainer learns from it
--       2  another such answer, beyond those that the trainer learns from; it is kept for the dataset
ALTER TABLE answers ADD COLUMN late INTEGER NOT NULL DEFAULT 0 CONSTRAINT late_is_known CHECK (late IN (0, 1, 2));

DROP INDEX answers_unused;
CREATE INDEX answers_unused ON answers (run, id)
    WHERE used_in_update IS NULL AND superseded_by IS NULL AND execution IS NOT NULL AND kind <> 'skipped' AND late < 2;

-- Newest first goes by keys: times of day can go back.
DROP INDEX answers_latest_used;
DROP INDEX episodes_latest;
CREATE INDEX episodes_newest ON episodes (run, id);
DROP INDEX checkpoints_newest;
CREATE INDEX checkpoints_newest ON checkpoints (run, update_no, name);
DROP INDEX runs_newest;

-- The key that signs visitors' cookies, so that the server knows its own again without a row for each.
CREATE TABLE secrets (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO secrets (name, value) VALUES ('visitors', randomblob(32));
