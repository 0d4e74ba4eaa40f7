-- name: insert
insert into jobs (id, state, lane, root, parent, session, batch, retries, timeout, ready_at, due_at, deadline,
                  created_at, seq, last_event)
{values:j(id int, state int, lane int, root int, parent int, session int, batch int, retries int, timeout int,
          ready_at int, due_at int, deadline int, created_at int, seq int, last_event int)}

-- name: insert_input
insert into inputs (job, body) {values:i(job int, body text)}

-- name: insert_result
-- A replayed job may end again: its newest outcome replaces the older one.
insert into results (job, body) {values:r(job int, body text)} on conflict (job) do update set body = excluded.body

-- name: lock_ready
-- The chosen jobs that are still ready, with their inputs; where claims compete the rows stay locked.
select jobs.id, inputs.body from jobs join inputs on inputs.job = jobs.id
 where jobs.id {in:ids} and +jobs.state = {queued} and jobs.due_at is null {skip_locked:jobs}

-- name: claim
update jobs set state = {running}, epoch = epoch + 1, node = :node, started_at = :now, reason = null,
       seq = seq + 1, prev_event = last_event, last_event = r.event
  from {rows:rows(id int, event int)} r
 where jobs.id = r.id and +jobs.state = {queued} and jobs.due_at is null
returning jobs.id, epoch, lane, root, parent, attempt, crashes, timeouts, snoozes, retries, timeout, deadline,
          created_at, seq, prev_event

-- name: complete
update jobs set state = {completed}, node = null, ended_at = :now,
       seq = seq + 1, prev_event = last_event, last_event = r.event
  from {rows:rows(id int, epoch int, event int)} r
 where jobs.id = r.id and jobs.state = {running} and jobs.epoch = r.epoch
returning jobs.id, seq, prev_event

-- name: move
-- Every other change of state. An absent number keeps what the row has; due_at is always said.
update jobs set state = r.target, reason = r.reason, ready_at = coalesce(r.ready_at, jobs.ready_at), due_at = r.due_at,
       ended_at = r.ended_at, attempt = coalesce(r.attempt, jobs.attempt),
       crashes = coalesce(r.crashes, jobs.crashes), timeouts = coalesce(r.timeouts, jobs.timeouts),
       snoozes = coalesce(r.snoozes, jobs.snoozes),
       node = case when r.keeps_node = 1 then jobs.node else null end,
       batch = null, seq = seq + 1, prev_event = last_event, last_event = r.event
  from {rows:rows(id int, expects int, epoch int, target int, reason text, ready_at int, due_at int, ended_at int,
                  attempt int, crashes int, timeouts int, snoozes int, keeps_node int, event int)} r
 where jobs.id = r.id and jobs.state = r.expects and jobs.epoch = r.epoch
returning jobs.id, seq, prev_event

-- name: unblock
update jobs set state = {queued}, ready_at = :now, due_at = null,
       seq = seq + 1, prev_event = last_event, last_event = r.event
  from {rows:rows(id int, epoch int, event int)} r
 where jobs.id = r.id and +jobs.state = {blocked} and jobs.epoch = r.epoch
returning jobs.id, seq, prev_event

-- name: release
-- The code of a job that had ended already (cancelled, timed out) has really stopped: what it held is free.
update jobs set node = null, seq = seq + 1, prev_event = last_event, last_event = r.event
  from {rows:rows(id int, epoch int, event int)} r
 where jobs.id = r.id and jobs.epoch = r.epoch and jobs.state >= {first_ended} and jobs.node is not null
returning jobs.id, seq, prev_event

-- name: note
-- An event that changes nothing else in the job; only the epoch that holds the job may write it.
update jobs set seq = seq + 1, prev_event = last_event, last_event = r.event
  from {rows:rows(id int, epoch int, event int)} r
 where jobs.id = r.id and jobs.epoch = r.epoch and jobs.node is not null
returning jobs.id, seq, prev_event

-- name: rows
select id, state, lane, root, parent, session, epoch, attempt, crashes, timeouts, snoozes, retries, timeout, node,
       ready_at, due_at, deadline, created_at, started_at, ended_at, seq, last_event, reason
  from jobs where id {in:ids} order by id

-- name: states
select id, state from jobs where id {in:ids}

-- name: results
select jobs.id, jobs.state, jobs.reason, results.body
  from jobs left join results on results.job = jobs.id where jobs.id {in:ids}

-- name: input
select body from inputs where job = :job

-- name: set_input
update inputs set body = :body where job = :job

-- name: due
select id, epoch from jobs where state = {queued} and due_at is not null and due_at <= :now order by due_at limit :most

-- name: next_due
select min(due_at) from jobs where state = {queued} and due_at is not null

-- name: make_due
update jobs set due_at = null, seq = seq + 1, prev_event = last_event, last_event = r.event
  from {rows:rows(id int, epoch int, event int)} r
 where jobs.id = r.id and jobs.epoch = r.epoch and +jobs.state = {queued} and jobs.due_at is not null
returning jobs.id, seq, prev_event

-- name: overdue
-- Open jobs whose deadline has passed; those that nobody can see yet have to wait until they are.
select id from jobs where deadline is not null and state < {first_ended} and state <> {created} and deadline <= :now
 order by deadline limit :most

-- name: next_deadline
select min(deadline) from jobs where deadline is not null and state < {first_ended} and state <> {created}

-- name: held_by_node
select id from jobs where node = :node order by id limit :most

-- name: children
select id from jobs where parent {in:ids} order by id limit :most

-- name: open_children
select id from jobs where parent {in:ids} and state < {first_ended} and state <> {created} order by id limit :most

-- name: orphans
select jobs.id from jobs join jobs p on p.id = jobs.parent where jobs.id {in:ids} and p.state = {cancelled}

-- name: ended_but_held
-- Jobs of a node that somebody else has ended: their code has to stop.
select id, epoch from jobs where node = :node and state >= {first_ended} order by id limit :most

-- name: count_ready
select count(*) from jobs where state = {queued} and due_at is null

-- name: count_due
select count(*) from jobs where state = {queued} and due_at is not null

-- name: count_blocked
select count(*) from jobs where state = {blocked}

-- name: pending_roots
select count(*) from jobs where state in ({queued}, {blocked}) and parent is null

-- name: held
-- What is held right now, by lane: a running job is its own lease, and so is one whose code has not stopped yet.
select lane, count(*) from jobs where node is not null group by lane

-- name: set_progress
insert into progress (job, fraction, note) {values:p(job int, fraction real, note text)}
on conflict (job) do update set fraction = excluded.fraction, note = excluded.note

-- name: lift_deadline
update jobs set deadline = null where id = :job
