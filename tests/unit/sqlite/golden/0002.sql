BEGIN TRANSACTION;
DROP TABLE IF EXISTS attention;
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
, arrived INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO attention VALUES(1,1,1,0,17,1767225600000,NULL,NULL,2,0);
INSERT INTO attention VALUES(2,1,1,1767225630000,8,1767225600000,1767225630000,'busy',3,3);
INSERT INTO attention VALUES(3,1,1,0,12,1767225600000,NULL,NULL,3,3);
INSERT INTO attention VALUES(4,1,1,1767312000000,14,1767225600000,NULL,NULL,1,1);
CREATE INDEX attention_ready ON attention (gid, lane, place) WHERE due_ms = 0;
CREATE INDEX attention_timer ON attention (due_ms) WHERE due_ms > 0;
DROP TABLE IF EXISTS audit;
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
INSERT INTO audit VALUES(1,1767225600000,1,2,'ann','plan','','{"was":"plain","is":"plain","routing":"{\"m\":\"x\"}","overrides":"[{\"changes\":{\"max_messages\":2},\"reason\":\"season\"}]"}');
INSERT INTO audit VALUES(2,1767225600000,1,3,'ann','state','by phone','{"was":"active","is":"paused","until":null}');
CREATE INDEX audit_resource ON audit (rid, audit_id) WHERE rid IS NOT NULL;
DROP TABLE IF EXISTS bucket;
CREATE TABLE bucket (
    key   TEXT PRIMARY KEY,     -- what is limited: one resource, or one routing value of a group
    level REAL NOT NULL,
    at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
DROP TABLE IF EXISTS counter;
CREATE TABLE counter (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO counter VALUES('directory',3);
INSERT INTO counter VALUES('ticket',17);
DROP TABLE IF EXISTS dead;
CREATE TABLE "dead" (
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
INSERT INTO dead VALUES(1,1,'a-2','order',1767225600000,1767225600000,1,'bad_order','ValueError','no such order','Traceback',NULL,'{"trace":"x"}',NULL,X'007B7D',0);
CREATE INDEX dead_error ON dead (reason, error, type, dead_id);
CREATE INDEX dead_resource ON dead (rid, dead_id);
DROP TABLE IF EXISTS grp;
CREATE TABLE grp (
    gid                   INTEGER PRIMARY KEY,
    name                  TEXT NOT NULL UNIQUE,
    type                  TEXT NOT NULL,
    default_plan          TEXT NOT NULL,
    register_unknown      INTEGER NOT NULL,
    refuse_in_maintenance INTEGER NOT NULL
, max_tenant_backlog INTEGER) STRICT;
INSERT INTO grp VALUES(1,'shops','resource','plain',1,0,NULL);
DROP TABLE IF EXISTS leader;
CREATE TABLE leader (
    task     TEXT PRIMARY KEY,
    owner    TEXT NOT NULL,
    until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
DROP TABLE IF EXISTS ledger;
CREATE TABLE ledger (
    gid   INTEGER NOT NULL REFERENCES grp,
    name  TEXT NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (gid, name)
) STRICT, WITHOUT ROWID;
INSERT INTO ledger VALUES(1,'cycles_messages',1);
INSERT INTO ledger VALUES(1,'messages_dead',1);
INSERT INTO ledger VALUES(1,'messages_published',10);
INSERT INTO ledger VALUES(1,'messages_retried',1);
INSERT INTO ledger VALUES(1,'requests_published',4);
INSERT INTO ledger VALUES(1,'requests_republished',1);
INSERT INTO ledger VALUES(1,'requests_republished_more',1);
DROP TABLE IF EXISTS message;
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
    payload      BLOB NOT NULL, expires_ms INTEGER, redriven INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (rid, due_ms, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO message VALUES(1,0,3,'a-3','order',1767225600000,0,0,0,NULL,NULL,'{"trace":"x"}',NULL,X'007B7D',NULL,0);
INSERT INTO message VALUES(1,1767225660000,1,'a-1','order',1767225600000,1,0,0,NULL,NULL,'{"trace":"x"}','[{"attempt":1,"at_ms":1767225600000,"error":"ValueError","message":"no such order"}]',X'007B7D',NULL,0);
INSERT INTO message VALUES(2,0,5,'b-1','order',1767225600000,0,0,0,NULL,NULL,'{"trace":"x"}',NULL,X'007B7D',NULL,0);
INSERT INTO message VALUES(2,0,6,'b-2','order',1767225600000,0,0,0,NULL,NULL,'{"trace":"x"}',NULL,X'007B7D',NULL,0);
INSERT INTO message VALUES(2,0,7,'b-3','order',1767225600000,0,0,0,NULL,NULL,'{"trace":"x"}',NULL,X'007B7D',NULL,0);
INSERT INTO message VALUES(3,0,9,'paused-1','order',1767225600000,0,0,0,NULL,NULL,'{"trace":"x"}',NULL,X'007B7D',NULL,0);
INSERT INTO message VALUES(3,0,10,'paused-2','order',1767225600000,0,0,0,NULL,NULL,'{"trace":"x"}',NULL,X'007B7D',NULL,0);
INSERT INTO message VALUES(3,0,11,'paused-3','order',1767225600000,0,0,0,NULL,NULL,'{"trace":"x"}',NULL,X'007B7D',NULL,0);
INSERT INTO message VALUES(4,1767312000000,13,'late-1','order',1767225600000,0,0,0,NULL,NULL,'{"trace":"x"}',NULL,X'007B7D',NULL,0);
CREATE UNIQUE INDEX message_id ON message (id, rid);
DROP TABLE IF EXISTS operation;
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
CREATE INDEX operation_resource ON operation (rid, oid) WHERE rid IS NOT NULL;
CREATE INDEX operation_running ON operation (next_ms) WHERE state = 'running';
DROP TABLE IF EXISTS "plan";
CREATE TABLE plan (
    gid      INTEGER NOT NULL REFERENCES grp,
    name     TEXT NOT NULL,
    version  INTEGER NOT NULL,
    declared TEXT NOT NULL,     -- as the application last declared it
    policy   TEXT NOT NULL,     -- as it is in force
    priority INTEGER NOT NULL, max_backlog INTEGER NOT NULL DEFAULT 1000000000,
    PRIMARY KEY (gid, name)
) STRICT, WITHOUT ROWID;
INSERT INTO "plan" VALUES(1,'plain',1,'{"max_messages":3,"max_seconds":20.0,"max_consumers":1,"handler_timeout":60.0,"priority":"normal","order":"relaxed","rates":{},"retry":{"attempts":10,"first":1.0,"factor":2.0,"cap":300.0},"lease":30.0,"max_crashes":3,"max_backlog":1000000000,"ttl":3153600000.0,"expired":"dead_letter"}','{"max_messages":3,"max_seconds":20.0,"max_consumers":1,"handler_timeout":60.0,"priority":"normal","order":"relaxed","rates":{},"retry":{"attempts":10,"first":1.0,"factor":2.0,"cap":300.0},"lease":30.0,"max_crashes":3,"max_backlog":1000000000,"ttl":3153600000.0,"expired":"dead_letter"}',1,1000000000);
DROP TABLE IF EXISTS resource;
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
    state_until_ms INTEGER, version INTEGER NOT NULL DEFAULT 1, stop_now INTEGER NOT NULL DEFAULT 0,
    UNIQUE (gid, tenant, id)
) STRICT;
INSERT INTO resource VALUES(1,1,'acme','a','plain',NULL,NULL,'active','','',NULL,1,0);
INSERT INTO resource VALUES(2,1,'acme','b','plain','[{"changes":{"max_messages":2},"reason":"season"}]','{"m":"x"}','active','','',NULL,2,0);
INSERT INTO resource VALUES(3,1,'acme','paused','plain',NULL,NULL,'paused','by phone','ann',NULL,2,0);
INSERT INTO resource VALUES(4,1,'acme','late','plain',NULL,NULL,'active','','',NULL,1,0);
DROP TABLE IF EXISTS scope_stop;
CREATE TABLE scope_stop (
    gid      INTEGER NOT NULL REFERENCES grp,
    scope    TEXT NOT NULL,     -- routing.<name>=<value>
    until_ms INTEGER NOT NULL,  -- then one resource probes
    reason   TEXT NOT NULL,
    PRIMARY KEY (gid, scope)
) STRICT, WITHOUT ROWID;
DROP TABLE IF EXISTS stats;
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
INSERT INTO stats VALUES(1,1767225600000,3,0,1,1,0.05,0.016666666666666666,'[[1767225600000,"messages",0,0]]');
DROP TABLE IF EXISTS tenant_load;
CREATE TABLE tenant_load (
    gid     INTEGER NOT NULL REFERENCES grp,
    tenant  TEXT NOT NULL,
    backlog INTEGER NOT NULL,
    PRIMARY KEY (gid, tenant)
) STRICT, WITHOUT ROWID;
DROP TABLE IF EXISTS token;
CREATE TABLE token (
    rid      INTEGER NOT NULL REFERENCES resource,
    slot     INTEGER NOT NULL,
    owner    TEXT NOT NULL,
    fence    INTEGER NOT NULL,
    until_ms INTEGER NOT NULL,
    loan     TEXT NOT NULL,     -- [[due_ms, first seq, last seq], ...]: what no other token may take
    PRIMARY KEY (rid, slot)
) STRICT, WITHOUT ROWID;
INSERT INTO token VALUES(2,0,'w1',16,1767225630000,'[[0,5,6]]');
DELETE FROM main.sqlite_sequence WHERE name='dead';
INSERT INTO main.sqlite_sequence VALUES ('dead', 1);
pragma user_version=2;
pragma application_id=1096045646;
COMMIT TRANSACTION;
