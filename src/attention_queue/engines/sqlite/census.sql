-- name: census_plans
-- Over the resources with work, in one pass. A request's count is compared with its plan's slice;
-- the oldest that could be taken now is the first of those never delayed or of those fallen due.
WITH slice AS MATERIALIZED (
    SELECT gid, name, json_extract(policy, '$.max_messages') AS most FROM plan)
SELECT r.gid, r.plan, a.backlog > s.most, count(*), sum(a.backlog),
       min((SELECT m.enqueued_ms FROM message m WHERE m.rid = a.rid AND m.due_ms = 0
            ORDER BY m.seq LIMIT 1)),
       min((SELECT m.enqueued_ms FROM message m WHERE m.rid = a.rid AND m.due_ms > 0
            AND m.due_ms <= ?1 ORDER BY m.due_ms, m.seq LIMIT 1))
FROM attention a
JOIN resource r ON r.rid = a.rid
JOIN slice s ON s.gid = r.gid AND s.name = r.plan
WHERE a.backlog > 0 GROUP BY 1, 2, 3

-- name: census_requests
-- Each request once: in line, its resource being served, or waiting for a moment.
SELECT a.gid,
       CASE WHEN a.due_ms <= ?1 THEN 'ready'
            WHEN EXISTS (SELECT 1 FROM token t WHERE t.rid = a.rid AND t.until_ms > ?1) THEN 'begun'
            ELSE 'parked' END,
       count(*), min(CASE WHEN a.due_ms = 0 THEN a.since_ms ELSE a.due_ms END)
FROM attention a GROUP BY 1, 2

-- name: census_tokens
-- As many rows as slots are at work.
SELECT r.gid, count(*) FROM token t JOIN resource r ON r.rid = t.rid
WHERE t.until_ms > ?1 GROUP BY 1

-- name: census_dead
-- Over the dead letters. Rides dead_resource.
SELECT r.gid, count(*) FROM dead d JOIN resource r ON r.rid = d.rid GROUP BY 1

-- name: census_unattended
-- One probe of the primary key per resource with work, however much work it has.
WITH RECURSIVE worked (rid) AS (
    SELECT min(rid) FROM message
    UNION ALL
    SELECT (SELECT min(m.rid) FROM message m WHERE m.rid > w.rid) FROM worked w
    WHERE w.rid IS NOT NULL)
SELECT count(*) FROM worked w
WHERE w.rid IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM attention a WHERE a.rid = w.rid)
  AND NOT EXISTS (SELECT 1 FROM token t WHERE t.rid = w.rid)

-- name: census_groups
-- A handful.
SELECT gid, name FROM grp ORDER BY name
