-- name: next_id
select coalesce(max(id), 0) + 1 from events

-- name: insert
insert into events (id, job, seq, prev, at, kind, epoch, data)
values (:id, :job, :seq, :prev, :at, :kind, :epoch, :data)

-- name: gained
-- The change feed of dispatchers: jobs that became ready since the last event seen, as they are now.
select jobs.lane, jobs.ready_at, jobs.id from events join jobs on jobs.id = events.job
 where events.id > :after and events.id <= :upto and events.kind {in:kinds}
   and jobs.state = {queued} and jobs.due_at is null

-- name: after
select id, job, seq, at, kind, epoch, data from events where id > :after order by id limit :most

-- name: newest
select id, job, seq, at, kind, epoch, data from events order by id desc limit :most

-- name: of_job
-- Walks the chain back from the job's last event: no index by job is kept.
with recursive chain(id, prev, place) as (
  select events.id, events.prev, 1 from events join jobs on jobs.last_event = events.id where jobs.id = :job
  union all
  select events.id, events.prev, place + 1 from chain join events on events.id = chain.prev
   where chain.prev > :after and place < :most
)
select events.id, events.job, events.seq, events.at, events.kind, events.epoch, events.data
  from chain join events on events.id = chain.id where events.id > :after order by events.id desc limit :most
