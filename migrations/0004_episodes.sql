-- Episodes that the simulated teacher was (or was not) asked about. What it said is in `answers`.

CREATE TABLE episodes (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    run         TEXT    NOT NULL REFERENCES runs (id),
    episode     INTEGER NOT NULL CONSTRAINT simulated_episode_is_a_count CHECK (episode >= 0),
    update_no   INTEGER,
    answer      INTEGER REFERENCES answers (id),
    success     INTEGER NOT NULL CONSTRAINT simulated_success_is_a_flag CHECK (success IN (0, 1)),
    recorded_at INTEGER NOT NULL,
    request     TEXT    NOT NULL,
    summary     TEXT    NOT NULL,
    candidates  TEXT    NOT NULL,
    view        TEXT    NOT NULL,
    CONSTRAINT one_row_per_episode UNIQUE (run, episode)
) STRICT;

CREATE INDEX episodes_latest ON episodes (run, recorded_at, id);
CREATE UNIQUE INDEX episodes_of_answer ON episodes (answer) WHERE answer IS NOT NULL;
