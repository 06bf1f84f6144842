-- name: last_ticket
-- One row; read at most once in a transaction.
SELECT value FROM counter WHERE name = 'ticket'

-- name: save_ticket
-- The last act before COMMIT, so that numbers are dealt in the order of commits.
UPDATE counter SET value = ? WHERE name = 'ticket'

-- name: directory_version
-- Running cycles compare it at each message boundary, through the engine's memory.
SELECT value FROM counter WHERE name = 'directory'

-- name: directory_changed
-- In the same transaction as a change of a state, a plan or a place on a plan.
UPDATE counter SET value = value + 1 WHERE name = 'directory'

-- name: group
-- By the unique name.
SELECT gid, default_plan, register_unknown, refuse_in_maintenance, max_tenant_backlog
FROM grp WHERE name = ?

-- name: group_stored
-- A group's settings are the last that an application declared.
SELECT gid FROM grp
WHERE name = ? AND type = ? AND default_plan = ? AND register_unknown = ?
  AND refuse_in_maintenance = ? AND max_tenant_backlog IS ?

-- name: store_group
-- The last declaration counts. By the unique name.
INSERT INTO grp (name, type, default_plan, register_unknown, refuse_in_maintenance,
                 max_tenant_backlog)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE
SET type = excluded.type, default_plan = excluded.default_plan,
    register_unknown = excluded.register_unknown,
    refuse_in_maintenance = excluded.refuse_in_maintenance,
    max_tenant_backlog = excluded.max_tenant_backlog

-- name: plan
-- By primary key.
SELECT version, policy, declared FROM plan WHERE gid = ? AND name = ?

-- name: plan_names
-- For the error that says which plans there are. By primary key.
SELECT name FROM plan WHERE gid = ? ORDER BY name

-- name: store_plan
-- ``declared`` is kept beside what is in force, so that a deploy that declares the same plan again
-- does not undo what a person has set since.
INSERT INTO plan (gid, name, version, declared, policy, priority, max_backlog)
VALUES (?, ?, 1, ?, ?, ?, ?)
ON CONFLICT (gid, name) DO UPDATE
SET version = version + 1, declared = excluded.declared, policy = excluded.policy,
    priority = excluded.priority, max_backlog = excluded.max_backlog

-- name: set_plan
-- In force from the next message boundary; ``declared`` stays. By primary key.
UPDATE plan SET version = version + 1, policy = ?, priority = ?, max_backlog = ?
WHERE gid = ? AND name = ?

-- name: place_of
-- Where a publish puts its work: the resource, whether it may take any, the request that stands.
-- By the unique (gid, tenant, id) and two primary keys.
SELECT r.rid, r.state, r.state_reason, r.state_until_ms, p.priority,
       a.due_ms, a.hold_ms, a.lane, coalesce(a.backlog, 0), p.max_backlog, r.overrides
FROM resource r
JOIN plan p ON p.gid = r.gid AND p.name = r.plan
LEFT JOIN attention a ON a.rid = r.rid
WHERE r.gid = ? AND r.tenant = ? AND r.id = ?

-- name: register
-- On the plan it is given; active. The unique (gid, tenant, id) keeps it one.
INSERT INTO resource (gid, tenant, id, plan, routing, overrides) VALUES (?, ?, ?, ?, ?, ?)
RETURNING rid

-- name: move
-- NULL leaves what is there.
UPDATE resource SET plan = coalesce(?, plan), routing = coalesce(?, routing),
                    overrides = coalesce(?, overrides), version = version + 1
WHERE rid = ?

-- name: find
-- By the unique (gid, tenant, id).
SELECT rid, plan, version, state, state_until_ms FROM resource
WHERE gid = ? AND tenant = ? AND id = ?

-- name: max_backlog
-- Of a plan, for a resource that is not there yet. By primary key.
SELECT max_backlog FROM plan WHERE gid = ? AND name = ?

