-- Runs and the people who teach.
-- Times everywhere: nanoseconds since 1970-01-01 UTC. Seeds: the 64 bits read as a signed number.

CREATE TABLE runs (
    id         TEXT    NOT NULL PRIMARY KEY,
    family     TEXT    NOT NULL,
    preset     TEXT    NOT NULL,
    config     TEXT    NOT NULL CONSTRAINT config_is_json CHECK (json_valid(config)),
    seed       INTEGER NOT NULL,
    teacher    TEXT    NOT NULL CONSTRAINT teacher_mode_is_json CHECK (json_valid(teacher)),
    active     INTEGER NOT NULL CONSTRAINT active_is_a_flag CHECK (active IN (0, 1)),
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX runs_newest ON runs (created_at);

CREATE TABLE teachers (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    token_hash BLOB    NOT NULL CONSTRAINT token_is_a_sha256 CHECK (length(token_hash) = 32),
    seen_guide INTEGER NOT NULL DEFAULT 0 CONSTRAINT seen_guide_is_a_flag CHECK (seen_guide IN (0, 1)),
    created_at INTEGER NOT NULL,
    CONSTRAINT one_teacher_per_token UNIQUE (token_hash)
) STRICT;
