-- name: group_names
-- A handful.
SELECT name FROM grp ORDER BY name

-- name: groups
-- A handful.
SELECT gid, name, type, default_plan FROM grp ORDER BY name

-- name: plans
-- By the first part of the primary key.
SELECT name, policy, policy = declared FROM plan WHERE gid = ?1 ORDER BY name

-- name: line
-- Over the resources with work, in one pass: requests by whether they are in line, and why not.
SELECT due_ms = 0 OR due_ms <= ?2, CASE WHEN hold_ms > ?2 THEN hold_why END, count(*), sum(backlog),
       min(CASE WHEN due_ms = 0 THEN since_ms ELSE due_ms END)
FROM attention WHERE gid = ?1 GROUP BY 1, 2

-- name: tokens_of_group
-- As many rows as slots are at work.
SELECT count(*) FILTER (WHERE t.until_ms > ?2), count(*) FILTER (WHERE t.until_ms <= ?2)
FROM token t JOIN resource r ON r.rid = t.rid WHERE r.gid = ?1

-- name: dead_of_group
-- Over the dead letters. Rides dead_resource.
SELECT count(*) FROM dead d JOIN resource r ON r.rid = d.rid WHERE r.gid = ?1

-- name: attended
-- Is anybody at work, and how long has the first in line waited? Rides attention_ready and
-- attention_timer.
SELECT (SELECT count(*) FROM token WHERE until_ms > ?1),
       (SELECT min(since_ms) FROM attention WHERE due_ms = 0),
       (SELECT min(due_ms) FROM attention WHERE due_ms > 0 AND due_ms <= ?1)

-- name: named
-- By the unique (gid, tenant, id), once per group.
SELECT g.name, r.tenant, r.id FROM grp g
JOIN resource r ON r.gid = g.gid AND r.tenant = ?1 AND r.id = ?2 ORDER BY g.name LIMIT 20

-- name: named_anywhere
-- A bare id means looking through all names: for a person who types, not for a program.
SELECT g.name, r.tenant, r.id FROM resource r JOIN grp g ON g.gid = r.gid
WHERE r.id = ?1 ORDER BY g.name, r.tenant LIMIT 20

-- name: resource
-- By the unique (gid, tenant, id) and two primary keys.
SELECT r.rid, g.gid, g.type, r.plan, p.policy, r.overrides, r.routing,
       r.state, r.state_reason, r.state_actor, r.state_until_ms,
       a.lane, a.due_ms, a.place, a.since_ms, a.hold_ms, a.hold_why, a.backlog, r.version, a.arrived
FROM grp g
JOIN resource r ON r.gid = g.gid AND r.tenant = ?2 AND r.id = ?3
JOIN plan p ON p.gid = g.gid AND p.name = r.plan
LEFT JOIN attention a ON a.rid = r.rid
WHERE g.name = ?1

-- name: tokens_of
-- By primary key, in the order of their slots.
SELECT slot, owner, fence, until_ms, loan FROM token WHERE rid = ?1 ORDER BY slot

-- name: in_hand
-- The messages of one range on loan, by primary key.
SELECT count(*) FROM message WHERE rid = ?1 AND due_ms = ?2 AND seq BETWEEN ?3 AND ?4

-- name: ahead
-- Requests before a place in its lane, counted up to a limit. Rides attention_ready.
SELECT count(*) FROM (SELECT 1 FROM attention
                      WHERE gid = ?1 AND lane = ?2 AND due_ms = 0 AND place < ?3 LIMIT ?4)

-- name: next_due_now
-- What is taken next: first the delayed that have fallen due, by primary key.
SELECT id, type, enqueued_ms, due_ms, failed, crashes, history, unknown_ms, redriven,
       expires_ms
FROM message WHERE rid = ?1 AND due_ms > 0 AND due_ms <= ?2 ORDER BY due_ms, seq LIMIT 1

-- name: next_ready
-- Then the others, by primary key; and if there are none, the earliest that is delayed.
SELECT id, type, enqueued_ms, due_ms, failed, crashes, history, unknown_ms, redriven,
       expires_ms
FROM message WHERE rid = ?1 ORDER BY due_ms, seq LIMIT 1

