-- name: gid
-- By the unique name.
SELECT gid FROM grp WHERE name = ?1

-- name: rid
-- By the unique (gid, tenant, id).
SELECT rid FROM resource WHERE gid = ?1 AND tenant = ?2 AND id = ?3

-- name: dead_newest
-- A page from the newest down, by primary key; NULL does not narrow it down.
SELECT d.dead_id, r.tenant, r.id, d.id, d.type, d.reason, d.error, d.error_text, d.trace,
       d.attempts, d.enqueued_ms, d.died_ms, d.redriven, d.content_type, d.payload, d.history
FROM dead d JOIN resource r ON r.rid = d.rid
WHERE d.dead_id < :before AND r.gid = :gid
  AND (:tenant IS NULL OR r.tenant = :tenant)
  AND (:type IS NULL OR d.type = :type) AND (:error IS NULL OR d.error = :error)
  AND (:reason IS NULL OR d.reason = :reason) AND (:died_ms IS NULL OR d.died_ms <= :died_ms)
  AND (:ids IS NULL OR d.dead_id IN (SELECT value FROM json_each(:ids)))
ORDER BY d.dead_id DESC LIMIT :limit

-- name: dead_newest_of
-- The same for one resource. Rides dead_resource.
SELECT d.dead_id, r.tenant, r.id, d.id, d.type, d.reason, d.error, d.error_text, d.trace,
       d.attempts, d.enqueued_ms, d.died_ms, d.redriven, d.content_type, d.payload, d.history
FROM dead d JOIN resource r ON r.rid = d.rid
WHERE d.rid = :rid AND d.dead_id < :before AND r.gid = :gid
  AND (:tenant IS NULL OR r.tenant = :tenant)
  AND (:type IS NULL OR d.type = :type) AND (:error IS NULL OR d.error = :error)
  AND (:reason IS NULL OR d.reason = :reason) AND (:died_ms IS NULL OR d.died_ms <= :died_ms)
  AND (:ids IS NULL OR d.dead_id IN (SELECT value FROM json_each(:ids)))
ORDER BY d.dead_id DESC LIMIT :limit

-- name: dead_letter
-- By primary key, with the name of its group.
SELECT g.name, d.dead_id, r.tenant, r.id, d.id, d.type, d.reason, d.error, d.error_text, d.trace,
       d.attempts, d.enqueued_ms, d.died_ms, d.redriven, d.content_type, d.payload, d.history
FROM dead d JOIN resource r ON r.rid = d.rid JOIN grp g ON g.gid = r.gid WHERE d.dead_id = ?1

-- name: dead_by_error
-- Over the dead letters of the group, once.
SELECT d.reason, d.error, d.type, count(*), min(d.died_ms), max(d.died_ms), max(d.dead_id),
       NULL, NULL
FROM dead d JOIN resource r ON r.rid = d.rid
WHERE r.gid = :gid AND (:rid IS NULL OR d.rid = :rid)
  AND (:tenant IS NULL OR r.tenant = :tenant)
  AND (:type IS NULL OR d.type = :type) AND (:error IS NULL OR d.error = :error)
  AND (:reason IS NULL OR d.reason = :reason) AND (:died_ms IS NULL OR d.died_ms <= :died_ms)
  AND (:ids IS NULL OR d.dead_id IN (SELECT value FROM json_each(:ids)))
GROUP BY d.reason, d.error, d.type ORDER BY count(*) DESC, max(d.dead_id) DESC LIMIT 100

-- name: dead_by_resource
-- The same by resource; reason, error and type are those of the newest.
SELECT d.reason, d.error, d.type, count(*), min(d.died_ms), max(d.died_ms), max(d.dead_id),
       r.tenant, r.id
FROM dead d JOIN resource r ON r.rid = d.rid
WHERE r.gid = :gid AND (:rid IS NULL OR d.rid = :rid)
  AND (:tenant IS NULL OR r.tenant = :tenant)
  AND (:type IS NULL OR d.type = :type) AND (:error IS NULL OR d.error = :error)
  AND (:reason IS NULL OR d.reason = :reason) AND (:died_ms IS NULL OR d.died_ms <= :died_ms)
  AND (:ids IS NULL OR d.dead_id IN (SELECT value FROM json_each(:ids)))
GROUP BY d.rid ORDER BY count(*) DESC, max(d.dead_id) DESC LIMIT 100

