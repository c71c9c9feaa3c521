-- Descriptions that no update has used: only these make an update. Other answers go along with the next one.
CREATE INDEX answers_to_learn_from ON answers (run, id)
    WHERE used_in_update IS NULL AND superseded_by IS NULL AND execution IS NOT NULL AND kind = 'described' AND late < 2;
