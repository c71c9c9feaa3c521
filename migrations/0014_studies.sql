-- Studies: teachers who join by a link, agree to something, learn what to do, and are asked for a number of answers.

CREATE TABLE studies (
    id             TEXT    NOT NULL PRIMARY KEY,
    state          TEXT    NOT NULL DEFAULT 'draft'
        CONSTRAINT study_state_is_known CHECK (state IN ('draft', 'open', 'paused', 'closed')),
    settings       TEXT    NOT NULL CONSTRAINT study_settings_are_json CHECK (json_valid(settings)),
    -- Key that webhooks are signed with. It stands apart from the settings, which are shown and exported.
    webhook_secret TEXT    NOT NULL,
    created_by     TEXT    NOT NULL,
    created_at     INTEGER NOT NULL,
    opened_at      INTEGER,
    closed_at      INTEGER
) STRICT;

-- The runs that a study teaches. A run belongs to one study at most, so that an answer's study follows from its run.
CREATE TABLE study_arms (
    study    TEXT    NOT NULL REFERENCES studies (id),
    position INTEGER NOT NULL CONSTRAINT arm_position_is_a_count CHECK (position >= 0),
    run      TEXT    NOT NULL REFERENCES runs (id),
    name     TEXT    NOT NULL,
    PRIMARY KEY (study, position),
    CONSTRAINT one_study_per_run UNIQUE (run)
) STRICT, WITHOUT ROWID;

-- Teachers in a study. The columns from platform_person to invitation_label are about the person and can be erased.
CREATE TABLE participants (
    id                  INTEGER PRIMARY KEY AUTOINCREMENT,
    study               TEXT    NOT NULL REFERENCES studies (id),
    teacher             INTEGER NOT NULL REFERENCES teachers (id),
    number              INTEGER NOT NULL CONSTRAINT participant_number_is_positive CHECK (number >= 1),
    arm                 INTEGER CONSTRAINT participant_arm_is_a_count CHECK (arm >= 0),
    state               TEXT    NOT NULL
        CONSTRAINT participant_state_is_known
        CHECK (state IN ('guidelines', 'qualifying', 'waiting', 'teaching', 'finished', 'screened_out', 'left')),
    consent             TEXT,
    platform_person     TEXT,
    platform_study      TEXT,
    platform_session    TEXT,
    invitation_label    TEXT,
    erased_at           INTEGER,
    preview             INTEGER NOT NULL DEFAULT 0 CONSTRAINT preview_is_a_flag CHECK (preview IN (0, 1)),
    attention_passed    INTEGER NOT NULL DEFAULT 0,
    attention_missed    INTEGER NOT NULL DEFAULT 0,
    completion_code     TEXT,
    approval            TEXT    NOT NULL DEFAULT 'pending'
        CONSTRAINT approval_is_known CHECK (approval IN ('pending', 'approved', 'rejected')),
    joined_at           INTEGER NOT NULL,
    qualified_at        INTEGER,
    finished_at         INTEGER,
    CONSTRAINT one_participant_per_teacher UNIQUE (study, teacher),
    CONSTRAINT one_number_per_participant UNIQUE (study, number)
) STRICT;

CREATE UNIQUE INDEX participants_of_platform ON participants (study, platform_person) WHERE platform_person IS NOT NULL;
CREATE INDEX participants_of_teacher ON participants (teacher);

CREATE TABLE study_invitations (
    token_hash  BLOB    NOT NULL PRIMARY KEY CONSTRAINT invitation_is_a_sha256 CHECK (length(token_hash) = 32),
    study       TEXT    NOT NULL REFERENCES studies (id),
    label       TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    revoked_at  INTEGER,
    participant INTEGER REFERENCES participants (id)
) STRICT, WITHOUT ROWID;

CREATE INDEX invitations_of_participant ON study_invitations (participant);
CREATE INDEX invitations_of_study ON study_invitations (study, created_at);

-- Another browser of a teacher: a platform or an invitation says that it is the same person.
CREATE TABLE teacher_browsers (
    token_hash BLOB    NOT NULL PRIMARY KEY CONSTRAINT browser_token_is_a_sha256 CHECK (length(token_hash) = 32),
    teacher    INTEGER NOT NULL REFERENCES teachers (id),
    added_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX browsers_of_teacher ON teacher_browsers (teacher);

-- The executions that everybody who wants to take part describes first, and what was said of them.
CREATE TABLE qualification_items (
    study     TEXT    NOT NULL REFERENCES studies (id),
    position  INTEGER NOT NULL CONSTRAINT item_position_is_a_count CHECK (position >= 0),
    execution INTEGER NOT NULL REFERENCES executions (id),
    PRIMARY KEY (study, position)
) STRICT, WITHOUT ROWID;

CREATE INDEX qualification_items_of_execution ON qualification_items (execution);

CREATE TABLE qualification_answers (
    participant INTEGER NOT NULL REFERENCES participants (id),
    position    INTEGER NOT NULL,
    text        TEXT    NOT NULL,
    passed      INTEGER CONSTRAINT passed_is_a_flag CHECK (passed IN (0, 1)),
    judged_by   TEXT,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (participant, position)
) STRICT, WITHOUT ROWID;

-- Who changed what in a study, and when.
CREATE TABLE audit (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,
    actor  TEXT    NOT NULL,
    study  TEXT    REFERENCES studies (id),
    action TEXT    NOT NULL,
    detail TEXT    NOT NULL CONSTRAINT audit_detail_is_json CHECK (json_valid(detail))
) STRICT;

CREATE INDEX audit_of_study ON audit (study, id);

-- Messages to the programs of researchers. A row stays until the other side has taken it, or it was given up.
CREATE TABLE webhook_messages (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    study        TEXT    NOT NULL REFERENCES studies (id),
    event        TEXT    NOT NULL,
    body         TEXT    NOT NULL CONSTRAINT webhook_body_is_json CHECK (json_valid(body)),
    created_at   INTEGER NOT NULL,
    attempts     INTEGER NOT NULL DEFAULT 0,
    next_at      INTEGER NOT NULL,
    delivered_at INTEGER,
    given_up_at  INTEGER,
    last_error   TEXT
) STRICT;

CREATE INDEX webhook_messages_due ON webhook_messages (next_at) WHERE delivered_at IS NULL AND given_up_at IS NULL;
CREATE INDEX webhook_messages_of_study ON webhook_messages (study, id);