-- name: put_message
-- A second put of the same id changes nothing while the first is kept: unique (rid, id).
INSERT INTO message (rid, due_ms, seq, id, type, enqueued_ms, content_type, headers, payload,
                     expires_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (rid, id) DO NOTHING

-- name: is_stored
-- Which of a batch were new, once some were not. By primary key.
SELECT 1 FROM message WHERE rid = ? AND due_ms = ? AND seq = ?

-- name: is_known
-- Whether a publish beyond a cap is a repetition. Rides message_id.
SELECT 1 FROM message WHERE id = ? AND rid = ?

-- name: ask
-- No row: the first request of the resource.
INSERT INTO attention (rid, gid, lane, due_ms, place, since_ms, backlog, arrived)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)

-- name: count_in
-- A request stands and is early enough: nothing but the backlog changes.
UPDATE attention SET backlog = backlog + ?1, arrived = arrived + ?1 WHERE rid = ?2

-- name: pull_forward
-- A request stands but would fire too late. A hold is never pulled through: see place_of.
UPDATE attention SET due_ms = ?1, place = ?2, since_ms = ?3, lane = min(lane, ?4),
                     backlog = backlog + ?5, arrived = arrived + ?5,
                     hold_ms = NULL, hold_why = NULL
WHERE rid = ?6

-- name: wake_timers
-- Requests whose time has come take their place at the tail. Rides attention_timer.
SELECT rid, due_ms FROM attention WHERE due_ms > 0 AND due_ms <= ? ORDER BY due_ms LIMIT ?

-- name: ready
-- First come, first served within a lane. Rides attention_ready.
SELECT rid, since_ms, place FROM attention
WHERE gid = ? AND lane = ? AND due_ms = 0 ORDER BY place LIMIT ?

-- name: next_timer
-- When there may be something to begin, if nothing is ready. Rides attention_timer.
SELECT min(due_ms) FROM attention WHERE due_ms > 0

-- name: record
-- All that a claim has to know, read in the claim's own transaction: never from a cache.
SELECT r.tenant, r.id, r.plan, p.version, r.overrides, r.routing,
       r.state, r.state_until_ms, r.stop_now, coalesce(a.backlog, 0)
FROM resource r
JOIN plan p ON p.gid = r.gid AND p.name = r.plan
LEFT JOIN attention a ON a.rid = r.rid
WHERE r.rid = ?

-- name: tokens
-- All of a resource, ended ones too: the claim decides which. By primary key.
SELECT slot, fence, until_ms, loan FROM token WHERE rid = ?

-- name: grant
-- The primary key keeps two owners out of one slot.
INSERT INTO token (rid, slot, owner, fence, until_ms, loan) VALUES (?, ?, ?, ?, ?, ?)

-- name: take_token
-- By the claim that found it ended.
DELETE FROM token WHERE rid = ? AND slot = ? AND fence = ?

-- name: holds_token
-- The fence at settle: no row, no outcome.
SELECT 1 FROM token WHERE rid = ? AND slot = ? AND fence = ?

-- name: renew
-- The attention row is not touched: one wasted claim per lease of a full resource, no more.
UPDATE token SET until_ms = ? WHERE rid = ? AND slot = ? AND fence = ?

-- name: lend
-- Replaces the loan of a token that has settled all of the last one. By primary key.
UPDATE token SET loan = ? WHERE rid = ? AND slot = ? AND fence = ?

-- name: park
-- The request waits for a moment or for a release, whichever comes first.
UPDATE attention SET due_ms = ?, hold_ms = ?, hold_why = ? WHERE rid = ?

-- name: to_tail
-- Ready again, behind all that wait now; no hold.
UPDATE attention SET due_ms = 0, place = ?, since_ms = ?, lane = ?, hold_ms = NULL, hold_why = NULL
WHERE rid = ?

-- name: wait_until
-- Nothing is ready before that moment; no hold.
UPDATE attention SET due_ms = ?, hold_ms = NULL, hold_why = NULL WHERE rid = ?

