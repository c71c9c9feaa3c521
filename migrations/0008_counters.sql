-- Figures that pages ask for at every request, kept up to date by the rows themselves: asking costs the same with ten
-- answers as with a million.

CREATE TABLE run_counts (
    run            TEXT    NOT NULL PRIMARY KEY REFERENCES runs (id),
    answers        INTEGER NOT NULL, -- all rows, as an export has them
    people_used    INTEGER NOT NULL, -- descriptions of people that an update used
    simulated_used INTEGER NOT NULL  -- descriptions of the simulated teacher that an update used
) STRICT, WITHOUT ROWID;

-- Descriptions that stand (no correction took their place), and how many of them an update used.
CREATE TABLE teacher_counts (
    run       TEXT    NOT NULL REFERENCES runs (id),
    teacher   INTEGER NOT NULL REFERENCES teachers (id),
    described INTEGER NOT NULL,
    used      INTEGER NOT NULL,
    PRIMARY KEY (run, teacher)
) STRICT, WITHOUT ROWID;

INSERT INTO run_counts (run, answers, people_used, simulated_used)
SELECT run, count(*),
    count(*) FILTER (WHERE source = 'human' AND kind = 'described' AND used_in_update IS NOT NULL),
    count(*) FILTER (WHERE source = 'simulated' AND kind = 'described' AND used_in_update IS NOT NULL)
FROM answers GROUP BY run;

INSERT INTO teacher_counts (run, teacher, described, used)
SELECT run, teacher, count(*), count(used_in_update) FROM answers
WHERE teacher IS NOT NULL AND superseded_by IS NULL AND kind = 'described' GROUP BY run, teacher;

CREATE TRIGGER answers_counted AFTER INSERT ON answers BEGIN
    INSERT INTO run_counts (run, answers, people_used, simulated_used)
    VALUES (NEW.run, 1,
        NEW.source = 'human' AND NEW.kind = 'described' AND NEW.used_in_update IS NOT NULL,
        NEW.source = 'simulated' AND NEW.kind = 'described' AND NEW.used_in_update IS NOT NULL)
    ON CONFLICT (run) DO UPDATE SET
        answers = answers + 1,
        people_used = people_used + excluded.people_used,
        simulated_used = simulated_used + excluded.simulated_used;
END;

CREATE TRIGGER answers_of_teachers_counted AFTER INSERT ON answers
WHEN NEW.teacher IS NOT NULL AND NEW.kind = 'described' AND NEW.superseded_by IS NULL BEGIN
    INSERT INTO teacher_counts (run, teacher, described, used)
    VALUES (NEW.run, NEW.teacher, 1, NEW.used_in_update IS NOT NULL)
    ON CONFLICT (run, teacher) DO UPDATE SET described = described + 1, used = used + excluded.used;
END;

CREATE TRIGGER answers_used_counted AFTER UPDATE OF used_in_update ON answers
WHEN NEW.kind = 'described' AND (OLD.used_in_update IS NULL) <> (NEW.used_in_update IS NULL) BEGIN
    UPDATE run_counts SET
        people_used = people_used
            + (NEW.source = 'human') * ((NEW.used_in_update IS NOT NULL) - (OLD.used_in_update IS NOT NULL)),
        simulated_used = simulated_used
            + (NEW.source = 'simulated') * ((NEW.used_in_update IS NOT NULL) - (OLD.used_in_update IS NOT NULL))
    WHERE run = NEW.run;
END;

CREATE TRIGGER answers_of_teachers_changed AFTER UPDATE OF used_in_update, superseded_by ON answers
WHEN NEW.teacher IS NOT NULL AND NEW.kind = 'described' BEGIN
    UPDATE teacher_counts SET
        described = described + (NEW.superseded_by IS NULL) - (OLD.superseded_by IS NULL),
        used = used + (NEW.superseded_by IS NULL AND NEW.used_in_update IS NOT NULL)
            - (OLD.superseded_by IS NULL AND OLD.used_in_update IS NOT NULL)
    WHERE run = NEW.run AND teacher = NEW.teacher;
END;

-- A point's place among those of its run that have a validation reading, or among those that have none: an even
-- choice of them is then a list of places, and no walk through all of them.
ALTER TABLE points ADD COLUMN place INTEGER;

UPDATE points SET place = ranked.place
FROM (SELECT run, update_no,
          row_number() OVER (PARTITION BY run, validation IS NOT NULL ORDER BY update_no) - 1 AS place
      FROM points) AS ranked
WHERE ranked.run = points.run AND ranked.update_no = points.update_no;

CREATE INDEX points_tested ON points (run, place) WHERE validation IS NOT NULL;
CREATE INDEX points_untested ON points (run, place) WHERE validation IS NULL;
CREATE INDEX points_best ON points (run, validation, update_no) WHERE validation IS NOT NULL;

CREATE INDEX checkpoints_best ON checkpoints (run) WHERE best = 1;

-- Executions that somebody skipped, or the first of several people answered, and that wait for others.
CREATE INDEX executions_touched ON executions (run, id) WHERE state = 'open' AND touched = 1;

-- Who is at an execution now, among all who ever were.
CREATE INDEX leases_current ON leases (execution, expires_at, renewed_at);
