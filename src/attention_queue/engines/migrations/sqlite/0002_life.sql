-- What operating a resource's life needs: who changed what, long operations, figures, expiry.

ALTER TABLE resource ADD COLUMN version INTEGER NOT NULL DEFAULT 1;   -- of what a person may change
ALTER TABLE resource ADD COLUMN stop_now INTEGER NOT NULL DEFAULT 0;  -- its state cancels handlers

ALTER TABLE message ADD COLUMN expires_ms INTEGER;
ALTER TABLE message ADD COLUMN redriven INTEGER NOT NULL DEFAULT 0;   -- times it was a dead letter

-- Its numbers are people's names for dead letters: none is ever given to a second one.
CREATE TABLE dead_letter (
    dead_id      INTEGER PRIMARY KEY AUTOINCREMENT,
    rid          INTEGER NOT NULL REFERENCES resource,
    id           TEXT NOT NULL,
    type         TEXT NOT NULL,
    enqueued_ms  INTEGER NOT NULL,
    died_ms      INTEGER NOT NULL,
    attempts     INTEGER NOT NULL,
    reason       TEXT NOT NULL,
    error        TEXT,
    error_text   TEXT,
    trace        TEXT,
    content_type TEXT,
    headers      TEXT,
    history      TEXT,
    payload      BLOB NOT NULL,
    redriven     INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO dead_letter SELECT *, 0 FROM dead;
DROP TABLE dead;
ALTER TABLE dead_letter RENAME TO dead;
CREATE INDEX dead_resource ON dead (rid, dead_id);
CREATE INDEX dead_error ON dead (reason, error, type, dead_id);

ALTER TABLE attention ADD COLUMN arrived INTEGER NOT NULL DEFAULT 0;  -- since the last finish

CREATE TABLE audit (
    audit_id INTEGER PRIMARY KEY,
    at_ms    INTEGER NOT NULL,
    gid      INTEGER NOT NULL REFERENCES grp,
    rid      INTEGER REFERENCES resource,
    actor    TEXT NOT NULL,
    verb     TEXT NOT NULL,
    reason   TEXT NOT NULL,
    detail   TEXT NOT NULL          -- JSON: what it was and what it is
) STRICT;
CREATE INDEX audit_resource ON audit (rid, audit_id) WHERE rid IS NOT NULL;

-- Something that takes many steps; whoever steps it next goes on where the last one stopped.
CREATE TABLE operation (
    oid        INTEGER PRIMARY KEY,
    gid        INTEGER NOT NULL REFERENCES grp,
    rid        INTEGER REFERENCES resource,
    kind       TEXT NOT NULL,       -- redrive, discard_dead, discard, retire
    selection  TEXT NOT NULL,       -- JSON
    state      TEXT NOT NULL,       -- running, done, cancelled
    reason     TEXT NOT NULL,
    actor      TEXT NOT NULL,
    per_second REAL,
    jitter_ms  INTEGER NOT NULL,
    last_due   INTEGER NOT NULL DEFAULT -1, -- where the next step goes on: a message's key,
    last       INTEGER NOT NULL DEFAULT -1, -- or a dead letter's number
    upto       INTEGER NOT NULL,            -- what came later is not part of it
    total      INTEGER NOT NULL,            -- at its start
    done       INTEGER NOT NULL DEFAULT 0,
    skipped    INTEGER NOT NULL DEFAULT 0,
    started_ms INTEGER NOT NULL,
    ended_ms   INTEGER,
    next_ms    INTEGER NOT NULL             -- not before: its rate
) STRICT;
CREATE INDEX operation_running ON operation (next_ms) WHERE state = 'running';
CREATE INDEX operation_resource ON operation (rid, oid) WHERE rid IS NOT NULL;

-- Counted in the transaction of what is counted, so never off by a crash.
CREATE TABLE ledger (
    gid   INTEGER NOT NULL REFERENCES grp,
    name  TEXT NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (gid, name)
) STRICT, WITHOUT ROWID;

-- One row per resource that was ever served, written once per cycle.
CREATE TABLE stats (
    rid     INTEGER PRIMARY KEY REFERENCES resource,
    at_ms   INTEGER NOT NULL,
    arrived INTEGER NOT NULL,
    done    INTEGER NOT NULL,
    failed  INTEGER NOT NULL,
    dead    INTEGER NOT NULL,
    arrival REAL NOT NULL,          -- messages per second, decaying over a minute
    service REAL NOT NULL,
    cycles  TEXT NOT NULL           -- JSON: the newest [at_ms, end, handled, duration_ms]
) STRICT;

CREATE TABLE tenant_load (
    gid     INTEGER NOT NULL REFERENCES grp,
    tenant  TEXT NOT NULL,
    backlog INTEGER NOT NULL,
    PRIMARY KEY (gid, tenant)
) STRICT, WITHOUT ROWID;

ALTER TABLE grp ADD COLUMN max_tenant_backlog INTEGER;  -- NULL: no limit
ALTER TABLE plan ADD COLUMN max_backlog INTEGER NOT NULL DEFAULT 1000000000;