-- name: drop_request
-- Only after a look that found neither work nor a token, in the same transaction.
DELETE FROM attention WHERE rid = ?

-- name: request
-- What the resource's request waits for, and why. By primary key.
SELECT due_ms, hold_ms, hold_why, backlog, arrived FROM attention WHERE rid = ?

-- name: count_out
-- Messages that left the queue, done or dead. By primary key.
UPDATE attention SET backlog = max(backlog - ?, 0) WHERE rid = ?

-- name: due_messages
-- Delayed and retried messages whose time has come, by primary key.
SELECT due_ms, seq, id, type, enqueued_ms, failed, suspect, unknown_ms, content_type, headers,
       payload, expires_ms, redriven
FROM message WHERE rid = ? AND due_ms > 0 AND due_ms <= ? ORDER BY due_ms, seq LIMIT ?

-- name: ready_messages
-- The others, between two loans of other tokens, by primary key.
SELECT due_ms, seq, id, type, enqueued_ms, failed, suspect, unknown_ms, content_type, headers,
       payload, expires_ms, redriven
FROM message WHERE rid = ? AND due_ms = 0 AND seq > ? AND seq < ? ORDER BY seq LIMIT ?

-- name: next_due
-- When the earliest message after a key falls due (0: now), by primary key.
SELECT due_ms, seq FROM message WHERE rid = ? AND (due_ms, seq) > (?, ?)
ORDER BY due_ms, seq LIMIT 1

-- name: done
-- A run of one loan, whole: nothing else can stand between its first and its last.
DELETE FROM message WHERE rid = ? AND due_ms = ? AND seq BETWEEN ? AND ?

-- name: retry
-- The failed attempt is counted here and nowhere else, and once: who repeats it finds it counted.
UPDATE message SET due_ms = ?, failed = failed + 1, suspect = 0, unknown_ms = NULL, history = ?
WHERE rid = ? AND due_ms = ? AND seq = ? AND failed = ?

-- name: defer
-- Nobody here handles its type; no attempt, and a suspect stays one: it was not put to the test.
UPDATE message SET due_ms = ?, unknown_ms = coalesce(unknown_ms, ?)
WHERE rid = ? AND due_ms = ? AND seq = ?

-- name: history
-- The failures so far, for the one that is added. By primary key.
SELECT history, failed FROM message WHERE rid = ? AND due_ms = ? AND seq = ?

-- name: bury
-- The message leaves the queue in the same transaction: it is in exactly one of the two places.
INSERT INTO dead (rid, id, type, enqueued_ms, died_ms, attempts, reason, error, error_text, trace,
                  content_type, headers, history, payload, redriven)
SELECT rid, id, type, enqueued_ms, ?, failed + ?, ?, ?, ?, ?, content_type, headers, history, payload,
       redriven
FROM message WHERE rid = ? AND due_ms = ? AND seq = ?
RETURNING id, type, attempts

-- name: on_loan
-- What a dead holder had in hand, by primary key.
SELECT due_ms, seq, suspect, crashes FROM message
WHERE rid = ? AND due_ms = ? AND seq BETWEEN ? AND ?

-- name: suspect
-- Taken alone from now on. A range of the primary key.
UPDATE message SET suspect = 1 WHERE rid = ? AND due_ms = ? AND seq BETWEEN ? AND ?

-- name: charge
-- A process died with this one alone in hand: an attempt, and a death.
UPDATE message SET failed = failed + 1, crashes = crashes + 1 WHERE rid = ? AND due_ms = ? AND seq = ?

-- name: set_state
-- A version that only grows tells two actors apart.
-- Who, why and until when go with it. By primary key.
UPDATE resource SET state = ?, state_reason = ?, state_actor = ?, state_until_ms = ?,
                    version = version + 1, stop_now = 0
WHERE rid = ?

