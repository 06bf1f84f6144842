-- name: audit
-- In the transaction of the change itself.
INSERT INTO audit (at_ms, gid, rid, actor, verb, reason, detail) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: end_lease
-- Of this holder and no later one. By primary key.
UPDATE token SET until_ms = min(until_ms, ?) WHERE rid = ? AND slot = ? AND fence = ?

-- name: start_operation
-- With the change of state that belongs to it, as one unit.
INSERT INTO operation (gid, rid, kind, selection, state, reason, actor, per_second, jitter_ms,
                       upto, total, started_ms, next_ms)
VALUES (?, ?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?)
RETURNING oid

-- name: operation
-- By primary key, with the names that people know.
SELECT o.oid, o.gid, o.rid, o.kind, o.selection, o.state, o.reason, o.actor, o.per_second,
       o.jitter_ms, o.last_due, o.last, o.upto, o.total, o.done, o.skipped, o.started_ms,
       o.ended_ms, o.next_ms, g.name
FROM operation o JOIN grp g ON g.gid = o.gid WHERE o.oid = ?

-- name: running_operation
-- The next that is due. Rides operation_running.
SELECT oid, next_ms FROM operation WHERE state = 'running' AND next_ms <= ?
ORDER BY next_ms LIMIT 1

-- name: operation_of
-- Whether the resource has one of a kind under way. Rides operation_resource.
SELECT oid FROM operation WHERE rid = ? AND kind = ? AND state = 'running' LIMIT 1

-- name: advance_operation
-- In the transaction of the step itself: a step that is repeated goes on, it does not begin again.
UPDATE operation SET last_due = ?, last = ?, done = done + ?, skipped = skipped + ?, next_ms = ?
WHERE oid = ?

-- name: put_off_operation
-- After a step that was undone. By primary key.
UPDATE operation SET next_ms = ? WHERE oid = ? AND state = 'running'

-- name: end_operation
-- Once: what has ended stays as it ended. By primary key.
UPDATE operation SET state = ?, ended_ms = ? WHERE oid = ? AND state = 'running'

-- name: last_dead
-- What dies later has a higher number. By primary key.
SELECT max(dead_id) FROM dead

-- name: dead_page
-- By primary key; NULL does not narrow it down.
SELECT d.dead_id, d.rid, r.tenant, r.state, length(d.payload) FROM dead d JOIN resource r ON r.rid = d.rid
WHERE d.dead_id > ?1 AND d.dead_id <= ?2 AND r.gid = ?3
  AND (?4 IS NULL OR d.rid = ?4) AND (?5 IS NULL OR r.tenant = ?5)
  AND (?6 IS NULL OR d.type = ?6) AND (?7 IS NULL OR d.error = ?7)
  AND (?8 IS NULL OR d.reason = ?8) AND (?9 IS NULL OR d.died_ms <= ?9)
  AND (?10 IS NULL OR d.dead_id IN (SELECT value FROM json_each(?10)))
ORDER BY d.dead_id LIMIT ?11

-- name: dead_page_of
-- The same for one resource. Rides dead_resource.
SELECT d.dead_id, d.rid, r.tenant, r.state, length(d.payload) FROM dead d JOIN resource r ON r.rid = d.rid
WHERE d.rid = ?4 AND d.dead_id > ?1 AND d.dead_id <= ?2 AND r.gid = ?3
  AND (?5 IS NULL OR r.tenant = ?5)
  AND (?6 IS NULL OR d.type = ?6) AND (?7 IS NULL OR d.error = ?7)
  AND (?8 IS NULL OR d.reason = ?8) AND (?9 IS NULL OR d.died_ms <= ?9)
  AND (?10 IS NULL OR d.dead_id IN (SELECT value FROM json_each(?10)))
ORDER BY d.dead_id LIMIT ?11

-- name: revive
-- Back to work with its history, its death the newest of it, and marked as a reprocess; nothing if
-- the same id is at work again.
INSERT INTO message (rid, due_ms, seq, id, type, enqueued_ms, content_type, headers, history,
                     payload, redriven)
SELECT rid, ?, ?, id, type, enqueued_ms, content_type, headers,
       json_insert(coalesce(history, '[]'), '$[#]', json_object(
           'attempt', attempts, 'at_ms', died_ms,
           'error', coalesce(error, reason), 'message', error_text)),
       payload, redriven + 1
FROM dead WHERE dead_id = ?
ON CONFLICT (rid, id) DO NOTHING

-- name: delete_dead
-- In the transaction that revives it or is told to forget it. By primary key.
DELETE FROM dead WHERE dead_id = ?

-- name: backlog_page
-- A resource's messages by primary key, up to what was there when the operation began.
SELECT due_ms, seq, type, enqueued_ms, length(payload) FROM message
WHERE rid = ?1 AND (due_ms, seq) > (?2, ?3) AND seq <= ?4 ORDER BY due_ms, seq LIMIT ?5

-- name: count_dead
-- Once, when an operation starts; the same selection as dead_page.
SELECT count(*) FROM dead d JOIN resource r ON r.rid = d.rid
WHERE d.dead_id <= ?1 AND r.gid = ?2
  AND (?3 IS NULL OR d.rid = ?3) AND (?4 IS NULL OR r.tenant = ?4)
  AND (?5 IS NULL OR d.type = ?5) AND (?6 IS NULL OR d.error = ?6)
  AND (?7 IS NULL OR d.reason = ?7) AND (?8 IS NULL OR d.died_ms <= ?8)
  AND (?9 IS NULL OR d.dead_id IN (SELECT value FROM json_each(?9)))
