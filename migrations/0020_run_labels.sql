-- Labels of runs: what people say about them, and what becomes of them. A run without a row has the defaults.
CREATE TABLE run_labels (
    run         TEXT    NOT NULL PRIMARY KEY REFERENCES runs (id),
    name        TEXT    NOT NULL DEFAULT '',
    notes       TEXT    NOT NULL DEFAULT '',
    tags        TEXT    NOT NULL DEFAULT '[]' CONSTRAINT tags_are_json CHECK (json_valid(tags)),
    archived_at INTEGER,
    -- When it was put into the trash, and when its files were removed for good where its rows stay with a study.
    trashed_at  INTEGER,
    purged_at   INTEGER,
    -- The maker: the server, or a command whose folder was found.
    made_by     TEXT    NOT NULL DEFAULT 'server'
        CONSTRAINT maker_is_known CHECK (made_by IN ('server', 'train', 'reproduce', 'import')),
    -- The run's folder within the data folder, where it is another than runs/ID.
    folder      TEXT,
    -- The run, and its checkpoint, that this one began with. The other run may be gone.
    parent            TEXT,
    parent_checkpoint TEXT,
    -- The history before the store began to record the run: its update by then, and the descriptions by people that it had
    -- learned from. NULL where the store has all of it.
    inherited_update  INTEGER,
    inherited_people  INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX run_labels_trashed ON run_labels (trashed_at) WHERE trashed_at IS NOT NULL;

-- Success of checkpoints that somebody asked for on the run's page.
CREATE TABLE run_evaluations (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    run          TEXT    NOT NULL REFERENCES runs (id),
    checkpoint   TEXT    NOT NULL,
    update_no    INTEGER NOT NULL,
    episodes     INTEGER NOT NULL,
    split        TEXT    NOT NULL CONSTRAINT split_is_known CHECK (split IN ('train', 'validation', 'test')),
    evaluation   TEXT    NOT NULL CONSTRAINT evaluation_is_json CHECK (json_valid(evaluation)),
    evaluated_at INTEGER NOT NULL
) STRICT;

CREATE INDEX run_evaluations_of_run ON run_evaluations (run, id);

CREATE INDEX studies_of_executor ON studies (settings ->> '$.qualification.executor');