-- name: stop_now
-- The state that was just set cancels the handlers that run. By primary key.
UPDATE resource SET stop_now = 1 WHERE rid = ?

-- name: state
-- As it is now: what settles a request never reads it from a cache. By primary key.
SELECT state, state_until_ms FROM resource WHERE rid = ?

-- name: has_work
-- One probe, by primary key.
SELECT 1 FROM message WHERE rid = ? LIMIT 1

-- name: count_work
-- Only where a request is missing: the backlog is counted as it changes.
SELECT count(*) FROM message WHERE rid = ?

-- name: lane_of
-- The lane that the resource's plan gives. By two primary keys.
SELECT p.priority FROM resource r JOIN plan p ON p.gid = r.gid AND p.name = r.plan WHERE r.rid = ?

-- name: limit_raised
-- A courtesy: release or lease end does it anyway. Few rows: only resources with work have one.
SELECT a.rid FROM attention a JOIN resource r ON r.rid = a.rid
WHERE r.gid = ? AND r.plan = ? AND a.hold_why IN ('busy', 'rate')

-- name: replan
-- Requests that wait already take the lane of the changed plan.
UPDATE attention SET lane = ? WHERE rid IN (
    SELECT a.rid FROM attention a JOIN resource r ON r.rid = a.rid WHERE r.gid = ? AND r.plan = ?)

-- name: bucket
-- What was left and when it was written; the level now is computed. By primary key.
SELECT level, at_ms FROM bucket WHERE key = ?

-- name: fill
-- The level at a moment. By primary key.
INSERT INTO bucket (key, level, at_ms) VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET level = excluded.level, at_ms = excluded.at_ms

-- name: any_scope
-- Asked once in a transaction, so that the common case costs one probe.
SELECT 1 FROM scope_stop LIMIT 1

-- name: scope
-- Until when an outside service is left alone. By primary key.
SELECT until_ms, reason FROM scope_stop WHERE gid = ? AND scope = ?

-- name: stop_scope
-- The last stop counts. By primary key.
INSERT INTO scope_stop (gid, scope, until_ms, reason) VALUES (?, ?, ?, ?)
ON CONFLICT (gid, scope) DO UPDATE SET until_ms = excluded.until_ms, reason = excluded.reason

-- name: probe_scope
-- The others wait for the one that tries, until its lease ends. By primary key.
UPDATE scope_stop SET until_ms = ? WHERE gid = ? AND scope = ?

-- name: clear_scope
-- The outside service is back. By primary key.
DELETE FROM scope_stop WHERE gid = ? AND scope = ?

-- name: held_by_stop
-- Those that wait for the same outside service; few rows: only resources with work have one.
SELECT a.rid FROM attention a JOIN resource r ON r.rid = a.rid
WHERE a.hold_why = 'stop' AND r.gid = ?
  AND EXISTS (SELECT 1 FROM json_each(r.routing) WHERE key = ? AND value = ?)

-- name: lead
-- Ours while we renew it; anybody's after that.
INSERT INTO leader (task, owner, until_ms) VALUES (?, ?, ?)
ON CONFLICT (task) DO UPDATE SET owner = excluded.owner, until_ms = excluded.until_ms
WHERE leader.owner = excluded.owner OR leader.until_ms <= ?

-- name: next_with_work
-- One probe per resource that has work, by primary key; idle resources cost nothing.
SELECT rid FROM message WHERE rid > ? ORDER BY rid LIMIT 1

-- name: unattended
-- The request that should stand for work that is there.
SELECT r.gid, p.priority, a.due_ms, a.hold_why, a.backlog
FROM resource r
JOIN plan p ON p.gid = r.gid AND p.name = r.plan
LEFT JOIN attention a ON a.rid = r.rid
WHERE r.rid = ?

