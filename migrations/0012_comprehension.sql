-- How the agent took what a person said: what it did when it was asked in these very words, before it learned from them and
-- after. Answers of runs that an earlier version taught have no row. The columns of what it did afterwards are empty until
-- it has learned, and stay so where the program ended meanwhile.
CREATE TABLE comprehension (
    answer            INTEGER PRIMARY KEY REFERENCES answers (id),
    run               TEXT    NOT NULL REFERENCES runs (id),
    teacher           INTEGER NOT NULL REFERENCES teachers (id),
    update_no         INTEGER NOT NULL,
    episodes          INTEGER NOT NULL,
    descriptions      INTEGER NOT NULL,
    seconds           REAL    NOT NULL,
    -- Whether the agent had learned from other words of this person about the same execution before.
    told_before       INTEGER NOT NULL CONSTRAINT told_before_is_a_flag CHECK (told_before IN (0, 1)),
    before_understood INTEGER NOT NULL CONSTRAINT before_understood_is_a_flag CHECK (before_understood IN (0, 1)),
    before_summary    TEXT    NOT NULL,
    before_view       TEXT    NOT NULL,
    after_understood  INTEGER CONSTRAINT after_understood_is_a_flag CHECK (after_understood IN (0, 1)),
    after_summary     TEXT,
    after_view        TEXT
) STRICT;

CREATE INDEX comprehension_of_run ON comprehension (run, answer);
CREATE INDEX comprehension_of_teacher ON comprehension (run, teacher, answer);
