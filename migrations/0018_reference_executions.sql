-- The reference: the gold execution of the task, in one line and as data, as it was when the episode was made. Rows of
-- earlier versions have none. No page for teachers shows it.
ALTER TABLE execution_bodies ADD COLUMN reference TEXT
    CONSTRAINT reference_is_json CHECK (reference IS NULL OR json_valid(reference));
ALTER TABLE episodes ADD COLUMN reference TEXT
    CONSTRAINT episode_reference_is_json CHECK (reference IS NULL OR json_valid(reference));
