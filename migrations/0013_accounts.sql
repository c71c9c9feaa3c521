-- People who sign in: their accounts, the browsers on which they are signed in, and the links that make accounts.
CREATE TABLE accounts (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    name          TEXT    NOT NULL CONSTRAINT account_name_is_short CHECK (length(name) BETWEEN 1 AND 100),
    -- The name in lower case, by which an account is found: a name has one account, however it is written.
    name_key      TEXT    NOT NULL CONSTRAINT one_account_per_name UNIQUE,
    -- A PHC string of argon2id.
    password_hash TEXT    NOT NULL,
    role          TEXT    NOT NULL
        CONSTRAINT role_is_known CHECK (role IN ('owner', 'researcher', 'reviewer', 'teacher')),
    created_at    INTEGER NOT NULL,
    disabled_at   INTEGER
) STRICT;

CREATE INDEX accounts_owners ON accounts (id) WHERE role = 'owner' AND disabled_at IS NULL;

-- Only a hash of the token in the browser's cookie is kept. Rows of sessions that have ended stay for a while.
CREATE TABLE account_sessions (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    token_hash BLOB    NOT NULL CONSTRAINT session_token_is_a_sha256 CHECK (length(token_hash) = 32),
    account    INTEGER NOT NULL REFERENCES accounts (id),
    created_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    -- Browser and system in a few words, such as "Firefox on Linux".
    device     TEXT    NOT NULL,
    revoked_at INTEGER,
    CONSTRAINT one_session_per_token UNIQUE (token_hash)
) STRICT;

CREATE INDEX account_sessions_of ON account_sessions (account, id);

-- Links that make an account. `first` marks the link of the first owner, which is good only while there is no account.
CREATE TABLE account_invites (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    token_hash BLOB    NOT NULL CONSTRAINT invite_token_is_a_sha256 CHECK (length(token_hash) = 32),
    role       TEXT    NOT NULL
        CONSTRAINT invite_role_is_known CHECK (role IN ('owner', 'researcher', 'reviewer', 'teacher')),
    first      INTEGER NOT NULL DEFAULT 0 CONSTRAINT first_is_a_flag CHECK (first IN (0, 1)),
    -- The account that made it; empty for the machine itself.
    created_by INTEGER REFERENCES accounts (id),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_by    INTEGER REFERENCES accounts (id),
    revoked_at INTEGER,
    CONSTRAINT one_invite_per_token UNIQUE (token_hash)
) STRICT;

CREATE INDEX account_invites_open ON account_invites (id) WHERE used_by IS NULL AND revoked_at IS NULL;
