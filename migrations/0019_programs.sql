-- Programs: the tokens by which they are known, and the replies that are given again to a request that comes twice.

-- Only a hash of a token is kept.
CREATE TABLE api_tokens (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    token_hash BLOB    NOT NULL CONSTRAINT api_token_is_a_sha256 CHECK (length(token_hash) = 32),
    name       TEXT    NOT NULL CONSTRAINT api_token_name_is_short CHECK (length(name) BETWEEN 1 AND 100),
    -- Words with blanks between them.
    scopes     TEXT    NOT NULL,
    -- Name of who made it.
    created_by TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    used_at    INTEGER,
    revoked_at INTEGER,
    CONSTRAINT one_api_token_per_hash UNIQUE (token_hash)
) STRICT;

-- The first reply to a request with an Idempotency-Key. `sender_key` is a digest of who sent it and the key, `request` one of
-- the method, the address and the body.
CREATE TABLE kept_replies (
    sender_key   BLOB    NOT NULL PRIMARY KEY CONSTRAINT sender_key_is_a_sha256 CHECK (length(sender_key) = 32),
    request      BLOB    NOT NULL CONSTRAINT request_is_a_sha256 CHECK (length(request) = 32),
    status       INTEGER NOT NULL,
    content_type TEXT    NOT NULL,
    body         BLOB    NOT NULL,
    created_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX kept_replies_by_age ON kept_replies (created_at);

-- Episodes of people by their numbers, for lists that are read page by page.
CREATE INDEX answers_by_episode ON answers (run, episode, id) WHERE used_position IS NOT NULL;
