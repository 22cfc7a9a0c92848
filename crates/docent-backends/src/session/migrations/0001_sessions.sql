-- Standard SQL only: another database must be able to run this file as it is.

CREATE TABLE sessions (
    session_id TEXT NOT NULL PRIMARY KEY,
    title TEXT,
    started_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    -- Grows with every use of any session: clocks tie and run backwards, this does not.
    last_use BIGINT NOT NULL,
    -- How often the session was reset; only turns of this generation are shown.
    generation BIGINT NOT NULL,
    turn_count BIGINT NOT NULL
);

CREATE INDEX sessions_by_last_use ON sessions (last_use, session_id);

CREATE TABLE turns (
    session_id TEXT NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    generation BIGINT NOT NULL,
    -- From 1 in each generation.
    turn_number BIGINT NOT NULL,
    turn_id TEXT NOT NULL,
    -- The whole turn as JSON.
    record TEXT NOT NULL,
    PRIMARY KEY (session_id, generation, turn_number)
);
