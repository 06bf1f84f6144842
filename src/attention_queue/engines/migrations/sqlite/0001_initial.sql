-- Times are whole milliseconds since 1970. In due_ms 0 means "now": ready rows are served by place,
-- a ticket that only grows, so that no step of a clock reorders them.

CREATE TABLE counter (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO counter (name, value) VALUES ('ticket', 0), ('directory', 0);

CREATE TABLE grp (
    gid                   INTEGER PRIMARY KEY,
    name                  TEXT NOT NULL UNIQUE,
    type                  TEXT NOT NULL,
    default_plan          TEXT NOT NULL,
    register_unknown      INTEGER NOT NULL,
    refuse_in_maintenance INTEGER NOT NULL
) STRICT;

CREATE TABLE plan (
    gid      INTEGER NOT NULL REFERENCES grp,
    name     TEXT NOT NULL,
    version  INTEGER NOT NULL,
    declared TEXT NOT NULL,     -- as the application last declared it
    policy   TEXT NOT NULL,     -- as it is in force
    priority INTEGER NOT NULL,
    PRIMARY KEY (gid, name)
) STRICT, WITHOUT ROWID;

-- Never deleted and never renumbered: a tombstone is a row too.
CREATE TABLE resource (
    rid            INTEGER PRIMARY KEY,
    gid            INTEGER NOT NULL REFERENCES grp,
    tenant         TEXT NOT NULL,
    id             TEXT NOT NULL,
    plan           TEXT NOT NULL,
    overrides      TEXT,
    routing        TEXT,
    state          TEXT NOT NULL DEFAULT 'active',
    state_reason   TEXT NOT NULL DEFAULT '',
    state_actor    TEXT NOT NULL DEFAULT '',
    state_until_ms INTEGER,
    UNIQUE (gid, tenant, id)
) STRICT;

-- One row whenever unfinished work or a token exists. A worker never holds it: a claim parks it.
CREATE TABLE attention (
    rid      INTEGER PRIMARY KEY REFERENCES resource,
    gid      INTEGER NOT NULL,
    lane     INTEGER NOT NULL,  -- 0 high, 1 normal, 2 low
    due_ms   INTEGER NOT NULL,
    place    INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,  -- when it could first be taken
    hold_ms  INTEGER,
    hold_why TEXT,
    backlog  INTEGER NOT NULL   -- unfinished messages, those on loan and delayed ones included
) STRICT;
CREATE INDEX attention_ready ON attention (gid, lane, place) WHERE due_ms = 0;
CREATE INDEX attention_timer ON attention (due_ms) WHERE due_ms > 0;

-- A row is a valid token, until a claim that finds it past until_ms takes it away.
CREATE TABLE token (
    rid      INTEGER NOT NULL REFERENCES resource,
    slot     INTEGER NOT NULL,
    owner    TEXT NOT NULL,
    fence    INTEGER NOT NULL,
    until_ms INTEGER NOT NULL,
    loan     TEXT NOT NULL,     -- [[due_ms, first seq, last seq], ...]: what no other token may take
    PRIMARY KEY (rid, slot)
) STRICT, WITHOUT ROWID;

-- Unfinished work. The key is the order in which it is taken: due_ms 0 by seq, then by due time.
CREATE TABLE message (
    rid          INTEGER NOT NULL REFERENCES resource,
    due_ms       INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    id           TEXT NOT NULL,
    type         TEXT NOT NULL,
    enqueued_ms  INTEGER NOT NULL,
    failed       INTEGER NOT NULL DEFAULT 0,  -- attempts that failed
    suspect      INTEGER NOT NULL DEFAULT 0,  -- was on loan to a holder that died
    crashes      INTEGER NOT NULL DEFAULT 0,  -- deaths with this one alone in hand
    unknown_ms   INTEGER,                     -- since when nobody handles its type
    content_type TEXT,                        -- NULL: application/json
    headers      TEXT,
    history      TEXT,                        -- failures, newest last
    payload      BLOB NOT NULL,
    PRIMARY KEY (rid, due_ms, seq)
) STRICT, WITHOUT ROWID;
-- Ids that sort by time are appended here; by resource they would land on a page each.
CREATE UNIQUE INDEX message_id ON message (id, rid);

CREATE TABLE dead (
    dead_id      INTEGER PRIMARY KEY,
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
    payload      BLOB NOT NULL
) STRICT;
CREATE INDEX dead_resource ON dead (rid, dead_id);

CREATE TABLE bucket (
    key   TEXT PRIMARY KEY,     -- what is limited: one resource, or one routing value of a group
    level REAL NOT NULL,
    at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE scope_stop (
    gid      INTEGER NOT NULL REFERENCES grp,
    scope    TEXT NOT NULL,     -- routing.<name>=<value>
    until_ms INTEGER NOT NULL,  -- then one resource probes
    reason   TEXT NOT NULL,
    PRIMARY KEY (gid, scope)
) STRICT, WITHOUT ROWID;

CREATE TABLE leader (
    task     TEXT PRIMARY KEY,
    owner    TEXT NOT NULL,
    until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
