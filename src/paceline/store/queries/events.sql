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
-- Walks the chain back from the job's last event, no further than asked: no index by job is kept.
with recursive chain(id, prev, job, seq, at, kind, epoch, data, place) as (
  select e.id, e.prev, e.job, e.seq, e.at, e.kind, e.epoch, e.data, 1
    from jobs join events e on e.id = jobs.last_event where jobs.id = :job and jobs.last_event > :after
  union all
  select e.id, e.prev, e.job, e.seq, e.at, e.kind, e.epoch, e.data, place + 1
    from chain join events e on e.id = chain.prev where chain.prev > :after and place < :most
)
select id, job, seq, at, kind, epoch, data from chain order by id desc