-- name: dead_selected
-- How many there are. For one resource rides dead_resource.
SELECT count(*) FROM dead d JOIN resource r ON r.rid = d.rid
WHERE r.gid = :gid AND (:rid IS NULL OR d.rid = :rid)
  AND (:tenant IS NULL OR r.tenant = :tenant)
  AND (:type IS NULL OR d.type = :type) AND (:error IS NULL OR d.error = :error)
  AND (:reason IS NULL OR d.reason = :reason) AND (:died_ms IS NULL OR d.died_ms <= :died_ms)
  AND (:ids IS NULL OR d.dead_id IN (SELECT value FROM json_each(:ids)))

-- name: work_selected
-- A resource's messages by primary key, those on loan included.
SELECT count(*) FROM message
WHERE rid = :rid AND (:type IS NULL OR type = :type)
  AND (:died_ms IS NULL OR enqueued_ms <= :died_ms)

-- name: operations_newest
-- A page from the newest down, by primary key.
SELECT oid FROM operation WHERE gid = ?1 AND oid < ?2 ORDER BY oid DESC LIMIT ?3

-- name: audit_newest
-- A page from the newest down, by primary key.
SELECT a.audit_id, a.at_ms, r.tenant, r.id, a.actor, a.verb, a.reason, a.detail
FROM audit a LEFT JOIN resource r ON r.rid = a.rid
WHERE a.gid = ?1 AND a.audit_id < ?2 ORDER BY a.audit_id DESC LIMIT ?3

-- name: audit_newest_of
-- The same for one resource. Rides audit_resource.
SELECT a.audit_id, a.at_ms, r.tenant, r.id, a.actor, a.verb, a.reason, a.detail
FROM audit a JOIN resource r ON r.rid = a.rid
WHERE a.rid = ?4 AND a.gid = ?1 AND a.audit_id < ?2 ORDER BY a.audit_id DESC LIMIT ?3

-- name: plan_versions
-- By the first part of the primary key.
SELECT name, version, policy, policy = declared FROM plan WHERE gid = ?1 ORDER BY name

-- name: plans_in_use
-- Over the resources with work alone: what a plan means to idle ones is nothing yet.
SELECT r.plan, count(*), sum(a.backlog) FROM attention a JOIN resource r ON r.rid = a.rid
WHERE a.gid = ?1 GROUP BY r.plan

-- name: lane_first
-- The head of a lane. Rides attention_ready.
SELECT r.tenant, r.id, r.plan, a.backlog, a.since_ms, a.due_ms
FROM attention a JOIN resource r ON r.rid = a.rid
WHERE a.gid = ?1 AND a.lane = ?2 AND a.due_ms = 0 ORDER BY a.place LIMIT ?3

-- name: lane_counts
-- Over the requests in line. Rides attention_ready.
SELECT lane, count(*) FROM attention WHERE gid = ?1 AND due_ms = 0 GROUP BY lane

-- name: parked_counts
-- Over the requests that wait for a moment.
SELECT CASE WHEN hold_ms > ?2 THEN hold_why END, count(*) FROM attention
WHERE gid = ?1 AND due_ms > 0 GROUP BY 1 ORDER BY 2 DESC

-- name: parked_first
-- Those of one reason that come next. Rides attention_timer until there are enough.
SELECT r.tenant, r.id, r.plan, a.backlog, a.since_ms, a.due_ms
FROM attention a JOIN resource r ON r.rid = a.rid
WHERE a.gid = ?1 AND a.due_ms > 0 AND CASE WHEN a.hold_ms > ?2 THEN a.hold_why END IS ?3
ORDER BY a.due_ms LIMIT ?4

-- name: tokens_out
-- As many rows as slots are at work.
SELECT t.rid, r.tenant, r.id, t.slot, t.owner, t.fence, t.until_ms, t.loan
FROM token t JOIN resource r ON r.rid = t.rid WHERE r.gid = ?1
ORDER BY r.tenant, r.id, t.slot

-- name: waiting
-- A range of the primary key, in the order in which it is taken.
SELECT id, type, enqueued_ms, due_ms, seq, failed, redriven, expires_ms, length(payload),
       substr(payload, 1, 1000)
FROM message WHERE rid = ?1 AND due_ms BETWEEN ?2 AND ?3 ORDER BY due_ms, seq LIMIT ?4

-- name: busiest
-- Over the resources with work, once.
SELECT a.rid, r.tenant, r.id, r.plan, r.state, r.state_until_ms,
       a.due_ms, a.hold_ms, a.hold_why, a.backlog, s.at_ms, s.arrival, s.service
FROM attention a JOIN resource r ON r.rid = a.rid LEFT JOIN stats s ON s.rid = a.rid
WHERE a.gid = ?1 ORDER BY a.backlog DESC, a.rid LIMIT ?2

-- name: named_by_rid
-- By primary key.
SELECT g.name, r.tenant, r.id FROM resource r JOIN grp g ON g.gid = r.gid WHERE r.rid = ?1
