-- What the owner's report is made of. No reader is named here.

CREATE TABLE turn_log (
    turn_id TEXT NOT NULL PRIMARY KEY,
    asked_at TEXT NOT NULL,
    -- The turn as JSON, without feedback.
    record TEXT NOT NULL,
    rating TEXT,
    comment TEXT
);

CREATE INDEX turn_log_by_time ON turn_log (asked_at, turn_id);
