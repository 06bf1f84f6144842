-- name: parked
-- A tenth of the requests wait for a moment.
UPDATE attention SET due_ms = :now + 60000, hold_ms = :now + 60000, hold_why = 'rate'
WHERE place % 10 = 0

-- name: token
-- As many as a worker has slots, with nothing in hand.
INSERT INTO token (rid, slot, owner, fence, until_ms, loan)
SELECT rid, 0, 'host-1', rid, :now + 3600000, '[]' FROM attention ORDER BY rid LIMIT :count

-- name: dead
-- Ten for each of the first with work, of four types and five errors.
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)
INSERT INTO dead (rid, id, type, enqueued_ms, died_ms, attempts, reason, error, error_text,
                  trace, history, payload)
SELECT 1 + n % (:count / 10) * 10, printf('%036d', n),
       'type' || n % 4, :now - 60000, :now - n, 5, 'attempts', 'Error' || n % 5, 'it failed',
       hex(zeroblob(1000)), '[]', :payload
FROM numbers

-- name: operation
-- Done long ago.
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)
INSERT INTO operation (gid, kind, selection, state, reason, actor, jitter_ms, upto, total, done,
                       started_ms, ended_ms, next_ms)
SELECT gid, 'redrive', '{"error":"Error1"}', 'done', 'mended', 'someone', 0, 1, 1, 1,
       :now - 60000, :now - 50000, :now
FROM numbers, grp

-- name: audit
-- A trail of some length, each entry of another resource.
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)
INSERT INTO audit (at_ms, gid, rid, actor, verb, reason, detail)
SELECT :now - :count + n, gid, n, 'someone', 'nudge', 'late', '{}' FROM numbers, grp

-- name: stats
-- Whoever has work was served before.
INSERT INTO stats (rid, at_ms, arrived, done, failed, dead, arrival, service, cycles)
SELECT rid, :now, 100, 80, 0, 0, 1.5, 1.2, '[]' FROM attention
