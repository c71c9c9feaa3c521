-- What the curves are drawn from, and the checkpoints on disk.

CREATE TABLE points (
    run              TEXT    NOT NULL REFERENCES runs (id),
    update_no        INTEGER NOT NULL,
    episodes         INTEGER NOT NULL,
    descriptions     INTEGER NOT NULL,
    seconds          REAL    NOT NULL,
    loss             REAL,
    training_success REAL,
    valid_share      REAL,
    gold_share       REAL,
    validation       REAL,
    validation_n     INTEGER,
    validation_low   REAL,
    validation_high  REAL,
    lambda           REAL,
    PRIMARY KEY (run, update_no)
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoints (
    run             TEXT    NOT NULL REFERENCES runs (id),
    name            TEXT    NOT NULL,
    update_no       INTEGER NOT NULL,
    episodes        INTEGER NOT NULL,
    descriptions    INTEGER NOT NULL,
    validation      REAL,
    validation_n    INTEGER,
    validation_low  REAL,
    validation_high REAL,
    bytes           INTEGER NOT NULL,
    written_at      TEXT    NOT NULL,
    best            INTEGER NOT NULL CONSTRAINT best_is_a_flag CHECK (best IN (0, 1)),
    PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX checkpoints_newest ON checkpoints (run, update_no, written_at);
