-- What reviewers decide about answers, and what teachers withdraw from the data set. Neither alters an answer's text.

-- When a teacher withdrew an answer from the data set. The answer stands as it did, since an update may have learned from it; its
-- text is in no export.
ALTER TABLE answers ADD COLUMN retracted_at INTEGER;
-- Whether updates pass over the answer: it was rejected or withdrawn from the data set before any of them had used it.
ALTER TABLE answers ADD COLUMN passed_over INTEGER NOT NULL DEFAULT 0
    CONSTRAINT passed_over_is_a_flag CHECK (passed_over IN (0, 1));

DROP INDEX answers_unused;
CREATE INDEX answers_unused ON answers (run, id)
    WHERE used_in_update IS NULL AND superseded_by IS NULL AND execution IS NOT NULL AND kind <> 'skipped' AND late < 2
        AND passed_over = 0;
DROP INDEX answers_to_learn_from;
CREATE INDEX answers_to_learn_from ON answers (run, id)
    WHERE used_in_update IS NULL AND superseded_by IS NULL AND execution IS NOT NULL AND kind = 'described' AND late < 2
        AND passed_over = 0;

-- Executions that the first of several teachers has answered: others get them before fresh ones.
CREATE INDEX executions_overlapping ON executions (run, id) WHERE state = 'open' AND given > 0;

-- The latest decision of a reviewer about an answer. Earlier ones are in the audit trail.
CREATE TABLE reviews (
    answer      INTEGER PRIMARY KEY REFERENCES answers (id),
    state       TEXT    NOT NULL CONSTRAINT review_state_is_known CHECK (state IN ('accepted', 'rejected')),
    reason      TEXT    NOT NULL,
    reviewer    TEXT    NOT NULL,
    reviewed_at INTEGER NOT NULL
) STRICT;

-- The description of an execution that a reviewer decided on: one of the answers, or words of their own.
CREATE TABLE adjudications (
    execution      INTEGER PRIMARY KEY REFERENCES executions (id),
    study          TEXT    NOT NULL REFERENCES studies (id),
    answer         INTEGER REFERENCES answers (id),
    text           TEXT,
    reviewer       TEXT    NOT NULL,
    adjudicated_at INTEGER NOT NULL,
    CONSTRAINT an_answer_or_own_words CHECK ((answer IS NULL) <> (text IS NULL))
) STRICT;

CREATE INDEX adjudications_of_study ON adjudications (study);
CREATE INDEX adjudications_of_answer ON adjudications (answer);

-- What an agent did when it was asked in the words of several teachers about the same execution. `outcome` is a digest of what
-- it did. All rows of a study come from one agent.
CREATE TABLE agreement_attempts (
    study      TEXT    NOT NULL REFERENCES studies (id),
    answer     INTEGER NOT NULL REFERENCES answers (id),
    agent      TEXT    NOT NULL REFERENCES runs (id),
    outcome    BLOB    NOT NULL CONSTRAINT outcome_is_a_sha256 CHECK (length(outcome) = 32),
    understood INTEGER NOT NULL CONSTRAINT attempt_understood_is_a_flag CHECK (understood IN (0, 1)),
    tried_at   INTEGER NOT NULL,
    PRIMARY KEY (study, answer)
) STRICT, WITHOUT ROWID;

CREATE INDEX agreement_attempts_of_answer ON agreement_attempts (answer);
CREATE INDEX agreement_attempts_of_agent ON agreement_attempts (agent);
