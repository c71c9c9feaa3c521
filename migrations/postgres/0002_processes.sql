-- What the processes that share the database tell each other. None of it has to survive a crash of the server.

-- Notices: a status, an event, a command, its reply. Every process reads them as they come; they are kept for minutes.
CREATE UNLOGGED TABLE process_messages (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sender TEXT NOT NULL,
    topic TEXT NOT NULL,
    body TEXT NOT NULL,
    sent_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX process_messages_by_age ON process_messages (sent_at);

-- Work that one process asks of whichever can do it. `run` is the run that it concerns, where it concerns one.
CREATE UNLOGGED TABLE process_requests (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sender TEXT NOT NULL,
    run TEXT,
    body TEXT NOT NULL,
    taken_by TEXT,
    sent_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX process_requests_open ON process_requests (id) WHERE taken_by IS NULL;
