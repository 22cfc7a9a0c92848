-- A conversation belongs to whoever began it. SHA-256 in hexadecimal; the secrets themselves are not stored.
ALTER TABLE sessions ADD COLUMN owner_hash TEXT;
ALTER TABLE sessions ADD COLUMN share_hash TEXT;

-- Turns from before a reset were only hidden; now a reset removes them.
DELETE FROM turns
    WHERE generation < (SELECT generation FROM sessions WHERE sessions.session_id = turns.session_id);

-- For expiry: what to expire, and what time it is, in a single row.
CREATE INDEX sessions_by_update ON sessions (updated_at);

CREATE TABLE retention (
    only_row BIGINT NOT NULL PRIMARY KEY,
    moment TEXT NOT NULL
);
