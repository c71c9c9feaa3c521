-- Three media. The medium is a property of the run, which its algorithm decides; people see the request where they demonstrate or
-- rate. Whoever reads either asks these columns.
ALTER TABLE runs ADD COLUMN medium TEXT NOT NULL GENERATED ALWAYS AS (CASE config ->> '$.algorithm.name'
    WHEN 'dagger' THEN 'demonstration'
    WHEN 'reinforce-binary' THEN 'rating'
    WHEN 'reinforce-continuous' THEN 'rating'
    ELSE 'description' END) VIRTUAL;
ALTER TABLE runs ADD COLUMN request_shown INTEGER NOT NULL GENERATED ALWAYS AS (
    medium <> 'description' OR config ->> '$.pool.show_request' IS 1) VIRTUAL;

-- An answer of the kind `described` is a response in the medium: a sentence in `text`, a demonstration, or a rating. So whatever
-- counts or learns from descriptions does the same with the others. A person who cannot demonstrate may have begun to: what they
-- had is kept, whatever the kind.
ALTER TABLE answers ADD COLUMN medium TEXT NOT NULL DEFAULT 'description'
    CONSTRAINT medium_is_known CHECK (medium IN ('description', 'demonstration', 'rating'));
ALTER TABLE answers ADD COLUMN demonstration TEXT
    CONSTRAINT demonstration_is_json CHECK (demonstration IS NULL OR json_valid(demonstration));
ALTER TABLE answers ADD COLUMN rating REAL
    CONSTRAINT rating_lies_between_0_and_1 CHECK (rating IS NULL OR rating BETWEEN 0 AND 1);
