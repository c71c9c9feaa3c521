-- Everything teachers said, people and simulated ones alike: one key space, so that an export is one walk.

CREATE TABLE updates (
    run         TEXT    NOT NULL REFERENCES runs (id),
    update_no   INTEGER NOT NULL CONSTRAINT update_is_a_count CHECK (update_no >= 0),
    data        TEXT    NOT NULL,
    recorded_at INTEGER NOT NULL,
    PRIMARY KEY (run, update_no)
) STRICT, WITHOUT ROWID;

-- The update that used an answer is a column of the answer: an answer cannot be in two updates.
CREATE TABLE answers (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    run            TEXT    NOT NULL REFERENCES runs (id),
    episode        INTEGER NOT NULL,
    source         TEXT    NOT NULL CONSTRAINT source_is_known CHECK (source IN ('human', 'simulated')),
    execution      INTEGER REFERENCES executions (id),
    teacher        INTEGER REFERENCES teachers (id),
    client_key     TEXT    CONSTRAINT client_key_has_1_to_64_characters CHECK (length(client_key) BETWEEN 1 AND 64),
    kind           TEXT    NOT NULL CONSTRAINT kind_is_known
        CHECK (kind IN ('described', 'nothing_changed', 'cannot_describe', 'skipped')),
    text           TEXT    NOT NULL,
    request_shown  INTEGER NOT NULL CONSTRAINT request_shown_is_a_flag CHECK (request_shown IN (0, 1)),
    policy_update  INTEGER NOT NULL,
    shown_at       INTEGER,
    active_ms      INTEGER,
    created_at     INTEGER NOT NULL,
    supersedes     INTEGER REFERENCES answers (id),
    superseded_by  INTEGER REFERENCES answers (id),
    used_in_update INTEGER,
    used_position  INTEGER,
    used_at        INTEGER,
    CONSTRAINT people_answer_executions CHECK (
        (source = 'human') = (execution IS NOT NULL AND teacher IS NOT NULL AND client_key IS NOT NULL)
    )
) STRICT;

-- The same key of the same teacher stores once.
CREATE UNIQUE INDEX answers_stored_once ON answers (teacher, client_key);
-- One standing answer per teacher and execution.
CREATE UNIQUE INDEX answers_standing ON answers (execution, teacher)
    WHERE superseded_by IS NULL AND execution IS NOT NULL;
CREATE INDEX answers_of_execution ON answers (execution, teacher) WHERE execution IS NOT NULL;
CREATE INDEX answers_superseding ON answers (supersedes) WHERE supersedes IS NOT NULL;
CREATE INDEX answers_superseded ON answers (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX answers_of_teacher ON answers (run, teacher, id, kind, used_in_update)
    WHERE superseded_by IS NULL AND teacher IS NOT NULL;
CREATE INDEX answers_of_run ON answers (run, id);
CREATE INDEX answers_unused ON answers (run, id)
    WHERE used_in_update IS NULL AND superseded_by IS NULL AND execution IS NOT NULL AND kind <> 'skipped';
CREATE UNIQUE INDEX answers_in_order_of_use ON answers (run, used_in_update, used_position)
    WHERE used_position IS NOT NULL;
CREATE INDEX answers_latest_used ON answers (run, used_at, id) WHERE used_position IS NOT NULL;
