-- name: make_work
-- The least that a queue per tenant needs: one table ordered by queue and number.
CREATE TABLE work (
    queue_id INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    body     BLOB NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    due      INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (queue_id, seq)
) WITHOUT ROWID

-- name: make_attention
-- One request per queue, first come, first served.
CREATE TABLE attention (id INTEGER PRIMARY KEY, queue_id INTEGER UNIQUE, due INTEGER)

-- name: make_lease
-- Who serves a queue now.
CREATE TABLE lease (queue_id INTEGER PRIMARY KEY, owner TEXT, expires INTEGER, fence INTEGER)

-- name: put
-- No unique id: a message that is put twice is there twice.
INSERT INTO work (queue_id, seq, body) VALUES (?, ?, ?)

-- name: ask
-- A request that stands is enough.
INSERT INTO attention (queue_id, due) VALUES (?, 0) ON CONFLICT (queue_id) DO NOTHING

-- name: claim
-- The oldest request.
DELETE FROM attention WHERE id = (SELECT min(id) FROM attention) RETURNING queue_id

-- name: lease
-- For the one that claimed it.
INSERT INTO lease (queue_id, owner, expires, fence) VALUES (?, ?, ?, 1)
ON CONFLICT (queue_id) DO UPDATE
SET owner = excluded.owner, expires = excluded.expires, fence = fence + 1

-- name: take
-- The slice.
SELECT seq, body FROM work WHERE queue_id = ? ORDER BY seq LIMIT ?

-- name: done
-- The slice, whole.
DELETE FROM work WHERE queue_id = ? AND seq <= ?

-- name: look
-- Whether the queue has to be asked for again.
SELECT 1 FROM work WHERE queue_id = ? LIMIT 1

-- name: release
-- After which the next one may serve the queue.
DELETE FROM lease WHERE queue_id = ?
