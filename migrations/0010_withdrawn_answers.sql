-- When a person took an answer back. Such a row also points to itself by superseded_by, so that whatever passes over
-- superseded answers passes over it: it stands no longer, no update takes it, and no count has it.
ALTER TABLE answers ADD COLUMN withdrawn_at INTEGER;
