-- Very many rows in a store, made in seconds. The run {run} gets {n} answers of the teachers {a}, {b} and {c} in turn to as
-- many executions, {n} simulated ones, {n} points (one in ten with a reading) and {n} checkpoints. All answers are used, and
-- carried out before. Whoever reads this replaces the names in braces.
CREATE TEMP TABLE filling (i INTEGER PRIMARY KEY, teacher INTEGER NOT NULL);
INSERT INTO filling
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {n})
    SELECT i, CASE i % 3 WHEN 0 THEN {a} WHEN 1 THEN {b} ELSE {c} END FROM n;
CREATE TEMP TABLE filling_view AS SELECT '{"pairs": [{"in": "a", "out": "b"}]}' AS view;

BEGIN;
INSERT INTO executions (id, run, episode, policy_update, wanted, given, state, shown, touched, success, request, summary,
        offered_at)
    SELECT i, '{run}', i, i, 1, 1, 'done', 1, 1, 0, 'r', 's', i FROM filling;
INSERT INTO execution_bodies (execution, view, trace)
    SELECT i, view, '[]' FROM filling, filling_view;
INSERT INTO answers (run, episode, source, execution, teacher, client_key, kind, text, request_shown, policy_update,
        created_at, used_in_update, used_position, used_at)
    SELECT '{run}', i, 'human', i, teacher, 'k' || i, 'described', 'a letter came after every vowel', 0, i, i, i, 0, i
    FROM filling;
INSERT INTO comprehension (answer, run, teacher, update_no, episodes, descriptions, seconds, told_before,
        before_understood, before_summary, before_view)
    SELECT i, '{run}', teacher, i, i, i, i, 0, i % 2, 's', view FROM filling, filling_view;
INSERT INTO updates
    SELECT '{run}', i, '{}', i FROM filling;
INSERT INTO answers (id, run, episode, source, kind, text, request_shown, policy_update, created_at, used_in_update)
    SELECT {n} + i, '{run}', {n} + i, 'simulated', 'described', 'a letter came after every vowel', 0, i, i, i FROM filling;
INSERT INTO episodes (run, episode, update_no, answer, success, recorded_at, request, summary, candidates, view)
    SELECT '{run}', {n} + i, i, {n} + i, 1, i, 'r', 's', '[]', view FROM filling, filling_view;
INSERT INTO points (run, update_no, episodes, descriptions, seconds, validation, validation_n, validation_low,
        validation_high, place)
    SELECT '{run}', i, i, i, i, iif(i % 10 = 0, 0.5, NULL), 9, 0.1, 0.9, iif(i % 10 = 0, i / 10 - 1, i - i / 10 - 1)
    FROM filling;
INSERT INTO checkpoints (run, name, update_no, episodes, descriptions, bytes, written_at, best)
    SELECT '{run}', 'c' || i, i, i, i, 1, '2026', i = {n} / 2 FROM filling;
COMMIT;
DROP TABLE filling;
DROP TABLE filling_view;
