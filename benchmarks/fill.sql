-- name: group
-- By the unique name.
SELECT gid FROM grp WHERE name = ?

-- name: resource
-- Active, on the plan it is given.
INSERT INTO resource (rid, gid, tenant, id, plan) VALUES (?, ?, 'tenant', ?, ?)

-- name: message
-- Ready now.
INSERT INTO message (rid, due_ms, seq, id, type, enqueued_ms, payload) VALUES (?, 0, ?, ?, ?, ?, ?)

-- name: request
-- Ready now, in the normal lane.
INSERT INTO attention (rid, gid, lane, due_ms, place, since_ms, backlog) VALUES (?, ?, 1, 0, ?, ?, ?)

-- name: ticket
-- The last number that is dealt.
UPDATE counter SET value = value + ? WHERE name = 'ticket' RETURNING value
