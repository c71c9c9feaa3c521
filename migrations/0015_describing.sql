-- What somebody is typing and has not sent, kept with the execution that it is about. A draft goes when its text is sent or
-- discarded, or when it is old. `version` grows with each change of the page that types it, so that an older one that comes
-- late changes nothing.
CREATE TABLE drafts (
    teacher    INTEGER NOT NULL REFERENCES teachers (id),
    execution  INTEGER NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    client_key TEXT    NOT NULL CONSTRAINT draft_key_has_1_to_64_characters CHECK (length(client_key) BETWEEN 1 AND 64),
    version    INTEGER NOT NULL,
    text       TEXT    NOT NULL,
    saved_at   INTEGER NOT NULL,
    PRIMARY KEY (teacher, execution)
) STRICT, WITHOUT ROWID;

CREATE INDEX drafts_of_execution ON drafts (execution);
CREATE INDEX drafts_of_teacher ON drafts (teacher, saved_at);
CREATE INDEX drafts_by_age ON drafts (saved_at);

-- Whether the teacher asked to see the request of the execution, in a run that hides requests.
ALTER TABLE leases ADD COLUMN revealed INTEGER NOT NULL DEFAULT 0 CONSTRAINT revealed_is_a_flag CHECK (revealed IN (0, 1));

-- Milliseconds without a sign of the person, beside those of activity.
ALTER TABLE answers ADD COLUMN idle_ms INTEGER;
-- The person said that the execution did what was asked: the description is the request.
ALTER TABLE answers ADD COLUMN fulfilled INTEGER NOT NULL DEFAULT 0 CONSTRAINT fulfilled_is_a_flag CHECK (fulfilled IN (0, 1));
-- Whether the person is one of those to whom previews are shown; empty where nobody is.
ALTER TABLE answers ADD COLUMN preview_arm INTEGER CONSTRAINT preview_arm_is_a_flag CHECK (preview_arm IN (0, 1));
-- The text of which a preview was shown before the answer was sent; empty where none was shown.
ALTER TABLE answers ADD COLUMN first_text TEXT;