-- name: ended_tokens
-- Tokens that ended long ago and that no claim has found, with a request that is not due. What is
-- held for another reason than them waits for the end of that.
SELECT t.rid FROM token t LEFT JOIN attention a ON a.rid = t.rid
WHERE t.until_ms < ?
  AND (a.rid IS NULL OR (a.due_ms > t.until_ms + ? AND coalesce(a.hold_why, 'busy') = 'busy'))
GROUP BY t.rid LIMIT ?

-- name: longest_ready
-- The head of a lane has waited longest in it. Rides attention_ready. A resource that is served and
-- could use one more consumer does not wait: nobody has to make room for it.
SELECT rid, since_ms FROM attention
WHERE gid = ? AND lane = ? AND due_ms = 0
  AND NOT EXISTS (SELECT 1 FROM token t WHERE t.rid = attention.rid)
ORDER BY place LIMIT 2

-- name: overdue
-- Those whose time has come and that no claim has woken yet; a full resource's own is none of them.
-- Rides attention_timer.
SELECT rid, due_ms FROM attention
WHERE due_ms > 0 AND due_ms <= ? AND gid = ? AND hold_why IS NOT 'busy' ORDER BY due_ms LIMIT 2

-- name: name_of
-- By primary key.
SELECT tenant, id FROM resource WHERE rid = ?

-- name: release_hold
-- Ready at the tail, whatever it waited for.
UPDATE attention SET due_ms = 0, place = ?, since_ms = ?, hold_ms = NULL, hold_why = NULL
WHERE rid = ?

-- name: relane
-- Keeps its place: who has waited longer stays in front. By primary key.
UPDATE attention SET lane = ? WHERE rid = ?

-- name: add_to_ledger
-- One write per name and commit, whatever the number of operations.
INSERT INTO ledger (gid, name, value) VALUES (?, ?, ?)
ON CONFLICT (gid, name) DO UPDATE SET value = value + excluded.value

-- name: stats
-- By primary key.
SELECT at_ms, arrived, done, failed, dead, arrival, service, cycles FROM stats WHERE rid = ?

-- name: write_stats
-- One write per resource and commit.
INSERT INTO stats (rid, at_ms, arrived, done, failed, dead, arrival, service, cycles)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (rid) DO UPDATE
SET at_ms = excluded.at_ms, arrived = excluded.arrived, done = excluded.done,
    failed = excluded.failed, dead = excluded.dead, arrival = excluded.arrival,
    service = excluded.service, cycles = excluded.cycles

-- name: close_books
-- What has arrived is in the books now. By primary key.
UPDATE attention SET backlog = max(backlog - ?, 0), arrived = 0 WHERE rid = ?

-- name: tenant_load
-- By primary key; only groups that limit a tenant's backlog have rows.
SELECT backlog FROM tenant_load WHERE gid = ? AND tenant = ?

-- name: count_tenant
-- Once per tenant, when its group is given a limit. Rides the unique (gid, tenant, id).
INSERT INTO tenant_load (gid, tenant, backlog)
SELECT ?1, ?2, coalesce(sum(a.backlog), 0)
FROM resource r LEFT JOIN attention a ON a.rid = r.rid WHERE r.gid = ?1 AND r.tenant = ?2
ON CONFLICT (gid, tenant) DO UPDATE SET backlog = excluded.backlog

-- name: load_tenant
-- Nothing where nobody limits it.
UPDATE tenant_load SET backlog = max(backlog + ?, 0) WHERE gid = ? AND tenant = ?

-- name: forget_loads
-- A limit that comes again counts again.
DELETE FROM tenant_load WHERE gid = ?

-- name: next_with_request
-- By primary key: as many rows as resources that have work.
SELECT rid FROM attention WHERE rid > ? ORDER BY rid LIMIT 1

-- name: count_some
-- By primary key, and no further than up to a limit.
SELECT count(*) FROM (SELECT 1 FROM message WHERE rid = ? LIMIT ?)

-- name: set_backlog
-- What was counted in the same transaction.
UPDATE attention SET backlog = ? WHERE rid = ?
