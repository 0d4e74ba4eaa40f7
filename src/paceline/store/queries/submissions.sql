-- name: key
select keys.job, inputs.body from keys join inputs on inputs.job = keys.job
 where keys.tenant = :tenant and keys.agent = :agent and keys.key = :key

-- name: add_key
insert into keys (tenant, agent, key, job) values (:tenant, :agent, :key, :job)

-- name: session
-- The row of a session, new or not; nobody else joins until this transaction ends.
insert into sessions (tenant, name) values (:tenant, :name)
on conflict (tenant, name) do update set name = excluded.name returning id, last_job

-- name: advance_session
update sessions set last_job = :job where id = :id

-- name: newest_batch
select coalesce(max(id), 0) from batches

-- name: open_batch
insert into batches (id, opened_at) values (:id, :now)

-- name: is_open
select id from batches where id = :id and published_at is null {share}

-- name: publish_batch
update batches set published_at = :now where id = :id and published_at is null

-- name: abandon_batch
-- From here on nobody can add to it or accept it.
update batches set published_at = 0 where id = :id and coalesce(published_at, 0) = 0

-- name: close_batch
delete from batches where id = :id

-- name: unfinished_batches
-- Published batches whose jobs are not all visible yet, and those that were given up half-way. Below zero are those
-- that were written in somebody else's transaction, which come with its commit or never.
select id, published_at from batches
 where id > 0 and (published_at is not null or opened_at <= :before) order by id limit 1 {skip_locked:batches}

-- name: staged
select id, session from jobs where batch = :batch and state = {created} order by id limit :most

-- name: publish_ready
update jobs set state = {queued}, ready_at = coalesce(due_at, :now), batch = null, seq = seq + 1,
       prev_event = last_event, last_event = r.event
  from {rows:rows(id int, event int)} r
 where jobs.id = r.id and state = {created}
   and not exists (select 1 from edges where edges.dependent = jobs.id and edges.met <> 1)
returning jobs.id, seq, prev_event, last_event

-- name: publish_blocked
update jobs set state = {blocked}, batch = null, seq = seq + 1,
       prev_event = last_event, last_event = r.event
  from {rows:rows(id int, event int)} r
 where jobs.id = r.id and state = {created}
returning jobs.id, seq, prev_event, last_event

-- name: forget_jobs
delete from jobs where id {in:ids} and state = {created}

-- name: forget_inputs
delete from inputs where job {in:ids}

-- name: forget_edges
delete from edges where dependent {in:ids}