-- name: oldest
-- The first in order is the oldest of those that were never delayed; of the others, a hundred.
SELECT min(enqueued_ms) FROM (
    SELECT * FROM (SELECT enqueued_ms FROM message WHERE rid = ?1 AND due_ms = 0
                   ORDER BY seq LIMIT 1)
    UNION ALL
    SELECT * FROM (SELECT enqueued_ms FROM message WHERE rid = ?1 AND due_ms > 0
                   ORDER BY due_ms, seq LIMIT 100))

-- name: unasked
-- Work that no request stands for has no count: by primary key, up to a limit.
SELECT count(*) FROM (SELECT 1 FROM message WHERE rid = ?1 LIMIT ?2)

-- name: dead_of
-- Counted up to a limit. Rides dead_resource.
SELECT count(*) FROM (SELECT 1 FROM dead WHERE rid = ?1 LIMIT ?2)

-- name: expired_of
-- Among the newest thousand. Rides dead_resource.
SELECT count(*) FROM (SELECT reason FROM dead WHERE rid = ?1 ORDER BY dead_id DESC LIMIT 1000)
WHERE reason = 'expired'

-- name: pace
-- By primary key.
SELECT at_ms, arrival, service, cycles FROM stats WHERE rid = ?1

-- name: ledger
-- Some forty names, by the first part of the primary key.
SELECT name, value FROM ledger WHERE gid = ?1

-- name: stops
-- A handful: one row per outside service that is down.
SELECT scope, reason, until_ms FROM scope_stop WHERE gid = ?1

-- name: listed
-- A page by key. Rides the unique (gid, tenant, id); ``tenants`` and ``ids`` are GLOB patterns.
SELECT r.rid, r.tenant, r.id, r.plan, r.state, r.state_until_ms,
       a.due_ms, a.hold_ms, a.hold_why, coalesce(a.backlog, 0)
FROM grp g
JOIN resource r ON r.gid = g.gid AND (r.tenant, r.id) > (:tenant, :id)
LEFT JOIN attention a ON a.rid = r.rid
WHERE g.name = :group
  AND (:tenants IS NULL OR r.tenant GLOB :tenants)
  AND (:ids IS NULL OR r.id GLOB :ids)
  AND (:plan IS NULL OR r.plan = :plan)
  AND (:error IS NULL OR EXISTS (SELECT 1 FROM dead d WHERE d.rid = r.rid AND d.error = :error))
  AND (:state IS NULL OR iif(r.state_until_ms <= :now, 'active', r.state) = :state)
ORDER BY r.tenant, r.id LIMIT :limit

-- name: listed_busy
-- The same over the resources with work alone, in the order in which they were registered.
SELECT r.rid, r.tenant, r.id, r.plan, r.state, r.state_until_ms,
       a.due_ms, a.hold_ms, a.hold_why, a.backlog
FROM grp g
CROSS JOIN attention a
JOIN resource r ON r.rid = a.rid AND r.gid = g.gid
WHERE g.name = :group AND a.backlog > :more_than
  AND (:before IS NULL OR :before >= (
      SELECT min(enqueued_ms) FROM (
          SELECT * FROM (SELECT enqueued_ms FROM message m WHERE m.rid = a.rid AND m.due_ms = 0
                         ORDER BY m.seq LIMIT 1)
          UNION ALL
          SELECT * FROM (SELECT enqueued_ms FROM message m WHERE m.rid = a.rid AND m.due_ms > 0
                         ORDER BY m.due_ms, m.seq LIMIT 100))))
  AND a.rid > coalesce((SELECT x.rid FROM resource x
                        WHERE x.gid = g.gid AND x.tenant = :tenant AND x.id = :id), 0)
  AND (:tenants IS NULL OR r.tenant GLOB :tenants)
  AND (:ids IS NULL OR r.id GLOB :ids)
  AND (:plan IS NULL OR r.plan = :plan)
  AND (:error IS NULL OR EXISTS (SELECT 1 FROM dead d WHERE d.rid = r.rid AND d.error = :error))
  AND (:state IS NULL OR iif(r.state_until_ms <= :now, 'active', r.state) = :state)
ORDER BY a.rid LIMIT :limit

-- name: newest
-- The latest moment at which a request joined the line: a right clock is not behind it.
SELECT max(since_ms) FROM attention WHERE due_ms = 0
