-- Rows of files of episodes that came in, so that a row is recognised when its file comes again. An execution that nobody saw can be
-- deleted from the pool while its row here stays: it is not asked about a second time.
CREATE TABLE imported_episodes (
    run     TEXT    NOT NULL REFERENCES runs (id),
    key     TEXT    NOT NULL,
    -- SHA-256 of what the row says.
    digest  BLOB    NOT NULL,
    episode INTEGER NOT NULL CONSTRAINT imported_episode_is_a_count CHECK (episode >= 0),
    PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;
