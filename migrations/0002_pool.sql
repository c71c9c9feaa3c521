-- The pool of executions that people are asked to describe.
--
-- state: open       wants (more) answers
--        done       has had all the answers it wants
--        retired    its policy is too old; it stays only for an answer that may still come
--        withdrawn  a resumed run makes this episode again; it stays only for an answer that may still come
-- Rows that nobody has seen are deleted instead of retired or withdrawn. AUTOINCREMENT: the key of a deleted
-- execution never means another one.

CREATE TABLE executions (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    run           TEXT    NOT NULL REFERENCES runs (id),
    episode       INTEGER NOT NULL CONSTRAINT episode_is_a_count CHECK (episode >= 0),
    policy_update INTEGER NOT NULL CONSTRAINT policy_update_is_a_count CHECK (policy_update >= 0),
    wanted        INTEGER NOT NULL CONSTRAINT wants_at_least_one_answer CHECK (wanted >= 1),
    given         INTEGER NOT NULL DEFAULT 0,
    state         TEXT    NOT NULL DEFAULT 'open'
        CONSTRAINT state_is_known CHECK (state IN ('open', 'done', 'retired', 'withdrawn')),
    shown         INTEGER NOT NULL DEFAULT 0 CONSTRAINT shown_is_a_flag CHECK (shown IN (0, 1)),
    touched       INTEGER NOT NULL DEFAULT 0 CONSTRAINT touched_is_a_flag CHECK (touched IN (0, 1)),
    success       INTEGER NOT NULL CONSTRAINT success_is_a_flag CHECK (success IN (0, 1)),
    request       TEXT    NOT NULL,
    summary       TEXT    NOT NULL,
    offered_at    INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX executions_one_per_episode ON executions (run, episode) WHERE state <> 'withdrawn';
CREATE INDEX executions_withdrawn ON executions (run, episode) WHERE state = 'withdrawn';
CREATE INDEX executions_queue ON executions (run, policy_update DESC, id) WHERE state = 'open';

-- The large columns live apart, so that queue and counts never read them.
CREATE TABLE execution_bodies (
    execution INTEGER PRIMARY KEY REFERENCES executions (id) ON DELETE CASCADE,
    view      TEXT NOT NULL,
    trace     TEXT NOT NULL
) STRICT;

-- Who is at what. A lease whose time is over no longer counts, but its row stays until somebody else takes the
-- execution, so that a late heartbeat can still renew it.
CREATE TABLE leases (
    execution  INTEGER NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    teacher    INTEGER NOT NULL REFERENCES teachers (id),
    taken_at   INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (execution, teacher)
) STRICT, WITHOUT ROWID;

CREATE INDEX leases_of_teacher ON leases (teacher, expires_at);
